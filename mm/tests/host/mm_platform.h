/*
 * The host's implementation of mm/platform.h: a fake machine to test mm/ in.
 *
 * "Physical" memory is an arena from mmap: frame 0 is its first page. There is
 * one thread, so locks only check: that they are taken in ascending rank, never
 * twice, and released last in, first out. The tasks of an exploration
 * (mm/tests/explore/) spin for them on virtual processors; mm_cpu_id is the
 * number of the running one.
 */
#pragma once

#define MM_HOST   1
#define MM_DEBUG  1
#define MM_CHECKS 1

struct host_task;

typedef struct mm_lock {
    const char *lock_name;
    unsigned lock_rank;
    struct host_task *lock_owner; /* NULL: it is free */
    uint64_t lock_taken;          /* how often */
} mm_lock_t;

/* mm/tests/races/ recognises such a read by its order. */
#define MM_UNLOCKED(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)

/* clang-format off */
#define MM_LOCK_INIT(name, rank) {name, rank, NULL, 0}
/* clang-format on */

extern char *host_arena;
extern struct host_task *host_self; /* that runs */

void host_lock(mm_lock_t *lock, const char *file, int line);
void host_unlock(mm_lock_t *lock, const char *file, int line);

#define mm_lock(l)   host_lock(l, __FILE__, __LINE__)
#define mm_unlock(l) host_unlock(l, __FILE__, __LINE__)

static inline void mm_lock_init(mm_lock_t *lock, const char *name,
                                unsigned rank)
{
    *lock = (mm_lock_t)MM_LOCK_INIT(name, rank);
}

static inline bool mm_lock_held(const mm_lock_t *lock)
{
    return lock->lock_owner == host_self;
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

#ifdef HOST_MAGAZINES
#define MM_MAGAZINES 1
#define MM_CPUS_MAX  4
#define MM_LINE      64

#define KMEM_LARGE_MIN 640 /* so that a struct kmem_cache is small */

void mm_cpu_enter(void);
void mm_cpu_leave(void);
unsigned mm_cpu_number(void);
#endif

size_t mm_keep(void);
extern size_t mm_keep_most;

#define mm_mark_slab(cp, sp)   ((void)0)
#define mm_unmark_slab(cp, sp) ((void)0)
