/*
 * mm/platform.h on real threads, for the thread sanitizer: locks are mutexes
 * that know their owner.
 */
#pragma once

#include <pthread.h>

#define MM_DEBUG  1
#define MM_CHECKS 1

typedef struct mm_lock {
    pthread_mutex_t lock_mutex;
    const char *lock_name;
    unsigned lock_rank;
    unsigned lock_owner; /* 0: it is free */
} mm_lock_t;

/* clang-format off */
#define MM_LOCK_INIT(name, rank) {PTHREAD_MUTEX_INITIALIZER, name, rank, 0}
/* clang-format on */

extern char *threads_arena;
extern __thread unsigned threads_self; /* 1, 2, … */

void mm_lock(mm_lock_t *lock);
void mm_unlock(mm_lock_t *lock);

static inline void mm_lock_init(mm_lock_t *lock, const char *name,
                                unsigned rank)
{
    *lock = (mm_lock_t)MM_LOCK_INIT(name, rank);
}

static inline bool mm_lock_held(const mm_lock_t *lock)
{
    return __atomic_load_n(&lock->lock_owner, __ATOMIC_RELAXED) == threads_self;
}

static inline void *mm_phys_to_virt(paddr_t pa)
{
    return threads_arena + pa;
}

static inline paddr_t mm_virt_to_phys(const void *addr)
{
    return (uintptr_t)addr - (uintptr_t)threads_arena;
}

/* A processor is a mutex. */
#ifdef HOST_MAGAZINES
#define MM_MAGAZINES 1
#define MM_CPUS_MAX  4
#define MM_LINE      64

#define KMEM_LARGE_MIN 640 /* so that a struct kmem_cache is small */

void mm_cpu_enter(void);
void mm_cpu_leave(void);
unsigned mm_cpu_number(void);
#endif

#define mm_keep()    ((size_t)0)
#define mm_keep_most ((size_t)0)

#define mm_mark_slab(cp, sp)   ((void)0)
#define mm_unmark_slab(cp, sp) ((void)0)

/* A read without the lock, which the sanitizer does not see. */
const void *threads_read(const void *from, size_t size);

#define MM_UNLOCKED(x)                                                         \
    (*(__typeof__(x) *)threads_read((const void *)&(x), sizeof(x)))
