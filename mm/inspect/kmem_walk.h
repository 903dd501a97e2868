/*
 * Walking structures that may be damaged. Each function is described where it
 * is defined; its caller holds the lock that guards the slab, its cache's or
 * that of the unmapped slabs (mm/debug/unmap.c).
 */
#pragma once

#include "mm/kmem_impl.h"

bool kmem_bufctl_plausible(const struct kmem_cache *cp,
                           const struct kmem_bufctl *bcp);
bool kmem_slab_plausible(const struct kmem_slab *sp);
bool kmem_slab_link_plausible(const struct kmem_cache *cp,
                              const struct list *l);
struct kmem_slab *kmem_slab_after(struct kmem_cache *cp,
                                  const struct kmem_slab *sp);
struct kmem_slab *kmem_slab_number(struct kmem_cache *cp, size_t n);
struct kmem_slab *kmem_slab_holding(struct kmem_cache *cp, const void *addr);
void *kmem_bufctl_buf(const struct kmem_cache *cp,
                      const struct kmem_bufctl *bcp);
size_t kmem_chunk_index(const struct kmem_cache *cp, const struct kmem_slab *sp,
                        const void *addr, size_t *offset);
size_t kmem_bufctl_chunk(const struct kmem_slab *sp,
                         const struct kmem_bufctl *bcp);
bool kmem_slab_bitmap(const struct kmem_slab *sp, uint8_t *map, size_t bits);

/* ---- kmem_verify.c ------------------------------------------------------ */

const char *kmem_slab_data_error(const struct kmem_cache *cp,
                                 const struct kmem_slab *sp);
const char *kmem_slab_verify(const struct kmem_cache *cp,
                             const struct kmem_slab *sp);
