/*
 * The buddy allocator: blocks, runs, merging, and its verifier.
 *
 * Tests: mm/buddy.c, mm/inspect/buddy_stat.c, mm/inspect/buddy_verify.c
 */
#include "mm/buddy_impl.h"
#include "mm/inspect/buddy_stat.h"
#include "mm/tests/kmem_test.h"

#define BLOCKS 512

static struct page *block[BLOCKS];

static struct buddy_stat stat_now(void)
{
    struct buddy_stat s;

    buddy_stat(&s);
    return s;
}

static void check(void)
{
    const struct page *where;
    const char *why = buddy_verify(&where);

    if (why != NULL)
        KT_FAIL("%s (frame %zu)", why, where ? page_index(where) : 0);
}

static bool got(const struct page *p)
{
    KT_TRUE(p != NULL);
    return p != NULL;
}

/* Nothing changed for good: the same free blocks of each order. */
static void check_same(const struct buddy_stat *before)
{
    struct buddy_stat now = stat_now();

    for (unsigned k = 0; k < BUDDY_ORDERS; k++)
        KT_EQ(now.stat_free[k], before->stat_free[k]);
    KT_EQ(now.stat_free_pages, before->stat_free_pages);
    check();
}

KTEST(buddy, blocks_are_aligned_to_their_size)
{
    KT_NEEDS(MIB(4));
    struct buddy_stat before = stat_now();

    unsigned orders = 0;

    while (orders <= 8 && got(block[orders] = buddy_alloc(orders))) {
        KT_EQ(page_index(block[orders]) % (1u << orders), 0);
        KT_EQ(block[orders]->page_state, PAGE_ALLOC);
        KT_EQ(block[orders]->page_order, orders);
        orders++;
    }
    check();
    for (; orders != 0; orders--)
        buddy_free(block[orders - 1], orders - 1);
    check_same(&before);
}

KTEST(buddy, splitting_frees_the_right_halves)
{
    struct buddy_stat before;
    struct buddy_stat now;
    struct page *p;
    size_t singles = 0;
    unsigned k = 1;

    for (; singles < BLOCKS && stat_now().stat_free[0] != 0; singles++)
        if (!got(block[singles] = buddy_alloc(0)))
            goto release;
    before = stat_now();
    while (k < BUDDY_ORDERS && before.stat_free[k] == 0)
        k++;
    KT_REQUIRE(k < BUDDY_ORDERS);
    if (!got(p = buddy_alloc(0)))
        goto release;
    now = stat_now();
    KT_EQ(now.stat_splits - before.stat_splits, k);
    for (unsigned i = 0; i < k; i++)
        KT_EQ(now.stat_free[i], 1);
    KT_EQ(now.stat_free[k], before.stat_free[k] - 1);
    buddy_free(p, 0);
    KT_EQ(stat_now().stat_merges - now.stat_merges, k);
    check_same(&before);
release:
    while (singles != 0)
        buddy_free(block[--singles], 0);
}

KTEST(buddy, halves_merge_back_to_the_largest_block)
{
    KT_NEEDS(MIB(4));
    struct buddy_stat before = stat_now();
    struct page *big = buddy_alloc(9);

    KT_REQUIRE(big != NULL);
    buddy_free(big, 9);
    test_flood();
    test_flood_end();
    check_same(&before);
    /* 512 single pages of one block, freed in a scrambled order. */
    test_flood();
    test_flood_release(BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++)
        block[i] = buddy_alloc(0);
    KT_TRUE(buddy_alloc(0) == NULL);
    for (size_t i = 0; i < BLOCKS; i++) {
        buddy_free(block[i * 197 % BLOCKS], 0);
        if (i % 32 == 0)
            check();
    }
    KT_EQ(buddy_free_pages(), BLOCKS);
    test_flood_end();
    check_same(&before);
}

