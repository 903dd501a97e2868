/*
 * The debugging modes at work (paper, sections 6.1 to 6.4 and 6.6): what an
 * allocation and a free do in a cache whose flag word has more than KMF_HASH.
 *
 * An allocation takes the buffer's bufctl off the freelist, looks whether the
 * buffer is as the last free left it, and makes it fit to hand out:
 *
 *     freelist ─> sane? ─> still deadbeef? ─> baddcafe ─> constructor
 *              ─> redzone ─> audit ─> client
 *
 * A free finds the bufctl by the hash table, and nothing happens to a buffer
 * that it does not find there:
 *
 *     client ─> in the table? ─> size and redzone right? ─> audit
 *            ─> destructor ─> deadbeef ─> freelist
 *
 * A buffer that is found damaged stays out for good (KMEM_BUF_BAD), so that
 * nobody gets it and what it holds can be looked at.
 */
#include "kernel/lib/string.h"
#include "mm/debug/fail.h"
#include "mm/kmem_list.h"
#include "mm/debug/audit.h"
#include "mm/kmem_stat.h"
#include "mm/page.h"

static bool in_mode(const struct kmem_cache *cp, unsigned modes)
{
    return (cp->cache_flags & KMF_MODE(modes)) != 0;
}

/* ---- the state of one buffer (6.3, 6.4) --------------------------------- */

static struct kmem_bufctl_debug *debug_of(const struct kmem_bufctl *bcp)
{
    return (struct kmem_bufctl_debug *)bcp;
}

/* The bytes of redzone before a buffer: none where the page before is never
 * there. */
static size_t front_guard(const struct kmem_cache *cp)
{
    return MIN(cp->cache_colour_min, (size_t)KMEM_GUARD_FRONT);
}

const char *kmem_debug_damage(const struct kmem_cache *cp,
                              const struct kmem_bufctl_debug *bdp,
                              const void **at, enum kmem_error *kind)
{
    const char *buf = bdp->bufctl.bufctl_addr;
    bool free = bdp->bufctl_state == KMEM_BUF_FREE;
    size_t size = free ? cp->cache_size : bdp->bufctl_size;

    if (in_mode(cp, KMF_REDZONE)) {
        *kind = KMEM_ERROR_END;
        *at = kmem_pattern_mismatch(buf + size, cp->cache_redzone_end - size,
                                    KMEM_GUARD_WORD);
        if (*at != NULL)
            return "redzone behind a buffer is damaged";
        *kind = KMEM_ERROR_START;
        *at = kmem_pattern_mismatch(buf - front_guard(cp), front_guard(cp),
                                    KMEM_GUARD_WORD);
        if (*at != NULL)
            return "redzone before a buffer is damaged";
    }
    *kind = KMEM_ERROR_MODIFIED;
    if (free && in_mode(cp, KMF_POISON)) {
        *at = kmem_pattern_mismatch(buf, cp->cache_size, KMEM_FREED);
        if (*at != NULL)
            return "free buffer is not deadbeef throughout";
    }
    return NULL;
}

/* G (6.6): the pages that a buffer lies on, but not the one behind it. */
static void map_buffer(const struct kmem_cache *cp, void *buf, bool present)
{
    char *page = (char *)buf - cp->cache_colour_min;

    if (!in_mode(cp, KMF_FIREWALL))
        return;
    for (size_t i = 0; i + 1 < cp->cache_slab_pages; i++)
        mm_page_map(page + i * PAGE_SIZE, present);
}

/* The redzone behind a buffer begins where what was asked for ends; from the
 * object's end on it is always there, so that a constructor or destructor that
 * writes too far is found as well. */
static void fill_guard(const struct kmem_cache *cp, void *buf, size_t size)
{
    if (in_mode(cp, KMF_REDZONE))
        kmem_pattern_fill((char *)buf + size, cp->cache_size - size,
                          KMEM_GUARD_WORD);
}

static void fill(const struct kmem_cache *cp, void *buf, uint32_t word)
{
    if (in_mode(cp, KMF_POISON))
        kmem_pattern_fill(buf, cp->cache_size, word);
}

