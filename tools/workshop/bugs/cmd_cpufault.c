/*
 * cpufault: makes a mistake on another processor, to show how the kernel
 * reports it. A task there makes it; the shell's task moves to the first
 * processor.
 */
#include "kernel/cpus.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "kernel/task/task.h"
#include "kernel/x86/ipi.h"
#include "kernel/x86/panic.h"
#include "mm/kmem.h"
#include "mm/kmem_impl.h"
#include "tools/workshop/bugs/fault.h"

#define NO_APIC 0x55 /* more than a machine of a test has processors */

static struct kmem_cache *volatile cache;
static volatile bool both;
static volatile bool too; /* the other processor is about to panic */

/* Stops while it holds a lock of the heap, which the shell after the panic of
 * another processor needs. */
static MISTAKE stop_locked(void)
{
    spin_lock(&cache->cache_lock);
    cache = NULL;
    for (;;)
        cpu_halt();
}

/* Panics while the shell's processor, which panics too, stops the one before
 * this. */
static MISTAKE panic_too(void)
{
    while (!both)
        cpu_relax();
    too = true;
    cpu_relax();
    panic("the second of two panics");
}

/* Called on all processors, of which the first waits for this one. */
static void panic_called(void *unused UNUSED)
{
    if (cpu_self() != &cpu_boot)
        panic("a processor that was called");
}

static const struct {
    const char *mistake_name;
    void (*mistake_make)(void);
} mistakes[] = {
    {"null", read_null},
    {"stack", overflow_stack},
    {"locked", stop_locked},
    {"both", panic_too},
};

/* The processor with the highest number. */
static struct cpu *last(void)
{
    unsigned n = CPUS_MAX - 1;

    while (cpu_online[n] == NULL)
        n--;
    return cpu_online[n];
}

static void run_job(void *arg)
{
    void (**fn)(void) = arg;
    void (*mistake)(void) = *fn;

    sched_move_self((uint8_t)last()->cpu_bit);
    irq_disable();
    __atomic_store_n(fn, NULL, __ATOMIC_RELEASE);
    mistake();
    irq_enable();
}

/* Calls the mistake in a task of its own on the last processor; returns when
 * that has begun. False: no memory. */
static bool run_on_last(void (*mistake)(void))
{
    struct task *t = task_create("job", run_job, &mistake, PRIORITY_KERNEL);

    if (t == NULL)
        return false;
    task_disown(t);
    while (__atomic_load_n(&mistake, __ATOMIC_ACQUIRE) != NULL)
        sched_sleep_ms(1);
    return true;
}

/* What the shell's processor does once the other one has begun. */
static void follow(void (*mistake)(void))
{
    if (mistake == stop_locked) {
        while (cache != NULL)
            cpu_relax();
        panic("the first of two processors");
    }
    both = true;
    while (!too)
        cpu_relax(); /* until it stops this one, or panics too */
    panic("the first of two panics");
}

static int cmd_cpufault(char **argv)
{
    if (strcmp(argv[1], "absent") == 0)
        return !cpus_add(NO_APIC);
    if (last() == &cpu_boot)
        return shell_error("there is one processor");
    if (strcmp(argv[1], "called") == 0)
        ipi_call_all(panic_called, NULL);
    if (strcmp(argv[1], "paused") == 0) {
        ipi_stop_others();
        panic("the others stand still");
    }
    sched_move_self(1);
    cache = kmem_cache_find("task");
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++)
        if (strcmp(argv[1], mistakes[i].mistake_name) == 0 &&
            run_on_last(mistakes[i].mistake_make))
            follow(mistakes[i].mistake_make);
    return shell_error("out of memory");
}

SHELL_COMMAND(cpufault, {"null|stack|locked|both|called|paused|absent",
                         cmd_cpufault, SHELL_ACTION});