KTEST(buddy, smallest_block_that_fits_is_taken)
{
    struct buddy_stat before;
    struct page *p = buddy_alloc(2);
    struct page *q;

    KT_REQUIRE(p != NULL);
    before = stat_now();
    for (unsigned order = 0; order < BUDDY_ORDERS; order++) {
        unsigned k = order;

        while (k < BUDDY_ORDERS && before.stat_free[k] == 0)
            k++;
        if (k == BUDDY_ORDERS)
            break;
        if (!got(q = buddy_alloc(order)))
            break;
        KT_EQ(stat_now().stat_splits - before.stat_splits, k - order);
        buddy_free(q, order);
        KT_EQ(stat_now().stat_merges - before.stat_merges, k - order);
        check_same(&before);
        before = stat_now();
    }
    buddy_free(p, 2);
}

KTEST(buddy, runs_have_exactly_their_pages)
{
    KT_NEEDS(MIB(1));
    struct buddy_stat before = stat_now();

    for (size_t pages = 1; pages <= 100; pages++) {
        struct page *p = buddy_alloc_run(pages);
        size_t n = 0;

        KT_REQUIRE(p != NULL);
        KT_EQ(before.stat_free_pages - buddy_free_pages(), pages);
        while (n < pages) {
            KT_EQ(p[n].page_state, PAGE_ALLOC);
            n += (size_t)1 << p[n].page_order;
        }
        KT_EQ(n, pages);
        check();
        buddy_free_run(p, pages);
    }
    check_same(&before);
}

KTEST(buddy, runs_out_of_range_are_refused)
{
    struct page *p = buddy_alloc_run(BUDDY_MAX_PAGES);
    uint64_t failures = stat_now().stat_failures;

    KT_TRUE(buddy_alloc_run(0) == NULL);
    KT_TRUE(buddy_alloc_run(BUDDY_MAX_PAGES + 1) == NULL);
    KT_TRUE(buddy_alloc_run(0x80000001u) == NULL);
    KT_TRUE(buddy_alloc_run(SIZE_MAX) == NULL);
    KT_TRUE(buddy_alloc(BUDDY_ORDERS) == NULL);
    KT_TRUE(buddy_alloc(1000) == NULL);
    KT_EQ(stat_now().stat_failures, failures + 6);
    if (p != NULL)
        buddy_free_run(p, BUDDY_MAX_PAGES);
    check();
}

KTEST(buddy, counters_count)
{
    struct buddy_stat before = stat_now();
    struct page *p = buddy_alloc(3);
    struct buddy_stat now = stat_now();
    size_t managed = 0;

    KT_REQUIRE(p != NULL);
    KT_EQ(now.stat_allocs[3] - before.stat_allocs[3], 1);
    KT_EQ(before.stat_free_pages - now.stat_free_pages, 8);
    for (size_t i = 0; i < page_count; i++)
        managed += page_array[i].page_state > PAGE_KERNEL;
    KT_EQ(now.stat_total_pages, managed);
    buddy_free(p, 3);
    KT_EQ(stat_now().stat_frees[3] - now.stat_frees[3], 1);
    KT_EQ(stat_now().stat_failures, before.stat_failures);
}

KTEST(buddy, unusable_pages_are_in_smaller_blocks)
{
    struct buddy_stat s = {.stat_free = {3, 0, 1, [10] = 1},
                           .stat_free_pages = 3 + 4 + 1024};

    KT_EQ(buddy_unusable(&s, 0), 0);
    KT_EQ(buddy_unusable(&s, 1), 3); /* 2.91 of 1,000 */
    KT_EQ(buddy_unusable(&s, 2), 3);
    KT_EQ(buddy_unusable(&s, 3), 7); /* 6.79 */
    KT_EQ(buddy_unusable(&s, 10), 7);
    KT_EQ(buddy_unusable(&s, BUDDY_ORDERS), 1000);
    KT_EQ(buddy_unusable(&s, 1000), 1000);
    s = (struct buddy_stat){.stat_free = {5, 2}, .stat_free_pages = 9};
    KT_EQ(buddy_unusable(&s, 1), 556); /* 555.56 */
    s = (struct buddy_stat){0};
    KT_EQ(buddy_unusable(&s, 10), 0);
}

