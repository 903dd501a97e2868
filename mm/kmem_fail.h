/*
 * Failing allocations on purpose.
 */
#pragma once

#include "mm/kmem.h"
#include "mm/platform.h"

enum kmem_fail_kind {
    KMEM_FAIL_NONE,
    KMEM_FAIL_SLAB, /* an object: kmem_cache_alloc, kmem_alloc */
    KMEM_FAIL_PAGE, /* a page: of a slab, of a program */
};

/* From now on the n-th request of that kind fails, once. KMEM_FAIL_NONE ends
 * it. Caches that are made later do not take part. */
void kmem_fail_set(enum kmem_fail_kind kind, uint32_t n);

/* Whether it has happened since kmem_fail_set. */
bool kmem_fail_fired(void);

/* For the allocator: whether this request is to fail. */
bool kmem_fail_alloc(int flags);
bool kmem_fail_page_slow(void);

extern uint32_t kmem_fail_page_left; /* 0: none is set */

static inline bool kmem_fail_page(void)
{
    return unlikely(kmem_fail_page_left != 0) && kmem_fail_page_slow();
}
