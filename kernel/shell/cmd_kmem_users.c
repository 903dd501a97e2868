/*
 * cache -u: allocated memory by the stack of callers that allocated it, as
 * mdb's command kmausers; with -m what has been allocated for long, the paper's
 * way to find leaks (section 6.7). leaks: objects that nothing points to.
 *
 * Both group the objects of one cache, size and stack, in a table of fixed
 * size: a command allocates nothing. Objects of caches that are not in mode U
 * have no stack and make one group per cache and size.
 */
#include "kernel/x86/cpu.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_debug.h"
#include "kernel/shell/pager.h"
#include "kernel/shell/shell.h"
#include "mm/debug/debug.h"

#define GROUPS   128
#define US_PER_S 1000000ull

struct group {
    const struct kmem_cache *group_cache;
    size_t group_size; /* bytes asked for, each */
    size_t group_count;
    uint64_t group_waste;   /* bytes of their chunks that were not requested */
    uintptr_t group_sample; /* the oldest */
    struct kmem_transaction group_trans; /* its allocation */
};

static struct {
    struct group table[GROUPS];
    size_t used;
    size_t left_out;  /* buffers for which there was no group */
    size_t unaudited; /* buffers without a stack */
    uint64_t min_age; /* in microseconds; 0: any, known or not */
} groups;

/* Begins a table of what was allocated -m seconds ago or earlier. False after
 * an error line. */
static bool begin_groups(void)
{
    uint32_t seconds = 0;

    memset(&groups, 0, sizeof(groups));
    if (!heap_number('m', &seconds))
        return false;
    groups.min_age = seconds * US_PER_S;
    return true;
}

/* ---- grouping ----------------------------------------------------------- */

static uint64_t group_bytes(const struct group *g)
{
    return (uint64_t)g->group_count * g->group_size;
}

static bool belongs(const struct group *g, const struct kmem_buf_stat *b)
{
    const struct kmem_transaction *t = &b->stat_alloc;

    return g->group_cache == b->stat_cache && g->group_size == b->stat_size &&
           g->group_trans.trans_depth == t->trans_depth &&
           memcmp(g->group_trans.trans_stack, t->trans_stack,
                  t->trans_depth * sizeof(t->trans_stack[0])) == 0;
}

static struct group *group_of(const struct kmem_buf_stat *b)
{
    struct group *g;

    for (size_t i = 0; i < groups.used; i++)
        if (belongs(&groups.table[i], b))
            return &groups.table[i];
    if (groups.used == GROUPS)
        return NULL;
    g = &groups.table[groups.used++];
    g->group_cache = b->stat_cache;
    g->group_size = b->stat_size;
    g->group_sample = b->stat_buf;
    g->group_trans = b->stat_alloc;
    return g;
}

/* A kmem_buf_fn_t. Skips free buffers. Neither prints nor allocates:
 * the leak scan calls it with interrupts off. */
static bool take_in(const struct kmem_buf_stat *b, void *arg UNUSED)
{
    const struct kmem_transaction *t = &b->stat_alloc;
    bool known = b->stat_audited && t->trans_depth != 0;
    struct group *g;

    if (b->stat_state != KMEM_BUF_USED)
        return true;
    groups.unaudited += !known;
    if (groups.min_age != 0 && (!known || debugcmd_ago(t) < groups.min_age))
        return true;
    g = group_of(b);
    if (!g) {
        groups.left_out++;
        return true;
    }
    g->group_count++;
    g->group_waste += b->stat_chunk - MIN(b->stat_chunk, b->stat_size);
    if (t->trans_us < g->group_trans.trans_us) {
        g->group_sample = b->stat_buf;
        g->group_trans = *t;
    }
    return !shell_interrupted();
}

/* The group with the most bytes of those that were not taken out. NULL if there
 * are no more, and after ^C. */
static struct group *largest_group(void)
{
    struct group *largest = NULL;

    for (size_t i = 0; i < groups.used; i++) {
        struct group *g = &groups.table[i];

        if (g->group_count != 0 &&
            (!largest || group_bytes(g) > group_bytes(largest)))
            largest = g;
    }
    return shell_interrupted() ? NULL : largest;
}

/* ---- the table ---------------------------------------------------------- */

