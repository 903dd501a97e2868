/*
 * The line editor (kernel/lib/line.c), drawing on a screen in memory.
 */
#include "drivers/screen.h"
#include "kernel/lib/key.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/line.h"
#include "kernel/lib/string.h"

#define PROMPT "slate> "
#define PREFIX 7u /* its length */

static uint16_t cells[SCREEN_ROWS * SCREEN_COLS] __attribute__((aligned(4)));
static screen_line_t lines[SCREEN_ROWS + 1];
static struct screen screen;
static struct line line;

static void draw(const char *s, size_t n)
{
    screen_write(&screen, s, n);
}

static void words(const struct line *l, unsigned command, unsigned word,
                  line_add_t *add, void *arg)
{
    static const char *const commands[] = {"help", "history", "kmastat",
                                           "kmem"};
    static const char *const caches[] = {"kmem_slab", "kmem_bufctl", "task",
                                         "inode",     "kmem_bufctl", "inode"};
    /* The names of files may be like these. */
    static const char *const bad[] = {
        "bad;poweroff", "bad\rpoweroff\r", "bad\033[2J", "bad two",
        "bad\"",        "bad\177",         "bad|sh",     "bad\xe9"};

    while (l->line_text[command] == ' ')
        command++;
    for (unsigned i = 0; command == word && i < ARRAY_SIZE(commands); i++)
        add(commands[i], arg);
    if (command < word && strncmp(l->line_text + command, "kmem ", 5) == 0)
        for (unsigned i = 0; i < ARRAY_SIZE(caches); i++)
            add(caches[i], arg);
    for (unsigned i = 0; command < word && i < ARRAY_SIZE(bad); i++)
        add(bad[i], arg);
}

static void start(void)
{
    screen_init(&screen, cells, lines, SCREEN_ROWS + 1);
    memset(&line, 0, sizeof(line));
    line.line_write = draw;
    line.line_words = words;
    line_begin(&line, PROMPT);
}

static enum line_result type(const char *s)
{
    enum line_result result = LINE_MORE;

    for (; *s; s++)
        result = line_key(&line, (uint8_t)*s);
    return result;
}

/* Types a line and begins the next. */
static void enter(const char *s)
{
    type(s);
    line_key(&line, '\n');
    line_begin(&line, PROMPT);
}

/* The cursor must not hide the text that it is on. */
static void check_marks(const char *file, int at)
{
    bool more = line.line_len > line.line_left + LINE_COLUMNS - PREFIX;

    if (line.line_left > 0 && screen.screen_col == PREFIX)
        ktest_fail(file, at, "cursor on <");
    if (more && screen.screen_col == LINE_COLUMNS - 1)
        ktest_fail(file, at, "cursor on >");
}

/* The screen's row at the cursor must show prompt, text and cursor. */
static void check_screen(const char *file, int at)
{
    const uint16_t *row = cells + screen.screen_row * SCREEN_COLS;
    unsigned width = LINE_COLUMNS - PREFIX;
    unsigned left = line.line_left;

    for (unsigned col = 0; col < SCREEN_COLS; col++) {
        unsigned i = left + col - PREFIX;
        char want = ' ';

        if (col < PREFIX)
            want = PROMPT[col];
        else if (col == PREFIX && left > 0)
            want = '<';
        else if (col == LINE_COLUMNS - 1 && line.line_len > left + width)
            want = '>';
        else if (i < line.line_len && col < LINE_COLUMNS)
            want = line.line_text[i];
        if ((char)row[col] != want) {
            ktest_fail(file, at, "column %u shows '%c', want '%c'", col,
                       (char)row[col], want);
            return;
        }
    }
    if (screen.screen_col != PREFIX + line.line_pos - left)
        ktest_fail(file, at, "cursor in column %u, want %u", screen.screen_col,
                   PREFIX + line.line_pos - left);
    check_marks(file, at);
}