KTEST(buddy, all_pages_allocated_and_freed)
{
    struct buddy_stat before;
    struct buddy_stat dry;

    kmem_reap(KMEM_REAP_ALL);
    before = stat_now();
    test_flood();
    dry = stat_now();
    KT_EQ(dry.stat_free_pages, 0);
    KT_EQ(dry.stat_largest, -1);
    KT_EQ(dry.stat_failures - before.stat_failures, BUDDY_ORDERS);
    KT_TRUE(buddy_alloc(0) == NULL);
    check();
    test_flood_release(1);
    KT_EQ(stat_now().stat_largest, 0);
    test_flood_end();
    check_same(&before);
}

static unsigned reclaims;

static size_t reclaim_one(void)
{
    if (++reclaims > 3)
        return 0;
    test_flood_release(1);
    return 1;
}

KTEST(buddy, pressure_is_asked_until_there_is_a_block_or_no_more)
{
    struct page *p;

    test_flood();
    buddy_set_pressure(reclaim_one);
    reclaims = 0;
    p = buddy_alloc(0);
    KT_TRUE(p != NULL);
    KT_EQ(reclaims, 1);
    KT_TRUE(buddy_alloc(5) == NULL);
    KT_EQ(reclaims, 4);
    KT_TRUE(buddy_alloc(6) == NULL);
    KT_EQ(reclaims, 5);
    KT_TRUE(buddy_alloc(BUDDY_ORDERS) == NULL);
    KT_EQ(reclaims, 5); /* no retry would help */
    buddy_set_pressure(NULL);
    buddy_free(p, 0);
    test_flood_end();
    kmem_reap_init();
    check();
}

#ifdef MM_HOST
static struct buddy_pages pages_now(void)
{
    struct buddy_pages b;

    buddy_pages(&b);
    return b;
}

static void expect_pages(size_t free, size_t reserved, size_t taken)
{
    struct buddy_pages b = pages_now();

    KT_EQ(b.pages_total, buddy_zone.zone_total_pages);
    KT_EQ(b.pages_free, free);
    KT_EQ(b.pages_reserved, reserved);
    KT_EQ(b.pages_taken, taken);
    check();
}

/* They are read in one hold, or their sum would be wrong. */
KTEST(buddy, pages_are_counted_at_one_moment)
{
    uint64_t taken = host_locks_taken;

    pages_now();
    KT_EQ(host_locks_taken - taken, 1);
}

/* All but ten pages are reserved: nobody else gets more than these. */
KTEST(buddy, reserved_pages_are_left)
{
    size_t free = buddy_free_pages();
    struct page *p, *run, *frame;

    KT_TRUE(buddy_reserve(free - 10, 0));
    expect_pages(free, free - 10, 0);
    run = buddy_alloc_run(7);
    KT_TRUE(run != NULL);
    expect_pages(free - 7, free - 10, 0);
    KT_TRUE(buddy_alloc(2) == NULL);
    KT_TRUE(buddy_alloc_run(4) == NULL);
    p = buddy_alloc(1);
    KT_TRUE(p != NULL);
    KT_TRUE(buddy_alloc(1) == NULL);
    buddy_free(p, 1);
    p = buddy_alloc_run(3);
    KT_TRUE(p != NULL);
    KT_TRUE(buddy_alloc(0) == NULL);
    expect_pages(free - 10, free - 10, 0);
    frame = buddy_alloc_reserved(5);
    KT_TRUE(frame != NULL);
    expect_pages(free - 15, free - 10, 5);
    KT_TRUE(buddy_alloc(0) == NULL);
    buddy_free_run(p, 3);
    expect_pages(free - 12, free - 10, 5);
    buddy_free_reserved(frame, 5);
    expect_pages(free - 7, free - 10, 0);
    buddy_free_run(run, 7);
    buddy_unreserve(free - 10);
    expect_pages(free, 0, 0);
}

KTEST(buddy, a_reserve_keeps_what_it_is_told)
{
    size_t free = buddy_free_pages();
    size_t total = buddy_zone.zone_total_pages;

    buddy_set_pressure(NULL);
    KT_TRUE(!buddy_reserve(free - 9, 10));
    KT_TRUE(buddy_reserve(free - 10, 10));
    KT_TRUE(!buddy_reserve(1, 10));
    KT_TRUE(buddy_reserve(0, 10));
    KT_TRUE(buddy_reserve(10, 0));
    KT_TRUE(!buddy_reserve(1, 0));
    expect_pages(free, free, 0);
    buddy_unreserve(free);
    KT_TRUE(!buddy_reserve(SIZE_MAX, 1));
    KT_TRUE(!buddy_reserve(1, SIZE_MAX));
    KT_TRUE(!buddy_reserve(total, 1));
    expect_pages(free, 0, 0);
    kmem_reap_init();
}

