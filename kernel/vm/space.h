/*
 * Address spaces: page directory, regions, and the faults that fill them.
 *
 *     0x00400000  stack (grows down from 0x00500000, a page per fault)
 *     0x00500000  text, data, bss, heap (grows up by sbrk)
 *     0x40000000  mmap
 *     0xC0000000  the kernel, the same tables in every space
 *
 * The stack lies below the program so that a small one needs one page table; a
 * stack that grows too far runs into what is never mapped.
 *
 * A space is changed by the task that runs in it, or by whoever holds that
 * task blocked, so it needs no lock. Frames may be in several spaces at once
 * (copy-on-write after fork) and count their references.
 */
#pragma once

#include "kernel/abi/types.h"
#include "kernel/vm/user.h"
#include "mm/page.h"

#define SPACE_STACK_MAX  MIB(1)
#define SPACE_STACK_TOP  (USER_BASE + SPACE_STACK_MAX)
#define SPACE_IMAGE_BASE SPACE_STACK_TOP
#define SPACE_MMAP_BASE  0x40000000u

enum region_kind {
    REGION_IMAGE, /* from an executable */
    REGION_HEAP,
    REGION_MMAP,
    REGION_STACK,
    REGION_DEVICE, /* a device's memory: always there, not inherited by fork */
    REGION_DMA,    /* contiguous frames, the same way */
};

struct region {
    struct list region_link; /* by address */
    uaddr_t region_start;    /* page aligned */
    uaddr_t region_end;
    uint8_t region_prot; /* PROT_READ | PROT_WRITE */
    uint8_t region_kind;
};

struct space {
    uint32_t *space_directory;
    struct list space_regions;
    uaddr_t space_break;      /* end of the heap, any byte */
    uaddr_t space_break_base; /* where it began */
    size_t space_pages;       /* frames mapped */
    size_t space_tables;      /* page tables */
    size_t space_dma;         /* frames in regions for DMA */
};

/* The caches; handlers for page faults. Boot only. */
void space_init(void);

/* An empty space, NULL if there is no memory. */
struct space *space_create(void);

/* A copy for fork: frames are shared, to be copied when one side writes. NULL
 * if there is no memory; then `from` works on as before. */
struct space *space_copy(struct space *from);

/* Gives everything back. Not while a processor runs in it. */
void space_destroy(struct space *s);

/* The physical address of its directory: what CR3 gets. */
paddr_t space_cr3(const struct space *s);

/* Adds a region of zero-filled pages that come when they are touched. Page
 * aligned. 0, -ENOMEM, -EEXIST (overlaps), -EINVAL (not in user space). */
int space_add_region(struct space *s, uaddr_t start, uaddr_t end, int prot,
                     enum region_kind kind);

/* Makes the page at `addr` readable, or writable, as a fault there would:
 * 0, -EFAULT (no region, or it forbids that), -ENOMEM. */
int space_fault(struct space *s, uaddr_t addr, bool write);

/* Where the kernel may touch byte `addr` of a space, which is brought in (for
 * writing: made private) if need be. NULL and *error if it cannot, or it is a
 * device's. Good up to the end of the page. Of no space (NULL): addr itself,
 * the kernel's. */
void *space_touch(struct space *s, uaddr_t addr, bool write, int *error);

/* Copies between spaces (NULL: the kernel), `n` bytes, page by page; one copy.
 * 0 or an error. */
int space_transfer(struct space *to, uaddr_t dst, struct space *from,
                   uaddr_t src, size_t n);

int32_t space_sbrk(struct space *s, int32_t change);
int32_t space_mmap(struct space *s, size_t length, int prot);
int space_munmap(struct space *s, uaddr_t addr, size_t length);

/* Maps physical memory, whole pages, past the caches; whoever asks may have it.
 * The address, -ENOMEM (no gap, no page table) or -EINVAL. The kernel itself
 * does not copy from or to there: space_touch says -EFAULT. */
int32_t space_map_device(struct space *s, paddr_t first, size_t bytes);

/* Zeroed frames, one behind the other in physical memory too: the address, and
 * *paddr. They go with munmap or the space. -ENOMEM. */
int32_t space_dma_alloc(struct space *s, size_t pages, paddr_t *paddr);

/* NULL, or the first broken invariant. */
const char *space_verify(struct space *s);

/* For whoever looks on, with sched_lock held while the task that runs in the
 * space does not: the number of the frame at a user address, which may be a
 * device's and none of the allocator's; false if nothing is mapped there. And
 * an address where a frame is mapped, 0 if it is nowhere. */
bool space_frame_at(const struct space *s, uaddr_t addr, size_t *frame);
uaddr_t space_mapping(const struct space *s, size_t frame);

/* Pages for DMA that a task has now; 0 also where there is no such task. */
size_t space_dma_pages(pid_t pid);
