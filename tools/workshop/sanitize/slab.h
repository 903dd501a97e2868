/*
 * Included in front of mm/kmem_slab.c, which then reports its slabs to the
 * address sanitizer (mm/platform.h).
 */
#pragma once

struct kmem_cache;
struct kmem_slab;

void kasan_slab_made(const struct kmem_cache *cp, const struct kmem_slab *sp);
void kasan_slab_ending(const struct kmem_cache *cp, const struct kmem_slab *sp);

#define mm_slab_made(cp, sp)   kasan_slab_made(cp, sp)
#define mm_slab_ending(cp, sp) kasan_slab_ending(cp, sp)
