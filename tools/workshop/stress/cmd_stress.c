/*
 * stress: random allocations and frees, every object stamped over its whole
 * length and checked.
 */
#include "drivers/console.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/paging.h"
#include "mm/buddy.h"

#define SLOTS       512 /* objects that may be allocated at once */
#define OPS_DEFAULT 20000
#define REAP_EVERY  1024        /* operations */
#define BUILT       0x5eedc0deu /* the stamp of a constructed object */

/* ---- stamps ------------------------------------------------------------- */

/* The byte that a stamp puts at an offset. */
static uint8_t stamp_byte(uint32_t stamp, size_t i)
{
    return (uint8_t)((stamp >> (i % 4 * 8)) + i);
}

static void put_stamp(void *obj, size_t size, uint32_t stamp)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)obj)[i] = stamp_byte(stamp, i);
}

/* The offset of the first wrong byte; `size` if there is none. */
static size_t check_stamp(const void *obj, size_t size, uint32_t stamp)
{
    size_t i = 0;

    while (i < size && ((const uint8_t *)obj)[i] == stamp_byte(stamp, i))
        i++;
    return i;
}

static void stress_ctor(void *obj, size_t size)
{
    put_stamp(obj, size, BUILT);
}

static size_t dtor_wrong;

static void stress_dtor(void *obj, size_t size)
{
    dtor_wrong += check_stamp(obj, size, BUILT) != size;
}

/* ---- the run ------------------------------------------------------------ */

static const struct source {
    const char *source_name;
    size_t source_size;
    size_t source_align;
    bool source_built; /* constructed objects */
} sources[] = {
    {"stress_small", 24, 0, false},    {"stress_aligned", 72, 64, false},
    {"stress_built", 200, 0, true},    {"stress_large", 700, 0, false},
    {"stress_built_l", 1500, 0, true},
};

#define SOURCES ARRAY_SIZE(sources) /* and one more: kmem_alloc */

struct slot {
    void *slot_obj;
    size_t slot_size;
    uint32_t slot_stamp;
    uint32_t slot_source;
};

struct stress {
    uint32_t run_random;
    uint32_t run_done; /* operations */
    struct kmem_cache *run_caches[SOURCES];
    struct slot *run_slots;
    size_t run_failed; /* allocations without memory */
    bool run_damaged;
};

static void damaged(struct stress *run, const struct slot *s, size_t at,
                    const char *when)
{
    if (!run->run_damaged)
        kprintf("! object 0x%08lx of %zu bytes (%s): byte %zu is wrong %s, "
                "operation %u\n",
                (unsigned long)s->slot_obj, s->slot_size,
                s->slot_source < SOURCES ? sources[s->slot_source].source_name
                                         : "kmem_alloc",
                at, when, run->run_done);
    run->run_damaged = true;
}

static bool is_built(const struct slot *s)
{
    return s->slot_source < SOURCES && sources[s->slot_source].source_built;
}

static void stress_alloc(struct stress *run, struct slot *s)
{
    uint32_t r = heap_random(&run->run_random);
    size_t at;

    s->slot_source = r % (SOURCES + 3); /* kmem_alloc more often */
    if (s->slot_source < SOURCES) {
        s->slot_size = sources[s->slot_source].source_size;
        s->slot_obj =
            kmem_cache_alloc(run->run_caches[s->slot_source], KM_NOSLEEP);
    } else {
        s->slot_size = 1 + (r >> 8) % (2u << (r >> 4) % 14);
        s->slot_obj = kmem_alloc(s->slot_size, KM_NOSLEEP);
    }
    if (!s->slot_obj) {
        run->run_failed++;
        return;
    }
    if (is_built(s)) {
        at = check_stamp(s->slot_obj, s->slot_size, BUILT);
        if (at != s->slot_size)
            damaged(run, s, at, "in a constructed object");
    }
    s->slot_stamp = heap_random(&run->run_random);
    put_stamp(s->slot_obj, s->slot_size, s->slot_stamp);
}

static void stress_free(struct stress *run, struct slot *s)
{
    size_t at = check_stamp(s->slot_obj, s->slot_size, s->slot_stamp);

    if (at != s->slot_size)
        damaged(run, s, at, "while it was allocated");
    if (is_built(s))
        put_stamp(s->slot_obj, s->slot_size, BUILT);
    if (s->slot_source < SOURCES)
        kmem_cache_free(run->run_caches[s->slot_source], s->slot_obj);
    else
        kmem_free(s->slot_obj, s->slot_size);
    s->slot_obj = NULL;
}

