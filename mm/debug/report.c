/*
 * The report of an error (paper, section 6.8): what it is, where, which object
 * of which cache, and which tasks had it before.
 *
 *     kernel memory allocator: buffer modified after being freed
 *     modification occurred at offset 0x18 (0xdeadbeef replaced by 0x34)
 *     buffer=c12cea20  bufctl=c12cfef0  cache: inode
 *     c12cea30: ef be ad de …                    what is around the damage
 *     previous transactions on buffer c12cea20:
 *     thread=5 (cat)  time=T-0.000089  slab=c12ca8c0  cache: inode
 *     kmem_cache_alloc+0xf8
 *     …
 *     (transaction log continues at c0f31410)
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "mm/debug/debug_impl.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/page.h"

struct kmem_error_record kmem_last_error;

static const struct {
    const char *name;
    const char *title;
} errors[KMERRS] = {
    [KMERR_NONE] = {"none", "no error"},
    [KMERR_MODIFIED] = {"modified", "buffer modified after being freed"},
    [KMERR_REDZONE] = {"redzone", "buffer written outside its bounds"},
    [KMERR_DUPFREE] = {"dupfree", "buffer freed twice"},
    [KMERR_BADADDR] = {"badaddr", "freed address is not an allocated buffer"},
    [KMERR_BADBUFCTL] = {"badbufctl", "bufctl is damaged"},
    [KMERR_BADSLAB] = {"badslab", "slab data is damaged"},
    [KMERR_BADCACHE] = {"badcache", "buffer freed to the wrong cache"},
    [KMERR_BADSIZE] = {"badsize", "buffer freed with the wrong size"},
    [KMERR_BADBASE] = {"badbase", "freed address is not a buffer's start"},
    [KMERR_FAULT] = {"fault", "access through a bad pointer"},
};

const char *kmem_error_name(enum kmem_error kind)
{
    return errors[kind].name;
}

const char *kmem_error_title(enum kmem_error kind)
{
    return errors[kind].title;
}

/* ---- parts of the report (6.8) ------------------------------------------ */

#define DUMP_ROW    16
#define DUMP_AROUND 32 /* bytes shown on either side of the damage */

static void dump_buffer_row(const uint8_t *row, const uint8_t *at)
{
    mm_print("%lx:", (unsigned long)(uintptr_t)row);
    for (size_t i = 0; i < DUMP_ROW; i++)
        mm_print("%c%02x", row + i == at ? '>' : ' ', row[i]);
    mm_print("\n");
}

/* The bytes around the damage, the first wrong one marked. */
static void print_contents(const void *at)
{
    uintptr_t from = ((uintptr_t)at - DUMP_AROUND) & ~(uintptr_t)(DUMP_ROW - 1);

    mm_print("contents around it:\n");
    for (uintptr_t p = from; p <= (uintptr_t)at + DUMP_AROUND; p += DUMP_ROW)
        if (mm_readable((const void *)p))
            dump_buffer_row((const uint8_t *)p, at);
}

static void print_callers(const struct kmem_transaction *t)
{
    char text[64];

    for (size_t i = 0; i < MIN(t->trans_depth, (uint32_t)KMEM_STACK_DEPTH); i++)
        mm_print("%s\n", mm_symbol(t->trans_stack[i], text, sizeof(text)));
}

static void print_transaction(const struct kmem_transaction *t,
                              const char *what, const struct kmem_cache *cp,
                              uintptr_t slab)
{
    uint64_t ago = kmem_last_error.error_us - t->trans_us;

    mm_print("thread=%u (%s)  time=T-%llu.%06u  slab=%lx  cache: %s  %s\n",
             (unsigned)t->trans_task, mm_task_name(t->trans_task),
             (unsigned long long)(ago / 1000000), (unsigned)(ago % 1000000),
             (unsigned long)slab, cp->cache_name, what);
    print_callers(t);
}

