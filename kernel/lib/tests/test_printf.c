/*
 * Formatted printing (kernel/lib/printf.c).
 */
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

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
    PRINT("00010|  010|010  |00000", "%#05o|%#5o|%-#5o|%#05o", 8, 8, 8, 0);
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
