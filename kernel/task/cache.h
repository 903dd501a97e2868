/*
 * Creation of the caches of kernel objects, at boot.
 */
#pragma once

#include "kernel/x86/panic.h"
#include "mm/kmem.h"

/* Kernel stacks: KSTACK_BYTES, of which the lowest page is not mapped. */
extern struct kmem_cache *kstack_cache;

/* Panics without memory: the kernel cannot run without this cache. */
static inline struct kmem_cache *cache_create(const char *name, size_t size,
                                              size_t align, kmem_ctor_t *ctor,
                                              kmem_dtor_t *dtor)
{
    struct kmem_cache *cp = kmem_cache_create(name, size, align, ctor, dtor);

    if (cp == NULL)
        panic("not enough memory to create the cache %s", name);
    return cp;
}