/* The two that the bufctl keeps, newest first; then where the log has more. */
static void print_transactions(const struct kmem_buf_stat *b)
{
    const struct kmem_bufctl_debug *bdp = (const void *)b->stat_bufctl;
    bool freed = b->stat_free.trans_us > b->stat_alloc.trans_us ||
                 b->stat_state == KMEM_BUF_FREE ||
                 kmem_last_error.error_kind == KMERR_MODIFIED;
    const struct kmem_log_entry *e;

    if (b->stat_alloc.trans_depth == 0 && b->stat_free.trans_depth == 0) {
        mm_print("no previous transactions: it was never allocated\n");
        return;
    }
    mm_print("previous transactions on buffer %lx:\n",
             (unsigned long)b->stat_buf);
    for (int i = 0; i < 2; i++) {
        bool free = (i == 0) == freed;
        const struct kmem_transaction *t =
            free ? &b->stat_free : &b->stat_alloc;

        if (t->trans_depth != 0)
            print_transaction(t, free ? "free" : "alloc", b->stat_cache,
                              b->stat_slab);
    }
    e = kmem_log_at(bdp->bufctl_log);
    for (int i = 0; i < 2 && e != NULL; i++)
        e = kmem_log_at(e->log_prev);
    if (e != NULL)
        mm_print("(transaction log continues at %lx: `log %lx`)\n",
                 (unsigned long)(uintptr_t)e, (unsigned long)b->stat_buf);
}

static void print_history(const struct kmem_error_record *e)
{
    struct kmem_buf_stat b;

    if (e->error_bufctl == NULL)
        return;
    kmem_bufctl_stat(e->error_bufctl, &b);
    if (b.stat_audited)
        print_transactions(&b);
    else
        mm_print("no transactions are kept; mode U keeps them: `debug +U "
                 "%s`\n",
                 b.stat_cache->cache_name);
}

/* The line that says more than the title. */
static void print_details(const struct kmem_error_record *e)
{
    char text[96] = "";

    switch (e->error_kind) {
    case KMERR_MODIFIED:
    case KMERR_REDZONE:
        mm_print("modification occurred at offset %s0x%lx (0x%x replaced by "
                 "0x%x)\n",
                 (intptr_t)e->error_offset < 0 ? "-" : "",
                 (unsigned long)((intptr_t)e->error_offset < 0
                                     ? -e->error_offset
                                     : e->error_offset),
                 (unsigned)e->error_expected, (unsigned)e->error_found);
        break;
    case KMERR_BADSIZE:
        mm_print("allocated with %zu bytes, freed with %zu\n", e->error_size,
                 e->error_size_free);
        break;
    case KMERR_BADBASE:
        mm_print("it is %zu bytes into a buffer of cache %s\n", e->error_offset,
                 e->error_owner->cache_name);
        break;
    case KMERR_BADCACHE:
        mm_print("it belongs to cache %s, not %s\n", e->error_owner->cache_name,
                 e->error_cache->cache_name);
        break;
    case KMERR_BADADDR:
        mm_describe(e->error_buf, text, sizeof(text));
        if (e->error_base == e->error_buf && e->error_owner != NULL)
            mm_print("it is a free buffer of cache %s\n",
                     e->error_owner->cache_name);
        else
            mm_print("it is %s\n", text);
        break;
    case KMERR_FAULT:
        if (e->error_base != NULL)
            mm_print("offset 0x%lx of the buffer, %s: ",
                     (unsigned long)e->error_offset,
                     e->error_offset < e->error_owner->cache_size
                         ? "after it was freed"
                         : "past its end");
        mm_print("%s\n", e->error_text);
        break;
    default:
        if (e->error_text != NULL)
            mm_print("%s\n", e->error_text);
    }
}

static void print_error_place(const struct kmem_error_record *e)
{
    const struct kmem_cache *cp =
        e->error_owner != NULL ? e->error_owner : e->error_cache;
    const void *buf = e->error_base != NULL ? e->error_base : e->error_buf;
    const char *what = e->error_kind == KMERR_BADSLAB ? "slab" : "buffer";

    if (buf != NULL)
        mm_print("%s=%lx  ", what, (unsigned long)(uintptr_t)buf);
    if (e->error_bufctl != NULL)
        mm_print("bufctl=%lx  ", (unsigned long)(uintptr_t)e->error_bufctl);
    mm_print("cache: %s\n", cp == NULL ? "none" : cp->cache_name);
}

