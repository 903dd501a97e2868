/*
 * Overrun arrays on the stack, in builds with DEBUG=1. The compiler
 * (-fstack-protector-strong) stores one word, the canary, between the arrays of
 * a function and its return address, and compares it before the function
 * returns:
 *
 *     | array ───────> | canary | saved registers | return address |
 */
#pragma once

#ifdef CONFIG_DEBUG
/* Chooses the canary. First of all: a function that is entered before must not
 * return after it. */
void canary_init(void);
#else
static inline void canary_init(void)
{
}
#endif