/* The platform's part of the same rule. */
KTEST(buddy, an_allocation_keeps_what_the_platform_says)
{
    size_t free = buddy_free_pages();
    struct page *p;

    buddy_set_pressure(NULL);
    host_set_keep(free - 4);
    KT_TRUE(buddy_alloc(3) == NULL);
    KT_TRUE(buddy_alloc_run(5) == NULL);
    p = buddy_alloc(2);
    KT_TRUE(p != NULL);
    KT_TRUE(buddy_alloc(0) == NULL);
    KT_TRUE(buddy_reserve(1, 0)); /* whose caller says it */
    buddy_unreserve(1);
    buddy_free(p, 2);
    p = buddy_alloc_run(4);
    KT_TRUE(p != NULL);
    buddy_free_run(p, 4);
    host_set_keep(0);
    expect_pages(free, 0, 0);
    kmem_reap_init();
}

/* For a moment more can be taken than were reserved. */
KTEST(buddy, more_than_the_reserve_is_taken)
{
    size_t free = buddy_free_pages();
    struct page *p, *q;

    KT_TRUE(buddy_reserve(2, 0));
    p = buddy_alloc_reserved(3);
    KT_TRUE(p != NULL);
    q = buddy_alloc_reserved(4);
    KT_TRUE(q != NULL);
    expect_pages(free - 7, 2, 7);
    buddy_free_reserved(q, 4);
    expect_pages(free - 3, 2, 3);
    KT_TRUE(!buddy_reserve(free - 1, 0));
    KT_TRUE(buddy_reserve(free - 2, 0));
    expect_pages(free - 3, free, 3);
    buddy_unreserve(free - 2);
    buddy_free_reserved(p, 3);
    buddy_unreserve(2);
    expect_pages(free, 0, 0);
}

static unsigned reserve_reclaims;
static struct page *reclaimable;

static size_t reclaim_run(void)
{
    reserve_reclaims++;
    if (reclaimable == NULL)
        return 0;
    buddy_free_run(reclaimable, 3);
    reclaimable = NULL;
    return 3;
}

/* A reserve is tried again like an allocation; what cannot succeed reclaims
 * nothing. */
KTEST(buddy, a_reserve_asks_for_memory)
{
    size_t free = buddy_free_pages();
    size_t total = buddy_zone.zone_total_pages;
    uint64_t failures = buddy_zone.zone_failures;

    buddy_set_pressure(reclaim_run);
    reserve_reclaims = 0;
    reclaimable = buddy_alloc_run(3);
    KT_TRUE(buddy_reserve(free - 1, 0));
    KT_EQ(reserve_reclaims, 1);
    KT_TRUE(!buddy_reserve(2, 0));
    KT_EQ(reserve_reclaims, 2);
    KT_TRUE(!buddy_reserve(0, total)); /* could be, were nothing allocated */
    KT_EQ(reserve_reclaims, 3);
    KT_TRUE(!buddy_reserve(total - 1, 2));
    KT_TRUE(!buddy_reserve(total + 1, 0));
    KT_TRUE(buddy_alloc_run(0) == NULL);
    KT_TRUE(buddy_alloc_run(BUDDY_MAX_PAGES + 1) == NULL);
    KT_TRUE(buddy_alloc_reserved(BUDDY_MAX_PAGES + 1) == NULL);
    host_set_keep(total);
    KT_TRUE(buddy_alloc(0) == NULL);
    host_set_keep(0);
    KT_EQ(reserve_reclaims, 3);
    KT_EQ(buddy_zone.zone_failures - failures, 4);
    buddy_unreserve(free - 1);
    expect_pages(free, 0, 0);
    kmem_reap_init();
}

