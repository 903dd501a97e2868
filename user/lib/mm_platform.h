/*
 * mm/platform.h for programs: the slab allocator as malloc (paper, section
 * 7.3).
 *
 * A program is one task, so locks are empty. The physical memory of mm/ is the
 * heap: frame 0 is its first page, and the page array records the use of each
 * page (user/lib/mm_sbrk.c).
 */
#pragma once

#define MM_DEBUG 0

typedef struct mm_lock {
} mm_lock_t;

#define MM_UNLOCKED(x) (x)

#define MM_LOCK_INIT(name, rank)                                               \
    {                                                                          \
    }

extern char *heap_base;

static inline void mm_lock_init(mm_lock_t *l, const char *name, unsigned rank)
{
    (void)l;
    (void)name;
    (void)rank;
}

static inline void mm_lock(mm_lock_t *l)
{
    (void)l;
}

static inline void mm_unlock(mm_lock_t *l)
{
    (void)l;
}

static inline bool mm_lock_held(const mm_lock_t *l)
{
    (void)l;
    return true;
}

static inline void *mm_phys_to_virt(paddr_t addr)
{
    return heap_base + addr;
}

/* An address outside the heap gives a number above every frame. */
static inline paddr_t mm_virt_to_phys(const void *addr)
{
    return (paddr_t)addr - (paddr_t)heap_base;
}

#define mm_mark_slab(cp, sp)   ((void)0)
#define mm_unmark_slab(cp, sp) ((void)0)
