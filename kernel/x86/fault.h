/*
 * Exceptions on purpose, for looking at what the kernel makes of them (Intel
 * SDM volume 3, section 6.15). Only those that C has no words for.
 */
#pragma once

#include "kernel/lib/types.h"

/* #UD: the opcode that is kept undefined for this. */
static inline void fault_opcode(void)
{
    __asm__ volatile("ud2");
}

/* #GP with the selector as its error code: there is no such descriptor. */
static inline void fault_protection(void)
{
    __asm__ volatile("movw %w0, %%gs" : : "r"(0xfff8));
}