void kmem_debug_slab(struct kmem_cache *cp, struct kmem_slab *sp)
{
    size_t bytes = cp->cache_slab_pages * PAGE_SIZE;

    for (struct kmem_bufctl *bcp = sp->slab_head; bcp != NULL;
         bcp = bcp->bufctl_next)
        memset(bcp + 1, 0, sizeof(struct kmem_bufctl_debug) - sizeof(*bcp));
    if (in_mode(cp, KMF_REDZONE))
        kmem_pattern_fill(sp->slab_base, bytes, KMEM_GUARD_WORD);
    for (size_t i = 0; i < sp->slab_chunks; i++) {
        fill(cp, kmem_slab_chunk(sp, i), KMEM_FREED);
        map_buffer(cp, kmem_slab_chunk(sp, i), false);
    }
    if (in_mode(cp, KMF_FIREWALL))
        mm_page_map((char *)sp->slab_base + bytes - PAGE_SIZE, false);
}

void kmem_debug_slab_end(struct kmem_cache *cp, struct kmem_slab *sp)
{
    const struct kmem_bufctl *bcp = sp->slab_head;
    enum kmem_error kind;
    const void *at;

    if (in_mode(cp, KMF_FIREWALL))
        mm_page_map((char *)sp->slab_base +
                        (cp->cache_slab_pages - 1) * PAGE_SIZE,
                    true);
    for (; bcp != NULL; bcp = bcp->bufctl_next) {
        map_buffer(cp, bcp->bufctl_addr, true);
        if (kmem_debug_damage(cp, debug_of(bcp), &at, &kind) != NULL)
            kmem_error_damage(cp, debug_of(bcp), kind, at);
    }
}

/* ---- audit and trace (6.1) ---------------------------------------------- */

static void note(struct kmem_cache *cp, struct kmem_bufctl_debug *bdp,
                 enum kmem_op op)
{
    struct kmem_transaction *trans =
        op == KMEM_OP_ALLOC ? &bdp->bufctl_alloc : &bdp->bufctl_free;

    if (!in_mode(cp, KMF_AUDIT))
        return;
    kmem_transaction(trans);
    kmem_log_enter(op, cp, bdp);
}

static void trace(const struct kmem_cache *cp, const char *what,
                  const void *buf)
{
    struct kmem_transaction t;
    char caller[64] = "?";

    if (!in_mode(cp, KMF_TRACE))
        return;
    kmem_transaction(&t);
    if (t.trans_depth != 0)
        mm_symbol(t.trans_stack[0], caller, sizeof(caller));
    mm_print("trace: %s %s %p by %s, task %u\n", what, cp->cache_name, buf,
             caller, (unsigned)t.trans_task);
}

/* ---- allocation --------------------------------------------------------- */

/* Takes a bufctl; NULL if the cache has none left, or if the freelist was
 * found damaged: then *why is not NULL and the lock was let go. Lock held. */
static struct kmem_bufctl *take(struct kmem_cache *cp, const char **why)
{
    struct kmem_slab *sp = cp->cache_freelist;
    struct kmem_bufctl *bcp = sp->slab_head;
    enum kmem_error kind;

    *why = NULL;
    if (bcp == NULL)
        return NULL;
    if (cp->cache_flags & KMF_DEBUG)
        *why = kmem_head_error(cp, sp, bcp, &kind);
    if (*why != NULL) {
        kmem_slab_isolate(cp, sp);
        mm_unlock(&cp->cache_lock);
        kmem_error(&(struct kmem_error_record){
            .error_kind = kind,
            .error_cache = cp,
            .error_owner = cp,
            .error_buf = kind == KMEM_ERROR_SLAB ? (void *)sp : bcp,
            .error_slab = sp,
            .error_at = sp,
            .error_text = *why});
        return NULL;
    }
    kmem_slab_take(cp, sp, bcp);
    if (cp->cache_flags & KMF_HASH)
        kmem_hash_enter(cp, bcp);
    return bcp;
}

/* While a buffer is in nobody's hands, the cache may not change its modes. */
static void leave_busy(struct kmem_cache *cp)
{
    mm_lock(&cp->cache_lock);
    cp->cache_busy--;
    mm_unlock(&cp->cache_lock);
}

/* Makes a buffer of the debug layout fit to hand out. NULL: it was damaged and
 * is set aside; that comes before the report, which may be the end of
 * everything, so that who looks then finds the heap in order. No lock held: it
 * is nobody else's. */
