/*
 * Shared by the groups of `bench`: cmd_bench.c has the allocator's groups and
 * the command, cmd_bench_buddy.c buddy, cmd_bench_kinds.c object caching,
 * cmd_bench_self.c the check that no cost of a loop remains in the figures.
 * cmd_scale.c is the command `scale`.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/x86/cpu.h"
#include "mm/kmem.h"
#include "mm/segkmem.h"

#define ROUNDS  1000u  /* of a hot pair */
#define OBJECTS 10000u /* for a mean over many */

/* Loops n times. The compiler cannot know the counter, so all such loops, the
 * empty one too, end with the same two instructions: count down, jump. */
#define REPEAT(n)                                                              \
    for (uint32_t left_ = (n); left_ > 0; left_ = benchcmd_next(left_))

static inline uint32_t benchcmd_next(uint32_t left)
{
    __asm__ volatile("" : "+r"(left) : : "memory");
    return left - 1;
}

/* The cost of the loop that stores n pointers, without the calls that return
 * them. */
static inline uint64_t benchcmd_store_loop(void **p, uint32_t n)
{
    uint64_t start = rdtsc();

    REPEAT (n) {
        void *returned;

        __asm__ volatile("" : "=a"(returned));
        *p++ = returned;
    }
    return rdtsc() - start;
}

/* The cost of the loop over n pointers. Loading one is part of the cost of a
 * call. */
static inline uint64_t benchcmd_pointer_loop(void **p, uint32_t n)
{
    uint64_t start = rdtsc();

    REPEAT (n) {
        p++;
        __asm__ volatile("" : "+r"(p));
    }
    return rdtsc() - start;
}

static inline bool benchcmd_have_all(void **p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (p[i] == NULL)
            return false;
    return true;
}

static inline void benchcmd_construct(void *obj, size_t size)
{
    uint32_t *word = obj;

    for (size_t i = 0; i < size / sizeof(*word); i++)
        word[i] = (uint32_t)i;
}

/* The number of pages that the heap holds. */
static inline size_t benchcmd_held_pages(void)
{
    struct segkmem_stat stat;

    segkmem_stat(&stat);
    return stat.stat_pages;
}

/* The title of a group. Its figures are in ticks of the time-stamp counter,
 * which may be instructions, or exact in any case. */
void benchcmd_title(const char *title, bool in_ticks);

/* One figure, `total` instructions (or per cent) over `n` operations. */
void benchcmd_report(const char *key, uint64_t total, uint32_t n);

/* The same for the debug port alone, for groups that print a table. */
void benchcmd_event(const char *key, uint64_t total, uint32_t n);

/* The same of one size, or order: "what.64". */
void benchcmd_report_size(const char *what, uint32_t size, uint64_t total,
                          uint32_t n);

/* The cost of an empty loop of ROUNDS rounds, in instructions. */
uint64_t benchcmd_empty_loop(void);

/* ROUNDS hot pairs of a cache, net. */
uint64_t benchcmd_cache_pair(struct kmem_cache *cp);

/* Frees those of n objects that are not NULL. */
void benchcmd_free_some(struct kmem_cache *cp, void **p, uint32_t n);

/* The cost of ROUNDS objects of that kind without a cache of them: memory from
 * kmem_alloc, construction, destruction, kmem_free; net. */
uint64_t benchcmd_without(const struct kmem_cache *cp);

/* Room for `n` pointers, or NULL after an error line; the caller frees it with
 * benchcmd_pointers_free. */
void **benchcmd_pointers(uint32_t n);
void benchcmd_pointers_free(void **p, uint32_t n);

/* A group: 0, or 1 after an error line. */
int benchcmd_buddy(void);
int benchcmd_kinds(void);
int benchcmd_self(void);
