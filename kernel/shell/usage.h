/*
 * The usage strings of SHELL_COMMAND are the grammar of a command's words. With
 * them the shell checks the words and finds the function to call, and Tab
 * offers the words that are possible at the cursor. One of the forms of kmem
 * is
 *
 *     free NAME N|all [lifo|fifo|random]
 *     list
 *
 *     all     this word             -j        an option; they come in any order
 *     NAME    a word of that kind   -n N      an option with a value
 *     N       a number              [...]     may be left out
 *     a|b     one of them           NAME ...  one or more; options come before
 *     +MODES  + and a word
 *
 * Operands are compared in order, so those that may be left out are last.
 * Options that exclude each other are in different forms. The first form that
 * fits is taken: a form with a word (on) is before one with a kind (CACHE).
 */
#pragma once

#include "kernel/lib/line.h"
#include "kernel/shell/shell.h"

/* An element of a form: an option or an operand. */
struct element {
    char element_letter;      /* of the option; 0: an operand */
    const char *element_text; /* of the operand, or of the option's value */
    bool element_optional;
    bool element_repeats;
    const char *element_value; /* the word that was given; "" of an option
                                * without a value; NULL: none */
};

#define ELEMENTS_MAX 8

/* A form, and the words of a command that were compared with it. */
struct form {
    unsigned form_elements;
    struct element form_element[ELEMENTS_MAX];
    unsigned form_next;        /* where the next operand is looked for */
    bool form_options;         /* options may follow */
    struct element *form_open; /* an option at the end, without its value */
    unsigned form_argc;
    char *form_argv[SHELL_ARGS_MAX + 1]; /* the name and the operands */
};

/* Prints the forms of a command. */
void usage_show(const struct shell_command *command);

/* Finds the first form that the words of a command fit, and takes the options
 * off them. NULL after printing usage. argv has SHELL_ARGS_MAX + 1 places; its
 * words end with NULL, before and after. */
const struct shell_form *usage_take(const struct shell_command *command,
                                    char **argv, struct form *f);

/* The value of the option -letter; NULL if it was not given. */
const char *usage_value(struct form *f, char letter);

/* Completes a line (a line_words_t). */
line_words_t usage_complete;
