/*
 * Commitment: promises to spaces, the pages that the kernel leaves for them,
 * and the account of both.
 *
 * Tests: kernel/vm/commit.c, kernel/vm/space.c, kernel/vm/frame.c
 */
#include "kernel/ipc/tests/ipc_actor.h"
#include "kernel/lib/string.h"
#include "kernel/vm/commit.h"
#include "kernel/vm/frame.h"
#include "kernel/vm/space_impl.h"
#include "kernel/x86/paging.h"
#include "mm/buddy.h"
#include "tools/workshop/stress/fail.h"
#include "mm/kmem.h"
#include "mm/segkmem.h"

#define AREA     (SPACE_MMAP_BASE + MIB(16))
#define STACK    (SPACE_STACK_TOP - SPACE_STACK_RESERVE)
#define WRITABLE (PROT_READ | PROT_WRITE)

static struct commit_stat before;

static struct commit_stat now(void)
{
    struct commit_stat st;

    commit_stat(&st);
    return st;
}

/* The spaces of a case. */
static struct space *s, *copy, *most, *text;

static void end(struct space **space)
{
    if (*space != NULL)
        space_destroy(*space);
    *space = NULL;
}

static void end_spaces(void *unused UNUSED)
{
    end(&text);
    end(&most);
    end(&copy);
    end(&s);
}

/* Reaps first, so that nothing is left to reclaim during the case. */
static void begin_case(void)
{
    ktest_undo(end_spaces, NULL);
    kmem_reap(KMEM_REAP_ALL);
    before = now();
}

/* So many more than at the start: pages promised, read-only frames. */
static void expect_more(size_t promised, size_t read_only)
{
    KT_EQ(now().stat_promised, before.stat_promised + promised);
    KT_EQ(now().stat_read_only, before.stat_read_only + read_only);
    KT_SOUND(commit_verify);
}

static void end_case(void)
{
    end_spaces(NULL);
    expect_more(0, 0);
    kmem_reap(KMEM_REAP_ALL);
    KT_EQ(now().stat_available, before.stat_available);
    KT_EQ(now().stat_kernel, before.stat_kernel);
}

/* The largest promise possible now, in pages. */
static size_t room(void)
{
    struct commit_stat st = now();

    return commit_limit(&st) - commit_committed(&st);
}

/* A space with a region of `pages`; NULL if it is refused. */
static struct space *space_with(size_t pages, int prot)
{
    struct space *space = space_create(NULL);

    if (space != NULL && space_add_region(space, AREA, AREA + pages * PAGE_SIZE,
                                          prot, REGION_MMAP) != 0)
        end(&space);
    return space;
}

/* Writes to pages [from, to) of the area; the number of faults that failed. */
static size_t touch(struct space *space, size_t from, size_t to)
{
    size_t failed = 0;

    for (size_t i = from; i < to; i++)
        failed += space_fault(space, AREA + i * PAGE_SIZE, true) != 0;
    return failed;
}

/* ---- promises ----------------------------------------------------------- */

KTEST(commit, a_space_is_promised_its_pages)
{
    size_t frames = frame_count();

    begin_case();
    s = space_with(20, WRITABLE);
    KT_REQUIRE(s != NULL);
    expect_more(20, 0);
    KT_EQ(frame_count(), frames);
    KT_EQ(touch(s, 0, 7), 0);
    expect_more(20, 0);
    KT_EQ(frame_count(), frames + 7);
    KT_TRUE(space_verify(s) == NULL);
    KT_EQ(space_munmap(s, AREA, 19 * PAGE_SIZE), -EINVAL);
    expect_more(20, 0);
    KT_EQ(space_munmap(s, AREA, 20 * PAGE_SIZE), 0);
    expect_more(0, 0);
    KT_EQ(frame_count(), frames);
    KT_TRUE(space_mmap(s, 3 * PAGE_SIZE - 1, WRITABLE) > 0);
    expect_more(3, 0);
    end_case();
}

/* They have their frames at once, and these are shared by forks. */
KTEST(commit, read_only_pages_are_promised_once)
{
    size_t frames = frame_count();

    begin_case();
    s = space_with(5, PROT_READ);
    KT_REQUIRE(s != NULL);
    expect_more(0, 5);
    KT_EQ(frame_count(), frames + 5);
    copy = space_copy(s);
    KT_REQUIRE(copy != NULL);
    expect_more(0, 5);
    KT_TRUE(space_verify(s) == NULL && space_verify(copy) == NULL);
    KT_EQ(space_fault(copy, AREA, true), -EFAULT);
    end(&s);
    expect_more(0, 5);
    KT_EQ(space_munmap(copy, AREA, 5 * PAGE_SIZE), 0);
    expect_more(0, 0);
    end_case();
}

