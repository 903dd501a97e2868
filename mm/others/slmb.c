/*
 * SLMB: SLOB with lists for each processor (an article of 2017).
 *
 * The blocks, pages and searches of SLOB (mm/others/slob.c), but not its three
 * lists that all processors share. Each processor has a set of twelve, by the
 * size of the blocks, so that a search goes through fewer pages and processors
 * do not wait for each other:
 *
 *     processor 0      8  page <-> page
 *                     16  page
 *                      …
 *                    256  page <-> page <-> page
 *                   1024  page                  and all that are larger
 *
 *     processor 1      8  page
 *                      …
 *
 * An allocation searches one list of its own processor. If no page there has
 * room it gets a new one, even if another processor has a page with room. A
 * free puts the block into its page, on any list. A page that was full is
 * on no list, and then goes to the processor that frees: pages move to where
 * memory is freed.
 *
 * Sources: the hands-on article on Linux's slab allocators (2017). It leaves
 * open which list has blocks of more than 1024 bytes: the last. Each set has a
 * lock of its own. A free takes that of the set that has the page; if the page
 * is full, it takes it over for its own set first.
 *
 * What is said against it. The article: with 4 processors it needs 97 seconds
 * for a hackbench for which SLOB needs 121 and SLUB 50, and its locks remain
 * what limits it; on one processor and with one group of tasks it took twice as
 * long as SLOB. What can be seen here: twelve lists in the place of three leave
 * more pages partly filled, so it wastes more than SLOB from the start, and
 * more with each processor. It constructs objects anew, as SLOB does.
 */
#include "mm/others/slmb.h"
#include "mm/others/whole.h"
#include "mm/page.h"

/* A page has 2048 units. A free block of several has its length in the first,
 * and in the second where the next one is; one of a single unit has only that,
 * negative. The end of the page is where the list ends. */
typedef int16_t unit_t;

#define UNITS       ((int)(PAGE_SIZE / sizeof(unit_t)))
#define UNITS_OF(n) ((int)(((n) + sizeof(unit_t) - 1) / sizeof(unit_t)))
#define NONE        (-1) /* no block */

size_t slmb_bound[SLMB_CLASSES] = {8,  16, 24, 32,  40,  48,
                                   56, 64, 96, 128, 256, 1024};
struct list slmb_list[OTHER_CPUS][SLMB_CLASSES];
struct slmb_stat slmb_stat;

static struct other_heap heap;

/* ---- locks -------------------------------------------------------------- */

static mm_lock_t slmb_lock[OTHER_CPUS]; /* a set each */

static void slmb_set_lock(unsigned cpu)
{
    other_count_lock(&heap);
    other_share_part(&slmb_lock[cpu]);
}

static void slmb_set_unlock(unsigned cpu)
{
    other_unshare_part(&slmb_lock[cpu]);
}

/* What is known of the page goes with it. */
static void slmb_own(struct slmb_page *p, unsigned cpu)
{
    __atomic_store_n(&p->slmb_cpu, (uint8_t)cpu, __ATOMIC_RELEASE);
}

/* Locks the set that has the page, and returns which: a page may change sets.
 * If it is full, and thus on no list, it first becomes the running
 * processor's. */
static unsigned slmb_page_lock(struct slmb_page *p, unsigned cpu)
{
#if MM_MAGAZINES
    for (;;) {
        unsigned set = __atomic_load_n(&p->slmb_cpu, __ATOMIC_ACQUIRE);

        slmb_set_lock(set);
        if (__atomic_load_n(&p->slmb_cpu, __ATOMIC_ACQUIRE) == set) {
            if (set == cpu || p->slmb_units != 0)
                return set;
            slmb_own(p, cpu);
        }
        slmb_set_unlock(set);
    }
#else
    (void)p;
    slmb_set_lock(cpu);
    return cpu;
#endif
}

/* The first list whose bound is large enough, or the last. */
static unsigned slmb_class_of(size_t bytes)
{
    unsigned i = 0;

    while (i < SLMB_CLASSES - 1 && slmb_bound[i] < bytes)
        i++;
    return i;
}

/* ---- the free blocks of a page ------------------------------------------ */

static int slmb_block_length(const unit_t *page, int at)
{
    return page[at] > 0 ? page[at] : 1;
}

static int slmb_block_next(const unit_t *page, int at)
{
    return page[at] < 0 ? -page[at] : page[at + 1];
}

static void slmb_block_set(unit_t *page, int at, int units, int next)
{
    if (units > 1) {
        page[at] = (unit_t)units;
        page[at + 1] = (unit_t)next;
    } else {
        page[at] = (unit_t)-next;
    }
}

