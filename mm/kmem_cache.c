/*
 * Caches: creation and destruction, and the front end (paper, sections 2.3,
 * 3.1 and 3.3).
 *
 * The hot path is the upper half of this file: an allocation takes the first
 * buffer of the first slab that has one, a free puts it back, both under the
 * cache's lock, with a single test for everything uncommon (section 6). The
 * slow paths are called last, as jumps, so that the hot path needs no frame.
 */
#include "kernel/lib/string.h"
#include "mm/debug/fail.h"
#include "mm/kmem_list.h"
#include "mm/debug/audit.h"
#include "mm/kmem_stat.h"

enum kmem_state kmem_state;
mm_lock_t kmem_list_lock = MM_LOCK_INIT("kmem cache list", MM_RANK_CACHE_LIST);
struct list kmem_caches = LIST_INIT(kmem_caches);

struct kmem_cache *kmem_slab_cache;
struct kmem_cache *kmem_bufctl_cache;
struct kmem_cache *kmem_hash_cache;

struct kmem_cache *kmem_bufctl_debug_cache;

/* The cache of caches describes itself; it is the only one not in a slab. */
struct kmem_cache kmem_cache_cache;

/* ---- the front end (3.1, 3.3) ------------------------------------------- */

static void *alloc_grow(struct kmem_cache *cp, int flags);

void *kmem_cache_alloc(struct kmem_cache *cp, int flags)
{
    struct kmem_bufctl *bcp;
    struct kmem_slab *sp;
    void *buf;

    mm_lock(&cp->cache_lock);
    if (unlikely(cp->cache_flags & KMF_SLOW))
        return cp->cache_alloc_slow(cp, flags);
    sp = cp->cache_freelist;
    bcp = sp->slab_head;
    if (unlikely(bcp == NULL))
        return alloc_grow(cp, flags);
    kmem_slab_take(cp, sp, bcp);
    buf = (char *)bcp - cp->cache_bufctl;
    mm_unlock(&cp->cache_lock);
    return buf;
}

void kmem_cache_free(struct kmem_cache *cp, void *buf)
{
    struct kmem_bufctl *bcp;

    mm_lock(&cp->cache_lock);
    if (unlikely(cp->cache_flags & KMF_SLOW_FREE)) {
        cp->cache_free_slow(cp, buf);
        return;
    }
    bcp = (struct kmem_bufctl *)((char *)buf + cp->cache_bufctl);
    kmem_slab_give(cp, kmem_slab_of(buf), bcp, false);
}

void kmem_slab_relink(struct kmem_cache *cp, struct kmem_slab *sp)
{
    if (sp->slab_head->bufctl_next == NULL)
        kmem_slab_to_front(cp, sp);
    if (sp->slab_refcnt == 0)
        kmem_slab_to_tail(cp, sp);
    mm_unlock(&cp->cache_lock);
}

/* Ends the use of a handle whose cache is gone: entomb() has left it without a
 * buffer and without a hash entry, so every use comes by here. */
static void refuse_destroyed(struct kmem_cache *cp)
{
    if ((cp->cache_flags & KMF_DESTROYED) == 0)
        return;
    if (MM_DEBUG)
        kmem_error(&(struct kmem_error_record){
            .error_kind = KMEM_ERROR_DESTROYED, .error_cache = cp});
    mm_panic("kmem: cache destroyed: %s (%p) is used after its end",
             cp->cache_name, (const void *)cp);
}

/* A buffer if there is one. No lock held. (The cache may have come into a
 * debugging mode since the caller looked.) */
static void *alloc_now(struct kmem_cache *cp, int flags)
{
    struct kmem_bufctl *bcp;
    void *buf = NULL;

    mm_lock(&cp->cache_lock);
    if (cp->cache_flags & KMF_DEBUG)
        return cp->cache_alloc_slow(cp, flags);
    bcp = cp->cache_freelist->slab_head;
    if (bcp != NULL) {
        buf = kmem_bufctl_buf(cp, bcp);
        kmem_slab_take(cp, cp->cache_freelist, bcp);
        if (cp->cache_flags & KMF_HASH)
            kmem_hash_enter(cp, bcp);
    }
    mm_unlock(&cp->cache_lock);
    return buf;
}

