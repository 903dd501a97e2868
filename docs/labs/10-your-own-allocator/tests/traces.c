/*
 * Tests of lab 10, tasks 10.6 and 10.7: traces like the reference trace R1, on
 * an allocator of one's own and on three others in the same run.
 *
 * The generator (mm/others/tests/r1.c) makes a trace for each seed, a sixth as
 * long as R1 in its last two phases. Its events go to the allocator directly. A
 * block is stamped with its slot and its size, which must still be there when
 * it is freed.
 *
 * The seed is that of the hand-out; of tests that only the grader runs it is
 * the kernel option unseen=. Costs are instructions of the allocator's own: the
 * lab runs with one per nanosecond, and what the supply needs is left out, but
 * a call of it counts as PAGE_COST.
 */
#include "docs/labs/10-your-own-allocator/tests/heap.h"
#include "kernel/lib/option.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"
#include "mm/buddy.h"
#include "mm/others/tests/r1.h"
#include "tools/workshop/labs/seed.h"

#define SLOTS     16384
#define PART      6
#define PAGE_COST 300 /* about what segkmem and buddy need */

/* Per cent of the instructions of another that an operation may take. */
#define SLOB_COST 75
#define BSD_COST  125

enum {
    TRACE = 200,
    UNSEEN
};

/* ---- replays ------------------------------------------------------------- */

struct slot {
    char *slot_at;
    uint32_t slot_size;
    uint32_t slot_cache; /* 0: none */
};

static struct room {
    struct r1 room_r1;
    struct other_cache room_cache[R1_CACHES + 1];
    uint32_t room_free[SLOTS]; /* slots, as a stack */
    uint32_t room_frees;
    struct slot room_slot[SLOTS];
} * room;

/* What a trace has come to on an allocator. */
struct figures {
    size_t peak;    /* bytes */
    size_t held;    /* at the end of the trace */
    uint32_t cost;  /* instructions of an operation */
    size_t residue; /* after all was freed, and pressure */
};

#define ROOM_PAGES PAGES_FOR(sizeof(struct room))

static uint64_t spent;    /* instructions of the allocator */
static uint64_t excluded; /* instructions of the supply, at any time */
static void *(*arena_get)(struct supply *s, size_t pages, size_t align);
static void (*arena_put)(struct supply *s, void *addr, size_t pages);

static void *get_pages(struct supply *s, size_t pages, size_t align)
{
    uint64_t start = rdtsc();
    void *p = arena_get(s, pages, align);

    excluded += rdtsc() - start - PAGE_COST;
    return p;
}

static void put_pages(struct supply *s, void *addr, size_t pages)
{
    uint64_t start = rdtsc();

    arena_put(s, addr, pages);
    excluded += rdtsc() - start - PAGE_COST;
}

static void __attribute__((noreturn, format(printf, 1, 2)))
stop(const char *fmt, ...)
{
    char text[120];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    KT_FAIL("%s: event %u of the trace: %s", heap_of->op_name,
            room->room_r1.r1_events, text);
    ktest_stop(__FILE__, __LINE__, "the trace comes to its end");
}

static void check_sound(void)
{
    const char *wrong = heap_of->op_check();

    if (wrong != NULL)
        stop("op_check: %s", wrong);
}

/* In pages of the supply, and at a multiple of 8? */
static void check_place(const struct slot *s)
{
    size_t at = (size_t)(s->slot_at - heap_pages.supply_base);

    if (at >= HEAP_PAGES * PAGE_SIZE ||
        !heap_pages.supply_used[at >> PAGE_SHIFT] ||
        s->slot_size > HEAP_PAGES * PAGE_SIZE - at || at % 8 != 0)
        stop("a block of %u bytes is at %p", s->slot_size, (void *)s->slot_at);
}

