/*
 * log: the transactions of audited caches (paper, section 6.1), or of one
 * buffer.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_debug.h"
#include "kernel/shell/shell.h"
#include "mm/debug/debug.h"

#define ROWS         20 /* unless -n says otherwise */
#define NAME_WIDTH   15
#define CALLER_WIDTH 13 /* what is left of 80 columns */
#define AGO_WIDTH    10 /* many seconds leave less room for decimals */

/* ---- rows --------------------------------------------------------------- */

/* Seconds ago, with as many decimals as have room. */
static const char *ago_cell(const struct kmem_transaction *t,
                            char text[HEAP_CELL])
{
    debugcmd_seconds(debugcmd_ago(t), text);
    text[AGO_WIDTH] = '\0';
    return text;
}

/* A row of `log`. */
struct log_row {
    struct kmem_log_entry row_entry;
    const char *row_op, *row_cache;
    char row_ago[HEAP_CELL];
    char row_caller[DEBUGCMD_CALLER];
};

static void json_log_stack(const struct table *t UNUSED, const void *row)
{
    debugcmd_json_stack(&((const struct log_row *)row)->row_entry.log_trans);
}

#define LOG(member, ...) COLUMN(struct log_row, row_##member, __VA_ARGS__)

static const struct column log_columns[] = {
    LOG(entry.log_seq, NUMBER, 6, "SEQ", "seq"),
    LOG(entry.log_prev, NUMBER, 0, NULL, "prev"),
    LOG(ago, CHARS, AGO_WIDTH, "T-AGE", NULL),
    LOG(entry.log_trans.trans_us, NUMBER, 0, NULL, "us"),
    LOG(op, STRING, -5, "OP", "op"),
    LOG(entry.log_cpu, NUMBER, 3, "CPU", "cpu"),
    LOG(entry.log_trans.trans_task, NUMBER, 4, "TASK", "task"),
    LOG(cache, STRING, -NAME_WIDTH, "CACHE", "cache"),
    LOG(entry.log_slab, WORD, -8, "SLAB", "slab"),
    LOG(entry.log_buf, WORD, -8, "BUF", "buf"),
    LOG(entry.log_size, NUMBER, 0, NULL, "size"),
    LOG(caller, CHARS, -CALLER_WIDTH, "CALLER", NULL),
    COLUMN_BY(json_log_stack, 0, NULL, "stack"),
    {0},
};

/* The function that called the allocator, in the room that a name of a cache
 * leaves. */
static void put_caller(struct log_row *row)
{
    size_t length = MAX(strlen(row->row_cache), (size_t)NAME_WIDTH);
    size_t over = MIN(length - NAME_WIDTH, (size_t)CALLER_WIDTH);
    char text[DEBUGCMD_CALLER], *plus;

    strlcpy(row->row_caller, debugcmd_caller(&row->row_entry.log_trans, text),
            CALLER_WIDTH + 1 - over);
    plus = strchr(row->row_caller, '+');
    if (plus)
        *plus = '\0';
}

/* With -S all callers are below the row. */
static void print_entry(const struct table *t, const struct kmem_log_entry *e)
{
    bool stack = shell_option('S');
    struct log_row row = {
        .row_entry = *e,
        .row_op = e->log_op == KMEM_OP_ALLOC ? "alloc" : "free",
        .row_cache = kmem_log_name(e),
    };

    ago_cell(&e->log_trans, row.row_ago);
    if (!stack)
        put_caller(&row);
    table_row(t, &row);
    if (stack && !t->table_json)
        debugcmd_print_stack(&e->log_trans, 7);
}

/* ---- log ---------------------------------------------------------------- */

struct filter {
    uint32_t filter_rows;
    uintptr_t filter_addr; /* 0: any */
    const char *filter_cache;
    uint32_t filter_task;
    bool filter_by_task;
};

/* The bytes of the entry's object; 0 if the log does not say and its cache was
 * destroyed. */
static size_t size_of(const struct kmem_log_entry *e)
{
    struct kmem_cache_stat st;
    struct kmem_cache *cp = kmem_cache_find(kmem_log_name(e));

    if (e->log_size != 0 || cp == NULL)
        return e->log_size;
    kmem_cache_stat(cp, &st);
    return st.stat_size;
}

