/*
 * Shared by the memory commands: sums over caches, rows in order, numbers
 * that fit a column, and arguments that name a cache or an address.
 *
 * The commands themselves are in the files beside this one:
 *
 *     cmd_kmem_stat.c     kmastat     cmd_kmem_reap.c        reap
 *     cmd_kmem_merged.c   kmastat --merged
 *     cmd_kmem_cache.c    cache       cmd_pages.c            buddyinfo pages
 *     cmd_kmem_colours.c  cache -c    cmd_kmem_whatis.c      whatis
 *     cmd_kmem_objects.c  cache -o        with cmd_kmem_owner.c
 *     cmd_kmem_users.c    cache -u leaks
 *     cmd_kmem_slabs.c    slabs       cmd_kmem_playground.c  kmem
 *     cmd_kmem_mag.c      magazines   cmd_verify.c           verify
 *
 * The workshop kernel adds stress (tools/workshop); tools/watch on the host
 * adds mark, diff, frag, why and slabtop.
 *
 * Only `kmem` and `stress` allocate: that is their purpose.
 */
#pragma once

#include "kernel/shell/shell.h"
#include "mm/inspect/kmem_stat.h"

#define HEAP_CELL 24 /* bytes of a formatted number, NUL included */

/* Columns summed over some caches, or the row of one. Bytes where not said. */
struct heap_sum {
    size_t sum_caches;
    size_t sum_inuse;   /* objects */
    size_t sum_trapped; /* free objects, in magazines */
    size_t sum_total;   /* objects */
    size_t sum_slabs;
    size_t sum_full;
    size_t sum_partial;
    size_t sum_free;
    uint64_t sum_mem;
    uint64_t sum_used; /* in use * size */
    uint64_t sum_allocs;
    uint64_t sum_frees;
    uint64_t sum_fails;
};

#define HEAP_KINDS 3 /* enum kmem_kind */

struct heap_totals {
    struct heap_sum total_kind[HEAP_KINDS];
    struct heap_sum total_large; /* kmem_alloc above the last class */
    struct heap_sum total_all;
    uint64_t total_own;      /* of total_all: from suppliers of their own */
    uint64_t total_unmapped; /* of no cache: unmapped by mode S */
    uint64_t total_supplier; /* what segkmem says that it handed out */
};

/* Adds the row of one cache to a sum. */
void heap_add(struct heap_sum *sum, const struct kmem_cache_stat *st);

/* Walks all caches. total_all.sum_mem - total_own + total_unmapped is
 * total_supplier unless the accounts are wrong or memory moved meanwhile. */
void heap_totals(struct heap_totals *t);

/* True if the counts of a snapshot contradict each other; such rows are
 * marked `!`. */
bool heap_bad_row(const struct kmem_cache_stat *st);

#define HEAP_BATCH 32
#define HEAP_NOTED 2048

/* Visits all caches by descending key, equal keys in creation order, without
 * memory for sorting all of them: a walk over the caches finds the next
 * HEAP_BATCH rows. Each cache is visited once, also if keys change meanwhile.
 * Start with a zeroed struct. NULL at the end. */
struct heap_order {
    struct kmem_cache *order_only; /* visits no other; NULL: all */
    unsigned order_rows, order_visited;
    uint32_t order_noted[HEAP_NOTED / 32]; /* by row_index: visited */
    struct heap_row {
        uint64_t row_key;
        size_t row_index; /* from 1 on, as they were created */
        struct kmem_cache *row_cache;
    } order_row[HEAP_BATCH];
};

typedef uint64_t heap_key_t(const struct kmem_cache_stat *st);

struct kmem_cache *heap_next(struct heap_order *at, heap_key_t *key,
                             struct kmem_cache_stat *out);

heap_key_t heap_key_mem;

/* Visits all caches, oldest first. */
#define heap_all(cp, st)                                                       \
    for ((cp) = kmem_cache_first(); (cp) && (kmem_cache_stat(cp, st), true);   \
         (cp) = kmem_cache_next(cp))

/* Visits cache `only`, or all if it is NULL, most memory first. ^C ends it. */
#define heap_each(cp, only, st)                                                \
    for (struct heap_order heap_at = {.order_only = (only)};                   \
         !shell_interrupted() &&                                               \
         ((cp) = heap_next(&heap_at, heap_key_mem, (st))) != NULL;)

#define HEAP_NAME 17 /* width of a column of names */

/* How much of `whole` is `part`, in per cent: "12.3"; "0.0" of nothing. Returns
 * buf. */
const char *heap_percent(uint64_t part, uint64_t whole, char buf[HEAP_CELL]);

/* A span of milliseconds in at most 6 characters: 850ms 12.3s 5m 17h 3d. */
const char *heap_age(uint64_t ms, char buf[HEAP_CELL]);

/* True if `pattern` is NULL, occurs in `name`, or, if it has `*` or `?`,
 * matches the whole of it. */
bool heap_match(const char *name, const char *pattern);

/* The next of a sequence of pseudo-random numbers; *state must not be 0. */
uint32_t heap_random(uint32_t *state);

