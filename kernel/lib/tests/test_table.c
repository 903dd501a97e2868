/*
 * Tables (kernel/lib/table.c): each type of column as text and as JSON, texts
 * that are too long for their columns, and short forms of numbers.
 */
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "kernel/lib/table.h"

struct row {
    char row_name[24];
    uint8_t row_byte;
    uint16_t row_port;
    uint32_t row_order, row_size;
    uint64_t row_large;
    int row_error;
    uintptr_t row_address;
    bool row_open;
    const char *row_owner;
};

static char printed[1024];

static void PRINTF_LIKE(2, 3) keep(void *to, const char *fmt, ...)
{
    size_t n = strlen(to);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf((char *)to + n, sizeof(printed) - n, fmt, ap);
    va_end(ap);
}

static void print_sign(const struct table *t, const void *row)
{
    bool less = ((const struct row *)row)->row_error < 0;

    t->table_print(t->table_to, "%s",
                   t->table_json ? less ? "[1]" : "[]"
                   : less        ? " <0"
                                 : " ok");
}

#define ROW(member, ...) COLUMN(struct row, row_##member, __VA_ARGS__)

static const struct column test_columns[] = {
    ROW(name, CHARS, 0, NULL, "name"),
    ROW(name, CHARS, -6, "NAME", NULL),
    ROW(byte, NUMBER, 4, "BYTE", "byte"),
    ROW(port, NONZERO, 5, "PORT", "port"),
    ROW(order, OPTIONAL, 5, "ORDER", "order"),
    ROW(size, COUNT, 4, "SIZE", "size"),
    ROW(large, NUMBER, 0, NULL, "large"),
    ROW(error, INTEGER, 5, "ERROR", "error"),
    COLUMN_BY(print_sign, -3, "SGN", "sign"),
    ROW(address, ADDRESS, -10, "ADDRESS", "address"),
    ROW(address, WORD, 8, "WORD", NULL),
    ROW(address, HEX, 9, "HEX", NULL),
    ROW(open, FLAG, 4, "OPEN", "open"),
    ROW(owner, STRING, -5, "OWNER", "owner"),
    {0},
};

/* All members have values. */
static const struct row full = {"a",        255, 80,   3,    12345,
                                1ull << 40, -7,  0xc0, true, "me"};

/* None has one. */
static const struct row none = {"", 0, 0, UINT32_MAX, UINT32_MAX,
                                0,  0, 0, false,      NULL};

static void check(bool json, const struct row *row, const char *want)
{
    struct table t = {test_columns, keep, printed, json, NULL};

    printed[0] = '\0';
    if (row == NULL)
        table_begin(&t);
    else
        table_row(&t, row);
    if (strcmp(printed, want) != 0)
        KT_FAIL("got  \"%s\"\nwant \"%s\"", printed, want);
}

KTEST(table, text)
{
    check(false, NULL,
          "NAME   BYTE  PORT ORDER SIZE ERROR SGN ADDRESS        WORD       "
          "HEX OPEN OWNER\n");
    check(false, &full,
          "a       255    80     3  12k    -7 <0 0x000000c0 000000c0        "
          "c0  yes me\n");
    check(false, &none,
          "          0     -     -          0 ok 0x00000000 00000000         "
          "0   no -\n");
}

KTEST(table, json)
{
    check(true, NULL, "");
    check(true, &full,
          "{\"name\":\"a\",\"byte\":255,\"port\":80,\"order\":3,"
          "\"size\":12345,\"large\":1099511627776,\"error\":-7,\"sign\":[1],"
          "\"address\":192,\"open\":true,\"owner\":\"me\"}\n");
    check(true, &none,
          "{\"name\":\"\",\"byte\":0,\"port\":0,\"large\":0,\"error\":0,"
          "\"sign\":[],\"address\":0,\"open\":false}\n");
}

KTEST(table, blank_ends_are_left_out)
{
    struct row row = full;

    row.row_owner = "";
    check(false, &row,
          "a       255    80     3  12k    -7 <0 0x000000c0 000000c0        "
          "c0  yes\n");
}

/* A text that is too long takes blanks of the next column, or a line. */
KTEST(table, long_texts)
{
    struct row row = full;

    row.row_byte = 5;
    strlcpy(row.row_name, "123456789", sizeof(row.row_name));
    check(false, &row,
          "123456789 5    80     3  12k    -7 <0 0x000000c0 000000c0        "
          "c0  yes me\n");
    strlcpy(row.row_name, "1234567890", sizeof(row.row_name));
    check(false, &row,
          "1234567890\n"
          "          5    80     3  12k    -7 <0 0x000000c0 000000c0        "
          "c0  yes me\n");
    strlcpy(row.row_name, "a", sizeof(row.row_name));
    row.row_byte = full.row_byte;
    row.row_error = -1234567;
    check(false, &row,
          "a       255    80     3  12k -1234567 <0 0x000000c0 000000c0     "
          "c0  yes me\n");
}

KTEST(table, json_strings_are_escaped)
{
    printed[0] = '\0';
    print_json(keep, printed, "a\"b\\c\n\x01z");
    KT_TRUE(strcmp(printed, "\"a\\\"b\\\\c\\u000a\\u0001z\"") == 0);
}

static void check_count(uint64_t n, unsigned width, const char *want)
{
    char buf[COUNT_SIZE];

    count_text(n, width, buf);
    if (strcmp(buf, want) != 0)
        KT_FAIL("%llu in %u: got %s, want %s", (unsigned long long)n, width,
                buf, want);
    KT_LE(strlen(buf), width);
}

KTEST(table, counts_fit_their_columns)
{
    check_count(0, 4, "0");
    check_count(9999, 4, "9999");
    check_count(10000, 4, "10k");
    check_count(99999, 5, "99999");
    check_count(100000, 5, "100k");
    check_count(999999, 4, "999k");
    check_count(1000000, 5, "1.0M");
    check_count(1234567, 4, "1.2M");
    check_count(12345678, 5, "12.3M");
    check_count(12345678, 4, "12M");
    check_count(UINT64_MAX, 5, "18.4E");
}
