/*
 * storm: copies a file while a server is killed repeatedly.
 *
 *     storm [-s SEED] [-n KILLS] SERVER FROM TO
 *
 * A child kills SERVER, found in /proc/tasks, at random moments. The file is
 * copied repeatedly until the child has done that KILLS times, then read back
 * and compared. The result is an event for tools. The program does not handle
 * the deaths: no call may fail.
 */
#include "user/lib/err.h"
#include "user/lib/findtask.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define PIECE      16384u
#define PAUSE_MIN  5u /* milliseconds between two kills */
#define PAUSE_MAX  120u
#define ABSENT_MAX 10000u /* longest time until a server is restarted */

static char piece[PIECE];
static char other[PIECE];

/* ---- the killer --------------------------------------------------------- */

static void kill_server(const char *name)
{
    uint32_t began = uptime_ms();

    for (;;) {
        pid_t pid = find_task(name);

        if (pid != 0 && kill(pid, SIGKILL) == 0)
            return;
        if (uptime_ms() - began > ABSENT_MAX)
            errx(1, "%s is not restarted", name);
        sleep_ms(1);
    }
}

static pid_t start_killer(const char *name, unsigned kills)
{
    pid_t pid = fork();

    if (pid < 0)
        err(1, "fork");
    if (pid > 0)
        return pid;
    for (unsigned i = 0; i < kills; i++) {
        sleep_ms(PAUSE_MIN + (unsigned)rand() % (PAUSE_MAX - PAUSE_MIN));
        kill_server(name);
    }
    exit(0);
}

/* ---- the copy ----------------------------------------------------------- */

static int open_or_end(const char *path, uint32_t flags)
{
    int file = open(path, flags);

    if (file < 0)
        err(1, "%s", path);
    return file;
}

/* The next bytes of a file, as many as there are up to PIECE. */
static size_t next_piece(int file, char *to, const char *path)
{
    size_t n = 0;

    while (n < PIECE) {
        ssize_t got = read(file, to + n, PIECE - n);

        if (got < 0)
            err(1, "%s", path);
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return n;
}

static uint32_t copy(const char *from, const char *to)
{
    int in = open_or_end(from, O_RDONLY);
    int out = open_or_end(to, O_WRONLY | O_CREAT | O_TRUNC);
    uint32_t bytes = 0;
    size_t n;

    while ((n = next_piece(in, piece, from)) > 0) {
        if (write_all(out, piece, n) < 0)
            err(1, "%s", to);
        bytes += n;
    }
    if (fsync(out) < 0)
        err(1, "fsync");
    close(in);
    close(out);
    return bytes;
}

static bool equal(const char *one, const char *two)
{
    int a = open_or_end(one, O_RDONLY);
    int b = open_or_end(two, O_RDONLY);
    size_t n;
    bool same;

    do {
        n = next_piece(a, piece, one);
        same = next_piece(b, other, two) == n && memcmp(piece, other, n) == 0;
    } while (same && n > 0);
    close(a);
    close(b);
    return same;
}

static void report(unsigned kills, unsigned copies, uint32_t bytes, bool same)
{
    FILE *debug = fopen("/dev/debug", "w");

    printf("%u kills, %u copies of %u bytes: %s\n", kills, copies, bytes,
           same ? "equal" : "DIFFERENT");
    if (debug == NULL)
        err(1, "/dev/debug");
    fprintf(debug,
            "{\"event\":\"storm\",\"kills\":%u,\"copies\":%u,\"bytes\":%u,"
            "\"equal\":%s}\n",
            kills, copies, bytes, same ? "true" : "false");
    fclose(debug);
}

int main(int argc, char **argv)
{
    unsigned kills = 10;
    unsigned copies = 0;
    uint32_t bytes;
    pid_t killer;
    int status;
    bool same;
    int c;

    srand(1);
    while ((c = getopt(argc, argv, "s:n:")) != -1) {
        if (c == 's')
            srand(number_between(optarg, 1, UINT32_MAX));
        else if (c == 'n')
            kills = number_between(optarg, 0, 100000);
        else
            usage("[-s SEED] [-n KILLS] SERVER FROM TO");
    }
    if (argc - optind != 3)
        usage("[-s SEED] [-n KILLS] SERVER FROM TO");
    argv += optind;
    killer = start_killer(argv[0], kills);
    do {
        bytes = copy(argv[1], argv[2]);
        copies++;
    } while (waitpid(killer, &status, WNOHANG) == 0);
    if (status != 0)
        return 1;
    bytes = copy(argv[1], argv[2]);
    same = equal(argv[1], argv[2]);
    report(kills, copies + 1, bytes, same);
    return !same;
}
