/*
 * Debugging the heap (paper, section 6): which modes a cache is in, what the
 * allocator knows about a buffer, the transaction log, the error that it found,
 * leaks; and what all this needs of the platform. For the shell and the kernel;
 * mm/debug/ itself and its tests also include mm/debug/debug_impl.h.
 *
 * Modes belong to a cache. They are chosen at boot (kmem.debug=), or later for
 * a cache that has no allocated object. A cache that is in any mode has the
 * debug layout: slab data and bufctls are outside the slab, bufctls record the
 * last transactions, and buffers have room for redzones. The hot paths test
 * only that the flag word is 0; if it is not, they call mm/debug/check.c.
 */
#pragma once

#include "mm/kmem.h"
#include "mm/platform.h"

#define KMEM_FREED  0xdeadbeefu /* free memory */
#define KMEM_UNINIT 0xbaddcafeu /* allocated memory, not yet written to */
#define KMEM_GUARD  0xbbu       /* each byte of a redzone */

#define KMEM_GUARD_FRONT 8u /* bytes of redzone before a buffer */

#define KMEM_STACK_DEPTH 12

/* One transaction on a buffer (6.1). */
struct kmem_transaction {
    uint64_t trans_us;   /* mm_clock_us() then */
    uint32_t trans_task; /* mm_task_id() then; 0: no task yet */
    uint32_t trans_depth;
    uintptr_t trans_stack[KMEM_STACK_DEPTH]; /* callers, nearest first */
};

enum kmem_buf_state {
    KMEM_BUF_FREE,
    KMEM_BUF_USED,
    KMEM_BUF_BUSY, /* being checked and filled by an allocation or free; its
                      kmem_buf_stat says that it is used */
};

/* The state and the last transactions of one buffer. */
struct kmem_buf_stat {
    struct kmem_cache *stat_cache;
    uintptr_t stat_slab;   /* its kmem_slab */
    uintptr_t stat_bufctl; /* 0 if it has none: small and allocated */
    uintptr_t stat_buf;    /* where the object begins */
    size_t stat_index;     /* in the slab */
    size_t stat_next;      /* on the freelist: the index of the next buffer;
                              SIZE_MAX: its link is damaged, or it has none */
    bool stat_last;        /* the last one on the freelist */
    size_t stat_chunk;     /* bytes from it to the next */
    size_t stat_size;      /* as requested; if unknown, the object's size */
    enum kmem_buf_state stat_state;
    bool stat_in_magazine;              /* and free */
    bool stat_audited;                  /* the next two mean something */
    struct kmem_transaction stat_alloc; /* the last; depth 0: none yet */
    struct kmem_transaction stat_free;
};

/*
 * The modes that the letters of `text` stand for, up to `end` (NULL: to its
 * NUL). False, and nothing changed, if one is unknown; *bad gets it.
 */
bool kmem_debug_letters(const char *text, const char *end, unsigned *modes,
                        char *bad);

/* The letters of `modes` in `text` (8 bytes), "-" for none; returns text. */
const char *kmem_debug_text(unsigned modes, char *text);

/* kmem.debug=: modes for caches that will be made, of these names (separated
 * by commas, kept by the caller for ever; NULL: all). Before kmem_init. */
void kmem_debug_boot(unsigned modes, const char *names);

/* Whether handles of destroyed caches are told from those of caches that are
 * created soon after: until HANDLES_KEPT more were destroyed. Takes memory for
 * as many caches. After kmem_init. May sleep. */
#define HANDLES_KEPT 16
void kmem_handles_keep(bool keep);

/*
 * Puts a cache into `modes`, all of it: a mode that is not in the set ends.
 * Modes change the layout of slabs, so no object may be allocated; free slabs
 * are destroyed first. Returns 0, or
 *
 *     -KMEM_EBUSY   objects are allocated; kmem_debug_set_error says how many
 *     -KMEM_EPERM   one of the allocator's own caches
 *     -KMEM_EINVAL  pages of this cache or platform cannot be unmapped
 *     -KMEM_EAGAIN  the cache is growing or being reaped
 *     -KMEM_ENOMEM
 *
 * having changed nothing. May sleep; not in interrupts.
 */
