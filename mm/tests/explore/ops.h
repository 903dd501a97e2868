/*
 * Private to the exploration of pairs and of random schedules: the operations,
 * and the preparation and check of each schedule.
 */
#pragma once

#include "mm/tests/explore/explore.h"

/* The caches that operations use. */
enum kind {
    SMALL,
    LARGE,
    BUILT,    /* with a constructor, a destructor and a page supplier */
    CHECKED,  /* in modes F, P, Z and U */
    UNMAPPED, /* in mode S */
    IDLE,     /* nothing is allocated; may be destroyed */
    QUEUE,    /* the same in mode S; two slabs wait for their release */
    KINDS,
    NONE = KINDS,
};

#define HAS(kind) (1u << (kind))

/* A cache may not be used while another task destroys it. */
enum use {
    KEEPS,
    USES,
    ENDS
};

/* Name, function, cache, objects that the task has before, whether it creates
 * or destroys the cache. */
#define OPS(X)                                                                 \
    X(alloc_small, alloc_two, SMALL, 0, KEEPS)                                 \
    X(alloc_large, alloc_two, LARGE, 0, KEEPS)                                 \
    X(alloc_built, alloc_two, BUILT, 0, KEEPS)                                 \
    X(alloc_checked, alloc_two, CHECKED, 0, KEEPS)                             \
    X(alloc_unmapped, alloc_two, UNMAPPED, 0, KEEPS)                           \
    X(free_small, free_two, SMALL, 2, KEEPS)                                   \
    X(free_large, free_two, LARGE, 2, KEEPS)                                   \
    X(free_built, free_two, BUILT, 2, KEEPS)                                   \
    X(free_checked, free_two, CHECKED, 2, KEEPS)                               \
    X(free_unmapped, free_two, UNMAPPED, 2, KEEPS)                             \
    X(pair_small, hot_pair, SMALL, 0, KEEPS)                                   \
    X(pair_idle, hot_pair, IDLE, 0, USES)                                      \
    X(kmem_alloc, alloc_13, NONE, 0, KEEPS)                                    \
    X(oversize, alloc_oversize, NONE, 0, KEEPS)                                \
    X(create_own, create_own, NONE, 0, KEEPS)                                  \
    X(create_named, create_named, NONE, 0, KEEPS)                              \
    X(destroy, destroy_cache, IDLE, 0, ENDS)                                   \
    X(reap_built, reap_cache, BUILT, 0, KEEPS)                                 \
    X(reap_large, reap_cache, LARGE, 0, KEEPS)                                 \
    X(free_queue, free_two, QUEUE, 2, USES)                                    \
    X(modes_queue, set_modes, QUEUE, 0, USES)                                  \
    X(destroy_queue, destroy_cache, QUEUE, 0, ENDS)                            \
    X(reap_idle, reap_cache, IDLE, 0, USES)                                    \
    X(reap, reap, NONE, 0, KEEPS)                                              \
    X(reap_ws, reap_ws, NONE, 0, KEEPS)                                        \
    X(update, update, NONE, 0, KEEPS)                                          \
    X(modes_idle, set_modes, IDLE, 0, USES)                                    \
    X(modes_class, set_modes, NONE, 0, KEEPS)                                  \
    X(verify, verify, NONE, 0, KEEPS)                                          \
    X(verify_often, verify_often, NONE, 0, KEEPS)                              \
    X(snapshot, snapshot, LARGE, 0, KEEPS)                                     \
    X(look_up, look_up, LARGE, 0, KEEPS)                                       \
    X(release_unmapped, release_unmapped, UNMAPPED, 0, KEEPS)

/* The others run in schedules from seeds only. */
#define SEED_OPS(X)                                                            \
    X(read_log, read_log, CHECKED, 0, KEEPS)                                   \
    X(read_pages, read_pages, LARGE, 0, KEEPS)                                 \
    X(dry_run, dry_run, LARGE, 0, KEEPS)                                       \
    X(fail_small, fail_pages, SMALL, 0, KEEPS)                                 \
    X(fail_large, fail_pages, LARGE, 0, KEEPS)                                 \
    MAGAZINE_OPS(X)

/* With magazines only, so that without them a seed keeps its schedules. */
#if MM_MAGAZINES
#define MAGAZINE_OPS(X)                                                        \
    X(churn_small, churn, SMALL, 0, KEEPS)                                     \
    X(churn_large, churn, LARGE, 0, KEEPS)                                     \
    X(churn_built, churn, BUILT, 0, KEEPS)                                     \
    X(churn_idle, churn, IDLE, 0, USES)                                        \
    X(pass_small, pass, SMALL, 0, KEEPS)                                       \
    X(pass_built, pass, BUILT, 0, KEEPS)                                       \
    X(off_small, disable, SMALL, 0, KEEPS)
#else
#define MAGAZINE_OPS(X)
#endif

struct op {
    const char *op_name;
    void (*op_run)(enum kind kind); /* in the task that runs */
    enum kind op_kind;
    unsigned op_objects;
    enum use op_use;
};

enum {
#define X(name, run, kind, objects, use) OP_##name,
    OPS(X)
#undef X
    OPS_COUNT,
    OPS_LAST = OPS_COUNT - 1,
#define X(name, run, kind, objects, use) OP_##name,
    SEED_OPS(X)
#undef X
    ALL_OPS_COUNT
};

extern const struct op ops[ALL_OPS_COUNT];

/* Whether allocations of pages fail now, in the task that runs. */
bool ops_is_failing(void);

/* Whether two tasks may run these at the same time. */
bool ops_legal(const struct op *a, const struct op *b);

/* The objects and caches of a task. */
#define OBJECTS 128

struct worker {
    unsigned worker_count;
    struct object {
        uint8_t *object_addr;
        size_t object_size;
        enum kind object_kind; /* NONE: of kmem_alloc */
    } worker_object[OBJECTS];
    uint32_t worker_random;
};

extern struct worker workers[FIBERS_MAX + 1];

/* How often the cache of a kind was destroyed in this schedule. */
extern unsigned ops_destroyed[KINDS];

/* Creates the caches whose bits (HAS) are set, and the objects that a task
 * needs for its first operation. */
void ops_make_world(unsigned needs);
void ops_make_task(unsigned task, const struct op *op);

/* After a schedule: all objects have their contents, kmem_verify finds nothing,
 * and when all is freed, everything is as before. */
void ops_check_world(void);

/* Runs the parts that allocate memory once for good, before pages and caches
 * are counted for comparison. */
void ops_warm_up(void);

/* How many rounds magazines have from ops_warm_up on. */
extern uint32_t ops_rounds;
