/*
 * The system clock: channel 0 of the 8254 timer, 100 interrupts a second.
 */
#pragma once

#include "kernel/lib/types.h"

#define TIMER_HZ 100u
#define TICK_MS  (1000u / TIMER_HZ)

/* Starts the clock, after pic_init and with interrupts enabled. False: none
 * comes. Then there is no time, and other devices will not interrupt either. */
bool timer_init(void);

/*
 * The clock. The tick writes the members from the first to the last, timer_ms
 * reads them from the last to the first, perhaps on another processor. If both
 * copies of the high half are equal, the low half belongs to them. No other
 * function uses them.
 */
struct timer_now {
    uint32_t now_high;
    uint32_t now_low;
    uint32_t now_high_again;
};
extern volatile struct timer_now timer_now;

/* Interrupts of the clock, those after a panic included. */
uint32_t timer_interrupts(void);

/* Milliseconds since timer_init, in steps of 10. Never goes back; does not
 * advance while interrupts are disabled. */
uint64_t timer_ms(void);

/* The same in microseconds, interpolated by the timer's counter. Never goes
 * back. */
uint64_t timer_us(void);

/* Sets the function called by the interrupt at every tick; NULL: none. Returns
 * the previous one. */
typedef void (*timer_tick_t)(void);
timer_tick_t timer_set_tick(timer_tick_t fn);
