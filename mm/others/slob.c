/*
 * SLOB: a simple list of blocks (Linux 2.6.16 to 6.3; Mackall).
 *
 * Kernighan and Ritchie's allocator, in single pages. A page has a list of its
 * free blocks, lowest address first, and the first that is large enough is
 * used. The list is inside the free blocks:
 *
 *     page    0            0x70       0x140    0x180
 *             | 100 + 8 |gap| 200 + 8 | 50 + 8 |gap| 28 + 8 | free            |
 *                        └───────────────────── └────────── └──────> end
 *
 * Pages with free blocks are on one of three lists, by the size of the requests
 * that they serve, so that long-lived small blocks do not split pages that
 * larger ones need:
 *
 *     small   (< 256)    page <-> page <-> page
 *     medium  (< 1024)   page <-> page
 *     large              page
 *
 * The search goes through the list from its first page. Where it succeeds, the
 * list is rotated so that the next search begins there (Knuth's next fit). A
 * page without a free block is on no list. A page without a used block goes
 * back at once.
 *
 * There are no size classes: a cache is only a remembered size. A block of
 * alloc() begins with its size, 8 bytes that a block of a cache has not.
 *
 * Sources: mm/slob.c of Linux; the unit of 2 bytes, the three lists, and the
 * rotation are its own. The article on slab allocators of 2017 (SLMB) begins
 * with it.
 *
 * What is said against it. The Linux talk: the most compact of the three after
 * boot, "as long as there is little churn", and the slowest in every table,
 * since one lock guards all pages and the search is linear: some 30 times SLUB
 * when processors compete. The slab paper, of sequential fits in general: time
 * and fragmentation depend on the history of all other requests, and each
 * allocation constructs its object anew.
 */
#include "mm/others/slob.h"
#include "mm/others/whole.h"
#include "mm/page.h"

/* A page has 2048 units. A free block of several has its length in the first,
 * and in the second where the next one is; one of a single unit has only that,
 * negative. The end of the page is where the list ends. */
typedef int16_t unit_t;

#define UNITS       ((int)(PAGE_SIZE / sizeof(unit_t)))
#define UNITS_OF(n) ((int)(((n) + sizeof(unit_t) - 1) / sizeof(unit_t)))
#define NONE        (-1) /* no block */

unsigned slob_header = 8;
bool slob_pow2;
struct list slob_list[SLOB_CLASSES];

static struct other_heap heap;
static struct slob_stat stat;
static size_t free_bytes; /* in all pages that have blocks */

static enum slob_class class_of(size_t bytes)
{
    return bytes < 256 ? SLOB_SMALL : bytes < 1024 ? SLOB_MEDIUM : SLOB_LARGE;
}

/* ---- the free blocks of a page ------------------------------------------ */

static int block_length(const unit_t *page, int at)
{
    return page[at] > 0 ? page[at] : 1;
}

static int block_next(const unit_t *page, int at)
{
    return page[at] < 0 ? -page[at] : page[at + 1];
}

static void block_set(unit_t *page, int at, int units, int next)
{
    if (units > 1) {
        page[at] = (unit_t)units;
        page[at + 1] = (unit_t)next;
    } else {
        page[at] = (unit_t)-next;
    }
}

/* Lets the free block before, or the list's begin, lead to `at`. */
static void block_lead(struct slob_page *p, unit_t *page, int prev, int at)
{
    if (prev == NONE)
        p->slob_first = (uint16_t)at;
    else
        block_set(page, prev, block_length(page, prev), at);
}

/* Units from `b` to the first place at which the address `header` bytes further
 * on is aligned. */
static int block_gap(const unit_t *b, size_t header, size_t align)
{
    uintptr_t user = (uintptr_t)b + header;

    return (int)((ROUND_UP(user, align) - user) / sizeof(unit_t));
}

/* Takes `units` of the free block at `at`, after `skip` that stay free. */
static unit_t *block_carve(struct slob_page *p, unit_t *page, int prev, int at,
                           int skip, int units)
{
    int rest = block_next(page, at);
    int left = block_length(page, at) - skip - units;

    if (left != 0) {
        block_set(page, at + skip + units, left, rest);
        rest = at + skip + units;
    }
    if (skip != 0)
        block_set(page, at, skip, rest);
    else
        block_lead(p, page, prev, rest);
    stat.stat_gaps += skip != 0;
    p->slob_units -= (uint16_t)units;
    return page + at + skip;
}

/* First fit: the first free block of the page that is large enough, or NULL. */
static unit_t *page_take(struct slob_page *p, int units, size_t header,
                         size_t align)
{
    unit_t *page = supply_page(heap.heap_supply, p);
    int prev = NONE;

    for (int at = p->slob_first; at != UNITS; at = block_next(page, at)) {
        int skip = block_gap(page + at, header, align);

        stat.stat_blocks_scanned++;
        if (block_length(page, at) >= skip + units)
            return block_carve(p, page, prev, at, skip, units);
        prev = at;
    }
    return NULL;
}

