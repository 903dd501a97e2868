/*
 * What the bugs of the zoo share: their cages, and the steps of a visit.
 */
#pragma once

#include "kernel/lib/list.h"
#include "tools/workshop/bugs/zoo.h"
#include "mm/kmem.h"

/* ---- the cages ---------------------------------------------------------- */

/* A node of a singly linked list: 32 bytes, so that 127 of them and the slab's
 * data fill a page to the last byte. */
struct snode {
    struct snode *next;
    uint32_t key;
    char name[20];
    uint32_t seen; /* last: where a free small buffer has its link */
};

/* One with a constructed state: on no list, used by nobody. */
struct conn {
    struct list conn_link;
    uint32_t conn_users;
    char conn_peer[20];
};

/* A large one. */
struct frame {
    uint32_t frame_length;
    uint8_t frame_bytes[1020];
};

enum zoo_cage {
    ZOO_SNODE,
    ZOO_CONN,
    ZOO_FRAME,
    ZOO_CAGES
};

struct kmem_cache *zoo_cage(enum zoo_cage which);

/* Makes cages that are missing; puts all into `modes`. 0, or an error of
 * kmem_debug_set. */
int zoo_cages_open(unsigned modes);
void zoo_cages_close(void);

/* Gives all cages new slabs, so that every visit finds the same. */
void zoo_cages_clean(void);

/*
 * From here on the plain cages that hold `a` and `b` (NULL: no more) are
 * remembered, byte for byte: what a bug does to them without being found is
 * undone by zoo_cages_mend. Nothing of a cage with the debug layout: there
 * damage is put aside.
 */
void zoo_cages_remember(void *a, void *b);
void zoo_cages_mend(void);

/* NULL, or what kmem_cache_verify says about the cages. */
const char *zoo_cages_verify(void);

/* Objects out of the cages that nothing points to. Then frees what zoo_lose
 * was told of. */
size_t zoo_cages_leaks(void);
void zoo_cages_found(void);

/* Whether a buffer's cache has the plain layout. */
bool zoo_is_plain(enum zoo_cage which);

/* ---- the steps of a visit ----------------------------------------------- */

/* The next step begins. Errors from now on are found then. */
void zoo_step(enum zoo_when when);

/* Found, though not by kmem_error. */
void zoo_noticed(const char *text);

/* What the guilty store will write: `found` at `at`, in the buffer at `base`.
 * For tests to compare with the report. */
#define zoo_will_write(base, at, found)                                        \
    zoo_tell_write(base, at, sizeof(*(at)), (uint32_t)(found))
void zoo_tell_write(const void *base, const void *at, size_t size,
                    uint32_t found);

/* A scan of the cages, which are then put in order: what follows is only to
 * leave them as they were. */
void zoo_look(void);

/* A buffer that nobody points to from now on; the zoo finds it all the same,
 * and frees it when the visit is over. */
void zoo_lose(enum zoo_cage which, const void *buf);

/* What every bug calls: part of it, so that its own name stands first in
 * backtraces, however well the compiler inlines. */
#define ZOO_INLINE static inline __attribute__((always_inline))

/* Keeps the optimiser from knowing what a pointer points to. */
#define zoo_hide(p) __asm__ volatile("" : "+r"(p) : : "memory")

/* ---- the bugs ----------------------------------------------------------- */

void bug_write_after_free(void);
void bug_byte_after_free(void);
void bug_link_after_free(void);
void bug_stale_realloc(void);
void bug_dangling_list(void);
void bug_early_put(void);
void bug_off_by_one(void);
void bug_string_end(void);
void bug_too_long(void);
void bug_underrun(void);
void bug_last_in_slab(void);
void bug_overflow(void);
void bug_wild_freelist(void);
void bug_wild_bufctl(void);
void bug_wild_slab(void);
void bug_double_free(void);
void bug_double_free_late(void);
void bug_free_never(void);
void bug_free_interior(void);
void bug_free_foreign(void);
void bug_free_stack(void);
void bug_free_static(void);
void bug_free_size(void);
void bug_uninitialised(void);
void bug_free_loop(void);
void bug_read_after_free(void);
void bug_constructed(void);
void bug_zero_bytes(void);
void bug_leak(void);
void bug_leak_on_error(void);
void bug_leak_cycle(void);
void bug_destroy_in_use(void);
void bug_destroy_twice(void);
void bug_destroyed_cache(void);
void bug_race(void);
void bug_late_interrupt(void);
