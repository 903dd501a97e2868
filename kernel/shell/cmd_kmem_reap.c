/*
 * reap: reaping free slabs, and the working set that a reap keeps (paper,
 * section 3.4).
 */
#include "kernel/fs/inode.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/pager.h"
#include "kernel/shell/shell.h"
#include "mm/buddy.h"
#include "mm/segkmem.h"

/* The sum of all rows of `reap`. */
struct reap_sum {
    struct table rs_table;
    bool rs_dry; /* only says what a reap would take */
    size_t rs_rows;
    size_t rs_slabs, rs_kept, rs_pages, rs_objects;
};

struct reap_row {
    struct kmem_cache_stat row_stat; /* before */
    const char *row_last;
    char row_age[HEAP_CELL];
    size_t row_freed, row_kept;
};

#define REAP(member, ...) COLUMN(struct reap_row, row_##member, __VA_ARGS__)

static const struct column reap_columns[] = {
    REAP(stat.stat_name, CHARS, -HEAP_NAME, "CACHE", NULL),
    REAP(stat.stat_free_slabs, NUMBER, 6, "T", NULL),
    REAP(stat.stat_ws_min, NUMBER, 6, "m", NULL),
    REAP(stat.stat_ws_limit, NUMBER, 6, "L", NULL),
    REAP(stat.stat_reapable, NUMBER, 8, "REAPABLE", NULL),
    REAP(last, STRING, 9, "LAST-REAP", NULL),
    REAP(freed, NUMBER, 6, "FREED", NULL),
    REAP(kept, NUMBER, 6, "KEPT", NULL),
    {0},
};

/* ---- the working set ---------------------------------------------------- */

static void print_interval(void)
{
    if (kmem_ws_interval == KMEM_WS_INFINITE)
        kprintf("interval: infinite; a reap keeps every free slab\n");
    else if (kmem_ws_interval == 0)
        kprintf("interval: 0; a reap frees every free slab\n");
    else
        kprintf("interval: %u.%03u s; at each update L = m, m = T\n",
                (unsigned)kmem_ws_interval / 1000,
                (unsigned)kmem_ws_interval % 1000);
}

static int set_interval(char **argv UNUSED)
{
    const char *word = shell_value('i');
    uint32_t seconds;

    if (strcmp(word, "never") == 0) {
        kmem_ws_interval = KMEM_WS_INFINITE;
    } else if (parse_u32(word, &seconds) && seconds <= 1000000) {
        kmem_ws_interval = seconds * 1000;
    } else {
        return shell_error(
            "'%s' is not an interval; write seconds up to 1000000, "
            "or never",
            word);
    }
    print_interval();
    return 0;
}

/* ---- reap --------------------------------------------------------------- */

static void reap_cache(struct kmem_cache *cp, enum kmem_reap_mode mode,
                       bool always, struct reap_sum *sum)
{
    struct reap_row row = {.row_last = "never"};
    const struct kmem_cache_stat *st = &row.row_stat;
    struct kmem_cache_stat after;
    size_t slabs;

    kmem_cache_stat(cp, &row.row_stat);
    if (st->stat_free_slabs == 0 && st->stat_trapped == 0 && !always)
        return;
    if (st->stat_reaps != 0)
        row.row_last =
            heap_age(mm_clock_ms() - st->stat_last_reap_ms, row.row_age);
    if (sum->rs_dry) {
        slabs = st->stat_reapable;
        row.row_kept = st->stat_free_slabs - slabs;
    } else {
        slabs = row.row_freed = kmem_cache_reap(cp, mode);
        kmem_cache_stat(cp, &after);
        row.row_kept = after.stat_last_reap_kept;
    }
    table_row(&sum->rs_table, &row);
    sum->rs_rows++;
    sum->rs_slabs += slabs;
    sum->rs_kept += row.row_kept;
    sum->rs_pages += slabs * st->stat_slab_pages;
    if (st->stat_flags & KMEM_STAT_DTOR &&
        !(st->stat_modes & (KMF_POISON | KMF_OWN_PAGES))) /* at each free */
        sum->rs_objects += slabs * st->stat_slab_objects;
}

/* The allocator's own caches last: a reaped slab of another cache frees objects
 * of theirs. */
static void reap_all(enum kmem_reap_mode mode, struct reap_sum *sum)
{
    struct kmem_cache_stat st;
    struct kmem_cache *cp;

    for (int own = 0; own < 2; own++)
        heap_all (cp, &st) {
            if ((st.stat_kind == KMEM_KIND_INTERNAL) == own)
                reap_cache(cp, mode, false, sum);
            if (shell_interrupted())
                return;
        }
}

static size_t segkmem_pages(void)
{
    struct segkmem_stat seg;

    segkmem_stat(&seg);
    return seg.stat_pages;
}

static void print_freed(const char *what, size_t n)
{
    if (n != 0)
        kprintf("%s: %zu\n", what, n);
}

static int cmd_reap(char **argv)
{
    enum kmem_reap_mode mode = shell_option('a') ? KMEM_REAP_ALL : KMEM_REAP_WS;
    size_t held = segkmem_pages(), free = buddy_free_pages();
    struct reap_sum sum = {.rs_dry = shell_option('n')};
    struct kmem_cache *cp;

    if (!heap_cache_argument(argv[1], &cp))
        return 1;
    /* as under memory pressure */
    if (mode == KMEM_REAP_ALL && (!cp || cp == kmem_cache_find("inode")))
        print_freed("unused inodes freed first", inode_reclaim(SIZE_MAX));
    pager_to_end();
    sum.rs_table = shell_table(reap_columns);
    if (cp)
        reap_cache(cp, mode, true, &sum);
    else
        reap_all(mode, &sum);
    if (sum.rs_rows == 0 && !shell_interrupted())
        kprintf("(no cache has a free slab)\n");
    if (mode == KMEM_REAP_ALL)
        print_freed("pages freed that mode S kept unmapped",
                    kmem_unmapped_release(cp));
    kprintf("slabs: %zu freed, %zu kept; pages: %zu freed; "
            "objects: %zu destroyed\n",
            sum.rs_slabs, sum.rs_kept, sum.rs_pages, sum.rs_objects);
    if (sum.rs_dry) {
        kprintf("(a reap would do this%s; nothing was changed)\n",
                CPU_SEVERAL ? ", and free slabs that magazines fill" : "");
        print_interval();
    } else {
        kprintf("slab memory %zu -> %zu KiB; free pages of the machine "
                "%zu -> %zu\n",
                held * PAGE_SIZE / 1024, segkmem_pages() * PAGE_SIZE / 1024,
                free, buddy_free_pages());
    }
    return 0;
}

SHELL_COMMAND(reap, {"[-a] [CACHE]", cmd_reap, SHELL_ACTION},
              {"-n [CACHE]", cmd_reap, SHELL_REPORT},
              {"-i SECONDS|never", set_interval, SHELL_ACTION});