/* Bytes of the kmem_slab at a small slab's end; 0 in the large layout. */
size_t heap_header_bytes(const struct kmem_cache_stat *st);

/* The cache called `name`, or NULL after an error line. */
struct kmem_cache *heap_cache_named(const char *name);

/* The cache called `word`; NULL without a word. False after an error line. */
bool heap_cache_argument(const char *word, struct kmem_cache **cp);

/* An address from `word`, hexadecimal, a symbol, or a symbol and an offset
 * ("kmain+0x1c"); false if it is none, the second one after an error. */
bool heap_is_address(const char *word, uintptr_t *addr);
bool heap_address(const char *word, uintptr_t *addr);

/* For `slabs ADDR`: the slab that holds an address. 0, or 1 after an error. */
int heap_show_slab(uintptr_t addr);

/* Offers the first `n` symbols. */
struct shell_offer;
void heap_offer_symbols(const struct shell_offer *o, uint32_t n);

/* The number that option -letter was given: true and *n unchanged without the
 * option, false after an error line if it is no number from 1 on. */
bool heap_number(char letter, uint32_t *n);

/* The word at an address, if ring 0 can read it. */
bool heap_word(uintptr_t addr, uintptr_t *word);

struct kmem_buf_stat;

/* The state of a buffer: used, free, or a round: free, in a magazine. */
struct heap_state {
    char state_cell; /* # . o */
    const char *state_name, *state_text;
};

const struct heap_state *heap_buf_state(const struct kmem_buf_stat *b);

/* Whether a buffer contradicts its cache: a large one has a bufctl, which is on
 * the slab's freelist or in the hash table. */
bool heap_buf_bad(const struct kmem_buf_stat *b,
                  const struct kmem_cache_stat *cache);

/* `cache -o`: the allocated or free objects of a cache, or of all. */
int heap_print_objects(char **argv);

/* `cache -u`: the objects in use of a cache, or of all, by the stack that
 * allocated them. */
int heap_print_users(char **argv);

/* For `cache NAME partial=sorted`: keeps that cache's partial slabs sorted, the
 * fullest first, or as the allocator has them. 0, or 1 after an error line. The
 * workshop kernel sets it. */
extern int (*heap_partial_order)(const char *name, bool sorted);

/* `kmastat --merged`. */
int heap_print_merged(char **argv);

/* Prints a line "! …" if the cache breaks an invariant. */
void heap_note_broken(struct kmem_cache *cp);

/* The place in list order of the slab at address `slab`; SIZE_MAX if the
 * cache has none there. */
size_t heap_slab_number(struct kmem_cache *cp, uintptr_t slab);

/* The object at `addr` as a character; `used` is what the slab's map says. */
char heap_object_cell(uintptr_t addr, bool used);

/* The name of the cache at `owner`, "" of NULL, "! no cache" of anything else.
 * Good until the next call. */
const char *heap_owner_name(const void *owner);

/* Print, in this order: the memory that an allocated object of the allocator's
 * own caches describes; the tasks that map a user address, or a frame. */
struct page;
void heap_print_own(const struct kmem_cache *cp, uintptr_t start);
void heap_print_user(uintptr_t addr);
void heap_print_mappers(const struct page *frame);

/* "full", "partial" or "free". */
const char *heap_state_name(enum kmem_slab_state state);

/* The table of `kmastat`, and the row of a cache in it. */
struct table heap_cache_table(void);
void heap_cache_row(const struct table *t, const struct kmem_cache_stat *st);

/* Where each byte of a cache's memory is. */
enum heap_ledger_entry {
    LEDGER_REQUESTED, /* objects in use, at the size asked for */
    LEDGER_ROUNDING,  /* their rounding up to the alignment */
    LEDGER_EXTRA_WORD,
    LEDGER_DEBUG_TAG,
    LEDGER_COLOUR, /* before the first object of each slab */
    LEDGER_TAIL,   /* after the last one */
    LEDGER_HEADER, /* kmem_slabs in the slabs */
    LEDGER_BUFCTL, /* 0: in the free buffers, or in a cache of their own */
    LEDGER_HASH,   /* pages of the hash table */
    LEDGER_FREE,   /* free objects */
    LEDGER_ENTRIES
};

/* How many colours a cache's slabs go through. */
static inline size_t heap_colours(const struct kmem_cache_stat *st)
{
    return (st->stat_colour_max - st->stat_colour_min) /
               MAX(st->stat_align, 1u) +
           1;
}

/* For `cache -c`: how many slabs have each, and where objects lie then. */
void heap_print_colours(struct kmem_cache *cp,
                        const struct kmem_cache_stat *st);

/* Fills in the entries and returns their sum, which is stat_mem unless the
 * accounts are wrong. */
size_t heap_ledger(struct kmem_cache *cp, const struct kmem_cache_stat *st,
                   size_t entry[LEDGER_ENTRIES]);

/* At how many objects a hash table of `entries` grows and shrinks (0: never):
 * statement S-32 solved for the number of objects. */
size_t heap_hash_grow(size_t entries);
size_t heap_hash_shrink(size_t entries);
