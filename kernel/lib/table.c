/*
 * Tables as data: see table.h.
 */
#include "kernel/lib/table.h"
#include "kernel/lib/string.h"

void print_console(void *to UNUSED, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    kvprintf(fmt, ap);
    va_end(ap);
}

void print_json(print_t *print, void *to, const char *s)
{
    print(to, "\"");
    for (; *s; s++) {
        uint8_t c = (uint8_t)*s;

        if (c < ' ' || c > '~')
            print(to, "\\u%04x", c);
        else
            print(to, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    print(to, "\"");
}

const char *count_text(uint64_t n, unsigned width, char buf[COUNT_SIZE])
{
    static const char unit[] = "kMGTPE";
    unsigned u = 0;

    if (snprintf(buf, COUNT_SIZE, "%llu", n) <= (int)width)
        return buf;
    for (; n >= 1000000; n /= 1000)
        u++;
    if (snprintf(buf, COUNT_SIZE, "%u.%u%c", (unsigned)n / 1000,
                 (unsigned)n % 1000 / 100, unit[u]) > (int)width)
        snprintf(buf, COUNT_SIZE, "%u%c", (unsigned)n / 1000, unit[u]);
    return buf;
}

/* ---- values ------------------------------------------------------------- */

static const void *member_of(const struct column *c, const void *row)
{
    return (const char *)row + c->col_offset;
}

static uint64_t number_of(const struct column *c, const void *row)
{
    const void *p = member_of(c, row);

    switch (c->col_size) {
    case 1:
        return *(const uint8_t *)p;
    case 2:
        return *(const uint16_t *)p;
    case 4:
        return *(const uint32_t *)p;
    default:
        return *(const uint64_t *)p;
    }
}

/* Whether it is the number that means none. */
static bool means_none(const struct column *c, uint64_t n)
{
    return n == (c->col_type == COLUMN_NONZERO
                     ? 0
                     : UINT64_MAX >> (64 - 8 * c->col_size));
}

/* The value of a column of text; NULL: none. */
static const char *string_of(const struct column *c, const void *row)
{
    return c->col_type == COLUMN_STRING
               ? *(const char *const *)member_of(c, row)
               : (const char *)member_of(c, row);
}

/* ---- JSON --------------------------------------------------------------- */

static bool has_member(const struct column *c, const void *row)
{
    if (c->col_key == NULL)
        return false;
    if (c->col_type == COLUMN_STRING)
        return string_of(c, row) != NULL;
    if (c->col_type == COLUMN_OPTIONAL || c->col_type == COLUMN_COUNT)
        return !means_none(c, number_of(c, row));
    return true;
}

static void print_member(const struct table *t, const struct column *c,
                         const void *row)
{
    switch (c->col_type) {
    case COLUMN_CALL:
        c->col_call(t, row);
        break;
    case COLUMN_STRING:
    case COLUMN_CHARS:
        print_json(t->table_print, t->table_to, string_of(c, row));
        break;
    case COLUMN_FLAG:
        t->table_print(t->table_to, number_of(c, row) ? "true" : "false");
        break;
    case COLUMN_INTEGER:
        t->table_print(t->table_to, "%d", *(const int *)member_of(c, row));
        break;
    default:
        t->table_print(t->table_to, "%llu", number_of(c, row));
    }
}

static void print_row_object(const struct table *t, const void *row)
{
    const char *before = "{";

    for (const struct column *c = t->table_columns; c->col_head || c->col_key;
         c++)
        if (has_member(c, row)) {
            t->table_print(t->table_to, "%s\"%s\":", before, c->col_key);
            print_member(t, c, row);
            before = ",";
        }
    t->table_print(t->table_to, "}\n");
}

/* ---- text --------------------------------------------------------------- */

static const char *number_text(enum column_type type, uint64_t n,
                               char buf[COUNT_SIZE])
{
    if (type == COLUMN_ADDRESS)
        snprintf(buf, COUNT_SIZE, "0x%08llx", n);
    else if (type == COLUMN_WORD)
        snprintf(buf, COUNT_SIZE, "%08llx", n);
    else if (type == COLUMN_HEX)
        snprintf(buf, COUNT_SIZE, "%llx", n);
    else if (type == COLUMN_INTEGER)
        snprintf(buf, COUNT_SIZE, "%d", (int)n);
    else
        snprintf(buf, COUNT_SIZE, "%llu", n);
    return buf;
}

/* The text of a cell, in `buf` if it has to be made. */
static const char *cell_text(const struct column *c, const void *row,
                             char buf[COUNT_SIZE])
{
    bool text = c->col_type == COLUMN_STRING || c->col_type == COLUMN_CHARS;
    uint64_t n = text ? 0 : number_of(c, row);

    switch (c->col_type) {
    case COLUMN_STRING:
    case COLUMN_CHARS:
        return string_of(c, row) ?: "-";
    case COLUMN_FLAG:
        return n ? "yes" : "no";
    case COLUMN_COUNT:
        return means_none(c, n) ? ""
                                : count_text(n, (unsigned)c->col_width, buf);
    case COLUMN_NONZERO:
    case COLUMN_OPTIONAL:
        return means_none(c, n) ? "-" : number_text(c->col_type, n, buf);
    default:
        return number_text(c->col_type, n, buf);
    }
}

/* A line of the table under way. */
struct line {
    const struct table *line_table;
    size_t line_at;       /* characters so far */
    size_t line_next;     /* where the next column begins */
    unsigned line_column; /* its number */
};

static size_t width_of(const struct column *c)
{
    return (size_t)(c->col_width < 0 ? -c->col_width : c->col_width);
}

/* Where a text of `n` characters begins, at least a blank after the last. */
static size_t cell_place(const struct line *l, const struct column *c, size_t n)
{
    size_t width = width_of(c);
    size_t place = l->line_next;

    if (c->col_width > 0 && n < width)
        place += width - n;
    return l->line_at == 0 ? place : MAX(place, l->line_at + 1);
}

static void print_blanks(struct line *l, size_t place)
{
    l->line_table->table_print(l->line_table->table_to, "%*s",
                               (int)(place - l->line_at), "");
    l->line_at = place;
}

/* The first column's text has a line to itself if it is so long that the next
 * one would not be in its place. */
static void print_text(struct line *l, const struct column *c, const char *s)
{
    const struct table *t = l->line_table;
    size_t n = strlen(s);

    if (n > 0 && l->line_column == 1 && l->line_at >= l->line_next &&
        cell_place(l, c, n) + n > l->line_next + width_of(c)) {
        t->table_print(t->table_to, "\n");
        l->line_at = 0;
    }
    if (n > 0) {
        print_blanks(l, cell_place(l, c, n));
        t->table_print(t->table_to, "%s", s);
        l->line_at += n;
    }
    l->line_next += width_of(c) + 1;
    l->line_column++;
}

static void print_call(struct line *l, const struct column *c, const void *row)
{
    print_blanks(l, MAX(l->line_next, l->line_at + 1) - 1);
    c->col_call(l->line_table, row);
    l->line_at += width_of(c) + 1;
    l->line_next += width_of(c) + 1;
    l->line_column++;
}

static void print_row_line(const struct table *t, const void *row)
{
    struct line l = {.line_table = t};
    char buf[COUNT_SIZE];

    for (const struct column *c = t->table_columns; c->col_head || c->col_key;
         c++)
        if (c->col_head == NULL)
            continue;
        else if (row == NULL)
            print_text(&l, c, c->col_head);
        else if (c->col_type == COLUMN_CALL)
            print_call(&l, c, row);
        else
            print_text(&l, c, cell_text(c, row, buf));
    t->table_print(t->table_to, "\n");
}

void table_begin(const struct table *t)
{
    if (!t->table_json)
        print_row_line(t, NULL);
}

void table_row(const struct table *t, const void *row)
{
    if (t->table_rows)
        ++*t->table_rows;
    if (t->table_json)
        print_row_object(t, row);
    else
        print_row_line(t, row);
}
