/*
 * A text screen in memory (control sequences: ECMA-48, chapter 8.3).
 *
 * All text is in a ring of lines in ordinary memory. The cells of the screen
 * are only written, and only if they change, because video memory is slow. A
 * character costs two stores. A new line at the bottom advances the ring by one
 * and compares each line with the one it replaces.
 *
 * After the last column the cursor stays there until the next character, as on
 * terminals.
 *
 * A cell holds ASCII. Of a character in UTF-8 the first byte shows a `?` and
 * the others nothing.
 */
#include "drivers/screen.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

enum screen_state {
    TEXT,
    ESCAPE,
    SEQUENCE
};

#define ESC           27
#define TAB           8u
#define ATTR_NORMAL   0x07 /* light grey on black */
#define ATTR_REVERSED 0x70

/* The ring's line `n` lines below the top of the current screen (negative:
 * above). */
static uint16_t *line_at(const struct screen *s, int n)
{
    unsigned i = s->screen_top + s->screen_size + (unsigned)n;

    return s->screen_lines[i % s->screen_size];
}

static uint16_t blank(const struct screen *s)
{
    return (uint16_t)(s->screen_attr << 8 | ' ');
}

/* Changes a cell of the current screen, if it is shown. */
static void set_cell(struct screen *s, unsigned row, unsigned col,
                     uint16_t value)
{
    uint16_t *line = line_at(s, (int)row);

    if (line[col] == value)
        return;
    line[col] = value;
    s->screen_cells[row * SCREEN_COLS + col] = value;
}

static void show_all(struct screen *s)
{
    volatile uint16_t *cell = s->screen_cells;

    for (unsigned row = 0; row < SCREEN_ROWS; row++) {
        const uint16_t *line = line_at(s, (int)row - (int)s->screen_view);

        for (unsigned col = 0; col < SCREEN_COLS; col++)
            *cell++ = line[col];
    }
}

static void screen_erase(struct screen *s, unsigned row, unsigned from,
                         unsigned to)
{
    for (unsigned col = from; col < to; col++)
        set_cell(s, row, col, blank(s));
}

static void blank_line(const struct screen *s, int row)
{
    uint16_t *line = line_at(s, row);

    for (unsigned col = 0; col < SCREEN_COLS; col++)
        line[col] = blank(s);
}

/* After scrolling by one line: each row of cells still shows the line above. */
static void show_scrolled(struct screen *s)
{
    volatile uint32_t *pair = (volatile uint32_t *)s->screen_cells;

    for (int row = 0; row < (int)SCREEN_ROWS; row++) {
        const uint32_t *was = (const uint32_t *)line_at(s, row - 1);
        const uint32_t *is = (const uint32_t *)line_at(s, row);

        for (unsigned i = 0; i < SCREEN_COLS / 2; i++, pair++)
            if (is[i] != was[i])
                *pair = is[i];
    }
}

static void scroll(struct screen *s)
{
    s->screen_top = (s->screen_top + 1) % s->screen_size;
    if (s->screen_past < s->screen_size - SCREEN_ROWS)
        s->screen_past++;
    blank_line(s, SCREEN_ROWS - 1);
    show_scrolled(s);
}

static void new_line(struct screen *s)
{
    s->screen_col = 0;
    s->screen_wrap = false;
    if (s->screen_row + 1 < SCREEN_ROWS)
        s->screen_row++;
    else
        scroll(s);
}

static void screen_put(struct screen *s, char c)
{
    if (s->screen_wrap)
        new_line(s);
    set_cell(s, s->screen_row, s->screen_col,
             (uint16_t)(s->screen_attr << 8 | (uint8_t)c));
    if (s->screen_col + 1 < SCREEN_COLS)
        s->screen_col++;
    else
        s->screen_wrap = true;
}

static void move_to(struct screen *s, unsigned row, unsigned col)
{
    s->screen_row = MIN(row, SCREEN_ROWS - 1);
    s->screen_col = MIN(col, SCREEN_COLS - 1);
    s->screen_wrap = false;
}

static void text(struct screen *s, char c)
{
    switch (c) {
    case ESC:
        s->screen_state = ESCAPE;
        break;
    case '\n':
        new_line(s);
        break;
    case '\r':
        move_to(s, s->screen_row, 0);
        break;
    case '\b':
        move_to(s, s->screen_row, s->screen_col ? s->screen_col - 1 : 0);
        break;
    case '\t':
        move_to(s, s->screen_row, (s->screen_col / TAB + 1) * TAB);
        break;
    default:
        if (c >= ' ' && c != 127)
            screen_put(s, c);
        else if ((uint8_t)c >= 0xC0)
            screen_put(s, '?');
        break;
    }
}