struct group_row {
    struct group row_group;
    const char *row_cache;
    uint64_t row_bytes;
    const char *row_age; /* of the oldest, as the rest */
    char row_text[HEAP_CELL];
    uint64_t row_us; /* all ones: not known, as the next */
    uint32_t row_task;
};

static void json_group_stack(const struct table *t UNUSED, const void *row)
{
    debugcmd_json_stack(
        &((const struct group_row *)row)->row_group.group_trans);
}

#define GROUP(member, ...) COLUMN(struct group_row, row_##member, __VA_ARGS__)

static const struct column group_columns[] = {
    GROUP(cache, STRING, -HEAP_NAME, "CACHE", "cache"),
    GROUP(group.group_count, NUMBER, 6, "COUNT", "count"),
    GROUP(group.group_size, NUMBER, 6, "SIZE", "size"),
    GROUP(bytes, NUMBER, 9, "BYTES", "bytes"),
    GROUP(group.group_waste, NUMBER, 7, "WASTE", "waste"),
    GROUP(group.group_sample, ADDRESS, -10, "OLDEST", "sample"),
    GROUP(age, STRING, 7, "AGE", NULL),
    GROUP(us, OPTIONAL, 0, NULL, "oldest_us"),
    GROUP(task, OPTIONAL, 4, "TASK", "task"),
    COLUMN_BY(json_group_stack, 0, NULL, "stack"),
    {0},
};

static void print_group(const struct table *t, const struct group *g)
{
    bool known = g->group_trans.trans_depth != 0;
    struct group_row row = {
        .row_group = *g,
        .row_cache = heap_owner_name(g->group_cache),
        .row_bytes = group_bytes(g),
        .row_us = known ? debugcmd_ago(&g->group_trans) : UINT64_MAX,
        .row_task = known ? g->group_trans.trans_task : UINT32_MAX,
    };

    row.row_age = debugcmd_age(&g->group_trans, row.row_text);
    table_row(t, &row);
    if (!t->table_json)
        debugcmd_print_stack(&g->group_trans, 4);
}

/* Prints the groups, most bytes first, with the callers of each. */
static void print_groups(void)
{
    struct table t = shell_table(group_columns);
    struct group *g;

    while ((g = largest_group())) {
        print_group(&t, g);
        g->group_count = 0;
    }
    if (groups.left_out && !t.table_json)
        kprintf("! %zu more object%s, of more stacks than %d\n",
                groups.left_out, plural(groups.left_out), GROUPS);
}

/* ---- the commands ------------------------------------------------------- */

int heap_print_users(char **argv)
{
    struct kmem_cache *cp, *only;
    struct kmem_cache_stat st;

    if (!heap_cache_argument(argv[1], &only) || !begin_groups())
        return 1;
    heap_each (cp, only, &st)
        if (st.stat_kind != KMEM_KIND_INTERNAL)
            kmem_buf_walk(cp, take_in, NULL);
    if (groups.used != 0 || shell_option('j'))
        print_groups();
    else
        kprintf("no object of %s is in use%s\n", argv[1] ?: "any cache",
                groups.min_age ? " and known to be that old" : "");
    if (shell_option('j'))
        return 0;
    if (groups.unaudited)
        kprintf("%s caches that are not in mode U (`debug +U`): %zu "
                "object%s\n",
                groups.min_age ? "of unknown age, of" : "of", groups.unaudited,
                plural(groups.unaudited));
    if (only)
        heap_note_broken(only);
    return 0;
}

static int cmd_leaks(char **argv UNUSED)
{
    struct kmem_leak_stat st;

    if (!begin_groups())
        return 1;
    if (!kmem_leak_scan(take_in, NULL, &st))
        return shell_error("there are no pages for the marks of the scan");
    if (!shell_option('j'))
        pager_to_end();
    print_groups();
    if (!shell_option('j'))
        kprintf("suspect: %zu object%s, %zu byte%s; %zu of %zu are reached "
                "from %zu KiB of roots\n",
                st.stat_suspects, plural(st.stat_suspects),
                st.stat_suspect_bytes, plural(st.stat_suspect_bytes),
                st.stat_reached, st.stat_buffers, st.stat_roots >> 10);
    return 0;
}

/* The search for pointers empties the magazines. */
SHELL_COMMAND(leaks, {"[-j] [-m AGE]", cmd_leaks, .form_report = !CPU_SEVERAL});
