/*
 * The other allocators under real threads and the thread sanitizer, as where
 * several processors run (mm/tests/threads/ is the platform).
 *
 *     otherthreads ALLOCATOR [SEED [OPS]]
 *
 * Each thread does OPS random operations, on caches that all share and on
 * memory of any size, of which there is too little at times. A block is freed
 * by the thread that has allocated it or by another one. Blocks keep what their
 * thread wrote, and constructed objects their state; check() finds nothing at
 * any time; at the end everything is freed and all pages come back.
 */
#include "kernel/lib/string.h"
#include "mm/others/others.h"
#include "mm/page.h"
#include "mm/tests/threads/threads.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 60
#define HANDED 8
#define PAGES  1024
#define QUOTA  60 /* too few for the peaks of the threads */

static const struct other_allocator *const allocators[] = {
    &bsd_allocator,  &linux_slab_allocator, &linux_slub_allocator,
    &slmb_allocator, &slob_allocator,       &sunos_allocator,
    &svr4_allocator};

static const struct other_allocator *tested;
static struct supply pages;
static uint64_t operations = 4000;
static uint64_t failed; /* allocations */

static void fill(void *obj, size_t size)
{
    memset(obj, 0x55, size);
}

static void is_filled(void *obj, size_t size)
{
    for (size_t i = 0; i < size; i++)
        CHECK(((uint8_t *)obj)[i] == 0x55);
}

/* Three whose objects fill a page. */
static struct other_cache shared[] = {
    {.other_size = 40, .other_ctor = fill, .other_dtor = is_filled},
    {.other_size = 1024},
    {.other_size = 512, .other_ctor = fill, .other_dtor = is_filled},
    {.other_size = 2048},
    {.other_size = 5000, .other_align = 16},
};

struct block {
    uint8_t *block_at;
    size_t block_size;
    struct other_cache *block_cache; /* NULL: of alloc() */
    uint8_t block_is;                /* each byte */
};

struct thread {
    unsigned thread_number;
    struct block thread_block[BLOCKS];
    unsigned thread_blocks;
};

/* Blocks that any thread may take, and free. */
static struct block *handed[HANDED];

/* ---- blocks ------------------------------------------------------------- */

static bool constructed(const struct block *b)
{
    return b->block_cache != NULL && b->block_cache->other_ctor != NULL;
}

static void alloc_block(struct thread *t)
{
    struct block *b = &t->thread_block[t->thread_blocks];
    unsigned kind = threads_below(2 * ARRAY_SIZE(shared));

    if (t->thread_blocks == BLOCKS)
        return;
    b->block_cache = kind < ARRAY_SIZE(shared) ? &shared[kind] : NULL;
    if (b->block_cache != NULL) {
        b->block_size = b->block_cache->other_size;
        b->block_at = tested->op_cache_alloc(b->block_cache);
    } else {
        b->block_size = 1 + threads_below(threads_below(8) == 0 ? 12000 : 240);
        b->block_at = tested->op_alloc(b->block_size);
    }
    if (b->block_at == NULL) {
        __atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
        return;
    }
    b->block_is = constructed(b) ? 0x55 : (uint8_t)threads_below(256);
    for (size_t i = 0; constructed(b) && i < b->block_size; i++)
        CHECK(b->block_at[i] == b->block_is);
    memset(b->block_at, b->block_is, b->block_size);
    t->thread_blocks++;
}

static void free_block(const struct block *b)
{
    for (size_t i = 0; i < b->block_size; i++)
        CHECK(b->block_at[i] == b->block_is);
    if (b->block_cache != NULL)
        tested->op_cache_free(b->block_cache, b->block_at);
    else
        tested->op_free(b->block_at, b->block_size);
}

static struct block take_random(struct thread *t)
{
    unsigned i = threads_below(t->thread_blocks);
    struct block b = t->thread_block[i];

    t->thread_block[i] = t->thread_block[--t->thread_blocks];
    return b;
}

/* Leaves a block, or none, for others, and frees one that was left. */
static void exchange_block(unsigned slot, struct block *mine)
{
    struct block *other =
        __atomic_exchange_n(&handed[slot], mine, __ATOMIC_ACQ_REL);

    if (other != NULL)
        free_block(other);
    free(other);
}

static void hand_over(struct thread *t)
{
    struct block *b = malloc(sizeof(*b));

    *b = take_random(t);
    exchange_block(threads_below(HANDED), b);
}

