/*
 * Switching from one kernel stack to another (switch.asm).
 */
#pragma once

#include "kernel/lib/types.h"

/* Saves this stack's pointer in *save and switches to the stack at `load`.
 * Returns when a task switches back. */
void switch_stack(uint32_t *save, uint32_t load);

/* The first code on a new stack. */
void switch_begin(void);

/* The contents of the saved stack pointer. */
struct switch_frame {
    uint32_t edi, esi, ebx, ebp, eip;
};

/* Prepares a new stack below `top`: the first switch to the result calls
 * fn(arg), which may not return. */
static inline uint32_t switch_prepare(vaddr_t top, void (*fn)(void *),
                                      void *arg)
{
    struct switch_frame *f = (struct switch_frame *)top - 1;

    *f = (struct switch_frame){.esi = (uint32_t)arg,
                               .ebx = (uint32_t)fn,
                               .eip = (uint32_t)switch_begin};
    return (uint32_t)f;
}
