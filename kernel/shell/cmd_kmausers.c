/*
 * kmausers: allocated memory by the stack of callers that allocated it, as
 * mdb's command of that name; with -m what has been allocated for long, the
 * paper's way to find leaks (section 6.7). leaks: objects that nothing points
 * to.
 *
 * Both group the objects of one cache, size and stack, in a table of fixed
 * size: a command allocates nothing. Objects of caches that are not in mode U
 * have no stack and make one group per cache and size.
 */
#include "drivers/console.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_debug.h"
#include "kernel/shell/pager.h"
#include "kernel/shell/shell.h"
#include "mm/debug/debug.h"
#include "mm/platform.h"

#define GROUPS     128
#define TASKS_KEPT 4
#define US_PER_S   1000000ull

/* Times in microseconds. */
struct group {
    const struct kmem_cache *group_cache;
    size_t group_size;                   /* bytes asked for, each */
    struct kmem_transaction group_trans; /* its stack is that of all */
    uint64_t group_count;
    uint64_t group_waste; /* bytes of their chunks that were not requested */
    uint64_t group_youngest;
    uint64_t group_oldest;
    uint64_t group_ages;    /* sum */
    uintptr_t group_sample; /* the oldest */
    uint32_t group_task[TASKS_KEPT];
    unsigned group_tasks; /* distinct ones */
    bool group_more_tasks;
};

static struct {
    struct group table[GROUPS];
    size_t used;
    uint64_t left_out;  /* buffers for which there was no group */
    uint64_t unaudited; /* buffers without a stack */
    uint64_t now;       /* when the walk began: ages are as of then */
    uint64_t min_age;   /* younger ones are left out */
    bool audited_only;
} groups;

static void clear_groups(uint64_t min_age, bool audited_only)
{
    memset(&groups, 0, sizeof(groups));
    groups.now = mm_clock_us();
    groups.min_age = min_age;
    groups.audited_only = audited_only;
}

/* ---- grouping ----------------------------------------------------------- */

static uint64_t group_bytes(const struct group *g)
{
    return g->group_count * g->group_size;
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
    g->group_trans = b->stat_alloc;
    g->group_youngest = UINT64_MAX;
    return g;
}

static void note_task(struct group *g, uint32_t task)
{
    unsigned i = 0;

    while (i < g->group_tasks && g->group_task[i] != task)
        i++;
    if (i == TASKS_KEPT)
        g->group_more_tasks = true;
    else if (i == g->group_tasks)
        g->group_task[g->group_tasks++] = task;
}

/* A kmem_buf_fn_t. Skips free buffers. Neither prints nor allocates:
 * the leak scan calls it with interrupts off. */
