/*
 * Interrupt lines: who handles them and who ends them. The controller itself
 * is a driver (drivers/pic.c), which registers here.
 */
#pragma once

#include "kernel/lib/types.h"

struct trapframe;

/* `fn` is called with interrupts disabled whenever line `irq` (0 … 15) raises
 * one; NULL: nobody any more. */
void irq_set_handler(int irq, void (*fn)(struct trapframe *tf));

/* Whether a line has a handler, or is the one that joins the controllers. */
bool irq_taken(int irq);

/* The address of its handler, 0: it has none; and how many interrupts it has
 * raised. */
uintptr_t irq_handler(int irq);
uint32_t irq_count(int irq);

/* `fn` ends an interrupt at the controller; called after the handler. */
void irq_set_ack(void (*fn)(int irq));
