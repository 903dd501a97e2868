/*
 * syscallfuzz: random system calls with random arguments.
 *
 *     syscallfuzz [-s SEED] [-n CALLS] [-v]
 *
 * Calls are made in batches, each by a child in an empty directory and its own
 * process group, without the console. A batch may end itself, run another
 * program, fault, or wait for ever; the parent kills it after a while. A child
 * reports each call by one byte in a pipe. A batch depends only on the seed,
 * its number and the results of its calls.
 */
#include "user/tests/syscallfuzz/fuzz.h"
#include "user/tests/syscallfuzz/fuzzer.h"
#include "user/lib/err.h"
#include "user/lib/scratch.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/lib/tree.h"

#define BATCH    1000u /* calls; their bytes fit into the pipe */
#define LIMIT_MS 100u

/* The directory of a batch, in that of the whole program. */
static char scratch[PATH_MAX];

static struct fuzz_options options = {.fuzz_count = 10000};

struct totals {
    uint32_t total_calls;
    uint32_t total_batches;
    uint32_t total_killed; /* by the kernel, for a fault or by themselves */
    uint32_t total_stuck;  /* ended by the parent */
};

/* ---- the child ---------------------------------------------------------- */

/* Closes all handles but two devices, and the report, which has an unused
 * number. */
static void isolate(int report)
{
    setpgid(0, 0);
    if (dup2(report, REPORT_HANDLE) < 0)
        _exit(1);
    for (int h = 0; h < REPORT_HANDLE; h++)
        close(h);
    if (open("/dev/null", O_RDWR) != 0 || open("/dev/zero", O_RDWR) != 1 ||
        chdir(scratch) < 0)
        _exit(1);
    memset(scratch, 0, sizeof(scratch)); /* no path that leads outside */
}

static void run_batch(uint32_t start, uint32_t left, int report)
    __attribute__((noreturn));
static void run_batch(uint32_t start, uint32_t left, int report)
{
    struct fuzz_call call;
    pid_t self = getpid();

    isolate(report);
    args_begin(start);
    while (left-- > 0) {
        args_next(&call);
        if (write(REPORT_HANDLE, "", 1) != 1)
            _exit(1);
        syscall_raw(call.call_number, call.call_registers);
        if (getpid() != self) /* the call was a fork: this is its child */
            _exit(0);
    }
    _exit(0);
}

/* ---- the parent --------------------------------------------------------- */

/* The number of calls that a batch has reported, one byte each. */
static uint32_t count_calls(int report)
{
    char buf[256];
    uint32_t made = 0;
    ssize_t n;

    while ((n = read(report, buf, sizeof(buf))) > 0)
        made += (uint32_t)n;
    return made;
}

static void batch(uint32_t start, uint32_t most, struct totals *t)
{
    enum child_end end;
    int ends[2];
    int status = 0;
    uint32_t made;
    pid_t pid;

    if (mkdir(scratch) < 0)
        err(1, "%s", scratch);
    if (pipe(ends) < 0)
        err(1, "pipe");
    pid = fork();
    if (pid < 0)
        err(1, "fork");
    if (pid == 0)
        run_batch(start, most, ends[1]);
    close(ends[1]);
    end = child_wait(pid, LIMIT_MS, &status);
    t->total_killed += end == CHILD_KILLED;
    t->total_stuck += end == CHILD_STUCK;
    made = count_calls(ends[0]);
    close(ends[0]);
    if (made == 0)
        errx(1, "a batch could not begin: status 0x%04x", (unsigned)status);
    if (!remove_tree(scratch))
        errx(1, "%s cannot be removed", scratch);
    t->total_calls += made;
    t->total_batches++;
    if (options.fuzz_verbose)
        printf("batch %u, seed %u: %u calls, status 0x%04x\n",
               (unsigned)t->total_batches, (unsigned)start, (unsigned)made,
               (unsigned)status);
}

/* Runs in a directory that will be removed. */
static int run_batches(void)
{
    struct totals t = {0};

    if (getcwd(scratch, sizeof(scratch)) < 0)
        err(1, "directory");
    strlcat(scratch, "/batch", sizeof(scratch));
    while (t.total_calls < options.fuzz_count)
        batch(options.fuzz_seed * 1000003u + t.total_batches + 1,
              MIN(BATCH, options.fuzz_count - t.total_calls), &t);
    while (wait(NULL) > 0)
        continue;
    printf("syscallfuzz: seed %u, %u calls in %u batches; %u of these were "
           "killed, %u stuck\n",
           (unsigned)options.fuzz_seed, (unsigned)t.total_calls,
           (unsigned)t.total_batches, (unsigned)t.total_killed,
           (unsigned)t.total_stuck);
    return 0;
}

int main(int argc, char **argv)
{
    fuzz_begin(argc, argv, "CALLS", &options);
    return scratch_run(run_batches);
}
