/*
 * The kernel's functions for the heap's debugging modes
 * (mm/debug/debug.h): time, tasks, names of code, pages that fault, and the
 * memory that may hold pointers.
 */
#include "drivers/debugcon.h"
#include "drivers/pit.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/mm_platform.h"
#include "kernel/shell/report.h"
#include "kernel/shell/shell.h"
#include "kernel/task/task.h"
#include "kernel/x86/ipi.h"
#include "kernel/x86/cpu.h"
#include "mm/debug/debug.h"
#include "mm/inspect/buddy_stat.h"
#include "mm/segkmem.h"

/* Never 0, which means "not yet" to callers: before the clock's first
 * step there are allocations too. */
uint64_t mm_clock_us(void)
{
    return timer_us() + 1;
}

void mm_event(const char *fmt, ...)
{
    char text[DEBUGCON_LINE_MAX + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    debugcon_line(text, strlen(text));
}

const char *mm_symbol(uintptr_t pc, char *text, size_t size)
{
    return symbol_caller(pc, text, size);
}

/* ---- tasks -------------------------------------------------------------- */

uint32_t mm_task_id(void)
{
    const struct task *self = task_self();

    return self == NULL ? 0 : (uint32_t)self->task_pid;
}

const char *mm_task_name(uint32_t id)
{
    static char name[TASK_NAME_MAX + 1];
    const struct task *t;

    if (id == 0)
        return "boot";
    spin_lock(&sched_lock);
    t = task_find((pid_t)id);
    strlcpy(name, t == NULL ? "gone" : t->task_name, sizeof(name));
    spin_unlock(&sched_lock);
    return name;
}

uint32_t mm_cpu_id(void)
{
    return cpu_self()->cpu_number;
}

/* ---- pages -------------------------------------------------------------- */

bool mm_page_map(void *page, bool present)
{
    if (page == NULL)
        return true;
    if (present)
        paging_map((vaddr_t)page);
    else
        paging_unmap((vaddr_t)page);
    return true;
}

bool mm_readable(const void *addr)
{
    return (uintptr_t)addr >= KERNEL_BASE && paging_readable((vaddr_t)addr);
}

/* ---- stacks ------------------------------------------------------------- */

/* A stack that an address may be on. */
struct stack_of {
    uintptr_t addr;
    pid_t pid;
    char name[TASK_NAME_MAX + 1];
};

static vaddr_t stack_bottom(const struct task *t)
{
    return t == NULL || t->task_kstack == NULL ? (vaddr_t)boot_stack_bottom
                                               : (vaddr_t)t->task_kstack;
}

static bool is_on(struct task *t, void *arg)
{
    struct stack_of *s = arg;

    if (s->addr < stack_bottom(t) || s->addr >= t->task_stack_top)
        return true;
    s->pid = t->task_pid;
    strlcpy(s->name, t->task_name, sizeof(s->name));
    return false;
}

static bool find_stack(struct stack_of *s)
{
    if (s->addr >= (uintptr_t)boot_stack_bottom &&
        s->addr < (uintptr_t)boot_stack_top)
        s->pid = 1;
    strlcpy(s->name, "kernel", sizeof(s->name));
    if (task_self() == NULL)
        return s->pid != 0;
    task_each(is_on, s);
    return s->pid != 0;
}

static void describe_frame(const void *addr, char *text, size_t size)
{
    const struct page *p = virt_to_page(addr);

    if ((uintptr_t)addr < KERNEL_BASE)
        snprintf(text, size, "%s",
                 addr == NULL ? "NULL" : "an address for programs");
    else if (p == NULL || p->page_state == PAGE_RESERVED)
        snprintf(text, size, "no memory that the kernel manages");
    else
        snprintf(text, size, "in a page that is %s",
                 page_state_name((page_block(p) ?: p)->page_state));
}

static bool in_image(uintptr_t addr)
{
    return addr >= (uintptr_t)image_start && addr < (uintptr_t)image_end;
}

bool mm_describe(const void *addr, char *text, size_t size)
{
    struct stack_of s = {.addr = (uintptr_t)addr};
    char symbol[64];

    if (find_stack(&s)) {
        snprintf(text, size, "on the stack of task %d (%s)", (int)s.pid,
                 s.name);
        return true;
    }
    if (symbol_lookup((uintptr_t)addr, NULL) != NULL)
        snprintf(text, size, "code: %s",
                 symbol_format((uintptr_t)addr, symbol, sizeof(symbol)));
    else if (in_image((uintptr_t)addr))
        snprintf(text, size, "data of the kernel's image");
    else
        describe_frame(addr, text, size);
    return false;
}

/* ---- where pointers may be ---------------------------------------------- */

static uint32_t others_flags;

void mm_stop_others(void)
{
    others_flags = ipi_stop_others();
}

void mm_resume_others(void)
{
    ipi_resume_others(others_flags);
}

/* A task that another processor runs has left task_esp. */
static bool live_stack(struct task *t, void *arg)
{
    mm_root_t *fn = *(mm_root_t **)arg;
    const struct cpu *cpu = cpu_of(t);

    if (t != task_self())
        fn((const void *)(cpu == NULL ? t->task_esp : cpu->cpu_halted_at),
           (const void *)t->task_stack_top, t->task_name);
    return true;
}

/* The caller's stack from here on, with the registers that calls preserve. In a
 * debugger's call this is the debugger's stack, and the task's is read from its
 * ESP on: nothing if that is in ring 3, all of it if it is in another stack, as
 * after a double fault. */
static __attribute__((noinline)) void read_own_stack(mm_root_t *fn)
{
    const struct task *self = task_self();
    vaddr_t top = self == NULL ? (vaddr_t)boot_stack_top : self->task_stack_top;
    vaddr_t bottom = stack_bottom(self);
    const void *from = __builtin_frame_address(0);

    __builtin_unwind_init();
    if (shell_reporting) {
        fn(from, report_stack_top, "debugger");
        from = (const void *)report.report_esp;
    }
    if ((vaddr_t)from < bottom || (vaddr_t)from > top)
        from = (const void *)((vaddr_t)from < KERNEL_BASE ? top : bottom);
    fn(from, (const void *)top, self == NULL ? "boot" : self->task_name);
}

/* Two stacks lie within .bss: what they hold below their end is stale. */
void mm_roots(mm_root_t *fn)
{
    fn(data_start, data_end, ".data");
    fn(bss_start, report_stack_bottom, ".bss");
    fn(boot_stack_top, bss_end, ".bss");
    read_own_stack(fn);
    if (task_self() == NULL)
        return;
    task_each(live_stack, &fn);
}

bool mm_is_root(const struct kmem_cache *cp)
{
    static const struct kmem_cache *stacks;

    if (stacks == NULL)
        stacks = kmem_cache_find("kstack");
    return cp == stacks;
}

/* A page directory has the only mention of its page tables, as the processor
 * wants it: a physical address, with flags in the low bits. */
uintptr_t mm_pointer(const struct kmem_cache *cp, uintptr_t word)
{
    static const struct kmem_cache *directories;

    if (directories == NULL)
        directories = kmem_cache_find("page_directory");
    if (cp != directories)
        return word;
    return word & PTE_PRESENT
               ? (uintptr_t)mm_phys_to_virt(word & ~(uintptr_t)PAGE_MASK)
               : 0;
}
