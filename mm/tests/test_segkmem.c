/*
 * segkmem: whole pages for the slab allocator, marked and counted.
 */
#include "mm/tests/kmem_test.h"

static struct segkmem_stat stat_now(void)
{
    struct segkmem_stat s;

    segkmem_stat(&s);
    return s;
}

static void check_use(enum page_state use, size_t pages)
{
    struct segkmem_stat before = stat_now();
    struct segkmem_stat now;
    int owner;
    char *run = kmem_getpages(pages, use, &owner);
    struct page *p;

    KT_REQUIRE(run != NULL);
    p = virt_to_page(run);
    KT_EQ((uintptr_t)run % PAGE_SIZE, 0);
    for (size_t i = 0; i < pages; i++) {
        KT_EQ(p[i].page_state, use);
        KT_TRUE(p[i].page_owner == &owner);
    }
    KT_TRUE(p[pages].page_owner != &owner);
    now = stat_now();
    KT_EQ(now.stat_pages - before.stat_pages, pages);
    KT_EQ(now.stat_use[PAGE_SLAB] - before.stat_use[PAGE_SLAB],
          use == PAGE_SLAB ? pages : 0);
    KT_EQ(now.stat_use[PAGE_HASH] - before.stat_use[PAGE_HASH],
          use == PAGE_HASH ? pages : 0);
    KT_EQ(now.stat_use[PAGE_OVERSIZE] - before.stat_use[PAGE_OVERSIZE],
          use == PAGE_OVERSIZE ? pages : 0);
    kmem_freepages(run, pages);
    KT_EQ(stat_now().stat_pages, before.stat_pages);
    for (size_t i = 0; i < pages; i++)
        KT_TRUE(p[i].page_owner == NULL && p[i].page_state <= PAGE_FREE);
}

KTEST(segkmem, pages_are_marked_and_counted)
{
    for (size_t pages = 1; pages <= 16; pages++) {
        check_use(PAGE_SLAB, pages);
        check_use(PAGE_HASH, pages);
        check_use(PAGE_OVERSIZE, pages);
    }
}

KTEST(segkmem, exactly_n_pages_leave_buddy)
{
    size_t before = buddy_free_pages();

    for (size_t pages = 1; pages <= 40; pages++) {
        void *run = kmem_getpages(pages, PAGE_SLAB, NULL);

        KT_REQUIRE(run != NULL);
        KT_EQ(before - buddy_free_pages(), pages);
        kmem_freepages(run, pages);
        KT_EQ(buddy_free_pages(), before);
    }
}

KTEST(segkmem, failures_count_no_pages)
{
    size_t before = stat_now().stat_pages;

    KT_TRUE(kmem_getpages(BUDDY_MAX_PAGES + 1, PAGE_OVERSIZE, NULL) == NULL);
    KT_TRUE(kmem_getpages(0, PAGE_OVERSIZE, NULL) == NULL);
    test_flood();
    KT_TRUE(kmem_getpages(1, PAGE_SLAB, NULL) == NULL);
    test_flood_end();
    KT_EQ(stat_now().stat_pages, before);
}

#ifdef MM_HOST
KTEST(segkmem, wrong_frees_are_caught)
{
    char *run = kmem_getpages(2, PAGE_SLAB, NULL);
    struct page *p = buddy_alloc(0);
    size_t beyond = page_count - page_index(virt_to_page(run)) + 1;
    char outside[1];
    char text[128];

    KT_PANICS(kmem_freepages(run + 8, 1), "not a run of pages");
    KT_PANICS(kmem_freepages(run, 0), "not a run of pages");
    KT_PANICS(kmem_freepages(outside, 1), "not a run of pages");
    KT_PANICS(kmem_freepages((char *)NULL + PAGE_SIZE, 1),
              "not a run of pages");
    KT_PANICS(kmem_freepages(run, SIZE_MAX), "not a run of pages");
    snprintf(text, sizeof(text),
             "kmem_freepages: %p, %zu pages: not a run of pages", (void *)run,
             beyond);
    KT_PANICS(kmem_freepages(run, beyond), text);
    snprintf(text, sizeof(text), "page 0x%lx is ",
             (unsigned long)mm_virt_to_phys(run) + 2 * PAGE_SIZE);
    KT_PANICS(kmem_freepages(run, 3), text);
    KT_PANICS(kmem_setuse(run, 3, PAGE_HASH, NULL), text);
    KT_PANICS(kmem_freepages(page_to_virt(p), 1), "not segkmem's");
    p->page_state = PAGE_USER;
    KT_PANICS(kmem_freepages(page_to_virt(p), 1), "is user, not segkmem's");
    p->page_state = PAGE_ALLOC;
    KT_PANICS(kmem_freepages(page_to_virt(&page_array[0]), 1), "is reserved");
    kmem_freepages(run, 2);
    KT_PANICS(kmem_freepages(run, 2), "not segkmem's");
    buddy_free(p, 0);
}
#endif
