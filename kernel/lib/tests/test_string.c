/*
 * Memory and strings (kernel/lib/string.c), against loops of the plainest kind
 * at every length and alignment up to some words.
 */
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"

#define ROOM  64 /* bytes of the areas that are worked on */
#define SPAN  40 /* longest piece that is moved */
#define SHIFT 4  /* alignments tried */

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
static void expect_length(size_t at, size_t n, char last, char rest)
{
    char text[ROOM];

    memset(text, rest, sizeof(text));
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

KTEST(string, make_printable_hides_what_draws)
{
    char name[] = " a\033[2J\r~\177\xe9";

    make_printable(name);
    KT_TRUE(strcmp(name, " a?[2J?~??") == 0);
}

/* An escaped name is one word, and has its own name back. */
KTEST(string, escape_and_back)
{
    static const char *const names[][2] = {
        {"/tmp/plain~!", "/tmp/plain~!"},
        {"/a b", "/a\\040b"},
        {"/a\\040b", "/a\\134040b"},
        {"\001\177\xe9\n", "\\001\\177\\351\\012"},
        {"", ""},
    };
    char text[ESCAPED_SIZE(16)];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        escape(text, names[i][0]);
        KT_TRUE(strcmp(text, names[i][1]) == 0);
        unescape(text);
        KT_TRUE(strcmp(text, names[i][0]) == 0);
    }
}

/* What escape never writes stays as it is. */
KTEST(string, unescape_keeps_other_backslashes)
{
    char text[] = "\\ \\0 \\04 \\048 \\n \\";

    unescape(text);
    KT_TRUE(strcmp(text, "\\ \\0 \\04 \\048 \\n \\") == 0);
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

KTEST(parse_size, numbers)
{
    static const struct {
        const char *word;
        uint32_t bytes;
    } good[] = {{"0", 0},         {"4096", 4096},
                {"0x10", 16},     {"4k", 4096},
                {"4K", 4096},     {"4KiB", 4096},
                {"2m", MIB(2)},   {"2M", MIB(2)},
                {"2MiB", MIB(2)}, {"4095M", 4095 * MIB(1)},
                {"0x10k", 16384}};
    static const char *const bad[] = {"",    "k",    "KiB",   "4kB",     "4 k",
                                      "4kk", "M4",   "4kiB",  "4MIB",    "4G",
                                      "-1k", "1.5M", "4096M", "4194304k"};
    uint32_t bytes;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        if (!parse_size(good[i].word, &bytes) || bytes != good[i].bytes)
            ktest_fail(__FILE__, __LINE__, "%s is not %u", good[i].word,
                       (unsigned)good[i].bytes);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (parse_size(bad[i], &bytes))
            ktest_fail(__FILE__, __LINE__, "%s is a size", bad[i]);
}
