/*
 * Keys typed at the console, turned into lines or raw characters.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/tty.h"
#include "drivers/console.h"
#include "kernel/vm/user.h"

/* ---- editing ------------------------------------------------------------ */

void tty_line_drop(struct tty_line *l)
{
    l->tty_len = 0;
    l->tty_taken = 0;
    l->tty_done = false;
}

void tty_line_clear(struct tty_line *l)
{
    if (!l->tty_done)
        tty_line_drop(l);
}

/* Every character, a tab too, takes one column, so each can be erased. */
static void append(struct tty_line *l, char c)
{
    if (l->tty_len == TTY_LINE_MAX - 1) {
        l->tty_echo("\a", 1);
        return;
    }
    l->tty_text[l->tty_len++] = c;
    l->tty_echo(c == '\t' ? " " : &c, 1);
}

static void tty_erase(struct tty_line *l, uint32_t to)
{
    for (; l->tty_len > to; l->tty_len--)
        l->tty_echo("\b \b", 3);
}

static uint32_t tty_word_start(const struct tty_line *l)
{
    uint32_t at = l->tty_len;

    while (at > 0 && l->tty_text[at - 1] == ' ')
        at--;
    while (at > 0 && l->tty_text[at - 1] != ' ')
        at--;
    return at;
}

static void cooked_key(struct tty_line *l, int key)
{
    if (key == '\n') {
        l->tty_text[l->tty_len++] = '\n';
        l->tty_echo("\n", 1);
        l->tty_done = true;
    } else if (key == CTRL('D'))
        l->tty_done = true;
    else if (key == '\b' && l->tty_len > 0)
        tty_erase(l, l->tty_len - 1);
    else if (key == CTRL('U'))
        tty_erase(l, 0);
    else if (key == CTRL('W'))
        tty_erase(l, tty_word_start(l));
    else if (key == CTRL('C')) {
        l->tty_echo("^C\n", 3);
        l->tty_len = 0;
    } else if (key == '\t' || (key >= ' ' && key <= 0xff && key != 0x7f))
        append(l, (char)key);
}

void tty_line_key(struct tty_line *l, int key)
{
    char c = key_character(key);

    if (!l->tty_raw)
        cooked_key(l, key);
    else if (c != 0) {
        l->tty_text[l->tty_len++] = c;
        l->tty_done = true;
    }
}

ssize_t tty_line_take(struct tty_line *l, void *buf, size_t n)
{
    int error;

    n = MIN(n, l->tty_len - l->tty_taken);
    error = user_copy(buf, l->tty_text + l->tty_taken, n);
    if (error != 0)
        return error;
    l->tty_taken += n;
    if (l->tty_taken == l->tty_len)
        tty_line_drop(l);
    return (ssize_t)n;
}
