/*
 * mm/ under real threads: the test program's platform.
 */
#pragma once

#include "mm/buddy.h"

extern uint64_t threads_clock_ms;

void threads_start_pages(size_t frames);

/* So many threads use mm/ from now on; first only the one of main. */
void threads_use(unsigned count);

/* The running thread has completed an operation. Each may take so many steps
 * (tools/test/budget.h), and holds no lock afterwards. */
void threads_completed(void);

/* The running thread has completed its last one. */
void threads_end(void);