/* Lets the free block before, or the list's begin, lead to `at`. */
static void slmb_block_lead(struct slmb_page *p, unit_t *page, int prev, int at)
{
    if (prev == NONE)
        p->slmb_first = (uint16_t)at;
    else
        slmb_block_set(page, prev, slmb_block_length(page, prev), at);
}

/* Units from `b` to the first place at which the address `header` bytes further
 * on is aligned. */
static int slmb_block_gap(const unit_t *b, size_t header, size_t align)
{
    uintptr_t user = (uintptr_t)b + header;

    return (int)((ROUND_UP(user, align) - user) / sizeof(unit_t));
}

/* Takes `units` of the free block at `at`, after `skip` that stay free. */
static unit_t *slmb_block_carve(struct slmb_page *p, unit_t *page, int prev,
                                int at, int skip, int units)
{
    int rest = slmb_block_next(page, at);
    int left = slmb_block_length(page, at) - skip - units;

    if (left != 0) {
        slmb_block_set(page, at + skip + units, left, rest);
        rest = at + skip + units;
    }
    if (skip != 0)
        slmb_block_set(page, at, skip, rest);
    else
        slmb_block_lead(p, page, prev, rest);
    OTHER_ADD(slmb_stat.stat_gaps, skip != 0);
    p->slmb_units -= (uint16_t)units;
    return page + at + skip;
}

/* First fit: the first free block of the page that is large enough, or NULL. */
static unit_t *slmb_page_take(struct slmb_page *p, int units, size_t header,
                              size_t align)
{
    unit_t *page = supply_page(heap.heap_supply, p);
    int prev = NONE;

    for (int at = p->slmb_first; at != UNITS; at = slmb_block_next(page, at)) {
        int skip = slmb_block_gap(page + at, header, align);

        OTHER_ADD(slmb_stat.stat_blocks_scanned, 1);
        if (slmb_block_length(page, at) >= skip + units)
            return slmb_block_carve(p, page, prev, at, skip, units);
        prev = at;
    }
    return NULL;
}

/* Puts a block in its place on the list, joined with its free neighbours. */
static void slmb_page_give(struct slmb_page *p, unit_t *page, int at, int units)
{
    int after = p->slmb_first;
    int prev = NONE;

    MM_ASSERT(other_shares(&heap, &slmb_lock[p->slmb_cpu]));
    p->slmb_units += (uint16_t)units;
    for (; after < at; after = slmb_block_next(page, after))
        prev = after;
    MM_ASSERT(prev == NONE || prev + slmb_block_length(page, prev) <= at);
    MM_ASSERT(at + units <= after);
    if (at + units == after && after != UNITS) {
        units += slmb_block_length(page, after);
        after = slmb_block_next(page, after);
    }
    if (prev != NONE && prev + slmb_block_length(page, prev) == at) {
        slmb_block_set(page, prev, slmb_block_length(page, prev) + units,
                       after);
    } else {
        slmb_block_set(page, at, units, after);
        slmb_block_lead(p, page, prev, at);
    }
}

/* ---- blocks of all pages ------------------------------------------------ */

/* Next fit: the first page of the list that has room, which then is the first.
 * NULL: none has. The set is locked. */
static unit_t *slmb_list_take(struct list *list, int units, size_t header,
                              size_t align)
{
    list_for_each (l, list) {
        struct slmb_page *p = list_entry(l, struct slmb_page, slmb_link);
        unit_t *b = NULL;

        OTHER_ADD(slmb_stat.stat_pages_scanned, 1);
        if (p->slmb_units >= units)
            b = slmb_page_take(p, units, header, align);
        if (b == NULL)
            continue;
        if (p->slmb_units == 0) {
            list_remove(l);
        } else {
            list_remove(list);
            list_insert_before(l, list);
        }
        return b;
    }
    return NULL;
}

/* Puts a page that has free units on a list of the processor. */
static void slmb_enlist(struct slmb_page *p, unsigned cpu)
{
    MM_ASSERT(other_shares(&heap, &slmb_lock[cpu]));
    slmb_own(p, cpu);
    list_insert_after(&slmb_list[cpu][p->slmb_class], &p->slmb_link);
}

/* Whether another processor has a page of the class with so much room. */
static bool slmb_elsewhere(unsigned class, int units)
{
    for (unsigned i = 0; i < other_cpus; i++)
        list_for_each (l, &slmb_list[i][class])
            if (list_entry(l, struct slmb_page, slmb_link)->slmb_units >= units)
                return true;
    return false;
}

