/*
 * Power off and reset. Without an ACPI interpreter the sleep registers cannot
 * be found, so the fixed ports of common emulators are tried in turn; no other
 * device decodes these ports. An emulator ends some time after the command: how
 * long depends on the load of its host.
 */
#include "drivers/power.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/io.h"

enum {
    QEMU_PM1A = 0x604,
    BOCHS_PM1A = 0xB004, /* and old QEMU */
    VIRTUALBOX_PM1A = 0x4004,
    SLEEP_S5 = 0x2000, /* SLP_EN with the type that means off */
    VIRTUALBOX_SLEEP_S5 = 0x3400,
    BOCHS_SHUTDOWN = 0x8900,
    QEMU_EXIT = 0xF4, /* isa-debug-exit; reads as 0 */
    EMPTY_BUS = 0xFFFF,

    KBD_COMMAND = 0x64,
    KBD_INPUT_FULL = 2,
    KBD_PULSE_RESET = 0xFE,
    DELAY_PORT = 0x80,
    PCI_RESET = 0xCF9,
    PCI_RESET_CPU = 6,
};

static void __attribute__((noreturn)) wait_for_the_end(void)
{
    irq_disable();
    for (;;)
        cpu_halt();
}

static void try_acpi(void)
{
    outw(QEMU_PM1A, SLEEP_S5);
    if (inw(QEMU_PM1A) != EMPTY_BUS)
        wait_for_the_end(); /* a write to QEMU_EXIT would end QEMU with 1 */
    outw(BOCHS_PM1A, SLEEP_S5);
    outw(VIRTUALBOX_PM1A, VIRTUALBOX_SLEEP_S5);
    for (const char *s = "Shutdown"; *s; s++)
        outb(BOCHS_SHUTDOWN, (uint8_t)*s);
    for (unsigned i = 0; i < 300000; i++)
        inb(DELAY_PORT);
}

static void try_exit_port(uint8_t code)
{
    if (inb(QEMU_EXIT) == 0)
        outb(QEMU_EXIT, code);
}

static void power_leave(const char *event)
{
    debugcon_event("{\"event\":\"%s\"}", event);
    console_drain();
    irq_disable();
}

static void __attribute__((noreturn)) stay(void)
{
    kprintf("It is now safe to switch off the machine.\n");
    console_drain();
    wait_for_the_end();
}

void power_off(void)
{
    power_leave("poweroff");
    try_acpi();
    try_exit_port(0);
    stay();
}

void power_exit(uint8_t code)
{
    power_leave("exit");
    try_exit_port(code);
    try_acpi();
    stay();
}

void power_reset(void)
{
    power_leave("reset");
    for (int i = 0; i < 1000 && (inb(KBD_COMMAND) & KBD_INPUT_FULL); i++)
        ;
    outb(KBD_COMMAND, KBD_PULSE_RESET);
    for (int i = 0; i < 1000; i++) /* it takes some microseconds */
        (void)inb(KBD_COMMAND);
    outb(PCI_RESET, PCI_RESET_CPU);
    cpu_triple_fault();
}
