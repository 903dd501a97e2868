/*
 * Stopping at boot, with a message: for ever, or as after a panic (panic.h).
 */
#include "kernel/halt.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "drivers/power.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/panic.h"

void halt(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    kprintf("\nSlate cannot start: ");
    kvprintf(fmt, ap);
    kprintf(".\nHalted.\n");
    va_end(ap);
    debugcon_event("{\"event\":\"halt\"}");
    console_drain();
    if (panic_exits)
        power_exit(PANIC_EXIT);
    for (;;) {
        irq_disable();
        cpu_halt();
    }
}
