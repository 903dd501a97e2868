/*
 * Lab 2, Buddies: most tests build a zone of their own before the kernel has
 * one; the last one uses the running kernel.
 */
#include "docs/labs/02-buddies/tests/zone.h"
#include "kernel/lib/string.h"
#include "tools/workshop/ktest/failures.h"
#include "tools/workshop/labs/seed.h"
#include "mm/inspect/buddy_stat.h"

#define BASE 1024 /* the right one of the zone's two largest blocks */

/* What follows from the seed. */
enum {
    PAGE = 20,
    PAIR,
    BLOCK,
    RUN,
    RUN_PAGES,
    ORDER,
    WRONG,
    RANDOM
};

/* ---- 2.1: halving ------------------------------------------------------- */

LAB_TEST(2, split, LAB_EARLY)
{
    if (!zone_make())
        return;
    zone_free(BASE, BUDDY_MAX_ORDER);
    zone_expect_got(buddy_alloc(0), BASE, 0);
    for (unsigned k = 0; k < BUDDY_MAX_ORDER; k++)
        ZONE_EXPECT(k, BASE + (1u << k));
    ZONE_EXPECT_NONE(BUDDY_MAX_ORDER);
    zone_expect_blocks(1 + BUDDY_MAX_ORDER);
}

/* A block of medium order is split; smaller blocks stay whole. Later requests
 * take blocks of the right order from the lists without a split. */
LAB_TEST(2, split_part, LAB_EARLY)
{
    size_t page = 1 + 2 * lab_pick(PAGE, 3);
    size_t pair = 8 + 4 * lab_pick(PAIR, 8);
    size_t block = 64 + 64 * lab_pick(BLOCK, 7);

    if (!zone_make())
        return;
    zone_free(page, 0);
    zone_free(pair, 1);
    zone_free(block, 5);
    zone_free(512, 7);
    zone_expect_got(buddy_alloc(2), block, 2);
    ZONE_EXPECT(0, page);
    ZONE_EXPECT(1, pair);
    ZONE_EXPECT(2, block + 4);
    ZONE_EXPECT(3, block + 8);
    ZONE_EXPECT(4, block + 16);
    ZONE_EXPECT_NONE(5);
    ZONE_EXPECT(7, 512);
    zone_expect_got(buddy_alloc(4), block + 16, 4);
    zone_expect_got(buddy_alloc(0), page, 0);
    zone_expect_got(buddy_alloc(0), pair, 0);
    ZONE_EXPECT(0, pair + 1);
    ZONE_EXPECT_NONE(1);
    zone_expect_got(buddy_alloc(6), 512, 6);
    ZONE_EXPECT(6, 576);
    ZONE_EXPECT_NONE(7);
    zone_expect_blocks(5 + 4);
}

/* ---- 2.2: the buddy, and joining ---------------------------------------- */

LAB_TEST(2, buddy, LAB_EARLY)
{
    if (!zone_make())
        return;
    for (unsigned k = 0; k < BUDDY_MAX_ORDER; k++)
        for (size_t i = 0; i < ZONE_FRAMES; i += (size_t)1 << k) {
            bool left = (i >> k) % 2 == 0;
            size_t want = left ? i + (1u << k) : i - (1u << k);
            size_t got = page_index(buddy_of(&page_array[i], k));

            if (got == want)
                continue;
            KT_FAIL("the buddy of frame %zu, order %u: got frame %zu, want "
                    "%zu",
                    i, k, got, want);
            return;
        }
}

/* A block whose buddy is allocated must not be joined, although the neighbour
 * on its other side is free; nor must a block only a part of whose buddy is
 * free. */
static void free_lone(unsigned k)
{
    size_t left = BASE;
    size_t right = BASE + (1u << k);
    size_t next = right + (1u << k);

    if (!zone_make())
        return;
    zone_allocated(left, k);
    zone_allocated(right, k);
    zone_free(next, k);
    buddy_free(&page_array[right], k);
    ZONE_EXPECT(k, right, next);
    ZONE_EXPECT_NONE(k + 1);
    if (k == 0 || !zone_make())
        return;
    zone_free(left, k - 1);
    zone_allocated(left + (1u << (k - 1)), k - 1);
    zone_allocated(right, k);
    buddy_free(&page_array[right], k);
    ZONE_EXPECT(k, right);
    ZONE_EXPECT(k - 1, left);
}

