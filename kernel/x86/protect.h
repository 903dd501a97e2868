/*
 * What newer processors refuse (Intel SDM volume 3, 2.5 and 4.6.1). Each is
 * switched on where CPUID has it:
 *
 *     SMEP   ring 0 runs no page of a program
 *     SMAP   ring 0 reads and writes none, unless EFLAGS.AC is set, as in the
 *            functions of copy.asm
 *     UMIP   ring 3 does not read where the kernel's tables are: sgdt, sidt,
 *            sldt, str, smsw
 */
#pragma once

#include "kernel/lib/types.h"

/* Bits of CR4. */
#define PROTECT_UMIP (1u << 11)
#define PROTECT_SMEP (1u << 20)
#define PROTECT_SMAP (1u << 21)

/* First of all: the kernel's text can still be written, and there is no trap
 * yet. */
void protect_init(void);

/* The protections that are on. */
uint32_t protect_on(void);

/* NULL, or what is wrong. */
const char *protect_verify(void);
