/*
 * diskbench: the cost of files on a file server, by the time-stamp counter,
 * which under QEMU's -icount shift=0 counts all instructions: program, kernel,
 * file server, block server.
 *
 *     diskbench [-p PREFIX] DIRECTORY
 *
 * Reads DIRECTORY/big from start to end, 64 KiB at a time, twice (the second
 * time partly from the server's cache); reads its first 4 KiB a hundred times;
 * and visits all of DIRECTORY with `find`, twice. Each result is a line, and an
 * event for tools: PREFIX.read4k, a mean; PREFIX.read and PREFIX.find in
 * thousands of instructions, `.again` for the second time.
 */
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/lib/tsc.h"

#define PIECE  65536u
#define SMALL  4096u
#define ROUNDS 100u

static const char *prefix = "disk";
static FILE *debug;
static uint8_t buf[PIECE];

static void report(const char *key, uint64_t value, const char *unit)
{
    printf("  %s.%-18s %12llu %s\n", prefix, key, (unsigned long long)value,
           unit);
    if (debug == NULL)
        return;
    fprintf(debug, "{\"event\":\"bench\",\"key\":\"%s.%s\",\"value\":%llu}\n",
            prefix, key, (unsigned long long)value);
    fflush(debug);
}

/* All of a file; returns its bytes. */
static uint32_t read_all(const char *path)
{
    int file = open(path, O_RDONLY);
    uint32_t bytes = 0;
    ssize_t n;

    if (file < 0)
        err(1, "%s", path);
    while ((n = read(file, buf, PIECE)) > 0)
        bytes += (uint32_t)n;
    if (n < 0)
        err(1, "%s", path);
    close(file);
    return bytes;
}

static void sequential(const char *path, const char *key)
{
    uint64_t start = tsc_read();
    uint32_t bytes = read_all(path);

    report(key, (tsc_read() - start) / 1000, "thousand");
    printf("  %25s %12u bytes\n", "", bytes);
}

/* Seeking costs the kernel alone and is subtracted. */
static void small_reads(const char *path)
{
    int file = open(path, O_RDONLY);
    uint64_t start = tsc_read();
    uint64_t seeks;

    for (unsigned i = 0; i < ROUNDS; i++)
        lseek(file, 0, SEEK_SET);
    seeks = tsc_read() - start;
    start = tsc_read();
    for (unsigned i = 0; i < ROUNDS; i++)
        if (lseek(file, 0, SEEK_SET) < 0 || read(file, buf, SMALL) != SMALL)
            err(1, "%s", path);
    report("read4k", (tsc_read() - start - seeks) / ROUNDS, "each");
    close(file);
}

static void find(const char *directory, const char *key)
{
    char *argv[] = {"find", (char *)directory, "-name", "nothing", NULL};
    uint64_t start = tsc_read();
    int status = -1;
    pid_t pid = fork();

    if (pid < 0)
        err(1, "fork");
    if (pid == 0) {
        execvp(argv[0], argv);
        err(127, "find");
    }
    if (waitpid(pid, &status, 0) < 0 || status != 0)
        errx(1, "find failed");
    report(key, (tsc_read() - start) / 1000, "thousand");
}

int main(int argc, char **argv)
{
    char big[PATH_MAX];
    int c;

    while ((c = getopt(argc, argv, "p:")) != -1) {
        if (c != 'p')
            usage("[-p PREFIX] DIRECTORY");
        prefix = optarg;
    }
    if (argc - optind != 1)
        usage("[-p PREFIX] DIRECTORY");
    debug = fopen("/dev/debug", "w");
    snprintf(big, sizeof(big), "%s/big", argv[optind]);
    sequential(big, "read");
    sequential(big, "read.again");
    small_reads(big);
    find(argv[optind], "find");
    find(argv[optind], "find.again");
    return 0;
}
