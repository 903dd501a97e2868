/*
 * The usage of a command, which SHELL_COMMAND has as a string, is the grammar
 * of its words: by it the shell checks the words before the command runs, and
 * Tab offers those that may stand at the cursor. A command has one form or
 * several, a line each; kmem has among others
 *
 *     free NAME N|all [lifo|fifo|random]
 *     list
 *
 *     all     this word             -j        an option; they come in any order
 *     NAME    a word of that kind   -n N      an option with a value
 *     N       a number              [...]     may be left out
 *     a|b     one of them           NAME ...  one or more; options come before
 *     +MODES  + and a word
 */
#pragma once

#include "kernel/lib/line.h"

struct shell_command;
struct shell_offer;

/* The value of each option that was given, "" if it takes none. */
struct usage_options {
    const char *use_value[64]; /* by usage_index */
};

static inline unsigned usage_index(char letter)
{
    return (unsigned)letter & 63;
}

/* Whether a form of the command has the option -letter. */
bool usage_has_option(const struct shell_command *c, char letter);

/* Prints the forms of a command that its words fit best; all of them if it has
 * none but its name, argv[0]. With `o`, offers the words that may follow
 * instead. */
void usage_show(const struct shell_command *command, int argc, char **argv,
                const struct shell_offer *o);

/* Takes the options off the words of a command, which have to fit one of its
 * forms. False after printing usage. argv has SHELL_ARGS_MAX + 1 places; its
 * words end with NULL, before and after. */
bool usage_take(const struct shell_command *command, int argc, char **argv,
                struct usage_options *options);

/* Completes a line (a line_words_t). */
line_words_t usage_complete;
