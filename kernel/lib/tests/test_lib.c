/*
 * What kernel/lib offers: strings, formatted printing, lists, 64-bit division,
 * the symbol table.
 *
 * Strings are checked against loops of the plainest kind, at every length and
 * alignment up to some words.
 *
 * Tests: kernel/lib/string.c, kernel/lib/printf.c, kernel/lib/div64.c
 * Tests: kernel/lib/symbol.c
 */
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/list.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/paging.h"
#include "mm/page.h"

#define ROOM  64 /* bytes of the areas that are worked on */
#define SPAN  40 /* longest piece that is moved */
#define SHIFT 4  /* alignments tried */

/* The next of a fixed sequence (xorshift, Marsaglia 2003). */
static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void number(uint8_t *area)
{
    for (unsigned i = 0; i < ROOM; i++)
        area[i] = (uint8_t)(i * 7 + 1);
}

static void expect_area(const uint8_t *got, const uint8_t *want, size_t to,
                        size_t from, size_t n)
{
    for (unsigned i = 0; i < ROOM; i++) {
        if (got[i] != want[i]) {
            KT_FAIL("%zu bytes from %zu to %zu: byte %u is %02x, want %02x", n,
                    from, to, i, got[i], want[i]);
            return;
        }
    }
}

/* ---- memory ------------------------------------------------------------- */

KTEST(string, memcpy_lengths_and_alignments)
{
    uint8_t src[ROOM], got[ROOM], want[ROOM];

    number(src);
    for (size_t n = 0; n <= SPAN; n++)
        for (size_t to = 0; to < SHIFT; to++)
            for (size_t from = 0; from < SHIFT; from++) {
                for (unsigned i = 0; i < ROOM; i++)
                    got[i] = want[i] = 0xee;
                for (size_t i = 0; i < n; i++)
                    want[to + i] = src[from + i];
                KT_EQ(KT_PTR(memcpy(got + to, src + from, n)),
                      KT_PTR(got + to));
                expect_area(got, want, to, from, n);
            }
}

KTEST(string, memmove_overlaps)
{
    uint8_t src[ROOM], got[ROOM], want[ROOM];

    number(src);
    for (size_t n = 0; n <= SPAN; n++)
        for (size_t to = 0; to < ROOM - SPAN; to++)
            for (size_t from = 0; from < ROOM - SPAN; from++) {
                number(got);
                number(want);
                for (size_t i = 0; i < n; i++)
                    want[to + i] = src[from + i];
                KT_EQ(KT_PTR(memmove(got + to, got + from, n)),
                      KT_PTR(got + to));
                expect_area(got, want, to, from, n);
            }
}

KTEST(string, memset_lengths_and_alignments)
{
    uint8_t got[ROOM], want[ROOM];
    const int fill = -0x6364; /* only its low byte counts: 0x9c */

    for (size_t n = 0; n <= SPAN; n++)
        for (size_t to = 0; to < SHIFT; to++) {
            number(got);
            number(want);
            for (size_t i = 0; i < n; i++)
                want[to + i] = 0x9c;
            KT_EQ(KT_PTR(memset(got + to, fill, n)), KT_PTR(got + to));
            expect_area(got, want, to, 0, n);
        }
}

KTEST(string, memcmp_every_byte)
{
    uint8_t a[ROOM], b[ROOM];

    number(a);
    for (size_t n = 0; n <= SPAN; n++) {
        number(b);
        b[n] ^= 0xff;
        KT_EQ(memcmp(a, b, n), 0);
        for (size_t at = 0; at < n; at++) {
            number(b);
            b[at]++;
            KT_TRUE(memcmp(a, b, n) < 0);
            KT_TRUE(memcmp(b, a, n) > 0);
            /* The first difference decides, whatever follows. */
            b[at + 1] = 0;
            KT_TRUE(memcmp(b, a, n) > 0);
        }
    }
    a[0] = 0x7f;
    b[0] = 0x80;
    KT_TRUE(memcmp(a, b, 1) < 0);
}

/* ---- strings ------------------------------------------------------------ */