KTEST(buddy, counts_change_under_the_lock)
{
    uint64_t pressures = buddy_zone.zone_pressures;
    uint64_t taken = host_locks_taken;

    buddy_unreserve(0);
    KT_EQ(host_locks_taken - taken, 1);
    taken = host_locks_taken;
    buddy_set_pressure(NULL);
    KT_TRUE(!buddy_pressure());
    KT_EQ(host_locks_taken - taken, 0);
    buddy_set_pressure(reclaim_run);
    KT_TRUE(!buddy_pressure());
    KT_EQ(host_locks_taken - taken, 1);
    KT_EQ(buddy_zone.zone_pressures - pressures, 1);
    kmem_reap_init();
}

/* No run of the reserve is left, and nothing was taken. */
KTEST(buddy, a_run_that_is_not_there_takes_nothing)
{
    struct page *p;
    size_t free;

    test_flood();
    buddy_set_pressure(NULL);
    test_flood_release(1);
    free = buddy_free_pages();
    KT_EQ(free, 1);
    KT_TRUE(buddy_reserve(1, 0));
    KT_TRUE(buddy_alloc_reserved(2) == NULL);
    expect_pages(1, 1, 0);
    p = buddy_alloc_reserved(1);
    KT_TRUE(p != NULL);
    expect_pages(0, 1, 1);
    KT_TRUE(buddy_alloc_reserved(1) == NULL);
    buddy_free_reserved(p, 1);
    buddy_unreserve(1);
    test_flood_end();
    kmem_reap_init();
    check();
}

KTEST(buddy, wrong_frees_are_caught)
{
    struct page *p = buddy_alloc(2);
    void *slab = kmem_getpages(1, PAGE_SLAB, NULL);

    KT_PANICS(buddy_free(p, 1), "allocated at another order");
    KT_PANICS(buddy_free(p, 3), "allocated at another order");
    KT_PANICS(buddy_free(p + 1, 0), "not the start of a block");
    KT_PANICS(buddy_free(virt_to_page(slab), 0), "belongs to segkmem");
    KT_PANICS(buddy_free(&page_array[0], 0), "is not allocated");
    buddy_free(p, 2);
    kmem_freepages(slab, 1);
    check();
}

/* Whatever the order says, and whatever it is the number of. */
KTEST(buddy, free_blocks_are_freed_at_no_order)
{
    struct page *p = buddy_alloc_run(17);
    char text[80];

    KT_REQUIRE(p != NULL);
    buddy_free(p, 4); /* its buddy has the last page of the run */
    KT_EQ(p->page_order, 4);
    for (unsigned order = 0; order < BUDDY_ORDERS; order++) {
        snprintf(text, sizeof(text),
                 "buddy_free: page 0x%lx, order %u: is already free",
                 (unsigned long)page_to_phys(p), order);
        KT_PANICS(buddy_free(p, order), text);
    }
    buddy_free(p + 16, 0);
    check();
}

KTEST(buddy, its_lock_has_the_last_rank)
{
    KT_EQ(buddy_zone.zone_lock.lock_rank, LOCK_RANK_BUDDY);
}
#endif

/* ---- the verifier: each invariant broken, reported, mended -------------- */

static void expect(const char *what)
{
    const struct page *where = NULL;
    const char *why = buddy_verify(&where);

    if (why == NULL || strcmp(why, what) != 0)
        KT_FAIL("verify said \"%s\", expected \"%s\"", why ? why : "-", what);
}

/* A free block of order 0, the first on its list, its buddy not free: the tail
 * of a run of three pages, which the caller frees. */
static struct page *lone_free_page(struct page **run)
{
    *run = buddy_alloc_run(3);
    return *run == NULL ? NULL : *run + 3;
}

#define POKE(field, value, what)                                               \
    do {                                                                       \
        __typeof__(field) poke_saved = (field);                                \
        (field) = (value);                                                     \
        expect(what);                                                          \
        (field) = poke_saved;                                                  \
        check();                                                               \
    } while (0)

