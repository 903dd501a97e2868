/*
 * Pages from sbrk: replaces buddy under mm/segkmem.c in a program (paper,
 * section 7.3).
 *
 * The heap is an array of pages from heap_base up, and page_array has an entry
 * for each. page_array is a mapping of its own; when it is full, it moves to
 * one of twice the size. Pages are in runs, allocated or free; no two free runs
 * are adjacent:
 *
 *     heap_base                                               the break
 *     | run | run | free run | run |  free run  | run | free run |
 *     order 0 first, else NO_ORDER   ^ first and last page store the length
 *
 * A request takes the first free run, in order of address, that is large
 * enough, so that the end of the heap becomes free and can be returned. Other
 * code may call sbrk: its pages are marked as reserved.
 */
#include "kernel/lib/printf.h"
#include "mm/buddy.h"
#include "user/lib/heap.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

#define HEAP_END   0x40000000u /* where mmap begins */
#define GROW_PAGES 16u         /* at least, by one sbrk */
#define TRIM_PAGES 32u         /* free pages at the end are returned */

char *heap_base;
struct page *page_array;
size_t page_count;

static struct list free_runs = LIST_INIT(free_runs);
static size_t array_bytes; /* of page_array; it grows with the heap */
static size_t (*reclaim)(void);
static struct heap_stat stat_now;

/* ---- runs --------------------------------------------------------------- */

/* Only the first and the last page of a free run store its length. */
static size_t free_length(const struct page *p)
{
    return (size_t)p->page_owner;
}

static void mark(struct page *p, size_t pages, enum page_state state)
{
    for (size_t i = 0; i < pages; i++) {
        p[i].page_tag = PAGE_TAG(state, i == 0 ? 0 : PAGE_NO_ORDER);
        p[i].page_owner = NULL;
    }
}

/* Inserts a free run before another, or at the end of the list. */
static void insert_free(struct list *before, struct page *p, size_t pages)
{
    mark(p, pages, PAGE_FREE);
    p[0].page_owner = p[pages - 1].page_owner = (void *)pages;
    list_insert_before(before, &p->page_link);
    stat_now.stat_free += pages;
    stat_now.stat_runs++;
}

/* Removes a free run from the list; returns its successor. */
static struct list *remove_free(const struct page *p)
{
    struct list *next = p->page_link.next;

    list_remove(&p->page_link);
    stat_now.stat_free -= free_length(p);
    stat_now.stat_runs--;
    return next;
}

/* The free run that ends in front of `p`, or NULL. */
static struct page *free_before(struct page *p)
{
    if (p == page_array || p[-1].page_state != PAGE_FREE)
        return NULL;
    return p - free_length(p - 1);
}

static struct page *free_after(struct page *p, size_t pages)
{
    struct page *next = p + pages;

    if (page_index(next) >= page_count || next->page_state != PAGE_FREE)
        return NULL;
    return next;
}

/* The place in the list of a run at `p` that is adjacent to no free run. */
static struct list *find_place(const struct page *p)
{
    list_for_each (l, &free_runs)
        if (list_entry(l, struct page, page_link) > p)
            return l;
    return &free_runs;
}

static void make_free(struct page *p, size_t pages)
{
    struct page *before = free_before(p);
    const struct page *after = free_after(p, pages);
    struct list *place = NULL;

    if (before != NULL) {
        pages += free_length(before);
        p = before;
        place = remove_free(before);
    }
    if (after != NULL) {
        pages += free_length(after);
        place = remove_free(after);
    }
    insert_free(place != NULL ? place : find_place(p), p, pages);
}

/* Allocates `pages` from the first free run that is large enough, or NULL. */
static struct page *take(size_t pages)
{
    list_for_each (l, &free_runs) {
        struct page *p = list_entry(l, struct page, page_link);
        size_t length = free_length(p);
        struct list *place;

        if (length < pages)
            continue;
        place = remove_free(p);
        if (length > pages)
            insert_free(place, p + pages, length - pages);
        mark(p, pages, PAGE_ALLOC);
        return p;
    }
    return NULL;
}

/* ---- the end of the heap ------------------------------------------------ */

static char *heap_end(void)
{
    return heap_base + page_count * PAGE_SIZE;
}

/* Links the free runs again, in order, after the array has moved. */
static void relink(void)
{
    size_t i = 0;

    list_init(&free_runs);
    while (i < page_count) {
        struct page *p = &page_array[i];
        bool is_free = p->page_state == PAGE_FREE;

        if (is_free)
            list_insert_before(&free_runs, &p->page_link);
        i += is_free ? free_length(p) : 1;
    }
}

