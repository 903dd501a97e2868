/*
 * Texts in sections, kept as files: what `help NAME` prints is in
 * kernel/shell/help.txt, to which the workshop kernel adds
 * tools/workshop/help.txt.
 *
 *     == Title of a group of sections
 *     = NAME and more about it
 *     lines, up to the next that begins with =
 *
 * In a text of `help` the first line is `= USAGE`, with further forms of it in
 * lines `| USAGE` (usage.h); the next line is for the list of commands.
 */
#pragma once

#include "kernel/lib/types.h"

/* Characters from `text_from` to before `text_end`. */
struct text {
    const char *text_from, *text_end;
};

/* Takes the first line off a text, its newline included. False at the end. */
bool text_line(struct text *t, struct text *line);

/* If `line` begins with `mark`, the rest of it without its newline; else an
 * empty text. */
struct text text_after(struct text line, const char *mark);

/* The first word of a text. */
struct text text_word(struct text t);

/* The lines of section NAME; an empty text if there is none. `head` (or NULL)
 * gets what follows the mark, or an empty text. */
struct text text_section(struct text t, const char *name, struct text *head);

bool text_empty(struct text t);
bool text_is(struct text t, const char *s);
void text_print(struct text t);
