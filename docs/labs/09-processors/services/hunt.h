/*
 * A deterministic hunt for races, for lab 9.
 *
 * A race shows when another processor comes in at the wrong instruction. A hunt
 * tries them all: one processor executes its part instruction by instruction,
 * and after the first, the second, … the other one executes the whole of its
 * part. What both have used is made anew each time, and examined after it. So a
 * race between two parts is found at each run, or there is none that takes only
 * one interruption.
 *
 * If the other cannot go on, because the first holds a lock, then the first
 * does: a lock that protects the data has no wrong instruction.
 */
#pragma once

#include "kernel/lib/types.h"

struct hunt {
    const char *hunt_name;
    bool (*hunt_begin)(void); /* makes what both use; false: no memory */
    void (*hunt_first)(void);
    void (*hunt_other)(void);
    const char *(*hunt_wrong)(void); /* NULL, or what is wrong */
    void (*hunt_end)(void);
};

struct hunt_result {
    const char *result_wrong; /* NULL, or what was wrong first */
    unsigned result_after;    /* so many instructions of the first part */
    uintptr_t result_next;    /* the address of the next one */
    unsigned result_steps;    /* instructions of the first part */
    unsigned result_waits;    /* after how many the other had to wait */
    bool result_memory;       /* false: there was no memory to begin */
};

extern const struct hunt hunts[];
extern const size_t hunts_count;

/* The hunt of that name, or NULL. */
const struct hunt *hunt_find(const char *name);

/* Runs a hunt on the first processor and the last, of which there are two at
 * least. In a counted run the result is always the same. May sleep. */
void hunt_run(const struct hunt *h, struct hunt_result *out);