static void free_one(struct thread *t)
{
    struct block b;

    if (t->thread_blocks == 0)
        return;
    if (threads_below(2) == 0) {
        hand_over(t);
        return;
    }
    b = take_random(t);
    free_block(&b);
}

/* ---- the rest ----------------------------------------------------------- */

static void check(void)
{
    const char *wrong = tested->op_check();

    if (wrong != NULL)
        mm_panic("%s: %s", tested->op_name, wrong);
}

static void own_cache(void)
{
    struct other_cache c = {.other_size = 700}; /* several may be one */
    void *obj;

    if (threads_below(2) == 0) {
        c.other_ctor = fill;
        c.other_dtor = is_filled;
    }
    if (!other_cache_create(tested, &c))
        return;
    obj = tested->op_cache_alloc(&c);
    if (obj != NULL)
        tested->op_cache_free(&c, obj);
    else
        __atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
    other_cache_destroy(tested, &c);
}

/* The clock is one thread's. */
static void tick(const struct thread *t)
{
    static uint64_t now_ms;

    if (tested->op_tick == NULL || t->thread_number != 0)
        return;
    now_ms += 2000;
    tested->op_tick(now_ms);
}

static void look(void)
{
    struct other_stat st;

    tested->op_stat(&st);
    for (size_t i = 0; i < ARRAY_SIZE(shared); i++) {
        struct other_calls calls = other_calls(&shared[i]);

        CHECK(calls.other_frees <= calls.other_allocs);
    }
}

static void rare(struct thread *t)
{
    switch (threads_below(5)) {
    case 0:
        own_cache();
        break;
    case 1:
        tick(t);
        break;
    case 2:
        if (tested->op_pressure != NULL)
            tested->op_pressure();
        break;
    case 3:
        look();
        break;
    default:
        check();
    }
    threads_completed();
}

static struct thread thread[THREADS];

static void run(unsigned number)
{
    struct thread *t = &thread[number];

    t->thread_number = number;
    for (uint64_t i = 0; i < operations; i++) {
        if (threads_below(32) == 0)
            rare(t);
        else if (threads_below(100) < (i / 200 % 2 == 0 ? 65 : 35))
            alloc_block(t);
        else
            free_one(t);
    }
    while (t->thread_blocks != 0)
        free_one(t);
}

/* ---- before and after --------------------------------------------------- */

static void start(const char *name)
{
    static uintptr_t info[PAGES][SUPPLY_INFO_WORDS];
    static uint8_t used[PAGES];

    for (size_t i = 0; i < ARRAY_SIZE(allocators); i++)
        if (strcmp(allocators[i]->op_name, name) == 0)
            tested = allocators[i];
    if (tested == NULL)
        mm_panic("otherthreads: %s is no allocator", name);
    supply_arena(&pages, aligned_alloc(PAGES * PAGE_SIZE, PAGES * PAGE_SIZE),
                 PAGES, info, used);
    pages.supply_quota = QUOTA;
    other_cpus = MM_CPUS_MAX;
    tested->op_init(&pages);
    for (size_t i = 0; i < ARRAY_SIZE(shared); i++)
        CHECK(other_cache_create(tested, &shared[i]));
}

static void check_end(void)
{
    struct other_stat st;

    for (unsigned i = 0; i < HANDED; i++)
        exchange_block(i, NULL);
    check();
    for (size_t i = 0; i < ARRAY_SIZE(shared); i++) {
        struct other_calls calls = other_calls(&shared[i]);

        CHECK(calls.other_allocs > operations / 20);
        CHECK(calls.other_frees == calls.other_allocs);
        other_cache_destroy(tested, &shared[i]);
    }
    if (tested->op_pressure != NULL)
        tested->op_pressure();
    check();
    tested->op_stat(&st);
    CHECK(st.stat_requested == 0 && st.stat_internal == 0);
    CHECK(st.stat_allocs == st.stat_frees);
    CHECK(st.stat_held == pages.supply_held << PAGE_SHIFT);
    CHECK(failed != 0 && st.stat_fails == failed);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

    if (argc > 3)
        operations = strtoull(argv[3], NULL, 0);
    start(argc > 1 ? argv[1] : "");
    threads_run(run, seed);
    check_end();
    printf("%d threads, %llu operations each: no error\n", THREADS,
           (unsigned long long)operations);
    return 0;
}
