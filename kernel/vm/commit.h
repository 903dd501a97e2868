/*
 * Commitment: memory is promised to programs only as far as it exists.
 *
 * A program does not get its pages when it asks for them, but when it first
 * touches them. Each page is therefore promised when it is asked for: by exec,
 * fork, sbrk, mmap, dma_alloc and a stack that grows. A request that cannot be
 * promised fails with ENOMEM. A fault on a promised page finds a free page.
 *
 *     the pages of buddy
 *     ├── kernel      those of the slab allocator
 *     ├── committed   reserved in buddy (buddy_reserve)
 *     │   ├── promised to spaces: each writable page, whether it has been
 *     │   │   touched or not, and again for each space that shares its frame
 *     │   └── frames of read-only pages; fork promises nothing more
 *     └── available   for either; the last COMMIT_KERNEL_SHARE of them for
 *                     the kernel alone
 *
 * A frame is taken from the reserve and returns there, so buddy has a page for
 * each that was promised and not yet touched.
 */
#pragma once

#include "kernel/lib/list.h"
#include "mm/page.h"

struct session;
struct space;

/*
 * Pages that programs cannot be promised, so that running programs can continue
 * to work when all other pages are promised. Measured: a process takes 5
 * pages of the kernel (stack 3, directory 1, table 1) and shares a few more, an
 * open pipe 1, a command of the kernel shell none. So this is the need of ten
 * processes; tools/test/programs/test_commit.py checks the figures.
 */
#define COMMIT_KERNEL_SHARE 64u

/* The part of a space. Guarded by the lock of the account. */
struct commit {
    struct list commit_link;        /* in the list of all spaces */
    size_t commit_pages;            /* promised to this space */
    struct session *commit_session; /* charged for them, or NULL */
};

struct commit_stat {
    size_t stat_total;
    size_t stat_kernel;
    size_t stat_promised; /* the sum of commit_pages */
    size_t stat_read_only;
    size_t stat_available;
};

/* A space begins, with no promises, charged to a session (NULL: to none) that
 * outlives it; and it ends, which makes all that it was
 * promised available again: its pages must have been freed. */
void commit_enter(struct commit *c, struct session *session);
void commit_leave(struct commit *c);

/* Promises `pages` more, after the kernel has reclaimed what it can. 0 or
 * -ENOMEM. */
int commit_promise(struct commit *c, size_t pages);

/* Takes back the promise of pages that the space no longer maps. */
void commit_release(struct commit *c, size_t pages);

/* A frame of a space becomes read-only for good: the promise passes from the
 * space to the frame. commit_free_read_only frees it, after its last
 * reference. */
void commit_make_read_only(struct commit *c, struct page *p);
void commit_free_read_only(struct page *p);

/* Whether a frame was given to commit_make_read_only. */
bool commit_is_read_only(const struct page *p);

void commit_stat(struct commit_stat *out);

/* Of a snapshot: the pages that programs have been promised, and the most that
 * they could have been, without reclaiming memory, if the running task or its
 * session asked for all the rest. */
size_t commit_committed(const struct commit_stat *st);
size_t commit_limit(const struct commit_stat *st);

/* NULL, or the first broken invariant; *where says where. */
const char *commit_verify(const char **where);
