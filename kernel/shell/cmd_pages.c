/*
 * buddyinfo: the buddy allocator's free lists and counters.
 * pages: physical memory as a picture, or the frames around an address.
 */
#include "drivers/console.h"
#include "kernel/fs/proc.h"
#include "kernel/lib/printf.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"
#include "mm/buddy.h"
#include "mm/segkmem.h"
#include "mm/inspect/buddy_stat.h"

#define KIB_PER_PAGE (PAGE_SIZE / 1024)

/* ---- buddyinfo ---------------------------------------------------------- */

static void print_buddy_totals(const struct buddy_stat *st)
{
    size_t free = st->stat_free_pages, all = st->stat_total_pages;
    char percent[HEAP_CELL];

    kprintf("%zu of %zu pages free (%s%%), %zu KiB\n", free, all,
            heap_percent(free, all, percent), free * KIB_PER_PAGE);
    if (st->stat_largest < 0)
        kprintf("no free block");
    else
        kprintf("largest free block %u KiB (order %d)",
                (1u << st->stat_largest) * KIB_PER_PAGE, st->stat_largest);
    kprintf("; %llu splits, %llu merges\n", st->stat_splits, st->stat_merges);
    kprintf(
        "no page was free, and caches were reaped, %llu times; %llu requests "
        "failed\n",
        st->stat_pressures, st->stat_failures);
}

#define BUDDY(member, ...) COLUMN(struct buddy_stat, member, __VA_ARGS__)

static const struct column buddy_totals[] = {
    BUDDY(stat_free_pages, NUMBER, 0, NULL, "free_pages"),
    BUDDY(stat_total_pages, NUMBER, 0, NULL, "total_pages"),
    BUDDY(stat_largest, INTEGER, 0, NULL, "largest"),
    BUDDY(stat_splits, NUMBER, 0, NULL, "splits"),
    BUDDY(stat_merges, NUMBER, 0, NULL, "merges"),
    BUDDY(stat_failures, NUMBER, 0, NULL, "failures"),
    BUDDY(stat_pressures, NUMBER, 0, NULL, "pressures"),
    {0},
};

static int cmd_buddyinfo(char **argv UNUSED)
{
    struct buddy_stat st;
    struct table t;

    shell_print(&proc_buddyinfo);
    buddy_stat(&st);
    if (shell_option('j')) {
        t = shell_table(buddy_totals);
        table_row(&t, &st);
    } else {
        print_buddy_totals(&st);
    }
    return 0;
}

SHELL_COMMAND(buddyinfo, {"[-j]", cmd_buddyinfo, SHELL_REPORT});

/* ---- pages: the picture ------------------------------------------------- */

#define ROW_CELLS 64
#define ROWS      16

static const struct {
    char letter;
    enum console_colour colour;
    const char *what;
} states[PAGE_STATES] = {
    [PAGE_RESERVED] = {'-', CONSOLE_PLAIN, "holes, BIOS, devices"},
    [PAGE_KERNEL] = {'K', CONSOLE_MAGENTA, "the kernel's image and page array"},
    [PAGE_TAIL] = {'?', CONSOLE_RED, "blocks without a first frame"},
    [PAGE_FREE] = {'.', CONSOLE_PLAIN, "free, in buddy's lists"},
    [PAGE_ALLOC] = {'A', CONSOLE_PLAIN, "allocated from buddy"},
    [PAGE_SLAB] = {'S', CONSOLE_GREEN, "slabs"},
    [PAGE_HASH] = {'H', CONSOLE_CYAN, "hash tables of caches"},
    [PAGE_OVERSIZE] = {'L', CONSOLE_CYAN, "kmem_alloc above the size classes"},
    [PAGE_UNMAPPED] = {'X', CONSOLE_RED, "unmapped by debugging mode S"},
    [PAGE_USER] = {'U', CONSOLE_YELLOW, "mapped by programs"},
};

static void print_letter(enum page_state state, bool lower)
{
    char letter = states[state].letter;

    console_colour(states[state].colour);
    kprintf("%c", lower && letter >= 'A' ? letter - 'A' + 'a' : letter);
    console_colour(CONSOLE_PLAIN);
}