static void stress_ops(struct stress *run, uint32_t ops)
{
    for (; run->run_done < ops && !run->run_damaged; run->run_done++) {
        uint32_t r = heap_random(&run->run_random);
        struct slot *s = &run->run_slots[r % SLOTS];

        if (s->slot_obj)
            stress_free(run, s);
        else
            stress_alloc(run, s);
        if (run->run_done % REAP_EVERY == REAP_EVERY - 1) {
            kmem_cache_reap(run->run_caches[r / SLOTS % SOURCES],
                            KMEM_REAP_ALL);
            if (shell_interrupted())
                return;
        }
    }
}

static bool stress_begin(struct stress *run)
{
    for (size_t i = 0; i < SOURCES; i++) {
        const struct source *s = &sources[i];

        run->run_caches[i] =
            kmem_cache_create(s->source_name, s->source_size, s->source_align,
                              s->source_built ? stress_ctor : NULL,
                              s->source_built ? stress_dtor : NULL);
        if (!run->run_caches[i])
            return false;
    }
    run->run_slots = kmem_zalloc(SLOTS * sizeof(struct slot), KM_NOSLEEP);
    return run->run_slots;
}

static void stress_end(struct stress *run)
{
    if (run->run_slots) {
        for (size_t i = 0; i < SLOTS; i++)
            if (run->run_slots[i].slot_obj)
                stress_free(run, &run->run_slots[i]);
        kmem_free(run->run_slots, SLOTS * sizeof(struct slot));
    }
    for (size_t i = 0; i < SOURCES; i++)
        if (run->run_caches[i])
            kmem_cache_destroy(run->run_caches[i]);
}

/* Objects of clients, without those of the allocator's own caches. */
static size_t clients_inuse(void)
{
    struct heap_totals t;

    heap_totals(&t);
    return t.total_all.sum_inuse - t.total_kind[KMEM_KIND_INTERNAL].sum_inuse;
}

static const char *verify_all(const char **where)
{
    const struct page *frame;
    const char *broken = kmem_verify(where);

    if (broken)
        return broken;
    broken = buddy_verify(&frame);
    *where = "the buddy allocator";
    return broken;
}

static int print_verdict(const struct stress *run, size_t before)
{
    size_t after = clients_inuse();
    const char *where;
    const char *broken = verify_all(&where);

    kprintf("%u operations, %zu allocations failed; objects in use: %zu "
            "before, %zu after\n",
            run->run_done, run->run_failed, before, after);
    if (run->run_damaged)
        return shell_error("an object was damaged; see above");
    if (dtor_wrong)
        return shell_error("%zu objects reached the destructor unconstructed",
                           dtor_wrong);
    if (after != before)
        return shell_error("objects in use differ; `kmastat` shows where");
    if (broken)
        return shell_error("broken afterwards: %s, %s", broken, where);
    kprintf("every stamp was right, every invariant holds\n");
    return 0;
}

static int stress_run(uint32_t seed, uint32_t ops)
{
    size_t before = clients_inuse();
    struct stress run = {.run_random = seed};

    dtor_wrong = 0;
    kprintf("seed %u, %u operations, at most %u objects allocated (^C stops)\n",
            seed, ops, SLOTS);
    if (!stress_begin(&run)) {
        stress_end(&run);
        return shell_error(
            "no memory for the first objects; `kmastat` shows its users");
    }
    stress_ops(&run, ops);
    stress_end(&run);
    return print_verdict(&run, before);
}

static int cmd_stress(char **argv)
{
    uint32_t seed = 1, ops = OPS_DEFAULT;

    if (argv[1] && (!parse_u32(argv[1], &seed) || seed == 0))
        return shell_error("'%s' is no seed; a number from 1 on", argv[1]);
    if (argv[1] && argv[2] && (!parse_u32(argv[2], &ops) || ops == 0))
        return shell_error("'%s' is no number of operations; from 1 on",
                           argv[2]);
    return stress_run(seed, ops);
}

SHELL_COMMAND(stress, {"[SEED [OPS]]", cmd_stress, SHELL_ACTION});
