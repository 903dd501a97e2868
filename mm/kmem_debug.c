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
#include "mm/kmem_fail.h"
#include "mm/kmem_impl.h"
#include "mm/kmem_log.h"
#include "mm/kmem_stat.h"

/* ---- modes -------------------------------------------------------------- */

static unsigned boot_modes;
static const char *boot_names;

static bool in_mode(const struct kmem_cache *cp, unsigned modes)
{
    return (cp->cache_flags & KMF_MODE(modes)) != 0;
}

unsigned kmem_debug_modes(const struct kmem_cache *cp)
{
    return (cp->cache_flags & KMF_MODES) >> KMF_MODES_SHIFT;
}

bool kmem_debug_letters(const char *text, const char *end, unsigned *modes,
                        char *bad)
{
    unsigned set = 0;

    for (; text != end && *text != '\0'; text++) {
        char c = *text >= 'a' && *text <= 'z' ? (char)(*text - 32) : *text;
        const char *at = strchr(KMEM_DEBUG_LETTERS, c);

        if (at == NULL) {
            *bad = *text;
            return false;
        }
        set |= 1u << (at - KMEM_DEBUG_LETTERS);
    }
    *modes = set;
    return true;
}

const char *kmem_debug_text(unsigned modes, char *text)
{
    size_t n = 0;

    for (unsigned i = 0; KMEM_DEBUG_LETTERS[i] != '\0'; i++)
        if (modes >> i & 1)
            text[n++] = KMEM_DEBUG_LETTERS[i];
    if (n == 0)
        text[n++] = '-';
    text[n] = '\0';
    return text;
}

void kmem_debug_boot(unsigned modes, const char *names)
{
    boot_modes = modes;
    boot_names = names;
}

/* Whether `name` is one of the words in `names`, with commas between them. */
static bool listed(const char *names, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = names; p != NULL && *p != '\0';) {
        const char *comma = strchr(p, ',');
        size_t len = comma == NULL ? strlen(p) : (size_t)(comma - p);

        if (len == n && strncmp(p, name, n) == 0)
            return true;
        p = comma == NULL ? NULL : comma + 1;
    }
    return false;
}

unsigned kmem_debug_wanted(const char *name)
{
    return boot_names == NULL || listed(boot_names, name) ? boot_modes : 0;
}

void kmem_slow_paths(struct kmem_cache *cp)
{
    bool slow = (cp->cache_flags & KMF_SLOW & ~KMF_HASH) != 0;

    cp->cache_alloc_slow = slow ? kmem_alloc_debug : kmem_alloc_large;
    cp->cache_free_slow = slow ? kmem_free_debug : kmem_free_large;
    kmem_direct_update();
}

void kmem_debug_init(void)
{
    if (boot_modes & KMEM_DEBUG_U)
        kmem_log_create();
}

bool kmem_debug_geometry(struct kmem_cache *cp)
{
    size_t size = ROUND_UP(cp->cache_size, cp->cache_align);
    size_t guard = in_mode(cp, KMEM_DEBUG_Z) ? KMEM_GUARD_FRONT : 0;
    size_t bytes;

    if (!in_mode(cp, KMEM_DEBUG_LAYOUT))
        return false;
    cp->cache_flags |= KMF_HASH | KMF_DEBUG;
    if (in_mode(cp, KMEM_DEBUG_G)) {
        cp->cache_front = -size & PAGE_MASK;
        cp->cache_guard = size;
        cp->cache_chunk = cp->cache_front + size + PAGE_SIZE;
        cp->cache_slab_pages = cp->cache_chunk >> PAGE_SHIFT;
        bytes = cp->cache_front + cp->cache_chunk;
    } else {
        cp->cache_front = guard == 0 ? 0 : cp->cache_align;
        cp->cache_chunk = ROUND_UP(cp->cache_size + 2 * guard, cp->cache_align);
        cp->cache_guard = cp->cache_chunk - guard;
        cp->cache_slab_pages =
            kmem_large_pages(cp->cache_front + cp->cache_chunk);
        bytes = cp->cache_slab_pages * PAGE_SIZE;
    }
    cp->cache_slab_chunks = (bytes - cp->cache_front) / cp->cache_chunk;
    cp->cache_colour_max =
        cp->cache_front +
        ((bytes - cp->cache_front) % cp->cache_chunk & ~(cp->cache_align - 1));
    cp->cache_colour = cp->cache_front;
    return true;
}

