/*
 * Schedules from seeds in which tasks are switched at every access to memory.
 *
 *     mmraces [SEED [N]]        the schedules of N seeds
 *     mmraces SEED.NUMBER       one of them, with all its steps
 *     mmraces -l …              the same with points at locks only
 *     mmraces -j …              the same, one process for each processor
 *     mmraces -mN …             with magazines of N rounds, 2 if not given
 *
 * mm/ is compiled with calls before each access (access.c). Every schedule
 * begins with the same memory, so one that fails also fails alone. Nothing but
 * the last line depends on the speed of the machine.
 */
#include "mm/tests/explore/seeds.h"
#include "mm/tests/races/races.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FRAMES 1280 /* 5 MiB */

/* ---- what the parts of mm/tests/ expect of a test program --------------- */

void ktest_fail(const char *file, int line, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fibers_failed("%s:%d: %s", file, line, text);
}

void ktest_stop(const char *file, int line, const char *what)
{
    ktest_fail(file, line, "required: %s", what);
    abort();
}

void ktest_undo(void (*fn)(void *arg), void *arg)
{
    (void)fn;
    (void)arg;
}

/* ---- the same memory for every schedule --------------------------------- */

extern char __data_start[], _end[]; /* the linker's */

struct part {
    char *part_at;
    size_t part_bytes;
    char *part_copy;
};

/* The variables, the page array, and the frames that are allocated now. The
 * contents of free frames have no meaning. */
static struct part *memory_parts(void)
{
    struct part *parts = calloc(page_count + 3, sizeof(*parts));
    struct part *next = parts;

    *next++ = (struct part){__data_start, (size_t)(_end - __data_start), NULL};
    *next++ = (struct part){(char *)page_array,
                            page_count * sizeof(*page_array), NULL};
    for (size_t i = 0; i < page_count;) {
        const struct page *p = &page_array[i];

        if (p->page_state == PAGE_FREE) {
            i += (size_t)1 << p->page_order;
            continue;
        }
        if (p->page_state != PAGE_RESERVED && p->page_state != PAGE_KERNEL)
            *next++ = (struct part){page_to_virt(p), PAGE_SIZE, NULL};
        i++;
    }
    for (next = parts; next->part_bytes != 0; next++)
        next->part_copy = malloc(next->part_bytes);
    return parts;
}

static void save(const struct part *parts)
{
    for (; parts->part_bytes != 0; parts++)
        memcpy(parts->part_copy, parts->part_at, parts->part_bytes);
}

static void restore(const struct part *parts)
{
    for (; parts->part_bytes != 0; parts++)
        memcpy(parts->part_at, parts->part_copy, parts->part_bytes);
}

/* ---- crashes ------------------------------------------------------------ */

static void crashed(int number)
{
    fibers_failed("signal %d", number);
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const stack_t stack = {.ss_sp = malloc(KIB(64)), .ss_size = KIB(64)};
    const struct sigaction action = {.sa_handler = crashed,
                                     .sa_flags = SA_ONSTACK | SA_RESETHAND};

    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        sigaction(numbers[i], &action, NULL);
}

/* ---- seeds -------------------------------------------------------------- */

static void make_planted(void)
{
    planted_unlocked = 0;
}

/* The command that runs a schedule again. */
static void set_command(bool locks)
{
    static char command[40];
    char rounds[16] = "";

    if (MM_MAGAZINES)
        snprintf(rounds, sizeof(rounds), "-m%u ", (unsigned)ops_rounds);
    snprintf(command, sizeof(command), "build/races%s/mmraces %s%s",
             MM_MAGAZINES ? "-mag" : "", locks ? "-l " : "", rounds);
    seeds_command = command;
}

static void prepare(bool locks)
{
    static const uintptr_t stack[] = {1, 2, 3};
    struct budget before = budget_begin("the preparation", fibers_budget);

    host_start_pages(FRAMES);
    kmem_init();
    host_stack = stack; /* the real ones take longer than all the rest */
    host_stack_depth = ARRAY_SIZE(stack);
    set_command(locks);
    ops_warm_up();
    catch_signals();
    explore_guard();
    seeds_find_planted();
    seeds_accesses = !locks;
    if (seeds_accesses)
        seeds_find(&(struct fiber_case){"a planted access",
                                        make_planted,
                                        {planted_increment, planted_increment},
                                        NULL});
    seeds_run_one(0, 0); /* allocates the stacks of fibers */
    budget_end(before);
}

/* What was run, by all processes together. */
static struct total {
    uint64_t total_schedules;
    uint64_t total_switches;
    uint32_t total_digest; /* whatever the order */
} * total;

static void run_seed(uint32_t seed, const struct part *parts)
{
    for (unsigned i = 0; i < SEEDS_SCHEDULES; i++) {
        restore(parts);
        seeds_run_one(seed, i);
        __atomic_fetch_add(&total->total_schedules, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&total->total_switches, explore_switches,
                           __ATOMIC_RELAXED);
        __atomic_fetch_xor(&total->total_digest, explore_digest(),
                           __ATOMIC_RELAXED);
    }
}

/* Runs every `step`-th seed. */
static void run_seeds(uint32_t seed, uint32_t end, uint32_t step)
{
    struct part *parts = memory_parts();

    save(parts);
    for (; seed < end; seed += step)
        run_seed(seed, parts);
}

/* The same in several processes. Returns how many fail. */
static int run_jobs(uint32_t seed, uint32_t end, uint32_t jobs)
{
    int bad = 0, status;

    for (uint32_t i = 0; i < jobs; i++)
        if (fork() == 0) {
            run_seeds(seed + i, end, jobs);
            _exit(0);
        }
    while (wait(&status) > 0)
        bad += status != 0;
    return bad;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int run(char **args, uint32_t jobs)
{
    uint32_t first = seeds_read(args[0] != NULL ? args[0] : "1");
    uint32_t count = args[0] != NULL && args[1] != NULL
                         ? (uint32_t)strtoul(args[1], NULL, 10)
                         : 1;
    double start = seconds();
    int bad = 0;

    if (jobs == 1)
        run_seeds(first, first + count, 1);
    else
        bad = run_jobs(first, first + count, jobs);
    printf("%llu schedules, %llu switches, digest %08x\n",
           (unsigned long long)total->total_schedules,
           (unsigned long long)total->total_switches, total->total_digest);
    start = seconds() - start;
    printf("%.1f s, %.0f schedules a second\n", start,
           (double)total->total_schedules / start);
    return bad == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    bool locks = false;
    uint32_t jobs = 1;

    (void)argc;
    for (argv++; *argv != NULL && **argv == '-'; argv++)
        if (strcmp(*argv, "-l") == 0)
            locks = true;
        else if (MM_MAGAZINES && strncmp(*argv, "-m", 2) == 0)
            ops_rounds = (uint32_t)strtoul(*argv + 2, NULL, 10);
        else
            jobs = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    total = mmap(NULL, sizeof(*total), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (total == MAP_FAILED)
        return 2;
    budget_share();
    prepare(locks);
    return run(argv, jobs);
}
