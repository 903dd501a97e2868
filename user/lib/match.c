/*
 * Patterns. Both matchers try the shortest match first and backtrack to the
 * last star.
 */
#include "user/lib/match.h"
#include "user/lib/ctype.h"
#include "user/lib/string.h"

/* ---- grep's ------------------------------------------------------------- */

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

/* ---- file names --------------------------------------------------------- */

/* Whether `c` is in the set that starts with the '[' before `p`. *end gets its
 * end, or NULL if there is no ']': then it is not a set. */
static bool in_set(const char *p, char c, const char **end)
{
    bool inverted = p[1] == '!';
    const char *first = p + 1 + inverted;
    bool found = false;

    *end = NULL;
    for (p = first; *p != ']' || p == first; p++) {
        if (*p == '\\')
            p++;
        if (*p == 0)
            return false;
        if (p[1] == '-' && p[2] != ']' && p[2] != 0) {
            found |= p[0] <= c && c <= p[2];
            p += 2;
        } else {
            found |= *p == c;
        }
    }
    *end = p + 1;
    return found != inverted;
}

/* The pattern after its first element if that matches `c`, else NULL. */
static const char *glob_one(const char *p, char c)
{
    const char *end;

    if (*p == '[') {
        bool found = in_set(p, c, &end);

        if (end != NULL)
            return found ? end : NULL;
    }
    if (*p == '\\' && p[1] != 0)
        return p[1] == c ? p + 2 : NULL;
    return *p == '?' || *p == c ? p + 1 : NULL;
}

bool glob_match(const char *pattern, const char *name)
{
    const char *star = NULL; /* after the last star seen */
    const char *resume = NULL;

    while (*name != 0 || *pattern == '*') {
        const char *next;

        if (*pattern == '*') {
            star = ++pattern;
            resume = name;
            continue;
        }
        next = *pattern == 0 ? NULL : glob_one(pattern, *name);
        if (next == NULL && star == NULL)
            return false;
        pattern = next != NULL ? next : star;
        name = next != NULL ? name + 1 : ++resume;
    }
    return *pattern == 0;
}
