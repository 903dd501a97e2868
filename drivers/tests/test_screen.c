/*
 * The text screen (drivers/screen.c) on ordinary memory.
 */
#include "drivers/screen.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

#define LINES 40u                     /* the screen, and 15 to look back at */
#define MANY  (2 * SCREEN_ROWS + 10u) /* a second screen, and 10 */

static uint16_t cells[SCREEN_ROWS * SCREEN_COLS] __attribute__((aligned(4)));
static screen_line_t lines[MANY];
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
    write("\033[A\033[79Cab");
    KT_EQ(cells[79] & 0xFF, 'a');
    ROW(1, "b");
    write("\033[H\033[79Ca\bb"); /* moving away forgets the wrap */
    KT_EQ(cells[78] & 0xFF, 'b');
    KT_EQ(cells[79] & 0xFF, 'a');
}

/* Writes `n` times the same character. */
static void fill(char c, unsigned n)
{
    while (n--)
        screen_write(&screen, &c, 1);
}

KTEST(screen, moves_a_word_that_does_not_fit)
{
    start();
    fill('x', 75);
    write(" broken over");
    CURSOR(1, 11);
    ROW(1, "broken over");
    KT_EQ(cells[74] & 0xFF, 'x');
    KT_EQ(cells[75] & 0xFF, ' ');
    KT_EQ(cells[79] & 0xFF, ' ');
}

KTEST(screen, cuts_only_what_is_longer_than_a_line)
{
    start();
    fill('x', 81);
    KT_EQ(cells[79] & 0xFF, 'x');
    ROW(1, "x");
    write("\033[H\033[2J");
    fill('y', 80);
    write(" next"); /* the blank at the edge is not shown */
    KT_EQ(cells[79] & 0xFF, 'y');
    ROW(1, "next");
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
    write("abcdef\033[3D\033[K");
    ROW(0, "abc");
    write("def\033[3D\033[1K");
    ROW(0, "    ef");
    write("\033[2K");
    ROW(0, "");
    write("\rone\ntwo\nthree\033[2;2H\033[J");
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
    write("\033[5A\033[7D");
    CURSOR(19, 72);
    write("\033[99A\033[99D");
    CURSOR(0, 0);
    write("\033[B\033[C");
    CURSOR(1, 1);
    write("\033[99B\033[99C");
    CURSOR(24, 79);
    write("\033[3H");
    CURSOR(2, 0);
}

KTEST(screen, colours)
{
    start();
    write("a\033[31mb\033[1mc\033[44md\033[0me\033[1;33;42mf\033[7mg\033[mh");
    KT_EQ(attr(0, 0), 0x07);
    KT_EQ(attr(0, 1), 0x04); /* red is 4 here */
    KT_EQ(attr(0, 2), 0x0C);
    KT_EQ(attr(0, 3), 0x1C);
    KT_EQ(attr(0, 4), 0x07);
    KT_EQ(attr(0, 5), 0x2E);
    KT_EQ(attr(0, 6), 0x6A);
    KT_EQ(attr(0, 7), 0x07);
    ROW(0, "abcdefgh");
}

KTEST(screen, ignores_unknown_sequences)
{
    start();
    write("a\033[?25lb\033[5;6;7;8;9;10rc\033[99999999999Zd\033)e\033[38mf");
    ROW(0, "abcdef");
    write("\033[12\ng"); /* a control character ends the sequence */
    ROW(1, "g");
}

static void start_with_room(void)
{
    screen_init(&screen, cells, lines, MANY);
}

KTEST(screen, the_second_leaves_the_first_as_it_was)
{
    start_with_room();
    write_numbers(0, 30);
    write("abc");
    write("\033[?1049h");
    ROW(0, "");
    ROW(24, "");
    CURSOR(0, 0);
    write("\033[12;5Hsecond\033[?1049h");
    ROW(11, "    second"); /* there is only one second screen */
    screen_look(&screen, (int)SCREEN_ROWS);
    ROW(0, "07"); /* looking back shows the first */
    MARKED("abc", " 25 lines back ");
    write("\033[?1049l");
    ROW(0, "07");
    ROW(23, "30");
    ROW(24, "abc");
    CURSOR(24, 3);
    screen_look(&screen, 1000);
    ROW(0, "00");
    screen_look(&screen, -1000);
    write("\033[?1049l\nd"); /* not in it: nothing happens */
    ROW(24, "d");
}

KTEST(screen, the_second_moves_no_word)
{
    start_with_room();
    write("\033[?1049h");
    fill('x', 75);
    write(" broken");
    ROW(1, "en");
}

KTEST(screen, the_second_may_scroll_as_far_as_the_ring_goes)
{
    start_with_room();
    write_numbers(0, 30);
    write("\033[?1049h");
    write_numbers(40, 40 + 33); /* scrolls by 10 */
    write("x\033[?1049l");
    ROW(0, "07");
    ROW(23, "30");
    screen_look(&screen, 1000);
    ROW(0, "07"); /* earlier lines are lost */
    write("\033[?1049h");
    write_numbers(40, 40 + 34); /* loses a line of the first, too */
    write("x\033[?1049l");
    ROW(0, "51");
    ROW(24, "x");
    CURSOR(24, 1);
}

KTEST(screen, a_ring_without_room_has_no_second)
{
    start();
    write("abc\033[?1049hd\033[?1049le");
    ROW(0, "abcde");
}

KTEST(screen, the_cursor_is_hidden_and_shown)
{
    start();
    KT_TRUE(!screen.screen_hidden);
    write("\033[?25l");
    KT_TRUE(screen.screen_hidden);
    write("\033[25h"); /* without `?` it is another mode */
    KT_TRUE(screen.screen_hidden);
    write("\033[?25h");
    KT_TRUE(!screen.screen_hidden);
    ROW(0, "");
}

/* The screen must always show the ring's last lines. */
static void any_bytes(const screen_line_t *ring, unsigned size)
{
    static const char *const whole[] = {"\033[?1049h", "\033[?1049l"};
    uint32_t seed = 11;

    for (unsigned i = 0; i < 20000; i++) {
        static const char often[] = "\033[?;0123456789ABCDHJKmhl\n\r\b\tx";
        char c;

        seed = seed * 1664525u + 1013904223u;
        c = (char)(seed >> 24);
        if (seed >> 16 & 1)
            c = often[(seed >> 24) % (sizeof(often) - 1)];
        screen_write(&screen, &c, 1);
        if (i % 512 == 0)
            write(whole[seed >> 30 & 1]);
        KT_REQUIRE(screen.screen_row < SCREEN_ROWS);
        KT_REQUIRE(screen.screen_col < SCREEN_COLS);
        KT_REQUIRE(screen.screen_past <= size - SCREEN_ROWS);
        if (i % 64 == 0)
            screen_look(&screen, (int)(seed >> 20 & 31) - 16);
    }
    screen_look(&screen, -1000);
    for (unsigned row = 0; row < SCREEN_ROWS; row++)
        KT_TRUE(memcmp(cells + row * SCREEN_COLS,
                       ring[(screen.screen_top + row) % size],
                       sizeof(screen_line_t)) == 0);
}

KTEST(screen, any_bytes_keep_cells_and_ring_alike)
{
    start();
    any_bytes(lines, LINES);
    start_with_room();
    any_bytes(lines, MANY);
}
