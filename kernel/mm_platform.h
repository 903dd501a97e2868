/*
 * mm/platform.h for ring 0: the half that must be inline. The other half is
 * kernel/mm_platform.c.
 */
#pragma once

#include "kernel/x86/cpu.h"
#include "kernel/x86/paging.h"
#include "kernel/x86/spinlock.h"

typedef struct spinlock mm_lock_t;

#define MM_DEBUG 1 /* mm/debug/debug.h: kernel/mm_debug.c */

#ifdef CONFIG_DEBUG
#define MM_CHECKS 1
#endif

/* Does not compile if `x` is more than a word: another processor could change
 * it between the reads of its halves. */
#define MM_UNLOCKED(x)                                                         \
    __builtin_choose_expr(sizeof(x) <= sizeof(uint32_t), (x), (void)0)

#define MM_LOCK_INIT(name, rank) SPINLOCK_INIT(name, rank)

static inline void mm_lock_init(mm_lock_t *l, const char *name, unsigned rank)
{
    spin_init(l, name, rank);
}

static inline void mm_lock(mm_lock_t *l)
{
    spin_lock(l);
}

static inline void mm_unlock(mm_lock_t *l)
{
    spin_unlock(l);
}

static inline bool mm_lock_held(const mm_lock_t *l)
{
    return spin_debug_held(l);
}

static inline void *mm_phys_to_virt(paddr_t addr)
{
    return (void *)(addr + KERNEL_BASE);
}

static inline paddr_t mm_virt_to_phys(const void *addr)
{
    return (paddr_t)addr - KERNEL_BASE;
}

#ifdef CONFIG_SMP
#define MM_MAGAZINES 1
#define MM_CPUS_MAX  CPUS_MAX
#define MM_LINE      64

#define mm_cpu_enter  cpu_enter
#define mm_cpu_leave  cpu_leave
#define mm_cpu_number cpu_number
#endif

/* In kernel/vm/commit.c: what sessions must leave. */
size_t mm_keep(void);
extern size_t mm_keep_most;

#ifndef mm_mark_slab
#define mm_mark_slab(cp, sp)   ((void)0)
#define mm_unmark_slab(cp, sp) ((void)0)
#endif

/* The task that keeps free memory from running out; and its part of each step
 * of the clock. After task_init. */
void reapd_init(void);
void reapd_tick(void);
