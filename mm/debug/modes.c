/*
 * Debugging modes (paper, section 6): their letters, kmem.debug=, the geometry
 * of the debug layout, and setting the modes of a cache.
 *
 *     |colour|guard|  buffer  |slack| guard |  buffer  |slack| guard | unused |
 *                  ^ cache_colour_min    ^ 8 bytes precede the next
 *
 * In mode KMF_OWN_PAGES each slab is one buffer, placed so that it ends at a
 * page that is never mapped.
 *
 * A mode changes the layout of slabs, and allocated objects cannot move. So the
 * modes of a cache are set when it is created, or later while it has no
 * allocated object: then its free slabs are destroyed, and its geometry is
 * computed anew under its lock.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "mm/debug/debug_impl.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/page.h"

struct kmem_cache *kmem_bufctl_debug_cache;

static unsigned boot_modes;
static const char *boot_names;

unsigned kmem_debug_modes(const struct kmem_cache *cp)
{
    return KMEM_FLAGS(cp) & KMF_MODES;
}

void kmem_debug_uncolour(struct kmem_cache *cp)
{
    mm_lock(&cp->cache_lock);
    cp->cache_colour_max = cp->cache_colour;
    mm_unlock(&cp->cache_lock);
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
        set |= 1u << (at - KMEM_DEBUG_LETTERS + KMEM_DEBUG_SHIFT);
    }
    *modes = set;
    return true;
}

const char *kmem_debug_text(unsigned modes, char *text)
{
    size_t n = 0;

    for (unsigned i = 0; KMEM_DEBUG_LETTERS[i] != '\0'; i++)
        if (modes >> (i + KMEM_DEBUG_SHIFT) & 1)
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

/* Whether `name` is in `names`, a list separated by commas. */
static bool name_listed(const char *names, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = names; p != NULL;) {
        const char *comma = strchr(p, ',');
        size_t len = comma == NULL ? strlen(p) : (size_t)(comma - p);

        if (len == n && strncmp(p, name, n) == 0)
            return true;
        p = comma == NULL ? NULL : comma + 1;
    }
    return false;
}

/* Whether pages of the cache can be unmapped: they are segkmem's, and the
 * platform can do it. */
static bool can_unmap(const struct kmem_cache *cp)
{
    return cp->cache_supplier.getpages == NULL && mm_page_map(NULL, true);
}

/* The flags that a new cache begins with: the modes that kmem.debug= asks for.
 */
uint32_t kmem_debug_flags(const struct kmem_cache *cp)
{
    if (kmem_state < KMEM_LARGE ||
        (boot_names != NULL && !name_listed(boot_names, cp->cache_name)))
        return 0;
    return can_unmap(cp) ? boot_modes : boot_modes & ~KMF_UNMAPPING;
}

/* Updates kmem_direct_max after modes have changed. */
static void update_direct_max(void)
{
    const struct kmem_cache *cp = kmem_size_class(1);

    mm_lock(&kmem_list_lock); /* of two tasks the later one sees all modes */
    while (cp != NULL && (KMEM_FLAGS(cp) & KMF_MODES) == 0)
        cp = kmem_size_class(cp->cache_size + 1);
    kmem_direct_max = cp != NULL ? 0 : KMEM_MAXBUF;
    mm_unlock(&kmem_list_lock);
}

/* kmem_alloc while any class is in a mode. */
void *kmem_alloc_sized(struct kmem_cache *cp, size_t size, int flags)
{
    return (KMEM_FLAGS(cp) & KMF_MODES) != 0 ? kmem_alloc_debug(cp, size, flags)
                                             : kmem_cache_alloc(cp, flags);
}

/* kmem_free likewise: a size that leads to another class than the buffer's is
 * found for all classes. */
void kmem_free_sized(struct kmem_cache *cp, void *buf, size_t size)
{
    if ((KMEM_FLAGS(cp) & KMF_MODES) != 0)
        kmem_free_debug(cp, buf, size);
    else if (kmem_page_owner(buf, PAGE_SLAB) == cp)
        kmem_cache_free(cp, buf);
    else
        kmem_bad_free(cp, buf, size);
}

/* Before the first cache that can be in a mode. Boot only. */
void kmem_debug_init_caches(void)
{
    kmem_bufctl_debug_cache =
        kmem_must_create("kmem_bufctl_debug", sizeof(struct kmem_bufctl_debug));
}

/* After the size classes were made. Boot only. */
void kmem_debug_init(void)
{
    update_direct_max();
    if (boot_modes & KMF_AUDIT)
        kmem_log_create();
}

/* ---- the debug layout --------------------------------------------------- */

/* Large objects for all sizes (3.2.3, 6.2), and pages of its own for each
 * buffer in mode KMF_OWN_PAGES (6.6). False, and nothing changed, if the cache
 * is in no mode. */
