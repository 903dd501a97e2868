/*
 * Tests of lab 10, tasks 10.1 to 10.5: an allocator of one's own
 * (mm/others/yours.c), which has a heap of its own in an arena. They ask for
 * nothing that mm/others/others.h does not promise, or the page of the lab.
 */
#include "docs/labs/10-your-own-allocator/tests/heap.h"
#include "tools/workshop/labs/guard.h"
#include "tools/workshop/labs/seed.h"
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"

/* What follows from the seed. */
enum {
    LARGE = 100,
    SMALL,
    MANY_SIZE,
    OBJECTS,
    ALIGN,
    CHURN,
    SCRIBBLE,
    WIPE,
    BACK,
    FIRST_SIZE,
    LOCKED,
    WRONG
};

#define BLOCKS 600
#define LEFT   4 /* pages that an empty heap may hold */

static struct own_block block[BLOCKS];

static void begin(unsigned start)
{
    memset(block, 0, sizeof(block));
    random_begin(start);
    heap_begin(&yours_allocator);
}

static void expect_sound(void)
{
    const char *wrong = yours_allocator.op_check();

    if (wrong != NULL)
        KT_FAIL("op_check says of a heap that is right: %s", wrong);
}

/* `ops` random operations on blocks of up to `most` bytes and, if there is one,
 * on a cache. All blocks that are left stay. */
static void churn(unsigned ops, size_t least, size_t most,
                  struct other_cache *c)
{
    while (ops-- > 0) {
        struct own_block *b = &block[random_below(BLOCKS)];

        if (b->block_at != NULL)
            block_drop(b);
        else if (c != NULL && random_below(3) == 0)
            KT_REQUIRE(block_new(b, c->other_size, c));
        else
            KT_REQUIRE(block_new(
                b, least + random_below((uint32_t)(most - least + 1)), NULL));
    }
}

static void drop_all(void)
{
    for (size_t i = 0; i < BLOCKS; i++)
        if (block[i].block_at != NULL)
            block_drop(&block[i]);
}

static void press(void)
{
    if (yours_allocator.op_pressure != NULL)
        yours_allocator.op_pressure();
}

/* Fills the heap with blocks of `size` bytes until there is no memory, each
 * with the address of the one before. Returns the last. */
static void **fill(size_t size, size_t *count)
{
    void **last = NULL;

    for (*count = 0;; ++*count) {
        struct own_block b;

        if (!block_new(&b, size, NULL))
            return last;
        *(void ***)b.block_at = last;
        last = (void **)b.block_at;
    }
}

static void unfill(void **last, size_t size)
{
    while (last != NULL) {
        void **before = *last;

        yours_allocator.op_free(last, size);
        last = before;
    }
}

/* ---- 10.1: whole pages --------------------------------------------------- */

#define LARGEST (9 * PAGE_SIZE)

LAB_TEST(10, whole, LAB_UP)
{
    size_t pages = 0;

    begin(LARGE);
    for (size_t i = 0; i < 20; i++) {
        size_t size = PAGE_SIZE + random_below(LARGEST - PAGE_SIZE);

        KT_REQUIRE(block_new(&block[i], size, NULL));
        pages += PAGES_FOR(size);
    }
    KT_LE(heap_held, pages + pages / 2 + 20);
    for (size_t i = 0; i < 20; i += 2)
        block_drop(&block[i]);
    for (size_t i = 0; i < 20; i += 2)
        KT_REQUIRE(
            block_new(&block[i], PAGE_SIZE + random_below(LARGEST), NULL));
    drop_all();
    KT_LE(heap_held, LEFT); /* at once; they have metadata, if any */
    heap_counts();
    heap_end();
}

LAB_TEST(10, counts, LAB_UP)
{
    size_t size = PAGE_SIZE + 1 + random_below(PAGE_SIZE - 1);
    struct other_stat st;

    begin(LARGE + 1);
    for (size_t i = 0; i < 5; i++)
        KT_REQUIRE(block_new(&block[i], size, NULL));
    st = heap_counts();
    KT_EQ(st.stat_requested, 5 * size);
    KT_EQ(st.stat_allocs, 5);
    KT_GE(st.stat_peak, st.stat_held);
    block_drop(&block[0]);
    heap_pages.supply_quota = heap_pages.supply_held;
    KT_TRUE(!block_new(&block[5], LARGEST, NULL));
    drop_all();
    st = heap_counts();
    KT_EQ(st.stat_requested, 0);
    KT_EQ(st.stat_frees, 5);
    KT_EQ(st.stat_fails, 1);
    KT_GE(st.stat_peak, 5 * size);
    heap_end();
}