static void expect(const char *text, unsigned pos, int at)
{
    if (strcmp(line.line_text, text) != 0 || line.line_pos != pos)
        ktest_fail(__FILE__, at, "\"%s\" at %u, want \"%s\" at %u",
                   line.line_text, line.line_pos, text, pos);
    if (line.line_len != strlen(line.line_text))
        ktest_fail(__FILE__, at, "length %u", line.line_len);
    check_screen(__FILE__, at);
}

#define EXPECT(text, pos) expect(text, pos, __LINE__)

KTEST(line, typing_and_entering)
{
    start();
    type("echo hi");
    EXPECT("echo hi", 7);
    KT_EQ(line_key(&line, '\n'), LINE_DONE);
    KT_EQ(strcmp(line.line_text, "echo hi"), 0);
    KT_EQ(screen.screen_row, 1);
    KT_EQ(screen.screen_col, 0);
}

KTEST(line, insert_in_the_middle)
{
    start();
    type("ac");
    line_key(&line, KEY_LEFT);
    EXPECT("ac", 1);
    type("b");
    EXPECT("abc", 2);
    line_key(&line, KEY_RIGHT);
    line_key(&line, KEY_RIGHT); /* no further */
    EXPECT("abc", 3);
    line_key(&line, KEY_HOME);
    line_key(&line, KEY_LEFT);
    EXPECT("abc", 0);
    type(">");
    EXPECT(">abc", 1);
    line_key(&line, KEY_END);
    EXPECT(">abc", 4);
    line_key(&line, CTRL('A'));
    EXPECT(">abc", 0);
    line_key(&line, CTRL('E'));
    EXPECT(">abc", 4);
}

KTEST(line, delete)
{
    start();
    type("\babcd\b");
    EXPECT("abc", 3);
    line_key(&line, KEY_DELETE);
    EXPECT("abc", 3);
    line_key(&line, KEY_LEFT);
    line_key(&line, '\b');
    EXPECT("ac", 1);
    line_key(&line, KEY_DELETE);
    EXPECT("a", 1);
    line_key(&line, CTRL('A'));
    line_key(&line, '\b');
    line_key(&line, CTRL('D'));
    EXPECT("", 0);
    KT_EQ(line_key(&line, CTRL('D')), LINE_EOF); /* on an empty line */
    EXPECT("", 0);
    type("x"); /* and it can go on */
    KT_EQ(line_key(&line, CTRL('D')), LINE_MORE);
    EXPECT("x", 1);
}

/* Programs get keys without a character as these, one byte each. */
KTEST(line, control_characters)
{
    start();
    enter("one");
    enter("two");
    line_key(&line, CTRL('P'));
    line_key(&line, CTRL('P'));
    EXPECT("one", 3);
    line_key(&line, CTRL('N'));
    EXPECT("two", 3);
    line_key(&line, CTRL('B'));
    line_key(&line, CTRL('B'));
    EXPECT("two", 1);
    line_key(&line, CTRL('F'));
    EXPECT("two", 2);
    line_key(&line, CTRL('D'));
    EXPECT("tw", 2);
}

KTEST(line, kill)
{
    start();
    type("one two  three");
    line_key(&line, CTRL('W'));
    EXPECT("one two  ", 9);
    line_key(&line, CTRL('W'));
    EXPECT("one ", 4);
    line_key(&line, CTRL('A'));
    line_key(&line, CTRL('W'));
    line_key(&line, KEY_RIGHT);
    line_key(&line, CTRL('K'));
    EXPECT("o", 1);
    type("ther");
    line_key(&line, KEY_LEFT);
    line_key(&line, CTRL('U'));
    EXPECT("r", 0);
}

KTEST(line, cancel_and_clear)
{
    start();
    type("abc");
    line_key(&line, CTRL('L'));
    EXPECT("abc", 3);
    KT_EQ(screen.screen_row, 0);
    KT_EQ(line_key(&line, CTRL('C')), LINE_CANCELLED);
    line_begin(&line, PROMPT);
    EXPECT("", 0);
    line_key(&line, KEY_UP); /* not remembered */
    EXPECT("", 0);
}

