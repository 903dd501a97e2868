/*
 * What the tests of lab 4, "Caches", share: a cache that no list knows, and
 * pages that tell how they are asked for. Most tests run before kmem_init: they
 * set up as much of the allocator as they look at, so that a task's tests need
 * no other task.
 */
#pragma once

#include "tools/workshop/labs/lab.h"
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"
#include "mm/buddy.h"
#include "mm/debug/debug_impl.h"
#include "mm/segkmem.h"

/* A supplier of pages that counts, and remembers what it saw at each call. */
struct lab4_pages {
    struct kmem_supplier supplier;
    const struct kmem_cache *cache; /* it is asked by this one */
    size_t limit;                   /* pages that it has; 8 at first */
    size_t out;
    size_t locked; /* calls with interrupts off: under the cache's lock */
    size_t idle;   /* calls while cache_busy was 0 */
    size_t still;  /* calls without kmem_transfer_begin */
};

extern struct lab4_pages lab4_pages;

/* The one cache of the test, with such pages; no slab yet. The objects have no
 * constructor. */
struct kmem_cache *lab4_cache(size_t size, size_t align);

/* The same, with the constructor and the destructor, NULL for none. */
struct kmem_cache *lab4_cache_of(size_t size, size_t align, kmem_ctor_t *ctor,
                                 kmem_dtor_t *dtor);

/* Interrupts on, with none that could come: whether a lock is held shows. */
void lab4_irq_on(void);

/* Fails the test unless the cache's lock was released. */
#define LAB4_UNLOCKED(what)                                                    \
    do {                                                                       \
        if ((read_eflags() & EFLAGS_IF) == 0)                                  \
            KT_FAIL("the cache's lock is still held after %s", what);          \
        irq_enable();                                                          \
    } while (0)

/* Makes `n` slabs of a cache of small objects and puts them on its list, where
 * they stand in this order; slab[] gets them. False, and the test has failed,
 * if there are no pages. */
bool lab4_slabs(struct kmem_cache *cp, struct kmem_slab **slab, size_t n);

/* Gives the pages of those slabs back, whatever became of the list; and says
 * how many pages are out then. */
void lab4_pages_back(struct kmem_slab **slab, size_t n);
void lab4_pages_left(void);
