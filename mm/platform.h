/*
 * The platform: all that mm/ needs of the system that it runs in.
 *
 * The same sources run in the kernel, under a program's malloc, and on a
 * workstation. Each of these platforms has its own mm_platform.h on the include
 * path, which supplies the frequent half of this file inline (the lock); it
 * implements the rest in its own sources:
 *
 *     kernel/mm_platform.h         ring 0: spin locks, PIT clock, console
 *     user/lib/mm_platform.h       ring 3: one thread, pages from sbrk
 *
 * mm_platform.h defines
 *
 *     mm_lock_t                   the lock; it disables interrupts while held
 *     MM_LOCK_INIT(name, rank)    its static initialiser
 *     mm_lock_init(l, name, rank)
 *     mm_lock(l)  mm_unlock(l)    nest strictly: last taken, first released
 *     mm_lock_held(l)             for assertions: true if the caller holds it
 *     MM_DEBUG                    1: with the debugging modes of section 6
 *     MM_CHECKS                   if it is defined: with MM_ASSERT
 *     mm_phys_to_virt(paddr)      the address at which mm/ accesses this frame
 *     mm_virt_to_phys(ptr)        and back
 *     mm_keep()                   pages that have to stay available when the
 *                                 running task allocates some
 *     mm_keep_most                the most that mm_keep() says, a word; more
 *                                 costs time
 *     MM_UNLOCKED(x)              x, a word at most, read without the lock that
 *                                 guards it, on purpose
 *     MM_MAGAZINES                1: with magazines (mm/kmem_mag.h), and then:
 *     MM_CPUS_MAX                 the most processors
 *     MM_LINE                     bytes of a line of memory
 *     mm_cpu_enter()              from here to mm_cpu_leave() the task stays on
 *     mm_cpu_leave()              its processor, and neither an interrupt nor a
 *                                 call comes; they do not nest
 *     mm_cpu_number()             of this processor, between those two
 *     mm_mark_slab(cp, sp)        a slab's objects are all free, constructed
 *     mm_unmark_slab(cp, sp)      they will be destroyed, the slab taken apart
 *
 * Locks are taken in ascending rank only (kernel/lib/lock_rank.h). The
 * further needs of the debugging modes are in mm/debug/debug.h.
 */
#pragma once

#include "kernel/lib/lock_rank.h"
#include "kernel/lib/types.h"

#include <mm_platform.h>

/* Milliseconds since some fixed moment; never goes backwards. */
uint64_t mm_clock_ms(void);

/* KM_SLEEP found no memory even after reaping. Waits until some may have been
 * freed and returns true: the caller tries again. Returns false where no other
 * task could free any; the caller then panics. May sleep. */
bool mm_wait_for_memory(void);

/* Another task uses what the caller waits for: lets it run for a while. False
 * where there is no other task. May sleep. */
bool mm_wait_for_task(void);

/* Pages were freed: wakes the tasks that wait in mm_wait_for_memory. */
void mm_wake_waiters(void);

/* Prints a formatted line, or part of one, on the console. */
void mm_print(const char *fmt, ...) PRINTF_LIKE(1, 2);

#ifndef MM_MAGAZINES
#define MM_MAGAZINES 0
#endif

/* Needed only where MM_MAGAZINES is 1. Calls fn(arg) once on each processor, as
 * an interrupt would, and returns when all have returned. No lock is held.
 * While interrupts are disabled it calls fn on this processor alone. */
void mm_call_all(void (*fn)(void *arg), void *arg);

/* Needed only where MM_MAGAZINES is 1. Whether memory is to be reclaimed soon,
 * and none used to save time. While it is false, a page is free. */
bool mm_memory_low(void);

/* Whether `addr` can be read without a fault. Needed only where MM_DEBUG is
 * 1. */
bool mm_readable(const void *addr);

/* An invariant is broken, or no memory can be freed: does not return. */
void mm_panic(const char *fmt, ...) PRINTF_LIKE(1, 2)
    __attribute__((noreturn, cold));

/* An invariant that is checked where MM_CHECKS is defined; else nothing. */
#ifdef MM_CHECKS
#define MM_ASSERT(e)                                                           \
    do {                                                                       \
        if (unlikely(!(e)))                                                    \
            mm_panic("%s:%d: assertion failed: %s", __FILE__, __LINE__, #e);   \
    } while (0)
#else
#define MM_ASSERT(e) ((void)sizeof(e))
#endif