static void *hand_out(struct kmem_cache *cp, struct kmem_bufctl_debug *bdp,
                      size_t size)
{
    void *buf = bdp->bufctl.bufctl_addr;
    enum kmem_error kind;
    const void *at;

    map_buffer(cp, buf, true);
    if (kmem_debug_damage(cp, bdp, &at, &kind) != NULL) {
        bdp->bufctl_state = KMEM_BUF_BAD;
        leave_busy(cp);
        kmem_error_damage(cp, bdp, kind, at);
        return NULL;
    }
    fill(cp, buf, KMEM_UNINIT);
    if (kmem_per_alloc(cp) && cp->cache_ctor != NULL)
        cp->cache_ctor(buf, cp->cache_size);
    fill_guard(cp, buf, size);
    bdp->bufctl_size = (uint32_t)size;
    bdp->bufctl_state = KMEM_BUF_USED;
    note(cp, bdp, KMEM_OP_ALLOC);
    leave_busy(cp);
    return buf;
}

/* A buffer of the debug layout if the cache has one. Lock held; lets it go. */
static void *alloc_checked(struct kmem_cache *cp, size_t size)
{
    struct kmem_bufctl *bcp;
    const char *why;
    void *buf = NULL;

    do {
        bcp = take(cp, &why);
        cp->cache_busy += bcp != NULL;
        if (why == NULL)
            mm_unlock(&cp->cache_lock);
        if (bcp != NULL)
            buf = hand_out(cp, debug_of(bcp), size);
        if (buf != NULL || (bcp == NULL && why == NULL))
            return buf;
        mm_lock(&cp->cache_lock);
    } while (cp->cache_flags & KMF_DEBUG);
    mm_unlock(&cp->cache_lock);
    return NULL;
}

/* A buffer if the cache has one. Lock held; lets it go. */
static void *alloc_once(struct kmem_cache *cp, size_t size)
{
    struct kmem_bufctl *bcp;
    const char *why;
    void *buf;

    if (cp->cache_flags & KMF_DEBUG)
        return alloc_checked(cp, size);
    bcp = take(cp, &why);
    buf = bcp == NULL ? NULL : kmem_bufctl_buf(cp, bcp);
    mm_unlock(&cp->cache_lock);
    return buf;
}

/* Lock held; lets it go. The hash table follows only when the object is out:
 * see alloc_grow in kmem_cache.c. */
static void *alloc_slow(struct kmem_cache *cp, size_t size, int flags)
{
    bool grown = false;
    void *buf;

    if (kmem_fail_alloc(cp, flags)) {
        cp->cache_fails++;
        mm_unlock(&cp->cache_lock);
        kmem_event(KMEM_RING_FAIL, KMEM_WHY_INJECTED, cp, NULL, size);
        return NULL;
    }
    while ((buf = alloc_once(cp, size)) == NULL) {
        if (!kmem_grow_or_wait(cp, flags))
            return NULL;
        grown = true;
        mm_lock(&cp->cache_lock);
    }
    if (grown && (cp->cache_flags & KMF_HASH))
        kmem_hash_rescale(cp);
    trace(cp, "alloc", buf);
    if (cp->cache_flags & KMF_VERIFY)
        kmem_verify_count(cp);
    return buf;
}

void *kmem_alloc_debug(struct kmem_cache *cp, int flags)
{
    return alloc_slow(cp, cp->cache_size, flags);
}

void *kmem_alloc_sized(struct kmem_cache *cp, size_t size, int flags)
{
    if ((cp->cache_flags & KMF_DEBUG) == 0)
        return kmem_cache_alloc(cp, flags);
    mm_lock(&cp->cache_lock);
    return alloc_slow(cp, size, flags);
}

/* ---- free (6.2) --------------------------------------------------------- */

/* The place that points to the buffer's bufctl in the hash table, or NULL;
 * *astray: the chain ended where none ends. Lock held. */
static struct kmem_bufctl **lookup(struct kmem_cache *cp, const void *buf,
                                   bool *astray)
{
    struct kmem_bufctl **link = kmem_hash_bucket(cp, buf);
    uint32_t left = kmem_inuse(cp);

    for (; *link != NULL; link = &(*link)->bufctl_next) {
        *astray = left-- == 0 || !kmem_bufctl_plausible(cp, *link);
        if (*astray)
            return NULL;
        if ((*link)->bufctl_addr == buf)
            return link;
        cp->cache_hash_depth++;
    }
    return NULL;
}

/* Puts a buffer aside for good: it goes back into the table, as one that is
 * out. No lock held. */
