/*
 * The 8259A interrupt controllers (Intel 8259A data sheet).
 *
 *     timer keyboard | COM2 COM1 LPT2 floppy LPT1      master, lines 0 … 7
 *                    |
 *                    +-- RTC … mouse FPU disk disk     slave, lines 8 … 15
 *
 * If a request disappears before the processor acknowledges it, the controller
 * reports its lowest line although nothing is in service. Such a spurious
 * interrupt must get no end-of-interrupt, or another interrupt would be ended.
 */
#include "drivers/pic.h"
#include "kernel/x86/trap.h"
#include "kernel/x86/io.h"

enum {
    MASTER = 0x20,
    SLAVE = 0xA0,
    DATA = 1, /* added to the above */

    ICW1_INIT_ICW4 = 0x11,
    ICW3_CASCADE_LINE = 2,
    ICW4_8086 = 1,
    OCW2_EOI = 0x20,
    OCW3_READ_ISR = 0x0B,

    CASCADE = 2,
    SPURIOUS_LINE = 7,
};

static uint16_t masked = 0xFFFF;

static void write_masks(void)
{
    outb(MASTER + DATA, (uint8_t)masked);
    outb(SLAVE + DATA, (uint8_t)(masked >> 8));
}

static void init_one(uint16_t port, uint8_t vector, uint8_t cascade)
{
    outb(port, ICW1_INIT_ICW4);
    outb(port + DATA, vector);
    outb(port + DATA, cascade);
    outb(port + DATA, ICW4_8086);
}

void pic_init(void)
{
    init_one(MASTER, PIC_VECTOR, 1 << ICW3_CASCADE_LINE);
    init_one(SLAVE, PIC_VECTOR + 8, ICW3_CASCADE_LINE);
    masked = (uint16_t) ~(1u << CASCADE);
    write_masks();
    irq_set_ack(pic_ack);
}

void pic_unmask(int irq)
{
    masked &= (uint16_t) ~(1u << irq);
    write_masks();
}

void pic_mask(int irq)
{
    masked |= (uint16_t)(1u << irq);
    write_masks();
}

bool pic_masked(int irq)
{
    return (masked >> irq & 1) != 0;
}

static bool in_service(uint16_t port)
{
    outb(port, OCW3_READ_ISR);
    return inb(port) >> SPURIOUS_LINE & 1;
}

void pic_ack(int irq)
{
    uint16_t port = irq < 8 ? MASTER : SLAVE;
    bool real = (irq & 7) != SPURIOUS_LINE || in_service(port);

    if (real)
        outb(port, OCW2_EOI);
    if (port == SLAVE) /* the master saw its cascade line */
        outb(MASTER, OCW2_EOI);
}