LAB_TEST_PANICS(10, wrong_size, LAB_UP, "yours:")
{
    size_t pages = 2 + lab_pick(WRONG, 5);

    begin(LARGE + 2);
    KT_REQUIRE(block_new(&block[0], pages * PAGE_SIZE, NULL));
    KT_REQUIRE(block_new(&block[1], pages * PAGE_SIZE, NULL));
    block_drop(&block[1]);
    lab_must_panic();
    yours_allocator.op_free(block[0].block_at, (pages + 1) * PAGE_SIZE);
}

/* No block, of a size that the test chooses. */
static void free_elsewhere(size_t size)
{
    static char elsewhere[64] __attribute__((aligned(64)));

    lab_must_panic();
    yours_allocator.op_free(elsewhere, size);
}

LAB_TEST_PANICS(10, wrong_page, LAB_UP, "yours:")
{
    begin(LARGE + 3);
    KT_REQUIRE(block_new(&block[0], LARGEST, NULL));
    block_drop(&block[0]);
    free_elsewhere(LARGEST);
}

/* ---- 10.2: small blocks -------------------------------------------------- */

#define SMALLEST_WHOLE 2000 /* smaller requests share pages */

LAB_TEST(10, small, LAB_UP)
{
    struct other_stat st;
    size_t requested = 0;

    begin(SMALL);
    churn(6000, 1, SMALLEST_WHOLE, NULL);
    for (size_t i = 0; i < BLOCKS; i++)
        requested += block[i].block_at != NULL ? block[i].block_size : 0;
    st = heap_counts();
    KT_EQ(st.stat_requested, requested);
    drop_all();
    KT_EQ(heap_counts().stat_requested, 0);
    KT_EQ(heap_counts().stat_internal, 0);
    churn(1000, 1, SMALLEST_WHOLE, NULL);
    heap_end();
    begin(SMALL); /* empty, whatever was there */
    KT_EQ(heap_counts().stat_held, 0);
    churn(1000, 1, SMALLEST_WHOLE, NULL);
    drop_all();
    KT_EQ(heap_counts().stat_requested, 0);
    heap_end();
}

LAB_TEST(10, nothing, LAB_UP)
{
    begin(SMALL + 1);
    KT_REQUIRE(block_new(&block[0], 8, NULL));
    KT_EQ(KT_PTR(yours_allocator.op_alloc(0)), KT_PTR(OTHER_NOTHING));
    yours_allocator.op_free(OTHER_NOTHING, 0);
    KT_EQ(heap_counts().stat_requested, 8);
    block_drop(&block[0]);
    heap_end();
}

/* At least two thirds of the memory is of use; then there is none, which is no
 * error, and after the frees there is again as much. */
LAB_TEST(10, full, LAB_UP)
{
    size_t size = 40 + 8 * lab_pick(MANY_SIZE, 20), first, second;
    struct other_stat st;
    void **last;

    begin(SMALL + 2);
    last = fill(size, &first);
    KT_GE(first * size, HEAP_PAGES * PAGE_SIZE * 2 / 3);
    st = heap_counts();
    KT_EQ(st.stat_requested, first * size);
    KT_EQ(st.stat_fails, 1);
    unfill(last, size);
    last = fill(size, &second);
    KT_EQ(second, first);
    unfill(last, size);
    heap_end();
}

/* ---- 10.3: caches -------------------------------------------------------- */

static size_t constructed;

static void construct(void *obj, size_t size)
{
    memset(obj, 0x55, size);
    constructed++;
}

static void destroy(void *obj, size_t size)
{
    memset(obj, 0xaa, size);
    constructed--;
}

static bool is_constructed(const struct own_block *b)
{
    for (size_t i = 0; i < b->block_size; i++)
        if (b->block_at[i] != 0x55)
            return false;
    return true;
}

