/*
 * The shell's syntax, all of it: words, quotes and semicolons (compare POSIX
 * sh, section 2.2; there is no backslash, no variable and no pattern).
 */
#include "kernel/shell/words.h"
#include "kernel/lib/string.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/*
 * Reads one word at *at, closing the gaps that quotes leave, and ends it with
 * a NUL. *at moves past the character that ended the word, which is
 * returned: a blank, `;`, NUL, or a quote if that quote is never closed.
 */
static char take_word(char **at)
{
    char *from = *at;
    char *to = *at;
    char quote = 0;
    char end;

    while (*from && (quote || (!is_blank(*from) && *from != ';'))) {
        char c = *from++;

        if (c == quote)
            quote = 0;
        else if (!quote && (c == '"' || c == '\''))
            quote = c;
        else
            *to++ = c;
    }
    end = quote ? quote : *from;
    *at = *from ? from + 1 : from;
    *to = 0;
    return end;
}

enum words_error words_next(char **at, int *argc, char **argv)
{
    char *p = *at;
    char end = ' ';

    *argc = 0;
    while (is_blank(end)) {
        while (is_blank(*p))
            p++;
        if (*p == 0 || *p == ';') {
            end = *p;
            p += end == ';';
            break;
        }
        if (*argc == SHELL_ARGS_MAX)
            return WORDS_MANY;
        if (strchr("|<>&", *p) != NULL)
            return WORDS_SH;
        argv[(*argc)++] = p;
        end = take_word(&p);
    }
    argv[*argc] = NULL;
    *at = end == ';' ? p : NULL;
    return end == '"' || end == '\'' ? WORDS_QUOTE : WORDS_OK;
}

enum words_error words_check(const char *line)
{
    char copy[SHELL_LINE_MAX + 1];
    char *argv[SHELL_ARGS_MAX + 1];
    char *at = copy;
    enum words_error error = WORDS_OK;
    int argc;

    strlcpy(copy, line, sizeof(copy));
    while (at && error == WORDS_OK)
        error = words_next(&at, &argc, argv);
    return error;
}
