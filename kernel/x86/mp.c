/*
 * Starting and stopping other processors: see mp.h.
 *
 * A processor starts in real mode, so below 1 MiB, where the kernel gives no
 * memory to anybody (mm/page.c). What the firmware or the boot loader has there
 * is put back.
 */
#include "kernel/x86/mp.h"
#include "kernel/lib/string.h"
#include "kernel/x86/apic.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/paging.h"
#include "kernel/x86/trap.h"

#define AP_PAGE 0x8000u /* as in boot/ap.asm */
#define AP_CODE ((uint8_t *)(KERNEL_BASE + AP_PAGE))
#define AP_MAX  256u

/* Turns that a processor has to stop, more than any instruction takes. */
#define TURNS_MAX 1000000u

extern const uint8_t ap_start[], ap_words[], ap_end[]; /* boot/ap.asm */

static uint8_t before[AP_MAX];

static void send_start(uint8_t apic, uint32_t message)
{
    uint32_t flags = irq_save();

    apic_send(apic, message);
    irq_restore(flags);
}

void mp_send_init(uint8_t apic)
{
    send_start(apic, APIC_INIT);
}

void mp_send_startup(uint8_t apic)
{
    send_start(apic, APIC_START(AP_PAGE));
}

void mp_install_trampoline(uint32_t frame)
{
    const uint32_t words[] = {read_cr4(), read_cr0(), frame};

    memcpy(before, AP_CODE, (size_t)(ap_end - ap_start));
    memcpy(AP_CODE, ap_start, (size_t)(ap_end - ap_start));
    memcpy(AP_CODE + (ap_words - ap_start), words, sizeof(words));
}

void mp_remove_trampoline(void)
{
    memcpy(AP_CODE, before, (size_t)(ap_end - ap_start));
}

static const struct cpu *stopper; /* the processor that panics */

/* Handles NMIs from the beginning of a panic on. An NMI on the processor that
 * panics is from the hardware: another panic. */
static bool stop_here(struct trapframe *tf)
{
    if (cpu_self() == stopper)
        return false;
    cpu_self()->cpu_stopped = tf;
    for (;;)
        cpu_halt();
}

void mp_stop(void)
{
    if (stopper != NULL)
        return; /* a fault in this function */
    stopper = cpu_self();
    trap_set_handler(TRAP_NMI, stop_here);
    apic_take_lines(); /* the others halt with interrupts disabled */
    for (unsigned i = 0; i < CPUS_MAX; i++) {
        const struct cpu *cpu = cpu_online[i];

        if (cpu == NULL || cpu == cpu_self())
            continue;
        apic_send(cpu->cpu_apic, APIC_NMI);
        for (unsigned n = 0; n < TURNS_MAX && cpu->cpu_stopped == NULL; n++)
            cpu_relax();
    }
}
