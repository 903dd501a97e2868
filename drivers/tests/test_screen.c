/*
 * The text screen (drivers/screen.c) on ordinary memory.
 */
#include "drivers/screen.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

#define LINES 40u /* the screen, and 15 to look back at */

static uint16_t cells[SCREEN_ROWS * SCREEN_COLS] __attribute__((aligned(4)));
static screen_line_t lines[LINES];
static struct screen screen;

static void start(void)
{
    memset(cells, 0xFF, sizeof(cells));
    memset(lines, 0xFF, sizeof(lines));
    screen_init(&screen, cells, lines, LINES);
}

static void write(const char *s)
{
    screen_write(&screen, s, strlen(s));
}

static uint8_t attr(unsigned row, unsigned col)
{
    return (uint8_t)(cells[row * SCREEN_COLS + col] >> 8);
}

/* Row `row` must hold `want` followed by blanks. */
static void expect_row(unsigned row, const char *want, int line)
{
    char got[SCREEN_COLS + 1];
    size_t len = strlen(want);

    for (unsigned col = 0; col < SCREEN_COLS; col++)
        got[col] = (char)cells[row * SCREEN_COLS + col];
    got[SCREEN_COLS] = 0;
    for (size_t col = SCREEN_COLS; col > len && got[col - 1] == ' '; col--)
        got[col - 1] = 0;
    if (strcmp(got, want) != 0)
        ktest_fail(__FILE__, line, "row %u: \"%s\", want \"%s\"", row, got,
                   want);
}

static void expect_cursor(unsigned row, unsigned col, int line)
{
    if (screen.screen_row != row || screen.screen_col != col)
        ktest_fail(__FILE__, line, "cursor at %u, %u, want %u, %u",
                   screen.screen_row, screen.screen_col, row, col);
}

/* The last row must end with the mark, " 4 lines back ". */
static void expect_marked(const char *want, const char *mark, int line)
{
    char text[SCREEN_COLS + 1];
    size_t start = SCREEN_COLS - strlen(mark);

    snprintf(text, sizeof(text), "%-*s%.*s", (int)start, want,
             (int)strlen(mark) - 1, mark);
    expect_row(SCREEN_ROWS - 1, text, line);
    for (size_t col = start; col < SCREEN_COLS; col++)
        KT_EQ(attr(SCREEN_ROWS - 1, (unsigned)col), 0x70);
}

#define MARKED(want, mark) expect_marked(want, mark, __LINE__)
#define ROW(row, want)     expect_row(row, want, __LINE__)
#define CURSOR(row, col)   expect_cursor(row, col, __LINE__)

static void write_numbers(unsigned from, unsigned to)
{
    for (unsigned i = from; i <= to; i++) {
        char text[4] = {(char)('0' + i / 10), (char)('0' + i % 10), '\n', 0};

        write(text);
    }
}

KTEST(screen, starts_blank)
{
    start();
    for (unsigned row = 0; row < SCREEN_ROWS; row++)
        ROW(row, "");
    KT_EQ(attr(24, 79), 7);
    CURSOR(0, 0);
}

KTEST(screen, text_and_movement)
{
    start();
    write("one\ntwo\rT\b\b\bt\tx");
    ROW(0, "one");
    ROW(1, "two     x");
    CURSOR(1, 9);
    write("\a\001\177"); /* nothing to see */
    ROW(1, "two     x");
    CURSOR(1, 9);
}

KTEST(screen, wraps_when_the_next_character_comes)
{
    start();
    for (unsigned i = 0; i < SCREEN_COLS; i++)
        write("x");
    CURSOR(0, 79);
    write("\n");
    CURSOR(1, 0); /* no empty line between */
    write("\033[H\033[79Cab");
    KT_EQ(cells[79] & 0xFF, 'a');
    ROW(1, "b");
    write("\033[H\033[79Ca\bb"); /* moving away forgets the wrap */
    KT_EQ(cells[78] & 0xFF, 'b');
    KT_EQ(cells[79] & 0xFF, 'a');
}

KTEST(screen, shows_ascii_only)
{
    start();
    write("a\xc3\xa4"         /* U+00E4 */
          "b\xe2\x80\xa6"     /* U+2026 */
          "c\xf0\x9f\x98\x80" /* U+1F600 */
          "d\x80\n");
    ROW(0, "a?b?c?d");
    CURSOR(1, 0);
    for (unsigned c = 0x80; c < 0x100; c++)
        write((const char[]){(char)c, 0});
    for (unsigned i = 0; i < SCREEN_ROWS * SCREEN_COLS; i++)
        KT_TRUE((cells[i] & 0xFF) < 0x7F);
}

