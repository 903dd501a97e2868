/*
 * mm/ under real threads: the platform of the test programs.
 */
#pragma once

#include "mm/buddy.h"

extern uint64_t threads_clock_ms;

void threads_start_pages(size_t frames);

#define THREADS 4

/* Calls run(0), run(1), … in THREADS threads, each with random numbers of its
 * own, and waits until all have returned. */
void threads_run(void (*run)(unsigned number), uint64_t seed);

/* A random number below n, in such a thread. */
unsigned threads_below(unsigned n);

#define CHECK(e)                                                               \
    do {                                                                       \
        if (!(e))                                                              \
            mm_panic("%s:%d: not true: %s", __FILE__, __LINE__, #e);           \
    } while (0)

/* The running thread has completed an operation. Each may take so many steps
 * (tools/test/budget.h), and holds no lock afterwards. */
void threads_completed(void);
