/*
 * Failing allocations on purpose, to test what their callers do then.
 */
#pragma once

#include "mm/kmem.h"

enum kmem_fail_kind {
    KMEM_FAIL_NONE,
    KMEM_FAIL_SLAB, /* an object: kmem_cache_alloc, kmem_alloc */
    KMEM_FAIL_PAGE, /* a page: of a slab, of a program */
};

/*
 * Which requests fail. Objects and pages are counted apart; only requests that
 * may fail count (KM_NOSLEEP; pages of any kind, since a KM_SLEEP caller just
 * tries again), and of these only those that fit all the conditions.
 */
struct kmem_fail {
    enum kmem_fail_kind fail_kind;
    uint32_t fail_nth;             /* the n-th, once; or 0: */
    uint32_t fail_rate;            /* one in so many, by chance */
    uint32_t fail_seed;            /* of that chance */
    struct kmem_cache *fail_cache; /* only this cache, NULL: any. Objects */
    uint32_t fail_task;            /* only this task, 0: any */
    uintptr_t fail_from, fail_to;  /* only with a caller in this range of
                                         addresses, both 0: any */
};

/* From now on requests fail as `f` says (copied). KMEM_FAIL_NONE ends it.
 * Caches that are made later do not take part. */
void kmem_fail(const struct kmem_fail *f);

/* The n-th request of that kind from now on, once. */
void kmem_fail_set(enum kmem_fail_kind kind, uint32_t n);

/* What is set, and how many requests fitted and failed since. */
void kmem_fail_stat(struct kmem_fail *out, uint32_t *fitted, uint32_t *failed);

/* Whether any has failed since it was set. */
bool kmem_fail_fired(void);

/* Whether failures of this cache's objects are set. */
bool kmem_fail_watches(const struct kmem_cache *cp);

/* Counts a request for an object, or for pages; whether it fails. */
bool kmem_fail_object(const struct kmem_cache *cp, int flags);
bool kmem_fail_page(void);