KTEST(buddy, verify_finds_broken_free_lists)
{
    struct page *run;
    struct page *p = lone_free_page(&run);
    struct page *q;
    size_t reserved, total;

    KT_REQUIRE(p != NULL && p->page_tag == PAGE_TAG(PAGE_FREE, 0));
    POKE(p->page_link.prev, &run->page_link, "free list links disagree");
    POKE(p->page_state, PAGE_ALLOC,
         "page on a free list is not free at that order");
    POKE(p->page_order, 1, "page on a free list is not free at that order");
    POKE(run[2].page_tag, PAGE_TAG(PAGE_FREE, 0),
         "two free buddies are not joined");
    POKE(buddy_zone.zone_list[0].next, &page_array[page_count].page_link,
         "free list leads outside the page array");
    POKE(buddy_zone.zone_list[0].next,
         (struct list *)((uintptr_t)&p->page_link + sizeof(void *)),
         "free list leads outside the page array");
    POKE(p->page_link.next, &run->page_link, "free list links disagree");
    POKE(buddy_zone.zone_list[0].next,
         (struct list *)((uintptr_t)page_array - sizeof(struct page)),
         "free list leads outside the page array");
    POKE(buddy_zone.zone_list[0].prev, &run->page_link,
         "free list links disagree");
    POKE(buddy_zone.zone_free, buddy_zone.zone_free + 1,
         "free pages are not as many as are counted");
    POKE(buddy_zone.zone_reserved, buddy_zone.zone_free + 1,
         "more pages are reserved than are free");
    POKE(buddy_zone.zone_total_pages, 1,
         "blocks do not add up to all managed pages");
    /* Of two errors the first is named. */
    total = buddy_zone.zone_total_pages--;
    reserved = buddy_zone.zone_reserved;
    buddy_zone.zone_reserved = buddy_zone.zone_free + 1;
    expect("blocks do not add up to all managed pages");
    buddy_zone.zone_reserved = reserved;
    buddy_zone.zone_total_pages = total;
    q = buddy_alloc(0);
    KT_REQUIRE(q == p);
    POKE(q->page_tag, PAGE_TAG(PAGE_FREE, 0),
         "a free block is on no free list");
    buddy_free(q, 0);
    buddy_free_run(run, 3);
    check();
}

KTEST(buddy, verify_finds_broken_blocks)
{
    struct page *p = buddy_alloc(3);

    KT_REQUIRE(p != NULL);
    POKE(p->page_state, PAGE_TAIL, "frame belongs to no block");
    POKE(p->page_state, PAGE_STATES, "page state is not a state");
    POKE(page_array[0].page_state, PAGE_STATES, "page state is not a state");
    POKE(p->page_order, PAGE_NO_ORDER, "block has no order");
    POKE(p[3].page_order, 0, "block overlaps another");
    POKE(p[5].page_state, PAGE_FREE, "block overlaps another");
    POKE(p->page_order, 2, "frame belongs to no block");
    p[6].page_state = PAGE_SLAB; /* segkmem is changing them */
    check();
    p[6].page_state = PAGE_TAIL;
    buddy_free(p, 3);
    POKE(p[6].page_state, PAGE_SLAB, "block overlaps another"); /* a free one */
}

/* The frame that is wrong; NULL if none is, or if no frame has been reached. */
KTEST(buddy, verify_says_where)
{
    struct page *p = buddy_alloc(3);
    struct list *first = buddy_zone.zone_list[0].next;
    const struct page *where = p;

    KT_REQUIRE(p != NULL);
    KT_TRUE(buddy_verify(&where) == NULL && where == NULL);
    p[3].page_order = 0;
    KT_TRUE(buddy_verify(&where) != NULL && where == p + 3);
    p[3].page_order = PAGE_NO_ORDER;
    p->page_order = PAGE_NO_ORDER;
    KT_TRUE(buddy_verify(&where) != NULL && where == p);
    p->page_order = 3;
    buddy_zone.zone_list[0].next = &page_array[page_count].page_link;
    KT_TRUE(buddy_verify(&where) != NULL && where == NULL);
    buddy_zone.zone_list[0].next = first;
    buddy_free(p, 3);
    check();
}