LAB_TEST(10, objects, LAB_UP)
{
    struct other_cache c = {.other_size = 100 + lab_pick(OBJECTS, 200),
                            .other_ctor = construct,
                            .other_dtor = destroy};
    struct other_calls calls;

    constructed = 0;
    begin(OBJECTS);
    KT_REQUIRE(other_cache_create(&yours_allocator, &c));
    for (unsigned i = 0; i < 2000; i++) {
        struct own_block *b = &block[random_below(BLOCKS)];

        if (b->block_at != NULL) {
            KT_REQUIRE(is_constructed(b));
            block_drop(b);
        } else {
            KT_REQUIRE(block_new(b, c.other_size, &c));
            KT_REQUIRE(is_constructed(b));
        }
    }
    calls = other_calls(&c);
    KT_EQ(heap_counts().stat_requested,
          (calls.other_allocs - calls.other_frees) * c.other_size);
    drop_all();
    calls = other_calls(&c);
    KT_EQ(calls.other_allocs, calls.other_frees);
    KT_EQ(heap_counts().stat_frees, calls.other_frees);
    other_cache_destroy(&yours_allocator, &c);
    KT_EQ(constructed, 0);
    heap_end();
}

LAB_TEST(10, aligned, LAB_UP)
{
    struct other_cache c = {.other_size = 0};

    begin(ALIGN);
    for (size_t align = 8; align <= PAGE_SIZE; align *= 2) {
        c = (struct other_cache){
            .other_size = 20 + random_below((uint32_t)MIN(2 * align, 1500ul)),
            .other_align = align};
        KT_REQUIRE(other_cache_create(&yours_allocator, &c));
        for (size_t i = 0; i < 12; i++)
            KT_REQUIRE(block_new(&block[i], c.other_size, &c));
        KT_EQ(heap_counts().stat_requested, 12 * c.other_size);
        for (size_t i = 0; i < 12; i++)
            block_drop(&block[i]);
        KT_EQ(heap_counts().stat_requested, 0);
        other_cache_destroy(&yours_allocator, &c);
    }
    heap_end();
}

/* Locks disable interrupts. */
static void expect_no_lock(void)
{
    if ((read_eflags() & EFLAGS_IF) == 0)
        KT_FAIL("the supply was called while a lock was held");
}

static void *(*arena_get)(struct supply *s, size_t pages, size_t align);
static void (*arena_put)(struct supply *s, void *addr, size_t pages);

static void *get_pages(struct supply *s, size_t pages, size_t align)
{
    expect_no_lock();
    return arena_get(s, pages, align);
}

static void put_pages(struct supply *s, void *addr, size_t pages)
{
    expect_no_lock();
    arena_put(s, addr, pages);
}

/* Objects of this size, until there is no memory for one, and back. */
static void use_locked(size_t size)
{
    struct other_cache c = {.other_size = size};
    __auto_type calls = OTHER_CALLS(&c);
    size_t n = 0;

    KT_REQUIRE(other_cache_create(&yours_allocator, &c));
    lab_guard("other_allocs", &calls->other_allocs, lab_spin_held);
    lab_guard("other_frees", &calls->other_frees, lab_spin_held);
    lab_guard("other_fails", &calls->other_fails, lab_spin_held);
    while (block_new(&block[n], size, &c))
        n++;
    KT_GE(n, 3);
    while (n > 0)
        block_drop(&block[--n]);
    lab_unguard();
    other_cache_destroy(&yours_allocator, &c);
    press();
}

LAB_TEST(10, locks, LAB_UP)
{
    begin(LOCKED);
    arena_get = heap_pages.supply_get;
    arena_put = heap_pages.supply_put;
    heap_pages.supply_get = get_pages;
    heap_pages.supply_put = put_pages;
    heap_pages.supply_quota = 40;
    use_locked(300 + lab_pick(LOCKED, 100));
    use_locked(LARGEST);
    heap_end();
}

/* ---- 10.4: the check ----------------------------------------------------- */

/* Both kinds of blocks. */
#define MIXED (3 * PAGE_SIZE)

