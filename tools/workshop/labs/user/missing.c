/*
 * A task of a lab that is still to be written, in a program.
 */
#include "tools/workshop/labs/missing.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/unistd.h"

/* As a server without its device: init does not start it again and again. What
 * is missing may be a part of malloc, which fopen needs. */
void lab_missing(const char *task, const char *page)
{
    static bool again;
    FILE *debug;

    if (again)
        _exit(EXIT_ABSENT);
    again = true;
    debug = fopen("/dev/debug", "w");
    tellx("lab task %s is yours to write: see %s", task, page);
    if (debug != NULL) {
        fprintf(debug, "{\"event\":\"lab-missing\",\"task\":\"%s\"}\n", task);
        fclose(debug);
    }
    exit(EXIT_ABSENT);
}
