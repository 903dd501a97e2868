/*
 * Lookup in the kernel's own symbol table.
 *
 * tools/run/symbols.py writes the table. Functions are sorted by address; an
 * entry without a name marks the end of the function before it. Objects follow,
 * for lookups by name.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"

/* The last function's entry at or below `addr`, or NULL. */
static const struct symbol *entry_below(uintptr_t addr)
{
    uint32_t low = 0; /* entries before this one are at or below addr */
    uint32_t high = symbol_functions; /* this one and later are above */

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (symbol_table[middle].symbol_addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &symbol_table[low - 1] : NULL;
}

const char *symbol_lookup(uintptr_t addr, uintptr_t *offset)
{
    const struct symbol *sym = entry_below(addr);

    if (sym == NULL || sym->symbol_name == NULL)
        return NULL;
    if (offset != NULL)
        *offset = addr - sym->symbol_addr;
    return sym->symbol_name;
}

const char *symbol_object(uintptr_t addr, uintptr_t *offset)
{
    const struct symbol *best = NULL;

    for (uint32_t i = symbol_functions; i < symbol_count; i++) {
        const struct symbol *sym = &symbol_table[i];

        if (sym->symbol_addr <= addr &&
            (best == NULL || sym->symbol_addr > best->symbol_addr))
            best = sym;
    }
    if (best != NULL)
        *offset = addr - best->symbol_addr;
    return best != NULL ? best->symbol_name : NULL;
}

uintptr_t symbol_address(const char *name)
{
    for (uint32_t i = 0; i < symbol_count; i++)
        if (symbol_table[i].symbol_name != NULL &&
            strcmp(symbol_table[i].symbol_name, name) == 0)
            return symbol_table[i].symbol_addr;
    return 0;
}

/* An address and the function that contains the byte `back` before it. */
static const char *format(uintptr_t addr, uintptr_t back, char *buf,
                          size_t size)
{
    uintptr_t offset;
    const char *name = symbol_lookup(addr - back, &offset);

    if (name != NULL)
        snprintf(buf, size, "%s+0x%lx", name, (unsigned long)(offset + back));
    else
        snprintf(buf, size, "0x%08lx", (unsigned long)addr);
    return buf;
}

const char *symbol_format(uintptr_t addr, char *buf, size_t size)
{
    return format(addr, 0, buf, size);
}

const char *symbol_caller(uintptr_t addr, char *buf, size_t size)
{
    return format(addr, 1, buf, size);
}
