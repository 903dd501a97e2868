/*
 * Caches: the front end, creation and destruction (paper, sections 2.3, 3.1
 * and 3.3).
 *
 * An allocation takes the first buffer of the first slab that has one; a free
 * puts it back at the head of its slab's freelist. Every allocation calls
 * kmem_slab_take and every free kmem_slab_give, with the cache's lock held; so
 * do the debugging modes. A cache without a free buffer grows by one slab: that
 * is the back end, mm/kmem_slab.c.
 *
 * One test of cache_flags finds the uncommon cases: large objects (3.2.3),
 * debugging (6) and destroyed caches.
 */
#include "kernel/lib/string.h"
#include "mm/kmem_impl.h"

#if MM_MAGAZINES /* their front end, mm/kmem_mag.c, is before this one */
#define kmem_cache_alloc kmem_slab_alloc
#define kmem_cache_free  kmem_slab_free
#endif

enum kmem_state kmem_state;
mm_lock_t kmem_list_lock =
    MM_LOCK_INIT("kmem cache list", LOCK_RANK_CACHE_LIST);
struct list kmem_caches = LIST_INIT(kmem_caches);

struct kmem_cache *kmem_slab_cache, *kmem_bufctl_cache, *kmem_hash_cache;

/* The cache of all struct kmem_cache but this one, which is in no slab. */
struct kmem_cache kmem_cache_cache;

/* ---- freelist management (3.3) ------------------------------------------ */

/* A free slab is used: T falls, and m if it is then more than T (3.4). */
inline void kmem_ws_take(struct kmem_cache *cp)
{
    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    cp->cache_free_slabs--;
    if (cp->cache_ws_min > cp->cache_free_slabs)
        cp->cache_ws_min = cp->cache_free_slabs;
}

/* Takes the first buffer of the first slab that has one; NULL if none has. */
inline struct kmem_bufctl *kmem_slab_take(struct kmem_cache *cp)
{
    struct kmem_slab *sp = cp->cache_freelist;
    struct kmem_bufctl *bcp = sp->slab_head;

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    if (unlikely(bcp == NULL))
        return NULL;
    if (unlikely(sp->slab_refcnt == 0))
        kmem_ws_take(cp);
    cp->cache_allocs++;
    sp->slab_refcnt++;
    sp->slab_head = bcp->bufctl_next;
    if (unlikely(sp->slab_head == NULL)) {
        cp->cache_freelist = kmem_slab_next(sp);
        cp->cache_full_slabs++;
    }
    return bcp;
}

/* A full slab got a buffer back: it becomes the first with a free buffer. (The
 * slab that became full last is in the right place already.) */
inline void kmem_slab_to_front(struct kmem_cache *cp, struct kmem_slab *sp)
{
    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    if (sp->slab_link.next != &cp->cache_freelist->slab_link) {
        list_remove(&sp->slab_link);
        list_insert_before(&cp->cache_freelist->slab_link, &sp->slab_link);
    }
    cp->cache_freelist = sp;
    cp->cache_full_slabs--;
}

/* A slab got its last buffer back: it goes to the free slabs at the tail. */
inline void kmem_slab_to_tail(struct kmem_cache *cp, struct kmem_slab *sp)
{
    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    sp->slab_since = MM_UNLOCKED(kmem_updates);
    cp->cache_free_slabs++;
    if (sp->slab_link.next == &cp->cache_null.slab_link)
        return;
    if (cp->cache_freelist == sp)
        cp->cache_freelist = kmem_slab_next(sp);
    list_remove(&sp->slab_link);
    list_insert_before(&cp->cache_null.slab_link, &sp->slab_link);
}

/* Puts a buffer back at the head of its slab's freelist. */
inline void kmem_slab_give(struct kmem_cache *cp, struct kmem_slab *sp,
                           struct kmem_bufctl *bcp)
{
    struct kmem_bufctl *head = sp->slab_head;

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    bcp->bufctl_next = head;
    sp->slab_head = bcp;
    cp->cache_frees++;
    if (unlikely(head == NULL))
        kmem_slab_to_front(cp, sp);
    sp->slab_refcnt--;
    if (unlikely(sp->slab_refcnt == 0))
        kmem_slab_to_tail(cp, sp);
}

/* ---- from a large buffer to its bufctl (3.2.3) -------------------------- */

/* The address without its low bits is the index, modulo the table's size.
 * mm/kmem_hash.c creates the table and resizes it. */
inline struct kmem_bufctl **kmem_hash_bucket(const struct kmem_cache *cp,
                                             const void *buf)
{
    return &cp->cache_hash[(uintptr_t)buf >> cp->cache_hash_shift &
                           cp->cache_hash_mask];
}

