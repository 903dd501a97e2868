/*
 * The state of the machine: callers and the memory map; and a panic on request,
 * to show the report.
 */
#include "kernel/fs/proc.h"
#include "kernel/lib/printf.h"
#include "kernel/x86/panic.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/shell/shell.h"
#include "mm/page.h"

/* ---- bt ----------------------------------------------------------------- */

static int cmd_bt(char **argv)
{
    struct task_stat st;

    if (argv[1]) {
        if (!taskcmd_stat(argv[1], &st))
            return 1;
        if (taskcmd_print_stack(st.stat_pid))
            return 0;
        if (st.stat_pid != task_self()->task_pid)
            return shell_error("task %d runs on another processor or has ended",
                               (int)st.stat_pid);
    }
    if (panic_happened())
        panic_backtrace();
    else
        print_backtrace_here();
    return 0;
}

SHELL_COMMAND(bt, {"[TASK]", cmd_bt, SHELL_ACTION});

/* ---- meminfo ------------------------------------------------------------ */

/* A region of the boot loader's map. */
struct region_row {
    struct mem_region row_region;
    uint64_t row_kib;
};

#define REGION(member, ...) COLUMN(struct region_row, member, __VA_ARGS__)

static const struct column region_columns[] = {
    REGION(row_region.region_start, ADDRESS, 11, "START", "start"),
    REGION(row_region.region_end, ADDRESS, 11, "END", "end"),
    REGION(row_kib, NUMBER, 11, "KIB", NULL),
    REGION(row_region.region_usable, FLAG, -3, "RAM", "usable"),
    {0},
};

static int cmd_meminfo(char **argv UNUSED)
{
    struct table t = shell_table(region_columns);
    const struct mem_region *r = page_regions;

    for (; r < page_regions + page_region_count; r++)
        table_row(&t, &(struct region_row){
                          *r, (r->region_end - r->region_start) / KIB(1)});
    if (!t.table_json)
        kprintf("\n");
    return shell_print(&proc_meminfo);
}

SHELL_COMMAND(meminfo, {"[-j]", cmd_meminfo, SHELL_REPORT});

/* ---- panic -------------------------------------------------------------- */

static int cmd_panic(char **argv)
{
    char text[SHELL_LINE_MAX + 1];
    size_t n = 0;

    while (*++argv && n < sizeof(text))
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", *argv,
                              argv[1] ? " " : "");
    panic("%s", n > 0 ? text : "requested at the shell");
}

SHELL_COMMAND(panic, {"[TEXT ...]", cmd_panic, SHELL_ACTION});
