/*
 * Shared by the planted bugs: their sandboxes, and the steps of a run.
 */
#pragma once

#include "kernel/lib/list.h"
#include "tools/workshop/bugs/bugs.h"
#include "mm/kmem.h"

/* ---- the sandboxes ------------------------------------------------------ */

/* A node of a singly linked list: 32 bytes, so that 127 of them and the slab's
 * data fill a page to the last byte. */
struct snode {
    struct snode *next;
    uint32_t key;
    char name[20];
    uint32_t seen; /* last: where a free small buffer has its link */
};

/* One with a constructed state: on no list, without users. */
struct conn {
    struct list conn_link;
    uint32_t conn_users;
    char conn_peer[20];
};

/* A large one. */
struct frame {
    uint32_t frame_length;
    uint8_t frame_bytes[1020];
};

enum bugs_sandbox {
    BUGS_SNODE,
    BUGS_CONN,
    BUGS_FRAME,
    BUGS_SANDBOXES
};

struct kmem_cache *bugs_sandbox(enum bugs_sandbox which);

/* Gives all sandboxes new slabs, so that all runs start alike. */
void bugs_sandboxes_clean(void);

/*
 * Copies the pages of the plain sandboxes that hold `a` and `b` (NULL: none):
 * bugs_sandboxes_repair can then undo damage that nothing found. In sandboxes
 * with the debug layout such damage stops the machine.
 */
void bugs_sandboxes_remember(void *a, void *b);
void bugs_sandboxes_repair(void);

/* NULL, or what kmem_cache_verify says about the sandboxes. */
const char *bugs_sandboxes_verify(void);

/* Allocated objects of the sandboxes that nothing points to. Then frees the
 * buffers given to bugs_lose. */
size_t bugs_sandboxes_leaks(void);
void bugs_sandboxes_found(void);

/* Whether a buffer's cache has the plain layout. */
bool bugs_is_plain(enum bugs_sandbox which);

/* ---- the steps of a run ------------------------------------------------- */

/* Begins a step: what is found from now on was found at that time. */
void bugs_step(enum bugs_when when);

/* Found, though not by kmem_error. */
void bugs_note(const char *text);

/* The wrong store will write `found` at `at`, in the buffer at `base`: tests
 * compare this with the report. */
#define bugs_will_write(base, at, found)                                       \
    bugs_tell_write(base, at, sizeof(*(at)), (uint32_t)(found))
void bugs_tell_write(const void *base, const void *at, size_t size,
                     uint32_t found);

/* Scans the sandboxes and repairs them: the steps that follow only clean up. */
void bugs_look(void);

/* Notes a leaked buffer, which is freed after the run. */
void bugs_lose(enum bugs_sandbox which, const void *buf);

/* For functions that every bug calls: always inlined, so the bug's name is
 * first in backtraces. */
#define BUGS_INLINE static inline __attribute__((always_inline))

/* A node of its sandbox. */
BUGS_INLINE struct snode *node_alloc(void)
{
    return kmem_cache_alloc(bugs_sandbox(BUGS_SNODE), KM_SLEEP);
}

BUGS_INLINE void node_free(struct snode *n)
{
    kmem_cache_free(bugs_sandbox(BUGS_SNODE), n);
}

/* Keeps the optimiser from knowing what a pointer points to. */
#define bugs_hide(p) __asm__ volatile("" : "+r"(p) : : "memory")

/* ---- the bugs ----------------------------------------------------------- */

void bug_write_after_free(void);
void bug_byte_after_free(void);
void bug_link_after_free(void);
void bug_stale_realloc(void);
void bug_dangling_list(void);
void bug_early_put(void);
void bug_off_by_one(void);
void bug_string_end(void);
void bug_too_long(void);
void bug_underrun(void);
void bug_last_in_slab(void);
void bug_overflow(void);
void bug_wild_freelist(void);
void bug_wild_bufctl(void);
void bug_wild_slab(void);
void bug_double_free(void);
void bug_double_free_late(void);
void bug_free_never(void);
void bug_free_interior(void);
void bug_free_foreign(void);
void bug_free_stack(void);
void bug_free_static(void);
void bug_free_size(void);
void bug_uninitialised(void);
void bug_free_loop(void);
void bug_read_after_free(void);
void bug_constructed(void);
void bug_zero_bytes(void);
void bug_leak(void);
void bug_leak_on_error(void);
void bug_leak_cycle(void);
void bug_destroy_in_use(void);
void bug_destroy_twice(void);
void bug_destroyed_cache(void);
void bug_race(void);
void bug_late_interrupt(void);