/* Enters the bufctl of a buffer that is being allocated. */
inline void kmem_hash_enter(struct kmem_cache *cp, struct kmem_bufctl *bcp)
{
    struct kmem_bufctl **bucket = kmem_hash_bucket(cp, bcp->bufctl_addr);

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    bcp->bufctl_next = *bucket;
    *bucket = bcp;
}

/* Removes a buffer's bufctl from the table and returns it; NULL: no such buffer
 * is allocated (6.2). */
inline struct kmem_bufctl *kmem_hash_remove(struct kmem_cache *cp,
                                            const void *buf)
{
    struct kmem_bufctl **link = kmem_hash_bucket(cp, buf);
    struct kmem_bufctl *bcp;

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    for (; (bcp = *link) != NULL; link = &bcp->bufctl_next) {
        if (likely(bcp->bufctl_addr == buf)) {
            *link = bcp->bufctl_next;
            return bcp;
        }
        cp->cache_hash_depth++;
    }
    return NULL;
}

/* ---- buffers of either layout ------------------------------------------- */

/* The next free buffer; NULL if the cache has none. */
static void *take(struct kmem_cache *cp)
{
    struct kmem_bufctl *bcp = kmem_slab_take(cp);

    if (bcp == NULL)
        return NULL;
    if ((cp->cache_flags & KMF_HASH) == 0)
        return (char *)bcp - cp->cache_bufctl;
    kmem_hash_enter(cp, bcp);
    return bcp->bufctl_addr;
}

#if MM_MAGAZINES
/* Takes at most `n` buffers, all of the first slab that has one, into `to`, the
 * first to the end. Returns how many. */
uint32_t kmem_take_some(struct kmem_cache *cp, void **to, uint32_t n)
{
    const struct kmem_slab *sp = cp->cache_freelist;

    n = MIN(n, (uint32_t)sp->slab_chunks - sp->slab_refcnt);
    for (uint32_t i = n; i-- > 0;)
        to[i] = take(cp);
    return n;
}
#endif

/* Puts a buffer back. False if it is large and not in the hash table. (The
 * address of a small one is not checked.) */
inline bool kmem_give(struct kmem_cache *cp, void *buf)
{
    struct kmem_bufctl *bcp;

    if ((cp->cache_flags & KMF_HASH) == 0) {
        bcp = (struct kmem_bufctl *)((char *)buf + cp->cache_bufctl);
        kmem_slab_give(cp, kmem_slab_of(buf), bcp);
        return true;
    }
    bcp = kmem_hash_remove(cp, buf);
    if (bcp != NULL)
        kmem_slab_give(cp, bcp->bufctl_slab, bcp);
    return bcp != NULL;
}

/* ---- the front end (3.1) ------------------------------------------------ */

/* Panics if the cache was destroyed. KMF_DESTROYED is part of KMF_ANY, so every
 * allocation and free with its handle comes here, until the memory is used
 * again: a free buffer's link overwrites only its last word. */
static void refuse_destroyed(struct kmem_cache *cp)
{
    if ((KMEM_FLAGS(cp) & KMF_DESTROYED) == 0)
        return;
    mm_panic("kmem: cache destroyed: %s (%p) is used after its end",
             cp->cache_name, (const void *)cp);
}

/* The cache has no free buffer: grows it by a slab. If there is no memory it
 * waits with KM_SLEEP; with KM_NOSLEEP it returns false, unless a task has
 * freed a buffer meanwhile. True: the caller should try again. */
bool kmem_grow_or_wait(struct kmem_cache *cp, int flags)
{
    bool found;

    if (kmem_cache_grow(cp))
        return true;
    if (MM_MAGAZINES)
        kmem_mag_reap(cp, KMEM_REAP_ALL);
    if (flags & KM_NOSLEEP) {
        mm_lock(&cp->cache_lock);
        found = cp->cache_freelist->slab_head != NULL;
        cp->cache_fails += !found;
        mm_unlock(&cp->cache_lock);
        return found;
    }
    if (!mm_wait_for_memory())
        kmem_out_of_memory(cp->cache_name, cp->cache_size);
    return true;
}

void kmem_out_of_memory(const char *name, size_t size)
{
    mm_panic("out of memory: KM_SLEEP for %zu bytes of %s: cannot wait", size,
             name);
}

/*
 * An allocation that did not succeed at once: the cache must grow, or it is in
 * a debugging mode, perhaps set just now. Another task may take the new slab's
 * buffers first, so it tries again until it gets one. Only then does it resize
 * the hash table: allocating a larger table may reap, and the new slab, if none
 * of its buffers were allocated, could be destroyed.
 */
