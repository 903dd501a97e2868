/*
 * The wheel of time-outs (kernel/task/timeout.h).
 */
#include "kernel/task/timeout.h"
#include "drivers/pit.h"
#include "kernel/task/task.h"

/* In one tick; others come in the next one. */
#define FIRED_MAX 1000

/* Guarded by sched_lock. */
static struct list wheel[TIMEOUT_SLOTS];
static struct list due = LIST_INIT(due);

void timeouts_init(void)
{
    for (unsigned i = 0; i < TIMEOUT_SLOTS; i++)
        list_init(&wheel[i]);
}

/* Inserts a time-out into the list of the first tick at or after its time. */
static void timeout_enter(struct timeout *timeout)
{
    uint32_t tick = ((uint32_t)timeout->timeout_ms + TICK_MS - 1) / TICK_MS;

    list_insert_before(&wheel[tick % TIMEOUT_SLOTS], &timeout->timeout_link);
}

void timeout_set(struct timeout *timeout, uint64_t ms,
                 void (*fn)(struct timeout *timeout))
{
    spin_assert_held(&sched_lock);
    timeout->timeout_ms = MAX(ms, timer_ms() + 1);
    timeout->timeout_fire = fn;
    timeout_enter(timeout);
}

/* ---- ticks -------------------------------------------------------------- */

/* Handles the first that is due; false: none is. Those of a later round of the
 * wheel stay. */
static bool handle_one(void)
{
    struct timeout *timeout;
    bool any;

    spin_lock(&sched_lock);
    any = !list_empty(&due);
    if (any) {
        timeout = list_entry(due.next, struct timeout, timeout_link);
        list_remove(&timeout->timeout_link);
        if (timeout->timeout_ms > timer_ms()) {
            timeout_enter(timeout);
        } else {
            timeout->timeout_ms = 0;
            timeout->timeout_fire(timeout);
        }
    }
    spin_unlock(&sched_lock);
    return any;
}

/* Between two of them other interrupts may come, also the next tick, which then
 * handles what is left here. */
void timeouts_tick(void)
{
    struct list *now = &wheel[(uint32_t)timer_ms() / TICK_MS % TIMEOUT_SLOTS];

    spin_lock(&sched_lock);
    list_splice(now, &due);
    spin_unlock(&sched_lock);
    for (int n = 0; n < FIRED_MAX && handle_one(); n++)
        irq_window();
}
