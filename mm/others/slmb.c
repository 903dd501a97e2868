/*
 * SLMB: SLOB with lists for each processor (an article of 2017).
 *
 * The blocks, pages and searches of SLOB (mm/others/slob.c, whose functions are
 * called here), but not its three lists that all processors share. Each
 * processor has a set of twelve, by the size of the blocks, so that a search
 * goes through fewer pages and processors do not wait for each other:
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
#include "mm/page.h"

size_t slmb_bound[SLMB_CLASSES] = {8,  16, 24, 32,  40,  48,
                                   56, 64, 96, 128, 256, 1024};
struct list slmb_list[OTHER_CPUS][SLMB_CLASSES];
struct slmb_stat slmb_stat;

static struct other_heap slmb;

/* ---- locks -------------------------------------------------------------- */

static mm_lock_t slmb_lock[OTHER_CPUS]; /* a set each */

static void slmb_set_lock(unsigned cpu)
{
    other_count_lock(&slmb);
    other_share_part(&slmb_lock[cpu]);
}

static void slmb_set_unlock(unsigned cpu)
{
    other_unshare_part(&slmb_lock[cpu]);
}

/* What is known of the page goes with it. */
static void slmb_own(struct slob_page *p, unsigned cpu)
{
    __atomic_store_n(&p->slob_cpu, (uint8_t)cpu, __ATOMIC_RELEASE);
}

/* Locks the set that has the page, and returns which: a page may change sets.
 * If it is full, and thus on no list, it first becomes the running
 * processor's. */
static unsigned slmb_page_lock(struct slob_page *p, unsigned cpu)
{
#if MM_MAGAZINES
    for (;;) {
        unsigned set = __atomic_load_n(&p->slob_cpu, __ATOMIC_ACQUIRE);

        slmb_set_lock(set);
        if (__atomic_load_n(&p->slob_cpu, __ATOMIC_ACQUIRE) == set) {
            if (set == cpu || p->slob_units != 0)
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

/* ---- blocks of all pages ------------------------------------------------ */

/* Puts a page that has free units on a list of the processor. */
static void slmb_enlist(struct slob_page *p, unsigned cpu)
{
    MM_ASSERT(other_shares(&slmb, &slmb_lock[cpu]));
    slmb_own(p, cpu);
    list_insert_after(&slmb_list[cpu][p->slob_class], &p->slob_link);
}

/* Whether another processor has a page of the class with so much room. */
static bool slmb_elsewhere(unsigned cpu, unsigned class, int units)
{
    for (unsigned i = 0; i < other_cpus; i++)
        list_for_each (l, &slmb_list[i][class])
            if (i != cpu &&
                list_entry(l, struct slob_page, slob_link)->slob_units >= units)
                return true;
    return false;
}

/* Pages with blocks that the heap has got, or returns. A set is locked. */
static void slmb_count_page(ptrdiff_t pages)
{
    other_count_external(&slmb, pages * (ptrdiff_t)PAGE_SIZE);
    other_share(&slmb);
    other_count_pages(&slmb, pages);
    other_unshare(&slmb);
}

/* A page that is one free block; the rest of its descriptor is zero. */
static void slmb_add_page(slob_unit *page, unsigned class, unsigned cpu)
{
    struct slob_page *p = other_page(&slmb, page);

    MM_ASSERT(other_shares(&slmb, &slmb_lock[cpu]));
    slob_page_begin(p, page, class);
    slmb_enlist(p, cpu);
    slmb_count_page(1);
}

/* A block of `bytes` whose address is aligned after `header` of them, which
 * holds `size` of a client; NULL: there is no memory. */
static void *slmb_block_alloc(size_t bytes, size_t header, size_t align,
                              size_t size, struct other_cache *c)
{
    unsigned cpu = other_enter(&slmb), class = slmb_class_of(bytes);
    const struct supply *s = slmb.heap_supply;
    int units = SLOB_UNITS_OF(bytes);
    slob_unit *page, *b;

    slmb_set_lock(cpu);
    b = slob_take(s, &slmb_list[cpu][class], units, header, align);
    if (b == NULL) {
        slmb_set_unlock(cpu);
        other_leave(&slmb);
        page = supply_alloc(slmb.heap_supply, 1, PAGE_SIZE);
        cpu = other_enter(&slmb);
        slmb_set_lock(cpu);
        if (page != NULL) {
            OTHER_ADD(slmb_stat.stat_missed, slmb_elsewhere(cpu, class, units));
            slmb_add_page(page, class, cpu);
            b = slob_take(s, &slmb_list[cpu][class], units, header, align);
        }
    }
    if (b != NULL) {
        other_count_external(&slmb, -units * (ptrdiff_t)sizeof(slob_unit));
        other_count_alloc(&slmb, c, size, (size_t)units * sizeof(slob_unit),
                          header);
    } else {
        other_count_fail(&slmb, c);
    }
    slmb_set_unlock(cpu);
    other_leave(&slmb);
    return b;
}

static void slmb_block_free(struct slob_page *p, void *b, size_t header,
                            size_t size, struct other_cache *c)
{
    slob_unit *page = supply_page(slmb.heap_supply, p);
    unsigned cpu = other_enter(&slmb), set = slmb_page_lock(p, cpu);
    int units = SLOB_UNITS_OF(size + header);
    bool empty, full;

    other_count_external(&slmb, units * (ptrdiff_t)sizeof(slob_unit));
    other_count_free(&slmb, c, size, (size_t)units * sizeof(slob_unit), header);
    empty = p->slob_units + units == SLOB_UNITS;
    full = p->slob_units == 0;
    OTHER_ADD(slmb_stat.stat_foreign, !full && p->slob_cpu != cpu);
    if (empty) {
        if (!full)
            list_remove(&p->slob_link);
        p->slob_used = 0;
        slmb_count_page(-1);
    } else {
        OTHER_ADD(slmb_stat.stat_migrated, full && p->slob_cpu != cpu);
        if (full)
            slmb_enlist(p, cpu);
        MM_ASSERT(other_shares(&slmb, &slmb_lock[p->slob_cpu]));
        slob_page_give(p, page, (int)((slob_unit *)b - page), units);
    }
    slmb_set_unlock(set);
    other_leave(&slmb);
    if (empty)
        supply_free(slmb.heap_supply, page, 1);
}

/* ---- the operations ----------------------------------------------------- */

static void slmb_init(struct supply *s)
{
    other_init(&slmb, "slmb", s);
    slob_stat = (struct slob_stat){0};
    slmb_stat = (struct slmb_stat){0};
    for (unsigned i = 0; i < OTHER_CPUS; i++) {
        mm_lock_init(&slmb_lock[i], "slmb set", LOCK_RANK_SET);
        for (unsigned j = 0; j < SLMB_CLASSES; j++)
            list_init(&slmb_list[i][j]);
    }
}

static const char *slmb_check(void)
{
    return slob_verify(&slmb, slmb_list[0], OTHER_CPUS * SLMB_CLASSES,
                       SLMB_CLASSES);
}

SLOB_ALLOCATOR(slmb, SLMB_HEADER, SLMB_HEADER);
