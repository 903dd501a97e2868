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
#include "mm/page.h"

#define NONE (-1) /* no block */

unsigned slob_header = 8;
bool slob_pow2;
struct list slob_list[SLOB_CLASSES];
struct slob_stat slob_stat;

static struct other_heap slob;

static enum slob_class class_of(size_t bytes)
{
    return bytes < 256 ? SLOB_SMALL : bytes < 1024 ? SLOB_MEDIUM : SLOB_LARGE;
}

/* ---- the free blocks of a page ------------------------------------------ */

int slob_block_length(const slob_unit *page, int at)
{
    return page[at] > 0 ? page[at] : 1;
}

int slob_block_next(const slob_unit *page, int at)
{
    return page[at] < 0 ? -page[at] : page[at + 1];
}

static void block_set(slob_unit *page, int at, int units, int next)
{
    if (units > 1) {
        page[at] = (slob_unit)units;
        page[at + 1] = (slob_unit)next;
    } else {
        page[at] = (slob_unit)-next;
    }
}

/* Lets the free block before, or the list's begin, lead to `at`. */
static void block_lead(struct slob_page *p, slob_unit *page, int prev, int at)
{
    if (prev == NONE)
        p->slob_first = (uint16_t)at;
    else
        block_set(page, prev, slob_block_length(page, prev), at);
}

/* Units from `b` to the first place at which the address `header` bytes further
 * on is aligned. */
static int block_gap(const slob_unit *b, size_t header, size_t align)
{
    uintptr_t user = (uintptr_t)b + header;

    return (int)((ROUND_UP(user, align) - user) / sizeof(slob_unit));
}

/* Takes `units` of the free block at `at`, after `skip` that stay free. */
static slob_unit *block_carve(struct slob_page *p, slob_unit *page, int prev,
                              int at, int skip, int units)
{
    int rest = slob_block_next(page, at);
    int left = slob_block_length(page, at) - skip - units;

    if (left != 0) {
        block_set(page, at + skip + units, left, rest);
        rest = at + skip + units;
    }
    if (skip != 0)
        block_set(page, at, skip, rest);
    else
        block_lead(p, page, prev, rest);
    OTHER_ADD(slob_stat.stat_gaps, skip != 0);
    p->slob_units -= (uint16_t)units;
    return page + at + skip;
}

/* First fit: the first free block of the page that is large enough, or NULL. */
static slob_unit *page_take(const struct supply *s, struct slob_page *p,
                            int units, size_t header, size_t align)
{
    slob_unit *page = supply_page(s, p);
    int at = p->slob_first, prev = NONE, skip = 0;
    unsigned scanned = 0;

    for (; at != SLOB_UNITS; at = slob_block_next(page, at)) {
        scanned++;
        skip = block_gap(page + at, header, align);
        if (slob_block_length(page, at) >= skip + units)
            break;
        prev = at;
    }
    OTHER_ADD(slob_stat.stat_blocks_scanned, scanned);
    return at == SLOB_UNITS ? NULL
                            : block_carve(p, page, prev, at, skip, units);
}

void slob_page_give(struct slob_page *p, slob_unit *page, int at, int units)
{
    int after = p->slob_first;
    int prev = NONE;

    p->slob_units += (uint16_t)units;
    for (; after < at; after = slob_block_next(page, after))
        prev = after;
    MM_ASSERT(prev == NONE || prev + slob_block_length(page, prev) <= at);
    MM_ASSERT(at + units <= after);
    if (at + units == after && after != SLOB_UNITS) {
        units += slob_block_length(page, after);
        after = slob_block_next(page, after);
    }
    if (prev != NONE && prev + slob_block_length(page, prev) == at) {
        block_set(page, prev, slob_block_length(page, prev) + units, after);
    } else {
        block_set(page, at, units, after);
        block_lead(p, page, prev, at);
    }
}

