/*
 * blocktest: uses a disk without a file system, and checks that reads return
 * what was written.
 *
 *     blocktest [-n SERVER] [-d DISK] COMMAND
 *         info                   prints the number of sectors
 *         counts                 prints the server's counts
 *         edges                  sends requests that must be refused
 *         read FIRST N [PIECE]   reads, PIECE (128) sectors at a time, and
 *                                prints the cost of a sector
 *         fill FIRST N SEED      writes sectors with contents that depend on
 *                                their number and SEED; flushes
 *         check FIRST N SEED     compares them
 *         storm P ROUNDS SEED    P processes at once, each in its own part of
 *                                the disk: write, read, flush
 *
 * Word j of sector s is s * 2654435761 + j * 40503 + SEED. `fill` and `storm`
 * overwrite the disk.
 */
#include "user/lib/block.h"
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/tsc.h"

#define WORDS (BLOCK_SECTOR / 4)

static struct block_device dev;
static uint32_t data[BLOCK_MAX * WORDS];

/* ---- contents ----------------------------------------------------------- */

static uint32_t word(uint32_t sector, uint32_t j, uint32_t seed)
{
    return sector * 2654435761u + j * 40503u + seed;
}

static void make(uint32_t first, uint32_t n, uint32_t seed)
{
    for (uint32_t i = 0; i < n * WORDS; i++)
        data[i] = word(first + i / WORDS, i % WORDS, seed);
}

/* The first sector that differs, or UINT32_MAX. */
static uint32_t compare(uint32_t first, uint32_t n, uint32_t seed)
{
    for (uint32_t i = 0; i < n * WORDS; i++)
        if (data[i] != word(first + i / WORDS, i % WORDS, seed))
            return first + i / WORDS;
    return UINT32_MAX;
}

static void read_some(uint32_t first, uint32_t n)
{
    if (block_read(&dev, first, n, data) < 0)
        err(1, "read of %u sectors from %u", (unsigned)n, (unsigned)first);
}

static void write_some(uint32_t first, uint32_t n, uint32_t seed)
{
    make(first, n, seed);
    if (block_write(&dev, first, n, data) < 0)
        err(1, "write of %u sectors from %u", (unsigned)n, (unsigned)first);
}

static void check_some(uint32_t first, uint32_t n, uint32_t seed)
{
    uint32_t wrong;

    read_some(first, n);
    wrong = compare(first, n, seed);
    if (wrong != UINT32_MAX)
        errx(1, "sector %u differs from what was written", (unsigned)wrong);
}

static void flush(void)
{
    if (block_flush(&dev) < 0)
        err(1, "flush");
}

/* ---- ranges ------------------------------------------------------------- */

static uint32_t piece_max = BLOCK_MAX;

/* Calls `fn` for a range, in pieces of at most `piece_max`. */
static void in_pieces(uint32_t first, uint32_t n, uint32_t seed,
                      void (*fn)(uint32_t, uint32_t, uint32_t))
{
    while (n > 0) {
        uint32_t piece = MIN(n, piece_max);

        fn(first, piece, seed);
        first += piece;
        n -= piece;
    }
}

static void read_piece(uint32_t first, uint32_t n, uint32_t seed)
{
    (void)seed;
    read_some(first, n);
}

/* The cost of `fn` for a range. */
static void measure(const char *what, uint32_t first, uint32_t n, uint32_t seed,
                    void (*fn)(uint32_t, uint32_t, uint32_t))
{
    uint32_t ms = uptime_ms();
    uint64_t start = tsc_read();
    uint64_t cost;

    in_pieces(first, n, seed, fn);
    cost = tsc_read() - start;
    ms = (uptime_ms() - ms) & 0x7fffffff;
    printf("%s %u sectors: %llu cycles each by the time-stamp counter, %u ms\n",
           what, (unsigned)n, (unsigned long long)(n > 0 ? cost / n : 0),
           (unsigned)ms);
}

/* ---- requests that must be refused -------------------------------------- */

static void expect(bool good, const char *what)
{
    printf("%s: %s%s%s\n", good ? "good" : "BAD", what, good ? "" : ": ",
           good ? "" : strerror(errno));
    if (!good)
        exit(1);
}

/* The error in the server's reply to a request. */
static int raw(uint32_t label, uint32_t disk, uint32_t first, uint32_t n,
               uint32_t sent)
{
    struct ipc_buffer b = {.ipc_send = data,
                           .ipc_send_size = sent,
                           .ipc_receive = data,
                           .ipc_receive_max = sizeof(data)};
    struct message m = {.msg_tag = label | (sent > 0 ? IPC_DATA : 0),
                        .msg_word = {disk, first, n},
                        .msg_buffer = &b};

    return ipc_call(dev.block_port, &m) < 0 ? -errno : (int)m.msg_word[0];
}

static void edges(void)
{
    uint32_t end = dev.block_sectors;

    expect(raw(BLOCK_READ, 0, end, 1, 0) == -EINVAL, "a sector after the end");
    expect(raw(BLOCK_READ, 0, end - 1, 2, 0) == -EINVAL, "across the end");
    expect(raw(BLOCK_READ, 0, UINT32_MAX, 2, 0) == -EINVAL, "around the end");
    expect(raw(BLOCK_READ, 0, end - 1, 1, 0) == 0, "the last sector");
    expect(raw(BLOCK_READ, 0, 0, 0, 0) == -EINVAL, "no sectors");
    expect(raw(BLOCK_READ, 0, 0, BLOCK_MAX + 1, 0) == -EINVAL, "too many");
    expect(raw(BLOCK_WRITE, 0, 0, 2, BLOCK_SECTOR) == -EINVAL,
           "fewer bytes than sectors");
    expect(raw(BLOCK_WRITE, 0, 0, 1, 0) == -EINVAL, "no bytes at all");
    expect(raw(BLOCK_WRITE, 0, end, 1, BLOCK_SECTOR) == -EINVAL,
           "a write after the end");
    expect(raw(BLOCK_READ, 7, 0, 1, 0) == -ENODEV, "disk 7");
    expect(raw(99, 0, 0, 1, 0) == -ENOSYS, "request 99");
    errno = 0;
    expect(block_read(&dev, end, 1, data) < 0 && errno == EINVAL,
           "the library sets errno");
}

