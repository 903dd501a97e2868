/*
 * The state of the machine: callers, bytes, symbols, the memory map; and a
 * panic on request, to show the report.
 */
#include "drivers/console.h"
#include "kernel/fs/proc.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/memmap.h"
#include "kernel/x86/panic.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/words.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/paging.h"
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
            return shell_error("task %d runs again; its stack has changed",
                               (int)st.stat_pid);
    }
    if (panic_happened())
        panic_backtrace();
    else
        print_backtrace_here();
    return 0;
}

SHELL_COMMAND(bt, cmd_bt, "[TASK]");

/* ---- x ------------------------------------------------------------------ */

#define ROW_BYTES    16u
#define DUMP_DEFAULT 64u
#define DUMP_MAX     65536u

/* How many of the `n` bytes from `addr` on can be read. */
static size_t readable_bytes(vaddr_t addr, size_t n)
{
    size_t good = 0;

    while (good < n && paging_readable(addr + good))
        good = MIN(n, good + PAGE_SIZE - ((addr + good) & PAGE_MASK));
    return good;
}

static void dump_row(vaddr_t addr, size_t n)
{
    const uint8_t *bytes = (const uint8_t *)addr;

    kprintf("%08lx ", (unsigned long)addr);
    for (size_t i = 0; i < ROW_BYTES; i++) {
        if (i == ROW_BYTES / 2)
            kprintf(" ");
        if (i < n)
            kprintf(" %02x", bytes[i]);
        else
            kprintf("   ");
    }
    kprintf("  |");
    for (size_t i = 0; i < n; i++)
        kprintf("%c", bytes[i] >= ' ' && bytes[i] < 0x7f ? bytes[i] : '.');
    kprintf("|\n");
}

static int dump(vaddr_t addr, size_t n)
{
    size_t good = readable_bytes(addr, n);

    for (size_t i = 0; i < good && !shell_interrupted(); i += ROW_BYTES)
        dump_row(addr + i, MIN(good - i, (size_t)ROW_BYTES));
    if (good < n)
        return shell_error("nothing is mapped at 0x%08lx",
                           (unsigned long)(addr + good));
    return 0;
}

static int cmd_x(char **argv)
{
    uint32_t n = DUMP_DEFAULT;
    uintptr_t addr;

    if (!heap_address(argv[1], &addr))
        return 1;
    if (argv[2] && (!words_size(argv[2], &n) || n == 0 || n > DUMP_MAX))
        return shell_error("'%.32s' is no number of bytes; 1 to %u are",
                           argv[2], DUMP_MAX);
    if (n - 1 > UINTPTR_MAX - addr)
        return shell_error("0x%08lx and %u bytes go past the last address",
                           (unsigned long)addr, n);
    return dump(addr, n);
}

SHELL_COMMAND(x, cmd_x, "ADDR|SYMBOL [BYTES]", SHELL_REPORT);

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
    const struct mem_region *r = memmap_regions;

    for (; r < memmap_regions + memmap_region_count; r++)
        table_row(&t, &(struct region_row){
                          *r, (r->region_end - r->region_start) / KIB(1)});
    if (!t.table_json)
        kprintf("\n");
    t = shell_table(proc_meminfo.proc_columns);
    proc_meminfo.proc_rows(&t);
    return 0;
}

SHELL_COMMAND(meminfo, cmd_meminfo, "[-j]", SHELL_REPORT);

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

SHELL_COMMAND(panic, cmd_panic, "[TEXT ...]");