/* ---- errors ------------------------------------------------------------- */

static const char *damage_report(struct kmem_cache *cp,
                                 const struct kmem_bufctl_debug *bdp)
{
    enum kmem_error kind;
    const void *at;
    const char *why = kmem_debug_damage(cp, bdp, &at, &kind);

    if (why != NULL)
        kmem_error_damage(cp, bdp, kind, at);
    return why;
}

/* Puts a buffer aside that is out. */
static void set_aside(struct kmem_bufctl_debug *bdp)
{
    bdp->bufctl_state = KMEM_BUF_BAD;
}

/* ---- the state of one buffer -------------------------------------------- */

static struct kmem_bufctl_debug *debug_of(const struct kmem_bufctl *bcp)
{
    return (struct kmem_bufctl_debug *)bcp;
}

/* The bytes of redzone before a buffer: none where the page before is never
 * there. */
static size_t front_guard(const struct kmem_cache *cp)
{
    return MIN(cp->cache_front, (size_t)KMEM_GUARD_FRONT);
}

const char *kmem_debug_damage(const struct kmem_cache *cp,
                              const struct kmem_bufctl_debug *bdp,
                              const void **at, enum kmem_error *kind)
{
    const char *buf = bdp->bufctl.bufctl_addr;
    bool free = bdp->bufctl_state == KMEM_BUF_FREE;
    size_t size = free ? cp->cache_size : bdp->bufctl_size;

    if (in_mode(cp, KMEM_DEBUG_Z)) {
        *kind = KMEM_ERROR_END;
        *at = kmem_filled_otherwise(buf + size, cp->cache_guard - size,
                                    KMEM_GUARD_WORD);
        if (*at != NULL)
            return "redzone behind a buffer is damaged";
        *kind = KMEM_ERROR_START;
        *at = kmem_filled_otherwise(buf - front_guard(cp), front_guard(cp),
                                    KMEM_GUARD_WORD);
        if (*at != NULL)
            return "redzone before a buffer is damaged";
    }
    *kind = KMEM_ERROR_MODIFIED;
    if (free && in_mode(cp, KMEM_DEBUG_P)) {
        *at = kmem_filled_otherwise(buf, cp->cache_size, KMEM_FREED);
        if (*at != NULL)
            return "free buffer is not deadbeef throughout";
    }
    return NULL;
}

/* G: the pages that a buffer lies on, but not the one behind it. */
static void map_buffer(const struct kmem_cache *cp, void *buf, bool present)
{
    char *page = (char *)buf - cp->cache_front;

    if (!in_mode(cp, KMEM_DEBUG_G))
        return;
    for (size_t i = 0; i + 1 < cp->cache_slab_pages; i++)
        mm_page_map(page + i * PAGE_SIZE, present);
}

static void fill_guard(const struct kmem_cache *cp, void *buf, size_t size)
{
    if (in_mode(cp, KMEM_DEBUG_Z))
        kmem_fill((char *)buf + size, cp->cache_guard - size, KMEM_GUARD_WORD);
}

static void fill(const struct kmem_cache *cp, void *buf, uint32_t word)
{
    if (in_mode(cp, KMEM_DEBUG_P))
        kmem_fill(buf, cp->cache_size, word);
}

void kmem_debug_slab(struct kmem_cache *cp, struct kmem_slab *sp)
{
    size_t bytes = cp->cache_slab_pages * PAGE_SIZE;

    if (in_mode(cp, KMEM_DEBUG_Z))
        kmem_fill(sp->slab_base, bytes, KMEM_GUARD_WORD);
    for (size_t i = 0; i < sp->slab_chunks; i++) {
        fill(cp, kmem_slab_chunk(sp, i), KMEM_FREED);
        map_buffer(cp, kmem_slab_chunk(sp, i), false);
    }
    if (in_mode(cp, KMEM_DEBUG_G))
        mm_page_map((char *)sp->slab_base + bytes - PAGE_SIZE, false);
}

