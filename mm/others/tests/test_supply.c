/*
 * The page supplier of the other allocators: the lowest run first, any run
 * back, counts and the quota; and records.
 */
#include "mm/others/tests/other_test.h"
#include "kernel/lib/string.h"

static size_t get(size_t pages, size_t align)
{
    void *p = supply_alloc(&test_pages, pages, align);

    return p == NULL ? SIZE_MAX : test_offset(p) >> PAGE_SHIFT;
}

static void put(size_t first, size_t pages)
{
    supply_free(&test_pages, test_pages.supply_base + (first << PAGE_SHIFT),
                pages);
}

KTEST(supply, the_lowest_run_is_taken)
{
    other_test_start(&slob_allocator);
    KT_EQ(get(1, PAGE_SIZE), 0);
    KT_EQ(get(3, PAGE_SIZE), 1);
    KT_EQ(get(4, 4 * PAGE_SIZE), 4);
    KT_EQ(get(1, PAGE_SIZE), 8);
    KT_EQ(get(2, 2 * PAGE_SIZE), 10);
    KT_EQ(get(1, PAGE_SIZE), 9);
    put(2, 5); /* of two runs */
    KT_EQ(get(6, PAGE_SIZE), 12);
    KT_EQ(get(5, PAGE_SIZE), 2);
}

KTEST(supply, counts_and_quota)
{
    other_test_start(&slob_allocator);
    KT_EQ(get(TEST_PAGES + 1, PAGE_SIZE), SIZE_MAX);
    KT_EQ(get(TEST_PAGES, PAGE_SIZE), 0);
    KT_EQ(get(1, PAGE_SIZE), SIZE_MAX);
    put(0, TEST_PAGES - 3);
    KT_EQ(test_pages.supply_held, 3);
    KT_EQ(test_pages.supply_peak, TEST_PAGES);
    KT_EQ(test_pages.supply_returns, TEST_PAGES - 3);
    test_pages.supply_quota = 5;
    KT_EQ(get(3, PAGE_SIZE), SIZE_MAX);
    KT_EQ(test_pages.supply_held, 3);
    KT_EQ(get(2, PAGE_SIZE), 0);
    test_pages.supply_quota = TEST_PAGES;
    KT_EQ(get(1, MIB(4)), 1024); /* 0 is taken */
    KT_EQ(get(1, MIB(4)), SIZE_MAX);
    KT_EQ(test_pages.supply_held, 6);
}

KTEST(supply, descriptors)
{
    uintptr_t *first, *last;

    other_test_start(&slob_allocator);
    get(2, PAGE_SIZE);
    first = supply_info(&test_pages, test_pages.supply_base + PAGE_SIZE - 1);
    last = supply_info(&test_pages, test_pages.supply_base + PAGE_SIZE);
    KT_EQ(last - first, SUPPLY_INFO_WORDS);
    KT_TRUE(supply_page(&test_pages, last) ==
            test_pages.supply_base + PAGE_SIZE);
    *first = *last = 7;
    put(0, 1);
    KT_EQ(*first, 0);
    KT_EQ(*last, 7);
    KT_TRUE(supply_info(&test_pages, test_pages.supply_base - 1) == NULL);
    KT_TRUE(supply_info(&test_pages, test_pages.supply_base +
                                         TEST_PAGES * PAGE_SIZE) == NULL);
    KT_PANICS(put(0, 1), "page 0 is free");
}

/* Records have pages of their own, which nothing holds. */
KTEST(supply, records)
{
    char *small, *large, *other;

    other_test_start(&slob_allocator);
    test_pages.supply_quota = 0;
    small = supply_record(&test_pages, 100);
    KT_REQUIRE(small != NULL);
    KT_EQ(test_counts().stat_fixed, PAGE_SIZE);
    memset(small, 1, 100);
    large = supply_record(&test_pages, 3 * PAGE_SIZE - 100);
    KT_EQ(test_counts().stat_fixed, 4 * PAGE_SIZE);
    other = supply_record(&test_pages, 100); /* of the first page */
    KT_EQ(other - small, 2 * OTHER_LINE);
    KT_EQ((uintptr_t)other % OTHER_LINE, 0);
    supply_record_free(&test_pages, small, 100);
    supply_record_free(&test_pages, other, 100);
    supply_record_free(&test_pages, large, 3 * PAGE_SIZE - 100);
    KT_TRUE(supply_record(&test_pages, 97) == other);
    KT_TRUE(supply_record(&test_pages, 3 * PAGE_SIZE - 99) == large);
    KT_TRUE(supply_record(&test_pages, 200) != small);
    KT_TRUE(supply_record(&test_pages, 100) == small);
    KT_EQ(small[0], 0);
    KT_EQ(test_counts().stat_fixed, 4 * PAGE_SIZE);
    KT_EQ(test_pages.supply_held, 0);
    KT_TRUE(supply_record(&test_pages, TEST_PAGES * PAGE_SIZE) == NULL);
    other_test_check();
}
