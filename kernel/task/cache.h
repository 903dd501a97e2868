/*
 * The caches of the kernel's objects, made at boot.
 */
#pragma once

#include "kernel/x86/panic_hook.h"
#include "mm/kmem.h"

/* kmem_cache_create; without memory for it the kernel cannot go on. */
static inline struct kmem_cache *cache_create(const char *name, size_t size,
                                              size_t align, kmem_ctor_t *ctor,
                                              kmem_dtor_t *dtor)
{
    struct kmem_cache *cp = kmem_cache_create(name, size, align, ctor, dtor);

    if (cp == NULL)
        panic("too little memory: there is none for the cache %s", name);
    return cp;
}
