/*
 * Files from the kernel's side: inodes in memory, and pipes.
 */
#include "drivers/console.h"
#include "kernel/fs/file.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"

#define BATCH 16 /* rows per look */

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

static void print_rows(bool all)
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
    char rate[MEMCMD_CELL];

    inode_totals(&t);
    memcmd_percent(
        1000 - memcmd_waste(t.total_hits, t.total_hits + t.total_misses), rate);
    kprintf("%zu inodes in memory, %zu of them unused; %llu given up for "
            "their memory\n",
            t.total_cached, t.total_unused,
            (unsigned long long)t.total_reclaimed);
    kprintf("looked for %llu times, found %llu times: %s %%\n",
            (unsigned long long)(t.total_hits + t.total_misses),
            (unsigned long long)t.total_hits, rate);
}

static int cmd_inodes(int argc, char **argv)
{
    uint32_t options;

    if (!shell_options(&argc, argv, "a", &options))
        return 1;
    if (argc != 1)
        return shell_error("takes no '%.32s'; `inodes -a` lists all", argv[1]);
    kprintf("%-8s %8s %-6s %5s %10s %5s\n", "FS", "NUMBER", "TYPE", "LINKS",
            "SIZE", "REFS");
    print_rows(options != 0);
    print_totals();
    return 0;
}

SHELL_COMMAND(inodes, "inodes [-a]", "the inode cache",
              "The files that somebody uses, by file system and number: REFS\n"
              "counts open files, current directories and mounts. The last\n"
              "lines tell how many files are remembered though nobody uses\n"
              "them, which are given up when memory runs short, and how often\n"
              "an inode that was wanted was there.\n"
              "  -a  unused ones too\n"
              "Example: run ls /bin; inodes -a",
              cmd_inodes, NULL);

/* ---- pipes -------------------------------------------------------------- */

static int cmd_pipes(int argc, char **argv)
{
    struct pipe_stat st;
    const void *last = NULL;
    size_t rows = 0;

    if (argc != 1)
        return shell_error("takes no '%.32s'; `pipes` is all", argv[1]);
    kprintf("%-10s %7s %7s %6s %10s\n", "PIPE", "READERS", "WRITERS", "BYTES",
            "TOTAL");
    for (; pipe_stats(last, &st, 1) == 1 && !shell_interrupted(); rows++) {
        kprintf("%p %7u %7u %6u %10llu\n", st.stat_pipe, st.stat_readers,
                st.stat_writers, st.stat_bytes,
                (unsigned long long)st.stat_total);
        last = st.stat_pipe;
    }
    if (rows == 0)
        kprintf("(no pipe is open)\n");
    return 0;
}

SHELL_COMMAND(pipes, "pipes", "the pipes that are open",
              "READERS and WRITERS are 0 where that end is closed. BYTES wait\n"
              "in the pipe, TOTAL went in since it was made.\n"
              "Example: run -b sh -c \"sleep 9 | cat\"; pipes",
              cmd_pipes, NULL);
