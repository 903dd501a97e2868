/*
 * frag: total fragmentation as the paper's section 5.2 defines it: the part of
 * the slabs' memory that no client has asked for.
 *
 * It has three causes. Internal: a buffer is larger than the
 * object in it, a slab than its buffers. External: buffers are free. Overhead:
 * slab headers, hash tables and the allocator's own caches, all of which no
 * client asked for. An object in use counts with the size that its cache was
 * created for; a buffer of kmem_alloc, whose requested size is not kept, with
 * the size of its class.
 */
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"
#include "tools/workshop/observe/frag.h"

#define KEY_MAX 32 /* characters of a label */

/* All in bytes. */
struct frag {
    uint64_t frag_mem;
    uint64_t frag_used; /* in allocated buffers */
    uint64_t frag_free; /* in free ones */
};

static struct frag frag_of(const struct kmem_cache_stat *st)
{
    if (st->stat_kind == KMEM_KIND_INTERNAL)
        return (struct frag){.frag_mem = st->stat_mem};
    return (struct frag){
        .frag_mem = st->stat_mem,
        .frag_used = (uint64_t)st->stat_inuse * st->stat_size,
        .frag_free =
            (uint64_t)(st->stat_total - st->stat_inuse) * st->stat_chunk,
    };
}

static uint64_t key_lost(const struct kmem_cache_stat *st)
{
    struct frag f = frag_of(st);

    return f.frag_mem - f.frag_used;
}

static struct frag frag_total(void)
{
    struct kmem_cache_stat st;
    struct frag sum = {0};

    for (size_t n = 0; kmem_cache_stat_number(n, &st); n++) {
        struct frag f = frag_of(&st);

        sum.frag_mem += f.frag_mem;
        sum.frag_used += f.frag_used;
        sum.frag_free += f.frag_free;
    }
    return sum;
}

/* Adds one cache to `out`. */
static void add_parts(struct heap_frag *out, const struct kmem_cache_stat *st)
{
    struct frag f = frag_of(st);
    uint64_t slab = (uint64_t)st->stat_slab_pages * PAGE_SIZE;
    uint64_t header = slab - st->stat_slab_left -
                      (uint64_t)st->stat_slab_objects * st->stat_chunk;
    uint64_t meta = st->stat_kind == KMEM_KIND_INTERNAL
                        ? st->stat_mem
                        : st->stat_slabs * header + st->stat_hash_bytes;

    out->frag_consumed += f.frag_mem;
    out->frag_requested += f.frag_used;
    out->frag_free += f.frag_free;
    out->frag_meta += meta;
    out->frag_internal += f.frag_mem - f.frag_used - f.frag_free - meta;
}

void heap_frag(struct heap_frag *out)
{
    struct kmem_cache_stat st;

    *out = (struct heap_frag){0};
    for (size_t n = 0; kmem_cache_stat_number(n, &st); n++)
        add_parts(out, &st);
}

/* In hundredths of a per cent, rounded. */
static unsigned frag_share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (unsigned)((part * 10000 + whole / 2) / whole);
}

static unsigned frag_percent(const struct frag *f)
{
    return frag_share(f->frag_mem - f->frag_used, f->frag_mem);
}

/* ---- output ------------------------------------------------------------- */

/* `points` is how much of the total's per cent is due to this row. */
static void print_row(const char *name, const struct frag *f, uint64_t all)
{
    uint64_t lost = f->frag_mem - f->frag_used;
    unsigned points = frag_share(lost, all);
    unsigned percent = frag_percent(f);

    heap_print_name(name, HEAP_NAME);
    kprintf(" %8llu %8llu %8llu %8llu %8llu %4u.%02u %4u.%02u\n",
            (unsigned long long)f->frag_mem, (unsigned long long)f->frag_used,
            (unsigned long long)f->frag_free,
            (unsigned long long)(lost - f->frag_free), (unsigned long long)lost,
            percent / 100, percent % 100, points / 100, points % 100);
}

static void print_share(uint64_t part, uint64_t whole)
{
    unsigned share = frag_share(part, whole);

    kprintf(" %6u.%02u", share / 100, share % 100);
}

