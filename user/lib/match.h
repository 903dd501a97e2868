/*
 * Patterns of grep; kernel/lib/string.h has those of file names.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Whether a part of `line` matches. In the pattern . is any character, x* any
 * number of x, ^ and $ (first and last) the line's ends, and a backslash makes
 * the next character ordinary. `fold` ignores case.
 */
bool regex_match(const char *pattern, const char *line, bool fold);
