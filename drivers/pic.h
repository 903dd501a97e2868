/*
 * The two 8259 interrupt controllers of a PC: 16 lines with the interrupt
 * vectors PIC_VECTOR to PIC_VECTOR + 15.
 */
#pragma once

#include "kernel/lib/types.h"

#define PIC_VECTOR 32
#define PIC_LINES  16

/* Assigns vectors to the lines, all masked. Interrupts disabled. */
void pic_init(void);

/* Unmasks or masks a line. Interrupts disabled. */
void pic_unmask(int irq);
void pic_mask(int irq);
bool pic_masked(int irq);

/* Acknowledges interrupt `irq`. A spurious one (line 7 or 15 with nothing in
 * service) gets no end-of-interrupt. */
void pic_ack(int irq);
