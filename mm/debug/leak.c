/*
 * Finding leaks by searching for pointers (paper, section 6.7, and later
 * systems): an allocated buffer that no pointer leads to can never be freed.
 *
 * The scan is a mark phase. It begins at the roots that the platform names. Any
 * word whose value is an address in an allocated buffer counts as a pointer to
 * it, whether to its start or inside; each buffer reached is read in turn. The
 * scan errs on one side only: a number that looks like an address hides a leak.
 * The allocator's own buffers are neither read nor suspected.
 *
 * Marks are bits in pages from buddy: for each slab, whether a buffer is
 * allocated, reached, read. page_refs of a slab's frames, unused otherwise,
 * says where its bits are.
 */
#include "kernel/lib/string.h"
#include "mm/buddy.h"
#include "mm/debug/debug_impl.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/page.h"

enum mark {
    MARK_USED,
    MARK_REACHED,
    MARK_READ,
    MARKS
};

#define NO_MARKS UINT32_MAX /* page_refs of a frame that is not watched */

/* The marks of one slab: MARKS rows of slab_chunks bits. */
struct slab_marks {
    struct kmem_cache *marks_cache;
    struct kmem_slab *marks_slab;
    uint32_t marks_bits[];
};

static struct {
    char *memory; /* all slab_marks, one after the other */
    size_t bytes;
    size_t end; /* bytes laid out */
    bool more;  /* a buffer was reached that is not read yet */
    struct kmem_leak_stat stat;
} scan;

/* ---- marks -------------------------------------------------------------- */

static size_t words(const struct kmem_cache *cp)
{
    return (cp->cache_slab_chunks + 31) / 32;
}

static size_t marks_size(const struct kmem_cache *cp)
{
    return ROUND_UP(sizeof(struct slab_marks) +
                        MARKS * words(cp) * sizeof(uint32_t),
                    sizeof(void *));
}

static bool marked(const struct slab_marks *m, enum mark what, size_t i)
{
    return m->marks_bits[what * words(m->marks_cache) + i / 32] >> (i % 32) & 1;
}

static void set_mark(struct slab_marks *m, enum mark what, size_t i)
{
    m->marks_bits[what * words(m->marks_cache) + i / 32] |= 1u << (i % 32);
}

static bool watched(const struct kmem_cache *cp)
{
    return cp->cache_kind != KMEM_KIND_INTERNAL &&
           cp->cache_supplier.getpages == NULL;
}

/* ---- the table ---------------------------------------------------------- */

static size_t table_bytes(void)
{
    size_t bytes = 0;

    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp))
        if (watched(cp))
            bytes += cp->cache_slabs * marks_size(cp);
    return bytes;
}

/* Lays out the marks of a cache's slabs and stores their place in each frame.
 * Broken slabs have none. */
static void enter_cache(struct kmem_cache *cp)
{
    struct kmem_slab *sp = &cp->cache_null;

    mm_lock(&cp->cache_lock);
    for (size_t n = cp->cache_slabs; n != 0; n--) {
        struct slab_marks *m = (struct slab_marks *)(scan.memory + scan.end);
        struct page *p;

        MM_ASSERT(scan.end + marks_size(cp) <= scan.bytes);
        sp = kmem_slab_after(cp, sp);
        if (sp == NULL)
            break;
        if (kmem_slab_verify(cp, sp) != NULL)
            continue;
        p = virt_to_page(sp->slab_base);
        m->marks_cache = cp;
        m->marks_slab = sp;
        kmem_slab_bitmap(sp, (uint8_t *)m->marks_bits, cp->cache_slab_chunks);
        for (size_t i = 0; i < cp->cache_slab_pages; i++)
            p[i].page_refs = (uint32_t)scan.end;
        scan.end += marks_size(cp);
        scan.stat.stat_buffers += sp->slab_refcnt;
    }
    mm_unlock(&cp->cache_lock);
}

/* The marks of the slab that holds `addr` and the index of its buffer there,
 * or NULL. */
