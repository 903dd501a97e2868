/*
 * The schedules: all of each pair of operations, and those of seeds. Each pair
 * and each seed runs in a process of its own.
 */
#include "mm/tests/explore/ops.h"
#include "mm/tests/explore/seeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* ---- pairs -------------------------------------------------------------- */

#define NAME 64

static const struct op *pair[2];
static char pair_name[NAME];
static size_t *schedules; /* that were run; shared with the processes */

static unsigned needs_of(const struct op *op)
{
    return op->op_kind == NONE ? 0 : HAS(op->op_kind);
}

static void make_pair(void)
{
    ops_make_world(needs_of(pair[0]) | needs_of(pair[1]));
    ops_make_task(0, pair[0]);
    ops_make_task(1, pair[1]);
}

static void run_pair(void)
{
    const struct op *op = pair[fibers_running];

    op->op_run(op->op_kind);
}

/* Runs one function in a process of its own; 0 if it succeeds. */
static int in_process(const char *name, void (*fn)(const void *),
                      const void *arg)
{
    int status = fibers_apart(fn, arg);

    if (WIFSIGNALED(status))
        printf("%s: ended by signal %d\n", name, WTERMSIG(status));
    return status == 0 ? 0 : 1;
}

static void start(void)
{
    ops_warm_up();
    schedules = mmap(NULL, sizeof(*schedules), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (schedules == MAP_FAILED) {
        perror("mmtest: mmap");
        exit(2);
    }
}

static void all_of_pair(const void *deep)
{
    *schedules +=
        explore_case(&(struct fiber_case){.case_name = pair_name,
                                          .case_make = make_pair,
                                          .case_run = {run_pair, run_pair},
                                          .case_check = ops_check_world},
                     *(const bool *)deep);
}

static int try_pair(const struct op *a, const struct op *b, bool deep)
{
    pair[0] = a;
    pair[1] = b;
    snprintf(pair_name, NAME, "%s+%s", a->op_name, b->op_name);
    return in_process(pair_name, all_of_pair, &deep);
}

static const struct op *find_op(const char *name, size_t n)
{
    for (size_t i = 0; i < OPS_COUNT; i++)
        if (strlen(ops[i].op_name) == n &&
            strncmp(ops[i].op_name, name, n) == 0)
            return &ops[i];
    return NULL;
}

/* Whether both are to stop in this pair. verify_often alone has more schedules
 * than all others together, so it is tried when it is named. */
static bool is_tried(const struct op *a, const struct op *b, bool deep,
                     bool named)
{
    const struct op *often = &ops[OP_verify_often];

    return ops_legal(a, b) && (!deep || named || (a != often && b != often));
}

/* All pairs in which this operation is the first. */
static int try_first(const struct op *a, bool deep, bool named)
{
    int bad = 0;

    for (size_t i = 0; i < OPS_COUNT && bad < 3; i++)
        if (is_tried(a, &ops[i], deep, named))
            bad += try_pair(a, &ops[i], deep);
    return bad;
}

/* "A+B" or "A+B@K" or "A+B@K,J": a pair, or one schedule of it. Those before it
 * run first, so that the heap is the same. */
static int replay(const char *text, bool deep)
{
    const char *plus = strchr(text, '+');
    const char *at = strchr(text, '@');
    const char *end = at == NULL ? text + strlen(text) : at;
    const struct op *a = NULL, *b = NULL;

    if (plus != NULL && plus < end) {
        a = find_op(text, (size_t)(plus - text));
        b = find_op(plus + 1, (size_t)(end - plus - 1));
    }
    if (a == NULL || b == NULL) {
        fprintf(stderr, "mmtest: no pair of operations %s\n", text);
        return 2;
    }
    if (at != NULL)
        explore_show(text);
    return try_pair(a, b, deep || (at != NULL && strchr(at, ',') != NULL));
}

int explore_pairs(const char *name, bool deep)
{
    const struct op *first = name == NULL ? NULL : find_op(name, strlen(name));
    int bad = 0;

    start();
    if (name != NULL && first == NULL)
        return replay(name, deep);
    for (size_t i = 0; i < OPS_COUNT; i++)
        if (first == NULL || first == &ops[i])
            bad += try_first(&ops[i], deep, first != NULL);
    printf("%zu schedules\n", *schedules);
    return bad == 0 ? 0 : 1;
}

static void test_first(const char *name)
{
    int bad;

    start();
    bad = try_first(find_op(name, strlen(name)), false, true);
    if (bad != 0)
        KT_FAIL("%d pairs of %s fail", bad, name);
}

#define X(name, run, kind, objects, use)                                       \
    KTEST(explore_pairs, name)                                                 \
    {                                                                          \
        test_first(#name);                                                     \
    }
OPS(X)
#undef X

/* ---- seeds -------------------------------------------------------------- */

static void all_of_seed(const void *arg)
{
    explore_guard();
    seeds_run(*(const uint32_t *)arg);
}

static int try_seeds(uint32_t seed, uint32_t count)
{
    int bad = 0;

    ops_warm_up();
    seeds_find_planted();
    for (; count != 0 && bad < 3; count--, seed++) {
        char name[NAME];

        snprintf(name, sizeof(name), "seed %u", seed);
        bad += in_process(name, all_of_seed, &seed);
    }
    return bad;
}

int explore_seeds(const char *seed, const char *count)
{
    seeds_command = "build/host/mmtest -r ";
    return try_seeds(seeds_read(seed), (uint32_t)strtoul(count, NULL, 0)) == 0
               ? 0
               : 1;
}

KTEST(explore, schedules_of_seeds)
{
    seeds_command = "build/host/mmtest -r ";
    KT_EQ(try_seeds(1, 8), 0);
}
