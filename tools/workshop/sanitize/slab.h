/*
 * Included in front of mm/kmem_slab.c, which then reports its slabs to the
 * address sanitizer (mm/platform.h).
 */
#pragma once

struct kmem_cache;
struct kmem_slab;

void kasan_mark_slab(const struct kmem_cache *cp, const struct kmem_slab *sp);
void kasan_unmark_slab(const struct kmem_cache *cp, const struct kmem_slab *sp);

#define mm_mark_slab(cp, sp)   kasan_mark_slab(cp, sp)
#define mm_unmark_slab(cp, sp) kasan_unmark_slab(cp, sp)
