/*
 * kmem: a playground. Make a cache, allocate and free objects in LIFO, FIFO or
 * random order, and look with `slabs`, `cache`, `reap` and the rest.
 *
 * The allocated objects are listed in records from the playground's own caches,
 * so that only the slab allocator touches the objects under study. These caches
 * exist only while the user has a cache in the playground.
 *
 *     play_caches ─ play_cache ─ play_cache
 *                      │
 *                      └─ play_object ─ play_object   newest first
 */
#include "kernel/lib/list.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"
#include "mm/inspect/buddy_stat.h"
#include "mm/debug/debug.h"

#define RESERVE 8   /* 1/8 of memory stays free */
#define STEPS   256 /* at most, from an object to the next random one */

struct play_cache {
    struct list play_link;
    struct kmem_cache *play_cp;
    struct list play_objects; /* newest first */
    size_t play_count;
};

struct play_object {
    struct list play_link;
    void *play_addr;
};

static struct list play_caches = LIST_INIT(play_caches);
static struct kmem_cache *cache_cache;  /* of struct play_cache */
static struct kmem_cache *object_cache; /* of struct play_object */
static uint32_t play_random = 38; /* docs/demonstration.md has its choices */

/* Visible in a dump: which objects were constructed, which destroyed. */
static void play_ctor(void *obj, size_t size)
{
    memset(obj, 'c', size);
}

static void play_dtor(void *obj, size_t size)
{
    memset(obj, 'd', size);
}

/* ---- arguments ---------------------------------------------------------- */

static struct play_cache *find_played(const char *name)
{
    struct kmem_cache *cp = kmem_cache_find(name);

    list_for_each (l, &play_caches) {
        struct play_cache *pc = list_entry(l, struct play_cache, play_link);

        if (pc->play_cp == cp)
            return pc;
    }
    shell_error(cp ? "'%s' was not created by kmem; `kmem list` lists those"
                   : "no cache is called '%s'; `kmem create` creates one",
                name);
    return NULL;
}

static void offer_played(const struct shell_offer *o)
{
    struct kmem_cache_stat st;

    list_for_each (l, &play_caches) {
        kmem_cache_stat(list_entry(l, struct play_cache, play_link)->play_cp,
                        &st);
        shell_offer(o, st.stat_name);
    }
}

SHELL_WORDS(NAME, offer_played);

static int wrong_count(const char *word)
{
    return shell_error("'%s' is no count; write a number from 1 on", word);
}

/* The arguments of `kmem create`. */
struct play_order {
    uint32_t order_size;
    uint32_t order_align;
    bool order_ctor;
    bool order_plain; /* all slabs have colour 0 */
};

/* What a cache cannot be, the allocator says. */
static int read_order(char **argv, struct play_order *o)
{
    if (!parse_size(argv[3], &o->order_size))
        return shell_error("'%s' is no size; write it as 200 or 4k", argv[3]);
    for (argv += 4; *argv; argv++)
        if (strcmp(*argv, "ctor") == 0)
            o->order_ctor = true;
        else if (strcmp(*argv, "nocolour") == 0)
            o->order_plain = true;
        else if (!parse_size(*argv, &o->order_align))
            return shell_error("'%s' is no alignment; write it as 64 or 4k",
                               *argv);
    return 0;
}

/* ---- create and destroy ------------------------------------------------- */

static bool open_playground(void)
{
    if (!cache_cache)
        cache_cache = kmem_cache_create(
            "kmem_play_cache", sizeof(struct play_cache), 0, NULL, NULL);
    if (!object_cache)
        object_cache = kmem_cache_create(
            "kmem_play", sizeof(struct play_object), 0, NULL, NULL);
    return cache_cache && object_cache;
}

static void close_playground(void)
{
    if (!list_empty(&play_caches))
        return;
    if (cache_cache && kmem_cache_destroy(cache_cache) == 0)
        cache_cache = NULL;
    if (object_cache && kmem_cache_destroy(object_cache) == 0)
        object_cache = NULL;
}

static int play_create(char **argv)
{
    struct play_order o = {0};
    struct play_cache *pc = NULL;
    struct kmem_cache *cp = NULL;
    struct kmem_cache_stat st;

    if (read_order(argv, &o))
        return 1;
    if (open_playground())
        pc = kmem_cache_alloc(cache_cache, KM_NOSLEEP);
    if (!pc) {
        shell_error("there is no memory for a cache");
        goto close;
    }
    cp = kmem_cache_create(argv[2], o.order_size, o.order_align,
                           o.order_ctor ? play_ctor : NULL,
                           o.order_ctor ? play_dtor : NULL);
    if (!cp)
        goto free;
    if (o.order_plain)
        kmem_debug_uncolour(cp);
    pc->play_cp = cp;
    pc->play_count = 0;
    list_init(&pc->play_objects);
    list_insert_before(&play_caches, &pc->play_link);
    kmem_cache_stat(cp, &st);
    kprintf("%s: %zu byte%s each, chunk %zu, %zu in a slab of %zu page%s; "
            "no slab yet\n",
            st.stat_name, st.stat_size, plural(st.stat_size), st.stat_chunk,
            st.stat_slab_objects, st.stat_slab_pages,
            plural(st.stat_slab_pages));
    return 0;

free:
    kmem_cache_free(cache_cache, pc);
close:
    close_playground();
    return 1;
}

