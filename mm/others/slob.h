/*
 * SLOB's parameters, its own counts and its structures, for tests, the check of
 * invariants, and SLMB (mm/others/slmb.c), which has the same pages, searches
 * and operations.
 */
#pragma once

#include "mm/others/others.h"
#include "mm/others/whole.h"

/* Bytes before a block of alloc(), 4 or 8, to which its address is aligned,
 * too. What a 64-bit integer is aligned to, on a 32-bit x86 8. */
extern unsigned slob_header;

/* Whether a size of alloc() that is a power of two is a multiple of that
 * address, as of Linux 5.4. */
extern bool slob_pow2;

enum slob_class {
    SLOB_SMALL,
    SLOB_MEDIUM,
    SLOB_LARGE,
    SLOB_CLASSES
};

/* The descriptor of a page. */
struct slob_page {
    struct list slob_link; /* on a list, if it has free units */
    uint16_t slob_first;   /* the first free block, in units from the start */
    uint16_t slob_units;   /* that are free */
    uint8_t slob_used;     /* 1: it has blocks; 0: of whole pages, or of none */
    uint8_t slob_class;    /* which list, */
    uint8_t slob_cpu;      /* of SLMB: and of which processor */
};

extern struct list slob_list[SLOB_CLASSES];

extern struct slob_stat {
    uint64_t stat_pages_scanned;  /* by allocations */
    uint64_t stat_blocks_scanned; /* in them */
    uint64_t stat_gaps;           /* free blocks that alignment has left */
} slob_stat;

/* ---- pages -------------------------------------------------------------- */

/* A page has 2048 units. A free block of several has its length in the first,
 * and in the second where the next one is; one of a single unit has only that,
 * negative. The end of the page is where the list ends. */
typedef int16_t slob_unit;

#define SLOB_UNITS ((int)(PAGE_SIZE / sizeof(slob_unit)))
#define SLOB_UNITS_OF(n)                                                       \
    ((int)(((n) + sizeof(slob_unit) - 1) / sizeof(slob_unit)))

/* Of the free block at unit `at`: its units, and where the next one is. */
int slob_block_length(const slob_unit *page, int at);
int slob_block_next(const slob_unit *page, int at);

/* A new page, all of which is one free block. It is on no list yet. */
void slob_page_begin(struct slob_page *p, slob_unit *page, unsigned class);

/* Puts a block in its place on the page's list, joined with its free
 * neighbours. */
void slob_page_give(struct slob_page *p, slob_unit *page, int at, int units);

/* A block of the first page of a list that has one of so many units, with an
 * address that is aligned after `header` bytes. NULL: none has. A page that is
 * full then leaves the list. */
slob_unit *slob_take(const struct supply *s, struct list *list, int units,
                     size_t header, size_t align);

/* NULL, or the first broken invariant (mm/others/inspect/slob.c). There are `n`
 * lists, for each processor `classes`. */
const char *slob_verify(struct other_heap *h, struct list *lists, unsigned n,
                        unsigned classes);

/* ---- the operations ----------------------------------------------------- */

/*
 * Defines the allocator `own`. Its heap is named `own` too, and its functions
 * begin with own_: own_block_alloc and own_block_free handle blocks smaller
 * than a page. A block of alloc() has its size in the `header` bytes before it.
 * Its address is a multiple of `align`, an expression that may contain the
 * request's `size`. A macro, so that no operation calls through a pointer.
 */
#define SLOB_ALLOCATOR(own, header, align)                                     \
    static void *own##_alloc(size_t size)                                      \
    {                                                                          \
        uint32_t *b;                                                           \
                                                                               \
        if (size == 0)                                                         \
            return OTHER_NOTHING;                                              \
        if (size >= PAGE_SIZE - (header))                                      \
            return other_whole_alloc(&own, NULL, size);                        \
        b = own##_block_alloc(size + (header), header, align, size, NULL);     \
        if (b == NULL)                                                         \
            return NULL;                                                       \
        *b = (uint32_t)size;                                                   \
        return (char *)b + (header);                                           \
    }                                                                          \
                                                                               \
    static void own##_free(void *p, size_t size)                               \
    {                                                                          \
        uint32_t *b = (uint32_t *)((char *)p - (header));                      \
        struct slob_page *page;                                                \
                                                                               \
        if (p == OTHER_NOTHING)                                                \
            return;                                                            \
        page = other_page(&own, p);                                            \
        if (!page->slob_used) {                                                \
            other_whole_free(&own, NULL, p, size);                             \
            return;                                                            \
        }                                                                      \
        if (*b != size)                                                        \
            mm_panic(#own ": %p was allocated with %u bytes, freed with %zu",  \
                     p, *b, size);                                             \
        own##_block_free(page, b, header, size, NULL);                         \
    }                                                                          \
                                                                               \
    static void *own##_cache_alloc(struct other_cache *c)                      \
    {                                                                          \
        size_t size = c->other_size;                                           \
        void *obj;                                                             \
                                                                               \
        if (size >= PAGE_SIZE)                                                 \
            obj = other_whole_alloc(&own, c, size);                            \
        else                                                                   \
            obj = own##_block_alloc(ROUND_UP(size, sizeof(slob_unit)), 0,      \
                                    MAX(c->other_align, (size_t)(header)),     \
                                    size, c);                                  \
        return other_construct(c, obj);                                        \
    }                                                                          \
                                                                               \
    static void own##_cache_free(struct other_cache *c, void *obj)             \
    {                                                                          \
        size_t size = c->other_size;                                           \
        struct slob_page *page;                                                \
                                                                               \
        other_destroy(c, obj);                                                 \
        if (size >= PAGE_SIZE) {                                               \
            other_whole_free(&own, c, obj, size);                              \
            return;                                                            \
        }                                                                      \
        page = other_page(&own, obj);                                          \
        if (!page->slob_used)                                                  \
            mm_panic(#own ": %p is not an object of %zu bytes", obj, size);    \
        own##_block_free(page, obj, 0, size, c);                               \
    }                                                                          \
                                                                               \
    static void own##_counts(struct other_stat *out)                           \
    {                                                                          \
        other_counted_stat(&own, out);                                         \
    }                                                                          \
                                                                               \
    const struct other_allocator own##_allocator = {                           \
        .op_name = #own,                                                       \
        .op_init = own##_init,                                                 \
        .op_cache_alloc = own##_cache_alloc,                                   \
        .op_cache_free = own##_cache_free,                                     \
        .op_alloc = own##_alloc,                                               \
        .op_free = own##_free,                                                 \
        .op_stat = own##_counts,                                               \
        .op_check = own##_check,                                               \
    }
