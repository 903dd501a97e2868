/*
 * /proc: kernel statistics as text for programs.
 *
 * A directory of read-only files. A file's text is written when the file is
 * opened and belongs to the open file, so that a program that reads it in
 * pieces sees one snapshot; it is freed on close. A table begins with a line of
 * column names, and no value contains a blank.
 *
 *     open ──> fs_open ──> caches_rows … ──> struct text
 *     read ──> text_read <───────────────────────┘
 */
#include "kernel/fs/proc.h"
#include "drivers/pit.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/fs/userfs.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/object/grant.h"
#include "kernel/object/session.h"
#include "kernel/vm/frame.h"
#include "kernel/vm/space.h"
#include "kernel/vm/user.h"
#include "mm/buddy.h"
#include "mm/segkmem.h"
#include "mm/inspect/buddy_stat.h"
#include "mm/inspect/kmem_stat.h"

#define ROOT         1u   /* inode number; the files follow */
#define TEXT_FIRST   8192 /* bytes; growing a text changes the figures in it */
#define KIB_PER_PAGE (PAGE_SIZE / KIB(1))

/* ---- texts -------------------------------------------------------------- */

struct text {
    size_t text_size; /* bytes in all, as allocated */
    size_t text_len;
    char text[];
};

/* Appends to a text, which grows. Without memory *t becomes NULL and stays
 * NULL: opening the file fails. */
static void PRINTF_LIKE(2, 3) proc_print(void *to, const char *fmt, ...)
{
    struct text **text = to;

    while (*text != NULL) {
        struct text *t = *text;
        size_t used = sizeof(*t) + t->text_len;
        size_t size, n;
        va_list ap;

        va_start(ap, fmt);
        n = (size_t)vsnprintf(t->text + t->text_len, t->text_size - used, fmt,
                              ap);
        va_end(ap);
        if (n < t->text_size - used) {
            t->text_len += n;
            return;
        }
        size = MAX(2 * t->text_size, t->text_size + n + 1);
        *text = kmem_alloc(size, KM_NOSLEEP);
        if (*text != NULL) {
            memcpy(*text, t, used);
            (*text)->text_size = size;
        }
        kmem_free(t, t->text_size);
    }
}

/* ---- the files ---------------------------------------------------------- */

