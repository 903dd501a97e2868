/*
 * Options as in POSIX getopt: letters may be joined (-la), an argument may
 * follow its letter or be the next word, "--" ends the options.
 */
#include "user/lib/err.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

char *optarg;
int optind = 1;

static const char *rest; /* letters left in the current word */

/* Moves `rest` to the next letter; false: no more. */
static bool next_letter(int argc, char *const argv[])
{
    const char *word;

    if (rest != NULL && *rest != 0)
        return true;
    rest = NULL;
    if (optind >= argc)
        return false;
    word = argv[optind];
    if (word[0] != '-' || word[1] == 0)
        return false;
    optind++;
    if (strcmp(word, "--") == 0)
        return false;
    rest = word + 1;
    return true;
}

static int argument(int argc, char *const argv[], int letter)
{
    if (*rest != 0) {
        optarg = (char *)rest;
    } else if (optind < argc) {
        optarg = argv[optind++];
    } else {
        warnx("option -%c needs an argument", letter);
        return '?';
    }
    rest = NULL;
    return letter;
}

int getopt(int argc, char *const argv[], const char *letters)
{
    const char *known;
    int letter;

    if (!next_letter(argc, argv))
        return -1;
    letter = *rest++;
    known = letter == ':' ? NULL : strchr(letters, letter);
    if (known == NULL) {
        warnx("unknown option -%c%s", letter, letter == '-' ? rest : "");
        return '?';
    }
    return known[1] == ':' ? argument(argc, argv, letter) : letter;
}
