/*
 * Shared by the tests of lab 4, "Caches": a cache that is in no list, and a
 * supplier of pages that records its calls. Most tests run before kmem_init and
 * initialize only the part of the allocator that they test, so that the tests
 * of a task need no other task.
 */
#pragma once

#include "tools/workshop/labs/guard.h"
#include "tools/workshop/labs/lab.h"
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"
#include "mm/buddy.h"
#include "mm/debug/debug_impl.h"
#include "mm/segkmem.h"

/* A supplier of pages that counts calls and the state at each call. */
struct lab4_pages {
    struct kmem_supplier supplier;
    const struct kmem_cache *cache; /* the cache that calls it */
    size_t limit;                   /* remaining pages; 8 at first */
    size_t out;
    size_t locked; /* calls with interrupts disabled: under the cache's lock */
    size_t idle;   /* calls while cache_holds was 0 */
    size_t still;  /* calls without kmem_transfer_begin */
    uint32_t mode; /* each call sets this flag of the cache */
};

extern struct lab4_pages lab4_pages;

/* The test's cache, with this supplier and without slabs. Its objects have no
 * constructor. */
struct kmem_cache *lab4_cache(size_t size, size_t align);

/* The same with a constructor and a destructor (NULL: none). */
struct kmem_cache *lab4_cache_of(size_t size, size_t align, kmem_ctor_t *ctor,
                                 kmem_dtor_t *dtor);

/* Enables interrupts, with all lines masked: then the flag shows whether a lock
 * is held. */
void lab4_irq_on(void);

/* Fails the test unless the cache's lock was released. */
#define LAB4_UNLOCKED(what)                                                    \
    do {                                                                       \
        if ((read_eflags() & EFLAGS_IF) == 0)                                  \
            KT_FAIL("the cache's lock is still held after %s", what);          \
        irq_enable();                                                          \
    } while (0)

/* Creates `n` slabs of a cache of small objects and puts them on its list in
 * order; slab[] gets them. False, and the test has failed, if there are no
 * pages. */
bool lab4_slabs(struct kmem_cache *cp, struct kmem_slab **slab, size_t n);

/* Releases the pages of these slabs, whatever the list is. lab4_pages_left
 * checks how many pages are then still allocated. */
void lab4_pages_back(struct kmem_slab **slab, size_t n);
void lab4_pages_left(void);