LAB_TEST(2, lone, LAB_EARLY)
{
    for (unsigned k = 0; k < BUDDY_MAX_ORDER - 1 && ktest_failures() == 0; k++)
        free_lone(k);
    if (ktest_failures() != 0 || !zone_make())
        return;
    zone_allocated(0, BUDDY_MAX_ORDER);
    zone_free(BASE, BUDDY_MAX_ORDER);
    buddy_free(&page_array[0], BUDDY_MAX_ORDER);
    ZONE_EXPECT(BUDDY_MAX_ORDER, 0, BASE);
}

/* Joins two halves once: the buddy of the result is allocated. `back` is the
 * half to be freed, the other is free. Reports only the first pair that
 * fails. */
static void join_halves(unsigned k, size_t back, size_t other)
{
    if (ktest_failures() != 0 || !zone_make())
        return;
    zone_allocated(back, k);
    zone_free(other, k);
    if (k + 1 < BUDDY_MAX_ORDER)
        zone_allocated(BASE + (2u << k), k + 1);
    buddy_free(&page_array[back], k);
    ZONE_EXPECT_NONE(k);
    ZONE_EXPECT(k + 1, BASE);
    zone_expect_blocks(k + 1 < BUDDY_MAX_ORDER ? 2 : 1);
    KT_EQ(buddy_zone.zone_merges, 1);
    if (ktest_failures() != 0)
        KT_FAIL("that was frame %zu, order %u, freed beside frame %zu, which "
                "was free",
                back, k, other);
}

LAB_TEST(2, join, LAB_EARLY)
{
    for (unsigned k = 0; k < BUDDY_MAX_ORDER; k++) {
        join_halves(k, BASE, BASE + (1u << k));
        join_halves(k, BASE + (1u << k), BASE);
    }
}

/* Freeing one page joins blocks up to the order whose buddy is allocated, or to
 * the largest order. */
static void join_up_to(unsigned stop)
{
    if (ktest_failures() != 0 || !zone_make())
        return;
    zone_allocated(BASE, 0);
    for (unsigned k = 0; k < BUDDY_MAX_ORDER; k++)
        if (k == stop)
            zone_allocated(BASE + (1u << k), k);
        else
            zone_free(BASE + (1u << k), k);
    buddy_free(&page_array[BASE], 0);
    for (unsigned k = 0; k < stop; k++)
        ZONE_EXPECT_NONE(k);
    ZONE_EXPECT(stop, BASE);
    for (unsigned k = stop + 1; k < BUDDY_MAX_ORDER; k++)
        ZONE_EXPECT(k, BASE + (1u << k));
    KT_EQ(buddy_zone.zone_merges, stop);
    if (ktest_failures() != 0)
        KT_FAIL("that was frame %u, order 0, freed; want it joined %u "
                "times",
                BASE, stop);
}

LAB_TEST(2, chain, LAB_EARLY)
{
    join_up_to(BUDDY_MAX_ORDER);
    join_up_to(4);
    join_up_to(1);
}

/* The pages of one largest block, one by one, in a scrambled order. */
LAB_TEST(2, scrambled, LAB_EARLY)
{
    size_t step = 201 + 2 * lab_pick(ORDER, 200); /* odd: each page is met */

    if (!zone_make())
        return;
    for (size_t i = 0; i < BUDDY_MAX_PAGES; i++)
        zone_allocated(BASE + i, 0);
    zone_reserve_rest();
    for (size_t i = 0; i < BUDDY_MAX_PAGES; i++) {
        buddy_free(&page_array[BASE + i * step % BUDDY_MAX_PAGES], 0);
        if (i % 32 == 0 && !zone_verify())
            return;
    }
    ZONE_EXPECT(BUDDY_MAX_ORDER, BASE);
    lab_held("free pages", buddy_free_pages(), BUDDY_MAX_PAGES);
}

/* ---- 2.3: runs ---------------------------------------------------------- */

/* Of 13 pages, or of 11; the tail has 3 or 5. */
LAB_TEST(2, run, LAB_EARLY)
{
    size_t at = 16 + 16 * lab_pick(RUN, 60);
    bool longer = lab_pick(RUN_PAGES, 2) == 0;

    if (!zone_make())
        return;
    zone_free(at, 4);
    zone_expect_got(buddy_alloc_run(longer ? 13 : 11), at, 3);
    if (longer) {
        zone_expect_allocated(at + 8, 2);
        zone_expect_allocated(at + 12, 0);
        ZONE_EXPECT(0, at + 13);
        ZONE_EXPECT(1, at + 14);
        ZONE_EXPECT_NONE(2);
    } else {
        zone_expect_allocated(at + 8, 1);
        zone_expect_allocated(at + 10, 0);
        ZONE_EXPECT(0, at + 11);
        ZONE_EXPECT(2, at + 12);
        ZONE_EXPECT_NONE(1);
    }
    ZONE_EXPECT_NONE(3);
    zone_expect_blocks(5);
}

