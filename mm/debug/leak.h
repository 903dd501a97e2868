/*
 * Leaks (paper, section 6.7): buffers that nothing points to. A conservative
 * scan of all memory that may hold a pointer.
 */
#pragma once

#include "mm/debug/debug.h"

/* The results of a scan. */
struct kmem_leak_stat {
    size_t stat_roots;   /* bytes of data, stacks and registers read */
    size_t stat_buffers; /* allocated, of all caches */
    size_t stat_reached;
    size_t stat_suspects;
    size_t stat_suspect_bytes;
};

/*
 * Reads data, stacks, registers and every buffer that these lead to, and calls
 * fn for each allocated buffer that no pointer leads to: a suspect, since a
 * pointer may be stored in a form that the scan does not recognize. Interrupts
 * are off meanwhile. Its marks take pages from buddy; false if there are none.
 */
bool kmem_leak_scan(kmem_buf_fn_t *fn, void *arg, struct kmem_leak_stat *out);

/* Finds the pointers to the buffer at `buf`: calls fn with the address of each
 * word whose value is an address in it, and the buffer that contains the word;
 * NULL `in`: a root. */
typedef bool kmem_ref_fn_t(uintptr_t at, const char *root,
                           const struct kmem_buf_stat *in, void *arg);
void kmem_leak_refs(const void *buf, kmem_ref_fn_t *fn, void *arg);

/* Supplied by the platform, as mm/platform.h is: the address that a word in an
 * object of this cache stands for. The word itself, except in objects that name
 * memory in another way. 0: none. */
uintptr_t mm_pointer(const struct kmem_cache *cp, uintptr_t word);
