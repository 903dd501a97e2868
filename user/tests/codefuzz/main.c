/*
 * codefuzz: random code in ring 3.
 *
 *     codefuzz [-s SEED] [-n STREAMS] [-v]
 *
 * Each stream runs in a child, in its own process group and without handles.
 * Most end by a signal; the parent ends one that loops. A stream depends only
 * on the seed and its number.
 */
#include "user/tests/codefuzz/code.h"
#include "user/tests/syscallfuzz/fuzzer.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"

#define LIMIT_MS 20u

static struct fuzz_options options = {.fuzz_count = 1000};

static uint8_t *code;
static uint8_t *area;

static uint32_t count[3]; /* of streams, by enum child_end */

static void run_stream(uint32_t start) __attribute__((noreturn));
static void run_stream(uint32_t start)
{
    setpgid(0, 0);
    for (int h = 0; h < HANDLES_MAX; h++)
        close(h);
    code_make(code, area, start);
    __asm__ volatile("jmp *%0" : : "r"(code) : "memory");
    __builtin_unreachable();
}

static void stream(uint32_t start)
{
    int status = 0;
    pid_t pid = fork();

    if (pid < 0)
        err(1, "fork");
    if (pid == 0)
        run_stream(start);
    count[child_wait(pid, LIMIT_MS, &status)]++;
    if (options.fuzz_verbose)
        printf("stream %u: status 0x%04x\n", (unsigned)start, (unsigned)status);
}

int main(int argc, char **argv)
{
    fuzz_begin(argc, argv, "STREAMS", &options);
    code = mmap(CODE_BYTES, PROT_READ | PROT_WRITE);
    area = mmap(PAGE_SIZE, PROT_READ | PROT_WRITE);
    if (code == MAP_FAILED || area == MAP_FAILED)
        err(1, "memory");
    for (uint32_t i = 0; i < options.fuzz_count; i++)
        stream(options.fuzz_seed * 1000003u + i + 1);
    while (wait(NULL) > 0)
        continue;
    printf("codefuzz: seed %u, %u streams: %u ended, %u killed, %u stuck\n",
           (unsigned)options.fuzz_seed, (unsigned)options.fuzz_count,
           (unsigned)count[CHILD_ENDED], (unsigned)count[CHILD_KILLED],
           (unsigned)count[CHILD_STUCK]);
    return 0;
}
