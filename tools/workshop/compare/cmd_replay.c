/*
 * replay: carries out a trace on the heap of this kernel, and counts what each
 * allocation and free takes, in ticks of the time-stamp counter: instructions
 * under `make replay-kernel`.
 *
 * The trace is the second boot module, as tools/measure/kernel_replay.py writes
 * it: events of fixed size, checked on the host, with the slot of each
 * allocation. So nothing but the call lies between two readings. It is carried
 * out twice: the caches are new, then they have served the same trace, all of
 * it freed. mm/kmem.h is all that is used of an allocator, so the kernels with
 * another one have this file, too (tools/make/test.mk).
 */
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/multiboot.h"
#include "mm/buddy.h"
#include "mm/kmem.h"
#include "mm/others/tests/trace.h"

#define IMAGE_MAGIC 0x4952544bu /* "KTRI" */
#define SMALLEST    16u         /* bytes: the end of the first range of sizes */
#define RANGES      11          /* of sizes; the last has no end */
#define COSTS       65536u      /* with a counter each; the last: all above */
#define CONSTRUCTED 32u         /* bytes that a constructor writes */

struct image {
    uint32_t image_magic;
    uint32_t image_caches;
    uint32_t image_slots;
    uint32_t image_events;
};

struct image_cache {
    uint32_t cache_size;
    uint32_t cache_align;
    uint32_t cache_flags;
};

struct image_event {
    uint32_t event_op;
    uint32_t event_what; /* the size, or the cache from 1 */
    uint32_t event_slot;
};

static const struct image *image;
static size_t image_size;

struct block {
    void *block_at; /* NULL: the slot has none */
    uint32_t block_size;
    uint32_t block_cache; /* 0: none */
};

enum kind {
    ALLOC,
    FREE,
    KINDS
};

struct tally {
    uint64_t tally_total;
    uint32_t tally_count;
    uint32_t tally_max;
    uint32_t tally_cost[COSTS]; /* how often; the last: and above */
    struct {
        uint64_t range_total;
        uint32_t range_count;
    } tally_range[RANGES];
};

static struct tally *tallies;     /* KINDS of them */
static struct kmem_cache **cache; /* by number; [0] is NULL */
static struct block *block;       /* by slot */
static uint64_t overhead;         /* ticks of two readings alone */

static void find_module(const void *arg)
{
    const struct multiboot_info *info = arg;
    const struct multiboot_module *m =
        mm_phys_to_virt((paddr_t)info->info_mods_addr);

    if ((info->info_flags & MULTIBOOT_MODULES) == 0 ||
        info->info_mods_count < 2)
        return;
    image = mm_phys_to_virt((paddr_t)m[1].mod_start);
    image_size = m[1].mod_end - m[1].mod_start;
}

HOOK(HOOK_EARLY, find_module);

static const struct image_cache *image_cache(void)
{
    return (const struct image_cache *)(image + 1);
}

static const struct image_event *image_event(void)
{
    return (const struct image_event *)(image_cache() + image->image_caches);
}

/* Whether the module has the size that its counts say. */
static bool is_whole(void)
{
    return image_size >= sizeof(*image) && image->image_magic == IMAGE_MAGIC &&
           image_size ==
               sizeof(*image) +
                   (uint64_t)image->image_caches * sizeof(struct image_cache) +
                   (uint64_t)image->image_events * sizeof(struct image_event);
}

/* ---- counting ----------------------------------------------------------- */

static unsigned range_of(uint32_t size)
{
    unsigned range = 0;

    while (range < RANGES - 1 && SMALLEST << range < size)
        range++;
    return range;
}

static void count(enum kind kind, uint32_t size, uint64_t ticks)
{
    struct tally *t = &tallies[kind];
    uint32_t cost = (uint32_t)(ticks - overhead);

    t->tally_total += cost;
    t->tally_count++;
    t->tally_max = MAX(t->tally_max, cost);
    t->tally_cost[MIN(cost, COSTS - 1)]++;
    t->tally_range[range_of(size)].range_total += cost;
    t->tally_range[range_of(size)].range_count++;
}