/* The bytes next to the end could be mistaken for it by a search by words. */
static void expect_length(size_t at, size_t n, char last, char behind)
{
    char text[ROOM];

    memset(text, behind, sizeof(text));
    if (n > 0)
        text[at + n - 1] = last;
    text[at + n] = 0;
    KT_EQ(strlen(text + at), n);
    KT_EQ(strnlen(text + at, SPAN + 1), n);
    KT_EQ(strnlen(text + at, n / 2), n / 2);
}

KTEST(string, strlen_lengths_and_alignments)
{
    for (size_t at = 0; at < SHIFT; at++)
        for (size_t n = 0; n <= SPAN; n++) {
            expect_length(at, n, 1, '\x80');
            expect_length(at, n, '\x80', 1);
            expect_length(at, n, '\x81', '\xff');
        }
}

/* -1, 0 or 1; of the first `n` characters at most. */
static int order(const char *a, const char *b, size_t n)
{
    int whole = strcmp(a, b);
    int part = strncmp(a, b, n);

    if (n > strlen(a) && whole != part)
        KT_FAIL("%s and %s: strcmp %d, strncmp %d", a, b, whole, part);
    return part < 0 ? -1 : part > 0;
}

KTEST(string, strcmp_orders)
{
    KT_EQ(order("", "", 99), 0);
    KT_EQ(order("slab", "slab", 99), 0);
    KT_EQ(order("slab", "slabs", 99), -1);
    KT_EQ(order("slabs", "slab", 99), 1);
    KT_EQ(order("a", "b", 99), -1);
    KT_EQ(order("\x7f", "\x80", 99), -1);
    KT_EQ(order("slab", "slim", 2), 0);
    KT_EQ(order("slab", "slim", 3), -1);
    KT_EQ(order("slabs", "slab", 4), 0);
    KT_EQ(order("b", "a", 0), 0);
}

KTEST(string, strchr_and_strstr)
{
    const char *s = "magazine";

    KT_EQ(KT_PTR(strchr(s, 'a')), KT_PTR(s + 1));
    KT_EQ(KT_PTR(strchr(s, 'e')), KT_PTR(s + 7));
    KT_EQ(KT_PTR(strchr(s, 0)), KT_PTR(s + 8));
    KT_EQ(KT_PTR(strchr(s, 'x')), 0);
    KT_EQ(KT_PTR(strstr(s, "")), KT_PTR(s));
    KT_EQ(KT_PTR(strstr(s, "az")), KT_PTR(s + 3));
    KT_EQ(KT_PTR(strstr(s, "zine")), KT_PTR(s + 4));
    KT_EQ(KT_PTR(strstr(s, "zines")), 0);
    KT_EQ(KT_PTR(strstr("", "a")), 0);
}

KTEST(string, strlcpy_cuts)
{
    char buf[4] = "###";

    KT_EQ(strlcpy(buf, "abcdef", sizeof(buf)), 6);
    KT_EQ(strcmp(buf, "abc"), 0);
    KT_EQ(strlcpy(buf, "xy", sizeof(buf)), 2);
    KT_EQ(strcmp(buf, "xy"), 0);
    KT_EQ(strlcpy(buf, "abc", 0), 3);
    KT_EQ(strcmp(buf, "xy"), 0);
    KT_EQ(strlcpy(buf, "abc", 1), 3);
    KT_EQ(strcmp(buf, ""), 0);
}

/* ---- parse_u32 ---------------------------------------------------------- */

static void expect_parse(const char *text, uint32_t want)
{
    uint32_t value = ~want;

    if (!parse_u32(text, &value) || value != want)
        KT_FAIL("\"%s\" is %u, want %u", text, (unsigned)value, (unsigned)want);
}

KTEST(parse_u32, numbers)
{
    expect_parse("0", 0);
    expect_parse("7", 7);
    expect_parse("0010", 10);
    expect_parse("1994", 1994);
    expect_parse("4294967295", UINT32_MAX);
    expect_parse("0x0", 0);
    expect_parse("0xc0Ffee", 0xc0ffee);
    expect_parse("0xffffffff", UINT32_MAX);
    expect_parse("0x0000000000000001", 1);
}

