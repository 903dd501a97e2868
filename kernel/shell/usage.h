/*
 * The usage lines of help.txt are the grammar of the commands' words: by them
 * the shell checks the words before a command runs, and Tab offers those that
 * may stand at the cursor. A command has one form or several:
 *
 *     = kmem free NAME N|all [lifo|fifo|random]
 *     | kmem list
 *
 *     all     this word             -j        an option; they come in any order
 *     NAME    a word of that kind   -n N      an option with a value
 *     N       a number              [...]     may be left out
 *     a|b     one of them           NAME ...  one or more; options come before
 *     +MODES  + and a word
 */
#pragma once

#include "kernel/lib/line.h"
#include "kernel/shell/text.h"

/* The text of help.txt. */
extern const struct text usage_help;

/* The next form of a command, from its section of usage_help; empty after the
 * last one. */
struct text usage_next_form(struct text *section);

/* The value of each option that was given, "" if it takes none. */
struct usage_options {
    const char *use_value[64]; /* by usage_index */
};

static inline unsigned usage_index(char letter)
{
    return (unsigned)letter & 63;
}

/* Whether a form of the command called `name` has the option -letter. */
bool usage_has_option(const char *name, char letter);

/* Prints the forms of a command, argv[0], that its words fit best; all of them
 * if it has none. With `o`, offers the words that may follow instead. */
struct shell_offer;
void usage_show(int argc, char **argv, const struct shell_offer *o);

/* Takes the options off the words of a command, argv[0], which have to fit one
 * of its forms. False after printing usage. argv has SHELL_ARGS_MAX + 1 places;
 * its words end with NULL, before and after. */
bool usage_take(int argc, char **argv, struct usage_options *options);

/* Completes a line (a line_words_t). */
line_words_t usage_complete;
