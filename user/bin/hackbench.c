/*
 * hackbench: groups of processes that exchange messages through pipes, like the
 * Linux benchmark of that name. In a group every sender sends LOOPS messages to
 * every receiver; each receiver has a pipe.
 *
 *     hackbench [-g GROUPS] [-f PAIRS] [-l LOOPS] [-s BYTES]
 *
 * All processes are created first and wait for a start signal: a pipe that
 * loses its last writer when the first process closes its end.
 */
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

#define PAIRS_MAX   100       /* handles: a write end for each receiver */
#define MESSAGE_MAX PIPE_SIZE /* a message is written in one piece */

static uint32_t groups = 2;
static uint32_t pairs = 20;
static uint32_t loops = 10;
static uint32_t size = 100;

static int ready[2]; /* each ready process writes a byte */
static int line[2];

/* ---- senders and receivers ---------------------------------------------- */

static void wait_for_start(void)
{
    char c = 0;

    close(line[1]);
    if (write(ready[1], &c, 1) != 1)
        _exit(1);
    close(ready[1]);
    if (read(line[0], &c, 1) != 0)
        _exit(1);
}

static void send(const int *out)
{
    static char message[MESSAGE_MAX];

    wait_for_start();
    for (uint32_t i = 0; i < loops; i++)
        for (uint32_t to = 0; to < pairs; to++)
            if (write(out[to], message, size) != (ssize_t)size)
                _exit(1);
    _exit(0);
}

static void receive(int in)
{
    static char message[MESSAGE_MAX];
    uint32_t left = pairs * loops * size;

    wait_for_start();
    while (left > 0) {
        ssize_t n = read(in, message, size);

        if (n <= 0)
            _exit(1);
        left -= (uint32_t)n;
    }
    _exit(0);
}

/* ---- creating ----------------------------------------------------------- */

static void close_all(const int *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        close(out[i]);
}

/* Forks the receivers of a group; `out` gets the write ends of their pipes.
 * Returns how many were created. */
static uint32_t make_receivers(int *out)
{
    for (uint32_t i = 0; i < pairs; i++) {
        int ends[2];
        pid_t pid;

        if (pipe(ends) < 0)
            return i;
        pid = fork();
        if (pid == 0) {
            close_all(out, i);
            close(ends[1]);
            receive(ends[0]);
        }
        close(ends[0]);
        out[i] = ends[1];
        if (pid < 0) {
            close(ends[1]);
            return i;
        }
    }
    return pairs;
}

static uint32_t make_senders(const int *out)
{
    for (uint32_t i = 0; i < pairs; i++) {
        pid_t pid = fork();

        if (pid == 0)
            send(out);
        if (pid < 0)
            return i;
    }
    return pairs;
}

/* Returns the number of processes; fewer if there is no memory. */
static uint32_t make_group(void)
{
    int out[PAIRS_MAX];
    uint32_t receivers = make_receivers(out);
    uint32_t made = receivers;

    if (receivers == pairs)
        made += make_senders(out);
    close_all(out, receivers);
    return made;
}

/* ---- running ------------------------------------------------------------ */

/* Waits for all processes. Returns how many succeeded. */
static uint32_t finish(void)
{
    uint32_t good = 0;
    int status;

    while (wait(&status) > 0)
        good += status == 0;
    return good;
}

/* Waits until all processes are ready, or dead. */
static void wait_until_ready(void)
{
    char c;

    while (read(ready[0], &c, 1) == 1)
        continue;
}

static void read_options(int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "g:f:l:s:")) != -1) {
        if (option == 'g')
            groups = number_between(optarg, 1, 100);
        else if (option == 'f')
            pairs = number_between(optarg, 1, PAIRS_MAX);
        else if (option == 'l')
            loops = number_between(optarg, 1, 10000);
        else if (option == 's')
            size = size_between(optarg, 1, MESSAGE_MAX);
        else
            usage("[-g GROUPS] [-f PAIRS] [-l LOOPS] [-s BYTES]");
    }
}

int main(int argc, char **argv)
{
    uint32_t want;
    uint32_t made = 0;
    uint32_t start, good;

    read_options(argc, argv);
    want = 2 * groups * pairs;
    if (pipe(ready) < 0 || pipe(line) < 0)
        err(1, "pipe");
    for (uint32_t i = 0; i < groups && made == 2 * i * pairs; i++)
        made += make_group();
    close(ready[1]);
    wait_until_ready();
    start = uptime_ms();
    close(line[1]);
    good = finish();
    if (made < want)
        errx(1, "created only %u of %u processes", (unsigned)made,
             (unsigned)want);
    printf("hackbench: %u groups of %u + %u, %u messages of %u bytes in "
           "%u ms\n",
           (unsigned)groups, (unsigned)pairs, (unsigned)pairs,
           (unsigned)(groups * pairs * pairs * loops), (unsigned)size,
           (unsigned)uptime_diff(uptime_ms(), start));
    return good == want ? 0 : 1;
}
