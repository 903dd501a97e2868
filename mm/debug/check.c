/*
 * The debugging modes at work (paper, sections 6.1 to 6.4 and 6.6): allocation
 * and free in a cache whose flag word has more than KMF_HASH.
 *
 * An allocation takes the first bufctl off the freelist, checks that its buffer
 * is as the last free left it, and prepares it:
 *
 *     freelist -> valid? -> still deadbeef? -> baddcafe -> constructor
 *              -> redzone -> audit -> client
 *
 * A free finds the bufctl in the hash table; an address that is not there is
 * reported and nothing is changed:
 *
 *     client -> in the table? -> size and redzone right? -> audit
 *            -> destructor -> deadbeef -> freelist
 *
 * Each takes the cache's lock twice. Between, the buffer is KMEM_BUF_BUSY: it
 * is in the hash table and counts as allocated, so the cache can neither be
 * destroyed nor change its modes. An error stops the machine: nothing is
 * changed before, so that the damage can be examined.
 */
#include "kernel/lib/string.h"
#include "mm/debug/debug_impl.h"
#include "mm/inspect/kmem_stat.h"

static bool in_mode(const struct kmem_cache *cp, unsigned modes)
{
    return (KMEM_FLAGS(cp) & modes) != 0;
}

/* ---- the state of one buffer (6.3, 6.4) --------------------------------- */

static struct kmem_bufctl_debug *debug_of(const struct kmem_bufctl *bcp)
{
    return (struct kmem_bufctl_debug *)bcp;
}

/* The bytes of redzone before a buffer. */
static size_t front_guard(const struct kmem_cache *cp)
{
    return MIN(cp->cache_colour_min, (size_t)KMEM_GUARD_FRONT);
}

/* The first wrong byte of a buffer, free or allocated, and what kind of error
 * it is: of its redzone, or of its poison. NULL: no byte is wrong. */
static const void *find_damage(const struct kmem_cache *cp,
                               const struct kmem_bufctl_debug *bdp, bool free,
                               enum kmem_error *kind)
{
    const char *buf = bdp->bufctl.bufctl_addr;
    size_t size = free ? cp->cache_size : MIN(bdp->bufctl_size, cp->cache_size);
    const void *at = NULL;

    *kind = KMERR_REDZONE;
    if (in_mode(cp, KMF_REDZONE))
        at = kmem_pattern_mismatch(buf + size, cp->cache_redzone_end - size,
                                   KMEM_GUARD_WORD);
    if (at == NULL && in_mode(cp, KMF_REDZONE))
        at = kmem_pattern_mismatch(buf - front_guard(cp), front_guard(cp),
                                   KMEM_GUARD_WORD);
    if (at == NULL && free && in_mode(cp, KMF_POISON)) {
        *kind = KMERR_MODIFIED;
        at = kmem_pattern_mismatch(buf, cp->cache_size, KMEM_FREED);
    }
    return at;
}

/* Reports the damage to a buffer, if there is any. */
static void check_contents(struct kmem_cache *cp,
                           const struct kmem_bufctl_debug *bdp, bool free)
{
    enum kmem_error kind;
    const void *at = find_damage(cp, bdp, free, &kind);

    if (at != NULL)
        kmem_error_damage(cp, bdp, kind, at);
}

/* NULL, or the damage to a buffer on a freelist (`free`) or in the hash
 * table: its state, redzone or poison; *at gets the first wrong byte of the
 * last two. While a buffer is checked or filled, it may be in any state. */
const char *kmem_debug_verify(const struct kmem_cache *cp,
                              const struct kmem_bufctl *bcp, bool free,
                              const void **at)
{
    const struct kmem_bufctl_debug *bdp = debug_of(bcp);
    enum kmem_error kind;

    *at = NULL;
    if (!free && bdp->bufctl_state == KMEM_BUF_BUSY)
        return NULL;
    if (bdp->bufctl_state != (free ? KMEM_BUF_FREE : KMEM_BUF_USED))
        return "buffer's state is not that of its list";
    if (mm_readable(bcp->bufctl_addr))
        *at = find_damage(cp, bdp, free, &kind);
    return *at == NULL ? NULL : kmem_error_title(kind);
}

/* KMF_OWN_PAGES (6.6): maps or unmaps the pages that hold a buffer; the page
 * after it is never mapped. */
static void map_buffer(const struct kmem_cache *cp, void *buf, bool present)
{
    char *page = (char *)buf - cp->cache_colour_min;

    if (!in_mode(cp, KMF_OWN_PAGES))
        return;
    for (size_t i = 0; i + 1 < cp->cache_slab_pages; i++)
        mm_page_map(page + i * PAGE_SIZE, present);
}