LAB_TEST(10, sound, LAB_UP)
{
    begin(CHURN);
    expect_sound();
    for (unsigned i = 0; i < 40; i++) {
        churn(60, 1, i % 2 == 0 ? 300 : MIXED, NULL);
        expect_sound();
        heap_counts();
    }
    drop_all();
    expect_sound();
    press();
    expect_sound();
    heap_end();
}

/* After damage: op_check says so, or it does no harm. */
static void expect_found_or_harmless(const char *damage)
{
    if (yours_allocator.op_check() != NULL)
        return;
    churn(1500, 1, MIXED, NULL);
    if (yours_allocator.op_check() == NULL)
        return;
    KT_FAIL("%s: op_check saw nothing, and later the heap was broken", damage);
}

/* Unless its page was returned. */
static void scribble(void *freed, size_t size)
{
    size_t at = (size_t)((char *)freed - heap_pages.supply_base);

    if (heap_pages.supply_used[at >> PAGE_SHIFT])
        memset(freed, 0x11, size);
}

/* A client writes to what it has freed: in pages with other blocks, and in one
 * that is all free. */
LAB_TEST(10, scribbled, LAB_UP)
{
    size_t size = 24 + 8 * lab_pick(SCRIBBLE, 20);
    static void *freed[40];

    begin(SCRIBBLE);
    KT_REQUIRE(block_new(&block[99], MIXED, NULL));
    for (size_t i = 0; i < 90; i++)
        KT_REQUIRE(block_new(&block[i], size, NULL));
    for (size_t i = 0; i < ARRAY_SIZE(freed); i++) {
        freed[i] = block[2 * i].block_at;
        block_drop(&block[2 * i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(freed); i++)
        scribble(freed[i], size);
    expect_found_or_harmless("freed blocks were written to");
    heap_end();
    begin(SCRIBBLE);
    KT_REQUIRE(block_new(&block[0], size, NULL));
    freed[0] = block[0].block_at;
    block_drop(&block[0]);
    scribble(freed[0], size);
    expect_found_or_harmless("the only block was written to when it was free");
    heap_end();
}

/* Something else has written to the descriptors. */
LAB_TEST(10, wiped, LAB_UP)
{
    begin(WIPE);
    KT_REQUIRE(block_new(&block[99], MIXED, NULL));
    for (size_t i = 0; i < 90; i++)
        KT_REQUIRE(block_new(&block[i], 100 + random_below(400), NULL));
    for (size_t i = 0; i < HEAP_PAGES; i++)
        memset(heap_pages.supply_info[i], 0, sizeof(*heap_pages.supply_info));
    expect_found_or_harmless("the descriptors of all pages were wiped");
    heap_end();
}

LAB_TEST_PANICS(10, wrong_free, LAB_UP, "yours:")
{
    begin(WIPE + 1);
    KT_REQUIRE(block_new(&block[0], 64, NULL));
    KT_REQUIRE(block_new(&block[1], MIXED, NULL));
    block_drop(&block[1]);
    block_drop(&block[0]);
    expect_sound();
    free_elsewhere(64);
}

/* ---- 10.5: memory comes back --------------------------------------------- */

LAB_TEST(10, back, LAB_UP)
{
    struct other_cache c = {.other_size = 200, .other_align = 64};

    begin(BACK);
    KT_REQUIRE(other_cache_create(&yours_allocator, &c));
    for (unsigned round = 0; round < 3; round++) {
        churn(3000, 1, MIXED, &c);
        drop_all();
        press();
        KT_LE(heap_held, LEFT);
    }
    heap_counts();
    other_cache_destroy(&yours_allocator, &c);
    heap_end();
}

/* What was of one size is of use for another, without pressure for all but a
 * twentieth of it. */
LAB_TEST(10, reuse, LAB_UP)
{
    size_t size = 40 + 8 * lab_pick(FIRST_SIZE, 20), count;
    void **last;

    begin(FIRST_SIZE);
    KT_REQUIRE(block_new(&block[0], MIXED, NULL));
    last = fill(size, &count);
    unfill(last, size);
    KT_LE(heap_held, HEAP_PAGES / 20);
    last = fill(3 * size, &count);
    KT_GE(count * 3 * size, HEAP_PAGES * PAGE_SIZE * 2 / 3);
    unfill(last, 3 * size);
    block_drop(&block[0]);
    heap_end();
}