bool kmem_debug_geometry(struct kmem_cache *cp)
{
    unsigned modes = kmem_debug_modes(cp);
    size_t size = ROUND_UP(cp->cache_size, cp->cache_align);
    size_t guard = (modes & KMF_REDZONE) ? KMEM_GUARD_FRONT : 0;
    size_t bytes;

    if (modes == 0)
        return false;
    cp->cache_flags |= KMF_HASH;
    if (modes & KMF_OWN_PAGES) {
        cp->cache_colour_min = -size & PAGE_MASK;
        cp->cache_redzone_end = size;
        cp->cache_chunk = cp->cache_colour_min + size + PAGE_SIZE;
        cp->cache_slab_pages = cp->cache_chunk >> PAGE_SHIFT;
        bytes = cp->cache_colour_min + cp->cache_chunk;
    } else {
        cp->cache_colour_min = guard == 0 ? 0 : cp->cache_align;
        cp->cache_chunk = ROUND_UP(cp->cache_size + 2 * guard, cp->cache_align);
        cp->cache_redzone_end = cp->cache_chunk - guard;
        cp->cache_slab_pages =
            kmem_large_pages(cp->cache_colour_min, cp->cache_chunk);
        bytes = cp->cache_slab_pages * PAGE_SIZE;
    }
    cp->cache_slab_chunks = (bytes - cp->cache_colour_min) / cp->cache_chunk;
    cp->cache_colour_max = bytes - cp->cache_slab_chunks * cp->cache_chunk;
    cp->cache_colour = cp->cache_colour_min;
    return true;
}

/* ---- setting modes ------------------------------------------------------ */

/* 0, or why the cache cannot be in these modes. */
static int modes_error(const struct kmem_cache *cp, unsigned modes)
{
    if (cp->cache_kind == KMEM_KIND_INTERNAL && modes != 0)
        return -KMEM_EPERM;
    if ((modes & KMF_UNMAPPING) != 0 && !can_unmap(cp))
        return -KMEM_EINVAL;
    if ((modes & KMF_AUDIT) != 0 && !kmem_log_create())
        return -KMEM_ENOMEM;
    return 0;
}

/* Whether the cache has a hash table in these modes. */
bool kmem_debug_hashed(const struct kmem_cache *cp, unsigned modes)
{
    return modes != 0 ||
           kmem_is_large(cp->cache_size, cp->cache_align,
                         cp->cache_ctor != NULL || cp->cache_dtor != NULL);
}

/* The new geometry of a cache without slabs. */
static void set_geometry(struct kmem_cache *cp, unsigned modes)
{
    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    MM_ASSERT(cp->cache_slabs == 0);
    cp->cache_flags &= ~(KMF_MODES | KMF_HASH);
    cp->cache_flags |= modes;
    cp->cache_hash = NULL;
    cp->cache_bufctl = cp->cache_redzone_end = 0;
    cp->cache_colour = cp->cache_colour_min = 0;
    kmem_geometry(cp);
}

/* Sets the modes of a cache that has neither slabs nor allocated objects. Its
 * hash table becomes *table, if the layout has one; *table gets the table that
 * is to be freed, of *buckets. Returns 0 or the error of kmem_debug_set. */
static int switch_modes(struct kmem_cache *cp, unsigned modes,
                        struct kmem_bufctl ***table, size_t *buckets)
{
    struct kmem_bufctl **fresh = *table;
    int error = 0;

    mm_lock(&cp->cache_lock);
    if (kmem_inuse(cp) != 0) {
        error = -KMEM_EBUSY;
    } else if (kmem_holds(cp) != 0 || cp->cache_slabs != 0) {
        error = -KMEM_EAGAIN;
    } else {
        *table = cp->cache_hash;
        *buckets = cp->cache_hash_mask + 1;
        set_geometry(cp, modes);
        if (fresh != NULL)
            kmem_hash_install(cp, fresh);
    }
    mm_unlock(&cp->cache_lock);
    return error;
}

int kmem_debug_set(struct kmem_cache *cp, unsigned modes)
{
    struct kmem_bufctl **table = NULL;
    size_t buckets = KMEM_HASH_INITIAL;
    int error = modes_error(cp, modes);

    if (error != 0 || modes == kmem_debug_modes(cp))
        return error;
    if (MM_MAGAZINES)
        kmem_mag_disable();
    kmem_transfer_begin();
    error = -KMEM_ENOMEM;
    if (kmem_debug_hashed(cp, modes) &&
        (table = kmem_hash_table(cp, KMEM_HASH_INITIAL)) == NULL)
        goto out;
    kmem_unmapped_release(cp);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    error = switch_modes(cp, modes, &table, &buckets);
    if (table != NULL)
        kmem_hash_table_free(table, buckets);
    update_direct_max();
out:
    kmem_transfer_end();
    if (MM_MAGAZINES)
        kmem_mag_enable();
    return error;
}

const char *kmem_debug_set_error(const struct kmem_cache *cp, unsigned modes,
                                 int error, char *text, size_t size)
{
    unsigned n = kmem_inuse(cp);
    char letters[8];

    if (error == -KMEM_EPERM)
        return "one of the allocator's own caches: it has no modes";
    if (error == -KMEM_EINVAL)
        return "its pages cannot be unmapped: no S and no G";
    if (error == -KMEM_EAGAIN)
        return "it is growing or being reaped; try again";
    if (error != -KMEM_EBUSY)
        return "there is no memory";
    snprintf(text, size,
             "%u object%s allocated; free %s first, or boot with "
             "kmem.debug=%s,%s",
             n, n == 1 ? " is" : "s are", n == 1 ? "it" : "them",
             kmem_debug_text(modes, letters), cp->cache_name);
    return text;
}
