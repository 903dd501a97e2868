/*
 * whatis: what an address is; and for `slabs ADDR` the slab around it, byte for
 * byte (paper, section 3.2: from an address to its slab and back).
 */
#include "kernel/x86/cpu.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/cmd_debug.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/paging.h"
#include "mm/debug/debug.h"
#include "mm/inspect/buddy_stat.h"
#include "mm/segkmem.h"

#define LINK_BYTES 4 /* the free list's link in a free small buffer */

/* An address inside a slab, and all that there is to know of it. */
struct place {
    uintptr_t place_addr;
    struct kmem_cache *place_cache;
    struct kmem_cache_stat place_st;
    struct kmem_slab_stat place_slab;
    size_t place_index;  /* chunk, or SIZE_MAX */
    size_t place_number; /* of the slab in list order, or SIZE_MAX */
};

/* Too big for a stack; one shell, one command at a time. */
static struct place place;

static bool place_of_address(uintptr_t addr, struct place *p)
{
    memset(p, 0, sizeof(*p));
    p->place_addr = addr;
    p->place_cache =
        kmem_slab_lookup((const void *)addr, &p->place_slab, &p->place_index);
    if (!p->place_cache)
        return false;
    kmem_cache_stat(p->place_cache, &p->place_st);
    p->place_number = heap_slab_number(p->place_cache, p->place_slab.stat_slab);
    return true;
}

/* Where chunk `i` begins, from the slab's base. */
static size_t chunk_offset(const struct place *p, size_t i)
{
    return p->place_slab.stat_colour + i * p->place_st.stat_chunk;
}

static bool is_small(const struct place *p)
{
    return !(p->place_st.stat_flags & KMEM_STAT_LARGE);
}

/* ---- whatis ------------------------------------------------------------- */

static const char *part_of_chunk(const struct place *p,
                                 const struct kmem_buf_stat *b, size_t offset)
{
    const struct kmem_cache_stat *st = &p->place_st;

    if (is_small(p) && b->stat_state == KMEM_BUF_FREE && !b->stat_in_magazine &&
        offset >= st->stat_chunk - LINK_BYTES)
        return "the link to the next free object";
    if (offset < b->stat_size)
        return "in the object";
    if (!(st->stat_modes & KMF_REDZONE))
        return "beyond the object, in the chunk's padding";
    if (offset >= st->stat_redzone_end)
        return "in the redzone before the next object";
    return offset < st->stat_size && b->stat_state == KMEM_BUF_USED
               ? "in the redzone after the bytes asked for"
               : "in the redzone after the object";
}

/* Its last two transactions, the newest first. */
static void print_life(const struct kmem_buf_stat *b)
{
    bool used = b->stat_state != KMEM_BUF_FREE;

    if (!b->stat_audited)
        return;
    if (!used)
        debugcmd_print_transaction("freed", &b->stat_free);
    debugcmd_print_transaction("allocated", &b->stat_alloc);
    if (used)
        debugcmd_print_transaction("before that freed", &b->stat_free);
}

static void print_object(const struct place *p)
{
    uintptr_t start = p->place_slab.stat_base + chunk_offset(p, p->place_index);
    size_t offset = p->place_addr - start;
    struct kmem_buf_stat b;

    if (!kmem_buf_stat((const void *)p->place_addr, &b))
        return;
    kprintf("object %zu of cache %s, %s: 0x%08lx + %zu, %s\n", p->place_index,
            p->place_st.stat_name, heap_buf_state(&b)->state_text,
            (unsigned long)start, offset, part_of_chunk(p, &b, offset));
    if (b.stat_size != p->place_st.stat_size)
        kprintf("size of the request: %zu\n", b.stat_size);
    if (b.stat_state == KMEM_BUF_USED &&
        p->place_st.stat_kind == KMEM_KIND_INTERNAL)
        heap_print_own(p->place_cache, start);
    print_life(&b);
}

static void print_outside(const struct place *p)
{
    size_t offset = p->place_addr - p->place_slab.stat_base;
    const char *what = "the unused tail";

    if (offset < p->place_slab.stat_colour)
        what = p->place_st.stat_modes & KMF_REDZONE &&
                       offset + KMEM_GUARD_FRONT >= p->place_slab.stat_colour
                   ? "the redzone before the first object"
                   : "the colour gap before the first object";
    else if (offset >=
             p->place_slab.stat_bytes - heap_header_bytes(&p->place_st))
        what = "the kmem_slab at the end";
    kprintf("no object: %s of a slab of cache %s, base + %zu\n", what,
            p->place_st.stat_name, offset);
}