/* A block that is misaligned on its list: order 1 at an odd frame. */
KTEST(buddy, verify_finds_misaligned_blocks)
{
    struct page *p = buddy_alloc(2);
    struct list *head = &buddy_zone.zone_list[1];

    KT_REQUIRE(p != NULL);
    p[1].page_tag = PAGE_TAG(PAGE_FREE, 1);
    list_insert_after(head, &p[1].page_link);
    expect("free block is not aligned to its size");
    list_remove(&p[1].page_link);
    p[1].page_tag = PAGE_TAG(PAGE_TAIL, PAGE_NO_ORDER);
    buddy_free(p, 2);
    check();
}

KTEST(buddy, verify_ends_on_a_cyclic_list)
{
    struct page *run;
    struct page *p = lone_free_page(&run);
    struct list saved;

    KT_REQUIRE(p != NULL && buddy_zone.zone_list[0].next == &p->page_link);
    /* The head leads to p, which leads to itself both ways. */
    saved = p->page_link;
    p->page_link.next = &p->page_link;
    p->page_link.prev = &p->page_link;
    expect("free list links disagree");
    p->page_link = saved;
    buddy_free_run(run, 3);
    check();
}

#ifdef MM_HOST /* where a verifier that follows the links ends */
KTEST(buddy, verify_follows_no_wild_links)
{
    struct page *run;
    struct page *p = lone_free_page(&run);
    struct list local = {&local, &local};

    KT_REQUIRE(p != NULL);
    POKE(p->page_link.prev, NULL, "free list links disagree");
    POKE(p->page_link.next, NULL, "free list leads outside the page array");
    POKE(p->page_link.next, &local, "free list leads outside the page array");
    POKE(buddy_zone.zone_list[0].next, NULL,
         "free list leads outside the page array");
    buddy_free_run(run, 3);
    check();
}
#endif

#ifdef MM_HOST /* where the array ends before a page that cannot be read */
KTEST(buddy, verify_ends_with_the_array)
{
    struct page *end = page_array + page_count;
    struct page *run = NULL, *last;
    size_t n = 0;

    for (; (block[n] = buddy_alloc(BUDDY_MAX_ORDER)) != NULL; n++)
        if (block[n] + BUDDY_MAX_PAGES == end)
            run = block[n];
    KT_REQUIRE(run != NULL);
    buddy_free(run, BUDDY_MAX_ORDER);
    KT_TRUE(buddy_alloc_run(BUDDY_MAX_PAGES - 1) == run);
    last = buddy_alloc(0);
    KT_TRUE(last == end - 1);
    POKE(last->page_order, 1, "block overlaps another");
    buddy_free(last, 0);
    buddy_free_run(run, BUDDY_MAX_PAGES - 1);
    while (n-- != 0)
        if (block[n] != run)
            buddy_free(block[n], BUDDY_MAX_ORDER);
    check();
}
#endif

/* ---- random traffic ----------------------------------------------------- */

KTEST(buddy, random_blocks_never_overlap)
{
    struct buddy_stat before = stat_now();
    uint8_t order[BLOCKS];
    uint32_t seed = 42;
    size_t ops = TEST_MANY(20000, 200000);

    memset(block, 0, sizeof(block));
    for (size_t i = 0; i < ops; i++) {
        size_t k = test_random(&seed) % BLOCKS;

        if (block[k] != NULL) {
            uint32_t *words = page_to_virt(block[k]);

            KT_EQ(words[0], k);
            KT_EQ(words[(PAGE_SIZE << order[k]) / 4 - 1], k);
            buddy_free(block[k], order[k]);
            block[k] = NULL;
            continue;
        }
        order[k] = test_random(&seed) % 32 == 0 ? 4 : test_random(&seed) % 3;
        block[k] = buddy_alloc(order[k]);
        if (block[k] != NULL) {
            uint32_t *words = page_to_virt(block[k]);

            words[0] = k;
            words[(PAGE_SIZE << order[k]) / 4 - 1] = k;
        }
        if (i % (ops / 16) == 0)
            check();
    }
    for (size_t k = 0; k < BLOCKS; k++)
        if (block[k] != NULL)
            buddy_free(block[k], order[k]);
    kmem_reap(KMEM_REAP_ALL);
    check_same(&before);
}
