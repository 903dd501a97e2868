/*
 * walk: one row per object, slab, bufctl or hash entry, of one cache or of
 * all. Slabs are in the order of the cache's list, objects in the order of
 * their addresses.
 *
 * The walk goes by slab number and copies one slab's state at a time. A row
 * that contradicts itself is marked `!`. If a cache breaks an invariant, a line
 * after its rows says which and where.
 */
#include "drivers/console.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_debug.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/words.h"
#include "mm/debug/debug.h"

struct walk {
    void (*walk_slab)(struct walk *w);  /* called for each slab */
    void (*walk_cache)(struct walk *w); /* or else once for each cache */
    bool walk_used;                     /* of objects: those in use */
    bool walk_json;
    uint32_t walk_most; /* rows */
    uint32_t walk_rows; /* so far */
    struct kmem_cache *walk_cp;
    struct kmem_cache_stat walk_st;
    struct kmem_slab_stat walk_at;
    size_t walk_number; /* of the slab in list order */
};

/* Of one slab: too big for a stack. One shell, one command at a time. */
static uint8_t map[HEAP_MAP_BITS / 8];
static const struct kmem_bufctl *bufctl[HEAP_MAP_BITS];

/* ---- rows --------------------------------------------------------------- */

/* The contents of a row, to which row_words words at row_addr are added. */
struct row {
    uintptr_t row_addr;
    uintptr_t row_slab;
    size_t row_index;
    const char *row_state;
    unsigned row_words;
    bool row_bad;
};

/* Of an object in use, if it is known. */
static void json_allocation(uintptr_t addr)
{
    struct kmem_buf_stat buf = {.stat_audited = false};
    char caller[DEBUGCMD_CALLER];

    kmem_buf_stat((const void *)addr, &buf);
    if (!buf.stat_audited)
        return;
    kprintf(",\"age_us\":%llu,\"task\":%u,\"caller\":",
            debugcmd_ago(&buf.stat_alloc), (unsigned)buf.stat_alloc.trans_task);
    shell_json_string(debugcmd_caller(&buf.stat_alloc, caller));
}

static void json_row(const struct walk *w, const struct row *r)
{
    uintptr_t word;

    kprintf("{\"addr\":%lu,\"cache\":", (unsigned long)r->row_addr);
    shell_json_string(w->walk_st.stat_name);
    kprintf(",\"slab\":%lu,\"index\":%zu,\"state\":\"%s\",\"bad\":%s,"
            "\"words\":[",
            (unsigned long)r->row_slab, r->row_index, r->row_state,
            r->row_bad ? "true" : "false");
    for (unsigned i = 0; i < r->row_words; i++)
        if (heap_word(r->row_addr + i * sizeof(word), &word))
            kprintf("%s%lu", i ? "," : "", (unsigned long)word);
    kprintf("]");
    if (w->walk_used)
        json_allocation(r->row_addr);
    kprintf("}\n");
}

static void print_walk_row(const struct walk *w, const struct row *r)
{
    kprintf("%c0x%08lx %-16s 0x%08lx %4zu %-7s", r->row_bad ? '!' : ' ',
            (unsigned long)r->row_addr, w->walk_st.stat_name,
            (unsigned long)r->row_slab, r->row_index, r->row_state);
    heap_print_words(r->row_addr, r->row_words);
    kprintf("\n");
}

static bool done(const struct walk *w)
{
    return w->walk_rows >= w->walk_most || shell_interrupted();
}

static void put_row(struct walk *w, const struct row *r)
{
    if (done(w))
        return;
    w->walk_rows++;
    if (w->walk_json)
        json_row(w, r);
    else
        print_walk_row(w, r);
}

/* ---- objects, slabs, bufctls, hash entries ------------------------------ */

/* Chunks of the slab that the walk is at, its map and bufctls at hand. */
static size_t take_slab(const struct walk *w)
{
    size_t n = kmem_slab_map(w->walk_cp, w->walk_number, map, HEAP_MAP_BITS);

    kmem_slab_bufctls(w->walk_cp, w->walk_number, bufctl, HEAP_MAP_BITS);
    return MIN(n, (size_t)HEAP_MAP_BITS);
}

static uintptr_t chunk_addr(const struct walk *w, size_t i)
{
    return w->walk_at.stat_base + w->walk_at.stat_colour +
           i * w->walk_st.stat_chunk;
}

static bool is_large(const struct walk *w)
{
    return w->walk_st.stat_flags & KMEM_STAT_LARGE;
}

static const char *chunk_state(const struct walk *w, size_t i)
{
    return heap_object_state(w->walk_cp, chunk_addr(w, i),
                             heap_map_used(map, i));
}

