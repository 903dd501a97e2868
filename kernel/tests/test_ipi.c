/*
 * Interprocessor interrupts, and with them the start of a processor at a
 * function. The cases hold on one processor, too.
 *
 * Tests: kernel/x86/ipi.c
 */
#include "kernel/x86/ipi.h"
#include "kernel/task/task.h"
#include "kernel/x86/paging.h"
#include "kernel/x86/spinlock.h"
#include "kernel/x86/tests/fault.h"
#include "kernel/x86/trap.h"
#include "tools/workshop/ktest/ktest.h"

#define READS  1000u
#define ROUNDS 200u

static unsigned self(void)
{
    return cpu_self()->cpu_number;
}

/* ---- calls -------------------------------------------------------------- */

static uint32_t calls[CPUS_MAX];
static uint32_t enabled;

static void count_call(void *arg)
{
    calls[self()] += *(const uint32_t *)arg;
    if (read_eflags() & EFLAGS_IF)
        enabled++;
}

KTEST(ipi, each_processor_is_called_once)
{
    uint32_t step = 3;

    enabled = 0;
    for (unsigned i = 0; i < CPUS_MAX; i++)
        calls[i] = 0;
    for (unsigned n = 0; n < ROUNDS; n++)
        ipi_call_all(count_call, &step);
    for (unsigned i = 0; i < CPUS_MAX; i++)
        KT_EQ(calls[i], cpu_online[i] == NULL ? 0 : ROUNDS * step);
    KT_EQ(enabled, 0);
    KT_TRUE((read_eflags() & EFLAGS_IF) != 0);
}

/* ---- pages -------------------------------------------------------------- */

static uint8_t pages[2][PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
static uint32_t readers; /* that have read a page often */
static uint32_t gone;
static uint32_t faults[CPUS_MAX];
static uint32_t stale; /* reads of a page that was gone before */

static bool skip(struct trapframe *tf)
{
    faults[self()]++;
    tf->eip += FAULT_LENGTH;
    return true;
}

/* Reads the page until the first fault after it is gone, and lets messages
 * in. */
static void read_until_gone(void)
{
    bool was_gone = false;

    for (uint32_t n = 1; !was_gone; n++) {
        uint32_t before = faults[self()];

        was_gone = __atomic_load_n(&gone, __ATOMIC_ACQUIRE) != 0;
        fault_read((vaddr_t)pages[0]);
        stale += was_gone && faults[self()] == before;
        if (n == READS)
            __atomic_fetch_add(&readers, 1, __ATOMIC_RELEASE);
        irq_window();
        cpu_relax();
    }
}

static void read_or_unmap(void *unused UNUSED)
{
    if (cpu_self() != &cpu_boot) {
        read_until_gone();
        return;
    }
    while (__atomic_load_n(&readers, __ATOMIC_ACQUIRE) != cpu_count - 1)
        cpu_relax();
    paging_unmap((vaddr_t)pages[0]);
    __atomic_store_n(&gone, 1, __ATOMIC_RELEASE);
}

/* T-3 of the design: no read succeeds after paging_unmap has returned. */
KTEST(ipi, a_page_is_forgotten_everywhere_at_once)
{
    trap_handler_t before;

    before = trap_set_handler(TRAP_PAGE_FAULT, skip);
    readers = gone = stale = 0;
    for (unsigned i = 0; i < CPUS_MAX; i++)
        faults[i] = 0;
    ipi_call_all(read_or_unmap, NULL);
    paging_map((vaddr_t)pages[0]);
    trap_set_handler(TRAP_PAGE_FAULT, before);
    KT_EQ(stale, 0);
    for (unsigned i = 1; i < CPUS_MAX; i++)
        KT_EQ(faults[i] != 0, cpu_online[i] != NULL);
}

static struct spinlock lock = SPINLOCK_INIT("unmapping", 60);
static uint32_t rounds;

static void unmap_locked(void *unused UNUSED)
{
    vaddr_t page = (vaddr_t)pages[self() % 2];

    for (unsigned n = 0; n < ROUNDS; n++) {
        if (n % 3 != 0)
            spin_lock(&lock);
        cpu_relax(); /* others run until they wait */
        tlb_shootdown(page);
        rounds += n % 3 != 0;
        if (n % 3 != 0)
            spin_unlock(&lock);
        cpu_relax();
    }
}

/* T-5: with interrupts disabled, some wait for a lock whose holder waits for
 * them, and some to send a message themselves. */
KTEST(ipi, all_unmap_at_once_some_with_a_lock)
{
    rounds = 0;
    ipi_call_all(unmap_locked, NULL);
    KT_EQ(rounds, cpu_count * (ROUNDS - (ROUNDS + 2) / 3));
}

/* ---- standing still ----------------------------------------------------- */

static volatile uint32_t turns;
static volatile bool stop;

/* Seldom lets messages in. */
static void take_turns(void *cpu)
{
    sched_move_self((uint8_t)((struct cpu *)cpu)->cpu_bit);
    irq_disable();
    while (!stop) {
        turns++;
        cpu_relax();
        if (turns % 64 == 0)
            irq_window();
    }
    irq_enable();
}

static void wait_for_turns(uint32_t since)
{
    while (turns == since)
        cpu_relax();
}

KTEST(ipi, others_stand_still)
{
    struct cpu *cpu = cpu_online[1];
    struct task *t;
    uint32_t flags;
    uint32_t at;
    int status;

    if (cpu == NULL)
        return;
    stop = false;
    sched_confine(false);
    t = task_create("turns", take_turns, cpu, PRIORITY_KERNEL);
    KT_REQUIRE(t != NULL);
    for (unsigned n = 0; n < 10; n++) {
        wait_for_turns(turns);
        flags = ipi_stop_others();
        at = turns;
        for (unsigned i = 0; i < READS; i++)
            cpu_relax();
        KT_EQ(turns, at);
        KT_TRUE((read_eflags() & EFLAGS_IF) == 0);
        ipi_resume_others(flags);
        wait_for_turns(at);
    }
    stop = true;
    KT_GE(task_wait(t->task_pid, &status, 0), 0);
    sched_confine(true);
}
