/*
 * Debugging modes and what follows from them: their letters, kmem.debug=, the
 * slow paths, and the geometry of the debug layout; and kmem.verify=.
 *
 *     |colour|guard|  buffer  |slack| guard |  buffer  |slack| guard | unused |
 *                  ^ front               ^ 8 bytes of it are the next one's
 *
 * In mode G each slab is one buffer, laid so that it ends at a page that is
 * not there.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "mm/kmem_impl.h"
#include "mm/debug/audit.h"
#include "mm/kmem_stat.h"

static unsigned boot_modes;
static const char *boot_names;

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

/* The modes that kmem.debug= asks for. */
static unsigned wanted(const struct kmem_cache *cp)
{
    if (kmem_state < KMEM_LARGE ||
        (boot_names != NULL && !listed(boot_names, cp->cache_name)))
        return 0;
    return kmem_debug_can_unmap(cp) ? boot_modes : boot_modes & ~KMF_UNMAPPING;
}

uint32_t kmem_debug_flags(const struct kmem_cache *cp)
{
    return KMF_MODE(wanted(cp)) | (kmem_verify_interval() ? KMF_VERIFY : 0);
}

bool kmem_debug_can_unmap(const struct kmem_cache *cp)
{
    return cp->cache_supplier.getpages == NULL && mm_page_map(NULL, true);
}

/* Size classes are looked at while they are made, too. */
static void direct_update(void)
{
    const struct kmem_cache *cp = kmem_size_class(1);
    uint32_t flags = 0;

    for (; cp != NULL; cp = kmem_size_class(cp->cache_size + 1))
        flags |= cp->cache_flags;
    kmem_direct_max = flags & (KMF_DEBUG | KMF_ELDERS) ? 0 : KMEM_MAXBUF;
}

void kmem_slow_paths(struct kmem_cache *cp)
{
    uint32_t flags = cp->cache_flags & ~KMF_HASH;

    cp->cache_alloc_slow =
        flags & KMF_SLOW ? kmem_alloc_debug : kmem_alloc_large;
    cp->cache_free_slow =
        flags & KMF_SLOW_FREE ? kmem_free_debug : kmem_free_large;
    direct_update();
}

void kmem_debug_init(void)
{
    direct_update();
    if (boot_modes & KMF_AUDIT)
        kmem_log_create();
}

/* The layout of large objects for all (3.2.3, 6.2), and pages of its own for
 * each object in mode G (6.6). */
bool kmem_debug_geometry(struct kmem_cache *cp)
{
    unsigned modes = kmem_debug_modes(cp);
    size_t size = ROUND_UP(cp->cache_size, cp->cache_align);
    size_t guard = (modes & KMF_REDZONE) ? KMEM_GUARD_FRONT : 0;
    size_t bytes;

    if ((modes & KMF_LAYOUT) == 0)
        return false;
    cp->cache_flags |= KMF_HASH | KMF_DEBUG;
    if (modes & KMF_FIREWALL) {
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
    cp->cache_colour_max = cp->cache_colour_min +
                           ((bytes - cp->cache_colour_min) % cp->cache_chunk &
                            ~(cp->cache_align - 1));
    cp->cache_colour = cp->cache_colour_min;
    return true;
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

/* A verification allocates nothing, so that it cannot
 * come by here again. What it finds stays so: it is said once, and that is the
 * end of it until kmem_verify_every is called again. */
void kmem_verify_count(struct kmem_cache *cp)
{
    static char text[192];
    const char *where;
    const char *why;

    if (verify_left == 0 || --verify_left != 0)
        return;
    verify_left = verify_interval;
    why = kmem_verify(&where);
    if (why == NULL)
        return;
    verify_left = 0;
    snprintf(text, sizeof(text), "%s: %s", where, why);
    kmem_error(&(struct kmem_error_record){.error_kind = KMEM_ERROR_VERIFY,
                                           .error_cache = cp,
                                           .error_text = text});
}
