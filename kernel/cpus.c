/*
 * The processors besides the one that boots: starts them, and stops them in a
 * panic (in kernels for several processors: SMP_SRC in tools/make/kernel.mk).
 *
 * They are started one at a time when the prompt is ready. Each has an idle
 * task and a stack for its double fault. A processor that does not answer costs
 * a message and 100 ms.
 */
#include "kernel/cpus.h"
#include "drivers/pit.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/option.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/shell.h"
#include "kernel/task/cache.h"
#include "kernel/task/task.h"
#include "kernel/x86/acpi.h"
#include "kernel/x86/apic.h"
#include "kernel/x86/ipi.h"
#include "kernel/x86/gdt.h"
#include "kernel/x86/mp.h"
#include "kernel/x86/paging.h"
#include "kernel/x86/panic.h"
#include "kernel/x86/switch.h"
#include "mm/platform.h"

#define RESET_MS 10   /* a processor needs after its reset (SDM 8.4.4.1) */
#define SOON_US  1000 /* it answers, else the message is repeated */
#define LATE_MS  100  /* it does not answer at all */

/* An object of the cache "cpu". */
struct ap {
    struct cpu cpu;
    struct segments segments;
    struct tss tss;
};

static struct kmem_cache *cpu_cache;
static unsigned wanted = CPUS_MAX;

static bool set_cpus(char *value)
{
    uint32_t n;

    if (!parse_u32(value, &n) || n == 0)
        return false;
    wanted = MIN(n, CPUS_MAX);
    return true;
}

BOOT_OPTION(cpus, "cpus=", "cpus=N", "use at most so many processors",
            set_cpus);

/* ---- starting ----------------------------------------------------------- */

/* The first code of a processor in the kernel: its idle task. From the lock on
 * the scheduler may use the processor. */
static void ap_begin(void *arg)
{
    struct ap *f = arg;
    struct cpu *cpu = &f->cpu;

    write_cr3(paging_kernel_cr3());
    gdt_load(cpu);
    trap_load();
    apic_on();
    spin_lock(&sched_lock);
    cpu->cpu_idle->task_state = TASK_RUNNING;
    cpu->cpu_since_ms = timer_ms();
    cpu_online[cpu->cpu_number] = cpu;
    cpu_started = MAX(cpu_started, cpu->cpu_number + 1);
    spin_unlock(&sched_lock);
    write_cr3(paging_kernel_cr3()); /* forgets what was unmapped meanwhile */
    for (;;)
        cpu_wait_interrupt();
}

static bool is_online(const struct cpu *cpu)
{
    return cpu_online[cpu->cpu_number] == cpu;
}

/* False: it does not answer. */
static bool start_ap(struct ap *f)
{
    struct cpu *cpu = &f->cpu;
    vaddr_t top = cpu->cpu_task->task_stack_top;
    uint64_t soon;

    mp_send_init(cpu->cpu_apic);
    gdt_fill(cpu, &f->segments, sizeof(f->tss), KSTACK_BYTES);
    mp_install_trampoline(
        switch_prepare(top - sizeof(struct trapframe), ap_begin, cpu));
    sched_sleep_ms(RESET_MS);
    mp_send_startup(cpu->cpu_apic);
    soon = timer_us() + SOON_US;
    while (!is_online(cpu) && timer_us() < soon)
        cpu_relax();
    if (!is_online(cpu))
        mp_send_startup(cpu->cpu_apic);
    for (int ms = 0; ms < LATE_MS && !is_online(cpu); ms += RESET_MS)
        sched_sleep_ms(RESET_MS);
    spin_lock(&sched_lock); /* a processor comes online under sched_lock */
    if (!is_online(cpu))
        mp_send_init(cpu->cpu_apic); /* nor may it answer later */
    spin_unlock(&sched_lock);
    mp_remove_trampoline();
    return is_online(cpu);
}

static void ap_discard(struct ap *f)
{
    if (f == NULL)
        return;
    if (f->cpu.cpu_task != NULL)
        task_discard(f->cpu.cpu_task);
    if (f->segments.segments_guard != 0)
        kmem_cache_free(kstack_cache, (void *)f->segments.segments_guard);
    kmem_cache_free(cpu_cache, f);
}

/* NULL: no memory. */
static struct ap *make(uint8_t apic, unsigned number)
{
    struct ap *f = kmem_cache_alloc(cpu_cache, KM_NOSLEEP);

    if (f == NULL)
        return NULL;
    memset(f, 0, sizeof(*f));
    f->cpu.cpu_task = task_prepare("idle", NULL, NULL, PRIORITY_IDLE);
    f->cpu.cpu_idle = f->cpu.cpu_task;
    f->cpu.cpu_number = number;
    f->cpu.cpu_bit = 1u << number;
    f->cpu.cpu_apic = apic;
    f->segments.segments_tss = &f->tss;
    f->segments.segments_guard =
        (vaddr_t)kmem_cache_alloc(kstack_cache, KM_NOSLEEP);
    f->tss.iomap = sizeof(f->tss);
    if (f->cpu.cpu_task != NULL && f->segments.segments_guard != 0)
        return f;
    ap_discard(f);
    return NULL;
}

