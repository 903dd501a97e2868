/*
 * The kernel as the platform of mm/ (mm/platform.h): the clock, waiting,
 * printing, panicking, backtraces.
 */
#include "drivers/pit.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm_platform.h"
#include "kernel/x86/panic.h"
#include "kernel/task/sync.h"
#include "kernel/x86/backtrace.h"
#include "mm/buddy.h"
#include "mm/debug/debug.h"
#include "mm/kmem.h"

uint64_t mm_clock_ms(void)
{
    return timer_ms();
}

/* ---- waiting for memory ------------------------------------------------- */

#define LOOK_AGAIN_MS 20   /* an object may have been freed without a page */
#define SILENCE_MS    5000 /* between two messages about waiting tasks */

static struct wait_queue memory_wanted =
    WAIT_QUEUE_INIT(memory_wanted, "memory");

static bool may_sleep(void)
{
    const struct task *self = task_self();

    return self != NULL && self->task_priority != PRIORITY_IDLE &&
           (read_eflags() & EFLAGS_IF) != 0 && !panic_happened();
}

static void complain(void)
{
    static uint64_t next;

    if (timer_ms() < next)
        return;
    next = timer_ms() + SILENCE_MS;
    kprintf("\n%s (task %d) waits for memory\n", task_self()->task_name,
            (int)task_self()->task_pid);
}

bool mm_wait_for_task(void)
{
    if (!may_sleep())
        return false;
    spin_lock(&sched_lock);
    wait_queue_block(&memory_wanted, false, LOOK_AGAIN_MS);
    spin_unlock(&sched_lock);
    return true;
}

bool mm_wait_for_memory(void)
{
    if (may_sleep())
        complain();
    return mm_wait_for_task();
}

/* Reads the queue without sched_lock, so that a free of pages costs no more. It
 * may not see a task that is entering the queue: that task looks for memory
 * again after LOOK_AGAIN_MS. */
void mm_wake_waiters(void)
{
    if (unlikely(!list_empty(&memory_wanted.wait_tasks)))
        wait_queue_wake_all(&memory_wanted);
}

/* ---- kmem_reapd --------------------------------------------------------- */

#define LOW_WATER(total)                                                       \
    ((total) / 32)    /* pages available below which it reaps */
#define PAUSE_MS 1000 /* between two such reaps */

static struct wait_queue reapd_idle = WAIT_QUEUE_INIT(reapd_idle, "low-memory");
static uint64_t reapd_last_ms;

bool mm_memory_low(void)
{
    struct buddy_pages b;

    buddy_pages(&b);
    return buddy_available(&b) < LOW_WATER(b.pages_total);
}

static void reapd_main(void *arg UNUSED)
{
    for (;;) {
        spin_lock(&sched_lock);
        wait_queue_block(&reapd_idle, false, 0);
        spin_unlock(&sched_lock);
        kmem_update_poll();
        if (mm_memory_low())
            kmem_reap(KMEM_REAP_WS);
    }
}

void reapd_init(void)
{
    struct task *t =
        task_create("kmem_reapd", reapd_main, NULL, PRIORITY_KERNEL);

    if (t == NULL)
        panic("no memory for kmem_reapd");
    task_disown(t);
}

void reapd_tick(void)
{
    bool low = mm_memory_low() && timer_ms() - reapd_last_ms >= PAUSE_MS;

    if (!low && kmem_update_due() != 0)
        return;
    reapd_last_ms = timer_ms();
    wait_queue_wake(&reapd_idle);
}

/* ---- the rest ----------------------------------------------------------- */

void mm_print(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    kvprintf(fmt, ap);
    va_end(ap);
}

void mm_panic(const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    panic("%s", text);
}

#define FRAMES_MAX 24u
#define OWN_FRAMES 12u /* most frames of the allocator on a stack */

static bool in_allocator(uintptr_t pc)
{
    return pc >= (uintptr_t)heap_text_start && pc < (uintptr_t)heap_text_end;
}

unsigned mm_backtrace(uintptr_t *pc, unsigned max)
{
    uintptr_t all[FRAMES_MAX + OWN_FRAMES];
    unsigned n = MIN(max, FRAMES_MAX) + OWN_FRAMES;
    unsigned own = 0;

    n = backtrace(read_ebp(), all, n);
    while (own < n && in_allocator(all[own]))
        own++;
    n = MIN(n - own, max);
    memcpy(pc, all + own, n * sizeof(*pc));
    return n;
}