static bool take_in(const struct kmem_buf_stat *b, void *arg UNUSED)
{
    bool known = b->stat_audited && b->stat_alloc.trans_depth != 0;
    uint64_t age =
        known ? groups.now - MIN(groups.now, b->stat_alloc.trans_us) : 0;
    struct group *g;

    if (b->stat_state != KMEM_BUF_USED)
        return true;
    groups.unaudited += !known;
    if (age < groups.min_age || (groups.audited_only && !known))
        return true;
    g = group_of(b);
    if (!g) {
        groups.left_out++;
        return true;
    }
    g->group_count++;
    g->group_waste += b->stat_chunk - MIN(b->stat_chunk, b->stat_size);
    g->group_ages += age;
    g->group_youngest = MIN(g->group_youngest, age);
    if (age >= g->group_oldest) {
        g->group_oldest = age;
        g->group_sample = b->stat_buf;
    }
    if (known)
        note_task(g, b->stat_alloc.trans_task);
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

/* A row of `kmausers` or `leaks`. */
struct group_row {
    struct group row_group;
    const char *row_cache;
    uint64_t row_bytes;
    char row_ages[3 * HEAP_CELL], row_oldest[HEAP_CELL];
    char row_tasks[TASKS_KEPT * 11 + 4];
    const char *row_caller;
    char row_text[DEBUGCMD_CALLER];
};

/* "1,4" or "1,4,7,9,..". */
static void put_tasks(struct group_row *row)
{
    const struct group *g = &row->row_group;
    size_t n = 0;

    strlcpy(row->row_tasks, "-", sizeof(row->row_tasks));
    for (unsigned i = 0; i < g->group_tasks; i++)
        n += (size_t)snprintf(row->row_tasks + n, sizeof(row->row_tasks) - n,
                              "%s%u", i ? "," : "", (unsigned)g->group_task[i]);
    if (g->group_more_tasks)
        strlcpy(row->row_tasks + n, ",..", sizeof(row->row_tasks) - n);
}

static void put_ages(struct group_row *row)
{
    const struct group *g = &row->row_group;
    char low[HEAP_CELL], mean[HEAP_CELL];

    strlcpy(row->row_ages, "-", sizeof(row->row_ages));
    strlcpy(row->row_oldest, "-", sizeof(row->row_oldest));
    if (g->group_trans.trans_depth != 0)
        snprintf(row->row_ages, sizeof(row->row_ages), "%s/%s/%s",
                 heap_age(g->group_youngest / 1000, low),
                 heap_age(g->group_ages / g->group_count / 1000, mean),
                 heap_age(g->group_oldest / 1000, row->row_oldest));
}

static void json_group_stack(const struct table *t UNUSED, const void *row)
{
    debugcmd_json_stack(
        &((const struct group_row *)row)->row_group.group_trans);
}

#define GROUP(member, ...) COLUMN(struct group_row, row_##member, __VA_ARGS__)

static const struct column user_columns[] = {
    GROUP(bytes, NUMBER, 9, "BYTES", "bytes"),
    GROUP(group.group_count, NUMBER, 6, "COUNT", "count"),
    GROUP(group.group_size, NUMBER, 6, "SIZE", "size"),
    GROUP(group.group_waste, NUMBER, 7, "WASTE", "waste"),
    GROUP(ages, CHARS, -20, "AGE-MIN/AVG/MAX", NULL),
    GROUP(tasks, CHARS, -9, "TASKS", NULL),
    GROUP(cache, STRING, -5, "CACHE", "cache"),
    GROUP(group.group_youngest, NUMBER, 0, NULL, "youngest_us"),
    GROUP(group.group_oldest, NUMBER, 0, NULL, "oldest_us"),
    GROUP(group.group_sample, NUMBER, 0, NULL, "sample"),
    COLUMN_BY(json_group_stack, 0, NULL, "stack"),
    {0},
};

static const struct column suspect_columns[] = {
    GROUP(cache, STRING, -HEAP_NAME, "CACHE", NULL),
    GROUP(group.group_count, NUMBER, 6, "COUNT", NULL),
    GROUP(bytes, NUMBER, 9, "BYTES", NULL),
    GROUP(oldest, CHARS, 7, "OLDEST", NULL),
    GROUP(group.group_sample, ADDRESS, -10, "SAMPLE", NULL),
    GROUP(caller, STRING, -6, "CALLER", NULL),
    {0},
};

/* Prints the groups, most bytes first; with `stacks` the callers of each. */
static void print_groups(const struct column *columns, bool stacks)
{
    struct table t = shell_table(columns);
    struct group *g;

    while ((g = largest_group())) {
        struct group_row row = {.row_group = *g,
                                .row_cache = heap_owner_name(g->group_cache),
                                .row_bytes = group_bytes(g)};

        row.row_caller = debugcmd_caller(&g->group_trans, row.row_text);
        put_tasks(&row);
        put_ages(&row);
        table_row(&t, &row);
        if (stacks && !t.table_json)
            debugcmd_print_stack(&g->group_trans, 10);
        g->group_count = 0;
    }
    if (groups.left_out && !t.table_json)
        kprintf("! %llu more object%s, of more stacks than %d\n",
                groups.left_out, plural(groups.left_out), GROUPS);
}

/* ---- the commands ------------------------------------------------------- */

static void print_users(const char *name)
{
    if (groups.used == 0 && !shell_option('j'))
        kprintf("no object of %s is in use%s\n", name,
                groups.audited_only ? " and known to be that old" : "");
    else
        print_groups(user_columns, true);
    if (groups.unaudited && !shell_option('j'))
        kprintf("%s caches that are not in mode U (`debug +U`): %llu "
                "object%s\n",
                groups.audited_only ? "of unknown age, of" : "of",
                groups.unaudited, plural(groups.unaudited));
}

static int cmd_kmausers(char **argv)
{
    uint32_t seconds = 0;
    struct kmem_cache *cp, *only;
    struct kmem_cache_stat st;

    if (!heap_cache_argument(argv[1], &only) || !heap_number('m', &seconds))
        return 1;
    clear_groups(seconds * US_PER_S, shell_option('m'));
    heap_each (cp, only, &st)
        if (st.stat_kind != KMEM_KIND_INTERNAL)
            kmem_buf_walk(cp, take_in, NULL);
    print_users(only ? argv[1] : "any cache");
    if (only && !shell_option('j'))
        heap_note_broken(only);
    return 0;
}

SHELL_COMMAND(kmausers, cmd_kmausers, "[-j] [-m AGE] [CACHE]", SHELL_REPORT);

static int cmd_leaks(char **argv UNUSED)
{
    uint32_t seconds = 0;
    struct kmem_leak_stat st;

    if (CPU_SEVERAL && !shell_may_change()) /* it empties the magazines */
        return 1;
    if (!heap_number('m', &seconds))
        return 1;
    clear_groups(seconds * US_PER_S, shell_option('m'));
    if (!kmem_leak_scan(take_in, NULL, &st))
        return shell_error("there are no pages for the marks of the scan");
    if (shell_option('j')) {
        print_groups(user_columns, false);
        return 0;
    }
    pager_to_end();
    print_groups(suspect_columns, false);
    kprintf("suspect: %zu object%s, %zu byte%s; %zu of %zu are reached from "
            "%zu KiB of roots\n",
            st.stat_suspects, plural(st.stat_suspects), st.stat_suspect_bytes,
            plural(st.stat_suspect_bytes), st.stat_reached, st.stat_buffers,
            st.stat_roots >> 10);
    return 0;
}

SHELL_COMMAND(leaks, cmd_leaks, "[-j] [-m AGE]", SHELL_REPORT);
