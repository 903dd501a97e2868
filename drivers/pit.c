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
    CONTROL_CHANNEL0_BOTH_MODE2 = 0x34,
};

#define STEP_US (1000000 / TIMER_HZ)

static uint64_t now_ms;
static uint64_t step_tsc;   /* the time-stamp counter at the last step */
static uint64_t tsc_a_step; /* what it counts in one; 0: not known yet */
static void (*tick)(void);

static void timer_irq(struct trapframe *tf)
{
    uint64_t tsc = rdtsc();

    (void)tf;
    if (tsc > step_tsc && (tsc_a_step == 0 || tsc - step_tsc < tsc_a_step))
        tsc_a_step = tsc - step_tsc; /* longer ones missed a step */
    step_tsc = tsc;
    now_ms += 1000 / TIMER_HZ;
    if (tick)
        tick();
}

void timer_init(void)
{
    outb(PIT_CONTROL, CONTROL_CHANNEL0_BOTH_MODE2);
    outb(PIT_CHANNEL0, PIT_DIVISOR & 0xFF);
    outb(PIT_CHANNEL0, PIT_DIVISOR >> 8);
    step_tsc = rdtsc();
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

uint64_t timer_us(void)
{
    static uint64_t last;
    uint32_t flags = irq_save();
    uint64_t since = rdtsc() - step_tsc;
    uint64_t us = now_ms * 1000;

    if (tsc_a_step != 0 && since < tsc_a_step)
        us += since * STEP_US / tsc_a_step;
    else if (tsc_a_step != 0 && since < UINT64_MAX / 2)
        us += STEP_US - 1;
    last = us = MAX(us, last);
    irq_restore(flags);
    return us;
}

timer_tick_t timer_set_tick(timer_tick_t fn)
{
    timer_tick_t before = tick;

    tick = fn;
    return before;
}
