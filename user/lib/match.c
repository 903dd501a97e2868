/*
 * grep's patterns: the shortest match of a star is tried first.
 */
#include "user/lib/match.h"
#include "user/lib/ctype.h"
#include "user/lib/string.h"

/* Characters of the pattern's first element: one, or two with a backslash. */
static size_t element(const char *p)
{
    return p[0] == '\\' && p[1] != 0 ? 2 : 1;
}

static bool matches_one(const char *p, char c, bool fold)
{
    char want = p[element(p) - 1];

    if (c == 0)
        return false;
    if (*p == '.' || want == c)
        return true;
    return fold && tolower(want) == tolower(c);
}

/* Whether the pattern matches at `s`. */
static bool matches_here(const char *p, const char *s, bool fold)
{
    for (;; s++) {
        size_t n = element(p);

        if (*p == 0)
            return true;
        if (*p == '$' && p[1] == 0)
            return *s == 0;
        if (p[n] == '*')
            break;
        if (!matches_one(p, *s, fold))
            return false;
        p += n;
    }
    for (;; s++) {
        if (matches_here(p + element(p) + 1, s, fold))
            return true;
        if (!matches_one(p, *s, fold))
            return false;
    }
}

bool regex_match(const char *pattern, const char *line, bool fold)
{
    if (*pattern == '^')
        return matches_here(pattern + 1, line, fold);
    for (;; line++) {
        if (matches_here(pattern, line, fold))
            return true;
        if (*line == 0)
            return false;
    }
}
