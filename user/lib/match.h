/*
 * Patterns: those of grep, and those of file names.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Whether a part of `line` matches. In the pattern . is any character, x* any
 * number of x, ^ and $ (first and last) the line's ends, and a backslash takes
 * the meaning away from what follows. With `fold` small and capital letters
 * are the same.
 */
bool regex_match(const char *pattern, const char *line, bool fold);

/* Whether the whole of `name` matches: * is any characters, ? is one, [a-z]
 * one of these and [!a-z] one of the others. */
bool glob_match(const char *pattern, const char *name);
