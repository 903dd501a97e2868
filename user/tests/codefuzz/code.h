/*
 * codefuzz: declarations shared by its files.
 *
 *     main.c    streams in child processes, and how they end
 *     code.c    random code: registers, flags, segments and instructions
 */
#pragma once

#include "user/lib/unistd.h"

#define CODE_BYTES PAGE_SIZE

/* Fills the CODE_BYTES at `code` with the stream of this seed. `area` has a
 * page of memory for its pointers and its stack. */
void code_make(uint8_t *code, uint8_t *area, uint32_t seed);