/* Puts a block in its place on the list, joined with its free neighbours. */
static void page_give(struct slob_page *p, unit_t *page, int at, int units)
{
    int after = p->slob_first;
    int prev = NONE;

    p->slob_units += (uint16_t)units;
    for (; after < at; after = block_next(page, after))
        prev = after;
    MM_ASSERT(prev == NONE || prev + block_length(page, prev) <= at);
    MM_ASSERT(at + units <= after);
    if (at + units == after && after != UNITS) {
        units += block_length(page, after);
        after = block_next(page, after);
    }
    if (prev != NONE && prev + block_length(page, prev) == at) {
        block_set(page, prev, block_length(page, prev) + units, after);
    } else {
        block_set(page, at, units, after);
        block_lead(p, page, prev, at);
    }
}

/* ---- blocks of all pages ------------------------------------------------ */

/* Next fit: the first page of the list that has room, which then is the first.
 * NULL: none has. */
static unit_t *list_take(struct list *list, int units, size_t header,
                         size_t align)
{
    MM_ASSERT(mm_lock_held(&heap.heap_lock));
    list_for_each (l, list) {
        struct slob_page *p = list_entry(l, struct slob_page, slob_link);
        unit_t *b = NULL;

        stat.stat_pages_scanned++;
        if (p->slob_units >= units)
            b = page_take(p, units, header, align);
        if (b == NULL)
            continue;
        if (p->slob_units == 0) {
            list_remove(l);
        } else {
            list_remove(list);
            list_insert_before(l, list);
        }
        return b;
    }
    return NULL;
}

/* A page that is one free block; the rest of its descriptor is zero. */
static void add_page(unit_t *page, enum slob_class class)
{
    struct slob_page *p = other_page(&heap, page);

    MM_ASSERT(mm_lock_held(&heap.heap_lock));
    p->slob_used = 1;
    p->slob_class = class;
    p->slob_units = UNITS;
    block_set(page, 0, UNITS, UNITS);
    list_insert_after(&slob_list[class], &p->slob_link);
    free_bytes += PAGE_SIZE;
    other_count_pages(&heap, 1);
}

/* A block of `bytes` whose address is aligned after `header` of them, which
 * holds `size` of a client; NULL: there is no memory. */
static void *block_alloc(size_t bytes, size_t header, size_t align, size_t size,
                         struct other_cache *c)
{
    struct list *list = &slob_list[class_of(bytes)];
    int units = UNITS_OF(bytes);
    unit_t *page, *b;

    other_lock(&heap);
    b = list_take(list, units, header, align);
    if (b == NULL) {
        other_unlock(&heap);
        page = supply_alloc(heap.heap_supply, 1, PAGE_SIZE);
        other_lock(&heap);
        if (page != NULL) {
            add_page(page, class_of(bytes));
            b = list_take(list, units, header, align);
        }
    }
    if (b != NULL) {
        free_bytes -= (size_t)units * sizeof(unit_t);
        other_count_alloc(&heap, c, size, (size_t)units * sizeof(unit_t),
                          header);
    } else {
        other_count_fail(&heap, c);
    }
    other_unlock(&heap);
    return b;
}

static void block_free(void *b, size_t bytes, size_t header, size_t size,
                       struct other_cache *c)
{
    struct slob_page *p = other_page(&heap, b);
    unit_t *page = supply_page(heap.heap_supply, p);
    int units = UNITS_OF(bytes);
    bool empty;

    other_lock(&heap);
    free_bytes += (size_t)units * sizeof(unit_t);
    other_count_free(&heap, c, size, (size_t)units * sizeof(unit_t), header);
    empty = p->slob_units + units == UNITS;
    if (empty && p->slob_units != 0)
        list_remove(&p->slob_link);
    if (empty) {
        p->slob_used = 0;
        free_bytes -= PAGE_SIZE;
        other_count_pages(&heap, -1);
    } else {
        if (p->slob_units == 0)
            list_insert_after(&slob_list[p->slob_class], &p->slob_link);
        page_give(p, page, (int)((unit_t *)b - page), units);
    }
    other_unlock(&heap);
    if (empty)
        supply_free(heap.heap_supply, page, 1);
}

/* ---- the operations ----------------------------------------------------- */

static void slob_init(struct supply *s)
{
    other_init(&heap, "slob", s);
    stat = (struct slob_stat){0};
    free_bytes = 0;
    for (int i = 0; i < SLOB_CLASSES; i++)
        list_init(&slob_list[i]);
}

static void *slob_alloc(size_t size)
{
    bool aligned = slob_pow2 && (size & (size - 1)) == 0;
    uint32_t *b;

    if (size == 0)
        return OTHER_NOTHING;
    if (size >= PAGE_SIZE - slob_header)
        return other_whole_alloc(&heap, NULL, size);
    b = block_alloc(size + slob_header, slob_header,
                    aligned ? MAX(size, slob_header) : slob_header, size, NULL);
    if (b == NULL)
        return NULL;
    *b = (uint32_t)size;
    return (char *)b + slob_header;
}

