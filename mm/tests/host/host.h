/*
 * The host machine's functions for tests, beyond mm/platform.h.
 */
#pragma once

#include "mm/platform.h"

#include <setjmp.h>

/* Frames of the machine that tests start on: 64 MiB. */
#define HOST_FRAMES 16384

/* The value of mm_clock_ms. Tests set it; nothing else does. */
extern uint64_t host_clock_ms;

/* What mm_wait_for_memory does; NULL: there is no other task to wait for. */
extern bool (*host_wait)(void);

/* Sets the value of mm_keep: pages that no allocation may take. */
void host_set_keep(size_t pages);

/* `fn` says whether the pages that are requested now are refused; NULL: they
 * are not. */
void host_set_refuses(bool (*fn)(void));

/* How often mm_wake_waiters was called. */
extern uint64_t host_returns;

/* Everything that mm_print printed since host_print_clear, cut if long. */
extern char host_printed[4096];
void host_print_clear(void);

/* Locks taken since the start, all together. */
extern uint64_t host_locks_taken;

/* A task, as the locks see it: what it holds, in this order. */
#define HOST_LOCKS 8
struct host_task {
    bool task_inside; /* between mm_cpu_enter and mm_cpu_leave */
    unsigned task_locks;
    mm_lock_t *task_lock[HOST_LOCKS];
};

/* Runs several tasks by turns (mm/tests/explore/). NULL: there is one task. */
struct host_explorer {
    /* another task may run here: before a lock, after an unlock */
    void (*point)(const char *what, const mm_lock_t *lock, const char *file,
                  int line);
    void (*taken)(const mm_lock_t *lock, const char *file, int line);
    void (*block)(mm_lock_t *lock); /* another task holds it */
    /* mm_call_all; false: no task runs */
    bool (*call)(void (*fn)(void *arg), void *arg);
    /* a panic, or a lock used wrongly: does not return */
    void (*failed)(const char *why);
};
extern const struct host_explorer *host_explorer;
void host_point(const char *what, const mm_lock_t *lock, const char *file,
                int line);

/* Sets up the arena, page frames and buddy; all memory usable but a hole. */
void host_start_pages(size_t frames);

/* Runs `fn` in a process of its own, on a machine of that many frames on which
 * kmem_init has not run yet. Fails the case if an expectation of `fn` fails. */
void host_before_init(size_t frames, void (*fn)(void));

/* Ends the run if locks are held where none may be. */
void host_check_unlocked(const char *when);

/*
 * KT_PANICS(stmt, text): `stmt` must call mm_panic with a message that contains
 * `text`. Locks held at that moment, and transfers of pages, are forgotten: the
 * case must not use the damaged object again.
 */
extern jmp_buf host_panic_jump;
extern bool host_panic_expected;
extern char host_panic_text[256];
void host_panic_check(const char *file, int line, const char *text);

#define KT_PANICS(stmt, text)                                                  \
    do {                                                                       \
        host_panic_text[0] = '\0';                                             \
        host_panic_expected = true;                                            \
        if (setjmp(host_panic_jump) == 0) {                                    \
            stmt;                                                              \
        }                                                                      \
        host_panic_check(__FILE__, __LINE__, text);                            \
    } while (0)

/* The platform's replies to the debugging modes: microseconds beyond the
 * clock's, the running task, its stack; the events they sent; up to two ranges
 * that hold pointers, and a cache whose objects are among them. */
extern uint64_t host_clock_extra_us;
extern uint32_t host_task;
extern uint32_t host_cpu;
extern char host_events[4096];
extern bool host_unmaps; /* whether pages can be unmapped */
extern const void *host_root_from[2], *host_root_end[2];
extern const struct kmem_cache *host_root_cache;

/* The callers that mm_backtrace finds, and how many; NULL: the real ones. */
extern const uintptr_t *host_stack;
extern unsigned host_stack_depth;

/* Whether all other tasks are stopped; a cache whose objects have pointers with
 * all bits inverted. */
extern bool host_others_stopped;
extern const struct kmem_cache *host_inverted_cache;

/* Lets a root reach over several variables: the address sanitizer forbids to
 * read what is between them. */
void host_root_over(const void *from, const void *end);

/* mm/tests/explore/schedules.c. All schedules of a pair of operations ("A+B";
 * "A": of all pairs with A first; NULL: of all pairs), `deep`: with two stops,
 * and without verify_often unless it is named. Prints how many ran. Or those of
 * `count` seeds; `seed` may be SEED.NUMBER. Return the exit status of the
 * process. */
int explore_pairs(const char *name, bool deep);
int explore_seeds(const char *seed, const char *count);

/* With magazines: enables those of all caches, or disables them, as they are
 * at the start of each case: most cases know what the slabs do. */
#if MM_MAGAZINES
void host_magazines(bool on);
#else
#define host_magazines(on) ((void)0)
#endif

/* Expectations that failed in this process. */
extern unsigned host_failures;

/* trace.c: fails the case if an invariant of mm/ does not hold. */
void host_verify(void);

/* trace.c: `ops` random operations against the shadow model. 0 if all agreed;
 * prints the first difference. */
int host_trace(uint64_t seed, uint64_t ops);

/* trace_modes.c: the same while debugging modes change, without a model of the
 * buffers' places. */
int host_trace_modes(uint64_t seed, uint64_t ops);
