/*
 * The state of the machine: callers, bytes, symbols, the memory map; and a
 * panic on request, to show the report.
 */
#include "drivers/console.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/panic.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/words.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/paging.h"
#include "mm/buddy.h"
#include "mm/segkmem.h"
#include "mm/inspect/buddy_stat.h"
#include "kernel/vm/frame.h"
#include "kernel/vm/space.h"

#define KIB_PER_PAGE (PAGE_SIZE / 1024)

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

struct meminfo {
    struct buddy_stat info_buddy;
    struct segkmem_stat info_segkmem;
    struct commit_stat info_commit;
};

static void print_region(const struct mem_region *r)
{
    uint64_t bytes = r->region_end - r->region_start;
    bool large = bytes >= MIB(10);

    kprintf("0x%010llx  0x%010llx %9llu %s  %s\n", r->region_start,
            r->region_end, (large ? bytes >> 20 : bytes >> 10),
            large ? "MiB" : "KiB", r->region_usable ? "RAM" : "reserved");
}

static void print_pages(const char *what, size_t pages)
{
    kprintf("%-34s %9zu %12zu\n", what, pages, pages * KIB_PER_PAGE);
}

static void print_meminfo(const struct meminfo *m)
{
    const struct page_totals *t = &page_totals;

    kprintf("%-12s  %-12s %13s  %s\n", "START", "END", "SIZE", "KIND");
    for (size_t i = 0; i < page_region_count; i++)
        print_region(&page_regions[i]);
    kprintf("\n%-34s %9s %12s\n", "PAGES OF 4 KIB", "PAGES", "KIB");
    print_pages("page frames, holes and all", t->total_frames);
    print_pages("  reserved", t->total_reserved);
    print_pages("  the kernel and its tables", t->total_kernel);
    print_pages("  managed by buddy", m->info_buddy.stat_total_pages);
    print_pages("    free", m->info_buddy.stat_free_pages);
    print_pages("    allocated",
                m->info_buddy.stat_total_pages - m->info_buddy.stat_free_pages);
    print_pages("      for slabs", m->info_segkmem.stat_use[PAGE_SLAB]);
    print_pages("      for hash tables", m->info_segkmem.stat_use[PAGE_HASH]);
    print_pages("      for oversize requests",
                m->info_segkmem.stat_use[PAGE_OVERSIZE]);
    print_pages("      for programs", frame_count());
    print_pages("committed: promised to programs",
                commit_committed(&m->info_commit));
    print_pages("  limit", commit_limit(&m->info_commit));
    if (t->total_unused)
        kprintf("%llu MiB of RAM are above the direct map, unused\n",
                (t->total_unused >> 20));
}

static void json_meminfo(const struct meminfo *m)
{
    const struct page_totals *t = &page_totals;

    for (size_t i = 0; i < page_region_count; i++)
        kprintf("{\"start\":%llu,\"end\":%llu,\"usable\":%s}\n",
                page_regions[i].region_start, page_regions[i].region_end,
                page_regions[i].region_usable ? "true" : "false");
    kprintf("{\"frames\":%zu,\"usable\":%zu,\"reserved\":%zu,\"kernel\":%zu,"
            "\"unused_bytes\":%llu,\"buddy_pages\":%zu,\"buddy_free\":%zu,",
            t->total_frames, t->total_usable, t->total_reserved,
            t->total_kernel, t->total_unused, m->info_buddy.stat_total_pages,
            m->info_buddy.stat_free_pages);
    kprintf("\"slab_pages\":%zu,\"hash_pages\":%zu,\"oversize_pages\":%zu,",
            m->info_segkmem.stat_use[PAGE_SLAB],
            m->info_segkmem.stat_use[PAGE_HASH],
            m->info_segkmem.stat_use[PAGE_OVERSIZE]);
    kprintf("\"user_pages\":%zu,\"committed\":%zu,\"limit\":%zu}\n",
            frame_count(), commit_committed(&m->info_commit),
            commit_limit(&m->info_commit));
}

static int cmd_meminfo(char **argv)
{
    struct meminfo m;

    (void)argv;
    buddy_stat(&m.info_buddy);
    segkmem_stat(&m.info_segkmem);
    commit_stat(&m.info_commit);
    if (shell_option('j'))
        json_meminfo(&m);
    else
        print_meminfo(&m);
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