KTEST(screen, tab_stops_at_the_edge)
{
    start();
    for (unsigned i = 0; i < 12; i++)
        write("\t");
    CURSOR(0, 79);
}

KTEST(screen, scrolls)
{
    start();
    write_numbers(1, 30);
    ROW(0, "07");
    ROW(23, "30");
    ROW(24, "");
    CURSOR(24, 0);
    write("end");
    ROW(24, "end");
}

KTEST(screen, looks_back_and_returns)
{
    start();
    write_numbers(1, 30);
    screen_look(&screen, 4);
    ROW(0, "03");
    MARKED("27", " 4 lines back ");
    screen_look(&screen, 100); /* six lines are all there is */
    ROW(0, "01");
    MARKED("25", " 6 lines back ");
    screen_look(&screen, -5);
    ROW(0, "06");
    MARKED("30", " 1 line back ");
    screen_look(&screen, -100);
    ROW(0, "07");
    ROW(24, "");
    screen_look(&screen, 3);
    write("x");
    ROW(0, "07");
    ROW(24, "x");
}

KTEST(screen, keeps_as_much_as_the_ring_holds)
{
    start();
    write_numbers(1, 90);
    screen_look(&screen, 1000);
    ROW(0, "52"); /* 90 - 24 on screen - 15 kept + 1 */
    screen_look(&screen, -1000);
    ROW(0, "67");
    ROW(23, "90");
}

KTEST(screen, erases)
{
    start();
    write("abcdef\b\b\b\033[K");
    ROW(0, "abc");
    write("def\b\b\b\033[1K\033[2K\033[1J"); /* ignored */
    ROW(0, "abcdef");
    write("\rone\033[K\ntwo\nthree\033[2;2H\033[J");
    ROW(0, "one");
    ROW(1, "t");
    ROW(2, "");
    CURSOR(1, 1);
    write("\033[2J");
    ROW(0, "");
    CURSOR(1, 1);
}

KTEST(screen, moves_stay_inside)
{
    start();
    write("\033[999;999H");
    CURSOR(24, 79);
    write("\033[H");
    CURSOR(0, 0);
    write("\033[2H\033[C");
    CURSOR(1, 1);
    write("\033[99C");
    CURSOR(1, 79);
    write("\033[3H");
    CURSOR(2, 0);
}

KTEST(screen, colours)
{
    start();
    write("a\033[31mb\033[33mc\033[7md\033[0me\033[7;32mf\033[0;36mg\033[mh");
    KT_EQ(attr(0, 0), 0x07);
    KT_EQ(attr(0, 1), 0x04); /* red is 4 here */
    KT_EQ(attr(0, 2), 0x06);
    KT_EQ(attr(0, 3), 0x60);
    KT_EQ(attr(0, 4), 0x07);
    KT_EQ(attr(0, 5), 0x72);
    KT_EQ(attr(0, 6), 0x03);
    KT_EQ(attr(0, 7), 0x07);
    ROW(0, "abcdefgh");
}

KTEST(screen, ignores_unknown_sequences)
{
    start();
    write("a\033[?25lb\033[5;6;7;8;9;10rc\033[99999999999Zd\033)e\033[38m"
          "\033[?1049hf");
    ROW(0, "abcdef");
    write("\033[12\ng"); /* a control character ends the sequence */
    ROW(1, "g");
}

/* The screen must always show the ring's last lines. */
KTEST(screen, any_bytes_keep_cells_and_ring_alike)
{
    uint32_t seed = 11;

    start();
    for (unsigned i = 0; i < 20000; i++) {
        static const char often[] = "\033[?;0123456789ABCDHJKmhl\n\r\b\tx";
        char c;

        seed = seed * 1664525u + 1013904223u;
        c = (char)(seed >> 24);
        if (seed >> 16 & 1)
            c = often[(seed >> 24) % (sizeof(often) - 1)];
        screen_write(&screen, &c, 1);
        KT_REQUIRE(screen.screen_row < SCREEN_ROWS);
        KT_REQUIRE(screen.screen_col < SCREEN_COLS);
        KT_REQUIRE(screen.screen_past <= LINES - SCREEN_ROWS);
        if (i % 64 == 0)
            screen_look(&screen, (int)(seed >> 20 & 31) - 16);
    }
    screen_look(&screen, -1000);
    for (unsigned row = 0; row < SCREEN_ROWS; row++)
        KT_TRUE(memcmp(cells + row * SCREEN_COLS,
                       lines[(screen.screen_top + row) % LINES],
                       sizeof(screen_line_t)) == 0);
}
