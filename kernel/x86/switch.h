/*
 * From one kernel stack to another (switch.asm).
 */
#pragma once

#include "kernel/lib/types.h"

/* Leaves this stack, noting in *save where it was, for the one at `load`.
 * Returns when somebody comes back here. */
void switch_stack(uint32_t *save, uint32_t load);

/* Where a new stack begins. */
void switch_begin(void);

/* What lies at the saved stack pointer. */
struct switch_frame {
    uint32_t edi, esi, ebx, ebp, eip;
};

/* Prepares a new stack below `top`: the first switch to what this returns
 * calls fn(arg), which may not return. */
static inline uint32_t switch_prepare(vaddr_t top, void (*fn)(void *),
                                      void *arg)
{
    struct switch_frame *f = (struct switch_frame *)top - 1;

    *f = (struct switch_frame){.esi = (uint32_t)arg,
                               .ebx = (uint32_t)fn,
                               .eip = (uint32_t)switch_begin};
    return (uint32_t)f;
}