static __attribute__((noinline)) void *alloc_grow(struct kmem_cache *cp,
                                                  int flags)
{
    void *buf = NULL;

    while (buf == NULL) {
        refuse_destroyed(cp);
        if (MM_DEBUG && (KMEM_FLAGS(cp) & KMF_DEBUG) != 0)
            return kmem_alloc_debug(cp, 0, flags);
        if (!kmem_grow_or_wait(cp, flags))
            return NULL;
        mm_lock(&cp->cache_lock);
        if ((cp->cache_flags & KMF_DEBUG) == 0)
            buf = take(cp);
        mm_unlock(&cp->cache_lock);
    }
    kmem_hash_rescale(cp);
    return buf;
}

/* Large objects (3.2.3): cache_flags is KMF_HASH alone. With any other flag,
 * alloc_grow decides. */
static __attribute__((noinline)) void *alloc_large(struct kmem_cache *cp,
                                                   int flags)
{
    struct kmem_bufctl *bcp = NULL;

    mm_lock(&cp->cache_lock);
    if (likely(cp->cache_flags == KMF_HASH))
        bcp = kmem_slab_take(cp);
    if (likely(bcp != NULL))
        kmem_hash_enter(cp, bcp);
    mm_unlock(&cp->cache_lock);
    return likely(bcp != NULL) ? bcp->bufctl_addr : alloc_grow(cp, flags);
}

void *kmem_cache_alloc(struct kmem_cache *cp, int flags)
{
    struct kmem_bufctl *bcp;

    mm_lock(&cp->cache_lock);
    if (unlikely(cp->cache_flags & KMF_ANY)) {
        mm_unlock(&cp->cache_lock);
        return alloc_large(cp, flags);
    }
    bcp = kmem_slab_take(cp);
    mm_unlock(&cp->cache_lock);
    if (unlikely(bcp == NULL))
        return alloc_grow(cp, flags);
    return (char *)bcp - cp->cache_bufctl;
}

/* The uncommon frees: the cache was destroyed or is in a debugging mode, or its
 * hash table does not contain the address. */
static __attribute__((noinline, cold)) void free_checked(struct kmem_cache *cp,
                                                         void *buf)
{
    refuse_destroyed(cp);
    if (MM_DEBUG)
        kmem_free_debug(cp, buf, 0);
    else
        mm_panic("kmem_cache_free: %p is not an allocated buffer of cache %s",
                 buf, cp->cache_name);
}

static __attribute__((noinline)) void free_large(struct kmem_cache *cp,
                                                 void *buf)
{
    bool known = false;

    mm_lock(&cp->cache_lock);
    if (likely(cp->cache_flags == KMF_HASH))
        known = kmem_give(cp, buf);
    mm_unlock(&cp->cache_lock);
    if (unlikely(!known))
        free_checked(cp, buf);
}

/* Reads cache_flags without the lock: the cache cannot change its layout while
 * one of its buffers, this one, is allocated. */
void kmem_cache_free(struct kmem_cache *cp, void *buf)
{
    struct kmem_bufctl *bcp;

    if (unlikely(KMEM_FLAGS(cp) & KMF_ANY)) {
        free_large(cp, buf);
        return;
    }
    mm_lock(&cp->cache_lock);
    bcp = (struct kmem_bufctl *)((char *)buf + cp->cache_bufctl);
    kmem_slab_give(cp, kmem_slab_of(buf), bcp);
    mm_unlock(&cp->cache_lock);
}

/* ---- the list of caches ------------------------------------------------- */

/* The cache of this name, or, if that is NULL, at this address, which may be
 * any. The list's lock is held. */
struct kmem_cache *kmem_list_find(const char *name, const void *handle)
{
    MM_ASSERT(mm_lock_held(&kmem_list_lock));
    list_for_each (l, &kmem_caches) {
        struct kmem_cache *cp = list_entry(l, struct kmem_cache, cache_link);

        if (name == NULL ? handle == cp : strcmp(name, cp->cache_name) == 0)
            return cp;
    }
    return NULL;
}

struct kmem_cache *kmem_cache_find(const char *name)
{
    struct kmem_cache *cp;

    mm_lock(&kmem_list_lock);
    cp = kmem_list_find(name, NULL);
    mm_unlock(&kmem_list_lock);
    return cp;
}

/* ---- creation (2.3) ----------------------------------------------------- */

