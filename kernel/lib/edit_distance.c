/*
 * Edits between words: see edit_distance.h. The shells, in the kernel and in
 * ring 3, suggest a command in place of an unknown one.
 */
#include "kernel/lib/edit_distance.h"
#include "kernel/lib/string.h"

unsigned edit_distance_most(const char *word)
{
    size_t letters = strlen(word);

    return letters < 2 ? 0 : letters < 4 ? 1 : 2;
}

static bool becomes(const char *a, const char *b, unsigned edits)
{
    while (*a != 0 && *a == *b) {
        a++;
        b++;
    }
    if (*a == 0 && *b == 0)
        return true;
    if (edits == 0)
        return false;
    edits--;
    return (*a != 0 && becomes(a + 1, b, edits)) ||
           (*b != 0 && becomes(a, b + 1, edits)) ||
           (*a != 0 && *b != 0 && becomes(a + 1, b + 1, edits)) ||
           (*a != 0 && *b != 0 && a[0] == b[1] && a[1] == b[0] &&
            becomes(a + 2, b + 2, edits));
}

bool edit_distance_within(const char *a, const char *b, unsigned edits)
{
    if (strlen(a) == 2 && strlen(b) == 2 && a[0] != b[1])
        return strcmp(a, b) == 0;
    return becomes(a, b, edits);
}
