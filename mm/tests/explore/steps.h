/*
 * The steps of a schedule: the last ones are kept for a report, and all of them
 * are in a digest.
 */
#pragma once

#include "mm/platform.h"

struct step {
    unsigned step_task;
    uint32_t step_point; /* its number in the task */
    const char *step_what;
    const mm_lock_t *step_lock; /* NULL: none */
    const char *step_file;
    int step_line;
    uintptr_t step_pc; /* instead of file and line */
};

/* Forgets the steps of the schedule before. */
void steps_begin(void);

void steps_add(const struct step *s);

/* Prints the steps after which another task goes on, and the last one; or
 * all. */
void steps_print(bool all);

/* Prints function and line of an instruction, as far as they are known. `pc` is
 * the address after a call in it. */
void steps_print_place(uintptr_t pc);
