/*
 * confirm: changes files until power fails, and reports which changes are
 * certain.
 *
 *     confirm DIRECTORY
 *
 * Creates, changes, renames and removes files, for ever. When fsync or sync
 * confirms a file, an event reports it: from then on the file must exist and
 * have the bytes that follow from its number (tools/test/disk/test_powercut.py
 * knows the rule). Unconfirmed changes go on in between, and must do no harm:
 * confirmed directories move from one directory to another, and must be in one
 * of them.
 */
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define BYTES_MAX 60000u
#define GROUP     8 /* files that one sync confirms */
#define EVERY     4 /* one number in so many has a directory */
#define PLACES    4 /* directories it can move to */

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

static char *path_of(const char *directory, const char *kind, uint32_t number)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s%u", directory, kind, number);
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

static void report(const char *event, const char *kind, uint32_t number)
{
    fprintf(events, "{\"event\":\"%s\",\"kind\":\"%s\",\"number\":%u}\n", event,
            kind, number);
    fflush(events);
}

/* Files by fsync, one after the other. */
static void by_fsync(const char *directory, uint32_t number)
{
    make(path_of(directory, "f", number), number, true);
    report("confirmed", "f", number);
}

/* A directory of files by one sync. */
static void by_sync(const char *directory, uint32_t number)
{
    char inside[PATH_MAX];

    strlcpy(inside, path_of(directory, "d", number), sizeof(inside));
    if (mkdir(inside) < 0)
        err(1, "%s", inside);
    for (uint32_t i = 0; i < GROUP; i++)
        make(path_of(inside, "s", number * GROUP + i), number * GROUP + i,
             false);
    if (sync() < 0)
        err(1, "sync");
    report("confirmed", "d", number);
}

/* Unconfirmed changes: files created, moved, truncated and removed. */
static void unsettled(const char *directory, uint32_t number)
{
    char from[PATH_MAX];
    int file;

    strlcpy(from, path_of(directory, "u", number), sizeof(from));
    make(from, number, false);
    if (rename(from, path_of(directory, "v", number % 5)) < 0)
        err(1, "%s", from);
    file = open(path_of(directory, "v", (number + 2) % 5), O_RDWR | O_CREAT);
    if (file < 0 || ftruncate(file, number % 3000) < 0)
        err(1, "truncate");
    close(file);
    if (number % 3 == 0 && unlink(path_of(directory, "v", number % 5)) < 0)
        err(1, "unlink");
}

/* The path of a directory after `moves` moves: first in DIRECTORY, then in one
 * of the directories p0, p1 … in it. */
static void place_of(char *path, const char *directory, uint32_t number,
                     uint32_t moves)
{
    uint32_t place = moves % PLACES;

    if (place == 0)
        snprintf(path, PATH_MAX, "%s/d%u", directory, number);
    else
        snprintf(path, PATH_MAX, "%s/p%u/d%u", directory, place, number);
}

/* Moves a directory; every third time over an empty one. */
static void wander(const char *directory, uint32_t number, uint32_t moves)
{
    char from[PATH_MAX], to[PATH_MAX];

    place_of(from, directory, number, moves - 1);
    place_of(to, directory, number, moves);
    if (moves % 3 == 1 && mkdir(to) < 0)
        err(1, "%s", to);
    if (rename(from, to) < 0)
        err(1, "%s", from);
    report("moved", "d", number);
}

/* Moves the two that were created last. */
static void wander_all(const char *directory, uint32_t number)
{
    for (uint32_t back = 1; back < 2 * EVERY; back++) {
        if (back <= number && (number - back) % EVERY == EVERY - 1)
            wander(directory, number - back, back);
    }
}

static void make_places(const char *directory)
{
    for (uint32_t i = 1; i < PLACES; i++) {
        const char *path = path_of(directory, "p", i);

        if (mkdir(path) < 0)
            err(1, "%s", path);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        usage("DIRECTORY");
    events = fopen("/dev/debug", "w");
    if (events == NULL)
        err(1, "/dev/debug");
    make_places(argv[1]);
    for (uint32_t number = 0;; number++) {
        unsettled(argv[1], number);
        wander_all(argv[1], number);
        if (number % EVERY == EVERY - 1)
            by_sync(argv[1], number);
        else
            by_fsync(argv[1], number);
    }
}