/* A buffer of a large cache has a bufctl, or something is wrong. */
static bool chunk_bad(const struct walk *w, size_t i)
{
    return w->walk_at.stat_bad || (is_large(w) && bufctl[i] == NULL) ||
           *chunk_state(w, i) == 'b';
}

/* An object in a magazine is free. */
static bool chunk_used(const struct walk *w, size_t i)
{
    return heap_map_used(map, i) && *chunk_state(w, i) != 'r';
}

static void walk_objects(struct walk *w)
{
    size_t n = take_slab(w);

    for (size_t i = 0; i < n && !done(w); i++)
        if (chunk_used(w, i) == w->walk_used)
            put_row(w, &(struct row){chunk_addr(w, i), w->walk_at.stat_slab, i,
                                     chunk_state(w, i), HEAP_WORDS,
                                     chunk_bad(w, i)});
}

/* A free small buffer's bufctl is its last word. */
static void walk_bufctls(struct walk *w)
{
    size_t n = take_slab(w);

    for (size_t i = 0; i < n && !done(w); i++)
        if (bufctl[i] != NULL)
            put_row(w, &(struct row){(uintptr_t)bufctl[i], w->walk_at.stat_slab,
                                     i, chunk_state(w, i),
                                     is_large(w) ? HEAP_WORDS : 1,
                                     w->walk_at.stat_bad});
}

static void walk_slab(struct walk *w)
{
    put_row(w, &(struct row){w->walk_at.stat_slab, w->walk_at.stat_slab,
                             w->walk_number,
                             heap_state_name(w->walk_at.stat_state), HEAP_WORDS,
                             w->walk_at.stat_bad});
}

/* One chain; the number of the bucket is the index. */
static void walk_bucket(struct walk *w, size_t bucket)
{
    const struct kmem_bufctl *bcp;
    bool bad;

    for (size_t i = 0; !done(w); i++) {
        bcp = kmem_hash_entry(w->walk_cp, bucket, i, &bad);
        if (bcp == NULL && !bad)
            return;
        put_row(w, &(struct row){
                       (uintptr_t)bcp, bcp ? kmem_bufctl_slab(bcp) : 0, bucket,
                       bcp ? "used" : "invalid", bcp ? HEAP_WORDS : 0, bad});
        if (bad)
            return;
    }
}

static void walk_hash(struct walk *w)
{
    for (size_t i = 0; i < w->walk_st.stat_hash_size && !done(w); i++)
        walk_bucket(w, i);
}

/* ---- caches ------------------------------------------------------------- */

static void walk_cache(struct walk *w)
{
    if (w->walk_cache) {
        w->walk_cache(w);
    } else {
        size_t slabs = w->walk_st.stat_slabs;

        for (size_t n = 0; n < slabs && !done(w); n++) {
            if (!kmem_slab_stat(w->walk_cp, n, &w->walk_at))
                break;
            w->walk_number = n;
            w->walk_slab(w);
        }
    }
    if (!w->walk_json)
        heap_note_broken(w->walk_cp);
}

static void set_what(struct walk *w, const char *what)
{
    static const struct {
        const char *name;
        void (*slab)(struct walk *w);
        void (*cache)(struct walk *w);
    } kinds[] = {
        {"alloc", walk_objects, NULL}, {"free", walk_objects, NULL},
        {"slab", walk_slab, NULL},     {"bufctl", walk_bufctls, NULL},
        {"hash", NULL, walk_hash},
    };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i].name, what) == 0) {
            w->walk_slab = kinds[i].slab;
            w->walk_cache = kinds[i].cache;
        }
    w->walk_used = *what == 'a';
}

static int cmd_walk(char **argv)
{
    struct walk w = {.walk_most = UINT32_MAX, .walk_json = shell_option('j')};
    struct heap_order at = {0};

    if (!heap_number('n', &w.walk_most) ||
        !heap_cache_argument(argv[2], &at.order_only))
        return 1;
    set_what(&w, argv[1]);
    if (!w.walk_json)
        kprintf(" %-10s %-16s %-10s %4s %-7s %s\n", "ADDR", "CACHE", "SLAB",
                "IDX", "STATE", "FIRST-WORDS");
    while (!done(&w) && (w.walk_cp = heap_next(&at, heap_key_mem, &w.walk_st)))
        walk_cache(&w);
    if (!w.walk_json)
        kprintf("%u row%s%s\n", (unsigned)w.walk_rows, plural(w.walk_rows),
                w.walk_rows == w.walk_most ? ", as many as asked for" : "");
    return 0;
}

SHELL_COMMAND(walk, cmd_walk, SHELL_REPORT);
