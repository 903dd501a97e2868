/*
 * What the allocator says when something is wrong (paper, section 6): which
 * objects, of which cache, where.
 */
#include "mm/kmem_impl.h"
#include "mm/kmem_stat.h"

/* Names the objects of one slab that are still out, `left` at most. */
static void print_live(const struct kmem_slab *sp, size_t *left)
{
    uint8_t map[PAGE_SIZE / KMEM_ALIGN_MIN / 8] = {0};
    size_t bits = MIN((size_t)sp->slab_chunks, sizeof(map) * 8);

    kmem_slab_bitmap(sp, map, bits);
    for (size_t i = 0; i < bits && *left != 0; i++) {
        if ((map[i / 8] >> (i % 8) & 1) != 0) {
            mm_print("  still out: %p\n", kmem_slab_chunk(sp, i));
            (*left)--;
        }
    }
}

void kmem_report_live(struct kmem_cache *cp)
{
    uint32_t out = kmem_inuse(cp);
    size_t left = 8;

    mm_print("kmem_cache_destroy: %s: refused, %u object%s still out\n",
             cp->cache_name, (unsigned)out, out == 1 ? " is" : "s are");
    mm_lock(&cp->cache_lock);
    for (struct kmem_slab *sp = kmem_slab_next(&cp->cache_null);
         sp != &cp->cache_null && left != 0; sp = kmem_slab_next(sp))
        if (sp->slab_refcnt != 0)
            print_live(sp, &left);
    mm_unlock(&cp->cache_lock);
    if (out > 8)
        mm_print("  and %u more\n", (unsigned)out - 8);
}
