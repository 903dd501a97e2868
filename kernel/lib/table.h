/*
 * Tables as data: a structure for each row, and columns that say where in it a
 * value is, how it is written, and what it is called. The same columns print
 * aligned text under a line of heads, or a JSON object for each row.
 *
 *     #define PORT(member, ...) COLUMN(struct port_stat, member, __VA_ARGS__)
 *
 *     static const struct column columns[] = {
 *         PORT(stat_number, NUMBER, 6, "NUMBER", "number"),
 *         PORT(stat_bits, WORD, 8, "BITS", "bits"),
 *         {0},
 *     };
 *
 *     NUMBER     BITS          {"number":1,"bits":4}
 *          1 00000004
 *
 * Nothing is allocated: a row is printed as it is made.
 */
#pragma once

#include "kernel/lib/printf.h"

/* Prints to `to`, as printf does. */
typedef void print_t(void *to, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The one whose `to` is the console and NULL. */
void print_console(void *to, const char *fmt, ...) PRINTF_LIKE(2, 3);

struct table {
    const struct column *table_columns; /* the last one is zeroed */
    print_t *table_print;
    void *table_to;
    bool table_json;
    size_t *table_rows; /* the number of rows printed; NULL: not counted */
};

/* A whole table. */
struct table_source {
    const struct column *source_columns;
    void (*source_rows)(const struct table *t);
    const char *source_none; /* printed if there are no rows; or NULL */
};

enum column_type {
    COLUMN_NUMBER,   /* unsigned, of 1, 2, 4 or 8 bytes */
    COLUMN_NONZERO,  /* the same; 0 is "-" in the table */
    COLUMN_OPTIONAL, /* the same; all ones are "-", and no member in JSON */
    COLUMN_COUNT,    /* the same, but shortened in the table, and blank */
    COLUMN_INTEGER,  /* int */
    COLUMN_ADDRESS,  /* 0xc0123456; a number in JSON, as the next two */
    COLUMN_WORD,     /* c0123456 */
    COLUMN_HEX,      /* 1f0 */
    COLUMN_FLAG,     /* bool: yes or no; true or false in JSON */
    COLUMN_STRING,   /* char *; NULL is "-" in the table, no member in JSON */
    COLUMN_CHARS,    /* char [] */
    COLUMN_CALL,     /* col_call prints it */
};

/* A value in the table, in JSON, or both. */
struct column {
    const char *col_head; /* NULL: not in the table */
    const char *col_key;  /* NULL: not in JSON */
    void (*col_call)(const struct table *t, const void *row);
    uint16_t col_offset; /* in the row's structure */
    uint16_t col_size;
    int8_t col_width; /* characters; negative: aligned to the left */
    enum column_type col_type;
};

#define COLUMN(row, member, type, width, head, key)                            \
    {                                                                          \
        .col_head = (head), .col_key = (key),                                  \
        .col_offset = offsetof(row, member),                                   \
        .col_size = sizeof(((row *)0)->member), .col_width = (width),          \
        .col_type = COLUMN_##type                                              \
    }

/* In the table it prints a blank and col_width characters, or, in the last
 * column, what it likes; in JSON a value. */
#define COLUMN_BY(call, width, head, key)                                      \
    {                                                                          \
        .col_head = (head), .col_key = (key), .col_call = (call),              \
        .col_width = (width), .col_type = COLUMN_CALL                          \
    }

/* Prints the heads of the columns, unless the table is JSON. */
void table_begin(const struct table *t);

/* Prints a row. A text that is too long for its column takes room from the
 * blanks of the next one; in the first column it gets a line to itself if those
 * are too few. Blank values at the end of a row are left out. */
void table_row(const struct table *t, const void *row);

/* Prints a text as a JSON string with its quotes. */
void print_json(print_t *print, void *to, const char *s);

#define COUNT_SIZE 24 /* bytes of a number, NUL included */

/* `n` in at most `width` (4 or more) characters: exact if it fits, else in
 * thousands, millions, …: 123k, 1.2M. Returns buf. */
const char *count_text(uint64_t n, unsigned width, char buf[COUNT_SIZE]);