KTEST(parse_u32, refuses)
{
    static const char *const bad[] = {
        "",   " 1", "1 ",  "-1",         "+1",          "12a",
        "0x", "x1", "0xg", "4294967296", "0x100000000", "99999999999",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint32_t value = 4711;

        if (parse_u32(bad[i], &value))
            KT_FAIL("\"%s\" became %u", bad[i], (unsigned)value);
        KT_EQ(value, 4711);
    }
}

/* ---- printf ------------------------------------------------------------- */

/* Not marked PRINTF_LIKE: some of these formats a compiler would object to. */
static void expect_print(int line, const char *want, const char *fmt, ...)
{
    char got[96];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(got, sizeof(got), fmt, ap);
    va_end(ap);
    if (strcmp(got, want) != 0 || (size_t)n != strlen(want))
        ktest_fail(__FILE__, line, "\"%s\" gave \"%s\" (%d), want \"%s\"", fmt,
                   got, n, want);
}

#define PRINT(want, ...) expect_print(__LINE__, want, __VA_ARGS__)

KTEST(printf, plain_and_percent)
{
    PRINT("", "");
    PRINT("slab", "slab");
    PRINT("100%", "100%%");
    PRINT("%", "%%");
    PRINT("a1b2c", "a%db%dc", 1, 2);
}

KTEST(printf, decimal)
{
    PRINT("0", "%d", 0);
    PRINT("-7", "%i", -7);
    PRINT("2147483647", "%d", INT32_MAX);
    PRINT("-2147483648", "%d", INT32_MIN);
    PRINT("4294967295", "%u", UINT32_MAX);
    PRINT("+5 -5", "%+d %+d", 5, -5);
    PRINT(" 5 -5", "% d % d", 5, -5);
    PRINT("+5", "%+ d", 5);
}

KTEST(printf, width_and_precision)
{
    PRINT("|   42|42   |00042|", "|%5d|%-5d|%05d|", 42, 42, 42);
    PRINT("|  -42|-42  |-0042|", "|%5d|%-5d|%05d|", -42, -42, -42);
    PRINT("|12345|", "|%3d|", 12345);
    PRINT("|42   |", "|%-05d|", 42);
    PRINT("|  007|007  |  007|", "|%5.3d|%-5.3d|%05.3d|", 7, 7, 7);
    PRINT("||  |", "|%.0d|%2.d|", 0, 0);
    PRINT("|   9|9   |0009|", "|%*d|%*d|%.*d|", 4, 9, -4, 9, 4, 9);
    PRINT("|9|", "|%.*d|", -4, 9);
    PRINT("|+0042|", "|%+05d|", 42);
}

KTEST(printf, hexadecimal_and_octal)
{
    PRINT("c0ffee C0FFEE", "%x %X", 0xc0ffee, 0xc0ffee);
    PRINT("0xff 0XFF 0", "%#x %#X %#x", 255, 255, 0);
    PRINT("0x00ff|  0xff|0xff  |", "%#06x|%#6x|%-#6x|", 255, 255, 255);
    PRINT("0x0000abcd", "%#010x", 0xabcd);
    PRINT("0 777 0777 0", "%o %o %#o %#o", 0, 0777, 0777, 0);
    PRINT("00777 0777 0777 0", "%#.5o %#.4o %#.3o %#.0o", 0777, 0777, 0777, 0);
}

KTEST(printf, lengths)
{
    PRINT("-1 255", "%hhd %hhu", 0x1ff, 0x1ff);
    PRINT("-1 65535", "%hd %hu", 0x1ffff, 0x1ffff);
    PRINT("-5 5 5", "%ld %lu %zu", -5L, 5ul, (size_t)5);
    PRINT("1 2 3", "%d %lld %d", 1, 2ll, 3);
}

