/*
 * Interrupt lines: their handlers and acknowledgement. The controller is a
 * driver (drivers/pic.c), which registers here.
 */
#pragma once

#include "kernel/lib/types.h"

struct trapframe;

/* Sets the handler of line `irq` (0 to 15), called with interrupts disabled;
 * NULL: none. */
void irq_set_handler(int irq, void (*fn)(struct trapframe *tf));

/* Whether a line has a handler, or is the one that joins the controllers. */
bool irq_taken(int irq);

/* The address of a line's handler (0: none), and its count of interrupts. */
uintptr_t irq_handler(int irq);
uint32_t irq_count(int irq);

/* Sets the function that acknowledges an interrupt at the controller, before
 * the handler: a long one may let others in (irq_window). */
void irq_set_ack(void (*fn)(int irq));
