/*
 * kmastat --merged: what it would save to make one cache of those that are
 * alike, as SLUB does (mm/others/linux_slub.c), and what it would hide. It is
 * only computed, from the objects that are in use.
 */
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"

/* A cache, or what would be one. */
struct merged_row {
    struct kmem_cache_stat row_stat; /* of the first one */
    const char *row_name;
    size_t row_inuse;
    size_t row_slabs; /* at the least */
    size_t row_saved; /* KiB; all ones: no sum */
};

#define MERGED(member, ...) COLUMN(struct merged_row, row_##member, __VA_ARGS__)

static const struct column merged_columns[] = {
    MERGED(stat.stat_chunk, NUMBER, 6, "BUFFER", NULL),
    MERGED(name, STRING, -HEAP_NAME, "CACHE", NULL),
    MERGED(inuse, NUMBER, 7, "INUSE", NULL),
    MERGED(slabs, NUMBER, 7, "SLABS", NULL),
    MERGED(saved, OPTIONAL, 7, "SAVED/K", NULL),
    {0},
};

struct merged_sum {
    struct table sum_table;
    size_t sum_groups, sum_caches, sum_saved;
};

/* Plain caches whose buffers have one size. */
static bool alike(const struct kmem_cache_stat *a,
                  const struct kmem_cache_stat *b)
{
    return a->stat_chunk == b->stat_chunk &&
           a->stat_slab_pages == b->stat_slab_pages &&
           !((a->stat_flags | b->stat_flags) &
             (KMEM_STAT_CTOR | KMEM_STAT_DTOR | KMEM_STAT_SUPPLY)) &&
           (a->stat_modes | b->stat_modes) == 0 &&
           a->stat_kind != KMEM_KIND_INTERNAL &&
           b->stat_kind != KMEM_KIND_INTERNAL;
}

static size_t slabs_for(const struct kmem_cache_stat *st, size_t objects)
{
    size_t each = MAX(st->stat_slab_objects, (size_t)1);

    return (objects + each - 1) / each;
}

/* How many caches are like this one, itself included; 0 if it is not the first
 * of them. */
static size_t count_alike(const struct kmem_cache *first,
                          const struct kmem_cache_stat *like)
{
    struct kmem_cache_stat st;
    struct kmem_cache *cp;
    size_t n = 0;

    heap_all (cp, &st)
        if (alike(like, &st) && n++ == 0 && cp != first)
            return 0;
    return n;
}

/* A row for each cache that is like this one, and one for all of them. */
static void print_alike(struct merged_sum *sum,
                        const struct kmem_cache_stat *like)
{
    struct merged_row all = {.row_stat = *like, .row_name = "merged"};
    struct kmem_cache_stat st;
    struct kmem_cache *cp;
    size_t apart = 0;

    heap_all (cp, &st) {
        struct merged_row row = {.row_stat = st,
                                 .row_name = st.stat_name,
                                 .row_inuse = st.stat_inuse,
                                 .row_slabs = slabs_for(&st, st.stat_inuse),
                                 .row_saved = SIZE_MAX};

        if (!alike(like, &st))
            continue;
        table_row(&sum->sum_table, &row);
        all.row_inuse += row.row_inuse;
        apart += row.row_slabs;
        sum->sum_caches++;
    }
    all.row_slabs = slabs_for(like, all.row_inuse);
    all.row_saved = (apart - MIN(apart, all.row_slabs)) *
                    like->stat_slab_pages * (PAGE_SIZE / 1024);
    table_row(&sum->sum_table, &all);
    sum->sum_saved += all.row_saved;
    sum->sum_groups++;
}

int heap_print_merged(char **argv UNUSED)
{
    struct merged_sum sum = {.sum_table = shell_table(merged_columns)};
    size_t caches = 0, held = 0;
    struct kmem_cache_stat st;
    struct kmem_cache *cp;

    heap_all (cp, &st) {
        caches++;
        held += st.stat_mem / 1024;
        if (count_alike(cp, &st) > 1 && !shell_interrupted())
            print_alike(&sum, &st);
    }
    kprintf("%zu caches would be %zu; saved: %zu of %zu KiB; hidden: the "
            "counts of %zu\n",
            caches, caches - sum.sum_caches + sum.sum_groups, sum.sum_saved,
            held, sum.sum_caches);
    return 0;
}
