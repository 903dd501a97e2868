/*
 * Beats: a rhythm for programs, from the driver `beat`, which publishes its
 * port under that name. There are BEAT_HZ beats in a second, more than the 100
 * ticks of the kernel's clock, and they are numbered. All clients that wait for
 * every fourth beat get the same ones.
 *
 *                 word 0   word 1
 *     BEAT_COUNT  -        -       answered at once
 *     BEAT_WAIT   period   last    answered at the first beat behind `last`
 *                                  whose number `period` divides
 *
 * A request has no bytes and no handle. The answer's label is 0, its word 0 the
 * result: 0, or a negated error number (EINVAL: no such request; a period of 0
 * or more than BEAT_PERIOD_MAX; a last beat that has not been yet. ENOMEM). Its
 * word 1 is a number: of the last beat there was, or of the one waited for.
 *
 * A request says everything that the driver has to know. So the driver may die
 * and its successor be asked the same again; it goes on with the numbers where
 * the other ended. Beats are counted from the time on when somebody waits until
 * nobody has waited for a second.
 */
#pragma once

#include "kernel/lib/types.h"

#define BEAT_HZ         128u
#define BEAT_PERIOD_MAX (60 * BEAT_HZ)

enum beat_request {
    BEAT_COUNT = 1,
    BEAT_WAIT,
};

/* The number of the last beat. 0, or -1 with errno: what the driver answered;
 * ENOENT or EPIPE: there is none. One that dies meanwhile is waited for, up to
 * BEAT_PATIENCE_MS, and its successor asked the same again. */
int beat_count(uint32_t *count);

/* Waits for the first beat behind *last that `period` divides, which *last
 * becomes. 0, or -1 as above; then *last is what it was. */
int beat_wait(uint32_t period, uint32_t *last);

#define BEAT_PATIENCE_MS 1000u
