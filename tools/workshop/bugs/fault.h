/*
 * Mistakes that the commands fault and cpufault make. No function is inlined:
 * each shows under its own name.
 */
#pragma once

#define MISTAKE __attribute__((noinline)) void

MISTAKE read_null(void);
MISTAKE overflow_stack(void);