/* Ensures that the array has entries for `pages`; moves it if need be. */
static bool reserve_entries(size_t pages)
{
    size_t bytes = MAX(array_bytes, (size_t)PAGE_SIZE);
    struct page *larger;

    while (bytes / sizeof(struct page) < pages)
        bytes *= 2;
    if (bytes == array_bytes)
        return true;
    larger = mmap(bytes, PROT_READ | PROT_WRITE);
    if (larger == MAP_FAILED)
        return false;
    if (array_bytes != 0) {
        memcpy(larger, page_array, page_count * sizeof(struct page));
        munmap(page_array, array_bytes);
    }
    page_array = larger;
    array_bytes = bytes;
    relink();
    return true;
}

/* Other code has moved the break: continues after its pages. */
static bool skip_foreign(const char *at)
{
    size_t bytes = -(uintptr_t)at & PAGE_MASK;
    size_t pages = (size_t)(at + bytes - heap_end()) >> PAGE_SHIFT;

    if (at < heap_end() || !reserve_entries(page_count + pages) ||
        (bytes != 0 && sbrk((int32_t)bytes) == MAP_FAILED))
        return false;
    mark(page_array + page_count, pages, PAGE_RESERVED);
    page_count += pages;
    return true;
}

/* Adds exactly `pages` free pages at the end. */
static bool extend(size_t pages)
{
    const char *at = sbrk(0);

    if (pages >= (HEAP_END - (uintptr_t)at) >> PAGE_SHIFT)
        return false;
    if (at != heap_end() && !skip_foreign(at))
        return false;
    if (!reserve_entries(page_count + pages) ||
        sbrk((int32_t)(pages << PAGE_SHIFT)) == MAP_FAILED)
        return false;
    page_count += pages;
    stat_now.stat_pages += pages;
    stat_now.stat_grows++;
    make_free(page_array + page_count - pages, pages);
    return true;
}

size_t heap_trim(size_t least)
{
    struct page *last = list_entry(free_runs.prev, struct page, page_link);
    size_t pages;

    if (list_empty(&free_runs))
        return 0;
    pages = free_length(last);
    if (page_index(last) + pages != page_count || pages < least ||
        sbrk(0) != heap_end() ||
        sbrk(-(int32_t)(pages << PAGE_SHIFT)) == MAP_FAILED)
        return 0;
    remove_free(last);
    page_count -= pages;
    stat_now.stat_pages -= pages;
    stat_now.stat_shrinks++;
    return pages;
}

bool heap_init(void)
{
    uintptr_t at = (uintptr_t)sbrk(0);
    uintptr_t base = ROUND_UP(at, (uintptr_t)PAGE_SIZE);

    if (at < base && sbrk((int32_t)(base - at)) == MAP_FAILED)
        return false;
    heap_base = (char *)base;
    return extend(GROW_PAGES);
}

/* ---- functions of buddy ------------------------------------------------- */

/* As in buddy: if no run is left, reclaims memory until there is enough or no
 * more. */
struct page *buddy_alloc_run(size_t pages)
{
    struct page *p = take(pages);

    while (p == NULL) {
        if (!extend(MAX(pages, (size_t)GROW_PAGES)) && !extend(pages) &&
            (reclaim == NULL || reclaim() == 0))
            return NULL;
        p = take(pages);
    }
    return p;
}

struct page *buddy_alloc(unsigned order)
{
    return buddy_alloc_run((size_t)1 << order);
}

void buddy_free_run(struct page *p, size_t pages)
{
    make_free(p, pages);
    heap_trim(TRIM_PAGES);
}

void buddy_set_pressure(size_t (*callback)(void))
{
    reclaim = callback;
}

/* ---- statistics and checks ---------------------------------------------- */

void heap_stat(struct heap_stat *out)
{
    *out = stat_now;
}

static const char *verify_run(const struct page *p)
{
    size_t pages = free_length(p);

    if (page_index(p) >= page_count || p->page_state != PAGE_FREE)
        return "the list of free runs is broken";
    if (pages == 0 || pages > page_count - page_index(p))
        return "a free run has an impossible length";
    if (free_length(p + pages - 1) != pages)
        return "a free run's ends disagree about its length";
    if (page_index(p) + pages < page_count && p[pages].page_state == PAGE_FREE)
        return "free runs are adjacent";
    for (size_t i = 0; i < pages; i++)
        if (p[i].page_state != PAGE_FREE)
            return "a page of a free run is in use";
    return NULL;
}

const char *heap_verify(const char **where)
{
    static char text[48];
    const struct page *last = NULL;
    size_t free = 0;

    list_for_each (l, &free_runs) {
        const struct page *p = list_entry(l, struct page, page_link);
        const char *why = verify_run(p);

        if (why == NULL && last >= p)
            why = "the free runs are out of order";
        snprintf(text, sizeof(text), "page %zu of the heap", page_index(p));
        *where = text;
        if (why != NULL)
            return why;
        free += free_length(p);
        last = p;
    }
    *where = "heap";
    return free == stat_now.stat_free ? NULL
                                      : "the count of free pages is wrong";
}