/* The first frame of the block of frame `i`; that frame if no block has it. */
static const struct page *block_of_frame(size_t i)
{
    return page_block(&page_array[i]) ?: &page_array[i];
}

static void count_states(size_t first, size_t end, size_t count[PAGE_STATES])
{
    for (size_t i = first; i < MIN(end, page_count); i++)
        count[MIN((unsigned)block_of_frame(i)->page_state, PAGE_STATES - 1u)]++;
}

/* Upper case if all frames of the cell are in one state; else lower case, for
 * the most frequent state other than free. */
static void print_picture_cell(size_t first, size_t frames)
{
    enum page_state most = PAGE_FREE;
    size_t seen[PAGE_STATES] = {0};

    count_states(first, first + frames, seen);
    for (enum page_state s = 0; s < PAGE_STATES; s++)
        if (s != PAGE_FREE && seen[s] &&
            (most == PAGE_FREE || seen[s] > seen[most]))
            most = s;
    print_letter(most, seen[most] < MIN(frames, page_count - first));
}

static size_t frames_per_cell(void)
{
    size_t k = 1;

    while (k * ROW_CELLS * ROWS < page_count)
        k *= 2;
    return k;
}

static void print_picture(void)
{
    size_t k = frames_per_cell();

    kprintf("each cell is %zu frame%s, %zu KiB; a row is %zu KiB\n", k,
            plural(k), k * KIB_PER_PAGE, k * ROW_CELLS * KIB_PER_PAGE);
    for (size_t i = 0; i < page_count && !shell_interrupted(); i += k) {
        if (i / k % ROW_CELLS == 0)
            kprintf("%s0x%08lx ", i ? "\n" : "",
                    (unsigned long)i << PAGE_SHIFT);
        print_picture_cell(i, k);
    }
    kprintf("\n");
}

static void print_pages_legend(void)
{
    size_t count[PAGE_STATES] = {0};

    count_states(0, page_count, count);
    kprintf("\n%8s %9s\n", "FRAMES", "KIB");
    for (enum page_state s = 0; s < PAGE_STATES; s++)
        if (count[s] || s != PAGE_TAIL) {
            kprintf("%8zu %9zu  ", count[s], count[s] * KIB_PER_PAGE);
            print_letter(s, false);
            kprintf(" %s\n", states[s].what);
        }
    if (count[PAGE_FREE] != buddy_free_pages())
        kprintf("! buddy counts %zu free pages\n", buddy_free_pages());
    kprintf("lower case: a cell of mixed frames; the letter is the commonest "
            "not free\n");
}

/* Blocks of one kind, one after the other, or a frame. */
struct run {
    size_t run_first;
    size_t run_frames;
    uint8_t run_order; /* PAGE_NO_ORDER: no blocks, but frames */
    enum page_state run_state;
    const void *run_owner;
    /* what follows from them */
    size_t run_kib;
    uintptr_t run_physical, run_virtual;
    const char *run_named, *run_cache; /* its state and owner */
    const char *run_mark;
    char run_text[64];
};

_Static_assert(PAGE_NO_ORDER == UINT8_MAX, "an optional column");

#define RUN(member, ...) COLUMN(struct run, run_##member, __VA_ARGS__)

static const struct column run_columns[] = {
    RUN(first, NUMBER, 8, "FRAME", "frame"),
    RUN(frames, NUMBER, 8, "FRAMES", "frames"),
    RUN(kib, NUMBER, 9, "KIB", NULL),
    RUN(virtual, ADDRESS, -10, "VIRTUAL", NULL),
    RUN(named, STRING, -9, "STATE", "state"),
    RUN(order, OPTIONAL, 0, NULL, "order"),
    RUN(cache, STRING, -5, "OWNER", "cache"),
    {0},
};

static const struct column frame_columns[] = {
    RUN(mark, STRING, 1, "", NULL),
    RUN(first, NUMBER, 7, "FRAME", NULL),
    RUN(physical, ADDRESS, -10, "PHYSICAL", NULL),
    RUN(virtual, ADDRESS, -10, "VIRTUAL", NULL),
    RUN(named, STRING, -9, "STATE", NULL),
    RUN(order, OPTIONAL, 5, "ORDER", NULL),
    RUN(cache, STRING, -5, "OWNER", NULL),
    {0},
};

