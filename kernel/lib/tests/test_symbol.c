/*
 * The symbol table (kernel/lib/symbol.c).
 */
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/paging.h"
#include "mm/page.h"

KTEST(symbol, function_and_offset)
{
    uintptr_t addr = (uintptr_t)symbol_lookup;
    uintptr_t offset = 1;
    const char *name = symbol_lookup(addr, &offset);

    KT_REQUIRE(name != NULL);
    KT_EQ(strcmp(name, "symbol_lookup"), 0);
    KT_EQ(offset, 0);
    name = symbol_lookup(addr + 5, &offset);
    KT_REQUIRE(name != NULL);
    KT_EQ(strcmp(name, "symbol_lookup"), 0);
    KT_EQ(offset, 5);
    KT_TRUE(symbol_lookup(addr, NULL) == name);
    name = symbol_lookup(addr - 1, NULL);
    KT_TRUE(name == NULL || strcmp(name, "symbol_lookup") != 0);
}

static uintptr_t end_of(uintptr_t addr)
{
    const char *name = symbol_lookup(addr, NULL);

    while (symbol_lookup(addr, NULL) == name)
        addr++;
    return addr;
}

/* The code after the last call of a function belongs to another function. */
KTEST(symbol, callers)
{
    uintptr_t end = end_of((uintptr_t)symbol_lookup);
    char text[64];

    KT_TRUE(strncmp(symbol_caller(end, text, sizeof(text)), "symbol_lookup+0x",
                    16) == 0);
    KT_TRUE(strncmp(symbol_format(end, text, sizeof(text)), "symbol_lookup+",
                    14) != 0);
    symbol_caller((uintptr_t)symbol_lookup + 5, text, sizeof(text));
    KT_EQ(strcmp(text, "symbol_lookup+0x5"), 0);
}

KTEST(symbol, unknown_addresses)
{
    KT_EQ(KT_PTR(symbol_lookup(0, NULL)), 0);
    KT_EQ(KT_PTR(symbol_lookup(0x800000, NULL)), 0);
    KT_EQ(KT_PTR(symbol_lookup((uintptr_t)text_end, NULL)), 0);
    KT_EQ(KT_PTR(symbol_lookup(UINTPTR_MAX, NULL)), 0);
    KT_EQ(KT_PTR(symbol_lookup((uintptr_t)&symbol_count, NULL)), 0);
    KT_EQ(KT_PTR(symbol_lookup((uintptr_t)__start_ktests, NULL)), 0);
}

KTEST(symbol, objects)
{
    uintptr_t offset = 1;
    const char *name = symbol_object((uintptr_t)&page_array + 2, &offset);
    KT_TRUE(name != NULL && strcmp(name, "page_array") == 0);
    KT_EQ(offset, 2);
    KT_EQ(KT_PTR(symbol_object(0, &offset)), 0);
}

KTEST(symbol, by_name)
{
    KT_EQ(symbol_address("symbol_address"), KT_PTR(symbol_address));
    KT_EQ(symbol_address("__start_ktests"), KT_PTR(__start_ktests));
    KT_EQ(symbol_address("no_such_function"), 0);
    KT_EQ(symbol_address("symbol_addres"), 0);
    KT_EQ(symbol_address(""), 0);
}

/* The table is in order, and each of its functions is found by its name. */
KTEST(symbol, table)
{
    KT_REQUIRE(symbol_functions > 100);
    KT_LE(symbol_functions, symbol_count);
    for (uint32_t i = 1; i < symbol_functions; i++) {
        const struct symbol *s = &symbol_table[i];

        KT_REQUIRE(s[-1].symbol_addr < s->symbol_addr);
        KT_REQUIRE(symbol_lookup(s->symbol_addr, NULL) == s->symbol_name);
    }
}

KTEST(symbol, format)
{
    uintptr_t addr = (uintptr_t)symbol_format;
    char text[32];

    KT_EQ(KT_PTR(symbol_format(addr, text, sizeof(text))), KT_PTR(text));
    KT_EQ(strcmp(text, "symbol_format+0x0"), 0);
    symbol_format(addr + 10, text, sizeof(text));
    KT_EQ(strcmp(text, "symbol_format+0xa"), 0);
    symbol_format(0x1234, text, sizeof(text));
    KT_EQ(strcmp(text, "0x00001234"), 0);
    symbol_format(addr, text, 7);
    KT_EQ(strcmp(text, "symbol"), 0);
}