static uint32_t allocate(uint32_t size, uint32_t cache)
{
    uint32_t number = room->room_free[--room->room_frees];
    struct slot *s = &room->room_slot[number];
    uint64_t before = excluded, start = rdtsc();

    s->slot_at = cache != 0 ? heap_of->op_cache_alloc(&room->room_cache[cache])
                            : heap_of->op_alloc(size);
    spent += rdtsc() - start - (excluded - before);
    s->slot_size = size;
    s->slot_cache = cache;
    if (s->slot_at == NULL)
        stop("there is no memory for %u bytes", size);
    check_place(s);
    memcpy(s->slot_at, &number, sizeof(number));
    memcpy(s->slot_at + size - sizeof(size), &size, sizeof(size));
    return number;
}

static uint32_t release(uint32_t number)
{
    struct slot *s = &room->room_slot[number];
    uint64_t before = excluded, start;

    if (memcmp(s->slot_at, &number, sizeof(number)) != 0 ||
        memcmp(s->slot_at + s->slot_size - sizeof(number), &s->slot_size,
               sizeof(number)) != 0)
        stop("a block of %u bytes at %p was overwritten: another one overlaps "
             "it",
             s->slot_size, (void *)s->slot_at);
    start = rdtsc();
    if (s->slot_cache != 0)
        heap_of->op_cache_free(&room->room_cache[s->slot_cache], s->slot_at);
    else
        heap_of->op_free(s->slot_at, s->slot_size);
    spent += rdtsc() - start - (excluded - before);
    s->slot_at = NULL;
    room->room_free[room->room_frees++] = number;
    return number;
}

static uint32_t carry_out(struct r1 *r UNUSED, const struct trace_event *e)
{
    switch (e->event_op) {
    case TRACE_CACHE_ALLOC:
        return allocate(r1_cache[e->event_operand - 1].cache_size,
                        e->event_operand);
    case TRACE_ALLOC:
        return allocate(e->event_operand, 0);
    case TRACE_FREE:
        return release(e->event_operand);
    case TRACE_MARK:
        check_sound();
        return 0;
    default: /* TRACE_IDLE */
        if (heap_of->op_tick != NULL)
            heap_of->op_tick(e->event_time / (TRACE_UNITS / 1000));
        return 0;
    }
}

static void free_room(void *arg UNUSED)
{
    if (room != NULL)
        buddy_free_run(virt_to_page(room), ROOM_PAGES);
    room = NULL;
}

static void begin_replay(const struct other_allocator *a)
{
    struct page *pages;

    ktest_undo(free_room, NULL);
    pages = buddy_alloc_run(ROOM_PAGES);
    KT_REQUIRE(pages != NULL);
    room = page_to_virt(pages);
    memset(room, 0, sizeof(*room));
    heap_begin(a);
    arena_get = heap_pages.supply_get;
    arena_put = heap_pages.supply_put;
    heap_pages.supply_get = get_pages;
    heap_pages.supply_put = put_pages;
    spent = 0;
    for (uint32_t i = 0; i < SLOTS; i++)
        room->room_free[i] = SLOTS - 1 - i;
    room->room_frees = SLOTS;
    for (size_t i = 0; i < R1_CACHES; i++) {
        room->room_cache[i + 1].other_size = r1_cache[i].cache_size;
        KT_REQUIRE(other_cache_create(a, &room->room_cache[i + 1]));
    }
}

/* Frees all that the trace has left. */
static void end_replay(void)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        if (room->room_slot[i].slot_at != NULL)
            release(i);
    for (size_t i = 0; i < R1_CACHES; i++)
        other_cache_destroy(heap_of, &room->room_cache[i + 1]);
    if (heap_of->op_pressure != NULL)
        heap_of->op_pressure();
    check_sound();
}

static struct figures replay(const struct other_allocator *a, uint32_t seed)
{
    struct figures f;
    struct r1 *r;

