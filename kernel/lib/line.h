/*
 * The line editor: a state machine that takes keys and draws the line.
 *
 * It does not know console or commands: drawing and completion words come
 * through pointers supplied by the kernel shell, the shell in ring 3 and the
 * tests. Keys are those of kernel/lib/key.h or, as programs get them, Emacs'
 * control characters.
 */
#pragma once

#include "kernel/lib/types.h"

#define LINE_MAX     256 /* characters in a line, without the NUL */
#define LINE_HISTORY 32u /* lines remembered */
#define LINE_COLUMNS 79u /* of the screen; the last one stays empty */

enum line_result {
    LINE_MORE,      /* the line is not finished */
    LINE_DONE,      /* Enter: the line is in line_text */
    LINE_CANCELLED, /* ^C */
    LINE_TOO_LONG,  /* Enter, but characters were dropped */
    LINE_EOF,       /* ^D on an empty line; editing may continue */
};

struct line;

/* Calls `add` for each word that may stand at the cursor. The places in
 * line_text where the command and the word begin: equal but for blanks if the
 * word is the command's name. Words that a shell would not take as they are,
 * with control characters, blanks or operators, are not offered. */
typedef void line_add_t(const char *word, void *arg);
typedef void line_words_t(const struct line *l, unsigned command, unsigned word,
                          line_add_t *add, void *arg);

struct line {
    void (*line_write)(const char *s, size_t n);
    line_words_t *line_words; /* or NULL: no completion */
    const char *line_prompt;
    unsigned line_len;
    unsigned line_pos;  /* the cursor: 0 … line_len */
    unsigned line_left; /* first character shown of a line that is too wide */
    bool line_overflow; /* a typed character did not fit */
    char line_text[LINE_MAX + 1];
    unsigned line_recall; /* lines back in history; 0: the current one */
    unsigned line_count;  /* lines ever remembered */
    char line_present[LINE_MAX + 1]; /* the current line, while history is
                                        shown */
    char line_history[LINE_HISTORY][LINE_MAX + 1];
};

/* Starts an empty line and draws the prompt, which must stay valid. */
void line_begin(struct line *l, const char *prompt);

/* Processes a key; any number is allowed. */
enum line_result line_key(struct line *l, int key);

/* The n-th line in history, counted from 0 for the oldest kept; NULL after the
 * last. */
const char *line_remembered(const struct line *l, unsigned n);
