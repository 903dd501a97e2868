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
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"

#define LIMIT_MS 20u
#define STEP_MS  10u

static uint32_t seed;
static uint32_t streams = 1000;
static bool verbose;

static uint8_t *code;
static uint8_t *area;

struct totals {
    uint32_t total_ended; /* by themselves */
    uint32_t total_killed;
    uint32_t total_stuck;
};

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

/* Waits for a stream; true: it ended by itself. */
static bool wait_for(pid_t pid, int *status)
{
    for (uint32_t ms = 0; ms < LIMIT_MS; ms += STEP_MS) {
        for (int i = 0; i < 20; i++) {
            if (waitpid(pid, status, WNOHANG) == pid)
                return true;
            yield();
        }
        sleep_ms(STEP_MS);
    }
    return false;
}

static void stream(uint32_t start, struct totals *t)
{
    int status = 0;
    pid_t pid = fork();

    if (pid < 0)
        err(1, "fork");
    if (pid == 0)
        run_stream(start);
    setpgid(pid, pid);
    if (!wait_for(pid, &status)) {
        t->total_stuck++;
        kill(-pid, SIGKILL);
        waitpid(pid, &status, 0);
    } else {
        *(WIFEXITED(status) ? &t->total_ended : &t->total_killed) += 1;
        kill(-pid, SIGKILL);
    }
    if (verbose)
        printf("stream %u: status 0x%04x\n", (unsigned)start, (unsigned)status);
}

int main(int argc, char **argv)
{
    struct totals t = {0};
    int option;

    seed = uptime_ms() + 1;
    while ((option = getopt(argc, argv, "s:n:v")) != -1) {
        if (option == 's')
            seed = number_between(optarg, 0, UINT32_MAX);
        else if (option == 'n')
            streams = number_between(optarg, 1, UINT32_MAX);
        else if (option == 'v')
            verbose = true;
        else
            usage("[-s SEED] [-n STREAMS] [-v]");
    }
    printf("codefuzz: seed %u\n", (unsigned)seed);
    fflush(stdout);
    code = mmap(CODE_BYTES, PROT_READ | PROT_WRITE);
    area = mmap(PAGE_SIZE, PROT_READ | PROT_WRITE);
    if (code == MAP_FAILED || area == MAP_FAILED)
        err(1, "memory");
    for (uint32_t i = 0; i < streams; i++)
        stream(seed * 1000003u + i + 1, &t);
    while (wait(NULL) > 0)
        continue;
    printf("codefuzz: seed %u, %u streams: %u ended, %u killed, %u stuck\n",
           (unsigned)seed, (unsigned)streams, (unsigned)t.total_ended,
           (unsigned)t.total_killed, (unsigned)t.total_stuck);
    return 0;
}
