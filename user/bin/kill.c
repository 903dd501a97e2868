/*
 * kill [-SIGNAL] PID…: kills tasks; a negative PID, after a signal or `--`,
 * selects a group.
 */
#include "user/lib/err.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

static bool number(const char *s, long *n)
{
    char *end;

    *n = strtol(s, &end, 10);
    return end != s && *end == 0;
}

int main(int argc, char **argv)
{
    long sig = SIGTERM;
    bool good = true;
    int i = 1;

    if (argc > 1 && argv[1][0] == '-' && number(argv[1] + 1, &sig))
        i = 2;
    if (i < argc && strcmp(argv[i], "--") == 0)
        i++;
    if (i == argc)
        usage("[-SIGNAL] PID...");
    for (; i < argc; i++) {
        long pid;

        if (!number(argv[i], &pid))
            errx(2, "%s is not the number of a task", argv[i]);
        if (kill((pid_t)pid, (int)sig) < 0) {
            warn("%s", argv[i]);
            good = false;
        }
    }
    return !good;
}