int kmem_debug_set(struct kmem_cache *cp, unsigned modes);

/* The error as a sentence: "3 objects are allocated; free them first, or boot
 * with kmem.debug=FPZU,foo". `text` is room for it. */
const char *kmem_debug_set_error(const struct kmem_cache *cp, unsigned modes,
                                 int error, char *text, size_t size);

/* For experiments: all slabs of this cache begin at the same offset, until its
 * modes change. It has no slab yet. */
void kmem_debug_uncolour(struct kmem_cache *cp);

#define KMEM_ENOMEM 12

/* The modes that a cache is in. */
unsigned kmem_debug_modes(const struct kmem_cache *cp);

/* ---- queries ------------------------------------------------------------ */

/* The state of the buffer that `addr` is in: of any cache, debugged or not.
 * False if it is in none. */
bool kmem_buf_stat(const void *addr, struct kmem_buf_stat *out);

/* Calls fn for each buffer of the cache, slabs in list order, without a lock,
 * until it returns false. Bounded by the cache's counts. */
typedef bool kmem_buf_fn_t(const struct kmem_buf_stat *buf, void *arg);
void kmem_buf_walk(struct kmem_cache *cp, kmem_buf_fn_t *fn, void *arg);

/* The same for an address in a page that mode S unmapped: its last buffer.
 * (Pages that mode G unmaps still belong to a slab.) stat_buf is 0 if it is
 * outside all buffers. */
bool kmem_unmapped_stat(const void *addr, struct kmem_buf_stat *out);

/* ---- the transaction log (6.1) ------------------------------------------- */

enum kmem_op {
    KMEM_OP_ALLOC,
    KMEM_OP_FREE
};

struct kmem_log_entry {
    uint32_t log_seq;  /* 1, 2, 3, …; 0: not used yet */
    uint32_t log_prev; /* the previous one of this buffer, 0: none */
    enum kmem_op log_op;
    uint32_t log_cpu;             /* the processor that did it */
    struct kmem_cache *log_cache; /* destroyed if its cache_number is not */
    uint32_t log_number;          /* this one, which it was then */
    const void *log_slab;
    const void *log_buf;
    size_t log_size; /* requested bytes */
    struct kmem_transaction log_trans;
};

/* The newest number (0: empty) and how many are kept. */
uint32_t kmem_log_last(void);
uint32_t kmem_log_kept(void);
size_t kmem_log_pages(void); /* of the log itself */

/* Copies transaction number `seq`. False if it is not kept (any more). */
bool kmem_log_get(uint32_t seq, struct kmem_log_entry *out);

/* The entry in the log itself, for tools; NULL if it is not kept. */
const struct kmem_log_entry *kmem_log_at(uint32_t seq);

/* The name of the entry's cache; "?" if it was destroyed. */
const char *kmem_log_name(const struct kmem_log_entry *entry);

/* Nothing more is recorded: an error has happened. */
extern bool kmem_log_stopped;

/* ---- errors ------------------------------------------------------------- */

/* The kinds, in illumos' words. */
enum kmem_error {
    KMERR_NONE,
    KMERR_MODIFIED,  /* a free buffer was written to */
    KMERR_REDZONE,   /* written past its end, or before its start */
    KMERR_DUPFREE,   /* freed twice */
    KMERR_BADADDR,   /* freed: an address that is no allocated buffer */
    KMERR_BADBUFCTL, /* bufctl damaged */
    KMERR_BADSLAB,   /* slab data or freelist damaged */
    KMERR_BADCACHE,  /* freed to another cache than its own */
    KMERR_BADSIZE,   /* freed with another size than allocated */
    KMERR_BADBASE,   /* freed: an address inside a buffer */
    KMERR_FAULT, /* fault: memory that S or G unmapped, or an address that is
                        baddcafe, deadbeef or near them */
    KMERRS
};