/* At least 99 of 100 cost no more. The maximum, if no counter has this cost. */
static uint32_t percentile(const struct tally *t)
{
    uint64_t below = 0;
    uint32_t cost = 0;

    while (cost < COSTS - 1 &&
           (below += t->tally_cost[cost]) * 100 < t->tally_count * 99ull)
        cost++;
    return cost < COSTS - 1 ? cost : t->tally_max;
}

/* ---- events ------------------------------------------------------------- */

/* The ticks of a call, with its arguments and its return. */
#define TICKS(call)                                                            \
    ({                                                                         \
        uint64_t start_ = rdtsc();                                             \
        call;                                                                  \
        rdtsc() - start_;                                                      \
    })

static void *allocate(struct block *b)
{
    struct kmem_cache *cp = cache[b->block_cache];
    size_t size = b->block_size;
    uint32_t eflags = irq_save();
    uint64_t ticks;
    void *p;

    if (cp == NULL)
        ticks = TICKS(p = kmem_alloc(size, KM_NOSLEEP));
    else
        ticks = TICKS(p = kmem_cache_alloc(cp, KM_NOSLEEP));
    irq_restore(eflags);
    count(ALLOC, size, ticks);
    return b->block_at = p;
}

static void release(struct block *b)
{
    struct kmem_cache *cp = cache[b->block_cache];
    size_t size = b->block_size;
    void *p = b->block_at;
    uint32_t eflags = irq_save();
    uint64_t ticks;

    if (cp == NULL)
        ticks = TICKS(kmem_free(p, size));
    else
        ticks = TICKS(kmem_cache_free(cp, p));
    irq_restore(eflags);
    count(FREE, size, ticks);
    b->block_at = NULL;
}

static bool is_valid(const struct image_event *e)
{
    bool allocates =
        e->event_op == TRACE_CACHE_ALLOC || e->event_op == TRACE_ALLOC;

    if (e->event_op == TRACE_CACHE_ALLOC &&
        (e->event_what == 0 || e->event_what > image->image_caches))
        return false;
    if (!allocates && e->event_op != TRACE_FREE)
        return true;
    return e->event_slot < image->image_slots &&
           (block[e->event_slot].block_at == NULL) == allocates;
}

/* False: there is no memory. */
static bool carry_out(const struct image_event *e)
{
    struct block *b = &block[e->event_slot];

    switch (e->event_op) {
    case TRACE_CACHE_ALLOC:
        *b = (struct block){.block_size =
                                image_cache()[e->event_what - 1].cache_size,
                            .block_cache = e->event_what};
        return allocate(b) != NULL;
    case TRACE_ALLOC:
        *b = (struct block){.block_size = e->event_what};
        return allocate(b) != NULL;
    case TRACE_FREE:
        release(b);
        return true;
    case TRACE_PRESSURE:
        kmem_reap(KMEM_REAP_ALL);
        return true;
    default: /* time, marks, and what concerned the recorded allocator alone */
        return true;
    }
}

static void free_all(void)
{
    for (uint32_t i = 0; i < image->image_slots; i++)
        if (block[i].block_at != NULL)
            release(&block[i]);
}

/* Carries out all events. 0, or 1 after an error line. */
static int carry_out_all(void)
{
    memset(tallies, 0, KINDS * sizeof(*tallies));
    for (uint32_t i = 0; i < image->image_events; i++) {
        if (!is_valid(&image_event()[i]))
            return shell_error("event %u of the trace is damaged", i + 1);
        if (!carry_out(&image_event()[i]))
            return shell_error("event %u: no memory, and the trace had some",
                               i + 1);
        if (shell_interrupted())
            return 1;
    }
    return 0;
}

/* ---- caches and memory -------------------------------------------------- */

static void construct(void *obj, size_t size)
{
    memset(obj, 0x5c, MIN(size, CONSTRUCTED));
}

static void destroy(void *obj, size_t size)
{
    memset(obj, 0xa3, MIN(size, CONSTRUCTED));
}