void kmem_debug_slab_end(struct kmem_cache *cp, struct kmem_slab *sp)
{
    const struct kmem_bufctl *bcp = sp->slab_head;

    if (in_mode(cp, KMEM_DEBUG_G))
        mm_page_map((char *)sp->slab_base +
                        (cp->cache_slab_pages - 1) * PAGE_SIZE,
                    true);
    for (; bcp != NULL; bcp = bcp->bufctl_next) {
        map_buffer(cp, bcp->bufctl_addr, true);
        damage_report(cp, debug_of(bcp));
    }
}

/* ---- audit and trace ---------------------------------------------------- */

static void note(struct kmem_cache *cp, struct kmem_bufctl_debug *bdp,
                 enum kmem_op op)
{
    struct kmem_transaction *trans =
        op == KMEM_OP_ALLOC ? &bdp->bufctl_alloc : &bdp->bufctl_free;

    if (!in_mode(cp, KMEM_DEBUG_U))
        return;
    kmem_transaction(trans);
    kmem_log_enter(op, cp, bdp);
}

static void trace(const struct kmem_cache *cp, const char *what,
                  const void *buf)
{
    struct kmem_transaction t;
    char caller[64] = "?";

    if (!in_mode(cp, KMEM_DEBUG_T))
        return;
    kmem_transaction(&t);
    if (t.trans_depth != 0)
        mm_symbol(t.trans_stack[0], caller, sizeof(caller));
    mm_print("trace: %s %s %p by %s, task %u\n", what, cp->cache_name, buf,
             caller, (unsigned)t.trans_task);
}

/* ---- kmem_verify at every N-th operation -------------------------------- */

static uint32_t verify_interval;
static uint32_t verify_left;

uint32_t kmem_verify_interval(void)
{
    return verify_interval;
}

void kmem_verify_every(uint32_t n)
{
    verify_interval = verify_left = n;
    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp)) {
        mm_lock(&cp->cache_lock);
        cp->cache_flags &= ~KMF_VERIFY;
        cp->cache_flags |= n != 0 ? KMF_VERIFY : 0;
        kmem_slow_paths(cp);
        mm_unlock(&cp->cache_lock);
    }
}

/* One operation is done. A verification allocates nothing, so that it cannot
 * come by here again. What it finds stays so: it is said once, and that is the
 * end of it until kmem_verify_every is called again. */
static void count_operation(const struct kmem_cache *cp)
{
    const char *where;
    const char *why;

    if ((cp->cache_flags & KMF_VERIFY) == 0 || verify_left == 0 ||
        --verify_left != 0)
        return;
    verify_left = verify_interval;
    why = kmem_verify(&where);
    if (why == NULL)
        return;
    verify_left = 0;
    kmem_error(
        &(struct kmem_error_record){.error_kind = KMEM_ERROR_VERIFY,
                                    .error_cache = (struct kmem_cache *)cp,
                                    .error_text = why});
}

/* ---- allocation --------------------------------------------------------- */

/* What is wrong with a slab's data, or NULL. */
static const char *slab_error(const struct kmem_cache *cp,
                              const struct kmem_slab *sp)
{
    if (sp->slab_cache != cp)
        return "it does not point to its cache";
    if (sp->slab_chunks != cp->cache_slab_chunks ||
        sp->slab_refcnt > sp->slab_chunks)
        return "its counts are impossible";
    if (((uintptr_t)sp->slab_base & PAGE_MASK) != 0 ||
        sp->slab_colour > cp->cache_colour_max)
        return "it does not say where its buffers are";
    return NULL;
}

/* What is wrong with the head of a slab's freelist, or NULL. */
static const char *head_error(const struct kmem_cache *cp,
                              const struct kmem_slab *sp,
                              const struct kmem_bufctl *bcp,
                              enum kmem_error *kind)
{
    const char *why = slab_error(cp, sp);

    *kind = why != NULL ? KMEM_ERROR_SLAB : KMEM_ERROR_FREELIST;
    if (why != NULL)
        return why;
    if (!kmem_bufctl_plausible(cp, bcp))
        return "it leads astray";
    if (bcp->bufctl_slab != sp)
        return "it leads to another slab's buffer";
    if (debug_of(bcp)->bufctl_state != KMEM_BUF_FREE)
        return "it leads to a buffer that is out";
    return NULL;
}

