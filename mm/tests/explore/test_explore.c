/*
 * Statements about two tasks at once that the pairs of operations (ops.c) do
 * not decide: each is checked after every schedule.
 *
 * Tests: mm/buddy.c, mm/kmem_reap.c, mm/kmem_slab.c
 */
#include "mm/tests/explore/explore.h"
#include "mm/buddy_impl.h"
#include "mm/debug/debug.h"

static struct kmem_cache *cp;
static void *got[2];
static struct page *spare, *page;

static void make(size_t size)
{
    cp = kmem_cache_create("t_two", size, 0, NULL, NULL);
    FIBERS_TRUE(cp != NULL);
}

static void end(void)
{
    const char *where;

    FIBERS_TRUE(kmem_cache_verify(cp, &where) == NULL);
    FIBERS_TRUE(kmem_cache_destroy(cp) == 0);
}

static void free_got(void)
{
    for (unsigned i = 0; i < 2; i++)
        if (got[i] != NULL)
            kmem_cache_free(cp, got[i]);
}

/* ---- S-23: two tasks that grow a cache take two colours ----------------- */

static void make_colours(void)
{
    make(200);
}

static void alloc_one(void)
{
    got[fibers_running] = kmem_cache_alloc(cp, KM_NOSLEEP);
    FIBERS_TRUE(got[fibers_running] != NULL);
}

static void check_colours(void)
{
    const struct kmem_slab *sp = test_slab(cp, 0);

    if (cp->cache_slabs == 2)
        FIBERS_TRUE(sp->slab_colour != kmem_slab_next(sp)->slab_colour);
    free_got();
    end();
}

KTEST(explore, S23_two_growers_take_two_colours)
{
    explore_all("colours", make_colours, alloc_one, alloc_one, check_colours);
}

/* ---- S-43: what is used while a reap runs stays ------------------------- */

static void make_reapable(void)
{
    make(500);
    test_alloc(cp, 0, 4 * TEST_WS_PER);
    test_free(cp, 0, 4 * TEST_WS_PER);
    kmem_update();
    kmem_update();
}

static void reap_ws(void)
{
    kmem_cache_reap(cp, KMEM_REAP_WS);
    kmem_cache_reap(cp, KMEM_REAP_WS);
}

static void use_two_slabs(void)
{
    test_alloc(cp, 0, 2 * TEST_WS_PER);
    test_free(cp, 0, 2 * TEST_WS_PER);
}

static void check_kept(void)
{
    FIBERS_TRUE(cp->cache_slabs >= 2);
    end();
}

KTEST(explore, S43_a_reap_takes_no_slab_that_is_used_meanwhile)
{
    explore_all("reap", make_reapable, reap_ws, use_two_slabs, check_kept);
}

/* ---- S-45: a reap can always follow ------------------------------------- */

static void reap_all(void)
{
    kmem_reap(KMEM_REAP_ALL);
}

static void check_reaps(void)
{
    test_alloc(cp, 0, 1);
    test_free(cp, 0, 1);
    FIBERS_TRUE(kmem_reap(KMEM_REAP_ALL) != 0);
    FIBERS_TRUE(cp->cache_slabs == 0);
    end();
}

KTEST(explore, S45_after_two_reaps_at_once_a_third_works)
{
    explore_all("reaps", make_reapable, reap_all, reap_all, check_reaps);
}

/* ---- S-3: NULL only if there was nothing at the last look --------------- */

/* No page is free, and no cache has a free slab. */
static void make_dry(void)
{
    make(1000);
    test_alloc(cp, 0, 4);
    spare = buddy_alloc(0);
    FIBERS_TRUE(spare != NULL);
    test_flood();
    test_starve();
}

static void end_dry(void)
{
    test_starve_end();
    test_flood_end();
    test_free(cp, 0, 4);
    free_got();
    end();
    got[0] = got[1] = NULL;
}

static void free_page(void)
{
    buddy_free(spare, 0);
}

static void alloc_page(void)
{
    page = buddy_alloc(0);
}

/* After a reap, a task searches the lists once more. */
static void check_page(void)
{
    const mm_lock_t *lock = &buddy_zone.zone_lock;

    if (page == NULL)
        FIBERS_TRUE(explore_step(0, lock, 1) < explore_step(1, lock, 0));
    else
        buddy_free(page, 0);
    end_dry();
}

KTEST(explore, S46_a_page_freed_meanwhile_is_found)
{
    explore_all("page", make_dry, alloc_page, free_page, check_page);
}

static void alloc_object(void)
{
    got[fibers_running] = kmem_cache_alloc(cp, KM_NOSLEEP);
}

static void free_object(void)
{
    kmem_cache_free(cp, test_obj[3]);
    test_obj[3] = NULL;
}