/* The redzone after a buffer begins at the requested size. From the object's
 * end on it is filled at all times, so that a constructor or destructor that
 * writes too far is found as well. */
static void fill_guard(const struct kmem_cache *cp, void *buf, size_t size)
{
    if (in_mode(cp, KMF_REDZONE))
        kmem_pattern_fill((char *)buf + size, cp->cache_size - size,
                          KMEM_GUARD_WORD);
}

static void fill_buffer(const struct kmem_cache *cp, void *buf, uint32_t word)
{
    if (in_mode(cp, KMF_POISON))
        kmem_pattern_fill(buf, cp->cache_size, word);
}

/* Fills and unmaps the buffers of a new slab, as the cache's modes say. */
void kmem_debug_slab(struct kmem_cache *cp, struct kmem_slab *sp)
{
    size_t bytes = cp->cache_slab_pages * PAGE_SIZE;

    for (struct kmem_bufctl *bcp = sp->slab_head; bcp != NULL;
         bcp = bcp->bufctl_next)
        memset(bcp + 1, 0, sizeof(struct kmem_bufctl_debug) - sizeof(*bcp));
    if (in_mode(cp, KMF_REDZONE))
        kmem_pattern_fill(sp->slab_base, bytes, KMEM_GUARD_WORD);
    for (size_t i = 0; i < sp->slab_chunks; i++) {
        fill_buffer(cp, kmem_slab_chunk(sp, i), KMEM_FREED);
        map_buffer(cp, kmem_slab_chunk(sp, i), false);
    }
    if (in_mode(cp, KMF_OWN_PAGES))
        mm_page_map((char *)sp->slab_base + bytes - PAGE_SIZE, false);
}

/* Checks and maps the buffers of a slab that will be destroyed. */
void kmem_debug_slab_end(struct kmem_cache *cp, struct kmem_slab *sp)
{
    const struct kmem_bufctl *bcp = sp->slab_head;

    if (in_mode(cp, KMF_OWN_PAGES))
        mm_page_map((char *)sp->slab_base +
                        (cp->cache_slab_pages - 1) * PAGE_SIZE,
                    true);
    for (; bcp != NULL; bcp = bcp->bufctl_next) {
        map_buffer(cp, bcp->bufctl_addr, true);
        check_contents(cp, debug_of(bcp), true);
    }
}

/* ---- audit and trace (6.1) ---------------------------------------------- */

static void trace(const struct kmem_cache *cp, enum kmem_op op, const void *buf,
                  const struct kmem_transaction *t)
{
    char caller[64] = "?";

    if (t->trans_depth != 0)
        mm_symbol(t->trans_stack[0], caller, sizeof(caller));
    mm_print("trace: %s %s %p by %s, task %u\n",
             op == KMEM_OP_ALLOC ? "alloc" : "free", cp->cache_name, buf,
             caller, (unsigned)t->trans_task);
}

static void audit(struct kmem_cache *cp, struct kmem_bufctl_debug *bdp,
                  enum kmem_op op)
{
    struct kmem_transaction *t =
        op == KMEM_OP_ALLOC ? &bdp->bufctl_alloc : &bdp->bufctl_free;

    if (!in_mode(cp, KMF_AUDIT | KMF_TRACE))
        return;
    kmem_transaction(t);
    if (in_mode(cp, KMF_AUDIT))
        kmem_log_enter(op, cp, bdp);
    if (in_mode(cp, KMF_TRACE))
        trace(cp, op, bdp->bufctl.bufctl_addr, t);
}

/* ---- slabs and freelists (6.2) ------------------------------------------ */

/* Whether a slab's neighbours are slabs that link back to it. */
static bool linked(const struct kmem_cache *cp, const struct kmem_slab *sp)
{
    const struct list *l = &sp->slab_link;

    return kmem_slab_link_plausible(cp, l->next) && l->next->prev == l &&
           kmem_slab_link_plausible(cp, l->prev) && l->prev->next == l;
}

/* The error in a slab's data, or NULL. */
static const char *slab_error(const struct kmem_cache *cp,
                              const struct kmem_slab *sp)
{
    const char *why = kmem_slab_data_error(cp, sp);

    return why != NULL || linked(cp, sp) ? why : "slab list links disagree";
}

/* Reports damage to the allocator's own data: a slab's, or a bufctl's. */
static __attribute__((noreturn, cold)) void
report_data(struct kmem_cache *cp, enum kmem_error kind, const void *buf,
            const void *at, const char *why)
{
    kmem_error(&(struct kmem_error_record){
        .error_kind = kind,
        .error_cache = cp,
        .error_owner = cp,
        .error_buf = buf,
        .error_slab = kind == KMERR_BADSLAB ? at : NULL,
        .error_at = at,
        .error_text = why,
    });
}

