/*
 * Beats: a rhythm for programs, from the driver `beat`, which publishes its
 * port under that name. There are BEAT_HZ beats in a second, more than the 100
 * ticks of the kernel's clock, and they are numbered. All clients that wait for
 * every fourth beat get the same ones.
 *
 *                 word 0   word 1
 *     BEAT_COUNT  -        -       reply at once
 *     BEAT_WAIT   period   last    reply at the first beat after `last`
 *                                  whose number is a multiple of `period`
 *
 * A request has no bytes and no handle. The reply's label is 0, its word 0 the
 * result: 0, or a negated error number (EINVAL: no such request; a period of 0
 * or more than BEAT_PERIOD_MAX; a last beat in the future. ENOMEM). Its word 1
 * is the number of the latest beat, or of the one waited for.
 *
 * A request contains everything that the driver needs. So if the driver dies,
 * the same request can be sent to its successor, which continues with the
 * numbers where the other ended. Beats are counted while a client waits, and
 * for a second after that.
 */
#pragma once

#include "kernel/lib/types.h"

#define BEAT_HZ         128u
#define BEAT_PERIOD_MAX (60 * BEAT_HZ)

enum beat_request {
    BEAT_COUNT = 1,
    BEAT_WAIT,
};

/* The number of the last beat. 0, or -1 with errno: the driver's error; ENOENT
 * or EPIPE: there is no driver. If the driver dies meanwhile, waits up to
 * BEAT_PATIENCE_MS for a successor and repeats the request. */
int beat_count(uint32_t *count);

/* Waits for the first beat after *last that is a multiple of `period`, and
 * stores it in *last. 0, or -1 as above; then *last is unchanged. */
int beat_wait(uint32_t period, uint32_t *last);

#define BEAT_PATIENCE_MS 1000u
