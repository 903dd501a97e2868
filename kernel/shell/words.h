/*
 * Splitting a command line into commands and words.
 */
#pragma once

#include "kernel/shell/shell.h"

enum words_error {
    WORDS_OK,
    WORDS_QUOTE, /* a quote is not closed */
    WORDS_MANY,  /* more than SHELL_ARGS_MAX words in a command */
    WORDS_SH,    /* a pipe or redirection, which are of the programs' shell */
};

/*
 * Takes the next command off the text at *at and splits it in place: argv
 * (room for SHELL_ARGS_MAX + 1) gets its words and a NULL, *argc their number,
 * which may be 0. *at moves past the `;` that ended it, or becomes NULL
 * after the last command. Blanks separate words; single and double quotes
 * take away the meaning of blanks, `;` and the other kind of quote. A word that
 * begins with | < > or & is an error.
 */
enum words_error words_next(char **at, int *argc, char **argv);

/* The first error in a whole line of at most SHELL_LINE_MAX characters. */
enum words_error words_check(const char *line);