static void count_failure(struct kmem_cache *cp)
{
    mm_lock(&cp->cache_lock);
    cp->cache_fails++;
    mm_unlock(&cp->cache_lock);
    if (MM_DEBUG)

        kmem_event(KMEM_RING_FAIL, KMEM_WHY_NOMEM, cp, NULL, cp->cache_size);
}

bool kmem_grow_or_wait(struct kmem_cache *cp, int flags)
{
    refuse_destroyed(cp);
    if (kmem_cache_grow(cp))
        return true;
    if (flags & KM_NOSLEEP) {
        count_failure(cp);
        return false;
    }
    if (!mm_wait_for_memory())
        kmem_out_of_memory(cp->cache_name, cp->cache_size);
    return true;
}

/*
 * The cache has nothing left: grows it and tries again. Lock held. The hash
 * table follows only when the object is out: looking for memory for a larger
 * table may reap, and a new slab with nothing out would be the first to go.
 */
static __attribute__((noinline)) void *alloc_grow(struct kmem_cache *cp,
                                                  int flags)
{
    void *buf;

    mm_unlock(&cp->cache_lock);
    do {
        if (!kmem_grow_or_wait(cp, flags))
            return NULL;
    } while ((buf = alloc_now(cp, flags)) == NULL);
    if (cp->cache_flags & KMF_HASH)
        kmem_hash_rescale(cp);
    return buf;
}

void *kmem_alloc_large(struct kmem_cache *cp, int flags)
{
    struct kmem_slab *sp = cp->cache_freelist;
    struct kmem_bufctl *bcp = sp->slab_head;

    if (unlikely(bcp == NULL))
        return alloc_grow(cp, flags);
    kmem_slab_take(cp, sp, bcp);
    kmem_hash_enter(cp, bcp);
    mm_unlock(&cp->cache_lock);
    return bcp->bufctl_addr;
}

/* The hash table does not know the address: section 6.2. Lock held. (noipa: GCC
 * may not see that this does not return, or the jump to it becomes a call and
 * its callers need frames.) */
static __attribute__((noipa, cold)) void bad_free(struct kmem_cache *cp,
                                                  void *buf)
{
    mm_unlock(&cp->cache_lock);
    refuse_destroyed(cp);
    if (MM_DEBUG)
        kmem_bad_free(cp, buf, 0);
    else
        mm_panic("kmem_cache_free: %p is not allocated from cache %s", buf,
                 cp->cache_name);
}

void kmem_free_large(struct kmem_cache *cp, void *buf)
{
    struct kmem_bufctl **link = kmem_hash_bucket(cp, buf);
    struct kmem_bufctl *bcp;

    for (; (bcp = *link) != NULL; link = &bcp->bufctl_next) {
        if (likely(bcp->bufctl_addr == buf)) {
            *link = bcp->bufctl_next;
            kmem_slab_give(cp, bcp->bufctl_slab, bcp, true);
            return;
        }
        cp->cache_hash_depth++;
    }
    bad_free(cp, buf);
}

void kmem_out_of_memory(const char *name, size_t size)
{
    mm_panic("out of memory: KM_SLEEP for %zu bytes of %s, and nothing left "
             "to reap",
             size, name);
}

/* ---- creation (2.3) ----------------------------------------------------- */

/* NULL, or what is wrong with the name of a new cache. */
static const char *name_error(const char *name)
{
    size_t n = 0;

    if (name == NULL)
        return "the name is NULL";
    for (; name[n] != '\0'; n++) {
        char c = name[n];

        if (n == KMEM_NAME_MAX)
            return "the name is longer than 31 characters";
        if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c >= '0' && c <= '9' && n > 0)))
            return "the name is not an identifier (letters, digits, _)";
    }
    return n == 0 ? "the name is empty" : NULL;
}

/* NULL, or what is wrong with the arguments of kmem_cache_create. */
static const char *create_error(const char *name, size_t size, size_t align,
                                bool constructed)
{
    const char *error = name_error(name);

    if (error != NULL)
        return error;
    if (size == 0)
        return "the size is 0";
    if (size > KMEM_SIZE_MAX)
        return "the size is more than 1 MiB";
    if ((align & (align - 1)) != 0)
        return "the alignment is not a power of two";
    if (align > PAGE_SIZE)
        return "the alignment is more than a page";
    if (kmem_state == KMEM_DOWN)
        return "the allocator is not up yet";
    if (kmem_state == KMEM_PARTIAL && kmem_is_large(size, align, constructed))
        return "large objects cannot be cached yet";
    if (kmem_state == KMEM_UP && kmem_cache_find(name) != NULL)
        return "there is a cache of that name";
    return NULL;
}

