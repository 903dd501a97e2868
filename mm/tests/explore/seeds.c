/*
 * Schedules from seeds; seeds.h says how.
 */
#include "mm/tests/explore/seeds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OPS_EACH 4 /* of each task, at most */

const char *seeds_command = "";
bool seeds_accesses;

/* ---- one schedule ------------------------------------------------------- */

static const struct op *chosen[3]; /* the first is made most often */

static bool is_allowed(unsigned task, const struct op *op)
{
    const struct worker *w = &workers[task];

    if (op->op_use == ENDS && (task != 0 || ops_destroyed[op->op_kind] != 0))
        return false; /* the cache's memory may be another cache's */
    return w->worker_count >= op->op_objects && w->worker_count + 4 <= OBJECTS;
}

static void run_task(unsigned task)
{
    uint32_t *random = &workers[task].worker_random;

    for (unsigned n = 1 + test_random(random) % OPS_EACH; n != 0; n--) {
        unsigned k = test_random(random) % 4;
        const struct op *op = chosen[k < 2 ? 0 : k - 1];

        if (is_allowed(task, op))
            op->op_run(task, op->op_kind);
    }
}

/* An interrupt handler allocates and frees an object. */
static void interrupt(unsigned task)
{
    if (!ops_is_failing(task))
        ops[OP_pair_small].op_run(task, SMALL);
}

/* Whether the operation concerns all caches or changes their list. */
static bool is_general(const struct op *op)
{
    return op->op_use == ENDS || op == &ops[OP_create_own] ||
           op == &ops[OP_verify] || op == &ops[OP_reap] ||
           op == &ops[OP_update] || op == &ops[OP_snapshot];
}

/* Mostly one that meets the first operation. verify_often would take most of
 * the time. */
static bool is_chosen(unsigned i, uint32_t *random)
{
    const struct op *op = chosen[i];

    return op != &ops[OP_verify_often] && ops_legal(chosen[0], op) &&
           ops_legal(chosen[i - 1], op) &&
           (op->op_kind == chosen[0]->op_kind ||
            test_random(random) % (is_general(op) ? 3 : 16) == 0);
}

static void choose_ops(uint32_t *random, unsigned number)
{
    chosen[0] = &ops[number % ALL_OPS_COUNT];
    for (unsigned i = 1; i < ARRAY_SIZE(chosen); i++)
        do
            chosen[i] = &ops[test_random(random) % ALL_OPS_COUNT];
        while (!is_chosen(i, random));
}

/* How often to switch, from every second point to a few times in all. */
static void choose_way(uint32_t *random, struct schedule *s)
{
    uint32_t power = test_random(random) % 6;
    unsigned way = test_random(random) % 4;

    if (seeds_accesses && way >= 2) {
        s->schedule_way = BY_PLACE;
        s->schedule_depth = 1 + test_random(random) % 6;
        s->schedule_rate = 1u << (power + 2);
    } else if (way == 1) {
        s->schedule_way = BY_PRIORITY;
        s->schedule_depth = 2 + test_random(random) % 2;
        s->schedule_rate = (seeds_accesses ? 256u : 32u) << power;
    } else {
        s->schedule_way = BY_CHANCE;
        s->schedule_rate = (seeds_accesses ? 16u : 2u) << power;
    }
}

static void make_world(unsigned tasks)
{
    unsigned needs = HAS(SMALL);

    for (unsigned i = 0; i < ARRAY_SIZE(chosen); i++)
        if (chosen[i]->op_kind != NONE)
            needs |= HAS(chosen[i]->op_kind);
    ops_make_world(needs);
    for (unsigned task = 0; task < tasks; task++)
        for (unsigned i = ARRAY_SIZE(chosen); i-- > 0;)
            ops_make_task(task, chosen[i]);
}

void seeds_run_one(uint32_t seed, unsigned number)
{
    static explore_fn_t *const run[EXPLORE_TASKS] = {run_task, run_task,
                                                     run_task, run_task};
    uint32_t random = (seed * SEEDS_SCHEDULES + number) * 0x9e3779b1u + 1;
    struct schedule s = {.schedule_interrupt = interrupt};
    struct budget before = budget_begin("the schedule", EXPLORE_STEPS);
    char name[64];

    for (unsigned i = 0; i < 4; i++)
        test_random(&random);
    snprintf(name, sizeof(name), "%s%u.%u", seeds_command, seed, number);
    s.schedule_name = name;
    s.schedule_seed = test_random(&random);
    s.schedule_tasks = 2 + test_random(&random) % 5 / 2;
    s.schedule_cpus = test_random(&random) % 8 == 0 ? 1 : 2;
    s.schedule_cpus = MAX(s.schedule_cpus, s.schedule_tasks - 1);
    choose_ops(&random, number);
    choose_way(&random, &s);
    make_world(s.schedule_tasks);
    for (unsigned i = 0; i < s.schedule_tasks; i++)
        workers[i].worker_random = test_random(&random);
    explore_run(&s, run);
    ops_check_world();
    budget_end(before);
}

void seeds_run(uint32_t seed)
{
    for (unsigned i = 0; i < SEEDS_SCHEDULES; i++)
        seeds_run_one(seed, i);
}

uint32_t seeds_read(const char *text)
{
    char name[64];

    if (strchr(text, '.') != NULL) {
        snprintf(name, sizeof(name), "%s%s", seeds_command, text);
        explore_show(name);
    }
    return (uint32_t)strtoul(text, NULL, 10);
}

/* ---- does it find anything? --------------------------------------------- */

#define PLANTED_SEEDS 50

/* A counter. Its lock is released between the look and the change. */
static mm_lock_t planted_lock;
static unsigned planted_count;

static void count_wrongly(unsigned task)
{
    unsigned n;

    (void)task;
    mm_lock(&planted_lock);
    n = planted_count;
    mm_unlock(&planted_lock);
    mm_lock(&planted_lock);
    planted_count = n + 1;
    mm_unlock(&planted_lock);
}

static void check_count(void)
{
    if (planted_count != 2)
        explore_failed("an increment is lost");
}

/* A lock that no task will release. */
static struct host_task nobody;

static void wait_for_ever(unsigned task)
{
    (void)task;
    planted_lock.lock_owner = &nobody;
    mm_lock(&planted_lock);
}

static void no_check(void)
{
}

/* Whether a schedule of these seeds fails, in a process of its own. */
static bool is_found(struct schedule s, explore_fn_t *run, void (*check)(void))
{
    explore_fn_t *const both[] = {run, run};
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        explore_guard();
        for (; s.schedule_seed <= PLANTED_SEEDS; s.schedule_seed++) {
            mm_lock_init(&planted_lock, "planted", 1);
            planted_count = 0;
            explore_run(&s, both);
            check();
        }
        budget_exit(0);
    }
    return budget_wait(pid) != 0;
}

void seeds_find(const char *what, explore_fn_t *run, void (*check)(void))
{
    struct schedule s = {.schedule_name = what,
                         .schedule_way = BY_CHANCE,
                         .schedule_tasks = 2,
                         .schedule_cpus = 2,
                         .schedule_rate = 8,
                         .schedule_depth = 2,
                         .schedule_seed = 1};

    for (; s.schedule_way <= (seeds_accesses ? BY_PLACE : BY_PRIORITY);
         s.schedule_way++)
        if (!is_found(s, run, check))
            explore_failed("%s is not found by way %d", what, s.schedule_way);
}

void seeds_find_planted(void)
{
    seeds_find("a planted race", count_wrongly, check_count);
    seeds_find("a planted deadlock", wait_for_ever, no_check);
}
