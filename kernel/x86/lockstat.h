/*
 * How often and for how long spin locks are held, in kernels with
 * CONFIG_DEBUG. Locks of one name and rank are counted together, as a class:
 * those of all caches, for example.
 *
 * Times are in units of the time-stamp counter, and include what the checks of
 * such a kernel cost. Where the counter counts the instructions of all
 * processors, those that others run meanwhile are included too.
 */
#pragma once

#include "kernel/lib/types.h"

struct spinlock;

#define LOCK_CLASSES_MAX 32

struct lock_class {
    const char *class_name;
    unsigned class_rank;
    uint32_t class_busy;   /* 1 while a processor changes what follows */
    uint64_t class_taken;  /* times */
    uint64_t class_waited; /* times that another processor held it */
    uint64_t class_turns;  /* of the loop in spin_wait, all together */
    uint64_t class_held;   /* time, all together */
    uint64_t class_longest;
    uintptr_t class_release; /* where a lock was released after that time */
};

/* Copies the class of that number. Returns false if there are no more. */
bool lock_class_stat(unsigned number, struct lock_class *out);

/* When the counts of all classes began. */
uint64_t lock_class_since(void);

/* All counts begin anew. */
void lock_class_reset(void);

/* The class of a lock, which is made known at first. */
struct lock_class *lock_class_of(struct spinlock *l);

/* Counts one turn of a processor that waits, and one hold, which ends now. The
 * second is called by the holder, both with interrupts disabled. */
void lock_class_turn(struct spinlock *l, bool first);
void lock_class_count(struct spinlock *l, uintptr_t release);
