/*
 * Address spaces: page directory, regions, and the faults that fill them.
 *
 *     0x00400000  stack (grows down from 0x00500000)
 *     0x00500000  text, data, bss, heap (grows up by sbrk)
 *     0x40000000  mmap
 *     0xC0000000  the kernel, the same tables in every space
 *
 * The stack is below the program so that a small program needs one page table.
 * A stack that grows too far reaches addresses that are never mapped.
 *
 * Writable pages are promised when they are asked for (kernel/vm/commit.h), and
 * allocated when they are first touched. Read-only pages, and all page tables,
 * are allocated at once. So no fault on promised memory fails.
 *
 * Only the task that runs in a space changes it, or code that holds that task
 * blocked, so it needs no lock. Several spaces may share a frame (copy-on-write
 * after fork), which counts its references.
 */
#pragma once

#include "kernel/abi/types.h"
#include "kernel/vm/commit.h"
#include "kernel/vm/user.h"
#include "mm/page.h"

#define SPACE_STACK_MAX MIB(1)
#define SPACE_STACK_TOP (USER_BASE + SPACE_STACK_MAX)

/* Promised to every program for its stack; more is promised as the stack grows,
 * page by page, or the program ends. */
#define SPACE_STACK_RESERVE KIB(16)

#define SPACE_IMAGE_BASE SPACE_STACK_TOP
#define SPACE_MMAP_BASE  0x40000000u

enum region_kind {
    REGION_IMAGE, /* from an executable */
    REGION_HEAP,
    REGION_MMAP,
    REGION_STACK,
    REGION_DEVICE, /* a device's memory: always mapped, not inherited by fork */
    REGION_DMA,    /* contiguous frames, likewise */
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
    struct list *space_packed;  /* of a region: no gap from SPACE_MMAP_BASE on
                                   to its end. Or space_regions: not known */
    uint32_t space_charged;     /* those charged to its session: all but the
                                   device's and DMA regions */
    uaddr_t space_break;        /* end of the heap, any byte */
    uaddr_t space_break_base;   /* start of the heap */
    size_t space_pages;         /* frames mapped */
    size_t space_tables;        /* page tables */
    size_t space_dma;           /* frames in DMA regions */
    struct commit space_commit; /* its writable pages, but not a device's */
};

/* Creates caches, registers page fault handlers. Boot only. */
void space_init(void);

/* An empty space, charged to a session (NULL: none) that outlives it, or NULL:
 * no memory. */
struct space *space_create(struct session *session);

/* A copy for fork: frames are shared until one side writes, and the copy is
 * promised as many pages. NULL: no memory, or the caller was killed; `from` is
 * then unchanged. */
struct space *space_copy(struct space *from);

/* Frees the space and all it maps. No processor may run in it. */
void space_destroy(struct space *s);

/* The physical address of its directory, for CR3. */
paddr_t space_cr3(const struct space *s);

/* Adds a page-aligned region of zero-filled pages. 0, -ENOMEM, -EEXIST
 * (overlaps), -EINVAL (not in user space). */
int space_add_region(struct space *s, uaddr_t start, uaddr_t end, int prot,
                     enum region_kind kind);

/* Makes the page at `addr` readable or writable, as a fault there would: 0,
 * -EFAULT (no region, or not permitted), -ENOMEM (the stack cannot grow). */
int space_fault(struct space *s, uaddr_t addr, bool write);

/* The kernel's address of byte `addr` of a space, valid up to the end of the
 * page. Fills the page in (for writing: makes it private) if needed. NULL and
 * *error on failure or for device memory. For no space (NULL) it returns addr
 * itself, a kernel address. */
void *space_touch(struct space *s, uaddr_t addr, bool write, int *error);

/* Copies `n` bytes between spaces (NULL: the kernel) with a single copy. 0 or
 * an error. */
int space_transfer(struct space *to, uaddr_t dst, struct space *from,
                   uaddr_t src, size_t n);

int32_t space_sbrk(struct space *s, int32_t change);
int32_t space_mmap(struct space *s, size_t length, int prot);
int space_munmap(struct space *s, uaddr_t addr, size_t length);

/* Maps whole pages of physical memory, uncached; the caller has checked the
 * right. Returns the address, -ENOMEM (no gap, no page table) or -EINVAL. The
 * kernel does not copy from or to there: space_touch gives -EFAULT. */
int32_t space_map_device(struct space *s, paddr_t first, size_t bytes);

/* Allocates zeroed, physically contiguous frames: returns the address, and
 * *paddr. Freed by munmap or with the space. -ENOMEM. */
int32_t space_dma_alloc(struct space *s, size_t pages, paddr_t *paddr);

/* NULL, or the first broken invariant. */
const char *space_verify(struct space *s);

/* For inspection while the task of the space does not run; the caller holds
 * sched_lock. space_frame_at: the frame number at a user address, which may be
 * a device's; false if nothing is mapped there. space_mapping: an address where
 * a frame is mapped, or 0. */
bool space_frame_at(const struct space *s, uaddr_t addr, size_t *frame);
uaddr_t space_mapping(const struct space *s, size_t frame);

/* DMA pages that a task has; 0 if there is no such task, or if it runs on
 * another processor. */
size_t space_dma_pages(pid_t pid);