/* The block or single frame at `i`. */
static struct run block_at(size_t i)
{
    const struct page *p = &page_array[i];
    bool block = p->page_order <= BUDDY_MAX_ORDER;
    bool owned = p->page_state == PAGE_SLAB || p->page_state == PAGE_HASH;

    return (struct run){
        .run_first = i,
        .run_frames =
            MIN(block ? (size_t)1 << p->page_order : 1, page_count - i),
        .run_order = p->page_order,
        .run_state = p->page_state,
        .run_owner = owned ? p->page_owner : NULL,
    };
}

static void print_run(const struct table *t, struct run *run)
{
    const struct page *p = &page_array[run->run_first];

    run->run_kib = run->run_frames * KIB_PER_PAGE;
    run->run_physical = page_to_phys(p);
    run->run_virtual = (uintptr_t)page_to_virt(p);
    run->run_named = page_state_name(run->run_state);
    if (run->run_owner)
        run->run_cache = heap_owner_name(run->run_owner);
    table_row(t, run);
}

/* Shows the neighbours of one kind and owner; in JSON by order, too. */
static void print_runs(const struct table *t)
{
    struct run run = block_at(0);

    for (size_t i = run.run_frames; i < page_count && !shell_interrupted();) {
        struct run next = block_at(i);

        i += next.run_frames;
        if (run.run_state == next.run_state &&
            run.run_owner == next.run_owner &&
            (run.run_order == next.run_order || !t->table_json)) {
            run.run_frames += next.run_frames;
        } else {
            print_run(t, &run);
            run = next;
        }
    }
    print_run(t, &run);
}

static void json_pages(void)
{
    size_t count[PAGE_STATES] = {0};

    count_states(0, page_count, count);
    kprintf("{\"frames\":%zu", page_count);
    for (enum page_state s = 0; s < PAGE_STATES; s++)
        kprintf(",\"%s\":%zu", page_state_name(s), count[s]);
    kprintf("}\n");
}

/* ---- pages ADDR --------------------------------------------------------- */

#define AROUND 5 /* frames shown on each side */

static void print_frame(const struct table *t, size_t i, bool marked)
{
    struct run frame = block_at(i);

    frame.run_mark = marked ? ">" : "";
    if (frame.run_state == PAGE_TAIL) {
        const struct page *first = block_of_frame(i);

        snprintf(frame.run_text, sizeof(frame.run_text),
                 "of the %s block at frame %zu",
                 page_state_name(first->page_state), page_index(first));
        frame.run_cache = frame.run_text;
    }
    print_run(t, &frame);
}

/* Takes kernel addresses and, below them, physical ones. */
static int pages_around(char **argv)
{
    uintptr_t base = (uintptr_t)mm_phys_to_virt(0);
    uintptr_t addr;
    size_t frame, first;
    struct table t;

    if (!heap_address(argv[1], &addr))
        return 1;
    frame = (addr >= base ? addr - base : addr) >> PAGE_SHIFT;
    if (frame >= page_count)
        return shell_error("no frame is managed at 0x%lx; they end at 0x%lx",
                           (unsigned long)addr,
                           (unsigned long)page_count << PAGE_SHIFT);
    first = frame > AROUND ? frame - AROUND : 0;
    t = shell_table(frame_columns);
    for (size_t i = first; i <= frame + AROUND && i < page_count; i++)
        print_frame(&t, i, i == frame);
    return 0;
}

static int cmd_pages(char **argv UNUSED)
{
    struct table t;

    if (shell_option('r') || shell_option('j')) {
        t = shell_table(run_columns);
        print_runs(&t);
        if (t.table_json)
            json_pages();
    } else {
        print_picture();
        print_pages_legend();
    }
    return 0;
}

SHELL_COMMAND(pages, {"[-j] [-r]", cmd_pages, SHELL_REPORT},
              {"ADDR|SYMBOL", pages_around, SHELL_REPORT});
