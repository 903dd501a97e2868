/*
 * Schedules from seeds, for mmtest -r and for mmraces (mm/tests/races/).
 *
 * A seed has a few schedules for each operation. Up to four tasks make some
 * calls of this operation and of two others that the seed chooses. The seed
 * also chooses how many virtual processors there are, how the schedule decides
 * where to switch, and how often.
 */
#pragma once

#include "mm/tests/explore/ops.h"

#define SEEDS_SCHEDULES (8u * ALL_OPS_COUNT)

/* The command that runs a schedule again, without SEED.NUMBER. */
extern const char *seeds_command;

/* Points are many: each access to memory is one (mmraces). */
extern bool seeds_accesses;

/* One schedule, or all, of a seed. A failure ends the process. */
void seeds_run_one(uint32_t seed, unsigned number);
void seeds_run(uint32_t seed);

/* Checks that each way to switch finds a planted race and a planted deadlock
 * within 50 seeds; else ends the process. */
void seeds_find_planted(void);

/* The same for this case of two tasks. */
void seeds_find(const struct fiber_case *c);

/* The seed in SEED or SEED.NUMBER; all steps of that schedule will be shown. */
uint32_t seeds_read(const char *text);