/* A run from a block of exactly the order that it needs. */
static struct page *one_run(size_t pages)
{
    unsigned order = 0;
    struct page *p;

    if (!zone_make())
        return NULL;
    while (((size_t)1 << order) < pages)
        order++;
    zone_free(BASE, order);
    zone_reserve_rest();
    p = buddy_alloc_run(pages);
    if (p == &page_array[BASE])
        return p;
    KT_FAIL("a run of %zu pages is not at the start of its block", pages);
    return NULL;
}

LAB_TEST(2, runs, LAB_EARLY)
{
    for (size_t pages = 1; pages <= BUDDY_MAX_PAGES; pages++) {
        struct page *p = one_run(pages);
        size_t n = 0;

        if (p == NULL)
            return;
        while (n < pages && p[n].page_state == PAGE_ALLOC &&
               p[n].page_order <= BUDDY_MAX_ORDER)
            n += (size_t)1 << p[n].page_order;
        if (n != pages)
            KT_FAIL("a run of %zu pages: its blocks have %zu", pages, n);
        if (n != pages || !zone_verify())
            return;
    }
}

/* Runs are allocated and freed again. */
LAB_TEST(2, runs_back, LAB_EARLY)
{
    for (size_t pages = 1; pages <= BUDDY_MAX_PAGES; pages += 7) {
        struct page *p = one_run(pages);

        if (p == NULL)
            return;
        buddy_free_run(p, pages);
        if (zone_verify() && buddy_free_pages() == buddy_zone.zone_total_pages)
            continue;
        KT_FAIL("that was after a run of %zu pages was freed; %zu of %zu pages "
                "are free",
                pages, buddy_free_pages(), buddy_zone.zone_total_pages);
        return;
    }
}

/* ---- 2.4: wrong frees --------------------------------------------------- */

/* Where a wrong free happens. */
static size_t somewhere(void)
{
    return 16 * lab_pick(WRONG, 60);
}

/* Does not return if buddy panics. */
static void expect_refused(size_t frame, unsigned order)
{
    lab_must_panic();
    buddy_free(&page_array[frame], order);
    KT_FAIL("buddy_free took frame %zu, order %u", frame, order);
}

LAB_TEST_PANICS(2, free_twice, LAB_EARLY, "is already free")
{
    if (!zone_make())
        return;
    zone_allocated(somewhere() + 4, 0);
    zone_free(somewhere() + 5, 0);
    expect_refused(somewhere() + 5, 0);
}

/* Joined with its buddy meanwhile: the block that is free is twice as large. */
LAB_TEST_PANICS(2, free_joined, LAB_EARLY, "is already free")
{
    if (!zone_make())
        return;
    zone_free(somewhere(), 4);
    expect_refused(somewhere(), 3);
}

LAB_TEST_PANICS(2, free_other_order, LAB_EARLY, "is allocated at another order")
{
    if (!zone_make())
        return;
    zone_allocated(somewhere() + 8, 3);
    zone_allocated(somewhere() + 16, 3);
    expect_refused(somewhere() + 8, 2);
}

LAB_TEST_PANICS(2, free_middle, LAB_EARLY, "is not the start of a block")
{
    if (!zone_make())
        return;
    zone_allocated(somewhere() + 8, 3);
    expect_refused(somewhere() + 10, 0);
}

LAB_TEST_PANICS(2, free_foreign, LAB_EARLY, "belongs to segkmem")
{
    if (!zone_make())
        return;
    zone_allocated(somewhere() + 8, 0);
    page_array[somewhere() + 8].page_state = PAGE_SLAB;
    expect_refused(somewhere() + 8, 0);
}

LAB_TEST_PANICS(2, free_reserved, LAB_EARLY, "is not allocated")
{
    if (!zone_make())
        return;
    page_array[somewhere() + 8].page_state = PAGE_RESERVED;
    expect_refused(somewhere() + 8, 0);
}

/* ---- 2.5: the start ----------------------------------------------------- */

/* Makes frames [first, end) usable. */
static void usable(size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        page_array[i].page_tag = PAGE_TAG(PAGE_TAIL, PAGE_NO_ORDER);
}

