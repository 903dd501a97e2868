/*
 * The kernel under the compiler's sanitizers: `make SANITIZE=1`. This folder
 * is the run time that their code calls; no other build contains it.
 *
 * Address sanitizer. The compiler puts a call in front of every load and store
 * and room around every global object and every array on the stack. A shadow
 * has one byte for each 8 bytes of the direct map and says which of them may
 * be touched: 0 all, 1 to 7 the first so many, anything else none, and why.
 *
 *     0xC0000000  the direct map           byte at A
 *     0xF8000000  its shadow               byte at (A >> 3) + KASAN_OFFSET
 *
 *     kasan.c         the shadow, the checks, start
 *     kasan_map.c     the shadow's page tables
 *     kasan_mm.c      memory that is allocated and freed
 *     kasan_string.c  memcpy and its like, copies from and to programs
 *     mistakes.c      one of each kind, on purpose
 *     report.c        the report of a failed check, and the panic
 *     ubsan.c         the other sanitizer: undefined behaviour
 *
 * The allocator (mm/ and its tests), which touches memory that no other code
 * may, the walk along stack frames and this folder have no address checks;
 * undefined behaviour is looked for everywhere but here.
 *
 * The compiler defines the meaning of a shadow byte for stacks; all others are
 * defined here.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/x86/paging.h"

/* The compiler and the linker call most functions of this folder, so no header
 * declares them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define KASAN_SHADOW  0xF8000000u
#define KASAN_GRANULE 8u /* bytes for which there is one shadow byte */
#define KASAN_OFFSET  (KASAN_SHADOW - KERNEL_BASE / KASAN_GRANULE)

enum kasan_shadow {
    KASAN_OPEN = 0x00,
    KASAN_STACK_LEFT = 0xF1,  /* below a function's arrays */
    KASAN_STACK_MID = 0xF2,   /* between two of them */
    KASAN_STACK_RIGHT = 0xF3, /* above them */
    KASAN_STACK_SCOPE = 0xF8, /* one whose block has been left */
    KASAN_GLOBAL = 0xF9,      /* after a global object */
    KASAN_FREE = 0xFB,        /* a free object of a slab */
    KASAN_GAP = 0xFC,         /* the rest of a slab; after a large request */
    KASAN_PAGE = 0xFF,        /* a free page of buddy */
};

/* What a report is about. Those of undefined behaviour have only a kind, and
 * the place in the source in `report_text`. */
struct sanitizer_report {
    unsigned report_count; /* reports since sanitizer_expect */
    const char *report_kind;
    uintptr_t report_addr; /* the first byte that may not be touched */
    size_t report_size;    /* bytes that the access was to touch */
    bool report_write;
    char report_text[128];
};

/* For tests: from now on reports are only counted, the first is noted in *r,
 * and the operation is done (except a bad free). NULL: reports are panics
 * again. */
void sanitizer_expect(struct sanitizer_report *r);

/* Begins a report. False if there must be none: during another one, and after
 * a panic. */
bool sanitizer_enter(void);

/* ---- the address sanitizer's parts for each other ----------------------- */

static inline uint8_t *kasan_shadow(uintptr_t addr)
{
    return (uint8_t *)(addr / KASAN_GRANULE + KASAN_OFFSET);
}

/* Whether `addr` has a shadow. */
bool kasan_covers(uintptr_t addr);

/* Whether the byte at `addr`, which has a shadow, may not be touched. */
bool kasan_closed(uintptr_t addr);

/* Allows accesses to [addr, addr + size), whose start is a multiple of 8; and
 * forbids them, whole granules only, for the reason `why`. */
void kasan_open(const void *addr, size_t size);
void kasan_close(const void *addr, size_t size, enum kasan_shadow why);

/* kasan_mm.c: closes the pages that buddy has. */
void kasan_pages_init(void);

/* Checks an access by the code that returns to `pc` and has the frame `ebp`. */
void kasan_check(uintptr_t addr, size_t size, bool write, uintptr_t pc,
                 uintptr_t ebp);

/* The name and source file of the global object in or after which `addr`
 * lies, and where it begins; NULL if there is none. */
const char *kasan_global(uintptr_t addr, const char **file, uintptr_t *start,
                         size_t *size);

/* report.c: report an access that failed its check, and a bad free (true: free
 * all the same). `pc` and `ebp` as above. */
void kasan_report(uintptr_t addr, size_t size, bool write, uintptr_t pc,
                  uintptr_t ebp);
bool kasan_report_free(const char *kind, uintptr_t addr, uintptr_t pc,
                       uintptr_t ebp);
/* After sanitizer_enter. */
void ubsan_report(const char *kind, const char *text, uintptr_t pc,
                  uintptr_t ebp);

/* `pc` and `ebp` of the caller of the function that uses this: the place that a
 * check or a report names. */
#define CALLER                                                                 \
    (uintptr_t) __builtin_return_address(0),                                   \
        *(const uintptr_t *)__builtin_frame_address(0)
