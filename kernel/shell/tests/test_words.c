/*
 * Splitting command lines (kernel/shell/words.c).
 */
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "kernel/shell/words.h"

/* Splits a whole line and writes it as "[word][word];[word]". */
static enum words_error split(const char *line, char *out, size_t size)
{
    char copy[SHELL_LINE_MAX + 1];
    char *argv[SHELL_ARGS_MAX + 1];
    char *at = copy;
    enum words_error error = WORDS_OK;
    size_t n = 0;
    int argc;

    strlcpy(copy, line, sizeof(copy));
    while (at && error == WORDS_OK) {
        error = words_next(&at, &argc, argv);
        for (int i = 0; i < argc && error == WORDS_OK; i++) {
            out[n++] = '[';
            n += strlcpy(out + n, argv[i], size - n);
            out[n++] = ']';
        }
        if (at)
            out[n++] = ';';
    }
    out[n] = 0;
    return error;
}

static void expect(const char *line, const char *want, int at)
{
    char got[2 * SHELL_LINE_MAX];

    if (split(line, got, sizeof(got)) != WORDS_OK || strcmp(got, want) != 0)
        ktest_fail(__FILE__, at, "%s: %s, want %s", line, got, want);
    if (words_check(line) != WORDS_OK)
        ktest_fail(__FILE__, at, "%s: words_check finds fault", line);
}

#define EXPECT(line, want) expect(line, want, __LINE__)

KTEST(words, blanks)
{
    EXPECT("", "");
    EXPECT("   ", "");
    EXPECT("a", "[a]");
    EXPECT("  one\t two   three ", "[one][two][three]");
}

KTEST(words, pipes_are_of_sh)
{
    static const char *const lines[] = {"a | b", "a; b |c", "a > b", "a >> b",
                                        "a <b",  "a &",     "| a"};

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        KT_EQ(words_check(lines[i]), WORDS_SH);
    EXPECT("a '|' b", "[a][|][b]");
    EXPECT("a \"> b\"", "[a][> b]");
    EXPECT("a b|c", "[a][b|c]");
}

KTEST(words, semicolons)
{
    EXPECT("a;b", "[a];[b]");
    EXPECT("a b ; c d", "[a][b];[c][d]");
    EXPECT(";;a;;", ";;[a];;");
    EXPECT("a;", "[a];");
}

KTEST(words, quotes)
{
    EXPECT("\"one two\" three", "[one two][three]");
    EXPECT("'a;b';c", "[a;b];[c]");
    EXPECT("a\"b c\"d'e f'g", "[ab cde fg]");
    EXPECT("''", "[]");
    EXPECT("a '' b", "[a][][b]");
    EXPECT("\"it's\" '\"'", "[it's][\"]");
    EXPECT("a';'", "[a;]");
    EXPECT("\"a\";\"b\"", "[a];[b]");
}

KTEST(words, open_quotes_are_errors)
{
    KT_EQ(words_check("echo \"a"), WORDS_QUOTE);
    KT_EQ(words_check("echo 'a\""), WORDS_QUOTE);
    KT_EQ(words_check("'"), WORDS_QUOTE);
    KT_EQ(words_check("a; b \" c; d"), WORDS_QUOTE);
}

KTEST(words, too_many_words)
{
    char line[2 * (SHELL_ARGS_MAX + 1) + 1];

    for (unsigned i = 0; i <= SHELL_ARGS_MAX; i++) {
        line[2 * i] = 'x';
        line[2 * i + 1] = ' ';
    }
    line[2 * (SHELL_ARGS_MAX + 1)] = 0;
    KT_EQ(words_check(line), WORDS_MANY);
    line[2 * SHELL_ARGS_MAX] = 0; /* one less */
    KT_EQ(words_check(line), WORDS_OK);
    line[2 * SHELL_ARGS_MAX] = 'x';
    line[5] = ';'; /* counted for each command */
    KT_EQ(words_check(line), WORDS_OK);
}