KTEST(line, keys_without_meaning)
{
    start();
    type("ab");
    for (int key = KEY_PAGE_UP; key <= KEY_PAGE_DOWN + 20; key++)
        line_key(&line, key);
    line_key(&line, KEY_NONE);
    line_key(&line, 0);
    line_key(&line, 27);
    line_key(&line, 0xE9);
    line_key(&line, 0x7FFFFFFF);
    EXPECT("ab", 2);
}

KTEST(line, wide_lines_use_one_row)
{
    start();
    for (unsigned i = 0; i < LINE_MAX; i++) {
        line_key(&line, 'a' + (int)(i % 26));
        check_screen(__FILE__, __LINE__);
    }
    KT_EQ(screen.screen_row, 0);
    KT_EQ(line.line_len, LINE_MAX);
    for (unsigned i = 0; i < LINE_MAX; i++) {
        line_key(&line, KEY_LEFT);
        check_screen(__FILE__, __LINE__);
    }
    KT_EQ(line.line_pos, 0);
    for (unsigned i = 0; i < LINE_MAX; i++) {
        line_key(&line, KEY_RIGHT);
        check_screen(__FILE__, __LINE__);
    }
    KT_EQ(line.line_pos, LINE_MAX);
}

KTEST(line, wide_lines_can_be_edited_anywhere)
{
    static const int16_t keys[] = {KEY_LEFT, KEY_LEFT,  KEY_LEFT,   KEY_RIGHT,
                                   KEY_LEFT, KEY_RIGHT, KEY_RIGHT,  KEY_HOME,
                                   KEY_END,  '\b',      KEY_DELETE, 'x',
                                   'y',      'z',       CTRL('W'),  '\t'};
    uint32_t seed = 3;

    start();
    for (unsigned i = 0; i < 5000; i++) {
        seed = seed * 1664525u + 1013904223u;
        while (line.line_len < LINE_COLUMNS - PREFIX - 2)
            line_key(&line, 'a' + (int)(line.line_len % 26));
        line_key(&line, keys[(seed >> 24) % ARRAY_SIZE(keys)]);
        check_screen(__FILE__, __LINE__);
    }
}

KTEST(line, too_long_is_refused)
{
    start();
    for (unsigned i = 0; i < LINE_MAX + 1; i++)
        type("x");
    KT_EQ(line_key(&line, '\n'), LINE_TOO_LONG);
    line_begin(&line, PROMPT);
    for (unsigned i = 0; i < LINE_MAX; i++)
        type("x");
    KT_EQ(line_key(&line, '\n'), LINE_DONE);
    line_begin(&line, PROMPT);
    line_key(&line, KEY_UP);
    type("y");
    line_key(&line, CTRL('K')); /* changes nothing */
    KT_EQ(line_key(&line, '\n'), LINE_TOO_LONG);
    line_begin(&line, PROMPT);
    line_key(&line, KEY_UP);
    type("y\b"); /* a change after the loss: the user has seen it */
    KT_EQ(line.line_len, LINE_MAX - 1);
    KT_EQ(line_key(&line, '\n'), LINE_DONE);
}

KTEST(line, history)
{
    start();
    enter("one");
    enter("two");
    enter("two"); /* the same again, and blank lines, are not kept */
    enter("");
    enter("  ");
    type("new");
    line_key(&line, KEY_UP);
    EXPECT("two", 3);
    line_key(&line, CTRL('P'));
    EXPECT("one", 3);
    line_key(&line, KEY_UP); /* no further */
    EXPECT("one", 3);
    line_key(&line, KEY_DOWN);
    EXPECT("two", 3);
    line_key(&line, CTRL('N'));
    EXPECT("new", 3); /* what was being typed is back */
    line_key(&line, KEY_DOWN);
    EXPECT("new", 3);
}