/* Pages with blocks that the heap has got, or returns. A set is locked. */
static void slmb_count_page(ptrdiff_t pages)
{
    other_count_external(&heap, pages * (ptrdiff_t)PAGE_SIZE);
    other_share(&heap);
    other_count_pages(&heap, pages);
    other_unshare(&heap);
}

/* A page that is one free block; the rest of its descriptor is zero. */
static void slmb_add_page(unit_t *page, unsigned class, unsigned cpu)
{
    struct slmb_page *p = other_page(&heap, page);

    MM_ASSERT(other_shares(&heap, &slmb_lock[cpu]));
    p->slmb_used = 1;
    p->slmb_class = (uint8_t) class;
    p->slmb_units = UNITS;
    slmb_block_set(page, 0, UNITS, UNITS);
    slmb_enlist(p, cpu);
    slmb_count_page(1);
}

/* A block of `bytes` whose address is aligned after `header` of them, which
 * holds `size` of a client; NULL: there is no memory. */
static void *slmb_block_alloc(size_t bytes, size_t header, size_t align,
                              size_t size, struct other_cache *c)
{
    unsigned cpu = other_enter(&heap), class = slmb_class_of(bytes);
    int units = UNITS_OF(bytes);
    unit_t *page, *b;

    slmb_set_lock(cpu);
    b = slmb_list_take(&slmb_list[cpu][class], units, header, align);
    if (b == NULL) {
        slmb_set_unlock(cpu);
        other_leave(&heap);
        page = supply_alloc(heap.heap_supply, 1, PAGE_SIZE);
        cpu = other_enter(&heap);
        slmb_set_lock(cpu);
        if (page != NULL) {
            OTHER_ADD(slmb_stat.stat_missed, slmb_elsewhere(class, units));
            slmb_add_page(page, class, cpu);
            b = slmb_list_take(&slmb_list[cpu][class], units, header, align);
        }
    }
    if (b != NULL) {
        other_count_external(&heap, -units * (ptrdiff_t)sizeof(unit_t));
        other_count_alloc(&heap, c, size, (size_t)units * sizeof(unit_t),
                          header);
    } else {
        other_count_fail(&heap, c);
    }
    slmb_set_unlock(cpu);
    other_leave(&heap);
    return b;
}

static void slmb_block_free(void *b, size_t bytes, size_t header, size_t size,
                            struct other_cache *c)
{
    struct slmb_page *p = other_page(&heap, b);
    unit_t *page = supply_page(heap.heap_supply, p);
    unsigned cpu = other_enter(&heap), set = slmb_page_lock(p, cpu);
    int units = UNITS_OF(bytes);
    bool empty, full;

    other_count_external(&heap, units * (ptrdiff_t)sizeof(unit_t));
    other_count_free(&heap, c, size, (size_t)units * sizeof(unit_t), header);
    empty = p->slmb_units + units == UNITS;
    full = p->slmb_units == 0;
    OTHER_ADD(slmb_stat.stat_foreign, !full && p->slmb_cpu != cpu);
    if (empty) {
        if (!full)
            list_remove(&p->slmb_link);
        p->slmb_used = 0;
        slmb_count_page(-1);
    } else {
        OTHER_ADD(slmb_stat.stat_migrated, full && p->slmb_cpu != cpu);
        if (full)
            slmb_enlist(p, cpu);
        slmb_page_give(p, page, (int)((unit_t *)b - page), units);
    }
    slmb_set_unlock(set);
    other_leave(&heap);
    if (empty)
        supply_free(heap.heap_supply, page, 1);
}

/* ---- the operations ----------------------------------------------------- */

static void slmb_init(struct supply *s)
{
    other_init(&heap, "slmb", s);
    slmb_stat = (struct slmb_stat){0};
    for (unsigned i = 0; i < OTHER_CPUS; i++) {
        mm_lock_init(&slmb_lock[i], "slmb set", LOCK_RANK_SET);
        for (unsigned j = 0; j < SLMB_CLASSES; j++)
            list_init(&slmb_list[i][j]);
    }
}

static void *slmb_alloc(size_t size)
{
    uint32_t *b;

    if (size == 0)
        return OTHER_NOTHING;
    if (size >= PAGE_SIZE - SLMB_HEADER)
        return other_whole_alloc(&heap, NULL, size);
    b = slmb_block_alloc(size + SLMB_HEADER, SLMB_HEADER, SLMB_HEADER, size,
                         NULL);
    if (b == NULL)
        return NULL;
    *b = (uint32_t)size;
    return (char *)b + SLMB_HEADER;
}

