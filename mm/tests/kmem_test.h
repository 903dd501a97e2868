/*
 * What the tests of mm/ share: a page supplier that counts and can be
 * exhausted, objects that record whether they are constructed, and the geometry
 * of a cache computed from the rules alone.
 *
 * Tests run in the kernel, where structures are those of a 32-bit machine, and
 * on the host, where they are larger; expectations follow from TEST_H, the size
 * of a slab's header.
 */
#pragma once

#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "mm/buddy.h"
#include "mm/debug/debug_impl.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/segkmem.h"

#ifdef MM_HOST
#include "mm/tests/host/host.h"
#endif

#define TEST_H    sizeof(struct kmem_slab)
#define TEST_WORD sizeof(void *)

/* A count for the kernel, and a larger one for the host. */
#ifdef MM_HOST
#define TEST_MANY(kernel, host) (host)
#else
#define TEST_MANY(kernel, host) (kernel)
#endif

/* ---- a page supplier of one's own --------------------------------------- */

struct test_supply {
    struct kmem_supplier supply; /* to pass to kmem_cache_create_from */
    size_t limit;                /* pages that it may allocate at a time */
    size_t held;                 /* pages allocated now */
    size_t gets;                 /* calls that got pages */
    size_t frees;
    size_t fails;
};

/* Pages come from buddy, at most `limit` at a time. They are filled with a
 * pattern when they are allocated and when they are freed. */
void test_supply_init(struct test_supply *s, size_t limit);

/* A cache of objects of `size` bytes, without a constructor, that allocates its
 * pages from `s`, which is initialized. */
struct kmem_cache *test_supply_cache(struct test_supply *s, size_t limit,
                                     size_t size);

/* ---- all of memory ------------------------------------------------------ */

/* Allocates every free page of the machine, after reaping all caches.
 * test_flood_release frees `pages` single pages, test_flood_end all. */
void test_flood(void);
void test_flood_release(size_t pages);
void test_flood_end(void);

/* Allocates all free objects of the allocator's own caches too: the next
 * allocation from them then needs a page, and there is none. After
 * test_flood. */
void test_starve(void);
void test_starve_end(void);

/* ---- constructed objects ------------------------------------------------ */

extern size_t test_ctors; /* calls since test_constructed_reset */
extern size_t test_dtors;
extern size_t test_bad; /* objects found not constructed, or twice */
void test_constructed_reset(void);

/* Fill the whole object with a pattern made from its address, and check it. */
void test_ctor(void *obj, size_t size);
void test_dtor(void *obj, size_t size);
bool test_is_constructed(const void *obj, size_t size);

/* ---- objects by number -------------------------------------------------- */

/* The objects that a case has allocated. */
#define TEST_OBJS TEST_MANY(4096, 65536)
extern void *test_obj[TEST_OBJS];

/* Allocates test_obj[from … to-1], KM_NOSLEEP. */
void test_alloc(struct kmem_cache *cp, size_t from, size_t to);

/* Frees test_obj[from … to-1], in that order. */
void test_free(struct kmem_cache *cp, size_t from, size_t to);

/* Destroys a cache, which must have no allocated object. */
void test_destroy(struct kmem_cache *cp);

/* ---- looking inside ----------------------------------------------------- */

/* The slab of a live object, large or small. */
struct kmem_slab *test_slab_of(struct kmem_cache *cp, const void *buf);

/* Slab number n in list order; NULL beyond the end. */
struct kmem_slab *test_slab(struct kmem_cache *cp, size_t n);

struct test_geometry {
    bool large;
    size_t chunk;
    size_t pages;
    size_t objects;
    size_t left;
    size_t colour_max;
};

/* From the rules alone: sections 2 to 4 of the statements. */
struct test_geometry test_geometry(size_t size, size_t align, bool constructed);

/* The geometry that a cache of that kind would have; allocates no pages. */
struct kmem_cache *test_setup(size_t size, size_t align, bool constructed);

struct kmem_cache_stat test_stat(struct kmem_cache *cp);

/* Verifies the cache, or the whole heap if `cp` is NULL. Fails the case at this
 * line if the violation found, or its place, is not the expected one; NULL:
 * none. */
#define TEST_VERIFY_SAYS(cp, what) test_verify(__FILE__, __LINE__, cp, what)
#define TEST_VERIFY(cp)            TEST_VERIFY_SAYS(cp, NULL)
void test_verify(const char *file, int line, struct kmem_cache *cp,
                 const char *what);

/* The verifier reports a violation in `cp` at the place that the format
 * gives. */
#define TEST_VERIFY_AT(cp, ...)                                                \
    test_verify_at(__FILE__, __LINE__, cp, __VA_ARGS__)
void test_verify_at(const char *file, int line, struct kmem_cache *cp,
                    const char *fmt, ...) PRINTF_LIKE(4, 5);

/* Breaks an invariant, which the verifier must report, and repairs it; then the
 * verifier must report nothing. */
#define TEST_POKE(cp, field, value, what)                                      \
    do {                                                                       \
        __typeof__(field) poke_saved = (field);                                \
        (field) = (value);                                                     \
        TEST_VERIFY_SAYS(cp, what);                                            \
        (field) = poke_saved;                                                  \
        TEST_VERIFY(NULL);                                                     \
    } while (0)

/* Between these two, the clock causes no working-set update. */
void test_clock_stop(void);
void test_clock_start(void);

/* A cache of objects of 500 bytes, eight in a slab, with `slabs` slabs of them
 * in test_obj[] and the clock stopped; and its end, when all are free. */
#define TEST_WS_PER 8
struct kmem_cache *test_ws_make(size_t slabs);
void test_ws_end(struct kmem_cache *cp);

/* Free slabs, their minimum, and the limit must be these. */
void test_ws_expect(struct kmem_cache *cp, size_t t, size_t m, size_t l);

/* A small generator: the same numbers everywhere. */
uint32_t test_random(uint32_t *state);
