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

static void print_inode(const struct inode_stat *st)
{
    static const char *const types[] = {
        [FILE_REGULAR] = "file",
        [FILE_DIRECTORY] = "dir",
        [FILE_DEVICE] = "device",
    };

    kprintf("%-8s %8u %-6s %5u %10u %5u%s\n", st->stat_fs, st->stat_number,
            st->stat_type < ARRAY_SIZE(types) && types[st->stat_type] != NULL
                ? types[st->stat_type]
                : "new",
            st->stat_nlink, st->stat_size, st->stat_refs,
            st->stat_refs == 0 ? "  unused" : "");
}

static void print_inodes(bool all)
{
    struct inode_stat st[BATCH];
    const struct inode_stat *after = NULL;
    struct inode_stat last;
    size_t n;

    while (!shell_interrupted() && (n = inode_stats(after, st, BATCH)) > 0) {
        for (size_t i = 0; i < n; i++)
            if (all || st[i].stat_refs > 0)
                print_inode(&st[i]);
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

static int cmd_inodes(char **argv)
{
    (void)argv;

    if (shell_option('r') && !shell_may_change())
        return 1;
    if (shell_option('r')) {
        size_t n = inode_reclaim(SIZE_MAX);

        kprintf("%zu inode%s reclaimed\n", n, plural(n));
        return 0;
    }
    pager_to_end();
    kprintf("%-8s %8s %-6s %5s %10s %5s\n", "FS", "NUMBER", "TYPE", "LINKS",
            "SIZE", "REFS");
    print_inodes(shell_option('a'));
    print_totals();
    return 0;
}

SHELL_COMMAND(inodes, cmd_inodes, SHELL_REPORT);

/* ---- what is mounted ---------------------------------------------------- */

/* A row of `mounts`. */
struct mount_row {
    const struct fs *row_fs;
    const char *row_path;
    const char *row_state; /* "ok", "dead", "silent" */
    struct fs_stat row_stat;
    struct userfs_stat row_server;
    bool row_userfs;
};

/* The figures of a server that does not reply are left out. */
static bool has_figures(const struct mount_row *r)
{
    return strcmp(r->row_state, "ok") == 0;
}

static void look_at_mount(struct fs *fs, struct mount_row *r,
                          struct wait_budget *budget)
{
    bool replies = true;

    r->row_fs = fs;
    r->row_userfs = userfs_snapshot(fs, &r->row_server);
    if (!r->row_userfs || r->row_server.stat_lives) {
        wait_budget_begin(budget);
        replies = fs_stat(fs, &r->row_stat) == 0;
        wait_budget_end(budget);
    }
    r->row_userfs = userfs_snapshot(fs, &r->row_server);
    r->row_state = r->row_userfs && !r->row_server.stat_lives ? "dead"
                   : replies                                  ? "ok"
                                                              : "silent";
}

static void print_number(const struct mount_row *r, int width, uint32_t n)
{
    if (has_figures(r))
        kprintf(" %*u", width, (unsigned)n);
    else
        kprintf(" %*s", width, "-");
}

static void print_mount(const struct mount_row *r)
{
    static char path[ESCAPED_SIZE(PATH_MAX)];
    char name[ESCAPED_SIZE(TASK_NAME_MAX + 1)];
    char server[sizeof(name) + 16] = "-";

    escape(path, r->row_path);
    escape(name, r->row_server.stat_name);
    if (r->row_userfs)
        snprintf(server, sizeof(server), "%s(%d)", name,
                 (int)r->row_server.stat_server);
    kprintf("%-11s %-5s %8u", path, r->row_fs->fs_name,
            (unsigned)r->row_fs->fs_root);
    print_number(r, 7, r->row_stat.fs_blocks);
    print_number(r, 7, r->row_stat.fs_blocks_free);
    print_number(r, 5, r->row_stat.fs_files);
    print_number(r, 5, r->row_stat.fs_files_free);
    kprintf(" %6u %-10s %s\n", (unsigned)r->row_fs->fs_inodes, server,
            r->row_state);
}

static void print_mount_json(const struct mount_row *r)
{
    kprintf("{\"path\":");
    shell_json_string(r->row_path);
    kprintf(",\"kind\":");
    shell_json_string(r->row_fs->fs_name);
    kprintf(",\"root\":%u,\"inodes\":%u,\"state\":\"%s\"",
            (unsigned)r->row_fs->fs_root, (unsigned)r->row_fs->fs_inodes,
            r->row_state);
    if (has_figures(r))
        kprintf(",\"block\":%u,\"blocks\":%u,\"blocks_free\":%u,"
                "\"files\":%u,\"files_free\":%u",
                (unsigned)r->row_stat.fs_block_size,
                (unsigned)r->row_stat.fs_blocks,
                (unsigned)r->row_stat.fs_blocks_free,
                (unsigned)r->row_stat.fs_files,
                (unsigned)r->row_stat.fs_files_free);
    if (r->row_userfs)
        kprintf(",\"server\":%d,\"port\":%u,\"servers\":%u,\"requests\":%u",
                (int)r->row_server.stat_server,
                (unsigned)r->row_server.stat_port,
                (unsigned)r->row_server.stat_servers,
                (unsigned)r->row_server.stat_requests);
    kprintf("}\n");
}

static void show_mount(struct fs *fs, const char *path, bool json,
                       struct wait_budget *budget)
{
    struct mount_row r = {.row_path = path};

    look_at_mount(fs, &r, budget);
    if (json)
        print_mount_json(&r);
    else
        print_mount(&r);
}

static int cmd_mounts(char **argv)
{
    static char path[PATH_MAX];
    struct wait_budget budget = WAIT_BUDGET_INIT; /* all servers together */
    bool json = shell_option('j');
    struct inode *root;
    uint32_t last = 0;
    struct fs *fs;

    (void)argv;
    if (!json)
        kprintf("%-11s %-5s %8s %7s %7s %5s %5s %6s %-10s %s\n", "PATH", "KIND",
                "ROOT", "BLOCKS", "FREE", "FILES", "FREE", "INODES", "SERVER",
                "STATE");
    while (!shell_interrupted() && (fs = fs_next(last, path, &root)) != NULL) {
        last = fs->fs_id;
        show_mount(fs, path, json, &budget);
        inode_put(root);
    }
    return 0;
}

SHELL_COMMAND(mounts, cmd_mounts, SHELL_REPORT);

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

SHELL_COMMAND(umount, cmd_umount);

/* ---- pipes -------------------------------------------------------------- */

static int cmd_pipes(char **argv)
{
    struct pipe_stat st;
    const void *last = NULL;
    size_t rows = 0;

    (void)argv;
    kprintf("%-10s %7s %7s %6s %10s\n", "PIPE", "READERS", "WRITERS", "BYTES",
            "TOTAL");
    for (; pipe_stats(last, &st, 1) == 1 && !shell_interrupted(); rows++) {
        kprintf("%p %7u %7u %6u %10llu\n", st.stat_pipe, st.stat_readers,
                st.stat_writers, st.stat_bytes, st.stat_total);
        last = st.stat_pipe;
    }
    if (rows == 0 && !shell_interrupted())
        kprintf("(no pipe is open)\n");
    return 0;
}

SHELL_COMMAND(pipes, cmd_pipes, SHELL_REPORT);
