/*
 * Tasks by name (user/lib/findtask.h).
 */
#include "user/lib/findtask.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

pid_t find_task(const char *name)
{
    FILE *f = fopen("/proc/tasks", "r");
    pid_t pid = 0;
    char row[128];

    if (f == NULL)
        err(1, "/proc/tasks");
    while (pid == 0 && fgets(row, sizeof(row), f) != NULL) {
        char *last = strrchr(row, ' ');

        row[strcspn(row, "\n")] = '\0';
        if (last != NULL && strcmp(last + 1, name) == 0)
            pid = (pid_t)strtol(row, NULL, 10);
    }
    fclose(f);
    return pid;
}