/* ---- allocation --------------------------------------------------------- */

/* The error in the data of the slab that is next, or in the head of its
 * freelist, or NULL. */
static const char *head_error(const struct kmem_cache *cp,
                              const struct kmem_slab *sp)
{
    const struct kmem_bufctl *bcp = sp->slab_head;
    const char *why;

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    if (bcp == NULL || !in_mode(cp, KMF_MODES))
        return NULL;
    why = slab_error(cp, sp);
    if (why != NULL)
        return why;
    if (!kmem_bufctl_plausible(cp, bcp))
        return "its freelist points to no bufctl of the cache";
    if (bcp->bufctl_slab != sp)
        return "its freelist points to a buffer of another slab";
    if (debug_of(bcp)->bufctl_state != KMEM_BUF_FREE)
        return "its freelist points to an allocated buffer";
    return NULL;
}

/* Prepares a buffer of the debug layout for the client. */
static void *prepare_buffer(struct kmem_cache *cp,
                            struct kmem_bufctl_debug *bdp, size_t size)
{
    void *buf = bdp->bufctl.bufctl_addr;

    map_buffer(cp, buf, true);
    check_contents(cp, bdp, true);
    fill_buffer(cp, buf, KMEM_UNINIT);
    if (kmem_per_alloc(cp) && cp->cache_ctor != NULL)
        cp->cache_ctor(buf, cp->cache_size);
    fill_guard(cp, buf, MIN(size, cp->cache_size));
    bdp->bufctl_size = (uint32_t)size;
    audit(cp, bdp, KMEM_OP_ALLOC);
    mm_lock(&cp->cache_lock);
    bdp->bufctl_state = KMEM_BUF_USED;
    mm_unlock(&cp->cache_lock);
    return buf;
}

/* Takes a bufctl of any layout, NULL if the cache has none. One of the debug
 * layout becomes busy. */
static struct kmem_bufctl *take_bufctl(struct kmem_cache *cp)
{
    struct kmem_bufctl *bcp = kmem_slab_take(cp);

    if (bcp == NULL)
        return NULL;
    if (cp->cache_flags & KMF_HASH)
        kmem_hash_enter(cp, bcp);
    if (kmem_per_alloc(cp) && cp->cache_ctor != NULL)
        cp->cache_ctors++;
    if (in_mode(cp, KMF_MODES))
        debug_of(bcp)->bufctl_state = KMEM_BUF_BUSY;
    return bcp;
}

/* A buffer, NULL if the cache has none. */
static void *alloc_once(struct kmem_cache *cp, size_t size)
{
    struct kmem_bufctl *bcp;
    struct kmem_slab *sp;
    const char *why;
    bool debugged;

    mm_lock(&cp->cache_lock);
    sp = cp->cache_freelist;
    why = head_error(cp, sp);
    bcp = why == NULL ? take_bufctl(cp) : NULL;
    debugged = in_mode(cp, KMF_MODES);
    mm_unlock(&cp->cache_lock);
    if (why != NULL)
        report_data(cp, KMERR_BADSLAB, sp, sp, why);
    if (bcp == NULL)
        return NULL;
    return debugged ? prepare_buffer(cp, debug_of(bcp), size)
                    : kmem_bufctl_buf(cp, bcp);
}

/* kmem_cache_alloc for a cache with any flag of KMF_DEBUG; `size` is what the
 * client requested. The hash table is resized last: see alloc_grow in
 * mm/kmem_cache.c. */
void *kmem_alloc_debug(struct kmem_cache *cp, size_t size, int flags)
{
    bool grown = false;
    void *buf;

    if (size == 0)
        size = cp->cache_kind == KMEM_KIND_CLASS ? KMEM_SIZE_UNKNOWN
                                                 : cp->cache_size;
    while ((buf = alloc_once(cp, size)) == NULL) {
        if (!kmem_grow_or_wait(cp, flags))
            return NULL;
        grown = true;
    }
    if (grown)
        kmem_hash_rescale(cp);
    return buf;
}

/* ---- free (6.2) --------------------------------------------------------- */

/* The error in the bufctl of an allocated buffer, or in its slab, or NULL. */
static const char *bufctl_error(const struct kmem_cache *cp,
                                const struct kmem_bufctl_debug *bdp,
                                enum kmem_error *kind)
{
    const struct kmem_slab *sp = bdp->bufctl.bufctl_slab;

