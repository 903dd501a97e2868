/*
 * A line from the console. The line editor is the kernel shell's
 * (kernel/lib/line.c): it gets keys from the console in raw mode and draws on
 * it. This file supplies the words for completion: commands at the start of a
 * command, else file names.
 */
#include "kernel/lib/line.h"
#include "user/bin/sh/sh.h"
#include "user/lib/dirent.h"
#include "user/lib/string.h"

typedef void add_t(const char *word, void *arg);

static void draw(const char *s, size_t n)
{
    write_all(STDOUT_FILENO, s, n);
}

static line_words_t words;

static struct line line = {.line_write = draw, .line_words = words};

/* ---- completion --------------------------------------------------------- */

/* Adds the names in a directory, each after `prefix`. Directories get a '/'. */
static void add_names(const char *directory, const char *prefix, bool hidden,
                      add_t *add, void *arg)
{
    DIR *d = opendir(directory);
    const struct dirent *entry;
    char word[LINE_MAX + 1];

    if (d == NULL)
        return;
    while ((entry = readdir(d)) != NULL) {
        if (entry->d_name[0] == '.' && !hidden)
            continue;
        strlcpy(word, prefix, sizeof(word));
        strlcat(word, entry->d_name, sizeof(word));
        if (entry->d_type == FILE_DIRECTORY)
            strlcat(word, "/", sizeof(word));
        add(word, arg);
    }
    closedir(d);
}

static void add_commands(add_t *add, void *arg)
{
    for (const struct builtin *b = builtins; b->builtin_name != NULL; b++)
        add(b->builtin_name, arg);
    add_names("/bin", "", false, add, arg);
}

/* Names that complete the word at `start`; its directory is the part up to the
 * last '/'. */
static void add_files(unsigned start, add_t *add, void *arg)
{
    char prefix[LINE_MAX + 1];
    size_t n = line.line_pos - start;
    bool hidden;

    memcpy(prefix, line.line_text + start, n);
    while (n > 0 && prefix[n - 1] != '/')
        n--;
    hidden = line.line_text[start + n] == '.';
    prefix[n] = 0;
    add_names(n > 0 ? prefix : ".", prefix, hidden, add, arg);
}

static void words(const char *command, add_t *add, void *arg)
{
    unsigned start = line.line_pos;
    unsigned before;

    (void)command; /* only `;` ends commands here */
    while (start > 0 && line.line_text[start - 1] != ' ')
        start--;
    before = start;
    while (before > 0 && line.line_text[before - 1] == ' ')
        before--;
    if ((before == 0 || strchr("|&;", line.line_text[before - 1]) != NULL) &&
        memchr(line.line_text + start, '/', line.line_pos - start) == NULL)
        add_commands(add, arg);
    else
        add_files(start, add, arg);
}

/* ---- reading ------------------------------------------------------------ */

static enum line_result read_keys(const char *prompt)
{
    enum line_result result = LINE_MORE;
    unsigned char key;

    line_begin(&line, prompt);
    while (result == LINE_MORE) {
        if (read(STDIN_FILENO, &key, 1) != 1)
            return LINE_EOF;
        result = line_key(&line, key);
    }
    return result;
}

int edit_line(const char *prompt, char *buf)
{
    enum line_result result;

    ttymode(STDIN_FILENO, TTY_RAW);
    result = read_keys(prompt);
    ttymode(STDIN_FILENO, TTY_COOKED);
    buf[0] = 0;
    if (result == LINE_EOF)
        return -1;
    if (result == LINE_TOO_LONG)
        complain(0, "a line has at most %d characters", LINE_MAX);
    if (result == LINE_DONE)
        strlcpy(buf, line.line_text, LINE_MAX_BYTES);
    return (int)strlen(buf);
}

const char *edit_history(unsigned n)
{
    return line_remembered(&line, n);
}
