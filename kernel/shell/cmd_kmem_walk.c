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
    struct table walk_table;
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

/* What a walk finds: row_words words at row_addr belong to it. */
struct row {
    uintptr_t row_addr;
    uintptr_t row_slab;
    size_t row_index;
    const char *row_state;
    unsigned row_words;
    bool row_bad;
};

/* A row as it is printed. */
struct walk_row {
    struct row walk_row;
    char walk_shown[HEAP_CELL]; /* the address with its mark */
    const char *walk_cache;
    uint64_t walk_age; /* in microseconds; all ones: not known, as the next */
    uint32_t walk_task;
    const char *walk_caller;
};

static void print_row_words(const struct table *t, const void *row)
{
    const struct row *r = &((const struct walk_row *)row)->walk_row;
    const char *before = t->table_json ? "" : " ";
    uintptr_t word;

    t->table_print(t->table_to, t->table_json ? "[" : "");
    for (unsigned i = 0; i < r->row_words; i++) {
        bool readable = heap_word(r->row_addr + i * sizeof(word), &word);

        if (!readable && !t->table_json)
            t->table_print(t->table_to, "%sunmapped", before);
        else if (readable)
            t->table_print(t->table_to, t->table_json ? "%s%lu" : "%s%08lx",
                           before, (unsigned long)word);
        before = t->table_json ? "," : " ";
    }
    t->table_print(t->table_to, t->table_json ? "]" : "");
}

#define WALK(member, ...) COLUMN(struct walk_row, walk_##member, __VA_ARGS__)

static const struct column walk_columns[] = {
    WALK(row.row_addr, NUMBER, 0, NULL, "addr"),
    WALK(shown, CHARS, -11, " ADDR", NULL),
    WALK(cache, STRING, -16, "CACHE", "cache"),
    WALK(row.row_slab, ADDRESS, -10, "SLAB", "slab"),
    WALK(row.row_index, NUMBER, 4, "IDX", "index"),
    WALK(row.row_state, STRING, -7, "STATE", "state"),
    WALK(row.row_bad, FLAG, 0, NULL, "bad"),
    COLUMN_BY(print_row_words, -26, "FIRST-WORDS", "words"),
    WALK(age, OPTIONAL, 0, NULL, "age_us"),
    WALK(task, OPTIONAL, 0, NULL, "task"),
    WALK(caller, STRING, 0, NULL, "caller"),
    {0},
};

/* Of an object in use, if it is known. */
static void put_allocation(struct walk_row *row, char caller[DEBUGCMD_CALLER])
{
    struct kmem_buf_stat buf = {.stat_audited = false};

    kmem_buf_stat((const void *)row->walk_row.row_addr, &buf);
    if (!buf.stat_audited)
        return;
    row->walk_age = debugcmd_ago(&buf.stat_alloc);
    row->walk_task = buf.stat_alloc.trans_task;
    row->walk_caller = debugcmd_caller(&buf.stat_alloc, caller);
}

static bool done(const struct walk *w)
{
    return w->walk_rows >= w->walk_most || shell_interrupted();
}

static void put_row(struct walk *w, const struct row *r)
{
    struct walk_row row = {.walk_row = *r,
                           .walk_cache = w->walk_st.stat_name,
                           .walk_age = UINT64_MAX,
                           .walk_task = UINT32_MAX};
    char caller[DEBUGCMD_CALLER];

    if (done(w))
        return;
    w->walk_rows++;
    snprintf(row.walk_shown, sizeof(row.walk_shown), "%c0x%08lx",
             r->row_bad ? '!' : ' ', (unsigned long)r->row_addr);
    if (w->walk_used && w->walk_table.table_json)
        put_allocation(&row, caller);
    table_row(&w->walk_table, &row);
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
    if (!w->walk_table.table_json)
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
    struct walk w = {.walk_most = UINT32_MAX};
    struct heap_order at = {0};

    if (!heap_number('n', &w.walk_most) ||
        !heap_cache_argument(argv[2], &at.order_only))
        return 1;
    set_what(&w, argv[1]);
    w.walk_table = shell_table(walk_columns);
    while (!done(&w) && (w.walk_cp = heap_next(&at, heap_key_mem, &w.walk_st)))
        walk_cache(&w);
    if (!w.walk_table.table_json)
        kprintf("%u row%s%s\n", (unsigned)w.walk_rows, plural(w.walk_rows),
                w.walk_rows == w.walk_most ? ", as many as asked for" : "");
    return 0;
}

SHELL_COMMAND(walk, cmd_walk, "[-j] alloc|free|slab|bufctl|hash [CACHE] [-n N]",
              SHELL_REPORT);
