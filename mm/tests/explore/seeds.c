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

static uint32_t chance;            /* of the schedule */
static const struct op *chosen[3]; /* the first is made most often */

static bool is_allowed(unsigned task, const struct op *op)
{
    const struct worker *w = &workers[task];

    if (op->op_use == ENDS && (task != 0 || ops_destroyed[op->op_kind] != 0))
        return false; /* the cache's memory may be another cache's */
    return w->worker_count >= op->op_objects && w->worker_count + 4 <= OBJECTS;
}

static void run_task(void)
{
    unsigned task = fibers_running;
    uint32_t *own = &workers[task].worker_random;

    for (unsigned n = 1 + test_random(own) % OPS_EACH; n != 0; n--) {
        unsigned k = test_random(own) % 4;
        const struct op *op = chosen[k < 2 ? 0 : k - 1];

        if (is_allowed(task, op))
            op->op_run(op->op_kind);
    }
}

/* An interrupt handler allocates and frees an object. */
static void interrupt(void)
{
    if (!ops_is_failing())
        ops[OP_pair_small].op_run(SMALL);
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
static bool is_chosen(unsigned i)
{
    const struct op *op = chosen[i];

    return op != &ops[OP_verify_often] && ops_legal(chosen[0], op) &&
           ops_legal(chosen[i - 1], op) &&
           (op->op_kind == chosen[0]->op_kind ||
            test_random(&chance) % (is_general(op) ? 3 : 16) == 0);
}

static void choose_ops(unsigned number)
{
    chosen[0] = &ops[number % ALL_OPS_COUNT];
    for (unsigned i = 1; i < ARRAY_SIZE(chosen); i++)
        do
            chosen[i] = &ops[test_random(&chance) % ALL_OPS_COUNT];
        while (!is_chosen(i));
}

/* How often to switch, from every second point to a few times in all. */
static void choose_way(struct schedule *s)
{
    uint32_t power = test_random(&chance) % 6;
    unsigned way = test_random(&chance) % 4;

    if (seeds_accesses && way >= 2) {
        s->schedule_way = BY_PLACE;
        s->schedule_depth = 1 + test_random(&chance) % 6;
        s->schedule_rate = 1u << (power + 2);
    } else if (way == 1) {
        s->schedule_way = BY_PRIORITY;
        s->schedule_depth = 2 + test_random(&chance) % 2;
        s->schedule_rate = (seeds_accesses ? 256u : 32u) << power;
    } else {
        s->schedule_way = BY_CHANCE;
        s->schedule_rate = (seeds_accesses ? 16u : 2u) << power;
    }
}

static void make_world(void)
{
    unsigned needs = HAS(SMALL);

    for (unsigned i = 0; i < ARRAY_SIZE(chosen); i++)
        if (chosen[i]->op_kind != NONE)
            needs |= HAS(chosen[i]->op_kind);
    ops_make_world(needs);
    for (unsigned task = 0; task < fibers_count; task++)
        for (unsigned i = ARRAY_SIZE(chosen); i-- > 0;)
            ops_make_task(task, chosen[i]);
    for (unsigned task = 0; task < fibers_count; task++)
        workers[task].worker_random = test_random(&chance);
}

void seeds_run_one(uint32_t seed, unsigned number)
{
    struct schedule s = {.schedule_interrupt = interrupt};
    struct fiber_case c = {.case_make = make_world,
                           .case_check = ops_check_world};
    unsigned tasks;
    char name[64];

    chance = (seed * SEEDS_SCHEDULES + number) * 0x9e3779b1u + 1;
    for (unsigned i = 0; i < 4; i++)
        test_random(&chance);
    snprintf(name, sizeof(name), "%s%u.%u", seeds_command, seed, number);
    c.case_name = name;
    s.schedule_seed = test_random(&chance);
    tasks = 2 + test_random(&chance) % 5 / 2;
    s.schedule_cpus = test_random(&chance) % 8 == 0 ? 1 : 2;
    s.schedule_cpus = MAX(s.schedule_cpus, tasks - 1);
    choose_ops(number);
    choose_way(&s);
    while (tasks != 0)
        c.case_run[--tasks] = run_task;
    explore_run(&s, &c);
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

static void make_planted(void)
{
    mm_lock_init(&planted_lock, "planted", 1);
    planted_count = 0;
}

static void count_wrongly(void)
{
    unsigned n;

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
        fibers_failed("an increment is lost");
}

/* A lock that no task will release. */
static struct host_task nobody;

static void wait_for_ever(void)
{
    planted_lock.lock_owner = &nobody;
    mm_lock(&planted_lock);
}

static enum explore_way way; /* that is tried */

static void try_seeds(const void *c)
{
    struct schedule s = {.schedule_way = way,
                         .schedule_cpus = 2,
                         .schedule_rate = 8,
                         .schedule_depth = 2};

    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    explore_guard();
    while (++s.schedule_seed <= PLANTED_SEEDS)
        explore_run(&s, c);
}

void seeds_find(const struct fiber_case *c)
{
    for (way = BY_CHANCE; way <= (seeds_accesses ? BY_PLACE : BY_PRIORITY);
         way++)
        if (fibers_apart(try_seeds, c) == 0)
            fibers_failed("%s is not found by way %d", c->case_name, way);
}

void seeds_find_planted(void)
{
    seeds_find(&(struct fiber_case){"a planted race",
                                    make_planted,
                                    {count_wrongly, count_wrongly},
                                    check_count});
    seeds_find(&(struct fiber_case){"a planted deadlock",
                                    make_planted,
                                    {wait_for_ever, wait_for_ever},
                                    NULL});
}