static void print_step(const char *step, const struct heap_frag *f)
{
    kprintf("%-12s %10llu %10llu", step, (unsigned long long)f->frag_requested,
            (unsigned long long)f->frag_consumed);
    print_share(f->frag_consumed - f->frag_requested, f->frag_consumed);
    print_share(f->frag_internal, f->frag_consumed);
    print_share(f->frag_free, f->frag_consumed);
    print_share(f->frag_meta, f->frag_consumed);
    kprintf("\n");
}

/* A row per mark, and one for now. */
static void print_steps(void)
{
    struct heap_frag f;
    const char *label;

    kprintf("%-12s %10s %10s %9s %9s %9s %9s\n", "STEP", "REQUESTED",
            "CONSUMED", "FRAG%", "INTERNAL%", "FREE-BUF%", "META%");
    for (size_t i = 0; heap_mark(i, &label, &f); i++)
        print_step(label, &f);
    heap_frag(&f);
    print_step("now", &f);
    kprintf("\n");
}

static void json_row(const char *key, const char *name, const struct frag *f)
{
    unsigned percent = frag_percent(f);

    kprintf("{\"%s\":", key);
    shell_json_string(name);
    kprintf(",\"mem\":%llu,\"used\":%llu,\"free\":%llu,\"lost\":%llu,"
            "\"percent\":%u.%02u}\n",
            (unsigned long long)f->frag_mem, (unsigned long long)f->frag_used,
            (unsigned long long)f->frag_free,
            (unsigned long long)(f->frag_mem - f->frag_used), percent / 100,
            percent % 100);
}

static void print_rows(const struct frag *total, bool json)
{
    struct heap_order at = {0};
    struct kmem_cache_stat st;

    while (!shell_interrupted() && heap_next(&at, key_lost, &st)) {
        struct frag f = frag_of(&st);

        if (json)
            json_row("cache", st.stat_name, &f);
        else if (f.frag_mem > 0)
            print_row(st.stat_name, &f, total->frag_mem);
    }
}

static void print_table(const struct frag *total)
{
    print_steps();
    kprintf("%-*s %8s %8s %8s %8s %8s %7s %7s\n", HEAP_NAME, "CACHE", "MEM",
            "USED", "FREE", "OVERHEAD", "LOST", "LOST%", "POINTS");
    print_rows(total, false);
    print_row("TOTAL", total, total->frag_mem);
    kprintf("the paper's own: boot 11 %%, spike 13 %%, find 14 %%, "
            "kenbus 14 %%\n");
}

/* ---- the command -------------------------------------------------------- */

/* Letters, digits, dots and dashes: it becomes part of a key. */
static bool label_good(const char *label)
{
    size_t n = 0;

    for (; label[n] != '\0'; n++)
        if (!(label[n] >= 'a' && label[n] <= 'z') &&
            !(label[n] >= '0' && label[n] <= '9') && label[n] != '.' &&
            label[n] != '-')
            return false;
    return n > 0 && n <= KEY_MAX;
}

static int measure(const char *label, const struct frag *total)
{
    unsigned percent = frag_percent(total);

    if (!label_good(label))
        return shell_error("'%.32s' is no label; small letters, digits, . and "
                           "- are, at most %d",
                           label, KEY_MAX);
    kprintf("frag.%s: %u.%02u %% of %llu KiB\n", label, percent / 100,
            percent % 100, (unsigned long long)(total->frag_mem >> 10));
    debugcon_event("{\"event\":\"bench\",\"key\":\"frag.%s\","
                   "\"value\":%u.%02u}",
                   label, percent / 100, percent % 100);
    return 0;
}

static int cmd_frag(char **argv)
{
    struct frag total = frag_total();

    (void)argv;
    if (shell_option('b'))
        return measure(shell_value('b'), &total);
    if (shell_option('j')) {
        print_rows(&total, true);
        json_row("key", "frag.total", &total);
    } else {
        print_table(&total);
    }
    return 0;
}

SHELL_COMMAND(frag, cmd_frag);
