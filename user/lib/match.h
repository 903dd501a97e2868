/*
 * Patterns of grep and of file names.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Whether a part of `line` matches. In the pattern . is any character, x* any
 * number of x, ^ and $ (first and last) the line's ends, and a backslash makes
 * the next character ordinary. `fold` ignores case.
 */
bool regex_match(const char *pattern, const char *line, bool fold);

/* Whether all of `name` matches: * is any characters, ? is one, [a-z] one of a
 * set and [!a-z] one not in the set; a backslash makes the next character
 * ordinary. */
bool glob_match(const char *pattern, const char *name);
