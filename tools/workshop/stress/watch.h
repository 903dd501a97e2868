/*
 * Watching the allocator's operations: failures on purpose (fail.h), and
 * kmem_verify at every N-th operation.
 */
#pragma once

#include "mm/kmem.h"

/* Watches the caches for which failures are set, all if operations are
 * verified, and no others. */
void kmem_watch(void);

/* kmem_verify at every N-th operation on any cache; an error stops the machine.
 * 0: never. */
void kmem_verify_every(uint32_t n);
uint32_t kmem_verify_interval(void);

/* The same, before kmem_init: of the caches that it will create. */
void kmem_verify_boot(uint32_t n);