static uint32_t caches_made;

void kmem_cache_setup(struct kmem_cache *cp, const char *name, size_t size,
                      size_t align, kmem_ctor_t *ctor, kmem_dtor_t *dtor,
                      const struct kmem_supplier *supplier)
{
    *cp = (struct kmem_cache){
        .cache_size = size,
        .cache_align = MAX(align, (size_t)KMEM_ALIGN_MIN),
        .cache_ctor = ctor,
        .cache_dtor = dtor,
        .cache_alloc_slow = kmem_alloc_large,
        .cache_free_slow = kmem_free_large,
        .cache_number = ++caches_made,
        .cache_kind =
            kmem_state == KMEM_UP ? KMEM_KIND_NAMED : KMEM_KIND_INTERNAL,
    };
    mm_lock_init(&cp->cache_lock, "kmem cache", MM_RANK_CACHE);
    memcpy(cp->cache_name, name, strlen(name) + 1);
    if (supplier != NULL)
        cp->cache_supplier = *supplier;
    cp->cache_null.slab_cache = cp;
    list_init(&cp->cache_null.slab_link);
    cp->cache_freelist = &cp->cache_null;
    if (MM_DEBUG)
        cp->cache_flags = kmem_debug_flags(cp);
    kmem_geometry(cp);
    if (MM_DEBUG)
        kmem_slow_paths(cp);
}

/* The cache of that name; name NULL: the one at `handle`, which is not to be
 * trusted. NULL if the list of caches has none such. */
static struct kmem_cache *lookup(const char *name, const void *handle)
{
    struct kmem_cache *found = NULL;

    mm_lock(&kmem_list_lock);
    list_for_each (l, &kmem_caches) {
        struct kmem_cache *cp = list_entry(l, struct kmem_cache, cache_link);

        if (name == NULL ? handle == cp : strcmp(name, cp->cache_name) == 0) {
            found = cp;
            break;
        }
    }
    mm_unlock(&kmem_list_lock);
    return found;
}

struct kmem_cache *kmem_cache_find(const char *name)
{
    return lookup(name, NULL);
}

static void publish(struct kmem_cache *cp)
{
    mm_lock(&kmem_list_lock);
    list_insert_before(&kmem_caches, &cp->cache_link);
    mm_unlock(&kmem_list_lock);
}

struct kmem_cache *kmem_cache_create_from(const char *name, size_t size,
                                          size_t align, kmem_ctor_t *ctor,
                                          kmem_dtor_t *dtor,
                                          const struct kmem_supplier *supplier)
{
    const char *error =
        create_error(name, size, align, ctor != NULL || dtor != NULL);
    struct kmem_cache *cp;

    if (error == NULL && supplier != NULL &&
        (supplier->getpages == NULL || supplier->freepages == NULL))
        error = "the page supplier lacks a function";
    if (error != NULL) {
        mm_print("kmem_cache_create: %s: %s\n", name == NULL ? "?" : name,
                 error);
        return NULL;
    }
    cp = kmem_cache_alloc(&kmem_cache_cache, KM_NOSLEEP);
    if (cp != NULL) {
        kmem_cache_setup(cp, name, size, align, ctor, dtor, supplier);
        kmem_transfer_begin();
        if ((cp->cache_flags & KMF_HASH) == 0 || kmem_hash_create(cp)) {
            publish(cp);
            kmem_transfer_end();
            return cp;
        }
        kmem_transfer_end();
        cp->cache_flags |= KMF_DESTROYED;
        kmem_cache_free(&kmem_cache_cache, cp);
    }
    mm_print("kmem_cache_create: %s: no memory\n", name);
    return NULL;
}

struct kmem_cache *kmem_cache_create(const char *name, size_t size,
                                     size_t align, kmem_ctor_t *ctor,
                                     kmem_dtor_t *dtor)
{
    return kmem_cache_create_from(name, size, align, ctor, dtor, NULL);
}

/* ---- destruction (2.3) -------------------------------------------------- */

