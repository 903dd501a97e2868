/*
 * The console for programs: typed input as a state machine (tty_line.c), and
 * the foreground group (tty.c).
 *
 * Tests: kernel/fs/tty.c, kernel/fs/tty_line.c
 */
#include "drivers/console.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/tty.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"

static char screen[2 * TTY_LINE_MAX];
static size_t columns;

static void echo(const char *s, size_t n)
{
    for (size_t i = 0; i < n && columns < sizeof(screen) - 1; i++)
        screen[columns++] = s[i];
    screen[columns] = '\0';
}

static struct tty_line line;

static void begin(bool raw)
{
    line = (struct tty_line){.tty_echo = echo, .tty_raw = raw};
    columns = 0;
    screen[0] = '\0';
}

static void type(const char *keys)
{
    for (; *keys != '\0'; keys++)
        tty_line_key(&line, (uint8_t)*keys);
}

/* The bytes that a reader with room for `n` gets. */
static const char *taken(size_t n)
{
    static char text[TTY_LINE_MAX + 1];
    ssize_t got = tty_line_take(&line, text, n);

    text[got < 0 ? 0 : got] = '\0';
    return text;
}

#define KT_TAKEN(n, want)                                                      \
    do {                                                                       \
        const char *kt_got = taken(n);                                         \
        if (strcmp(kt_got, want) != 0)                                         \
            KT_FAIL("got \"%s\", want \"%s\"", kt_got, want);                  \
    } while (0)

KTEST(tty, a_line_is_whole_and_can_be_read_in_pieces)
{
    begin(false);
    type("hello");
    KT_TRUE(!line.tty_done);
    type("\n");
    KT_TRUE(line.tty_done);
    KT_TAKEN(2, "he");
    KT_TRUE(line.tty_done);
    KT_TAKEN(100, "llo\n");
    KT_TRUE(!line.tty_done);
    KT_TRUE(strcmp(screen, "hello\n") == 0);
    type("x\n");
    KT_TAKEN(100, "x\n");
}

KTEST(tty, editing)
{
    begin(false);
    type("ab\bc\n");
    KT_TAKEN(100, "ac\n");
    KT_TRUE(strcmp(screen, "ab\b \bc\n") == 0);
    begin(false);
    type("\b\bone two  \x17three\n");
    KT_TAKEN(100, "one three\n");
    type("one two\x15three\n");
    KT_TAKEN(100, "three\n");
    type("\x17\x15\b\n");
    KT_TAKEN(100, "\n");
}

KTEST(tty, end_of_file)
{
    begin(false);
    type("\x04");
    KT_TRUE(line.tty_done);
    KT_TAKEN(100, "");
    KT_TRUE(!line.tty_done);
    type("abc\x04");
    KT_TRUE(line.tty_done);
    KT_TAKEN(100, "abc");
    KT_TRUE(!line.tty_done);
}

KTEST(tty, interrupt_key_begins_the_line_anew)
{
    begin(false);
    type("rm -r \x03ls\n");
    KT_TAKEN(100, "ls\n");
    KT_TRUE(strcmp(screen, "rm -r ^C\nls\n") == 0);
}

KTEST(tty, keys_without_a_character_are_ignored)
{
    static const int keys[] = {KEY_UP,        KEY_DOWN, KEY_LEFT,   KEY_RIGHT,
                               KEY_HOME,      KEY_END,  KEY_DELETE, KEY_PAGE_UP,
                               KEY_PAGE_DOWN, 1,        0x1b,       0x7f};

    begin(false);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        tty_line_key(&line, keys[i]);
    KT_EQ(line.tty_len, 0);
    KT_EQ(columns, 0);
}

KTEST(tty, a_tab_takes_one_column)
{
    begin(false);
    type("a\tb\b\b\n");
    KT_TAKEN(100, "a\n");
    KT_TRUE(strcmp(screen, "a b\b \b\b \b\n") == 0);
}

KTEST(tty, a_full_line_can_still_be_ended)
{
    begin(false);
    for (int i = 0; i < TTY_LINE_MAX + 10; i++)
        tty_line_key(&line, 'x');
    KT_EQ(line.tty_len, TTY_LINE_MAX - 1);
    KT_EQ(screen[columns - 1], '\a');
    tty_line_key(&line, '\n');
    KT_TRUE(line.tty_done);
    KT_EQ(line.tty_len, TTY_LINE_MAX);
    KT_EQ(strlen(taken(TTY_LINE_MAX)), TTY_LINE_MAX);
}