KTEST(commit, a_fork_is_promised_as_many)
{
    size_t frames = frame_count();

    begin_case();
    s = space_with(12, WRITABLE);
    KT_REQUIRE(s != NULL);
    KT_EQ(touch(s, 0, 6), 0);
    copy = space_copy(s);
    KT_REQUIRE(copy != NULL);
    expect_more(24, 0);
    KT_EQ(frame_count(), frames + 6);
    KT_EQ(touch(copy, 3, 12), 0);
    KT_EQ(touch(s, 3, 12), 0);
    KT_EQ(frame_count(), frames + 24 - 3); /* three are still shared */
    expect_more(24, 0);
    end(&s);
    expect_more(12, 0);
    KT_TRUE(space_verify(copy) == NULL);
    end_case();
}

KTEST(commit, the_heap_is_promised_by_sbrk)
{
    begin_case();
    s = space_create(NULL);
    KT_REQUIRE(s != NULL);
    s->space_break = s->space_break_base = SPACE_IMAGE_BASE;
    KT_EQ(space_add_region(s, SPACE_IMAGE_BASE, SPACE_IMAGE_BASE, WRITABLE,
                           REGION_HEAP),
          0);
    expect_more(0, 0);
    KT_EQ(space_sbrk(s, 5), SPACE_IMAGE_BASE);
    expect_more(1, 0);
    KT_EQ(space_sbrk(s, PAGE_SIZE - 5), SPACE_IMAGE_BASE + 5);
    expect_more(1, 0);
    KT_EQ(space_sbrk(s, 9 * PAGE_SIZE), SPACE_IMAGE_BASE + PAGE_SIZE);
    expect_more(10, 0);
    KT_EQ(space_sbrk(s, (int32_t)(room() + 1) * (int32_t)PAGE_SIZE), -ENOMEM);
    KT_EQ(space_sbrk(s, INT32_MAX), -ENOMEM);
    KT_EQ(space_sbrk(s, INT32_MIN), -EINVAL);
    expect_more(10, 0);
    KT_EQ(space_sbrk(s, -(int32_t)(4 * PAGE_SIZE + 1)),
          SPACE_IMAGE_BASE + 10 * PAGE_SIZE);
    expect_more(6, 0);
    KT_EQ(space_sbrk(s, -(int32_t)(6 * PAGE_SIZE - 1)),
          SPACE_IMAGE_BASE + 6 * PAGE_SIZE - 1);
    expect_more(0, 0);
    KT_TRUE(space_verify(s) == NULL);
    end_case();
}

/* ---- refusing ----------------------------------------------------------- */

KTEST(commit, no_more_is_promised_than_there_is)
{
    size_t pages;

    begin_case();
    s = space_with(1, WRITABLE);
    most = space_create(NULL);
    KT_REQUIRE(s != NULL && most != NULL);
    KT_EQ(space_add_region(most, AREA, AREA + PAGE_SIZE, WRITABLE, REGION_MMAP),
          0);
    pages = room(); /* with all tables but those that it will need */
    KT_EQ(commit_promise(&most->space_commit, pages + 1), -ENOMEM);
    KT_EQ(commit_promise(&most->space_commit, SIZE_MAX), -ENOMEM);
    expect_more(2, 0);
    KT_REQUIRE(commit_promise(&most->space_commit, pages) == 0);
    expect_more(2 + pages, 0);
    KT_EQ(room(), 0);
    KT_EQ(now().stat_available, COMMIT_KERNEL_SHARE);
    KT_EQ(commit_promise(&s->space_commit, 1), -ENOMEM);
    KT_EQ(commit_promise(&s->space_commit, 0), 0);
    KT_EQ(space_mmap(s, PAGE_SIZE, WRITABLE), -ENOMEM);
    KT_EQ(space_mmap(s, PAGE_SIZE, PROT_READ), -ENOMEM);
    copy = space_copy(s);
    KT_TRUE(copy == NULL);
    KT_TRUE(space_verify(s) == NULL);
    KT_EQ(touch(s, 0, 1), 0);
    expect_more(2 + pages, 0);
    commit_release(&most->space_commit, pages);
    end(&most);
    KT_TRUE(space_mmap(s, PAGE_SIZE, WRITABLE) > 0);
    end_case();
}

