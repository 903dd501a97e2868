/*
 * The interface of mm/debug/ (paper, section 6) to the rest of mm/: the modes,
 * and the functions that it calls. Each is described where it is defined. On a
 * platform without debugging modes (MM_DEBUG 0) none of them is called.
 */
#pragma once

#include "mm/kmem.h"

struct kmem_bufctl;
struct kmem_slab;

/* Modes are bits of cache_flags, in the order of these letters. */
#define KMEM_DEBUG_LETTERS "FPZUTSG"
#define KMEM_DEBUG_SHIFT   8 /* the bit of the first letter */

#define KMF_CHECK    0x0100u /* F: freed addresses, slabs and freelists (6.2) */
#define KMF_POISON   0x0200u /* P: deadbeef, baddcafe (6.3) */
#define KMF_REDZONE  0x0400u /* Z: redzones around each buffer (6.4) */
#define KMF_AUDIT    0x0800u /* U: task, time and callers (6.1) */
#define KMF_TRACE    0x1000u /* T: a line for each operation */
#define KMF_UNMAP    0x2000u /* S: free slabs are unmapped at once (6.5) */
#define KMF_FIREWALL 0x4000u /* G: each buffer has pages of its own (6.6) */

/* Modes that need the debug layout, and modes that take pages away. */
#define KMF_LAYOUT                                                             \
    (KMF_CHECK | KMF_POISON | KMF_REDZONE | KMF_AUDIT | KMF_UNMAP |            \
     KMF_FIREWALL)
#define KMF_UNMAPPING (KMF_UNMAP | KMF_FIREWALL)

/* ---- check.c: allocation and free in a debugging mode ------------------- */

void *kmem_alloc_debug(struct kmem_cache *cp, size_t size, int flags);
void kmem_free_debug(struct kmem_cache *cp, void *buf, size_t size);
void kmem_debug_slab(struct kmem_cache *cp, struct kmem_slab *sp);
void kmem_debug_slab_end(struct kmem_cache *cp, struct kmem_slab *sp);
const char *kmem_debug_verify(const struct kmem_cache *cp,
                              const struct kmem_bufctl *bcp, bool free,
                              const void **at);

/* ---- modes.c: what the modes mean for a cache --------------------------- */

extern struct kmem_cache *kmem_bufctl_debug_cache; /* bufctls of the layout */

void kmem_debug_init_caches(void);
void kmem_debug_init(void);
bool kmem_debug_geometry(struct kmem_cache *cp);
uint32_t kmem_debug_flags(const struct kmem_cache *cp);
void *kmem_alloc_sized(struct kmem_cache *cp, size_t size, int flags);
void kmem_free_sized(struct kmem_cache *cp, void *buf, size_t size);

/* ---- unmap.c: section 6.5 ----------------------------------------------- */

/* Pages that mode S keeps unmapped, so that a late access faults; and freeing
 * those of one cache, NULL: of all. Returns their number. */
size_t kmem_unmapped_pages(void);
size_t kmem_unmapped_release(const struct kmem_cache *cp);

/* ---- handles.c ---------------------------------------------------------- */

/* Takes the structure of a destroyed cache; returns the one to free. */
struct kmem_cache *kmem_handles_exchange(struct kmem_cache *cp);

/* ---- report.c ----------------------------------------------------------- */

void kmem_report_live(struct kmem_cache *cp);
