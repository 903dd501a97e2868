/*
 * In a program: the end of a run that needs an unwritten task of a lab.
 */
#include "tools/workshop/labs/missing.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/unistd.h"

/* Exits as a server without its device does, so init does not restart it. If a
 * part of malloc is missing, fopen calls this again. */
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