static struct slab_marks *marks_of(uintptr_t addr, size_t *index)
{
    const struct page *p = virt_to_page((const void *)addr);
    struct slab_marks *m;
    size_t offset;

    if (p == NULL || p->page_state != PAGE_SLAB || p->page_refs == NO_MARKS)
        return NULL;
    m = (struct slab_marks *)(scan.memory + p->page_refs);
    *index = kmem_chunk_index(m->marks_cache, m->marks_slab, (const void *)addr,
                              &offset);
    return *index != SIZE_MAX && offset < m->marks_cache->cache_size ? m : NULL;
}

/* ---- reading ------------------------------------------------------------ */

/* The buffer to which pointers are wanted (fn NULL: none). */
static struct {
    uintptr_t from, end;
    kmem_ref_fn_t *fn;
    void *arg;
} wanted;

static void reach(uintptr_t addr)
{
    size_t i;
    struct slab_marks *m = marks_of(addr, &i);

    if (m == NULL || !marked(m, MARK_USED, i) || marked(m, MARK_REACHED, i))
        return;
    set_mark(m, MARK_REACHED, i);
    scan.stat.stat_reached++;
    scan.more = true;
}

static uintptr_t pointer_in(const struct kmem_cache *cp, uintptr_t word)
{
    return cp == NULL ? word : mm_pointer(cp, word);
}

/* Records that have addresses which are no pointers of clients. */
static bool is_note(uintptr_t at)
{
    return at - (uintptr_t)&kmem_last_error < sizeof(kmem_last_error) ||
           at - (uintptr_t)&wanted < sizeof(wanted);
}

/* The word at `at`, of a root or (`root` NULL) of a buffer, is `addr`. */
static void compare_word(uintptr_t at, uintptr_t addr, const char *root)
{
    struct kmem_buf_stat in = {0};

    if (wanted.fn == NULL || addr < wanted.from || addr >= wanted.end)
        return;
    if (root == NULL)
        kmem_buf_stat((const void *)at, &in);
    if (!wanted.fn(at, root, root == NULL ? &in : NULL, wanted.arg))
        wanted.fn = NULL;
}

/* Reads every aligned word from `from` on, of an object of the cache (NULL: of
 * a root), except in unmapped pages. */
static void read_words(const struct kmem_cache *cp, const void *from,
                       const void *end, const char *root)
{
    uintptr_t p = ROUND_UP((uintptr_t)from, sizeof(uintptr_t));

    while (p + sizeof(uintptr_t) <= (uintptr_t)end) {
        uintptr_t stop = MIN((p | PAGE_MASK) + 1, (uintptr_t)end);

        if (mm_readable((const void *)p))
            for (; p + sizeof(uintptr_t) <= stop; p += sizeof(uintptr_t))
                if (!is_note(p)) {
                    uintptr_t addr = pointer_in(cp, *(const uintptr_t *)p);

                    compare_word(p, addr, root);
                    reach(addr);
                }
        p = stop;
    }
}

static void read_root(const void *from, const void *end, const char *name)
{
    scan.stat.stat_roots += (size_t)((const char *)end - (const char *)from);
    read_words(NULL, from, end, name);
}

/* Allocations of whole pages may point to buffers, so they are roots. */
static void read_large(void)
{
    for (size_t i = 0; i < page_count; i++)
        if (page_array[i].page_state == PAGE_OVERSIZE) {
            const char *page = page_to_virt(&page_array[i]);

            read_root(page, page + PAGE_SIZE, "kmem_alloc");
        }
}

/* Reads the buffers of a slab with mark `what` that have not been read. */
static void read_marked(struct slab_marks *m, enum mark what)
{
    struct kmem_cache *cp = m->marks_cache;

    for (size_t i = 0; i < cp->cache_slab_chunks; i++) {
        const char *buf = kmem_slab_chunk(m->marks_slab, i);

        if (!marked(m, what, i) || marked(m, MARK_READ, i))
            continue;
        set_mark(m, MARK_READ, i);
        if (!mm_is_root(cp))
            read_words(cp, buf, buf + cp->cache_size, NULL);
    }
}

