/*
 * The option budget=N: a run that takes more than N million instructions ends
 * itself. Tests use it as their time-out: unlike a second on some host, an
 * instruction means the same everywhere. Under QEMU's -icount shift=0 a tick of
 * the time-stamp counter is one instruction.
 *
 * The check is in the timer's interrupt, so a loop with interrupts disabled
 * escapes it.
 */
#include "kernel/lib/printf.h"
#include "drivers/debugcon.h"
#include "drivers/power.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/option.h"
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/panic.h"

#define EXIT_BUDGET 3 /* for power_exit */

static uint64_t last_tick; /* of the time-stamp counter; 0 is no limit */

static bool set_budget(char *value)
{
    uint32_t millions;

    if (!parse_u32(value, &millions) || millions == 0)
        return false;
    last_tick = rdtsc() + (uint64_t)millions * 1000000;
    panic_exits = true; /* after a panic no tick looks at the budget */
    return true;
}

BOOT_OPTION(budget, "budget=", "budget=MILLIONS",
            "power off after so many million instructions", set_budget);

static void budget_check(const void *arg UNUSED)
{
    if (last_tick == 0 || rdtsc() < last_tick)
        return;
    debugcon_event("{\"event\":\"budget\"}");
    kprintf("\nThe instruction budget (budget=) is used up.\n");
    power_exit(EXIT_BUDGET);
}

HOOK(HOOK_TICK, budget_check);