static bool create_caches(void)
{
    for (uint32_t i = 1; i <= image->image_caches; i++) {
        const struct image_cache *c = &image_cache()[i - 1];
        char name[KMEM_NAME_MAX + 1];

        snprintf(name, sizeof(name), "replay_%u", i);
        cache[i] =
            kmem_cache_create(name, c->cache_size, c->cache_align,
                              c->cache_flags & TRACE_CTOR ? construct : NULL,
                              c->cache_flags & TRACE_DTOR ? destroy : NULL);
        if (cache[i] == NULL)
            return false;
    }
    return true;
}

static void destroy_caches(void)
{
    for (uint32_t i = 1; i <= image->image_caches; i++)
        if (cache[i] != NULL)
            kmem_cache_destroy(cache[i]);
}

/* Pages for the tables, which are not the heap's. */
static size_t table_pages(void)
{
    uint64_t bytes = KINDS * sizeof(*tallies) +
                     (uint64_t)image->image_slots * sizeof(*block) +
                     (image->image_caches + 1ull) * sizeof(*cache);

    return (size_t)((bytes + PAGE_MASK) >> PAGE_SHIFT);
}

static void set_tables(void *room)
{
    memset(room, 0, table_pages() << PAGE_SHIFT);
    tallies = room;
    block = (struct block *)(tallies + KINDS);
    cache = (struct kmem_cache **)(block + image->image_slots);
}

/* ---- the command -------------------------------------------------------- */

static void show(const char *pass)
{
    static const char *const names[] = {[ALLOC] = "alloc", [FREE] = "free"};

    for (unsigned i = 0; i < KINDS; i++) {
        const struct tally *t = &tallies[i];
        uint64_t mean = t->tally_total * 100 / MAX(t->tally_count, 1u);

        kprintf("%s %-7s %9u %9llu.%02u %9u %9u\n", pass, names[i],
                t->tally_count, mean / 100, (unsigned)(mean % 100),
                percentile(t), t->tally_max);
        debugcon_event("{\"event\":\"replay\",\"pass\":\"%s\",\"op\":"
                       "\"%s\",\"count\":%u,\"total\":%llu,\"p99\":%u,"
                       "\"max\":%u}",
                       pass, names[i], t->tally_count, t->tally_total,
                       percentile(t), t->tally_max);
    }
}

static uint64_t range_mean(enum kind kind, unsigned range)
{
    uint32_t n = tallies[kind].tally_range[range].range_count;

    return tallies[kind].tally_range[range].range_total / MAX(n, 1u);
}

static void show_ranges(void)
{
    kprintf("\n%-12s %9s %12s %9s\n", "BYTES (warm)", "COUNT", "ALLOC", "FREE");
    for (unsigned i = 0; i < RANGES; i++)
        if (tallies[ALLOC].tally_range[i].range_count != 0)
            kprintf("%s %-9u %9u %12llu %9llu\n", i == RANGES - 1 ? ">" : "to",
                    SMALLEST << (i - (i == RANGES - 1)),
                    tallies[ALLOC].tally_range[i].range_count,
                    range_mean(ALLOC, i), range_mean(FREE, i));
}

static int replay(void)
{
    uint32_t eflags = irq_save();
    int failed;

    overhead = 0;
    overhead = TICKS((void)0);
    irq_restore(eflags);
    if (!create_caches())
        return 1;
    kprintf("%-12s %9s %12s %9s %9s\n", "TICKS", "COUNT", "MEAN", "99 %",
            "MAX");
    failed = carry_out_all();
    if (failed == 0)
        show("cold");
    free_all();
    if (failed == 0 && (failed = carry_out_all()) == 0) {
        show("warm");
        show_ranges();
    }
    free_all();
    return failed;
}

static int cmd_replay(char **argv UNUSED)
{
    struct page *tables;
    int failed;

    if (image == NULL)
        return shell_error("no trace is loaded; `make replay-kernel` does");
    if (!is_whole())
        return shell_error("the second boot module is not a trace, or not all "
                           "of one");
    tables = buddy_alloc_run(table_pages());
    if (tables == NULL)
        return shell_error("no memory for %u blocks", image->image_slots);
    set_tables(page_to_virt(tables));
    failed = replay();
    destroy_caches();
    buddy_free_run(tables, table_pages());
    return failed;
}

SHELL_COMMAND(replay, {"", cmd_replay, SHELL_ACTION});