/* The error that stopped the machine, for tools that read memory. */
struct kmem_error_record {
    enum kmem_error error_kind;
    uint32_t error_task;
    uint64_t error_us;
    struct kmem_cache *error_cache; /* that was called */
    struct kmem_cache *error_owner; /* that the buffer belongs to, or NULL */
    const void *error_buf;          /* as it was given, or the buffer */
    const void *error_base;         /* the buffer that it is in, or NULL */
    const void *error_slab;         /* its kmem_slab, or NULL */
    const void *error_bufctl;       /* its bufctl, if it has one */
    const void *error_at;           /* damage: the first wrong byte's address */
    size_t error_offset;            /* the same from the buffer's start; of a
                                       word, as is what follows, for MODIFIED */
    uint32_t error_expected;
    uint32_t error_found;
    size_t error_size;      /* BADSIZE: requested */
    size_t error_size_free; /* BADSIZE: freed with */
    const char *error_text; /* more about it, or NULL */
};

extern struct kmem_error_record kmem_last_error;

/* Keeps an error in kmem_last_error, reports it as in section 6.8, and panics.
 * No lock held. */
void kmem_error(const struct kmem_error_record *error)
    __attribute__((noreturn, cold));

/* Ring 0 could not read or write at `addr`: if the heap explains it, reports
 * that and records it as the last error. It does not panic: its caller does. */
bool kmem_fault(const void *addr);

/* The name of an error kind in one word, for tools: "modified". */
const char *kmem_error_name(enum kmem_error kind);

/* The sentence: "buffer modified after being freed". */
const char *kmem_error_title(enum kmem_error kind);

/* ---- leaks (6.7) --------------------------------------------------------- */

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

/* Finds the pointers to the buffer at `buf` in such a scan: calls fn with the
 * address of each word whose value is an address in it, and the buffer that
 * contains the word; NULL `in`: a root. False if there are no pages. */
typedef bool kmem_ref_fn_t(uintptr_t at, const char *root,
                           const struct kmem_buf_stat *in, void *arg);
bool kmem_leak_refs(const void *buf, kmem_ref_fn_t *fn, void *arg);

/* ---- the platform -------------------------------------------------------- */

/* What the modes need besides mm/platform.h, where MM_DEBUG is 1. */

/* Microseconds since some fixed moment, as fine as the clock is. */
uint64_t mm_clock_us(void);

/* The current task, 0 if there is none; the name of a task, "" if it has
 * ended. */
uint32_t mm_task_id(void);
const char *mm_task_name(uint32_t id);

/* The number of the current processor: 0, 1, … */
uint32_t mm_cpu_id(void);

/* The callers of the allocator: return addresses outside of it, nearest first.
 * Returns how many it stored. */
unsigned mm_backtrace(uintptr_t *pc, unsigned max);

/* Writes "function+0x1c" for an address to which a call returns, or a number
 * where no symbol fits; returns text. */
const char *mm_symbol(uintptr_t pc, char *text, size_t size);

/* Maps a page of kernel memory, or unmaps it, so that an access faults; NULL:
 * neither. False if the platform cannot unmap pages. */
bool mm_page_map(void *page, bool present);

/* Describes an address outside the heap ("the stack of task 3 (sh)"); true if
 * it is on a stack. */
bool mm_describe(const void *addr, char *text, size_t size);

/* Between these two calls only the caller runs. They do not nest. */
void mm_stop_others(void);
void mm_resume_others(void);

/* Calls fn with each range that may hold the only pointer to a buffer: data,
 * the stacks in use, registers. */
typedef void mm_root_t(const void *from, const void *end, const char *name);
void mm_roots(mm_root_t *fn);

/* Whether mm_roots has read the live part of this cache's objects: stacks. */
bool mm_is_root(const struct kmem_cache *cp);

/* A record for tools, one line of JSON. */
void mm_event(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* The address that a word in an object of this cache stands for. The word
 * itself, except in objects that name memory in another way. 0: none. */
uintptr_t mm_pointer(const struct kmem_cache *cp, uintptr_t word);
