/*
 * Messages between processors: see call.h (in kernels for several processors:
 * SMP_SRC in tools/make/kernel.mk).
 *
 * There are two kinds, each with an interrupt of its own. One message of a kind
 * is on its way at a time: its sender takes the turn, fills in the message,
 * sets a bit for each processor that is to do it, interrupts these and waits
 * until all bits are clear.
 *
 * A sender of call_forget may have interrupts disabled and hold locks. So each
 * loop in which a processor waits with interrupts disabled also does what such
 * a sender asks (call_serve). A function may touch data that the interrupted
 * code is in the middle of, so only the interrupt calls it; a processor that
 * waits for the turn to send one lets the interrupt in.
 */
#include "kernel/x86/call.h"
#include "kernel/x86/apic.h"
#include "kernel/x86/panic.h"
#include "kernel/x86/trap.h"

struct message {
    uint32_t message_turn;    /* 1 while somebody sends it */
    uint32_t message_pending; /* a bit for each processor that has to do it */
};

static struct {
    struct message message;
    vaddr_t page;
} forget;

static struct {
    struct message message;
    void (*fn)(void *arg);
    void *arg;
} call;

/* Of call_stop_others: the processors that stand still, as bits; and whether
 * they may go on. */
static uint32_t standing;
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

static void send(struct message *m, uint32_t vector)
{
    uint32_t to = others();

    __atomic_store_n(&m->message_pending, to, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < CPUS_MAX; i++)
        if (to >> i & 1)
            apic_send(cpu_online[i]->cpu_apic, APIC_VECTOR(vector));
}

/* Until all have done it, or nobody will: after a panic. */
static void wait_done(struct message *m)
{
    while (__atomic_load_n(&m->message_pending, __ATOMIC_ACQUIRE) != 0 &&
           !panic_happened()) {
        call_serve();
        cpu_relax();
    }
}

static void end_turn(struct message *m)
{
    __atomic_store_n(&m->message_turn, 0, __ATOMIC_RELEASE);
}

static bool is_asked(const struct message *m)
{
    uint32_t pending = __atomic_load_n(&m->message_pending, __ATOMIC_ACQUIRE);

    return (pending >> cpu_self()->cpu_number & 1) != 0;
}

static void has_done(struct message *m)
{
    __atomic_fetch_and(&m->message_pending, ~(1u << cpu_self()->cpu_number),
                       __ATOMIC_RELEASE);
}

/* In trap.asm. */
void trap_forget(void);
void trap_call(void);
void trap_resched(void);

/* Called there with interrupts disabled. */
bool call_interrupt(const struct trapframe *tf);
bool call_interrupt(const struct trapframe *tf)
{
    apic_end();
    call_serve();
    if (tf->vector == TRAP_CALL && is_asked(&call.message)) {
        call.fn(call.arg);
        has_done(&call.message);
    }
    if (tf->vector == TRAP_RESCHED)
        trap_preempt(tf);
    return trap_from_user(tf);
}

void call_resched(const struct cpu *cpu)
{
    apic_send(cpu->cpu_apic, APIC_VECTOR(TRAP_RESCHED));
}

void call_init(void)
{
    trap_set_gate(TRAP_FORGET, (uint32_t)trap_forget);
    trap_set_gate(TRAP_CALL, (uint32_t)trap_call);
    trap_set_gate(TRAP_RESCHED, (uint32_t)trap_resched);
}

/* ---- forgetting pages --------------------------------------------------- */

void call_serve(void)
{
    if (is_asked(&forget.message)) {
        invlpg(forget.page);
        has_done(&forget.message);
    }
}

void call_forget(vaddr_t page)
{
    uint32_t flags = irq_save();

    invlpg(page);
    while (!take_turn(&forget.message)) {
        call_serve();
        cpu_relax();
    }
    forget.page = page;
    send(&forget.message, TRAP_FORGET);
    wait_done(&forget.message);
    end_turn(&forget.message);
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
    send(&call.message, TRAP_CALL);
    return flags;
}

void call_all(void (*fn)(void *arg), void *arg)
{
    uint32_t flags = begin_call(fn, arg);

    fn(arg);
    wait_done(&call.message);
    end_turn(&call.message);
    irq_restore(flags);
}

static void stand_still(void *unused UNUSED)
{
    cpu_self()->cpu_halted_at = read_ebp();
    __atomic_fetch_or(&standing, 1u << cpu_self()->cpu_number,
                      __ATOMIC_RELEASE);
    while (__atomic_load_n(&resumed, __ATOMIC_ACQUIRE) == 0) {
        call_serve();
        cpu_relax();
    }
}

uint32_t call_stop_others(void)
{
    uint32_t flags = begin_call(stand_still, NULL);

    while (__atomic_load_n(&standing, __ATOMIC_ACQUIRE) != others()) {
        call_serve();
        cpu_relax();
    }
    return flags;
}

void call_resume_others(uint32_t flags)
{
    __atomic_store_n(&resumed, 1, __ATOMIC_RELEASE);
    wait_done(&call.message);
    standing = 0;
    resumed = 0;
    end_turn(&call.message);
    irq_restore(flags);
}
