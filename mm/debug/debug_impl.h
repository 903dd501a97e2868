/*
 * Section 6 of the paper, for the files of mm/debug/ and for the tests and
 * tools that look inside. Each function is described where it is defined; what
 * the core calls is in mm/kmem_impl.h.
 */
#pragma once

#include "mm/debug/debug.h"
#include "mm/inspect/kmem_walk.h"

/* The bufctl of the debug layout (6.1), one for each buffer as long as its slab
 * exists. The cache's lock guards it; that of a KMEM_BUF_BUSY buffer belongs to
 * the task that allocates or frees the buffer. */
struct kmem_bufctl_debug {
    struct kmem_bufctl bufctl; /* first: the rest of mm/ sees only this */
    uint32_t bufctl_state;     /* enum kmem_buf_state */
    uint32_t bufctl_size;      /* bytes asked for last; 0: never allocated; or
                                  KMEM_SIZE_UNKNOWN */
    uint32_t bufctl_log;       /* its last transaction's number in the log */
    struct kmem_transaction bufctl_alloc;
    struct kmem_transaction bufctl_free;
};

/* The size asked for, if kmem_alloc had already chosen its fast path, which
 * does not pass it on, when the class was put into a mode. */
#define KMEM_SIZE_UNKNOWN UINT32_MAX

/* ---- audit.c: section 6.1 ----------------------------------------------- */

/* Creates the log if there is none: 1/50 of memory, less if so much is not
 * available. False if there is no memory. */
bool kmem_log_create(void);

/* Records a buffer's latest transaction, and its number in the bufctl. Does
 * nothing while there is no log or it is stopped. The cache's lock may be
 * held. */
void kmem_log_enter(enum kmem_op op, struct kmem_cache *cp,
                    struct kmem_bufctl_debug *bdp);

/* Fills in time, task and callers of a transaction that happens now. */
void kmem_transaction(struct kmem_transaction *trans);

/* ---- unmap.c: section 6.5 ----------------------------------------------- */

void kmem_unmap_free_slabs(struct kmem_cache *cp);

/* ---- pattern.c: sections 6.3, 6.4 --------------------------------------- */

void kmem_pattern_fill(void *buf, size_t size, uint32_t word);
const void *kmem_pattern_mismatch(const void *buf, size_t size, uint32_t word);

#define KMEM_GUARD_WORD (KMEM_GUARD * 0x01010101u)

/* ---- report.c: section 6.8 ---------------------------------------------- */

void kmem_bad_free(struct kmem_cache *cp, const void *buf, size_t size)
    __attribute__((noreturn, cold));
void kmem_error_damage(struct kmem_cache *cp,
                       const struct kmem_bufctl_debug *bdp,
                       enum kmem_error kind, const void *at)
    __attribute__((noreturn, cold));

/* ---- walk.c ------------------------------------------------------------- */

struct kmem_bufctl *kmem_hash_find(struct kmem_cache *cp, const void *buf,
                                   bool *damaged);
void kmem_bufctl_stat(const struct kmem_bufctl_debug *bdp,
                      struct kmem_buf_stat *out);