/* The last two steps with the lock are the last search. */
static void check_object(void)
{
    const mm_lock_t *lock = &cp->cache_lock;

    if (got[0] == NULL)
        FIBERS_TRUE(explore_step(0, lock, 1) < explore_step(1, lock, 0));
    FIBERS_TRUE(cp->cache_fails == (got[0] == NULL));
    test_obj[3] = got[0] != NULL ? got[0] : kmem_cache_alloc(cp, KM_NOSLEEP);
    got[0] = NULL;
    FIBERS_TRUE(test_obj[3] != NULL);
    buddy_free(spare, 0);
    end_dry();
}

KTEST(explore, S3_an_object_freed_meanwhile_is_found)
{
    explore_all("object", make_dry, alloc_object, free_object, check_object);
}

/* ---- a slab that is reaped keeps its layout ----------------------------- */

static int mode_error;

static void reap_it(void)
{
    kmem_cache_reap(cp, KMEM_REAP_ALL);
}

static void set_mode(void)
{
    mode_error = kmem_debug_set(cp, KMF_CHECK);
}

static void check_layout(void)
{
    const char *where;

    FIBERS_TRUE(mode_error == 0 || mode_error == -KMEM_EAGAIN);
    FIBERS_TRUE(kmem_verify(&where) == NULL);
    end();
}

KTEST(explore, no_layout_changes_while_a_slab_is_destroyed)
{
    explore_all("layout", make_reapable, reap_it, set_mode, check_layout);
}

/* ---- a buffer of another layout is not taken ---------------------------- */

static void make_empty(void)
{
    make(500);
}

/* The cache changes its layout, and has a free buffer of it. */
static void set_mode_and_use(void)
{
    set_mode();
    kmem_cache_free(cp, kmem_cache_alloc(cp, KM_NOSLEEP));
}

static void check_taken(void)
{
    const char *where;

    FIBERS_TRUE(mode_error == 0 || mode_error == -KMEM_EAGAIN ||
                mode_error == -KMEM_EBUSY);
    FIBERS_TRUE(kmem_verify(&where) == NULL);
    kmem_cache_free(cp, got[0]);
    got[0] = NULL;
    end();
}

KTEST(explore, an_allocation_that_grew_the_cache_sees_its_new_layout)
{
    explore_all("new layout", make_empty, alloc_one, set_mode_and_use,
                check_taken);
}

/* ---- the pages of two hash tables --------------------------------------- */

#define BEFORE_GROWTH 169 /* buffers of a table of 64 */

static void make_full_table(void)
{
    make(PAGE_SIZE);
    test_alloc(cp, 0, BEFORE_GROWTH);
}

static void verify_all(void)
{
    const char *where;

    FIBERS_TRUE(kmem_verify(&where) == NULL);
}

static void check_table(void)
{
    FIBERS_TRUE(cp->cache_hash_mask + 1 == 256);
    test_free(cp, 0, BEFORE_GROWTH);
    free_got();
    got[0] = NULL;
    end();
}

KTEST(explore, a_hash_table_that_grows_raises_no_alarm)
{
    explore_all("table", make_full_table, alloc_one, verify_all, check_table);
}

/* ---- a page that says it is unmapped has its slab ----------------------- */

static void make_unmapped(void)
{
    make(500);
    FIBERS_TRUE(kmem_debug_set(cp, KMF_UNMAP) == 0);
    test_alloc(cp, 0, 1);
    test_free(cp, 0, 1);
}

static void release_it(void)
{
    kmem_unmapped_release(cp);
}

/* The slab data that the page names is not free. Without a lock: no other task
 * runs here. */
static void look_at_page(void)
{
    const struct page *p = virt_to_page(test_obj[0]);
    const struct kmem_bufctl *bcp = NULL;

    host_point("looks", NULL, __FILE__, __LINE__);
    if (p->page_state == PAGE_UNMAPPED)
        bcp = kmem_slab_of(p->page_owner)->slab_head;
    for (; bcp != NULL; bcp = bcp->bufctl_next)
        FIBERS_TRUE(kmem_bufctl_buf(kmem_slab_cache, bcp) != p->page_owner);
}

KTEST(explore, S53_an_unmapped_page_has_its_slab)
{
    explore_all("unmapped page", make_unmapped, release_it, look_at_page, end);
}

/* ---- S-8: destroy waits for the holders --------------------------------- */

static int destroy_error;

static void destroy_it(void)
{
    destroy_error = kmem_cache_destroy(cp);
}

static void reap_all_and_verify(void)
{
    reap_all();
    verify_all();
}

static void check_destroyed(void)
{
    FIBERS_TRUE(destroy_error == 0);
    FIBERS_TRUE(kmem_cache_find("t_two") == NULL);
}

KTEST(explore, S8_destroy_waits_for_a_reap)
{
    explore_all("destroy", make_reapable, destroy_it, reap_all_and_verify,
                check_destroyed);
}

/* There is no other task that could end the hold. The cache's lock is taken to
 * find that out. */
KTEST(explore, S8_a_held_cache_stays)
{
    uint64_t taken;

    make(100);
    kmem_hold(cp);
    taken = cp->cache_lock.lock_taken;
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EAGAIN);
    KT_EQ(cp->cache_lock.lock_taken - taken, 1);
    kmem_release(cp);
    end();
}