/* If objects are allocated, the slab allocator refuses and prints why. */
static int play_destroy(char **argv)
{
    struct play_cache *pc;
    int error;

    pc = find_played(argv[2]);
    if (!pc)
        return 1;
    error = kmem_cache_destroy(pc->play_cp);
    if (error == -KMEM_EBUSY)
        return shell_error("%zu object%s in use; `kmem free %s all` first",
                           pc->play_count, plural(pc->play_count), argv[2]);
    if (error)
        return shell_error("a reap is running; try again in a moment");
    list_remove(&pc->play_link);
    kmem_cache_free(cache_cache, pc);
    close_playground();
    kprintf("%s is destroyed; its pages are free\n", argv[2]);
    return 0;
}

/* ---- alloc and free ----------------------------------------------------- */

static bool memory_is_short(void)
{
    struct buddy_stat st;

    buddy_stat(&st);
    return st.stat_free_pages < st.stat_total_pages / RESERVE;
}

static bool alloc_one(struct play_cache *pc)
{
    struct play_object *po;

    if (memory_is_short())
        return false;
    po = kmem_cache_alloc(object_cache, KM_NOSLEEP);
    if (!po)
        return false;
    po->play_addr = kmem_cache_alloc(pc->play_cp, KM_NOSLEEP);
    if (!po->play_addr) {
        kmem_cache_free(object_cache, po);
        return false;
    }
    list_insert_after(&pc->play_objects, &po->play_link);
    pc->play_count++;
    return true;
}

static void print_change(const struct play_cache *pc, char sign, size_t n)
{
    struct kmem_cache_stat st;

    kmem_cache_stat(pc->play_cp, &st);
    kprintf("%s: %c%zu object%s: %zu of %zu in use; slabs: %zu full, "
            "%zu partial, %zu free\n",
            st.stat_name, sign, n, plural(n), st.stat_inuse, st.stat_total,
            st.stat_full_slabs, st.stat_partial_slabs, st.stat_free_slabs);
}

static int play_alloc(char **argv)
{
    struct play_cache *pc;
    uint32_t want;
    size_t n = 0;

    pc = find_played(argv[2]);
    if (!pc)
        return 1;
    if (!parse_u32(argv[3], &want) || want == 0)
        return wrong_count(argv[3]);
    while (n < want && !shell_interrupted() && alloc_one(pc))
        n++;
    print_change(pc, '+', n);
    if (n == want || shell_interrupted())
        return 0;
    if (memory_is_short())
        return shell_error("stopped after %zu; the last eighth of memory is "
                           "reserved",
                           n);
    return shell_error("stopped after %zu; no run of pages is left for a slab, "
                       "see `buddyinfo`",
                       n);
}

/* The object to free next, `how`: the newest (l), the oldest (f), or a random
 * one (r), some steps on in the ring after `at`. */
static struct list *play_pick(const struct play_cache *pc, char how,
                              struct list *at)
{
    const struct list *head = &pc->play_objects;
    size_t steps;

    if (how != 'r')
        return how == 'l' ? head->next : head->prev;
    steps = heap_random(&play_random) % MIN(pc->play_count, STEPS + 0u) + 1;
    while (steps > 0) {
        at = at->next;
        steps -= at != head;
    }
    return at;
}

static int play_free(char **argv)
{
    const char *how = argv[4] ?: "lifo";
    struct play_cache *pc;
    struct list *at;
    uint32_t n, i;

    pc = find_played(argv[2]);
    if (!pc)
        return 1;
    if (strcmp(argv[3], "all") == 0)
        n = pc->play_count;
    else if (!parse_u32(argv[3], &n) || n == 0)
        return wrong_count(argv[3]);
    if (n > pc->play_count)
        return shell_error("allocated objects: %zu; `kmem free %s all`",
                           pc->play_count, argv[2]);
    at = &pc->play_objects;
    for (i = 0; i < n && !shell_interrupted(); i++) {
        struct list *l = play_pick(pc, *how, at);
        struct play_object *po = list_entry(l, struct play_object, play_link);

        at = l->prev;
        list_remove(l);
        kmem_cache_free(pc->play_cp, po->play_addr);
        kmem_cache_free(object_cache, po);
        pc->play_count--;
    }
    print_change(pc, '-', i);
    return 0;
}

/* ---- list --------------------------------------------------------------- */

static int play_list(char **argv UNUSED)
{
    struct kmem_cache_stat st;
    struct table t;

    if (list_empty(&play_caches)) {
        kprintf("(no cache was created by kmem; `kmem create box 200` creates "
                "one)\n");
        return 0;
    }
    t = heap_cache_table();
    list_for_each (l, &play_caches) {
        kmem_cache_stat(list_entry(l, struct play_cache, play_link)->play_cp,
                        &st);
        heap_cache_row(&t, &st);
    }
    return 0;
}

SHELL_COMMAND(kmem,
              {"create NEW-NAME SIZE [ALIGN|ctor|nocolour ...]", play_create,
               SHELL_ACTION},
              {"alloc NAME N", play_alloc, SHELL_ACTION},
              {"free NAME N|all [lifo|fifo|random]", play_free, SHELL_ACTION},
              {"destroy NAME", play_destroy, SHELL_ACTION},
              {"list", play_list, SHELL_REPORT});
