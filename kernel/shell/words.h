/*
 * Splitting a command line into commands and words.
 */
#pragma once

#include "kernel/shell/shell.h"

enum words_error {
    WORDS_OK,
    WORDS_QUOTE, /* a quote is not closed */
    WORDS_MANY,  /* more than SHELL_ARGS_MAX words in a command */
};

/*
 * Takes the next command off the text at *at and splits it in place: argv
 * (room for SHELL_ARGS_MAX + 1) gets its words and a NULL, *argc their number,
 * which may be 0. *at moves past the `;` that ended it, or becomes NULL
 * after the last command. Blanks separate words; single and double quotes
 * take away the meaning of blanks, `;` and the other kind of quote.
 */
enum words_error words_next(char **at, int *argc, char **argv);

/* A number of bytes as output prints them: 4096, 0x1000, 4k, 4K, 4KiB; M and
 * MiB likewise. */
bool words_size(const char *word, uint32_t *bytes);

/* What is wrong with a whole line of at most SHELL_LINE_MAX characters. */
enum words_error words_check(const char *line);

/* The work of shell_options. Returns 0, or the letter that is not allowed;
 * argv is then half done. */
char words_options(int *argc, char **argv, const char *allowed,
                   uint32_t *options);

/* An option of a command that takes values, too: either sets *option_on, or
 * puts the next word into *option_value. */
struct words_option {
    char option_letter;
    bool *option_on;
    const char **option_value;
};

#define WORDS_NO_VALUE 0x100

/*
 * Takes options that begin with one dash off argv: "-jn 5", "-n5". Words after
 * `--` are arguments. Returns 0, the letter that is not among the `n` options,
 * or WORDS_NO_VALUE and the letter whose value is missing; argv is then half
 * done.
 */
int words_take(int *argc, char **argv, const struct words_option *options,
               size_t n);