bool cpus_add(uint8_t apic)
{
    struct ap *f;
    unsigned number = 0;

    while (number < CPUS_MAX && cpu_online[number] != NULL)
        number++;
    f = number < CPUS_MAX ? make(apic, number) : NULL;
    if (f != NULL && start_ap(f))
        return true;
    kprintf("the processor with APIC %u %s; it is not used\n", apic,
            f == NULL ? "gets no memory" : "does not answer");
    ap_discard(f);
    return false;
}

/* The directory of no address space is copied yet. */
static void cpus_find(const void *arg UNUSED)
{
    if (acpi.acpi_count > 1 && wanted > 1 && apic_map(acpi.acpi_apic))
        cpu_limit = wanted;
}

HOOK(HOOK_FRAMES, cpus_find);

static void start_all(const void *arg UNUSED)
{
    unsigned listed = MIN(acpi.acpi_count, CPUS_MAX);
    unsigned n = 1;

    if (cpu_limit == 1 || timer_interrupts() == 0)
        return;
    cpu_cache = cache_create("cpu", sizeof(struct ap), 64, NULL, NULL);
    apic_on();
    ipi_init();
    cpu_boot.cpu_apic = apic_id();
    for (unsigned i = 0; i < listed && n < cpu_limit; i++)
        if (acpi.acpi_id[i] != cpu_boot.cpu_apic)
            n += cpus_add(acpi.acpi_id[i]);
    kprintf("%u processors; %u started\n", acpi.acpi_count, n);
}

HOOK(HOOK_PROMPT, start_all);

/* ---- for mm/ ------------------------------------------------------------ */

void mm_call_all(void (*fn)(void *arg), void *arg)
{
    if (read_eflags() & EFLAGS_IF)
        ipi_call_all(fn, arg);
    else
        fn(arg);
}

/* ---- showing ------------------------------------------------------------ */

/* Where it was stopped, and the locks that it held, as far as is known. */
static void print_cpu_place(const struct cpu *cpu, const char *name)
{
    char place[64];

    if (cpu->cpu_stopped == NULL)
        return;
    kprintf("%*s  %s", TASK_NAME_MAX - (int)strlen(name), "",
            symbol_format(cpu->cpu_stopped->eip, place, sizeof(place)));
    for (unsigned i = 0; i < cpu->cpu_locks; i++)
        kprintf("%s %s", i == 0 ? ", holds" : ",", spin_name(cpu->cpu_lock[i]));
}

/* Per cent of the time since it started. */
static unsigned idle_share(const struct cpu *cpu)
{
    uint64_t ms = timer_ms() - cpu->cpu_since_ms;
    uint64_t idle = cpu->cpu_idle->task_ticks * TICK_MS;

    return (unsigned)MIN(ms == 0 ? 100 : idle * 100 / ms, 100);
}

/* Unless all processors are stopped, takes sched_lock: the task may end. */
static void print_cpu(const struct cpu *cpu)
{
    bool panicked = panic_reported();
    char name[TASK_NAME_MAX + 1];
    const char *state;

    if (!panicked)
        spin_lock(&sched_lock);
    state = cpu->cpu_task == cpu->cpu_idle ? "idle" : "running";
    memcpy(name, cpu->cpu_task->task_name, sizeof(name));
    if (!panicked)
        spin_unlock(&sched_lock);
    if (panicked)
        state = cpu->cpu_stopped != NULL ? "stopped"
                : cpu == cpu_self()      ? "panicked"
                                         : "lost";
    kprintf("%3u %4u %-8s %8u %5u %s", cpu->cpu_number, cpu->cpu_apic, state,
            (unsigned)cpu->cpu_switches, idle_share(cpu), name);
    print_cpu_place(cpu, name);
    kprintf("\n");
}

static int cmd_cpus(char **argv UNUSED)
{
    kprintf("CPU APIC STATE    SWITCHES IDLE%% TASK%s\n",
            panic_reported() ? "             PLACE" : "");
    for (unsigned i = 0; i < CPUS_MAX; i++)
        if (cpu_online[i] != NULL)
            print_cpu(cpu_online[i]);
    for (unsigned i = 0; spin_broken(i) != NULL; i++)
        kprintf("%s\n", spin_broken(i));
    return 0;
}

SHELL_COMMAND(cpus, {"", cmd_cpus, SHELL_REPORT});

/* ---- panics ------------------------------------------------------------- */

static void cpus_stop(const void *arg UNUSED)
{
    if (cpu_limit > 1)
        mp_stop();
}

HOOK(HOOK_STOP_CPUS, cpus_stop);

static void report_cpus(const void *arg UNUSED)
{
    if (cpu_limit > 1)
        cmd_cpus(NULL);
}

HOOK(HOOK_REPORT, report_cpus);