static void print_in_slab(const struct place *p)
{
    if (p->place_index == SIZE_MAX)
        print_outside(p);
    else
        print_object(p);
    kprintf("%sslab 0x%08lx, base 0x%08lx, number %zu of %zu: %s, %zu of %zu "
            "used\n",
            p->place_slab.stat_bad ? "! " : "",
            (unsigned long)p->place_slab.stat_slab,
            (unsigned long)p->place_slab.stat_base, p->place_number + 1,
            p->place_st.stat_slabs, heap_state_name(p->place_slab.stat_state),
            p->place_slab.stat_refcnt, p->place_slab.stat_chunks);
}

static void print_symbol(uintptr_t addr)
{
    const char *object;
    uintptr_t offset;
    char name[80];

    if (symbol_lookup(addr, NULL)) {
        kprintf("code: %s\n", symbol_format(addr, name, sizeof(name)));
    } else if (addr >= (uintptr_t)rodata_start &&
               addr < (uintptr_t)rodata_end) {
        kprintf("read-only data of the kernel\n");
    } else if (addr >= (uintptr_t)rodata_end && addr < (uintptr_t)image_end) {
        object = symbol_object(addr, &offset);
        kprintf("data: %s+0x%lx\n", object ? object : "?",
                (unsigned long)offset);
    }
}

/* `first` is the first frame of its block, and has the state of all of them. */
static void print_frame_of(const struct page *frame, const struct page *first,
                           uintptr_t addr)
{
    kprintf("frame %zu, %s", page_index(frame),
            page_state_name(first->page_state));
    if (first->page_state == PAGE_FREE || first->page_state == PAGE_ALLOC)
        kprintf(" (order %u, from frame %zu)", first->page_order,
                page_index(first));
    kprintf(", physical 0x%08lx\n",
            (unsigned long)page_to_phys(frame) + (addr & PAGE_MASK));
}

/* An address in a page that debugging mode S has unmapped. */
static void print_unmapped(uintptr_t addr)
{
    struct kmem_buf_stat b;

    if (!kmem_unmapped_stat((const void *)addr, &b))
        return;
    kprintf("unmapped: a slab of cache %s was here",
            heap_owner_name(b.stat_cache));
    if (b.stat_buf)
        kprintf(", and object %zu: 0x%08lx + %lu", b.stat_index,
                (unsigned long)b.stat_buf, (unsigned long)(addr - b.stat_buf));
    kprintf("\n");
    print_life(&b);
}

/* The last object on a frame that has returned to buddy, if the log has it. */
static void print_former(uintptr_t addr)
{
    struct kmem_log_entry entry;

    if (!logcmd_newest(addr, &entry))
        return;
    kprintf("the last object here was 0x%08lx of cache %s\n",
            (unsigned long)entry.log_buf, kmem_log_name(&entry));
    debugcmd_print_transaction(
        entry.log_op == KMEM_OP_FREE ? "freed" : "allocated", &entry.log_trans);
}

static void print_stack_of(uintptr_t addr)
{
    char text[80];

    if (mm_describe((const void *)addr, text, sizeof(text)))
        kprintf("%s\n", text);
}

static void print_managed(const struct page *frame, uintptr_t addr)
{
    const struct page *first = page_block(frame) ?: frame;

    print_frame_of(frame, first, addr);
    print_symbol(addr);
    print_stack_of(addr);
    if (place_of_address(addr, &place))
        print_in_slab(&place);
    else if (frame->page_state == PAGE_UNMAPPED)
        print_unmapped(addr);
    else if (frame->page_state == PAGE_HASH)
        kprintf("hash table of cache %s\n", heap_owner_name(frame->page_owner));
    else if (first->page_state == PAGE_USER)
        heap_print_mappers(frame);
    else if (frame->page_state != PAGE_KERNEL) {
        kprintf("in no slab; `pages 0x%lx` shows the frames around it\n",
                (unsigned long)addr);
        print_former(addr);
    }
}

static int cmd_whatis(char **argv)
{
    const struct page *frame;
    uintptr_t addr;

    if (CPU_SEVERAL && shell_option('r') && !shell_may_change())
        return 1; /* the search empties the magazines */
    if (!heap_address(argv[1], &addr))
        return 1;
    kprintf("0x%08lx: ", (unsigned long)addr);
    frame = virt_to_page((const void *)addr);
    if (addr < (uintptr_t)mm_phys_to_virt(0))
        heap_print_user(addr);
    else if (frame)
        print_managed(frame, addr);
    else
        kprintf("no memory that the kernel manages\n");
    memset(&place, 0, sizeof(place)); /* -r would find it */
    if (shell_option('r'))
        debugcmd_print_refs(addr, (uintptr_t)__builtin_frame_address(0));
    return 0;
}

