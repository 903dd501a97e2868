/*
 * The option budget=N. The check sits in the timer's interrupt, so a loop
 * with interrupts disabled escapes it.
 */
#include "kernel/budget.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "drivers/power.h"
#include "kernel/x86/cpu.h"

static uint64_t last_tick; /* of the time-stamp counter; 0 is no limit */

void budget_set(uint32_t millions)
{
    last_tick = rdtsc() + (uint64_t)millions * 1000000;
}

void budget_check(void)
{
    if (last_tick == 0 || rdtsc() < last_tick)
        return;
    debugcon_event("{\"event\":\"budget\"}");
    kprintf("\nThe instruction budget (budget=) is used up.\n");
    power_exit(BUDGET_EXIT);
}

void budget_panic(void)
{
    if (last_tick != 0)
        power_exit(BUDGET_EXIT_PANIC);
}
