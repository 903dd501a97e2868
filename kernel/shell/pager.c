/*
 * A screenful at a time: see pager.h.
 */
#include "kernel/shell/pager.h"
#include "drivers/console.h"
#include "drivers/screen.h"
#include "kernel/lib/string.h"
#include "kernel/task/task.h"
#include "kernel/x86/cpu.h"

#define ESCAPE '\033'
#define LINES  (SCREEN_ROWS - 1) /* the last one is for the question */

static struct {
    struct task *task;
    unsigned rows;   /* shown since the last key */
    unsigned column; /* in the row that is not finished */
    bool to_end;
    bool quit;
} pager;

bool pager_quit(void)
{
    return pager.quit;
}

/* False if the key means nothing. */
static bool answer(int key)
{
    switch (key) {
    case ' ':
        pager.rows = 0;
        return true;
    case '\n':
        pager.rows = LINES - 1;
        return true;
    case 'c':
        pager_end();
        return true;
    case 'q':
    case CTRL('C'):
        pager.quit = true;
        return true;
    }
    return false;
}

static void prompt_for_more(void)
{
    static const char question[] =
        "\033[7m-- Space: a page, Enter: a line, c: all the rest, "
        "q: no more --\033[0m";
    static const char away[] = "\r\033[K";

    console_echo(question, sizeof(question) - 1);
    while (!answer(console_getkey()))
        ;
    console_echo(away, sizeof(away) - 1);
}

/* Shows one line, or a part of it. */
static void pager_show(const char *s, size_t n, bool record)
{
    if (pager.task && !pager.to_end && !pager.quit && pager.rows >= LINES)
        prompt_for_more();
    if (pager.quit)
        return;
    if (record)
        console_record(s, n);
    console_echo(s, n);
    pager.column += (unsigned)n;
    if (s[n - 1] == '\n') {
        pager.rows += (MAX(pager.column, 2u) - 2) / SCREEN_COLS + 1;
        pager.column = 0;
    }
}

/* False: the text is not shown in pages. */
static bool show_lines(const char *s, size_t n, bool record)
{
    if (task_self() != pager.task || !(read_eflags() & EFLAGS_IF))
        return false;
    while (n > 0) {
        size_t line = 0;

        while (line < n && s[line++] != '\n')
            if (s[line - 1] == ESCAPE)
                pager_end();
        pager_show(s, line, record);
        s += line;
        n -= line;
    }
    return true;
}

/* A console pager (drivers/console.h). */
static bool page(const char *s, size_t n)
{
    return show_lines(s, n, true);
}

void pager_echo(const char *s, size_t n)
{
    if (!show_lines(s, n, false))
        console_echo(s, n);
}

void pager_begin(void)
{
    memset(&pager, 0, sizeof(pager));
    if (console_at_terminal()) {
        pager.task = task_self();
        console_set_pager(page);
    }
}

void pager_to_end(void)
{
    pager.to_end = true;
    pager.rows = 0;
}

void pager_report_ended(void)
{
    static const char hint[] =
        "\033[7m-- Page Up: the lines before --\033[0m\n";

    if (pager.task && pager.to_end && pager.rows > LINES)
        console_echo(hint, sizeof(hint) - 1);
    pager.to_end = false;
}

void pager_end(void)
{
    pager.task = NULL;
    console_set_pager(NULL);
}