SHELL_COMMAND(whatis, {"[-r] ADDR|SYMBOL", cmd_whatis, SHELL_REPORT});

/* ---- the slab around an address ----------------------------------------- */

#define ROW_CHUNKS 64
#define ROW_CELLS  3 /* of IDX OFFSET STATE LINK in a line */

/* All that is known of chunk `i`. */
static struct kmem_buf_stat chunk_stat(const struct place *p, size_t i)
{
    struct kmem_buf_stat b = {.stat_state = KMEM_BUF_USED};

    kmem_buf_stat((const void *)(p->place_slab.stat_base + chunk_offset(p, i)),
                  &b);
    return b;
}

static size_t chunk_count(const struct place *p)
{
    return MIN(p->place_st.stat_slab_objects, (size_t)KMEM_CHUNKS_MAX);
}

static void print_strip(const struct place *p)
{
    size_t tail = p->place_st.stat_slab_left - p->place_slab.stat_colour;
    size_t n = chunk_count(p);

    kprintf("colour %zu | %zu objects of %zu | tail %zu | header %zu\n",
            p->place_slab.stat_colour, n, p->place_st.stat_chunk, tail,
            heap_header_bytes(&p->place_st));
    for (size_t i = 0; i < n; i++) {
        struct kmem_buf_stat b = chunk_stat(p, i);

        if (i % ROW_CHUNKS == 0)
            kprintf("%s +%05zx %c", i ? "\n" : "", chunk_offset(p, i),
                    i == 0 && p->place_slab.stat_colour ? ':' : ' ');
        kprintf("%c", heap_buf_bad(&b, &p->place_st)
                          ? '!'
                          : heap_buf_state(&b)->state_cell);
    }
    kprintf("%s%s\n", tail ? "=" : "",
            heap_header_bytes(&p->place_st) ? "H" : "");
    kprintf("# used  . free  %s! bad  : colour gap  = tail  H kmem_slab\n\n",
            MM_MAGAZINES ? "o free, in a magazine  " : "");
}

/* The chunk that is next on the freelist, "end", or "!" if the link is damaged;
 * "-" where there is no link. */
static const char *link_text(const struct kmem_buf_stat *b,
                             char text[HEAP_CELL])
{
    if (heap_buf_state(b)->state_cell != '.')
        return "-";
    if (b->stat_last)
        return "end";
    if (b->stat_next == SIZE_MAX)
        return "!";
    snprintf(text, HEAP_CELL, "%zu", b->stat_next);
    return text;
}

/* With `audited`, also the last transaction on it. */
static void print_chunk_row(const struct place *p, size_t i, bool audited)
{
    struct kmem_buf_stat b = chunk_stat(p, i);
    const struct kmem_transaction *t =
        b.stat_state == KMEM_BUF_FREE ? &b.stat_free : &b.stat_alloc;
    char link[HEAP_CELL], age[HEAP_CELL], caller[DEBUGCMD_CALLER];

    kprintf("%c%3zu 0x%04zx %-5s %4s", i == p->place_index ? '>' : ' ', i,
            chunk_offset(p, i),
            heap_buf_bad(&b, &p->place_st) ? "!"
                                           : heap_buf_state(&b)->state_name,
            link_text(&b, link));
    if (!audited)
        return;
    if (t->trans_depth == 0)
        kprintf(" %5s %6s  -", "-", "-");
    else
        kprintf(" %5u %6s  %s", (unsigned)t->trans_task, debugcmd_age(t, age),
                debugcmd_caller(t, caller));
}

/* A row per chunk if there is more to say of it, else several in a line. */
static void print_chunks(const struct place *p)
{
    size_t n = chunk_count(p);
    bool audited = p->place_st.stat_modes & KMF_AUDIT;
    size_t columns = audited ? 1 : MIN(n, (size_t)ROW_CELLS);

    for (size_t i = 0; i < columns; i++)
        kprintf("%s %3s %6s STATE LINK", i ? "  " : "", "IDX", "OFFSET");
    if (audited)
        kprintf(" %5s %6s  %s", "OWNER", "AGE", "CALLER");
    for (size_t i = 0; i < n && !shell_interrupted(); i++) {
        kprintf("%s", i % columns ? "  " : "\n");
        print_chunk_row(p, i, audited);
    }
    kprintf("\n");
}

int heap_show_slab(uintptr_t addr)
{
    if (addr < (uintptr_t)mm_phys_to_virt(0) || !place_of_address(addr, &place))
        return shell_error("no slab holds 0x%lx; `whatis` says what is there",
                           (unsigned long)addr);
    print_in_slab(&place);
    print_strip(&place);
    print_chunks(&place);
    heap_note_broken(place.place_cache);
    return 0;
}