/* The buffers of a slab that are out, by the hash table. Lock held. */
static uint32_t out_of(const struct kmem_cache *cp, const struct kmem_slab *sp)
{
    uint32_t left = kmem_inuse(cp);
    uint32_t out = 0;

    for (size_t i = 0; i <= cp->cache_hash_mask; i++)
        for (const struct kmem_bufctl *bcp = cp->cache_hash[i];
             left != 0 && kmem_bufctl_plausible(cp, bcp);
             bcp = bcp->bufctl_next, left--)
            out += bcp->bufctl_slab == sp;
    return out;
}

/* A slab whose freelist cannot be trusted gives nothing any more: what it
 * still had counts as out. Lock held. */
static void give_up_slab(struct kmem_cache *cp, struct kmem_slab *sp)
{
    uint32_t out = out_of(cp, sp);

    sp->slab_cache = cp;
    sp->slab_chunks = (uint32_t)cp->cache_slab_chunks;
    sp->slab_refcnt = sp->slab_chunks;
    sp->slab_head = NULL;
    cp->cache_lost += sp->slab_chunks - out;
    cp->cache_allocs += sp->slab_chunks - out;
    if (out == 0)
        kmem_complete_lost(cp);
    cp->cache_full++;
    cp->cache_freelist = kmem_slab_next(sp);
}

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
        *why = head_error(cp, sp, bcp, &kind);
    if (*why != NULL) {
        give_up_slab(cp, sp);
        mm_unlock(&cp->cache_lock);
        kmem_error(&(struct kmem_error_record){
            .error_kind = kind,
            .error_cache = cp,
            .error_owner = cp,
            .error_buf = kind == KMEM_ERROR_SLAB ? (void *)sp : bcp,
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
 * is set aside. No lock held: it is nobody else's. */
static void *hand_out(struct kmem_cache *cp, struct kmem_bufctl_debug *bdp,
                      size_t size)
{
    void *buf = bdp->bufctl.bufctl_addr;

    map_buffer(cp, buf, true);
    if (damage_report(cp, bdp) != NULL) {
        set_aside(bdp);
        return NULL;
    }
    fill(cp, buf, KMEM_UNINIT);
    if (kmem_per_alloc(cp) && cp->cache_ctor != NULL)
        cp->cache_ctor(buf, cp->cache_size);
    fill_guard(cp, buf, size);
    bdp->bufctl_size = (uint32_t)size;
    bdp->bufctl_state = KMEM_BUF_USED;
    note(cp, bdp, KMEM_OP_ALLOC);
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
        if (bcp != NULL) {
            buf = hand_out(cp, debug_of(bcp), size);
            leave_busy(cp);
        }
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

/* Lock held; lets it go. */
static void *alloc_slow(struct kmem_cache *cp, size_t size, int flags)
{
    void *buf;

    if (kmem_fail_alloc(cp, flags)) {
        cp->cache_fails++;
        mm_unlock(&cp->cache_lock);
        kmem_event(KMEM_RING_FAIL, KMEM_WHY_INJECTED, cp, NULL, size);
        return NULL;
    }
    while ((buf = alloc_once(cp, size)) == NULL) {
        if (!kmem_cache_more(cp, flags))
            return NULL;
        if (cp->cache_flags & KMF_HASH)
            kmem_hash_rescale(cp);
        mm_lock(&cp->cache_lock);
    }
    trace(cp, "alloc", buf);
    count_operation(cp);
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

/* ---- free --------------------------------------------------------------- */

/* The place that points to the buffer's bufctl in the hash table, or NULL.
 * Lock held. */
static struct kmem_bufctl **lookup(struct kmem_cache *cp, const void *buf)
{
    struct kmem_bufctl **link = kmem_hash_bucket(cp, buf);
    uint32_t left = kmem_inuse(cp);

    for (; *link != NULL && left-- != 0; link = &(*link)->bufctl_next) {
        if (!kmem_bufctl_plausible(cp, *link))
            return NULL;
        if ((*link)->bufctl_addr == buf)
            return link;
        cp->cache_hash_depth++;
    }
    return NULL;
}

/* Whether the buffer may be freed so; if not, it has been reported and set
 * aside. `size` 0: the caller does not know. No lock held. */
static bool right_free(struct kmem_cache *cp, struct kmem_bufctl_debug *bdp,
                       size_t size)
{
    if (size != 0 && size != bdp->bufctl_size) {
        kmem_error(
            &(struct kmem_error_record){.error_kind = KMEM_ERROR_SIZE,
                                        .error_cache = cp,
                                        .error_owner = cp,
                                        .error_buf = bdp->bufctl.bufctl_addr,
                                        .error_base = bdp->bufctl.bufctl_addr,
                                        .error_size = bdp->bufctl_size,
                                        .error_size_free = size});
        set_aside(bdp);
        return false;
    }
    if (damage_report(cp, bdp) == NULL)
        return true;
    set_aside(bdp);
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
    fill_guard(cp, buf, cp->cache_size);
    bdp->bufctl_state = KMEM_BUF_FREE;
    map_buffer(cp, buf, false);
}

/* What is wrong with the bufctl of a buffer that is out, or NULL. */
static const char *bufctl_error(const struct kmem_cache *cp,
                                const struct kmem_bufctl_debug *bdp)
{
    const struct kmem_slab *sp = bdp->bufctl.bufctl_slab;

    if (bdp->bufctl_state == KMEM_BUF_BAD)
        return "its buffer was set aside after an error";
    if (bdp->bufctl_state != KMEM_BUF_USED)
        return "it does not say that its buffer is out";
    if (!kmem_slab_plausible(sp))
        return "it does not point to a slab";
    return slab_error(cp, sp);
}

/* A buffer of the debug layout, whose bufctl *link is. Lock held; lets it go.
 * It leaves the table first: a second free must not find it. */
static void free_checked(struct kmem_cache *cp, struct kmem_bufctl **link,
                         size_t size)
{
    struct kmem_bufctl *bcp = *link;
    struct kmem_bufctl_debug *bdp = debug_of(bcp);
    const char *why = bufctl_error(cp, bdp);

    if (why != NULL) {
        set_aside(bdp);
        mm_unlock(&cp->cache_lock);
        kmem_error(&(struct kmem_error_record){.error_kind = KMEM_ERROR_BUFCTL,
                                               .error_cache = cp,
                                               .error_owner = cp,
                                               .error_buf = bcp->bufctl_addr,
                                               .error_at = bcp,
                                               .error_text = why});
        return;
    }
    *link = bcp->bufctl_next;
    cp->cache_busy++;
    mm_unlock(&cp->cache_lock);
    if (right_free(cp, bdp, size)) {
        take_back(cp, bdp);
        mm_lock(&cp->cache_lock);
        cp->cache_busy--;
        kmem_slab_give(cp, bcp->bufctl_slab, bcp, true);
    } else {
        mm_lock(&cp->cache_lock);
        cp->cache_busy--;
        kmem_hash_enter(cp, bcp);
        mm_unlock(&cp->cache_lock);
    }
    if (in_mode(cp, KMEM_DEBUG_S))
        kmem_unmap_complete(cp);
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
static void free_small(struct kmem_cache *cp, void *buf)
{
    struct kmem_cache *holder = cp;

    if (cp->cache_flags & KMF_ELDERS) {
        mm_unlock(&cp->cache_lock);
        holder = kmem_elder_holding(cp, buf);
        if (holder != cp) {
            free_elsewhere(cp, buf, 0);
            return;
        }
        mm_lock(&cp->cache_lock);
    }
    kmem_slab_give(cp, kmem_slab_of(buf),
                   (struct kmem_bufctl *)((char *)buf + cp->cache_bufctl),
                   false);
}

/* Lock held; lets it go. */
static void free_slow(struct kmem_cache *cp, void *buf, size_t size)
{
    struct kmem_bufctl **link;

    if ((cp->cache_flags & KMF_HASH) == 0) {
        free_small(cp, buf);
        return;
    }
    link = lookup(cp, buf);
    if (link == NULL) {
        mm_unlock(&cp->cache_lock);
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
    trace(cp, "free", buf);
    mm_lock(&cp->cache_lock);
    free_slow(cp, buf, size);
    count_operation(cp);
}

void kmem_free_debug(struct kmem_cache *cp, void *buf)
{
    mm_unlock(&cp->cache_lock);
    free_any(cp, buf, 0);
}

void kmem_free_sized(struct kmem_cache *cp, void *buf, size_t size)
{
    if ((cp->cache_flags & (KMF_DEBUG | KMF_ELDERS)) == 0)
        kmem_cache_free(cp, buf);
    else
        free_any(cp, buf, size);
}
