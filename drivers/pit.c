/*
 * The 8254 interval timer (Intel 8254 data sheet): channel 0 divides 1.193182
 * MHz to 100 Hz in mode 2 (rate generator) and raises interrupt line 0. Whether
 * that arrives depends on much that firmware and other chips have to do, so the
 * first interrupt is awaited.
 */
#include "drivers/pit.h"
#include "drivers/pic.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/trap.h"
#include "kernel/x86/io.h"
#include "kernel/x86/spinlock.h"

#define PIT_HZ      1193182u
#define PIT_DIVISOR ((PIT_HZ + TIMER_HZ / 2) / TIMER_HZ)
#define TIMER_IRQ   0

enum {
    PIT_CHANNEL0 = 0x40,
    PIT_CONTROL = 0x43,
    CONTROL_CHANNEL0_LATCH = 0x00,
    CONTROL_CHANNEL0_BOTH_MODE0 = 0x30, /* one interrupt */
    CONTROL_CHANNEL0_BOTH_MODE2 = 0x34,
    DELAY_PORT = 0x80,
};

/* The first interrupt comes after 10 microseconds; if it has not after so many
 * reads of a port, a second or more, it never will. */
#define FIRST_COUNT 12u
#define PATIENCE    1000000u

volatile struct timer_now timer_now;
static void (*tick)(void);

/* The 8254's latch and timer_us's last value. */
static struct spinlock pit_lock = SPINLOCK_INIT("pit", LOCK_RANK_PIT);

static void timer_irq(struct trapframe *tf UNUSED)
{
    uint64_t ms = timer_ms() + TICK_MS;

    timer_now.now_high = (uint32_t)(ms >> 32);
    timer_now.now_low = (uint32_t)ms;
    timer_now.now_high_again = (uint32_t)(ms >> 32);
    if (tick)
        tick();
}

static void set_channel(uint8_t control, uint32_t count)
{
    outb(PIT_CONTROL, control);
    outb(PIT_CHANNEL0, (uint8_t)count);
    outb(PIT_CHANNEL0, (uint8_t)(count >> 8));
}

bool timer_init(void)
{
    irq_disable();
    set_channel(CONTROL_CHANNEL0_BOTH_MODE0, FIRST_COUNT);
    pic_unmask(TIMER_IRQ);
    irq_enable();
    for (uint32_t i = 0; i < PATIENCE && timer_interrupts() == 0; i++)
        inb(DELAY_PORT);
    irq_disable();
    irq_set_handler(TIMER_IRQ, timer_irq);
    set_channel(CONTROL_CHANNEL0_BOTH_MODE2, PIT_DIVISOR);
    irq_enable();
    return timer_interrupts() != 0;
}

uint32_t timer_interrupts(void)
{
    return irq_count(TIMER_IRQ);
}

uint64_t timer_ms(void)
{
    uint32_t high, low;

    do {
        high = timer_now.now_high_again;
        low = timer_now.now_low;
    } while (high != timer_now.now_high);
    return (uint64_t)high << 32 | low;
}

/* Microseconds since the last tick: the channel counts down from the divisor,
 * 1.193182 times per microsecond. */
static uint32_t step_us(void)
{
    uint32_t count;

    spin_assert_held(&pit_lock);
    outb(PIT_CONTROL, CONTROL_CHANNEL0_LATCH);
    count = inb(PIT_CHANNEL0);
    count |= (uint32_t)inb(PIT_CHANNEL0) << 8;
    return count <= PIT_DIVISOR ? (PIT_DIVISOR - count) * 8381 / 10000 : 0;
}

/* A tick that is pending, or that another processor counts after timer_ms, is
 * not in the sum, so time would go back. Then the previous time is returned. */
uint64_t timer_us(void)
{
    static uint64_t last;
    uint64_t us;

    spin_lock(&pit_lock);
    us = timer_ms() * 1000;
    us += step_us();
    us = last = MAX(last, us);
    spin_unlock(&pit_lock);
    return us;
}

timer_tick_t timer_set_tick(timer_tick_t fn)
{
    timer_tick_t before = tick;

    tick = fn;
    return before;
}
