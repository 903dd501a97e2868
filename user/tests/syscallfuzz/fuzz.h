/*
 * syscallfuzz: declarations shared by its files.
 *
 *     main.c    batches in child processes, and how they end
 *     args.c    random system calls: numbers and arguments from a seed
 *     fuzzer.c  what codefuzz and stormfuzz use too
 */
#pragma once

#include "user/lib/unistd.h"

#define REPORT_HANDLE (HANDLES_MAX - 1) /* no call gets this number */

struct fuzz_call {
    uint32_t call_number;
    uint32_t call_registers[6]; /* EBX ECX EDX ESI EDI EBP */
};

/* Starts the sequence of a batch and creates the data for its pointers. */
void args_begin(uint32_t seed);

/* The next call of the sequence. */
void args_next(struct fuzz_call *call);
