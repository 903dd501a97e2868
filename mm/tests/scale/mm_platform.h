/*
 * mm/platform.h for mmscale, which counts: a lock is an atomic instruction, and
 * a store when it is released.
 */
#pragma once

#define MM_DEBUG 0

typedef struct mm_lock {
    uint32_t lock_word;
    uint32_t lock_flags;
} mm_lock_t;

/* clang-format off */
#define MM_LOCK_INIT(name, rank) {0, 0}
/* clang-format on */

#define MM_UNLOCKED(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)

#ifdef HOST_MAGAZINES
#define MM_MAGAZINES 1
#define MM_CPUS_MAX  8
#define MM_LINE      64

#define KMEM_LARGE_MIN 640 /* so that a struct kmem_cache is small */

#define mm_cpu_enter() ((void)0)
#define mm_cpu_leave() ((void)0)
unsigned mm_cpu_number(void);
#endif

extern char *scale_arena;

void mm_lock(mm_lock_t *lock);
void mm_unlock(mm_lock_t *lock);

static inline void mm_lock_init(mm_lock_t *lock, const char *name,
                                unsigned rank)
{
    (void)name;
    (void)rank;
    lock->lock_word = 0;
}

static inline bool mm_lock_held(const mm_lock_t *lock)
{
    return lock->lock_word != 0;
}

static inline void *mm_phys_to_virt(paddr_t pa)
{
    return scale_arena + pa;
}

static inline paddr_t mm_virt_to_phys(const void *addr)
{
    return (uintptr_t)addr - (uintptr_t)scale_arena;
}

#define mm_keep()    ((size_t)0)
#define mm_keep_most ((size_t)0)

#define mm_mark_slab(cp, sp)   ((void)0)
#define mm_unmark_slab(cp, sp) ((void)0)
