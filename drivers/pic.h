/*
 * The two 8259 interrupt controllers of a PC: 16 lines, delivered as
 * interrupt vectors PIC_VECTOR … PIC_VECTOR + 15.
 */
#pragma once

#include "kernel/lib/types.h"

#define PIC_VECTOR 32
#define PIC_LINES  16

/* Moves the lines to their vectors, all masked. Interrupts disabled. */
void pic_init(void);

/* Lets a line raise interrupts, or not. Interrupts disabled. */
void pic_unmask(int irq);
void pic_mask(int irq);
bool pic_masked(int irq);

/* Ends the interrupt `irq`. A spurious one (line 7 or 15 with nothing in
 * service) gets no end-of-interrupt. */
void pic_ack(int irq);
