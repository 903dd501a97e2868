/*
 * confirm: work on files that a power cut will end, and what of it is certain.
 *
 *     confirm FOLDER
 *
 * Makes files, changes, renames and removes them, for ever. What fsync or sync
 * has confirmed is an event: from then on the file must be there and have the
 * bytes that follow from its number, whatever happens (tools/tests/
 * test_powercut.py knows the rule). Other work goes on in between, of which
 * nothing is promised but that it does no harm.
 */
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define BYTES_MAX 60000u
#define GROUP     8 /* files that one sync confirms */

static uint8_t bytes[BYTES_MAX];
static FILE *events;

static uint32_t size_of(uint32_t number)
{
    return number * 7919 % BYTES_MAX + 1;
}

static void fill(uint32_t number)
{
    for (uint32_t i = 0; i < BYTES_MAX; i++)
        bytes[i] = (uint8_t)(number * 131 + i * 7 + (i >> 8));
}

static char *path_of(const char *folder, const char *kind, uint32_t number)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s%u", folder, kind, number);
    return path;
}

static void make(const char *path, uint32_t number, bool confirm)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC);

    fill(number);
    if (file < 0 || write_all(file, bytes, size_of(number)) < 0 ||
        (confirm && fsync(file) < 0))
        err(1, "%s", path);
    close(file);
}

static void confirmed(const char *kind, uint32_t number)
{
    fprintf(events, "{\"event\":\"confirmed\",\"kind\":\"%s\",\"number\":%u}\n",
            kind, number);
    fflush(events);
}

/* Files by fsync, one after the other. */
static void by_fsync(const char *folder, uint32_t number)
{
    make(path_of(folder, "f", number), number, true);
    confirmed("f", number);
}

/* A folder of files by one sync. */
static void by_sync(const char *folder, uint32_t number)
{
    char inside[PATH_MAX];

    strlcpy(inside, path_of(folder, "d", number), sizeof(inside));
    if (mkdir(inside) < 0)
        err(1, "%s", inside);
    for (uint32_t i = 0; i < GROUP; i++)
        make(path_of(inside, "s", number * GROUP + i), number * GROUP + i,
             false);
    if (sync() < 0)
        err(1, "sync");
    confirmed("d", number);
}

/* What nobody waits for: files that come, move, shrink and go. */
static void unsettled(const char *folder, uint32_t number)
{
    char from[PATH_MAX];
    int file;

    strlcpy(from, path_of(folder, "u", number), sizeof(from));
    make(from, number, false);
    if (rename(from, path_of(folder, "v", number % 5)) < 0)
        err(1, "%s", from);
    file = open(path_of(folder, "v", (number + 2) % 5), O_RDWR | O_CREAT);
    if (file < 0 || ftruncate(file, number % 3000) < 0)
        err(1, "truncate");
    close(file);
    if (number % 3 == 0 && unlink(path_of(folder, "v", number % 5)) < 0)
        err(1, "unlink");
}

int main(int argc, char **argv)
{
    if (argc != 2)
        usage("FOLDER");
    events = fopen("/dev/debug", "w");
    if (events == NULL)
        err(1, "/dev/debug");
    for (uint32_t number = 0;; number++) {
        unsettled(argv[1], number);
        if (number % 4 == 3)
            by_sync(argv[1], number);
        else
            by_fsync(argv[1], number);
    }
}