/* Takes the cache off the list unless objects are out; nothing can be
 * allocated from it after that. 0, or the error that stands against it. */
static int retire(struct kmem_cache *cp)
{
    int error = 0;

    mm_lock(&kmem_list_lock);
    mm_lock(&cp->cache_lock);
    if (kmem_reaping || cp->cache_busy != 0) {
        error = -KMEM_EAGAIN;
    } else if (kmem_inuse(cp) != 0 || cp->cache_elders != NULL) {
        error = -KMEM_EBUSY;
    } else {
        cp->cache_flags |= KMF_DESTROYED;
        list_remove(&cp->cache_link);
    }
    mm_unlock(&cp->cache_lock);
    mm_unlock(&kmem_list_lock);
    return error;
}

/* What may be said against ending this cache; 0 if it has been retired. */
static int destroy_error(struct kmem_cache *cp)
{
    int error;

    if (lookup(NULL, cp) == NULL) {
        mm_print("kmem_cache_destroy: %p is not a cache, or no longer\n",
                 (void *)cp);
        return -KMEM_EINVAL;
    }
    if (cp->cache_kind != KMEM_KIND_NAMED || cp->cache_heir != NULL) {
        mm_print("kmem_cache_destroy: %s: belongs to the allocator itself\n",
                 cp->cache_name);
        return -KMEM_EPERM;
    }
    if (MM_DEBUG)
        kmem_elders_collect();
    error = retire(cp);
    if (error == -KMEM_EBUSY && MM_DEBUG)
        kmem_report_live(cp);
    else if (error == -KMEM_EBUSY)
        mm_print("kmem_cache_destroy: %s: refused, %u still out\n",
                 cp->cache_name, (unsigned)kmem_inuse(cp));
    else if (error != 0)
        mm_print("kmem_cache_destroy: %s: not while it grows or is reaped\n",
                 cp->cache_name);
    return error;
}

/* Leaves a handle that finds nothing: no buffer and no hash entry. */
static void entomb(struct kmem_cache *cp)
{
    static struct kmem_bufctl *nothing[1];

    cp->cache_freelist = &cp->cache_null;
    cp->cache_alloc_slow = kmem_alloc_large;
    cp->cache_free_slow = kmem_free_large;
    cp->cache_hash = nothing;
    cp->cache_hash_mask = 0;
}

int kmem_cache_destroy(struct kmem_cache *cp)
{
    int error = destroy_error(cp);
    struct kmem_slab *sp;

    if (error != 0)
        return error;
    kmem_transfer_begin();
    if (MM_DEBUG)
        kmem_unmapped_release(cp);
    while ((sp = kmem_slab_next(&cp->cache_null)) != &cp->cache_null) {
        list_remove(&sp->slab_link);
        kmem_slab_destroy(cp, sp);
    }
    if (cp->cache_flags & KMF_HASH)
        kmem_hash_destroy(cp);
    kmem_transfer_end();
    entomb(cp);
    kmem_cache_free(&kmem_cache_cache, cp);
    return 0;
}

/* ---- coming up ---------------------------------------------------------- */

static struct kmem_cache *must_create(const char *name, size_t size)
{
    struct kmem_cache *cp = kmem_cache_create(name, size, 0, NULL, NULL);

    if (cp == NULL)
        mm_panic("kmem_init: no memory for the %s cache", name);
    return cp;
}

/*
 * The allocator is its own first client. One cache is written by hand, the
 * cache of caches; being small it needs no other. Those that the large layout
 * stands on are small as well and come next; with them everything works.
 */
void kmem_init_caches(void)
{
    kmem_cache_setup(&kmem_cache_cache, "kmem_cache", sizeof(struct kmem_cache),
                     0, NULL, NULL, NULL);
    publish(&kmem_cache_cache);
    kmem_state = KMEM_PARTIAL;
    kmem_slab_cache = must_create("kmem_slab", sizeof(struct kmem_slab));
    kmem_bufctl_cache = must_create("kmem_bufctl", sizeof(struct kmem_bufctl));
    kmem_hash_cache = must_create("kmem_hash", KMEM_HASH_SMALL / 2);
    if (MM_DEBUG)
        kmem_bufctl_debug_cache =
            must_create("kmem_bufctl_debug", sizeof(struct kmem_bufctl_debug));
    kmem_state = KMEM_LARGE;
}