KTEST(tty, raw_gives_each_key)
{
    static const struct {
        int key;
        char want;
    } keys[] = {{'a', 'a'},
                {'\n', '\n'},
                {'\b', '\b'},
                {3, 3},
                {4, 4},
                {KEY_UP, CTRL('P')},
                {KEY_DOWN, CTRL('N')},
                {KEY_LEFT, CTRL('B')},
                {KEY_RIGHT, CTRL('F')},
                {KEY_HOME, CTRL('A')},
                {KEY_END, CTRL('E')},
                {KEY_DELETE, CTRL('D')},
                {0xe4, (char)0xe4}};

    begin(true);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        tty_line_key(&line, keys[i].key);
        KT_TRUE(line.tty_done);
        KT_EQ(taken(100)[0], keys[i].want);
    }
    KT_EQ(columns, 0);
    tty_line_key(&line, KEY_PAGE_UP);
    tty_line_key(&line, KEY_PAGE_DOWN);
    KT_TRUE(!line.tty_done);
}

KTEST(tty, clear_keeps_a_finished_line)
{
    begin(false);
    type("abc");
    tty_line_clear(&line);
    KT_EQ(line.tty_len, 0);
    type("abc\n");
    tty_line_clear(&line);
    KT_TAKEN(100, "abc\n");
}

/* ---- the device --------------------------------------------------------- */

#define SAID "# written by way of the console\n" /* for KTAP a comment */

static struct file *console;
static ssize_t written;

static void say(void *arg)
{
    (void)arg;
    written = file_write(console, SAID, strlen(SAID));
}

static uint8_t state_of(pid_t pid)
{
    uint8_t state = TASK_ZOMBIE;
    struct task *t;

    spin_lock(&sched_lock);
    t = task_find(pid);
    if (t != NULL)
        state = t->task_state;
    spin_unlock(&sched_lock);
    return state;
}

KTEST(tty, writers_wait_until_the_console_is_theirs)
{
    struct task *t;
    pid_t pid;
    int status = -1;

    console = file_create(&tty_ops, O_RDWR, NULL, NULL);
    KT_REQUIRE(console != NULL);
    written = 0;
    t = task_create("say", say, NULL, PRIORITY_KERNEL);
    if (t != NULL) {
        pid = t->task_pid;
        sched_yield();
        KT_EQ(state_of(pid), TASK_BLOCKED);
        KT_EQ(written, 0);
        KT_EQ(tty_foreground(pid, &status), 0);
        KT_EQ(status, 0);
        KT_EQ(written, strlen(SAID));
    }
    KT_TRUE(t != NULL);
    object_put(&console->file_object);
    KT_EQ(tty_foreground(INT32_MAX, &status), -ECHILD);
}

/* As the console calls it when a key arrives. */
static bool arrives(int key)
{
    bool acted;

    spin_lock(&console_lock);
    acted = tty_signal_key(key);
    spin_unlock(&console_lock);
    return acted;
}

/* Ctrl-\ comes while a program that does not end is in the foreground. */
static void press(void *arg)
{
    (void)arg;
    KT_TRUE(arrives(CTRL('\\')));
    KT_TRUE(!arrives(CTRL('\\')));
    KT_TRUE(!arrives(CTRL('C')));
}

static struct wait_queue asleep = WAIT_QUEUE_INIT(asleep, "test");

static void sleep(void *arg)
{
    (void)arg;
    spin_lock(&sched_lock);
    wait_queue_block(&asleep, false, 0);
    spin_unlock(&sched_lock);
}

KTEST(tty, signal_key_returns_the_console)
{
    struct task *t = task_create("asleep", sleep, NULL, PRIORITY_KERNEL);
    struct task *presser;
    pid_t pid;
    int status = -1;

    KT_REQUIRE(t != NULL);
    pid = t->task_pid;
    KT_TRUE(!arrives(CTRL('\\')));
    presser = task_create("press", press, NULL, PRIORITY_KERNEL);
    KT_TRUE(presser != NULL);
    if (presser != NULL)
        KT_EQ(tty_foreground(pid, &status), -EINTR);
    else
        sched_yield(); /* until it sleeps */
    wait_queue_wake(&asleep);
    KT_EQ(tty_continue(pid, &status), 0);
    KT_EQ(status, 0);
    if (presser != NULL)
        KT_TRUE(task_wait(-1, &status, 0) > 0);
}

KTEST(tty, modes_and_groups)
{
    KT_EQ(tty_set_mode(TTY_RAW), TTY_COOKED);
    KT_EQ(tty_set_mode(2), -EINVAL);
    KT_EQ(tty_set_mode(-1), -EINVAL);
    KT_EQ(tty_set_mode(TTY_COOKED), TTY_RAW);
    KT_EQ(tty_set_group(-1), -EINVAL);
    KT_EQ(tty_set_group(INT32_MAX), -ESRCH);
    KT_EQ(tty_set_group(0), 0);
}