#define CACHE(member, width, head)                                             \
    COLUMN(struct kmem_cache_stat, stat_##member, NUMBER, width, head, NULL)

static const struct column cache_columns[] = {
    COLUMN(struct kmem_cache_stat, stat_name, CHARS, -24, "CACHE", NULL),
    CACHE(size, 6, "SIZE"),
    CACHE(chunk, 6, "CHUNK"),
    CACHE(inuse, 7, "INUSE"),
    CACHE(total, 7, "TOTAL"),
    CACHE(slabs, 5, "SLABS"),
    CACHE(mem, 9, "MEM/B"),
    CACHE(allocs, 9, "ALLOC"),
    CACHE(frees, 9, "FREE"),
    CACHE(fails, 5, "FAIL"),
    {0},
};

/* By number: the kernel shell may destroy caches meanwhile. */
static void caches_rows(const struct table *t)
{
    struct kmem_cache_stat st;

    for (size_t n = 0; kmem_cache_stat_number(n, &st); n++)
        table_row(t, &st);
}

static const struct table_source caches = {cache_columns, caches_rows, NULL};

/* Of an order of blocks. */
struct order_row {
    unsigned row_order;
    size_t row_block_kib, row_free, row_free_kib;
    char row_unusable[8]; /* per cent */
    uint64_t row_allocs, row_frees;
};

#define ORDER(member, ...) COLUMN(struct order_row, member, __VA_ARGS__)

static const struct column order_columns[] = {
    ORDER(row_order, NUMBER, 5, "ORDER", "order"),
    ORDER(row_block_kib, NUMBER, 9, "BLOCK/K", NULL),
    ORDER(row_free, NUMBER, 8, "FREE", "free"),
    ORDER(row_free_kib, NUMBER, 10, "FREE/K", NULL),
    ORDER(row_unusable, CHARS, 9, "UNUSABLE%", NULL),
    ORDER(row_allocs, NUMBER, 12, "ALLOCATED", "allocs"),
    ORDER(row_frees, NUMBER, 12, "RETURNED", "frees"),
    {0},
};

static void orders_rows(const struct table *t)
{
    struct buddy_stat st;

    buddy_stat(&st);
    for (unsigned order = 0; order < BUDDY_ORDERS; order++) {
        unsigned unusable = buddy_unusable(&st, order);
        struct order_row row = {
            .row_order = order,
            .row_block_kib = KIB_PER_PAGE << order,
            .row_free = st.stat_free[order],
            .row_free_kib = (st.stat_free[order] << order) * KIB_PER_PAGE,
            .row_allocs = st.stat_allocs[order],
            .row_frees = st.stat_frees[order],
        };

        snprintf(row.row_unusable, sizeof(row.row_unusable), "%u.%u",
                 unusable / 10, unusable % 10);
        table_row(t, &row);
    }
}

const struct table_source proc_buddyinfo = {order_columns, orders_rows, NULL};

/* Of a use of page frames. */
struct use_row {
    const char *row_shown; /* indented below the use that it is a part of */
    const char *row_use;
    size_t row_pages, row_kib;
};

#define USE(member, ...) COLUMN(struct use_row, member, __VA_ARGS__)

static const struct column use_columns[] = {
    USE(row_shown, STRING, -14, "USE", NULL),
    USE(row_use, STRING, 0, NULL, "use"),
    USE(row_pages, NUMBER, 9, "PAGES", "pages"),
    USE(row_kib, NUMBER, 10, "KIB", NULL),
    {0},
};

static void uses_row(const struct table *t, const char *shown, size_t pages)
{
    struct use_row row = {shown, shown, pages, pages * KIB_PER_PAGE};

    while (*row.row_use == ' ')
        row.row_use++;
    table_row(t, &row);
}

static void uses_rows(const struct table *t)
{
    struct commit_stat commit;
    struct buddy_pages buddy;
    struct segkmem_stat held;

    buddy_pages(&buddy);
    segkmem_stat(&held);
    commit_stat(&commit);
    uses_row(t, "frames", page_count);
    uses_row(t, "  reserved", page_count - page_usable);
    uses_row(t, "  usable", page_usable);
    uses_row(t, "    kernel", page_usable - buddy.pages_total);
    uses_row(t, "    buddy", buddy.pages_total);
    uses_row(t, "      free", buddy.pages_free);
    uses_row(t, "      slab", held.stat_use[PAGE_SLAB]);
    uses_row(t, "      hash", held.stat_use[PAGE_HASH]);
    uses_row(t, "      oversize", held.stat_use[PAGE_OVERSIZE]);
    uses_row(t, "      user", frame_count());
    uses_row(t, "unused", (size_t)(page_beyond / PAGE_SIZE));
    uses_row(t, "committed", commit_committed(&commit));
    uses_row(t, "limit", commit_limit(&commit));
}

const struct table_source proc_meminfo = {use_columns, uses_rows, NULL};

static const char *const task_states[] = {
    [TASK_READY] = "ready",
    [TASK_RUNNING] = "running",
    [TASK_BLOCKED] = "blocked",
    [TASK_ZOMBIE] = "ended",
};

/* Of a task. */
struct task_row {
    struct task_stat row_stat;
    uint32_t row_session; /* all ones: a kernel task */
    const char *row_state;
    uint64_t row_ms;
};

#define TASK(member, ...) COLUMN(struct task_row, member, __VA_ARGS__)

static const struct column task_columns[] = {
    TASK(row_stat.stat_pid, INTEGER, 5, "PID", "pid"),
    TASK(row_stat.stat_parent, INTEGER, 5, "PPID", "ppid"),
    TASK(row_stat.stat_group, INTEGER, 5, "GRP", "group"),
    TASK(row_session, OPTIONAL, 4, "SES", "session"),
    TASK(row_state, STRING, -7, "STATE", "state"),
    TASK(row_stat.stat_priority, NUMBER, 3, "PRI", "priority"),
    TASK(row_stat.stat_user, FLAG, 0, NULL, "user"),
#if CPU_SEVERAL
    TASK(row_stat.stat_cpu, NUMBER, 3, "CPU", "cpu"),
#endif
    TASK(row_ms, NUMBER, 7, "CPU(ms)", "cpu_ms"),
    TASK(row_stat.stat_switches, NUMBER, 8, "SWITCHES", "switches"),
    TASK(row_stat.stat_waits_for, STRING, -13, "WAITS-FOR", "waits_for"),
    TASK(row_stat.stat_name, CHARS, -15, "NAME", "name"),
    {0},
};

static void tasks_rows(const struct table *t)
{
    struct task_row row = {.row_stat.stat_pid = -1};
    struct task_stat *st = &row.row_stat;

    while (task_stats(st->stat_pid, st, 1) == 1) {
        row.row_session =
            st->stat_program ? session_of(st->stat_pid) : UINT32_MAX;
        row.row_state = task_states[st->stat_state];
        row.row_ms = st->stat_ticks * TICK_MS;
        table_row(t, &row);
    }
}

const struct table_source proc_tasks = {task_columns, tasks_rows, NULL};

/* Of a session, or of the most that each may have. */
struct session_row {
    char row_name[12];
    uint32_t row_number; /* 0: the most */
    uint32_t row_used[SESSION_RESOURCES];
};

#define SESSION_COLUMN(resource, width, head, key)                             \
    COLUMN(struct session_row, row_used[SESSION_##resource], NUMBER, width,    \
           head, key)

static const struct column session_columns[] = {
    COLUMN(struct session_row, row_name, CHARS, 5, "SES", NULL),
    COLUMN(struct session_row, row_number, NUMBER, 0, NULL, "session"),
    SESSION_COLUMN(TASKS, 8, "TASKS", "tasks"),
    SESSION_COLUMN(PAGES, 8, "PAGES", "pages"),
    SESSION_COLUMN(REGIONS, 8, "REGIONS", "regions"),
    SESSION_COLUMN(FILES, 8, "FILES", "files"),
    SESSION_COLUMN(PORTS, 8, "PORTS", "ports"),
    SESSION_COLUMN(MOUNTS, 6, "MOUNTS", "mounts"),
    {0},
};

static void sessions_row(const struct table *t, uint32_t number,
                         const uint32_t *used)
{
    struct session_row row = {.row_name = "most", .row_number = number};

    if (number != 0)
        snprintf(row.row_name, sizeof(row.row_name), "%u", (unsigned)number);
    memcpy(row.row_used, used, sizeof(row.row_used));
    table_row(t, &row);
}

static void sessions_rows(const struct table *t)
{
    struct session_stat st = {.stat_number = 0};

    sessions_row(t, 0, session_limit);
    while (session_stat(st.stat_number, &st))
        sessions_row(t, st.stat_number, st.stat_used);
}

const struct table_source proc_sessions = {session_columns, sessions_rows,
                                           NULL};

/* Of a server: one of its ranges of ports and of memory and one of its
 * interrupt lines; as many rows as it needs. */
struct server_row {
    struct grant_stat row_stat;
    const char *row_state, *row_ports, *row_memory, *row_program;
    uint32_t row_irq; /* all ones: none */
    char row_dma[16];
    size_t row_dma_used;
};

#define SERVER(member, ...) COLUMN(struct server_row, member, __VA_ARGS__)

static const struct column server_columns[] = {
    SERVER(row_stat.stat_server.server_name, CHARS, -10, "NAME", "server"),
    SERVER(row_stat.stat_pid, NONZERO, 5, "PID", "pid"),
    SERVER(row_state, STRING, -7, "STATE", "state"),
    SERVER(row_ports, STRING, 9, "PORTS", "ports"),
    SERVER(row_irq, OPTIONAL, 3, "IRQ", "irq"),
    SERVER(row_memory, STRING, 17, "MEMORY", "memory"),
    SERVER(row_dma, CHARS, 6, "DMA", NULL),
    SERVER(row_stat.stat_server.server_dma, NUMBER, 0, NULL, "dma"),
    SERVER(row_dma_used, NUMBER, 0, NULL, "dma_used"),
    SERVER(row_program, STRING, -1, "PROGRAM", "program"),
    {0},
};

#define RANGE_TEXT 24

/* Range number `i` of `n`, or NULL. */
static const char *range_text(const struct manifest_range *ranges, unsigned n,
                              unsigned i, char text[RANGE_TEXT])
{
    int used;

    if (i >= n)
        return NULL;
    ranges += i;
    used = snprintf(text, RANGE_TEXT, "%x", (unsigned)ranges->range_first);
    if (ranges->range_last != ranges->range_first)
        snprintf(text + used, RANGE_TEXT - (size_t)used, "-%x",
                 (unsigned)ranges->range_last);
    return text;
}

static void servers_row(const struct table *t, struct server_row *row)
{
    struct manifest_server *s = &row->row_stat.stat_server;
    char ports[RANGE_TEXT], memory[RANGE_TEXT];
    uint32_t irqs = s->server_irqs;

    s->server_command[manifest_path_length(s)] = '\0';
    row->row_program = row->row_stat.stat_program ? s->server_command : NULL;
    row->row_state = grant_state(&row->row_stat);
    row->row_dma_used = space_dma_pages(row->row_stat.stat_pid);
    snprintf(row->row_dma, sizeof(row->row_dma), "%zu/%u", row->row_dma_used,
             s->server_dma);
    for (unsigned i = 0;
         i == 0 || i < s->server_ports || i < s->server_memories || irqs != 0;
         i++, irqs &= irqs - 1) {
        row->row_ports = range_text(s->server_port, s->server_ports, i, ports);
        row->row_memory =
            range_text(s->server_memory, s->server_memories, i, memory);
        row->row_irq = irqs == 0 ? UINT32_MAX : (uint32_t)__builtin_ctz(irqs);
        table_row(t, row);
    }
}

static void servers_rows(const struct table *t)
{
    struct server_row row;

    for (size_t n = 0; grant_stat(n, &row.row_stat); n++)
        servers_row(t, &row);
}

const struct table_source proc_servers = {server_columns, servers_rows,
                                          "(/etc/servers grants nothing)"};

static void write_uptime(struct text **t)
{
    uint64_t ms = timer_ms();

    proc_print(t, "%llu.%02u\n", (unsigned long long)(ms / 1000),
               (unsigned)(ms % 1000) / 10);
}

/* Of a mounted file system. */
struct mount_row {
    const char *row_path, *row_shown; /* with its blanks escaped */
    const char *row_fs;
    uint32_t row_root, row_inodes;
    struct userfs_stat row_server; /* of the kernel: all ones */
    char row_name[ESCAPED_SIZE(TASK_NAME_MAX + 1) + 16];
    const char *row_state;
};

#define MOUNT(member, ...) COLUMN(struct mount_row, member, __VA_ARGS__)

const struct column proc_mount_columns[] = {
    MOUNT(row_path, STRING, 0, NULL, "path"),
    MOUNT(row_shown, STRING, -11, "PATH", NULL),
    MOUNT(row_fs, STRING, -8, "KIND", "kind"),
    MOUNT(row_root, NUMBER, 8, "ROOT", "root"),
    MOUNT(row_inodes, NUMBER, 6, "INODES", "inodes"),
    MOUNT(row_name, CHARS, -16, "SERVER", NULL),
    MOUNT(row_server.stat_server, OPTIONAL, 0, NULL, "server"),
    MOUNT(row_server.stat_port, OPTIONAL, 0, NULL, "port"),
    MOUNT(row_server.stat_servers, OPTIONAL, 0, NULL, "servers"),
    MOUNT(row_server.stat_requests, OPTIONAL, 0, NULL, "requests"),
    MOUNT(row_state, STRING, -6, "STATE", "state"),
    {0},
};

static const struct column mounts_columns[] = {
    MOUNT(row_fs, STRING, -8, "FS", NULL),
    MOUNT(row_shown, STRING, -2, "ON", NULL),
    {0},
};

static void name_server(struct mount_row *r)
{
    char name[ESCAPED_SIZE(TASK_NAME_MAX + 1)];

    escape(name, r->row_server.stat_name);
    snprintf(r->row_name, sizeof(r->row_name), "%s(%d)", name,
             (int)r->row_server.stat_server);
    r->row_state = r->row_server.stat_lives ? "ok" : "dead";
}

void proc_mounts(const struct table *t, char path[PROC_PATHS])
{
    char *shown = path + PATH_MAX;
    struct inode *root;
    uint32_t last = 0;
    struct fs *fs;

    while ((fs = fs_next(last, path, &root)) != NULL) {
        struct mount_row row = {
            .row_path = path,
            .row_shown = shown,
            .row_fs = fs->fs_name,
            .row_root = fs->fs_root,
            .row_inodes = fs->fs_inodes,
            .row_name = "-",
            .row_state = "ok",
        };

        escape(shown, path);
        memset(&row.row_server, 0xff, sizeof(row.row_server));
        if (userfs_snapshot(fs, &row.row_server))
            name_server(&row);
        table_row(t, &row);
        last = fs->fs_id;
        inode_put(root);
    }
}

static void write_mounts(struct text **t)
{
    struct table table = {mounts_columns, proc_print, t, false, NULL};
    char *path = kmem_alloc(PROC_PATHS, KM_NOSLEEP);

    if (path == NULL) { /* opening the file fails */
        kmem_free(*t, (*t)->text_size);
        *t = NULL;
        return;
    }
    table_begin(&table);
    proc_mounts(&table, path);
    kmem_free(path, PROC_PATHS);
}

static const struct proc_file {
    const char *proc_name;
    void (*proc_write)(struct text **t);
    const struct table_source *proc_table; /* NULL: proc_write */
} files[] = {
    {"kmastat", NULL, &caches},       {"buddyinfo", NULL, &proc_buddyinfo},
    {"meminfo", NULL, &proc_meminfo}, {"tasks", NULL, &proc_tasks},
    {"mounts", write_mounts, NULL},   {"uptime", write_uptime, NULL},
    {"servers", NULL, &proc_servers}, {"sessions", NULL, &proc_sessions},
};

/* ---- open files --------------------------------------------------------- */

static ssize_t text_read(struct file *f, void *buf, size_t n)
{
    const struct text *t = f->file_data;
    ssize_t done = inode_lock(f->file_inode);

    if (done < 0)
        return done;
    if (f->file_offset < t->text_len) {
        n = MIN(n, t->text_len - f->file_offset);
        done = user_copy(buf, t->text + f->file_offset, n);
        done = done == 0 ? (ssize_t)n : done;
    }
    if (done > 0)
        f->file_offset += (uint32_t)done;
    inode_unlock(f->file_inode);
    return done;
}

static void text_release(struct file *f)
{
    struct text *t = f->file_data;

    kmem_free(t, t->text_size);
    file_free(f);
}

static void text_stat(struct file *f, struct stat *out)
{
    const struct text *t = f->file_data;

    out->st_size = (uint32_t)t->text_len;
}

static int open_text(struct inode *inode, struct file *f)
{
    static const struct file_ops ops = {text_read, NULL, text_release,
                                        text_stat};
    const struct proc_file *file;
    struct text *t;

    if (inode->inode_type == FILE_DIRECTORY)
        return 0;
    t = kmem_alloc(TEXT_FIRST, KM_NOSLEEP);
    if (t == NULL)
        return -ENOMEM;
    t->text_size = TEXT_FIRST;
    t->text_len = 0;
    file = &files[inode->inode_number - ROOT - 1];
    if (file->proc_table != NULL) {
        struct table table = {file->proc_table->source_columns, proc_print, &t,
                              false, NULL};

        table_begin(&table);
        file->proc_table->source_rows(&table);
    } else {
        file->proc_write(&t);
    }
    if (t == NULL)
        return -ENOMEM;
    f->file_ops = &ops;
    f->file_data = t;
    return 0;
}

/* ---- the file system ---------------------------------------------------- */

static int read_inode(struct inode *inode)
{
    bool root = inode->inode_number == ROOT;

    inode->inode_type = root ? FILE_DIRECTORY : FILE_REGULAR;
    inode->inode_nlink = root ? 2 : 1;
    inode->inode_size = 0;
    inode->inode_data = NULL;
    return 0;
}

static int lookup(struct inode *dir UNUSED, const char *name, uint32_t *ino)
{
    for (uint32_t i = 0; i < ARRAY_SIZE(files); i++)
        if (strcmp(files[i].proc_name, name) == 0) {
            *ino = ROOT + 1 + i;
            return 0;
        }
    return -ENOENT;
}

/* The offset counts entries. */
static ssize_t getdents(struct inode *dir UNUSED, uint32_t *offset, void *buf,
                        size_t n)
{
    static const char *const dots[] = {".", ".."};
    size_t done = 0;

    while (*offset < 2 + ARRAY_SIZE(files)) {
        bool dot = *offset < 2;
        const char *name = dot ? dots[*offset] : files[*offset - 2].proc_name;
        size_t size = dirent_store(
            (char *)buf + done, n - done, dot ? ROOT : ROOT + *offset - 1,
            dot ? FILE_DIRECTORY : FILE_REGULAR, name, strlen(name));

        if (size == 0)
            return done > 0 ? (ssize_t)done : -EINVAL;
        done += size;
        ++*offset;
    }
    return (ssize_t)done;
}

static const struct fs_ops proc_ops = {
    .fs_read_inode = read_inode,
    .fs_lookup = lookup,
    .fs_getdents = getdents,
    .fs_open = open_text,
};

struct fs proc_fs = {
    .fs_ops = &proc_ops,
    .fs_name = "proc",
    .fs_root = ROOT,
    .fs_rename = FS_RENAME_INIT(proc_fs),
};