/* Each allocation fails once, of an object or of a promise. */
static void fail_each(enum kmem_fail_kind kind)
{
    int32_t at = -ENOMEM;

    for (uint32_t n = 1; at < 0 && n < 20; n++) {
        kmem_fail_set(kind, n);
        copy = space_copy(s);
        if (kmem_fail_fired())
            KT_TRUE(copy == NULL);
        kmem_fail_set(KMEM_FAIL_NONE, 0);
        end(&copy);
        expect_more(8, 0);
        kmem_fail_set(kind, n);
        at = space_mmap(s, MIB(4) + 1, WRITABLE);
        KT_TRUE(kmem_fail_fired() == (at == -ENOMEM));
        kmem_fail_set(KMEM_FAIL_NONE, 0);
        KT_TRUE(space_verify(s) == NULL);
        if (at > 0)
            KT_EQ(space_munmap(s, (uaddr_t)at, MIB(4) + 1), 0);
        expect_more(8, 0);
    }
    KT_TRUE(at > 0);
}

KTEST(commit, failures_keep_nothing)
{
    begin_case();
    s = space_with(8, WRITABLE);
    KT_REQUIRE(s != NULL);
    if (room() > 2 * (MIB(4) >> PAGE_SHIFT)) {
        fail_each(KMEM_FAIL_SLAB);
        fail_each(KMEM_FAIL_PAGE);
    }
    end_case();
}

KTEST(commit, the_stack_grows_by_promise)
{
    size_t pages;

    KT_NEEDS(SPACE_STACK_MAX + MIB(1));
    begin_case();
    s = space_create(NULL);
    most = space_create(NULL);
    KT_REQUIRE(s != NULL && most != NULL);
    KT_EQ(space_add_region(s, STACK, SPACE_STACK_TOP, WRITABLE, REGION_STACK),
          0);
    expect_more(SPACE_STACK_RESERVE / PAGE_SIZE, 0);
    KT_EQ(space_fault(s, STACK - 3 * PAGE_SIZE + 1, true), 0);
    expect_more(SPACE_STACK_RESERVE / PAGE_SIZE + 3, 0);
    pages = room();
    KT_EQ(commit_promise(&most->space_commit, pages), 0);
    KT_EQ(space_fault(s, STACK - 4 * PAGE_SIZE, true), -ENOMEM);
    for (uaddr_t at = STACK - 3 * PAGE_SIZE; at < SPACE_STACK_TOP;
         at += PAGE_SIZE)
        KT_EQ(space_fault(s, at, true), 0);
    KT_TRUE(space_verify(s) == NULL);
    commit_release(&most->space_commit, pages);
    KT_EQ(space_fault(s, SPACE_STACK_TOP - SPACE_STACK_MAX, true), 0);
    KT_EQ(space_fault(s, SPACE_STACK_TOP - SPACE_STACK_MAX - 1, true), -EFAULT);
    expect_more(SPACE_STACK_MAX / PAGE_SIZE, 0);
    end_case();
}

/* ---- the kernel's pages and the promised ones --------------------------- */

struct taken {
    struct taken *taken_next;
};

/* Allocates all pages that the kernel can get. A cache would need a second page
 * for bufctls, and might leave the last one. */
static struct taken *take_all(size_t *n)
{
    struct taken *all = NULL;
    struct taken *t;

    for (*n = 0; (t = kmem_getpages(1, PAGE_OVERSIZE, NULL)) != NULL; ++*n) {
        t->taken_next = all;
        all = t;
    }
    return all;
}

static void free_taken(void *taken)
{
    struct taken *all = taken;

    while (all != NULL) {
        struct taken *next = all->taken_next;

        kmem_freepages(all, 1);
        all = next;
    }
}

