/*
 * The line editor: a state machine that is fed keys and draws what it does.
 *
 * It knows neither console nor commands: drawing and the words for completion
 * come through pointers, so that the kernel's shell, the shell in ring 3 and
 * the tests can each bring their own. Keys are kernel/lib/key.h's or, as
 * programs get them, Emacs' control characters.
 */
#pragma once

#include "kernel/lib/types.h"

#define LINE_MAX     256 /* characters in a line, without the NUL */
#define LINE_HISTORY 32u /* lines remembered */
#define LINE_COLUMNS 79u /* of the screen; the last one stays empty */

enum line_result {
    LINE_MORE,      /* go on feeding keys */
    LINE_DONE,      /* Enter: the line is in line_text */
    LINE_CANCELLED, /* ^C */
    LINE_TOO_LONG,  /* Enter, but characters had to be left out */
    LINE_EOF,       /* ^D on an empty line; to go on with it is no error */
};

/* Calls `add` for each word that can stand as a command (`command` is NULL)
 * or as an argument of `command`. */
typedef void line_words_t(const char *command,
                          void (*add)(const char *word, void *arg), void *arg);

struct line {
    void (*line_write)(const char *s, size_t n);
    line_words_t *line_words; /* or NULL: no completion */
    const char *line_prompt;
    unsigned line_len;
    unsigned line_pos;  /* the cursor: 0 … line_len */
    unsigned line_left; /* first character shown, of a line that is too wide */
    bool line_overflow; /* something was typed that did not fit */
    char line_text[LINE_MAX + 1];
    unsigned line_recall; /* lines back in history; 0: the present one */
    unsigned line_count;  /* lines ever remembered */
    char line_present[LINE_MAX + 1]; /* while looking back */
    char line_history[LINE_HISTORY][LINE_MAX + 1];
};

/* Starts an empty line and draws the prompt, whose text must stay. */
void line_begin(struct line *l, const char *prompt);

/* Takes in a key: any number at all. */
enum line_result line_key(struct line *l, int key);

/* The n-th line remembered, counted from 0 for the oldest still there; NULL
 * beyond the last. */
const char *line_remembered(const struct line *l, unsigned n);
