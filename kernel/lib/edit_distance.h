/*
 * Words that were probably meant by a mistyped one, for suggestions.
 */
#pragma once

#include "kernel/lib/types.h"

/* The most edits that a suggestion for `word` may take: none for a letter, and
 * two from four letters on. More would find anything. */
unsigned edit_distance_most(const char *word);

/* Whether `a` becomes `b` by at most so many edits: a letter more, less or
 * changed, or two exchanged. Of two letters none is changed: half of the word
 * would be another. */
bool edit_distance_within(const char *a, const char *b, unsigned edits);
