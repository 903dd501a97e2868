/*
 * A table that its first user makes: see shared.h.
 *
 * Two processors may make one each. A compare-and-swap decides which is used;
 * the other is freed.
 */
#include "docs/labs/09-processors/services/shared.h"
#include "mm/kmem.h"

struct kmem_cache *squares_cache;

static struct squares *squares;

static struct squares *squares_make(void)
{
    struct squares *s = kmem_cache_alloc(squares_cache, KM_NOSLEEP);

    for (uint32_t n = 0; s != NULL && n < SQUARES; n++)
        s->square[n] = n * n;
    return s;
}

const struct squares *squares_get(void)
{
    struct squares *s = __atomic_load_n(&squares, __ATOMIC_ACQUIRE);
    struct squares *none = NULL;

    if (s != NULL)
        return s;
    s = squares_make();
    if (s != NULL &&
        !__atomic_compare_exchange_n(&squares, &none, s, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        kmem_cache_free(squares_cache, s);
        s = none;
    }
    return s;
}

void squares_drop(void)
{
    if (squares != NULL)
        kmem_cache_free(squares_cache, squares);
    squares = NULL;
}
