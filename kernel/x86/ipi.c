/*
 * Interprocessor interrupts: see ipi.h (in kernels for several processors:
 * SMP_SRC in tools/make/kernel.mk).
 *
 * Two of them carry a message, and each is sent by one processor at a
 * time: the sender takes the turn, fills in the message, sets a bit for each
 * receiver, interrupts the receivers and waits until all bits are clear.
 *
 * The sender of a shootdown may have interrupts disabled and hold locks. So a
 * loop in which a processor waits with interrupts disabled also takes part in
 * shootdowns (tlb_shootdown_serve). A function may touch data that the
 * interrupted code is in the middle of, so only the interrupt calls it; a
 * processor that waits for its turn to call one enables interrupts meanwhile.
 */
#include "kernel/x86/ipi.h"
#include "kernel/x86/apic.h"
#include "kernel/x86/panic.h"
#include "kernel/x86/trap.h"

struct message {
    uint32_t message_turn;    /* 1 while a processor has the turn */
    uint32_t message_pending; /* a bit for each receiver that is not done */
};

static struct {
    struct message message;
    vaddr_t page;
} shootdown;

static struct {
    struct message message;
    void (*fn)(void *arg);
    void *arg;
} call;

/* Of ipi_stop_others: the processors that are paused, as bits; and whether they
 * may go on. */
static uint32_t paused;
static uint32_t resumed;

/* ---- sending and doing -------------------------------------------------- */

/* After a panic the sender that has the turn may be stopped. */
static bool take_turn(struct message *m)
{
    return __atomic_exchange_n(&m->message_turn, 1, __ATOMIC_ACQUIRE) == 0 ||
           panic_happened();
}

/* The processors that run besides this one, as bits. After a panic there are
 * none: they have stopped for good. */
static uint32_t others(void)
{
    uint32_t bits = 0;

    for (unsigned i = 0; i < CPUS_MAX; i++)
        if (cpu_online[i] != NULL && cpu_online[i] != cpu_self())
            bits |= 1u << i;
    return panic_happened() ? 0 : bits;
}

static void ipi_send(struct message *m, uint32_t vector)
{
    uint32_t to = others();

    __atomic_store_n(&m->message_pending, to, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < CPUS_MAX; i++)
        if (to >> i & 1)
            apic_send(cpu_online[i]->cpu_apic, APIC_VECTOR(vector));
}

/* Waits until all receivers are done. After a panic none of them will be. */
static void wait_done(struct message *m)
{
    while (__atomic_load_n(&m->message_pending, __ATOMIC_ACQUIRE) != 0 &&
           !panic_happened()) {
        tlb_shootdown_serve();
        cpu_relax();
    }
}

static void end_turn(struct message *m)
{
    __atomic_store_n(&m->message_turn, 0, __ATOMIC_RELEASE);
}

static bool is_receiver(const struct message *m)
{
    uint32_t pending = __atomic_load_n(&m->message_pending, __ATOMIC_ACQUIRE);

    return (pending >> cpu_self()->cpu_number & 1) != 0;
}

static void set_done(struct message *m)
{
    __atomic_fetch_and(&m->message_pending, ~(1u << cpu_self()->cpu_number),
                       __ATOMIC_RELEASE);
}

/* In trap.asm. */
void trap_shootdown(void);
void trap_call(void);
void trap_resched(void);

/* Called there with interrupts disabled. */
bool ipi_interrupt(const struct trapframe *tf);
bool ipi_interrupt(const struct trapframe *tf)
{
    apic_end();
    tlb_shootdown_serve();
    if (tf->vector == TRAP_CALL && is_receiver(&call.message)) {
        call.fn(call.arg);
        set_done(&call.message);
    }
    if (tf->vector == TRAP_RESCHED)
        trap_preempt(tf);
    return trap_from_user(tf);
}

void ipi_resched(const struct cpu *cpu)
{
    apic_send(cpu->cpu_apic, APIC_VECTOR(TRAP_RESCHED));
}

void ipi_init(void)
{
    trap_set_gate(TRAP_SHOOTDOWN, (uint32_t)trap_shootdown);
    trap_set_gate(TRAP_CALL, (uint32_t)trap_call);
    trap_set_gate(TRAP_RESCHED, (uint32_t)trap_resched);
}

/* ---- TLB shootdown ------------------------------------------------------ */

void tlb_shootdown_serve(void)
{
    if (is_receiver(&shootdown.message)) {
        invlpg(shootdown.page);
        set_done(&shootdown.message);
    }
}

void tlb_shootdown(vaddr_t page)
{
    uint32_t flags = irq_save();

    invlpg(page);
    while (!take_turn(&shootdown.message)) {
        tlb_shootdown_serve();
        cpu_relax();
    }
    shootdown.page = page;
    ipi_send(&shootdown.message, TRAP_SHOOTDOWN);
    wait_done(&shootdown.message);
    end_turn(&shootdown.message);
    irq_restore(flags);
}

/* ---- calling functions -------------------------------------------------- */

/* Sends the call when no other is on its way. Interrupts are then disabled;
 * returns how they were. */
static uint32_t begin_call(void (*fn)(void *arg), void *arg)
{
    uint32_t flags = irq_save();

    if (cpu_self()->cpu_locks != 0 ||
        ((flags & EFLAGS_IF) == 0 && !panic_happened()))
        panic("all processors are called by one that others may wait for");
    while (!take_turn(&call.message)) {
        irq_window();
        cpu_relax();
    }
    call.fn = fn;
    call.arg = arg;
    ipi_send(&call.message, TRAP_CALL);
    return flags;
}

void ipi_call_all(void (*fn)(void *arg), void *arg)
{
    uint32_t flags = begin_call(fn, arg);

    fn(arg);
    wait_done(&call.message);
    end_turn(&call.message);
    irq_restore(flags);
}

static void pause(void *unused UNUSED)
{
    cpu_self()->cpu_halted_at = read_ebp();
    __atomic_fetch_or(&paused, 1u << cpu_self()->cpu_number, __ATOMIC_RELEASE);
    while (__atomic_load_n(&resumed, __ATOMIC_ACQUIRE) == 0) {
        tlb_shootdown_serve();
        cpu_relax();
    }
}

uint32_t ipi_stop_others(void)
{
    uint32_t flags = begin_call(pause, NULL);

    /* after a panic others() is 0, but `paused` may not be */
    while ((others() & ~__atomic_load_n(&paused, __ATOMIC_ACQUIRE)) != 0) {
        tlb_shootdown_serve();
        cpu_relax();
    }
    return flags;
}

void ipi_resume_others(uint32_t flags)
{
    __atomic_store_n(&resumed, 1, __ATOMIC_RELEASE);
    wait_done(&call.message);
    paused = 0;
    resumed = 0;
    end_turn(&call.message);
    irq_restore(flags);
}