/* Whether the transaction was on the buffer that holds the address: now, or
 * then, if no slab is there any more. */
static bool concerns(const struct kmem_log_entry *e, uintptr_t addr)
{
    uintptr_t buf = (uintptr_t)e->log_buf;
    struct kmem_buf_stat b;

    if (buf == addr)
        return true;
    if (addr - buf >= KMEM_SIZE_MAX)
        return false;
    return kmem_buf_stat((const void *)addr, &b) ? b.stat_buf == buf
                                                 : addr - buf < size_of(e);
}

static bool entry_matches(const struct filter *f,
                          const struct kmem_log_entry *e)
{
    return (!f->filter_cache ||
            strcmp(f->filter_cache, kmem_log_name(e)) == 0) &&
           (!f->filter_by_task || f->filter_task == e->log_trans.trans_task);
}

/* Why there is nothing older of a buffer than its transaction `e`. */
static void print_end(const struct kmem_log_entry *e)
{
    struct kmem_log_entry older;

    if (e->log_prev == 0)
        kprintf("nothing before that: the buffer's first transaction\n");
    else if (!kmem_log_get(e->log_prev, &older))
        kprintf("the log is overwritten from there on: %u is not kept\n",
                (unsigned)e->log_prev);
}

/* Prints the entries that match, newest first, and before the first one the
 * heads. From the first one of a buffer on, its chain leads to the others. */
static int show_log(const struct filter *f)
{
    uint32_t last = kmem_log_last(), kept = kmem_log_kept();
    uint32_t seq = last, shown = 0;
    struct kmem_log_entry e, oldest;
    struct table t = {NULL};

    while (last - seq < kept && shown < f->filter_rows &&
           !shell_interrupted()) {
        bool found = kmem_log_get(seq, &e) && /* of the buffer, or any */
                     (f->filter_addr == 0 || concerns(&e, f->filter_addr));

        if (found && entry_matches(f, &e)) {
            if (shown++ == 0)
                t = shell_table(log_columns);
            print_entry(&t, &e);
            oldest = e;
        }
        seq = found && f->filter_addr != 0 ? e.log_prev : seq - 1;
    }
    if (shell_option('j'))
        return 0;
    if (f->filter_addr != 0 && shown == 0)
        return shell_error("the log has no transaction of 0x%08lx; caches in "
                           "mode U are logged",
                           (unsigned long)f->filter_addr);
    if (f->filter_addr != 0 && !shell_interrupted())
        print_end(&oldest);
    kprintf("%u shown; %u of %u transactions kept%s\n", (unsigned)shown,
            (unsigned)kept, (unsigned)last,
            kmem_log_stopped ? "; the log stopped at the first error" : "");
    if (last == 0)
        kprintf("caches in mode U are logged: `debug +U CACHE`\n");
    return 0;
}

/* ---- the command -------------------------------------------------------- */

static bool read_filter(struct filter *f)
{
    const char *task = shell_value('t');

    f->filter_cache = shell_value('c');
    f->filter_by_task = task != NULL;
    if (task && !parse_u32(task, &f->filter_task)) {
        shell_error("'%.32s' is no task; `ps` lists them", task);
        return false;
    }
    return heap_number('n', &f->filter_rows);
}

static int cmd_log(char **argv)
{
    struct filter f = {.filter_rows = argv[1] ? UINT32_MAX : ROWS};

    if (!read_filter(&f))
        return 1;
    if ((argv[1] && !heap_address(argv[1], &f.filter_addr)) ||
        (f.filter_cache && !heap_cache_named(f.filter_cache)))
        return 1;
    return show_log(&f);
}

SHELL_COMMAND(log, {"[-S] [-j] [-n N] [-c CACHE] [-t TASK] [ADDR]", cmd_log,
                    SHELL_REPORT});

bool logcmd_newest(uintptr_t addr, struct kmem_log_entry *e)
{
    uint32_t last = kmem_log_last();

    for (uint32_t i = 0; i < kmem_log_kept(); i++)
        if (kmem_log_get(last - i, e) && concerns(e, addr))
            return true;
    return false;
}