/* ---- errors ------------------------------------------------------------- */

static void send_event(const struct kmem_error_record *e)
{
    mm_event("{\"event\":\"kmem_error\",\"kind\":\"%s\",\"cache\":\"%s\","
             "\"owner\":\"%s\",\"buf\":%lu,\"base\":%lu,\"at\":%lu,"
             "\"offset\":%ld,\"expected\":%u,\"found\":%u}",
             kmem_error_name(e->error_kind),
             e->error_cache != NULL ? e->error_cache->cache_name : "",
             e->error_owner != NULL ? e->error_owner->cache_name : "",
             (unsigned long)(uintptr_t)e->error_buf,
             (unsigned long)(uintptr_t)e->error_base,
             (unsigned long)(uintptr_t)e->error_at, (long)e->error_offset,
             (unsigned)e->error_expected, (unsigned)e->error_found);
}

static void report_error(const struct kmem_error_record *e)
{
    mm_print("\nkernel memory allocator: %s\n",
             kmem_error_title(e->error_kind));
    print_details(e);
    print_error_place(e);
    if (e->error_at != NULL && mm_readable(e->error_at))
        print_contents(e->error_at);
    print_history(e);
}

/* Keeps the error, reports it, and stops the log. */
static void keep_error(const struct kmem_error_record *error)
{
    kmem_last_error = *error;
    kmem_last_error.error_us = mm_clock_us();
    kmem_last_error.error_task = mm_task_id();
    kmem_log_stopped = true;
    send_event(&kmem_last_error);
    report_error(&kmem_last_error);
}

void kmem_error(const struct kmem_error_record *error)
{
    keep_error(error);
    mm_panic("%s: %p, cache %s", kmem_error_title(error->error_kind),
             error->error_buf != NULL ? error->error_buf
                                      : (const void *)error->error_cache,
             error->error_cache == NULL ? "none"
                                        : error->error_cache->cache_name);
}

/* Reports damage to a buffer: `at` is the first wrong byte. */
void kmem_error_damage(struct kmem_cache *cp,
                       const struct kmem_bufctl_debug *bdp,
                       enum kmem_error kind, const void *at)
{
    const char *buf = bdp->bufctl.bufctl_addr;
    intptr_t offset = (const char *)at - buf;
    uint32_t found = *(const uint8_t *)at;
    uint32_t expected = KMEM_GUARD;

    if (kind == KMERR_MODIFIED) {
        offset &= ~(intptr_t)3;
        expected = KMEM_FREED;
        /* up to four bytes: the first replaces the one, the others are 0 */
        memcpy(&found, buf + offset,
               MIN(sizeof(found), cp->cache_size - (size_t)offset));
    }
    kmem_error(&(struct kmem_error_record){
        .error_kind = kind,
        .error_cache = cp,
        .error_owner = cp,
        .error_buf = buf,
        .error_base = buf,
        .error_slab = bdp->bufctl.bufctl_slab,
        .error_bufctl = bdp,
        .error_at = at,
        .error_offset = (size_t)offset,
        .error_expected = expected,
        .error_found = found,
    });
}

/* ---- a free of a wrong address (6.2) ------------------------------------ */

/* The kind of error if a client frees an address that is `offset` bytes from
 * the start of a buffer, and no allocated buffer of `cp` starts there. */
static enum kmem_error bad_free_kind(const struct kmem_cache *cp,
                                     const struct kmem_buf_stat *b,
                                     uintptr_t offset)
{
    const struct kmem_bufctl_debug *bdp = (const void *)b->stat_bufctl;
    bool debugged = (b->stat_cache->cache_flags & KMF_MODES) != 0;

    if (b->stat_buf == 0)
        return KMERR_BADADDR;
    if (offset != 0)
        return KMERR_BADBASE;
    if (debugged && bdp == NULL)
        return KMERR_BADBUFCTL;
    if (debugged && bdp->bufctl_size == 0)
        return KMERR_BADADDR;
    if (b->stat_cache != cp)
        return KMERR_BADCACHE;
    return KMERR_DUPFREE;
}

