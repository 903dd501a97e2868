/*
 * What the debugging modes (section 6) need of the platform besides
 * mm/platform.h: names of tasks and addresses, unmapping of pages, the roots of
 * the leak scan. Needed only where MM_DEBUG is 1.
 */
#pragma once

#include "mm/platform.h"

struct kmem_cache;

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