static bool nothing_usable(void)
{
    if (!zone_make())
        return false;
    for (size_t i = 0; i < ZONE_FRAMES; i++)
        page_array[i].page_state = PAGE_RESERVED;
    return true;
}

LAB_TEST(2, start, LAB_EARLY)
{
    if (!nothing_usable())
        return;
    usable(5, 1003);
    buddy_init();
    ZONE_EXPECT(0, 5, 1002);
    ZONE_EXPECT(1, 6, 1000);
    ZONE_EXPECT_NONE(2);
    ZONE_EXPECT(3, 8, 992);
    ZONE_EXPECT(4, 16);
    ZONE_EXPECT(5, 32, 960);
    ZONE_EXPECT(6, 64, 896);
    ZONE_EXPECT(7, 128, 768);
    ZONE_EXPECT(8, 256, 512);
    ZONE_EXPECT_NONE(9);
    ZONE_EXPECT_NONE(10);
    zone_verify();
}

LAB_TEST(2, start_holes, LAB_EARLY)
{
    if (!nothing_usable())
        return;
    usable(0, 1100);
    usable(1101, 1500);
    usable(1512, 2048);
    buddy_init();
    zone_verify();
    ZONE_EXPECT(10, 0);
    ZONE_EXPECT(9, 1536);
    KT_EQ(buddy_free_pages(), 1100 + 399 + 536);
    if (!nothing_usable())
        return;
    usable(1, 9);
    buddy_init();
    zone_verify();
    ZONE_EXPECT(0, 1, 8);
    ZONE_EXPECT(1, 2);
    ZONE_EXPECT(2, 4);
}

/* ---- 2.6: measuring ----------------------------------------------------- */

static void expect_unusable(const struct buddy_stat *st, unsigned order,
                            unsigned want)
{
    unsigned got = buddy_unusable(st, order);

    if (got != want)
        KT_FAIL("order %u: got %u, want %u of a thousand", order, got, want);
}

LAB_TEST(2, unusable, LAB_EARLY)
{
    struct buddy_stat st = {
        .stat_free = {40, 30, 20, 10, 5, 0, 2, 0, 0, 0, 1},
        .stat_free_pages = 40 + 60 + 80 + 80 + 80 + 128 + 1024,
    };

    expect_unusable(&st, 0, 0);
    expect_unusable(&st, 1, 27);
    expect_unusable(&st, 2, 67);
    expect_unusable(&st, 3, 121);
    expect_unusable(&st, 4, 174);
    expect_unusable(&st, 5, 228);
    expect_unusable(&st, 6, 228);
    expect_unusable(&st, 7, 314);
    expect_unusable(&st, 10, 314);
}

LAB_TEST(2, unusable_ends, LAB_EARLY)
{
    struct buddy_stat none = {.stat_largest = -1};
    struct buddy_stat ones = {.stat_free = {3}, .stat_free_pages = 3};
    struct buddy_stat much = {.stat_free = {[9] = 430, [10] = 9},
                              .stat_free_pages = 430 * 512 + 9 * 1024};

    for (unsigned k = 0; k <= BUDDY_MAX_ORDER; k++)
        expect_unusable(&none, k, 0);
    expect_unusable(&ones, 0, 0);
    expect_unusable(&ones, 1, 1000);
    expect_unusable(&ones, BUDDY_ORDERS, 1000);
    expect_unusable(&much, 9, 0);
    expect_unusable(&much, 10, 960);
}

/* ---- all of it ---------------------------------------------------------- */

#define HELD 256

static struct page *held[HELD];
static size_t held_pages[HELD];

/* Frees the run of slot i, or fills the slot. */
static void give_or_take(size_t i)
{
    if (held[i] != NULL) {
        buddy_free_run(held[i], held_pages[i]);
        held[i] = NULL;
        return;
    }
    held_pages[i] = 1 + random_below(random_below(16) == 0 ? 100 : 8);
    held[i] = buddy_alloc_run(held_pages[i]);
}

LAB_TEST(2, stress, LAB_UP)
{
    size_t before = buddy_free_pages();

    random_begin(RANDOM);
    for (size_t i = 0; i < 20000; i++) {
        give_or_take(random_below(HELD));
        if (i % 2000 == 0 && !zone_verify())
            return;
    }
    for (size_t i = 0; i < HELD; i++)
        if (held[i] != NULL)
            give_or_take(i);
    zone_verify();
    lab_held("free pages", buddy_free_pages(), before);
}