static void slmb_free(void *p, size_t size)
{
    const uint32_t *b = (const uint32_t *)((char *)p - SLMB_HEADER);
    const struct slmb_page *page;

    if (p == OTHER_NOTHING)
        return;
    page = other_page(&heap, p);
    if (!page->slmb_used) {
        other_whole_free(&heap, NULL, p, size);
        return;
    }
    if (*b != size)
        mm_panic("slmb: %p was allocated with %u bytes, freed with %zu", p, *b,
                 size);
    slmb_block_free((char *)p - SLMB_HEADER, size + SLMB_HEADER, SLMB_HEADER,
                    size, NULL);
}

static void *slmb_cache_alloc(struct other_cache *c)
{
    size_t size = c->other_size;
    void *obj;

    if (size >= PAGE_SIZE)
        obj = other_whole_alloc(&heap, c, size);
    else
        obj =
            slmb_block_alloc(ROUND_UP(size, sizeof(unit_t)), 0,
                             MAX(c->other_align, (size_t)SLMB_HEADER), size, c);
    if (obj != NULL && c->other_ctor != NULL)
        c->other_ctor(obj, size);
    return obj;
}

static void slmb_cache_free(struct other_cache *c, void *obj)
{
    size_t size = c->other_size;

    if (c->other_dtor != NULL)
        c->other_dtor(obj, size);
    if (size >= PAGE_SIZE)
        other_whole_free(&heap, c, obj, size);
    else
        slmb_block_free(obj, ROUND_UP(size, sizeof(unit_t)), 0, size, c);
}

/* ---- looking ------------------------------------------------------------ */

/* NULL, or what is wrong with a page that has blocks. */
static const char *slmb_check_page(struct slmb_page *p)
{
    const unit_t *page = supply_page(heap.heap_supply, p);
    int units = 0, end = NONE;

    for (int at = p->slmb_first; at != UNITS; at = slmb_block_next(page, at)) {
        if (at <= end || at > UNITS || slmb_block_length(page, at) > UNITS - at)
            return "the free list of a page does not ascend, or has neighbours";
        end = at + slmb_block_length(page, at);
        units += slmb_block_length(page, at);
    }
    if (units != p->slmb_units || units == UNITS)
        return "the free units of a page are not as many as are counted";
    return NULL;
}

/* Of all pages: adds up what is free, and counts those with free units. */
static const char *slmb_check_pages(size_t *free, size_t *open)
{
    const struct supply *s = heap.heap_supply;
    const char *wrong = NULL;

    for (size_t i = 0; wrong == NULL && i < s->supply_pages; i++) {
        struct slmb_page *p = (struct slmb_page *)s->supply_info[i];

        if (!p->slmb_used)
            continue;
        wrong = slmb_check_page(p);
        *free += p->slmb_units * sizeof(unit_t);
        *open += p->slmb_units != 0;
    }
    return wrong;
}

static const char *slmb_check_lists(size_t open)
{
    size_t listed = 0;

    for (unsigned i = 0; i < OTHER_CPUS; i++)
        for (unsigned j = 0; j < SLMB_CLASSES; j++)
            list_for_each (l, &slmb_list[i][j]) {
                const struct slmb_page *p =
                    list_entry(l, struct slmb_page, slmb_link);

                if (++listed > open || p->slmb_class != j || p->slmb_cpu != i ||
                    p->slmb_units == 0)
                    return "a list has a page that is full, or of another list";
            }
    return listed == open ? NULL : "a page with free units is on no list";
}

static const char *slmb_check(void)
{
    size_t free = 0, open = 0;
    const char *wrong;

    other_stop(&heap);
    wrong = slmb_check_pages(&free, &open);
    if (wrong == NULL)
        wrong = slmb_check_lists(open);
    if (wrong == NULL && free != other_total(&heap).stat_external)
        wrong = "free bytes are not as many as are counted";
    if (wrong == NULL)
        wrong = other_check(&heap, free);
    other_resume(&heap);
    return wrong;
}

static void slmb_other_stat(struct other_stat *out)
{
    other_counted_stat(&heap, out);
}

const struct other_allocator slmb_allocator = {
    .op_name = "slmb",
    .op_init = slmb_init,
    .op_cache_alloc = slmb_cache_alloc,
    .op_cache_free = slmb_cache_free,
    .op_alloc = slmb_alloc,
    .op_free = slmb_free,
    .op_stat = slmb_other_stat,
    .op_check = slmb_check,
};
