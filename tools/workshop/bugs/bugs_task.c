/*
 * Planted bugs: races of two tasks, and of a task and an interrupt.
 */
#include "drivers/pit.h"
#include "kernel/lib/string.h"
#include "kernel/task/task.h"
#include "tools/workshop/bugs/bugs_impl.h"

/* ---- two tasks ---------------------------------------------------------- */

static struct snode *shared;

/* Tests, then acts; another task may run in between. */
static void drop_shared(void *arg)
{
    struct snode *n = shared;

    (void)arg;
    if (n == NULL)
        return;
    sched_yield();
    shared = NULL;
    kmem_cache_free(bugs_sandbox(BUGS_SNODE), n); /* culprit: race */
}

void bug_race(void)
{
    int tasks = 0;
    int status;

    shared = kmem_cache_alloc(bugs_sandbox(BUGS_SNODE), KM_SLEEP);
    bugs_sandboxes_remember(shared, NULL);
    tasks += task_create("drop-1", drop_shared, NULL, PRIORITY_KERNEL) != NULL;
    tasks += task_create("drop-2", drop_shared, NULL, PRIORITY_KERNEL) != NULL;
    while (tasks-- != 0)
        task_wait(-1, &status, 0);
    bugs_look();
}

/* ---- an interrupt ------------------------------------------------------- */

static struct snode *lamp;
static timer_tick_t others;

static void blink(void)
{
    lamp->key = 0x11; /* culprit: late-interrupt */
    others();
}

/* The lamp is freed before its interrupt is switched off. */
void bug_late_interrupt(void)
{
    struct kmem_cache *cache = bugs_sandbox(BUGS_SNODE);
    struct snode *second;

    lamp = kmem_cache_alloc(cache, KM_SLEEP);
    bugs_will_write(lamp, &lamp->key, 0x11);
    others = timer_set_tick(blink);
    kmem_cache_free(cache, lamp);
    sched_sleep_ms(30);
    timer_set_tick(others);
    bugs_step(BUGS_AT_ALLOC);
    lamp = kmem_cache_alloc(cache, KM_SLEEP);
    second = kmem_cache_alloc(cache, KM_SLEEP);
    bugs_step(BUGS_NEVER);
    kmem_cache_free(cache, second);
    kmem_cache_free(cache, lamp);
    lamp = NULL;
}