/* ---- many at once ------------------------------------------------------- */

/* One process, with its part of the disk; seeds[] has the seed of each
 * sector. */
static void storm_one(uint32_t first, uint32_t size, uint32_t rounds,
                      unsigned seed)
{
    uint32_t *seeds = calloc(size, sizeof(*seeds));

    if (seeds == NULL)
        err(1, "no memory");
    srand(seed);
    in_pieces(first, size, 0, write_some);
    for (uint32_t i = 1; i <= rounds; i++) {
        uint32_t at = (uint32_t)rand() % size;
        uint32_t n = 1 + (uint32_t)rand() % MIN(BLOCK_MAX, size - at);

        if (rand() % 2 == 0) {
            write_some(first + at, n, i);
            for (uint32_t k = at; k < at + n; k++)
                seeds[k] = i;
        } else {
            check_some(first + at, 1, seeds[at]);
        }
        if (rand() % 16 == 0)
            flush();
    }
    flush();
    for (uint32_t k = 0; k < size; k++)
        check_some(first + k, 1, seeds[k]);
}

static void storm(uint32_t processes, uint32_t rounds, uint32_t seed)
{
    uint32_t size = MIN(dev.block_sectors / processes, 1024u);
    int failures = 0;
    int status;

    if (size == 0)
        errx(1, "the disk is too small");
    fflush(stdout);
    for (uint32_t p = 0; p < processes; p++) {
        pid_t pid = fork();

        if (pid < 0)
            err(1, "fork");
        if (pid == 0) {
            storm_one(dev.block_sectors / processes * p, size, rounds,
                      seed + p + 1);
            _exit(0);
        }
    }
    while (wait(&status) > 0)
        failures += status != 0;
    if (failures > 0)
        errx(1, "%d of %u processes failed", failures, (unsigned)processes);
    printf("%u processes, %u sectors each: all as written\n",
           (unsigned)processes, (unsigned)size);
}

static void counts(void)
{
    struct block_counts c = {0};
    struct ipc_buffer b = {.ipc_receive = &c, .ipc_receive_max = sizeof(c)};
    struct message m = {.msg_tag = BLOCK_COUNTS, .msg_buffer = &b};

    if (ipc_call(dev.block_port, &m) < 0)
        err(1, "counts");
    printf("commands %u, errors %u, time-outs %u, out of step %u, lost "
           "interrupts %u,\nspurious ones %u, resets %u\n",
           (unsigned)c.count_commands, (unsigned)c.count_errors,
           (unsigned)c.count_timeouts, (unsigned)c.count_protocol,
           (unsigned)c.count_lost, (unsigned)c.count_spurious,
           (unsigned)c.count_resets);
}

/* ---- commands ----------------------------------------------------------- */

static void print_usage(void) __attribute__((noreturn));
static void print_usage(void)
{
    usage("[-n SERVER] [-d DISK] info | counts | edges |\n"
          "       read FIRST N [PIECE] | fill FIRST N SEED |\n"
          "       check FIRST N SEED | storm P ROUNDS SEED");
}

static void command(int words, char **argv)
{
    uint32_t a[3] = {0};
    const char *name = argv[0];

    for (int i = 1; i < words && i <= 3; i++)
        a[i - 1] = number_between(argv[i], 0, UINT32_MAX);
    if (strcmp(name, "info") == 0 && words == 1) {
        printf("%s, disk %u: %u sectors\n", dev.block_server,
               (unsigned)dev.block_disk, (unsigned)dev.block_sectors);
    } else if (strcmp(name, "counts") == 0 && words == 1) {
        counts();
    } else if (strcmp(name, "edges") == 0 && words == 1) {
        edges();
    } else if (strcmp(name, "read") == 0 && (words == 3 || words == 4)) {
        if (words == 4)
            piece_max = number_between(argv[3], 1, BLOCK_MAX);
        measure("read", a[0], a[1], 0, read_piece);
    } else if (strcmp(name, "fill") == 0 && words == 4) {
        measure("wrote", a[0], a[1], a[2], write_some);
        flush();
    } else if (strcmp(name, "check") == 0 && words == 4) {
        in_pieces(a[0], a[1], a[2], check_some);
        printf("%u sectors are as written\n", (unsigned)a[1]);
    } else if (strcmp(name, "storm") == 0 && words == 4 && a[0] > 0) {
        storm(a[0], a[1], a[2]);
    } else {
        print_usage();
    }
}

int main(int argc, char **argv)
{
    const char *server = "ata";
    uint32_t disk = 0;
    int c;

    while ((c = getopt(argc, argv, "n:d:")) != -1) {
        if (c == 'n')
            server = optarg;
        else if (c == 'd')
            disk = number_between(optarg, 0, UINT32_MAX);
        else
            print_usage();
    }
    if (optind == argc)
        print_usage();
    if (block_open(&dev, server, disk) < 0)
        err(1, "%s, disk %u", server, (unsigned)disk);
    command(argc - optind, argv + optind);
    return 0;
}