KTEST(line, history_forgets_the_oldest)
{
    char text[3] = "00";

    start();
    for (unsigned i = 0; i < LINE_HISTORY + 5; i++) {
        text[0] = (char)('0' + i / 10);
        text[1] = (char)('0' + i % 10);
        enter(text);
    }
    for (unsigned i = 0; i < LINE_HISTORY + 5; i++)
        line_key(&line, KEY_UP);
    EXPECT("05", 2);
    KT_EQ(strcmp(line_remembered(&line, 0), "05"), 0);
    KT_EQ(strcmp(line_remembered(&line, LINE_HISTORY - 1), "36"), 0);
    KT_TRUE(line_remembered(&line, LINE_HISTORY) == NULL);
}

KTEST(line, completes_commands)
{
    start();
    type("he\t");
    EXPECT("help ", 5);
    start();
    type("k\t");
    EXPECT("km", 2); /* as far as they agree */
    type("\t");      /* a list of them */
    EXPECT("km", 2);
    KT_EQ(screen.screen_row, 2);
    KT_EQ(cells[SCREEN_COLS] & 0xFF, 'k');
    start();
    type("zz\t");
    EXPECT("zz", 2);
    start();
    type("help; his\t");
    EXPECT("help; history ", 14);
}

KTEST(line, completes_arguments)
{
    start();
    type("kmem t\t");
    EXPECT("kmem task ", 10);
    start();
    type("kmem km\t");
    EXPECT("kmem kmem_", 10);
    type("s\t");
    EXPECT("kmem kmem_slab ", 15);
    start();
    type("help t\t"); /* takes no caches */
    EXPECT("help t", 6);
    start();
    type("kmem x; kmem ta\t");
    EXPECT("kmem x; kmem task ", 18);
    start();
    type("kmem 't\t"); /* not inside quotes */
    EXPECT("kmem 't", 7);
}

/* Its words come in no order, and some twice. */
KTEST(line, lists_words_sorted_and_once)
{
    start();
    type("kmem \t");
    EXPECT("kmem ", 5);
    KT_EQ(screen.screen_row, 2);
    for (unsigned i = 0; i < 4; i++) {
        static const char *const words_sorted[] = {"inode", "kmem_bufctl",
                                                   "kmem_slab", "task"};
        const uint16_t *at = &cells[SCREEN_COLS + i * 13];

        for (unsigned k = 0; words_sorted[i][k]; k++)
            KT_EQ(at[k] & 0xFF, words_sorted[i][k]);
    }
    KT_EQ(cells[SCREEN_COLS + 52] & 0xFF, ' ');
    start();
    type("kmem i\t");
    EXPECT("kmem inode ", 11); /* the only one, though it came twice */
}

/* Such a name would run commands, or draw on the terminal. */
KTEST(line, offers_plain_names_only)
{
    start();
    type("cat ba\t\t");
    EXPECT("cat ba", 6);
    KT_EQ(screen.screen_row, 0); /* nothing is listed */
}

KTEST(line, completes_in_the_middle)
{
    start();
    type("he x");
    line_key(&line, KEY_LEFT);
    line_key(&line, KEY_LEFT);
    type("\t");
    EXPECT("help x", 4);
}

KTEST(line, any_keys_keep_it_whole)
{
    static const int16_t often[] = {KEY_LEFT, KEY_RIGHT, KEY_HOME,   KEY_END,
                                    KEY_UP,   KEY_DOWN,  KEY_DELETE, '\b',
                                    '\t',     'k',       'm',        ' '};
    uint32_t seed = 42;

    start();
    for (unsigned i = 0; i < 20000; i++) {
        int key;

        seed = seed * 1664525u + 1013904223u;
        key = (int)(seed >> 24);
        if (seed >> 16 & 1)
            key = often[(seed >> 24) % ARRAY_SIZE(often)];
        if (line_key(&line, key) != LINE_MORE)
            line_begin(&line, PROMPT);
        KT_REQUIRE(line.line_len <= LINE_MAX);
        KT_REQUIRE(line.line_pos <= line.line_len);
        KT_REQUIRE(strlen(line.line_text) == line.line_len);
        if (i % 16 == 0)
            check_screen(__FILE__, __LINE__);
    }
}