/* NULL, or the error in the arguments of kmem_cache_create. */
static const char *create_error(const char *name, size_t size, size_t align,
                                bool constructed,
                                const struct kmem_supplier *supplier)
{
    size_t n = 0;

    if (name == NULL)
        return "the name is NULL";
    for (; name[n] != '\0'; n++) {
        char c = name[n] | 0x20; /* a capital becomes a small letter */

        if (n == KMEM_NAME_MAX)
            return "the name is longer than 31 characters";
        if (name[n] != '_' && (c < 'a' || c > 'z') &&
            (n == 0 || name[n] < '0' || name[n] > '9'))
            return "the name is not an identifier (letters, digits, _)";
    }
    if (n == 0)
        return "the name is empty";
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
    if (supplier != NULL &&
        (supplier->getpages == NULL || supplier->freepages == NULL))
        return "the page supplier lacks a function";
    return NULL;
}

/* Initializes a cache without slabs. The arguments have been checked. */
void kmem_cache_setup(struct kmem_cache *cp, const char *name, size_t size,
                      size_t align, kmem_ctor_t *ctor, kmem_dtor_t *dtor,
                      const struct kmem_supplier *supplier)
{
    *cp = (struct kmem_cache){
        .cache_size = size,
        .cache_align = MAX(align, (size_t)KMEM_ALIGN_MIN),
        .cache_ctor = ctor,
        .cache_dtor = dtor,
        .cache_kind = kmem_state == KMEM_UP      ? KMEM_KIND_NAMED
                      : kmem_state == KMEM_LARGE ? KMEM_KIND_CLASS
                                                 : KMEM_KIND_INTERNAL,
    };
    mm_lock_init(&cp->cache_lock, "kmem cache", LOCK_RANK_CACHE);
    memcpy(cp->cache_name, name, strlen(name) + 1);
    if (supplier != NULL)
        cp->cache_supplier = *supplier;
    cp->cache_null.slab_cache = cp;
    list_init(&cp->cache_null.slab_link);
    cp->cache_freelist = &cp->cache_null;
    if (MM_DEBUG)
        cp->cache_flags = kmem_debug_flags(cp);
    kmem_geometry(cp);
    if (MM_MAGAZINES)
        kmem_mag_setup(cp);
}

/* Puts a new cache on the list. NULL, or why it cannot be there. */
static const char *publish(struct kmem_cache *cp)
{
    static uint32_t published;

    mm_lock(&kmem_list_lock);
    if (kmem_list_find(cp->cache_name, NULL) == NULL) {
        cp->cache_number = ++published;
        list_insert_before(&kmem_caches, &cp->cache_link);
    }
    mm_unlock(&kmem_list_lock);
    return cp->cache_number == 0 ? "there is a cache of that name" : NULL;
}

/* Frees a cache that has no slabs and is on no list. */
static void discard(struct kmem_cache *cp)
{
    if (MM_MAGAZINES)
        kmem_mag_reap(cp, KMEM_REAP_ALL);
    if (cp->cache_hash != NULL)
        kmem_hash_table_free(cp->cache_hash, cp->cache_hash_mask + 1);
    if (MM_DEBUG)
        cp = kmem_handles_exchange(cp);
    kmem_cache_free(&kmem_cache_cache, cp);
}

struct kmem_cache *kmem_cache_create_from(const char *name, size_t size,
                                          size_t align, kmem_ctor_t *ctor,
                                          kmem_dtor_t *dtor,
                                          const struct kmem_supplier *supplier)
{
    const char *error =
        create_error(name, size, align, ctor != NULL || dtor != NULL, supplier);
    struct kmem_cache *cp;

    if (error != NULL)
        goto refuse;
    error = "no memory";
    cp = kmem_cache_alloc(&kmem_cache_cache, KM_NOSLEEP);
    if (cp == NULL)
        goto refuse;
    kmem_cache_setup(cp, name, size, align, ctor, dtor, supplier);
    kmem_transfer_begin();
    if (cp->cache_flags & KMF_HASH) {
        kmem_hash_install(cp, kmem_hash_table(cp, KMEM_HASH_INITIAL));
        if (cp->cache_hash == NULL)
            goto discard;
    }
    error = publish(cp);
    if (error != NULL)
        goto discard;
    kmem_transfer_end();
    if (MM_MAGAZINES)
        kmem_mag_decide(cp);
    return cp;

discard:
    discard(cp);
    kmem_transfer_end();
refuse:
    mm_print("kmem_cache_create: %s: %s\n", name == NULL ? "?" : name, error);
    return NULL;
}

