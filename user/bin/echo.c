/*
 * echo [-n] WORD…: prints its arguments.
 */
#include "user/lib/stdio.h"
#include "user/lib/string.h"

int main(int argc, char **argv)
{
    int first = argc > 1 && strcmp(argv[1], "-n") == 0 ? 2 : 1;

    for (int i = first; i < argc; i++)
        printf("%s%s", i > first ? " " : "", argv[i]);
    if (first == 1)
        putchar('\n');
    return 0;
}