/* SGR: ANSI orders colours red, green, blue from the lowest bit; the display
 * adapter has the reverse order. */
static void set_attr(struct screen *s, unsigned code)
{
    static const uint8_t colour[] = {0, 4, 2, 6, 1, 5, 3, 7};
    uint8_t a = s->screen_attr;

    if (code == 0)
        a = ATTR_NORMAL;
    else if (code == 7)
        a = (uint8_t)(a << 4 | a >> 4);
    else if (code >= 30 && code <= 37)
        a = (uint8_t)((a & 0xF0) | colour[code - 30]);
    s->screen_attr = a;
}

/* ED. Cleared text does not scroll back: the user asked to remove it. */
static void erase_screen(struct screen *s, bool whole)
{
    unsigned col = whole ? 0 : s->screen_col;

    for (unsigned row = whole ? 0 : s->screen_row; row < SCREEN_ROWS; row++) {
        screen_erase(s, row, col, SCREEN_COLS);
        col = 0;
    }
}

static void execute(struct screen *s, char final)
{
    unsigned p = s->screen_param[0];
    unsigned n = p ? p : 1;

    switch (final) {
    case 'C':
        move_to(s, s->screen_row, s->screen_col + n);
        break;
    case 'H':
        move_to(s, n - 1, s->screen_param[1] ? s->screen_param[1] - 1u : 0);
        break;
    case 'J':
        if (p == 0 || p == 2)
            erase_screen(s, p == 2);
        break;
    case 'K':
        if (p == 0)
            screen_erase(s, s->screen_row, s->screen_col, SCREEN_COLS);
        break;
    case 'm':
        for (unsigned i = 0; i <= s->screen_params; i++)
            set_attr(s, s->screen_param[i]);
        break;
    }
}

static void sequence(struct screen *s, char c)
{
    uint16_t *p = &s->screen_param[s->screen_params];

    if (c >= '0' && c <= '9') {
        *p = (uint16_t)MIN(*p * 10 + (c - '0'), 9999);
    } else if (c == ';') {
        if (s->screen_params + 1u < ARRAY_SIZE(s->screen_param))
            s->screen_params++;
    } else if (c >= '@' && c <= '~') {
        s->screen_state = TEXT;
        execute(s, c);
    } else if ((uint8_t)c < ' ') {
        s->screen_state = TEXT;
        text(s, c);
    }
}

void screen_write(struct screen *s, const char *chars, size_t n)
{
    screen_look(s, -(int)s->screen_view);
    for (size_t i = 0; i < n; i++) {
        char c = chars[i];

        if (s->screen_state == TEXT)
            text(s, c);
        else if (s->screen_state == SEQUENCE)
            sequence(s, c);
        else if (c == '[') {
            memset(s->screen_param, 0, sizeof(s->screen_param));
            s->screen_params = 0;
            s->screen_state = SEQUENCE;
        } else
            s->screen_state = TEXT;
    }
}

/* While the user looks back, the end of the last row says so. */
void screen_look(struct screen *s, int lines)
{
    volatile uint16_t *end = s->screen_cells + SCREEN_ROWS * SCREEN_COLS;
    int view = (int)s->screen_view + lines;
    char mark[24];
    int n = 0;

    view = MAX(view, 0);
    view = MIN(view, (int)s->screen_past);
    if ((unsigned)view == s->screen_view)
        return;
    s->screen_view = (unsigned)view;
    show_all(s);
    if (view > 0)
        n = snprintf(mark, sizeof(mark), " %d line%s back ", view,
                     view == 1 ? "" : "s");
    for (int i = 0; i < n; i++)
        end[i - n] = (uint16_t)(ATTR_REVERSED << 8 | mark[i]);
}

void screen_init(struct screen *s, volatile uint16_t *cells,
                 screen_line_t *lines, unsigned size)
{
    memset(s, 0, sizeof(*s));
    s->screen_cells = cells;
    s->screen_lines = lines;
    s->screen_size = size;
    s->screen_attr = ATTR_NORMAL;
    for (unsigned row = 0; row < SCREEN_ROWS; row++)
        blank_line(s, (int)row);
    show_all(s);
}