    *kind = KMERR_DUPFREE;
    if (bdp->bufctl_state == KMEM_BUF_BUSY)
        return "it is being freed, or allocated, at this moment";
    *kind = KMERR_BADBUFCTL;
    if (bdp->bufctl_state != KMEM_BUF_USED)
        return "it does not say that its buffer is allocated";
    if (!kmem_slab_plausible(sp))
        return "it does not point to a slab";
    *kind = KMERR_BADSLAB;
    return slab_error(cp, sp);
}

/* Finds the bufctl of a buffer that is freed and makes it busy. Reports an
 * address that is not in the hash table, and damage to the bufctl or its
 * slab. */
static struct kmem_bufctl_debug *claim(struct kmem_cache *cp, void *buf,
                                       size_t size)
{
    enum kmem_error kind = KMERR_NONE;
    struct kmem_bufctl_debug *bdp;
    const char *why = NULL;
    bool damaged;

    mm_lock(&cp->cache_lock);
    bdp = debug_of(kmem_hash_find(cp, buf, &damaged));
    if (bdp != NULL)
        why = bufctl_error(cp, bdp, &kind);
    if (bdp != NULL && why == NULL)
        bdp->bufctl_state = KMEM_BUF_BUSY;
    mm_unlock(&cp->cache_lock);
    if (damaged)
        report_data(cp, KMERR_BADBUFCTL, buf, kmem_hash_bucket(cp, buf),
                    "the hash chain that the buffer must be on is broken");
    if (bdp == NULL)
        kmem_bad_free(cp, buf, size);
    if (why != NULL)
        report_data(
            cp, kind, buf,
            kind == KMERR_BADSLAB ? (void *)bdp->bufctl.bufctl_slab : bdp, why);
    return bdp;
}

/* Checks that a busy buffer is freed with the right size (0: not known) and is
 * not damaged. */
static void check_free(struct kmem_cache *cp,
                       const struct kmem_bufctl_debug *bdp, size_t size)
{
    if (size != 0 && size != bdp->bufctl_size &&
        bdp->bufctl_size != KMEM_SIZE_UNKNOWN)
        kmem_error(&(struct kmem_error_record){
            .error_kind = KMERR_BADSIZE,
            .error_cache = cp,
            .error_owner = cp,
            .error_buf = bdp->bufctl.bufctl_addr,
            .error_base = bdp->bufctl.bufctl_addr,
            .error_slab = bdp->bufctl.bufctl_slab,
            .error_bufctl = bdp,
            .error_size = bdp->bufctl_size,
            .error_size_free = size,
        });
    check_contents(cp, bdp, false);
}

/* Puts a busy buffer back; in mode KMF_UNMAP free slabs are unmapped. */
static void put_back(struct kmem_cache *cp, struct kmem_bufctl_debug *bdp)
{
    bool unmaps = in_mode(cp, KMF_UNMAP);

    kmem_hold(cp);
    mm_lock(&cp->cache_lock);
    bdp->bufctl_state = KMEM_BUF_FREE;
    if (kmem_per_alloc(cp) && cp->cache_dtor != NULL)
        cp->cache_dtors++;
    kmem_give(cp, bdp->bufctl.bufctl_addr);
    mm_unlock(&cp->cache_lock);
    if (unmaps)
        kmem_unmap_free_slabs(cp);
    kmem_release(cp);
}

static void free_debug(struct kmem_cache *cp, void *buf, size_t size)
{
    struct kmem_bufctl_debug *bdp = claim(cp, buf, size);

    check_free(cp, bdp, size);
    audit(cp, bdp, KMEM_OP_FREE);
    if (kmem_per_alloc(cp) && cp->cache_dtor != NULL)
        cp->cache_dtor(buf, cp->cache_size);
    fill_buffer(cp, buf, KMEM_FREED);
    map_buffer(cp, buf, false);
    put_back(cp, bdp);
}

static void free_plain(struct kmem_cache *cp, void *buf, size_t size)
{
    bool known;

    mm_lock(&cp->cache_lock);
    known = kmem_give(cp, buf);
    mm_unlock(&cp->cache_lock);
    if (!known)
        kmem_bad_free(cp, buf, size);
}

/* kmem_cache_free for a cache with any flag of KMF_DEBUG, and for an address
 * that the hash table does not know. `size` as freed, 0: not known. */
void kmem_free_debug(struct kmem_cache *cp, void *buf, size_t size)
{
    if (in_mode(cp, KMF_MODES))
        free_debug(cp, buf, size);
    else
        free_plain(cp, buf, size);
}
