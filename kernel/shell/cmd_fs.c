/*
 * Files from the kernel's side: inodes in memory, what is mounted, pipes.
 */
#include "kernel/fs/file.h"
#include "kernel/fs/proc.h"
#include "kernel/fs/userfs.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/pager.h"
#include "kernel/shell/shell.h"

/* ---- inodes ------------------------------------------------------------- */

#define INODE(member, ...) COLUMN(struct inode_stat, member, __VA_ARGS__)

static const struct column inode_columns[] = {
    INODE(stat_fs, CHARS, -8, "FS", "fs"),
    INODE(stat_number, NUMBER, 8, "NUMBER", "number"),
    INODE(stat_type, STRING, -6, "TYPE", "type"),
    INODE(stat_nlink, NUMBER, 5, "LINKS", "links"),
    INODE(stat_size, NUMBER, 10, "SIZE", "size"),
    INODE(stat_refs, NUMBER, 5, "REFS", "refs"),
    {0},
};

static void print_inodes(const struct table *t, bool all)
{
    struct inode_stat st = {.stat_fs_id = 0};

    while (!shell_interrupted() && inode_next(&st))
        if (all || st.stat_refs > 0)
            table_row(t, &st);
}

static void print_totals(void)
{
    struct inode_totals t;
    char rate[HEAP_CELL];

    inode_totals(&t);
    heap_percent(t.total_hits, t.total_hits + t.total_misses, rate);
    kprintf("%zu inode%s in memory, %zu of them unused; %llu reclaimed\n",
            t.total_cached, plural(t.total_cached), t.total_unused,
            t.total_reclaimed);
    kprintf("looked up %llu times, found %llu times: %s %%\n",
            (t.total_hits + t.total_misses), t.total_hits, rate);
}

static int cmd_inodes(char **argv UNUSED)
{
    struct table t;

    pager_to_end();
    t = shell_table(inode_columns);
    print_inodes(&t, shell_option('a'));
    if (!t.table_json)
        print_totals();
    return 0;
}

SHELL_COMMAND(inodes, {"[-j] [-a]", cmd_inodes, SHELL_REPORT});

/* ---- what is mounted ---------------------------------------------------- */

static int cmd_mounts(char **argv UNUSED)
{
    static char path[PROC_PATHS];
    struct table t = shell_table(proc_mount_columns);

    proc_mounts(&t, path);
    return 0;
}

SHELL_COMMAND(mounts, {"[-j]", cmd_mounts, SHELL_REPORT});

/* The path is that of `mounts`: no server is asked for it. */
static int cmd_umount(char **argv)
{
    static char path[PATH_MAX];
    const char *shown = shell_value('f');
    struct inode *root;

    (void)argv;
    strlcpy(path, shown, sizeof(path));
    unescape(path);
    root = fs_find_mount(path);
    if (root == NULL || userfs_unmount_forced(root) != 0)
        return shell_error("no server's files are on %s; see `mounts`", shown);
    return 0;
}

SHELL_COMMAND(umount, {"-f PATH", cmd_umount, SHELL_ACTION});

/* ---- pipes -------------------------------------------------------------- */

#define PIPE(member, ...) COLUMN(struct pipe_stat, member, __VA_ARGS__)

static const struct column pipe_columns[] = {
    PIPE(stat_pipe, ADDRESS, -10, "PIPE", "pipe"),
    PIPE(stat_readers, NUMBER, 7, "READERS", "readers"),
    PIPE(stat_writers, NUMBER, 7, "WRITERS", "writers"),
    PIPE(stat_bytes, NUMBER, 6, "BYTES", "bytes"),
    PIPE(stat_total, NUMBER, 10, "TOTAL", "total"),
    {0},
};

static void pipes_rows(const struct table *t)
{
    struct pipe_stat st = {.stat_pipe = NULL};

    while (!shell_interrupted() && pipe_next(&st))
        table_row(t, &st);
}

static const struct table_source pipes = {pipe_columns, pipes_rows,
                                          "(no pipe is open)"};

SHELL_COMMAND(pipes, {"[-j]", .form_table = &pipes, SHELL_REPORT});
