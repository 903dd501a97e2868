/*
 * verify: every invariant of the kernel, by name.
 *
 * The memory comes first: a row per cache, then the rest of memory management.
 * Then come its users. A running program changes its own data, so only blocked
 * programs are checked, and none while another task copies a message from or
 * to it.
 */
#include "kernel/fs/file.h"
#include "kernel/fs/ramfs.h"
#include "kernel/fs/userfs.h"
#include "kernel/ipc/port.h"
#include "kernel/lib/printf.h"
#include "kernel/x86/panic.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/pager.h"
#include "kernel/shell/shell.h"
#include "kernel/syscall/servers.h"
#include "kernel/object/handle.h"
#include "kernel/object/session.h"
#include "kernel/vm/space.h"
#include "kernel/x86/paging.h"
#include "mm/buddy.h"

/* A cache, or a check of something else. In the table are only caches. */
struct verify_row {
    const char *row_check, *row_cache; /* one of them is NULL */
    char row_shown[KMEM_NAME_MAX + 2]; /* the cache, with a mark */
    size_t row_checked;                /* objects; all ones: it is a check */
    unsigned row_bad;
    const char *row_where, *row_broken; /* NULL: every invariant holds */
};

#define VERIFY(member, ...) COLUMN(struct verify_row, row_##member, __VA_ARGS__)

static const struct column verify_columns[] = {
    VERIFY(check, STRING, 0, NULL, "check"),
    VERIFY(cache, STRING, 0, NULL, "cache"),
    VERIFY(shown, CHARS, -HEAP_NAME, "CACHE", NULL),
    VERIFY(checked, OPTIONAL, 8, "CHECKED", "checked"),
    VERIFY(bad, NUMBER, 3, "BAD", "bad"),
    VERIFY(where, STRING, -16, "FIRST-BAD", "first_bad"),
    VERIFY(broken, STRING, -4, "KIND", "kind"),
    {0},
};

/* ---- caches ------------------------------------------------------------- */

/* Returns 1 if the cache is broken. Prints a bad row, and if `good` any. */
static unsigned verify_row(const struct table *t, struct kmem_cache *cp,
                           const struct kmem_cache_stat *st, bool good)
{
    struct verify_row row = {.row_cache = st->stat_name,
                             .row_checked = st->stat_total};
    const char *where = NULL;

    row.row_broken = kmem_cache_verify(cp, &where);
    if (row.row_broken) {
        row.row_bad = 1;
        row.row_where = where;
    }
    snprintf(row.row_shown, sizeof(row.row_shown), "%s%s",
             row.row_bad ? "!" : "", st->stat_name);
    if (row.row_bad || good || t->table_json)
        table_row(t, &row);
    return row.row_bad;
}

/* ---- outside of caches -------------------------------------------------- */

static const char *check_buddy(const char **where)
{
    static char text[24];
    const struct page *frame = NULL;
    const char *wrong = buddy_verify(&frame);

    snprintf(text, sizeof(text), "frame %ld",
             frame ? (long)page_index(frame) : -1L);
    *where = text;
    return wrong;
}

static const char *check_paging(const char **where)
{
    *where = "the kernel's map";
    return paging_verify();
}

/* ---- programs ----------------------------------------------------------- */

/* A program that was preempted may be in the midst of a change. */
static const char *check_program(pid_t pid)
{
    const char *wrong = NULL;
    const struct task *t;

    spin_lock(&sched_lock);
    t = task_find_at_rest(pid);
    if (t != NULL && t->task_space != NULL && t->task_state == TASK_BLOCKED) {
        wrong = space_verify(t->task_space);
        if (wrong == NULL && t->task_handles != NULL)
            wrong = handle_verify(t->task_handles);
    }
    spin_unlock(&sched_lock);
    return wrong;
}

static const char *check_programs(const char **where)
{
    static char text[TASK_NAME_MAX + 16];
    const char *wrong = NULL;
    struct task_stat st = {.stat_pid = -1};

    while (wrong == NULL && task_stats(st.stat_pid, &st, 1) == 1) {
        wrong = check_program(st.stat_pid);
        snprintf(text, sizeof(text), "%s(%d)", st.stat_name, (int)st.stat_pid);
    }
    *where = text;
    return wrong;
}

/* ---- all of it ---------------------------------------------------------- */

#define TRIES  4
#define TRY_MS 20

/* `heap` is first: it also finds the errors that the rows of caches show.
 * Before the first task only memory is there: MEMORY checks. */
#define MEMORY 3

static const struct check {
    const char *check_name;
    const char *(*check_run)(const char **where);
    bool check_again; /* programs may be in the midst of a change */
} checks[] = {
    {"heap", kmem_verify, false},       {"buddy", check_buddy, false},
    {"paging", check_paging, false},    {"tasks", task_verify, false},
    {"ports", ipc_verify, true},        {"programs", check_programs, false},
    {"pipes", pipe_verify, true},       {"inodes", inode_verify, true},
    {"mounts", userfs_verify, true},    {"files", ramfs_verify, true},
    {"servers", servers_verify, false}, {"commit", commit_verify, true},
    {"sessions", session_verify, true}, {"processors", cpu_verify, false},
};

/* A change that was interrupted is complete after the program has run again. */
static const char *run_check(const struct check *c, const char **where)
{
    const char *wrong = c->check_run(where);

    for (int i = 1; wrong && c->check_again && i < TRIES; i++) {
        if (panic_happened())
            break;
        sched_sleep_ms(TRY_MS);
        wrong = c->check_run(where);
    }
    return wrong;
}

static void print_holds(bool all)
{
    kprintf("caches, supplier, %zu page frames, page tables%s: every "
            "invariant holds\n",
            page_count,
            all ? ", tasks, sessions, programs,\npromised memory, ports, "
                  "pipes, inodes, mounts and files"
                : "");
}

/* Everything that is not inside one cache, with a line for each thing that is
 * broken. Returns how many are, caches included. */
static int verify_rest(const struct table *t, unsigned bad_caches)
{
    bool all = task_self() != NULL;
    const struct check *end = checks + (all ? ARRAY_SIZE(checks) : MEMORY);
    unsigned bad = bad_caches;

    for (const struct check *c = checks; c < end; c++) {
        struct verify_row row = {.row_check = c->check_name,
                                 .row_checked = SIZE_MAX};
        const char *where = NULL;

        row.row_broken = run_check(c, &where);
        if (row.row_broken) {
            row.row_bad = 1;
            row.row_where = where;
            bad += c != checks || bad_caches == 0;
            shell_error("%s: %s: %s", c->check_name, where, row.row_broken);
        }
        if (t->table_json)
            table_row(t, &row);
    }
    if (bad == 0 && !t->table_json)
        print_holds(all);
    return (int)bad;
}

static int cmd_verify(char **argv)
{
    struct kmem_cache *cp, *only;
    struct kmem_cache_stat st;
    struct table t;
    unsigned bad = 0;

    if (!heap_cache_argument(argv[1], &only))
        return 1;
    pager_to_end();
    t = shell_table(verify_columns);
    heap_each (cp, only, &st)
        bad += verify_row(&t, cp, &st, only || st.stat_mem != 0);
    if (shell_interrupted()) /* nothing is known of the rest */
        return (int)bad;
    if (!only)
        return verify_rest(&t, bad);
    if (bad)
        return shell_error("'%s' breaks an invariant; see above", argv[1]);
    return 0;
}

SHELL_COMMAND(verify, {"[-j] [CACHE]", cmd_verify, SHELL_REPORT});
