/*
 * The system clock: channel 0 of the 8254 timer, 100 interrupts a second.
 */
#pragma once

#include "kernel/lib/types.h"

#define TIMER_HZ 100u

/* Starts the clock. After pic_init. */
void timer_init(void);

/* Milliseconds since timer_init, in steps of 10. Never goes backwards; stands
 * still while interrupts are disabled for longer than a step. */
uint64_t timer_ms(void);

/* Microseconds: the same, and between two steps what the timer has counted.
 * Never goes backwards. */
uint64_t timer_us(void);

/* `fn` is called at every step from the interrupt, NULL for nobody. Returns the
 * one before. */
typedef void (*timer_tick_t)(void);
timer_tick_t timer_set_tick(timer_tick_t fn);
