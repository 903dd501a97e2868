/*
 * The 8254 interval timer (Intel 8254 data sheet): channel 0 divides 1.193182
 * MHz to 100 Hz in mode 2 (rate generator) and raises interrupt line 0.
 */
#include "drivers/pit.h"
#include "drivers/pic.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/idt.h"
#include "kernel/x86/io.h"

#define PIT_HZ      1193182u
#define PIT_DIVISOR ((PIT_HZ + TIMER_HZ / 2) / TIMER_HZ)
#define TIMER_IRQ   0

enum {
    PIT_CHANNEL0 = 0x40,
    PIT_CONTROL = 0x43,
    CONTROL_CHANNEL0_LATCH = 0x00,
    CONTROL_CHANNEL0_BOTH_MODE2 = 0x34,
};

static uint64_t now_ms;
static void (*tick)(void);

static void timer_irq(struct trapframe *tf UNUSED)
{
    now_ms += 1000 / TIMER_HZ;
    if (tick)
        tick();
}

void timer_init(void)
{
    outb(PIT_CONTROL, CONTROL_CHANNEL0_BOTH_MODE2);
    outb(PIT_CHANNEL0, PIT_DIVISOR & 0xFF);
    outb(PIT_CHANNEL0, PIT_DIVISOR >> 8);
    irq_set_handler(TIMER_IRQ, timer_irq);
    pic_unmask(TIMER_IRQ);
}

uint64_t timer_ms(void)
{
    uint32_t flags = irq_save(); /* 64 bits take two loads */
    uint64_t ms = now_ms;

    irq_restore(flags);
    return ms;
}

/* Microseconds since the last tick: the channel counts down from the divisor,
 * 1.193182 times per microsecond. */
static uint32_t step_us(void)
{
    uint32_t count;

    outb(PIT_CONTROL, CONTROL_CHANNEL0_LATCH);
    count = inb(PIT_CHANNEL0);
    count |= (uint32_t)inb(PIT_CHANNEL0) << 8;
    return count <= PIT_DIVISOR ? (PIT_DIVISOR - count) * 8381 / 10000 : 0;
}

/* With interrupts disabled, a pending tick is not counted yet, so time would go
 * back. Then the previous time is returned. */
uint64_t timer_us(void)
{
    static uint64_t last;
    uint32_t flags = irq_save();

    last = MAX(last, now_ms * 1000 + step_us());
    irq_restore(flags);
    return last;
}

timer_tick_t timer_set_tick(timer_tick_t fn)
{
    timer_tick_t before = tick;

    tick = fn;
    return before;
}