struct kmem_cache *kmem_cache_create(const char *name, size_t size,
                                     size_t align, kmem_ctor_t *ctor,
                                     kmem_dtor_t *dtor)
{
    return kmem_cache_create_from(name, size, align, ctor, dtor, NULL);
}

/* ---- destruction (2.3) -------------------------------------------------- */

/* Marks the cache as destroyed and takes it off the list. Returns 0 or the
 * error of kmem_cache_destroy; -KMEM_EAGAIN: it is held. */
static int retire(struct kmem_cache *cp)
{
    int error = -KMEM_EINVAL;

    mm_lock(&kmem_list_lock);
    if (kmem_list_find(NULL, cp) == NULL)
        goto unlock_list;
    mm_lock(&cp->cache_lock);
    error = -KMEM_EPERM;
    if (cp->cache_kind != KMEM_KIND_NAMED)
        goto unlock;
    error = -KMEM_EBUSY;
    if (kmem_inuse(cp) != 0)
        goto unlock;
    error = -KMEM_EAGAIN;
    if (kmem_holds(cp) != 0)
        goto unlock;
    error = 0;
    cp->cache_flags |= KMF_DESTROYED;
    list_remove(&cp->cache_link);
unlock:
    mm_unlock(&cp->cache_lock);
unlock_list:
    mm_unlock(&kmem_list_lock);
    return error;
}

/* Lets a holder of the cache end. False: it cannot while the caller runs. */
static bool let_holder_end(struct kmem_cache *cp)
{
    return (MM_DEBUG && kmem_unmapped_release(cp) != 0) || mm_wait_for_task();
}

/* Prints why kmem_cache_destroy refuses, and the first objects that are
 * allocated. */
static void report_refusal(struct kmem_cache *cp, int error)
{
    if (error == -KMEM_EINVAL)
        mm_print("kmem_cache_destroy: %p is not a cache\n", (void *)cp);
    else if (error == -KMEM_EPERM)
        mm_print("kmem_cache_destroy: %s: belongs to the allocator itself\n",
                 cp->cache_name);
    else if (error == -KMEM_EAGAIN)
        mm_print("kmem_cache_destroy: %s: its caller grows or reaps it\n",
                 cp->cache_name);
    else
        mm_print("kmem_cache_destroy: %s: refused, %u object%s allocated\n",
                 cp->cache_name, (unsigned)kmem_inuse(cp),
                 kmem_inuse(cp) == 1 ? " is" : "s are");
    if (MM_DEBUG && error == -KMEM_EBUSY)
        kmem_report_live(cp);
}

int kmem_cache_destroy(struct kmem_cache *cp)
{
    struct kmem_slab *sp;
    int error;

    kmem_transfer_begin();
    do {
        if (MM_MAGAZINES)
            kmem_mag_empty(cp); /* objects in them are not allocated */
        error = retire(cp);
    } while (error == -KMEM_EAGAIN && let_holder_end(cp));
    if (error != 0)
        goto out;
    while ((sp = kmem_slab_next(&cp->cache_null)) != &cp->cache_null) {
        list_remove(&sp->slab_link);
        kmem_slab_destroy(cp, sp);
    }
    discard(cp);
out:
    kmem_transfer_end();
    if (error != 0)
        report_refusal(cp, error);
    return error;
}

/* ---- initialization ----------------------------------------------------- */

/* Creates a cache of kmem_init, or panics. */
struct kmem_cache *kmem_must_create(const char *name, size_t size)
{
    struct kmem_cache *cp = kmem_cache_create(name, size, 0, NULL, NULL);

    if (cp == NULL)
        mm_panic("kmem_init: no memory for %s", name);
    return cp;
}

/*
 * The allocator is its own first client. The cache of caches is a static
 * structure; its objects are small, so it needs no other cache. Next come the
 * caches that the large layout needs; they have small objects too.
 */
void kmem_init_caches(void)
{
    kmem_cache_setup(&kmem_cache_cache, "kmem_cache", sizeof(struct kmem_cache),
                     0, NULL, NULL, NULL);
    publish(&kmem_cache_cache);
    kmem_state = KMEM_PARTIAL;
    kmem_slab_cache = kmem_must_create("kmem_slab", sizeof(struct kmem_slab));
    kmem_bufctl_cache =
        kmem_must_create("kmem_bufctl", sizeof(struct kmem_bufctl));
    kmem_hash_cache = kmem_must_create("kmem_hash", KMEM_HASH_SMALL / 2);
    if (MM_DEBUG)
        kmem_debug_init_caches();
    if (MM_MAGAZINES)
        kmem_mag_init();
    kmem_state = KMEM_LARGE;
}