KTEST(commit, the_kernel_leaves_what_is_promised)
{
    struct taken *all;
    size_t pages, n;

    begin_case();
    pages = room() / 4;
    s = space_with(pages, WRITABLE);
    KT_REQUIRE(s != NULL);
    KT_EQ(touch(s, 0, pages / 3), 0);
    copy = space_copy(s);
    KT_REQUIRE(copy != NULL);
    all = take_all(&n);
    ktest_undo(free_taken, all);
    KT_GE(n, pages);
    KT_REQUIRE(now().stat_available == 0);
    KT_TRUE(kmem_getpages(1, PAGE_SLAB, NULL) == NULL);
    KT_EQ(commit_promise(&s->space_commit, 1), -ENOMEM);
    expect_more(2 * pages, 0);
    KT_EQ(touch(copy, 0, pages), 0);
    KT_EQ(touch(s, 0, pages), 0);
    expect_more(2 * pages, 0);
    KT_TRUE(space_verify(s) == NULL && space_verify(copy) == NULL);
    free_taken(all);
    end_case();
}

/* More than buddy could give is refused before anything is reclaimed. */
KTEST(commit, impossible_requests_reclaim_nothing)
{
    struct kmem_cache *cp = kmem_cache_create("t_keep", 64, 0, NULL, NULL);
    struct commit_stat st;

    ktest_undo(end_spaces, NULL);
    s = space_create(NULL);
    KT_REQUIRE(cp != NULL && s != NULL);
    kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    st = now();
    KT_TRUE(kmem_getpages(BUDDY_MAX_PAGES + 1, PAGE_OVERSIZE, NULL) == NULL);
    KT_TRUE(kmem_getpages(st.stat_total + 1, PAGE_OVERSIZE, NULL) == NULL);
    KT_EQ(commit_promise(&s->space_commit, st.stat_total + 1), -ENOMEM);
    KT_EQ(now().stat_kernel, st.stat_kernel);
    /* A promise reclaims memory if it must. */
    KT_EQ(commit_promise(&s->space_commit, room() + 1), 0);
    KT_TRUE(now().stat_kernel < st.stat_kernel);
    KT_SOUND(commit_verify);
    end(&s);
    KT_EQ(kmem_cache_destroy(cp), 0);
}

static int32_t touch_own(uint32_t at, uint32_t b, uint32_t c)
{
    (void)b, (void)c;
    return space_fault(task_self()->task_space, at, true);
}

/* For a moment another task may hold a page that it was not promised: a second
 * copy of a shared page. The fault waits until that page is freed. */
KTEST(commit, a_fault_waits_for_its_page)
{
    static struct actor toucher;
    struct commit_stat st;
    struct page *held = NULL;
    struct page *p;

    actor_start(&toucher, "toucher", PAGE_SIZE);
    while ((p = buddy_alloc_reserved(1)) != NULL) {
        p->page_owner = held;
        held = p;
    }
    st = now();
    KT_TRUE(kmem_getpages(1, PAGE_SLAB, NULL) == NULL);
    KT_EQ(now().stat_kernel, st.stat_kernel);
    KT_TRUE(!actor_do(&toucher, touch_own, ACTOR_SEND, 0, 0));
    while ((p = held) != NULL) {
        held = p->page_owner;
        p->page_owner = NULL;
        buddy_free_reserved(p, 1);
    }
    mm_wake_waiters();
    actor_settle();
    KT_TRUE(!actor_waits(&toucher));
    KT_EQ(toucher.actor_result, 0);
    actor_end(&toucher);
    KT_SOUND(commit_verify);
}

/* ---- what the account notices ------------------------------------------- */

KTEST(commit, verify_sees_a_wrong_account)
{
    struct page *p;
    void *owner;

    begin_case();
    s = space_with(4, WRITABLE);
    text = space_with(1, PROT_READ);
    KT_REQUIRE(s != NULL && text != NULL);
    s->space_commit.commit_pages++;
    KT_UNSOUND(commit_verify,
               "the spaces were promised another number of pages");
    KT_TRUE(space_verify(s) != NULL);
    s->space_commit.commit_pages--;
    p = space_frame(*space_entry(text, AREA));
    owner = p->page_owner;
    p->page_owner = NULL;
    KT_UNSOUND(commit_verify, "the number of read-only frames is wrong");
    KT_TRUE(space_verify(text) != NULL);
    p->page_owner = owner;
    buddy_unreserve(1);
    KT_UNSOUND(commit_verify, "fewer pages are reserved than were promised");
    KT_TRUE(buddy_reserve(2, 0));
    KT_UNSOUND(commit_verify, "more pages are reserved than were promised");
    buddy_unreserve(1);
    KT_SOUND(commit_verify);
    end_case();
}
