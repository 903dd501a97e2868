/*
 * A line from the console. The line editor is the kernel shell's
 * (kernel/lib/line.c): it gets keys from the console in raw mode and draws on
 * it. This file supplies the words for completion: commands at the start of a
 * command, directories after `cd`, else file names.
 */
#include "user/bin/sh/sh.h"
#include "user/lib/dirent.h"
#include "user/lib/string.h"

static void draw(const char *s, size_t n)
{
    write_all(STDOUT_FILENO, s, n);
}

static line_words_t words;

static struct line line = {.line_write = draw, .line_words = words};

/* ---- completion --------------------------------------------------------- */

/* Which of the names in a directory are meant. */
enum names {
    NAMES_VISIBLE,
    NAMES_HIDDEN, /* these too: what is typed begins with a dot */
    NAMES_PLACES, /* visible directories */
};

static bool is_meant(const struct dirent *entry, enum names which)
{
    if (entry->d_name[0] == '.' && which != NAMES_HIDDEN)
        return false;
    return which != NAMES_PLACES || entry->d_type == FILE_DIRECTORY;
}

/* Whether a directory can be read to its end. Where only some names are known,
 * one of several that match may seem to be the only one. */
static bool is_whole(const char *directory)
{
    DIR *d = opendir(directory);

    while (d != NULL && readdir(d) != NULL)
        continue;
    return d != NULL && closedir(d) == 0;
}

/* Adds the names in a directory, each after `prefix`. Directories get a '/'. */
static void add_names(const char *directory, const char *prefix,
                      enum names which, line_add_t *add, void *arg)
{
    DIR *d = is_whole(directory) ? opendir(directory) : NULL;
    const struct dirent *entry;
    char word[LINE_MAX + 1];

    if (d == NULL)
        return;
    while ((entry = readdir(d)) != NULL) {
        if (!is_meant(entry, which))
            continue;
        strlcpy(word, prefix, sizeof(word));
        strlcat(word, entry->d_name, sizeof(word));
        if (entry->d_type == FILE_DIRECTORY)
            strlcat(word, "/", sizeof(word));
        add(word, arg);
    }
    closedir(d);
}

void add_commands(line_add_t *add, void *arg)
{
    const char *path = var_get("PATH");
    char directories[PATH_MAX];
    char *rest = directories;
    const char *directory;

    for (const struct builtin *b = builtins; b->builtin_name != NULL; b++)
        add(b->builtin_name, arg);
    strlcpy(directories, path != NULL ? path : "/bin:/sbin",
            sizeof(directories));
    while ((directory = strtok_r(rest, ":", &rest)) != NULL)
        add_names(directory, "", NAMES_VISIBLE, add, arg);
}

/* Names that complete what is typed of a path, `n` characters; its directory is
 * the part up to the last '/'. */
static void add_files(const char *typed, size_t n, bool places, line_add_t *add,
                      void *arg)
{
    char prefix[LINE_MAX + 1];
    enum names which = places ? NAMES_PLACES : NAMES_VISIBLE;

    while (n > 0 && typed[n - 1] != '/')
        n--;
    if (typed[n] == '.')
        which = NAMES_HIDDEN;
    memcpy(prefix, typed, n);
    prefix[n] = 0;
    add_names(n > 0 ? prefix : ".", prefix, which, add, arg);
}

static void words(const struct line *l, unsigned command, unsigned word,
                  line_add_t *add, void *arg)
{
    const char *typed = l->line_text + word;
    size_t n = l->line_pos - word;

    while (command < word && l->line_text[command] == ' ')
        command++;
    if (command == word && memchr(typed, '/', n) == NULL)
        add_commands(add, arg);
    else
        add_files(typed, n, strncmp(l->line_text + command, "cd ", 3) == 0, add,
                  arg);
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
