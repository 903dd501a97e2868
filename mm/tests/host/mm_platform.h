/*
 * The host's answer to mm/platform.h: a fake machine to test mm/ in.
 *
 * "Physical" memory is an arena from mmap: frame 0 is its first page. Locks
 * are not needed, there being one thread, so they check instead: that they
 * are taken in ascending rank, never twice, and released last in, first out.
 */
#pragma once

#define MM_HOST   1
#define MM_DEBUG  1
#define MM_CHECKS 1

typedef struct mm_lock {
    const char *lock_name;
    unsigned lock_rank;
    bool lock_held;
    uint64_t lock_taken; /* how often */
} mm_lock_t;

/* clang-format off */
#define MM_LOCK_INIT(name, rank) {name, rank, false, 0}
/* clang-format on */

extern char *host_arena;

void mm_lock(mm_lock_t *lock);
void mm_unlock(mm_lock_t *lock);

static inline void mm_lock_init(mm_lock_t *lock, const char *name,
                                unsigned rank)
{
    *lock = (mm_lock_t)MM_LOCK_INIT(name, rank);
}

static inline bool mm_lock_held(const mm_lock_t *lock)
{
    return lock->lock_held;
}

static inline void *mm_phys_to_virt(paddr_t pa)
{
    return host_arena + pa;
}

/* An address outside the arena gives a number beyond every frame. */
static inline paddr_t mm_virt_to_phys(const void *addr)
{
    return (uintptr_t)addr - (uintptr_t)host_arena;
}

#define mm_charge(pages) true
#define mm_refund(pages) ((void)(pages))

#define mm_slab_made(cp, sp)   ((void)0)
#define mm_slab_ending(cp, sp) ((void)0)