static void set_aside(struct kmem_cache *cp, struct kmem_bufctl_debug *bdp)
{
    mm_lock(&cp->cache_lock);
    bdp->bufctl_state = KMEM_BUF_BAD;
    kmem_hash_enter(cp, &bdp->bufctl);
    cp->cache_busy--;
    mm_unlock(&cp->cache_lock);
}

static void wrong_size(struct kmem_cache *cp,
                       const struct kmem_bufctl_debug *bdp, size_t size)
{
    kmem_error(&(struct kmem_error_record){
        .error_kind = KMEM_ERROR_SIZE,
        .error_cache = cp,
        .error_owner = cp,
        .error_buf = bdp->bufctl.bufctl_addr,
        .error_base = bdp->bufctl.bufctl_addr,
        .error_slab = bdp->bufctl.bufctl_slab,
        .error_bufctl = bdp,
        .error_size = bdp->bufctl_size,
        .error_size_free = size,
    });
}

/* Whether the buffer may be freed so; if not, it is set aside and reported.
 * `size` 0: the caller does not know. No lock held. */
static bool right_free(struct kmem_cache *cp, struct kmem_bufctl_debug *bdp,
                       size_t size)
{
    bool sized = size == 0 || size == bdp->bufctl_size;
    enum kmem_error kind;
    const void *at;

    if (sized && kmem_debug_damage(cp, bdp, &at, &kind) == NULL)
        return true;
    set_aside(cp, bdp);
    if (sized)
        kmem_error_damage(cp, bdp, kind, at);
    else
        wrong_size(cp, bdp, size);
    return false;
}

/* Brings a buffer into the state of a free one. No lock held. */
static void take_back(struct kmem_cache *cp, struct kmem_bufctl_debug *bdp)
{
    void *buf = bdp->bufctl.bufctl_addr;

    note(cp, bdp, KMEM_OP_FREE);
    if (kmem_per_alloc(cp) && cp->cache_dtor != NULL)
        cp->cache_dtor(buf, cp->cache_size);
    fill(cp, buf, KMEM_FREED);
    bdp->bufctl_state = KMEM_BUF_FREE;
    map_buffer(cp, buf, false);
}

/* What is wrong with the bufctl of a buffer that is out, or with its slab. */
static const char *bufctl_error(const struct kmem_cache *cp,
                                const struct kmem_bufctl_debug *bdp,
                                enum kmem_error *kind)
{
    const struct kmem_slab *sp = bdp->bufctl.bufctl_slab;

    *kind = KMEM_ERROR_BUFCTL;
    if (bdp->bufctl_state == KMEM_BUF_BAD)
        return "its buffer was set aside after an error";
    if (bdp->bufctl_state != KMEM_BUF_USED)
        return "it does not say that its buffer is out";
    if (!kmem_slab_plausible(sp))
        return "it does not point to a slab";
    *kind = KMEM_ERROR_SLAB;
    return kmem_slab_error(cp, sp);
}

/* Sets aside a buffer whose bufctl or slab is damaged. Lock held; lets go. */
static void refuse_free(struct kmem_cache *cp, struct kmem_bufctl_debug *bdp,
                        enum kmem_error kind, const char *why)
{
    struct kmem_slab *sp = bdp->bufctl.bufctl_slab;

    bdp->bufctl_state = KMEM_BUF_BAD;
    mm_unlock(&cp->cache_lock);
    kmem_error(&(struct kmem_error_record){
        .error_kind = kind,
        .error_cache = cp,
        .error_owner = cp,
        .error_buf = bdp->bufctl.bufctl_addr,
        .error_slab = kind == KMEM_ERROR_SLAB ? sp : NULL,
        .error_at = kind == KMEM_ERROR_SLAB ? (void *)sp : bdp,
        .error_text = why,
    });
}

/* A buffer of the debug layout, whose bufctl *link is. Lock held; lets it go.
 * It leaves the table first: a second free must not find it. While the cache
 * is busy it can neither change its modes nor end. */
