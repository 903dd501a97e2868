/*
 * Files from the kernel's side: inodes in memory, what is mounted, pipes.
 */
#include "drivers/console.h"
#include "kernel/fs/file.h"
#include "kernel/fs/userfs.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/pager.h"
#include "kernel/shell/shell.h"

#define BATCH 16 /* rows per snapshot */

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
    struct inode_stat st[BATCH];
    const struct inode_stat *after = NULL;
    struct inode_stat last;
    size_t n;

    while (!shell_interrupted() && (n = inode_stats(after, st, BATCH)) > 0) {
        for (size_t i = 0; i < n; i++)
            if (all || st[i].stat_refs > 0)
                table_row(t, &st[i]);
        last = st[n - 1];
        after = &last;
    }
}

static void print_totals(void)
{
    struct inode_totals t;
    char rate[HEAP_CELL];

    inode_totals(&t);
    heap_percent(1000 - heap_waste(t.total_hits, t.total_hits + t.total_misses),
                 rate);
    kprintf("%zu inode%s in memory, %zu of them unused; %llu reclaimed\n",
            t.total_cached, plural(t.total_cached), t.total_unused,
            t.total_reclaimed);
    kprintf("looked up %llu times, found %llu times: %s %%\n",
            (t.total_hits + t.total_misses), t.total_hits, rate);
}

static int cmd_inodes(char **argv UNUSED)
{
    struct table t;

    if (shell_option('r') && !shell_may_change())
        return 1;
    if (shell_option('r')) {
        size_t n = inode_reclaim(SIZE_MAX);

        kprintf("%zu inode%s reclaimed\n", n, plural(n));
        return 0;
    }
    pager_to_end();
    t = shell_table(inode_columns);
    print_inodes(&t, shell_option('a'));
    if (!t.table_json)
        print_totals();
    return 0;
}

SHELL_COMMAND(inodes, cmd_inodes, "[-j] [-a|-r]", SHELL_REPORT);

/* ---- what is mounted ---------------------------------------------------- */

/* A row of `mounts`. What is not known is all ones. */
struct mount_row {
    const char *row_path, *row_shown; /* with its blanks escaped */
    const char *row_fs;
    uint32_t row_root, row_inodes;
    struct fs_stat row_stat;
    struct userfs_stat row_server;
    char row_name[ESCAPED_SIZE(TASK_NAME_MAX + 1) + 16];
    const char *row_state;
};

#define MOUNT(member, ...) COLUMN(struct mount_row, member, __VA_ARGS__)

static const struct column mount_columns[] = {
    MOUNT(row_path, STRING, 0, NULL, "path"),
    MOUNT(row_shown, STRING, -11, "PATH", NULL),
    MOUNT(row_fs, STRING, -5, "KIND", "kind"),
    MOUNT(row_root, NUMBER, 8, "ROOT", "root"),
    MOUNT(row_stat.fs_block_size, OPTIONAL, 0, NULL, "block"),
    MOUNT(row_stat.fs_blocks, OPTIONAL, 7, "BLOCKS", "blocks"),
    MOUNT(row_stat.fs_blocks_free, OPTIONAL, 7, "FREE", "blocks_free"),
    MOUNT(row_stat.fs_files, OPTIONAL, 5, "FILES", "files"),
    MOUNT(row_stat.fs_files_free, OPTIONAL, 5, "FREE", "files_free"),
    MOUNT(row_inodes, NUMBER, 6, "INODES", "inodes"),
    MOUNT(row_name, CHARS, -10, "SERVER", NULL),
    MOUNT(row_server.stat_server, OPTIONAL, 0, NULL, "server"),
    MOUNT(row_server.stat_port, OPTIONAL, 0, NULL, "port"),
    MOUNT(row_server.stat_servers, OPTIONAL, 0, NULL, "servers"),
    MOUNT(row_server.stat_requests, OPTIONAL, 0, NULL, "requests"),
    MOUNT(row_state, STRING, -6, "STATE", "state"),
    {0},
};

/* Fills in what the file system's server says, unless it does not reply. */
static void ask_server(struct fs *fs, struct mount_row *r,
                       struct wait_budget *budget)
{
    char name[ESCAPED_SIZE(TASK_NAME_MAX + 1)];
    bool userfs = userfs_snapshot(fs, &r->row_server);
    bool replies = true;

    if (!userfs || r->row_server.stat_lives) {
        wait_budget_begin(budget);
        replies = fs_stat(fs, &r->row_stat) == 0;
        wait_budget_end(budget);
    }
    userfs = userfs_snapshot(fs, &r->row_server);
    if (userfs) {
        escape(name, r->row_server.stat_name);
        snprintf(r->row_name, sizeof(r->row_name), "%s(%d)", name,
                 (int)r->row_server.stat_server);
    }
    r->row_state = userfs && !r->row_server.stat_lives ? "dead"
                   : replies                           ? "ok"
                                                       : "silent";
    if (strcmp(r->row_state, "ok") != 0)
        memset(&r->row_stat, 0xff, sizeof(r->row_stat));
}

static void show_mount(const struct table *t, struct fs *fs, const char *path,
                       struct wait_budget *budget)
{
    static char shown[ESCAPED_SIZE(PATH_MAX)];
    struct mount_row r;

    memset(&r, 0xff, sizeof(r));
    r.row_path = path;
    escape(shown, path);
    r.row_shown = shown;
    r.row_fs = fs->fs_name;
    r.row_root = fs->fs_root;
    r.row_inodes = fs->fs_inodes;
    strlcpy(r.row_name, "-", sizeof(r.row_name));
    ask_server(fs, &r, budget);
    table_row(t, &r);
}

static int cmd_mounts(char **argv UNUSED)
{
    static char path[PATH_MAX];
    struct wait_budget budget = WAIT_BUDGET_INIT; /* all servers together */
    struct table t = shell_table(mount_columns);
    struct inode *root;
    uint32_t last = 0;
    struct fs *fs;

    while (!shell_interrupted() && (fs = fs_next(last, path, &root)) != NULL) {
        last = fs->fs_id;
        show_mount(&t, fs, path, &budget);
        inode_put(root);
    }
    return 0;
}

SHELL_COMMAND(mounts, cmd_mounts, "[-j]", SHELL_REPORT);

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

SHELL_COMMAND(umount, cmd_umount, "-f PATH");

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

static int cmd_pipes(char **argv UNUSED)
{
    struct table t = shell_table(pipe_columns);
    struct pipe_stat st = {.stat_pipe = NULL};

    while (!shell_interrupted() && pipe_stats(st.stat_pipe, &st, 1) == 1)
        table_row(&t, &st);
    if (st.stat_pipe == NULL && !t.table_json && !shell_interrupted())
        kprintf("(no pipe is open)\n");
    return 0;
}

SHELL_COMMAND(pipes, cmd_pipes, "[-j]", SHELL_REPORT);