void slob_page_begin(struct slob_page *p, slob_unit *page, unsigned class)
{
    p->slob_used = 1;
    p->slob_class = (uint8_t) class;
    p->slob_units = SLOB_UNITS;
    block_set(page, 0, SLOB_UNITS, SLOB_UNITS);
}

/* ---- blocks of all pages ------------------------------------------------ */

/* Next fit: the page where it succeeds becomes the first. */
slob_unit *slob_take(const struct supply *s, struct list *list, int units,
                     size_t header, size_t align)
{
    list_for_each (l, list) {
        struct slob_page *p = list_entry(l, struct slob_page, slob_link);
        slob_unit *b = NULL;

        OTHER_ADD(slob_stat.stat_pages_scanned, 1);
        if (p->slob_units >= units)
            b = page_take(s, p, units, header, align);
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
static void add_page(slob_unit *page, enum slob_class class)
{
    struct slob_page *p = other_page(&slob, page);

    MM_ASSERT(mm_lock_held(&slob.heap_lock));
    slob_page_begin(p, page, class);
    list_insert_after(&slob_list[class], &p->slob_link);
    other_count_external(&slob, PAGE_SIZE);
}

/* A block of `bytes` whose address is aligned after `header` of them, which
 * holds `size` of a client; NULL: there is no memory. */
static void *slob_block_alloc(size_t bytes, size_t header, size_t align,
                              size_t size, struct other_cache *c)
{
    const struct supply *s = slob.heap_supply;
    struct list *list = &slob_list[class_of(bytes)];
    int units = SLOB_UNITS_OF(bytes);
    slob_unit *page, *b;

    other_lock(&slob);
    b = slob_take(s, list, units, header, align);
    if (b == NULL) {
        page = other_get_pages(&slob, 1, PAGE_SIZE);
        if (page != NULL) {
            add_page(page, class_of(bytes));
            b = slob_take(s, list, units, header, align);
        }
    }
    if (b != NULL) {
        other_count_external(&slob, -units * (ptrdiff_t)sizeof(slob_unit));
        other_count_alloc(&slob, c, size, (size_t)units * sizeof(slob_unit),
                          header);
    } else {
        other_count_fail(&slob, c);
    }
    other_unlock(&slob);
    return b;
}

static void slob_block_free(struct slob_page *p, void *b, size_t header,
                            size_t size, struct other_cache *c)
{
    slob_unit *page = supply_page(slob.heap_supply, p);
    int units = SLOB_UNITS_OF(size + header);
    bool empty;

    other_lock(&slob);
    other_count_external(&slob, units * (ptrdiff_t)sizeof(slob_unit));
    other_count_free(&slob, c, size, (size_t)units * sizeof(slob_unit), header);
    empty = p->slob_units + units == SLOB_UNITS;
    if (empty && p->slob_units != 0)
        list_remove(&p->slob_link);
    if (empty) {
        p->slob_used = 0;
        other_count_external(&slob, -(ptrdiff_t)PAGE_SIZE);
        other_count_pages(&slob, -1);
    } else {
        if (p->slob_units == 0)
            list_insert_after(&slob_list[p->slob_class], &p->slob_link);
        slob_page_give(p, page, (int)((slob_unit *)b - page), units);
    }
    other_unlock(&slob);
    if (empty)
        supply_free(slob.heap_supply, page, 1);
}

/* ---- the operations ----------------------------------------------------- */

static void slob_init(struct supply *s)
{
    other_init(&slob, "slob", s);
    slob_stat = (struct slob_stat){0};
    for (int i = 0; i < SLOB_CLASSES; i++)
        list_init(&slob_list[i]);
}

/* The alignment of the address that alloc() returns. */
static size_t slob_align(size_t size)
{
    bool aligned = slob_pow2 && (size & (size - 1)) == 0;

    return aligned ? MAX(size, slob_header) : slob_header;
}

static const char *slob_check(void)
{
    return slob_verify(&slob, slob_list, SLOB_CLASSES, SLOB_CLASSES);
}

SLOB_ALLOCATOR(slob, slob_header, slob_align(size));
