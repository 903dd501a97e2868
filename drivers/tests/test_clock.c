/*
 * The clock and the debug port as several processors use them: what another
 * processor does between two instructions.
 *
 * Tests: drivers/pit.c, drivers/debugcon.c
 */
#include "drivers/debugcon.h"
#include "drivers/pit.h"
#include "kernel/lib/string.h"
#include "kernel/x86/trap.h"
#include "kernel/x86/spinlock.h"
#include "kernel/x86/tests/steps.h"
#include "tools/workshop/ktest/ktest.h"

static unsigned at;   /* the step before which the other processor acts */
static uint64_t read; /* by the stepped function */

static void set_clock(uint64_t ms)
{
    timer_now.now_high = timer_now.now_high_again = (uint32_t)(ms >> 32);
    timer_now.now_low = (uint32_t)ms;
}

static void tick_there(const struct trapframe *tf UNUSED, unsigned n)
{
    void (*fn)(struct trapframe *) =
        (void (*)(struct trapframe *))irq_handler(0);

    if (n == at)
        fn(NULL);
}

static void read_ms(void)
{
    read = timer_ms();
}

static void tick_here(void)
{
    tick_there(NULL, at);
}

static const uint64_t before_carry = (1ull << 32) - TICK_MS;

static void expect_before_or_after(uint64_t ms, unsigned n)
{
    if (ms != before_carry && ms != before_carry + TICK_MS)
        KT_FAIL("at instruction %u: 0x%llx", n, (unsigned long long)ms);
}

/* If the copies differ, a reader waits for the end of the tick. */
static void read_there(const struct trapframe *tf UNUSED, unsigned n)
{
    if (timer_now.now_high == timer_now.now_high_again)
        expect_before_or_after(timer_ms(), n);
}

/* A tick that carries into the high half, before each instruction of a read;
 * and a read before each instruction of such a tick. */
KTEST(clock, a_read_is_before_a_tick_or_after_it)
{
    timer_tick_t tick;
    uint64_t now;
    uint32_t flags;

    if (!steps_work())
        return;
    flags = irq_save();
    tick = timer_set_tick(NULL);
    now = timer_ms();
    for (at = 1;; at++) {
        set_clock(before_carry);
        if (steps_run(read_ms, tick_there) < at)
            break;
        expect_before_or_after(read, at);
        KT_EQ(timer_ms(), before_carry + TICK_MS);
    }
    KT_GE(at, 8);
    set_clock(before_carry);
    KT_GE(steps_run(tick_here, read_there), 8);
    KT_EQ(timer_ms(), before_carry + TICK_MS);
    set_clock(now);
    timer_set_tick(tick);
    irq_restore(flags);
}

#ifdef CONFIG_DEBUG
static const char *wanted;  /* the lock */
static uint16_t first_port; /* the ports that it guards */
static uint16_t last_port;
static unsigned accesses;
static unsigned unlocked;

static bool holds(const char *name)
{
    const struct cpu *cpu = cpu_self();

    for (unsigned i = 0; i < cpu->cpu_locks; i++)
        if (strcmp(cpu->cpu_lock[i]->lock_name, name) == 0)
            return true;
    return false;
}

/* Counts IN and OUT with the port in DX, and those with the port in the next
 * byte. */
static void look_at_ports(const struct trapframe *tf, unsigned n UNUSED)
{
    const uint8_t *code = (const uint8_t *)tf->eip;
    uint16_t port = (uint16_t)tf->edx;

    if (code[0] == 0xe4 || code[0] == 0xe6)
        port = code[1];
    else if (code[0] != 0xec && code[0] != 0xee)
        return;
    if (port < first_port || port > last_port)
        return;
    accesses++;
    unlocked += !holds(wanted);
}

/* The function accesses the ports so often, and so often without the lock. */
static void expect_locked(void (*fn)(void), const char *lock, uint16_t first,
                          uint16_t last, unsigned all, unsigned without)
{
    wanted = lock;
    first_port = first;
    last_port = last;
    accesses = unlocked = 0;
    if (!steps_work())
        return;
    steps_run(fn, look_at_ports);
    KT_EQ(accesses, all);
    KT_EQ(unlocked, without);
}

static void read_us(void)
{
    timer_us();
}

KTEST(clock, the_latch_is_read_under_its_lock)
{
    expect_locked(read_us, "pit", 0x40, 0x43, 3, 0);
}

static void write_event(void)
{
    debugcon_event("{\"event\":\"%s\"}", "t_step");
}

static void write_line(void)
{
    debugcon_line("t_line", 6);
}

/* Whether there is a port is read without the lock. */
KTEST(clock, a_line_of_the_debug_port_is_written_under_its_lock)
{
    if (!debugcon_present())
        return;
    expect_locked(write_event, "debugcon", 0xe9, 0xe9, 20, 1);
    expect_locked(write_line, "debugcon", 0xe9, 0xe9, 8, 1);
}
#endif