static void slob_free(void *p, size_t size)
{
    const uint32_t *b = (const uint32_t *)((char *)p - slob_header);
    const struct slob_page *page;

    if (p == OTHER_NOTHING)
        return;
    page = other_page(&heap, p);
    if (!page->slob_used) {
        other_whole_free(&heap, NULL, p, size);
        return;
    }
    if (*b != size)
        mm_panic("slob: %p was allocated with %u bytes, freed with %zu", p, *b,
                 size);
    block_free((char *)p - slob_header, size + slob_header, slob_header, size,
               NULL);
}

static void *slob_cache_alloc(struct other_cache *c)
{
    size_t size = c->other_size;
    void *obj;

    if (size >= PAGE_SIZE)
        obj = other_whole_alloc(&heap, c, size);
    else
        obj = block_alloc(ROUND_UP(size, sizeof(unit_t)), 0,
                          MAX(c->other_align, slob_header), size, c);
    if (obj != NULL && c->other_ctor != NULL)
        c->other_ctor(obj, size);
    return obj;
}

static void slob_cache_free(struct other_cache *c, void *obj)
{
    size_t size = c->other_size;

    if (c->other_dtor != NULL)
        c->other_dtor(obj, size);
    if (size >= PAGE_SIZE)
        other_whole_free(&heap, c, obj, size);
    else
        block_free(obj, ROUND_UP(size, sizeof(unit_t)), 0, size, c);
}

/* ---- looking ------------------------------------------------------------ */

bool slob_free_block(const void *page, unsigned *at, unsigned *units)
{
    *units =
        *at == (unsigned)UNITS ? 0 : (unsigned)block_length(page, (int)*at);
    return *units != 0;
}

/* NULL, or what is wrong with a page that has blocks. */
static const char *slob_check_page(struct slob_page *p)
{
    const unit_t *page = supply_page(heap.heap_supply, p);
    int units = 0, end = NONE;

    for (int at = p->slob_first; at != UNITS; at = block_next(page, at)) {
        if (at <= end || at > UNITS || block_length(page, at) > UNITS - at)
            return "the free list of a page does not ascend, or has neighbours";
        end = at + block_length(page, at);
        units += block_length(page, at);
    }
    if (units != p->slob_units || units == UNITS)
        return "the free units of a page are not as many as are counted";
    return NULL;
}

/* Of all pages: adds up what is free, and counts those with free units. */
static const char *slob_check_pages(size_t *free, size_t *open)
{
    const struct supply *s = heap.heap_supply;
    const char *wrong = NULL;

    for (size_t i = 0; wrong == NULL && i < s->supply_pages; i++) {
        struct slob_page *p = (struct slob_page *)s->supply_info[i];

        if (!p->slob_used)
            continue;
        wrong = slob_check_page(p);
        *free += p->slob_units * sizeof(unit_t);
        *open += p->slob_units != 0;
    }
    return wrong;
}

static const char *slob_check_lists(size_t open)
{
    size_t listed = 0;

    for (int i = 0; i < SLOB_CLASSES; i++)
        list_for_each (l, &slob_list[i]) {
            const struct slob_page *p =
                list_entry(l, struct slob_page, slob_link);

            if (++listed > open || p->slob_class != i || p->slob_units == 0)
                return "a list has a page that is full, or of another list";
        }
    return listed == open ? NULL : "a page with free units is on no list";
}

static const char *slob_check(void)
{
    size_t free = 0, open = 0;
    const char *wrong;

    other_stop(&heap);
    wrong = slob_check_pages(&free, &open);
    if (wrong == NULL)
        wrong = slob_check_lists(open);
    if (wrong == NULL && free != free_bytes)
        wrong = "free bytes are not as many as are counted";
    if (wrong == NULL)
        wrong = other_check(&heap, free_bytes);
    other_resume(&heap);
    return wrong;
}

static void slob_other_stat(struct other_stat *out)
{
    other_lock(&heap);
    other_stat(&heap, free_bytes, out);
    other_unlock(&heap);
}

void slob_stat(struct slob_stat *out)
{
    const struct supply *s = heap.heap_supply;

    other_lock(&heap);
    *out = stat;
    for (size_t i = 0; i < s->supply_pages; i++) {
        const struct slob_page *p = (struct slob_page *)s->supply_info[i];

        out->stat_listed[p->slob_class] += p->slob_used && p->slob_units != 0;
        out->stat_full += p->slob_used && p->slob_units == 0;
    }
    other_unlock(&heap);
}

const struct other_allocator slob_allocator = {
    .op_name = "slob",
    .op_init = slob_init,
    .op_cache_alloc = slob_cache_alloc,
    .op_cache_free = slob_cache_free,
    .op_alloc = slob_alloc,
    .op_free = slob_free,
    .op_stat = slob_other_stat,
    .op_check = slob_check,
};