KTEST(printf, sixty_four_bits)
{
    PRINT("18446744073709551615", "%llu", ~0ull);
    PRINT("-9223372036854775808", "%lld", INT64_MIN);
    PRINT("9223372036854775807", "%lld", INT64_MAX);
    PRINT("4294967296", "%llu", 1ull << 32);
    PRINT("4294967295", "%llu", (1ull << 32) - 1);
    PRINT("5000000000000000007", "%llu", 5000000000000000007ull);
    PRINT("10000000000", "%llu", 10000000000ull);
    PRINT("ffffffffffffffff", "%llx", ~0ull);
    PRINT("1777777777777777777777", "%llo", ~0ull);
    PRINT("01777777777777777777777", "%#llo", ~0ull);
}

KTEST(printf, characters_strings_pointers)
{
    PRINT("x|  x|x  |", "%c|%3c|%-3c|", 'x', 'x', 'x');
    PRINT("slab|  slab|slab  |", "%s|%6s|%-6s|", "slab", "slab", "slab");
    PRINT("sl|  sl||slab", "%.2s|%4.2s|%.0s|%.9s", "slab", "slab", "slab",
          "slab");
    PRINT("(null)", "%s", (const char *)NULL);
    PRINT("0xc0100000 0x00000000", "%p %p", (void *)0xc0100000u, (void *)NULL);
}

/* With a precision a string needs no end. */
KTEST(printf, precision_limits_reading)
{
    char text[4] = {'a', 'b', 'c', 'd'};

    PRINT("abc", "%.3s", text);
    PRINT("abcd", "%.*s", 4, text);
}

KTEST(printf, cuts_and_counts)
{
    char buf[8];

    memset(buf, '#', sizeof(buf));
    KT_EQ(snprintf(buf, 5, "%s", "abcdefgh"), 8);
    KT_EQ(memcmp(buf, "abcd\0###", sizeof(buf)), 0);
    KT_EQ(snprintf(buf, 5, "ab%4d", 7), 6);
    KT_EQ(memcmp(buf, "ab  \0###", sizeof(buf)), 0);
    KT_EQ(snprintf(buf, 5, "%s", "wxyz"), 4);
    KT_EQ(memcmp(buf, "wxyz\0###", sizeof(buf)), 0);
    KT_EQ(snprintf(buf, 1, "%d", 12), 2);
    KT_EQ(buf[0], 0);
    KT_EQ(snprintf(NULL, 0, "%08d", 1), 8);
}

KTEST(printf, nonsense_stays)
{
    PRINT("%y 5", "%y %d", 5);
    PRINT("end %", "end %");
    PRINT("end %-5", "end %-5");
}

/* ---- list --------------------------------------------------------------- */

struct item {
    int item_value;
    struct list item_link;
};

/* Checks values and both directions of links against `want`. */
static void expect_list(int line, const struct list *head, const int *want,
                        int n)
{
    int i = 0;

    list_for_each (l, head) {
        int value = list_entry(l, struct item, item_link)->item_value;

        if (i < n && value != want[i])
            ktest_fail(__FILE__, line, "item %d is %d, want %d", i, value,
                       want[i]);
        if (l->prev->next != l || l->next->prev != l)
            ktest_fail(__FILE__, line, "item %d: links disagree", i);
        if (++i > n)
            break;
    }
    if (i != n)
        ktest_fail(__FILE__, line, "%d items or more, want %d", i, n);
}

KTEST(list, insert_and_remove)
{
    struct list head = LIST_INIT(head);
    struct item a = {.item_value = 1}, b = {.item_value = 2},
                c = {.item_value = 3};

    KT_TRUE(list_empty(&head));
    list_insert_after(&head, &b.item_link);
    KT_TRUE(!list_empty(&head));
    list_insert_after(&head, &a.item_link);
    list_insert_before(&head, &c.item_link);
    expect_list(__LINE__, &head, (const int[]){1, 2, 3}, 3);
    list_remove(&b.item_link);
    expect_list(__LINE__, &head, (const int[]){1, 3}, 2);
    list_insert_before(&a.item_link, &b.item_link);
    expect_list(__LINE__, &head, (const int[]){2, 1, 3}, 3);
    list_remove(&b.item_link);
    list_remove(&c.item_link);
    list_remove(&a.item_link);
    KT_TRUE(list_empty(&head));
    KT_EQ(KT_PTR(head.prev), KT_PTR(&head));
}