static void read_reached(struct slab_marks *m)
{
    read_marked(m, MARK_REACHED);
}

static void read_used(struct slab_marks *m)
{
    read_marked(m, MARK_USED);
}

static void each_slab(void (*fn)(struct slab_marks *m))
{
    for (size_t at = 0; at < scan.end;) {
        struct slab_marks *m = (struct slab_marks *)(scan.memory + at);

        fn(m);
        at += marks_size(m->marks_cache);
    }
}

/* ---- the scan ----------------------------------------------------------- */

static kmem_buf_fn_t *suspect_fn;
static void *suspect_arg;

static void report_suspects(struct slab_marks *m)
{
    for (size_t i = 0; i < m->marks_cache->cache_slab_chunks; i++) {
        struct kmem_buf_stat stat;

        if (!marked(m, MARK_USED, i) || marked(m, MARK_REACHED, i) ||
            !kmem_buf_stat(kmem_slab_chunk(m->marks_slab, i), &stat) ||
            stat.stat_state != KMEM_BUF_USED)
            continue;
        scan.stat.stat_suspects++;
        scan.stat.stat_suspect_bytes += stat.stat_size;
        if (suspect_fn != NULL && !suspect_fn(&stat, suspect_arg))
            suspect_fn = NULL;
    }
}

/* Includes frames of slabs that are being created, so are on no list yet. */
static void forget_marks(void)
{
    for (size_t i = 0; i < page_count; i++)
        if (page_array[i].page_state == PAGE_SLAB)
            page_array[i].page_refs = NO_MARKS;
}

/* The scan's own stack frames are among the roots, and gaps in them hold stale
 * addresses that earlier calls left. */
static __attribute__((noinline)) void wipe_stack(void)
{
    volatile uintptr_t gaps[128];

    for (size_t i = 0; i < ARRAY_SIZE(gaps); i++)
        gaps[i] = 0;
}

static __attribute__((noinline)) void enter_all(void)
{
    forget_marks();
    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp))
        if (watched(cp))
            enter_cache(cp);
}

static void mark_all(void)
{
    enter_all();
    wipe_stack();
    mm_roots(read_root);
    read_large();
    do {
        scan.more = false;
        each_slab(read_reached);
    } while (scan.more);
}

/* Nothing is allocated or freed between marking and reporting: the caller has
 * stopped all other tasks. */
static __attribute__((noinline)) bool run(void)
{
    size_t pages = (table_bytes() + PAGE_SIZE) >> PAGE_SHIFT;
    struct page *p = buddy_alloc_run(pages);

    if (p == NULL)
        return false;
    scan.memory = page_to_virt(p);
    scan.bytes = pages * PAGE_SIZE;
    memset(scan.memory, 0, scan.bytes);
    mark_all();
    each_slab(report_suspects);
    if (wanted.fn != NULL) /* suspects point to it, too */
        each_slab(read_used);
    buddy_free_run(p, pages);
    return true;
}

bool kmem_leak_scan(kmem_buf_fn_t *fn, void *arg, struct kmem_leak_stat *out)
{
    bool done;

    suspect_fn = fn;
    suspect_arg = arg;
    memset(&scan, 0, sizeof(scan));
    if (MM_MAGAZINES) /* else a round would be an allocated buffer */
        kmem_mag_disable();
    mm_stop_others();
    wipe_stack();
    done = run();
    mm_resume_others();
    if (MM_MAGAZINES)
        kmem_mag_enable();
    *out = scan.stat;
    return done;
}

/* ---- pointers to a buffer ----------------------------------------------- */

bool kmem_leak_refs(const void *buf, kmem_ref_fn_t *fn, void *arg)
{
    struct kmem_leak_stat leaks;
    struct kmem_buf_stat stat;
    bool done;

    if (!kmem_buf_stat(buf, &stat))
        return true;
    wanted.from = stat.stat_buf;
    wanted.end = stat.stat_buf + stat.stat_size;
    wanted.fn = fn;
    wanted.arg = arg;
    done = kmem_leak_scan(NULL, NULL, &leaks);
    wanted.fn = NULL;
    return done;
}