/* Records the buffer that contains an address. */
static void enter_buffer(struct kmem_error_record *e,
                         const struct kmem_buf_stat *b)
{
    e->error_owner = b->stat_cache;
    e->error_base = (const void *)b->stat_buf;
    e->error_slab = (const void *)b->stat_slab;
    e->error_offset = (uintptr_t)e->error_buf - b->stat_buf;
    e->error_size = b->stat_size;
    if (b->stat_cache->cache_flags & KMF_MODES)
        e->error_bufctl = (const void *)b->stat_bufctl;
}

/* A buffer of one size class was freed to another: the size is wrong. */
static bool other_class(const struct kmem_error_record *e)
{
    return e->error_kind == KMERR_BADCACHE && e->error_size_free != 0 &&
           e->error_cache->cache_kind == KMEM_KIND_CLASS &&
           e->error_owner->cache_kind == KMEM_KIND_CLASS;
}

/* Reports the free of an address that is not an allocated buffer of `cp`, and
 * identifies the address. `size` as freed, 0 if that is not known. No lock
 * held. */
void kmem_bad_free(struct kmem_cache *cp, const void *buf, size_t size)
{
    struct kmem_error_record e = {
        .error_kind = KMERR_BADADDR,
        .error_cache = cp,
        .error_buf = buf,
        .error_size_free = size,
    };
    struct kmem_buf_stat b;
    char text[8];

    if (!mm_describe(buf, text, sizeof(text)) &&
        (kmem_buf_stat(buf, &b) || kmem_unmapped_stat(buf, &b))) {
        enter_buffer(&e, &b);
        e.error_kind = bad_free_kind(cp, &b, e.error_offset);
        if (other_class(&e))
            e.error_kind = KMERR_BADSIZE;
        if (e.error_kind == KMERR_BADBUFCTL)
            e.error_text = "it does not say that its buffer is allocated";
    }
    kmem_error(&e);
}

/* ---- faults ------------------------------------------------------------- */

#define NEAR 4096u /* larger than the offset of any member */

static bool near(uintptr_t addr, uint32_t word)
{
    return addr + NEAR - word < 2 * NEAR;
}

bool kmem_fault(const void *addr)
{
    struct kmem_error_record e = {.error_kind = KMERR_FAULT, .error_buf = addr};
    struct kmem_buf_stat b;

    if (kmem_unmapped_stat(addr, &b) || kmem_buf_stat(addr, &b)) {
        e.error_cache = b.stat_cache;
        e.error_text = "its page is unmapped";
        enter_buffer(&e, &b);
    } else if (near((uintptr_t)addr, KMEM_UNINIT)) {
        e.error_text = "the address is 0xbaddcafe or near it: a pointer that "
                       "was never set";
    } else if (near((uintptr_t)addr, KMEM_FREED)) {
        e.error_text = "the address is 0xdeadbeef or near it: a pointer read "
                       "from a freed buffer";
    } else {
        return false;
    }
    keep_error(&e);
    return true;
}

/* ---- destroying a cache that is in use ---------------------------------- */

#define LIVE_SHOWN 8

static bool print_live(const struct kmem_buf_stat *b, void *arg)
{
    uint32_t *shown = arg;
    char by[64];

    if (b->stat_state == KMEM_BUF_FREE)
        return true;
    mm_print("  allocated: %p", (void *)b->stat_buf);
    if (b->stat_alloc.trans_depth != 0)
        mm_print(", by %s, task %u (%s)",
                 mm_symbol(b->stat_alloc.trans_stack[0], by, sizeof(by)),
                 (unsigned)b->stat_alloc.trans_task,
                 mm_task_name(b->stat_alloc.trans_task));
    mm_print("\n");
    return ++*shown < LIVE_SHOWN;
}

void kmem_report_live(struct kmem_cache *cp)
{
    uint32_t shown = 0;

    kmem_buf_walk(cp, print_live, &shown);
    if (kmem_inuse(cp) > shown)
        mm_print("  and %u more: `cache -o alloc %s` lists all\n",
                 (unsigned)(kmem_inuse(cp) - shown), cp->cache_name);
}