KTEST(list, init_forgets)
{
    struct list head, one;

    list_init(&head);
    list_insert_after(&head, &one);
    list_init(&head);
    KT_TRUE(list_empty(&head));
    KT_EQ(KT_PTR(head.prev), KT_PTR(&head));
}

/* ---- 64-bit division ---------------------------------------------------- */

static void expect_division(uint64_t n, uint64_t d, uint64_t q, uint64_t r)
{
    if (n / d != q || n % d != r)
        KT_FAIL("%llu / %llu = %llu rest %llu, want %llu rest %llu",
                (unsigned long long)n, (unsigned long long)d,
                (unsigned long long)(n / d), (unsigned long long)(n % d),
                (unsigned long long)q, (unsigned long long)r);
}

KTEST(div64, known_values)
{
    const uint64_t max = UINT64_MAX;

    expect_division(0, 1, 0, 0);
    expect_division(100, 7, 14, 2);
    expect_division(6, 7, 0, 6);
    expect_division(max, 1, max, 0);
    expect_division(max, max, 1, 0);
    expect_division(max - 1, max, 0, max - 1);
    expect_division(max, 10, 1844674407370955161u, 5);
    expect_division(1ull << 32, 3, 1431655765, 1);
    expect_division(1ull << 63, 1ull << 32, 1u << 31, 0);
    expect_division(max, 1ull << 63, 1, max >> 1);
    expect_division(5000000000000000007u, 1000000000, 5000000000u, 7);
    expect_division(0x100000000, 0xffffffff, 1, 1);
    expect_division(0xfffffffe00000001u, 0xffffffff, 0xffffffff, 0);
}

KTEST(div64, signs)
{
    static const struct {
        int64_t n, d, q, r;
    } cases[] = {
        {7000000000, 3, 2333333333, 1},
        {-7000000000, 3, -2333333333, -1},
        {7000000000, -3, -2333333333, 1},
        {-7000000000, -3, 2333333333, -1},
        {INT64_MIN, 1, INT64_MIN, 0},
        {INT64_MIN, 10, -922337203685477580, -8},
        {INT64_MIN, INT64_MIN, 1, 0},
        {5, INT64_MIN, 0, 5},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        volatile int64_t n = cases[i].n, d = cases[i].d;

        KT_EQ(n / d, cases[i].q);
        KT_EQ(n % d, cases[i].r);
    }
}

/* n = q * d + r and r < d, for numbers of every length. */
KTEST(div64, identity)
{
    uint32_t state = 1994;

    for (unsigned i = 0; i < 5000; i++) {
        uint64_t n = (uint64_t)next_random(&state) << 32 | next_random(&state);
        uint64_t d = (uint64_t)next_random(&state) << 32 | next_random(&state);
        uint64_t q, r;

        n >>= next_random(&state) % 64;
        d >>= next_random(&state) % 64;
        if (d == 0)
            continue;
        q = n / d;
        r = n % d;
        if (q * d + r != n || r >= d) {
            KT_FAIL("%llu / %llu = %llu rest %llu", (unsigned long long)n,
                    (unsigned long long)d, (unsigned long long)q,
                    (unsigned long long)r);
            return;
        }
    }
}

/* ---- symbols ------------------------------------------------------------ */

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

/* The code after the last call of a function belongs to another function. */
KTEST(symbol, callers)
{
    uintptr_t end = symbol_end((uintptr_t)symbol_lookup);
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

KTEST(symbol, ends_and_objects)
{
    uintptr_t addr = (uintptr_t)symbol_lookup;
    uintptr_t offset = 1;
    const char *name;

    KT_EQ(symbol_end(addr + 5), symbol_end(addr));
    KT_REQUIRE(symbol_end(addr) > addr + 5);
    name = symbol_lookup(symbol_end(addr) - 1, NULL);
    KT_TRUE(name != NULL && strcmp(name, "symbol_lookup") == 0);
    KT_EQ(symbol_end(0), 0);
    KT_EQ(symbol_end((uintptr_t)&symbol_count), 0);
    name = symbol_object((uintptr_t)&page_array + 2, &offset);
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