    begin_replay(a);
    r = &room->room_r1;
    r->r1_sink = carry_out;
    r1_run(r, seed, PART);
    heap_counts();
    f.held = heap_held << PAGE_SHIFT;
    f.peak = heap_peak << PAGE_SHIFT;
    f.cost = (uint32_t)(spent / (r->r1_allocs + r->r1_frees));
    end_replay();
    f.residue = heap_held << PAGE_SHIFT;
    heap_end();
    free_room(NULL);
    kprintf("%-6s seed %u: held %zu KiB, at most %zu KiB, %u instructions an "
            "operation, %zu KiB left\n",
            a->op_name, seed, f.held / 1024, f.peak / 1024, f.cost,
            f.residue / 1024);
    return f;
}

/* ---- 10.6: traces -------------------------------------------------------- */

static uint32_t unseen; /* of the option; 0: none */

static bool set_trace(char *text)
{
    unseen = 0;
    for (; *text >= '0' && *text <= '9' && unseen < 100000000; text++)
        unseen = unseen * 10 + (uint32_t)(*text - '0');
    return unseen != 0 && *text == '\0';
}

BOOT_OPTION(unseen, "unseen=", "unseen=SEED",
            "the seed of lab 10's traces that the grader chooses", set_trace);

static uint32_t seen_seed(void)
{
    return 1 + lab_pick(TRACE, 1u << 20);
}

static uint32_t unseen_seed(void)
{
    return unseen != 0 ? unseen : 1 + lab_pick(UNSEEN, 1u << 20);
}

static void expect_all_back(struct figures f)
{
    KT_LE(f.residue, 4 * PAGE_SIZE);
}

LAB_TEST(10, trace, LAB_UP)
{
    lab_seconds(30);
    expect_all_back(replay(&yours_allocator, seen_seed()));
}

LAB_TEST(10, unseen, LAB_UP)
{
    lab_seconds(30);
    for (uint32_t i = 0; i < 3; i++)
        expect_all_back(replay(&yours_allocator, unseen_seed() + i));
}

/* ---- 10.7: a place in the table ------------------------------------------ */

/* On one seed: that of the test. */
static void expect_less_memory_than(const struct other_allocator *a,
                                    uint32_t seed)
{
    struct figures its = replay(a, seed);
    struct figures own = replay(&yours_allocator, seed);

    if (own.held >= its.held)
        KT_FAIL("at the end %zu KiB are held, by %s %zu KiB", own.held / 1024,
                a->op_name, its.held / 1024);
    if (a == &bsd_allocator && own.peak >= its.peak)
        KT_FAIL("at most %zu KiB are held, by %s %zu KiB", own.peak / 1024,
                a->op_name, its.peak / 1024);
}

static void expect_speed_of(const struct other_allocator *a, uint32_t seed,
                            uint32_t allowed)
{
    struct figures its = replay(a, seed);
    struct figures own = replay(&yours_allocator, seed);

    if (own.cost * 100 > its.cost * allowed)
        KT_FAIL("an operation takes %u instructions, of %s %u: %u %% of that "
                "are allowed",
                own.cost, a->op_name, its.cost, allowed);
}

LAB_TEST(10, memory_of_bsd, LAB_UP)
{
    lab_seconds(30);
    expect_less_memory_than(&bsd_allocator, seen_seed());
}

LAB_TEST(10, memory_of_sunos, LAB_UP)
{
    lab_seconds(30);
    expect_less_memory_than(&sunos_allocator, seen_seed());
}

LAB_TEST(10, speed_of_slob, LAB_UP)
{
    lab_seconds(30);
    expect_speed_of(&slob_allocator, seen_seed(), SLOB_COST);
}

LAB_TEST(10, speed_of_bsd, LAB_UP)
{
    lab_seconds(30);
    expect_speed_of(&bsd_allocator, seen_seed(), BSD_COST);
}

LAB_TEST(10, unseen_table, LAB_UP)
{
    lab_seconds(30);
    expect_less_memory_than(&bsd_allocator, unseen_seed());
    expect_less_memory_than(&sunos_allocator, unseen_seed());
    expect_speed_of(&slob_allocator, unseen_seed(), SLOB_COST);
}