static void free_checked(struct kmem_cache *cp, struct kmem_bufctl **link,
                         size_t size)
{
    struct kmem_bufctl *bcp = *link;
    struct kmem_bufctl_debug *bdp = debug_of(bcp);
    bool unmaps = in_mode(cp, KMF_UNMAP);
    enum kmem_error kind;
    const char *why = bufctl_error(cp, bdp, &kind);

    if (why != NULL) {
        refuse_free(cp, bdp, kind, why);
        return;
    }
    *link = bcp->bufctl_next;
    cp->cache_busy++;
    mm_unlock(&cp->cache_lock);
    if (!right_free(cp, bdp, size))
        return;
    take_back(cp, bdp);
    mm_lock(&cp->cache_lock);
    cp->cache_busy -= !unmaps;
    kmem_slab_give(cp, bcp->bufctl_slab, bcp, true);
    if (unmaps) {
        kmem_unmap_free_slabs(cp);
        leave_busy(cp);
    }
}

/* The buffer is not in the table: an elder's, or nobody's. No lock held. */
static void free_elsewhere(struct kmem_cache *cp, void *buf, size_t size)
{
    struct kmem_cache *elder = NULL;

    if (cp->cache_flags & KMF_ELDERS)
        elder = kmem_elder_holding(cp, buf);
    if (elder == NULL || elder == cp)
        kmem_bad_free(cp, buf, size);
    else if (size != 0)
        kmem_free_sized(elder, buf, size);
    else
        kmem_cache_free(elder, buf);
}

/* A buffer of the small layout, in a cache that is only traced, counted, or has
 * elders. Lock held; lets it go. */
static void free_small(struct kmem_cache *cp, void *buf, size_t size)
{
    struct kmem_cache *holder = cp;

    if (cp->cache_flags & KMF_ELDERS) {
        mm_unlock(&cp->cache_lock);
        holder = kmem_elder_holding(cp, buf);
        mm_lock(&cp->cache_lock);
        if (holder != cp || kmem_slab_of(buf)->slab_cache != cp) {
            mm_unlock(&cp->cache_lock);
            free_elsewhere(cp, buf, size);
            return;
        }
    }
    kmem_slab_give(cp, kmem_slab_of(buf),
                   (struct kmem_bufctl *)((char *)buf + cp->cache_bufctl),
                   false);
}

static void broken_chain(struct kmem_cache *cp, const void *buf)
{
    kmem_error(&(struct kmem_error_record){
        .error_kind = KMEM_ERROR_BUFCTL,
        .error_cache = cp,
        .error_buf = buf,
        .error_at = kmem_hash_bucket(cp, buf),
        .error_text = "the hash chain that the buffer must be on leads astray",
    });
}

/* Lock held; lets it go. */
static void free_slow(struct kmem_cache *cp, void *buf, size_t size)
{
    struct kmem_bufctl **link;
    bool astray = false;

    if ((cp->cache_flags & KMF_HASH) == 0) {
        free_small(cp, buf, size);
        return;
    }
    link = lookup(cp, buf, &astray);
    if (link == NULL) {
        mm_unlock(&cp->cache_lock);
        if (astray)
            broken_chain(cp, buf);
        else
            free_elsewhere(cp, buf, size);
    } else if (cp->cache_flags & KMF_DEBUG) {
        free_checked(cp, link, size);
    } else {
        struct kmem_bufctl *bcp = *link;

        *link = bcp->bufctl_next;
        kmem_slab_give(cp, bcp->bufctl_slab, bcp, true);
    }
}

static void free_any(struct kmem_cache *cp, void *buf, size_t size)
{
    uint32_t flags = cp->cache_flags; /* an elder may end with this */

    trace(cp, "free", buf);
    mm_lock(&cp->cache_lock);
    free_slow(cp, buf, size);
    if (flags & KMF_VERIFY)
        kmem_verify_count(cp);
}

void kmem_free_debug(struct kmem_cache *cp, void *buf)
{
    mm_unlock(&cp->cache_lock);
    free_any(cp, buf, 0);
}

/* While any class is debugged, a size that leads to another class than the
 * buffer's is found for all of them. */
void kmem_free_sized(struct kmem_cache *cp, void *buf, size_t size)
{
    const struct page *p = virt_to_page(buf);
    bool own = p != NULL && p->page_state == PAGE_SLAB && p->page_owner == cp;

    mm_barrier(); /* were cp's slabs an elder's by now, its flags said so */
    if (cp->cache_flags & (KMF_DEBUG | KMF_ELDERS))
        free_any(cp, buf, size);
    else if (own)
        kmem_cache_free(cp, buf);
    else
        kmem_bad_free(cp, buf, size);
}
