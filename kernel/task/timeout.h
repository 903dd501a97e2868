/*
 * Time-outs: functions called at a given time, by the timer interrupt.
 *
 * A time-out is a member of the structure that it belongs to, so setting one
 * allocates nothing. Pending time-outs are in the lists of a wheel, one for
 * each tick modulo TIMEOUT_SLOTS (G. Varghese and T. Lauck, "Hashed and
 * hierarchical timing wheels", 1987, scheme 6). So setting and clearing take a
 * few instructions, however many time-outs there are. At each tick the list of
 * that tick becomes due as a whole, and is then handled one time-out at a
 * time, with sched_lock released and interrupts enabled in between.
 *
 *     wheel[ticks % 256] ──> time-out ──> …        due ──> time-out …
 */
#pragma once

#include "kernel/lib/list.h"

#define TIMEOUT_SLOTS 256u /* a power of two */

/* Guarded by sched_lock. All zero: not pending. */
struct timeout {
    struct list timeout_link;
    uint64_t timeout_ms; /* when; 0: not pending */
    void (*timeout_fire)(struct timeout *timeout);
};

/* Creates the wheel. Boot only. */
void timeouts_init(void);

/* Calls fn(timeout) at the first tick at or after `ms`, with sched_lock held,
 * the time-out no longer pending. A time that has passed means the next tick.
 * The time-out must not be pending. The caller holds sched_lock. */
void timeout_set(struct timeout *timeout, uint64_t ms,
                 void (*fn)(struct timeout *timeout));

/* Whether it will fire. */
static inline bool timeout_pending(const struct timeout *timeout)
{
    return timeout->timeout_ms != 0;
}

/* Cancels the time-out if it is pending. The caller holds sched_lock. */
static inline void timeout_clear(struct timeout *timeout)
{
    if (!timeout_pending(timeout))
        return;
    timeout->timeout_ms = 0;
    list_remove(&timeout->timeout_link);
}

/* Called by the timer interrupt, which has been acknowledged. */
void timeouts_tick(void);
