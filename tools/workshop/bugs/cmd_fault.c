/*
 * fault: makes a mistake on purpose, to show how the kernel reports it.
 */
#include "drivers/console.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "kernel/task/task.h"
#include "kernel/vm/space.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/panic.h"
#include "kernel/x86/tests/fault.h"
#include "kernel/x86/paging.h"
#include "mm/kmem.h"
#include "tools/workshop/bugs/fault.h"

/* GCC must not know the values. */
static volatile int zero;
static int *volatile null;

MISTAKE read_null(void)
{
    kprintf("%d\n", *null);
}

static MISTAKE divide_by_zero(void)
{
    kprintf("%d\n", (zero + 1) / zero);
}

static MISTAKE read_null_locked(void)
{
    spin_lock(&console_lock);
    read_null();
}

static MISTAKE print_locked(void)
{
    spin_lock(&sched_lock);
    kprintf("printed with sched_lock held\n");
    spin_unlock(&sched_lock);
}

/* Fills the stack with its own frames until there is no page for the next. */
static int recurse(int depth)
{
    volatile char frame[256];

    frame[0] = (char)depth;
    if (zero)
        return 0;
    return recurse(depth + 1) + frame[0];
}

MISTAKE overflow_stack(void)
{
    recurse(0);
}

static MISTAKE write_text(void)
{
    *(volatile char *)text_start = 0;
}

static MISTAKE load_bad_segment(void)
{
    fault_protection();
}

static MISTAKE run_bad_opcode(void)
{
    fault_opcode();
}

/* Allocates all memory, and more, where it cannot wait. The memory is never
 * freed. */
static MISTAKE exhaust_memory(void)
{
    irq_disable();
    for (;;)
        kmem_alloc(MIB(1), KM_SLEEP);
}

/* A string that is too long for its array, and reaches the return address. */
static MISTAKE overrun_array(void)
{
    static const char *volatile text = "a name much too long for its array, as "
                                       "any string without a bound may be";
    const char *from = text;
    char name[16];
    char *to = name;

    while ((*to++ = *from++) != '\0')
        continue;
    kprintf("%s\n", name);
}

/* The shell after the panic needs this lock. */
static MISTAKE fault_locked(void)
{
    spin_lock(&sched_lock);
    read_null();
    spin_unlock(&sched_lock);
}

static struct spinlock fault_lock = SPINLOCK_INIT("fault", LOCK_RANK_LAST);

static MISTAKE take_twice(void)
{
    spin_lock(&fault_lock);
    spin_lock(&fault_lock);
    spin_unlock(&fault_lock);
    spin_unlock(&fault_lock);
}

/* Waits for a lock that no processor holds, and that none can release. */
static MISTAKE wait_for_ever(void)
{
    fault_lock.lock_taken = 1;
    spin_lock(&fault_lock);
    spin_unlock(&fault_lock);
}

/* In these a program's page is mapped: with one instruction, ret. */
#define PROGRAM_PAGE SPACE_IMAGE_BASE

static MISTAKE read_program(void)
{
    kprintf("%d\n", *(volatile uint8_t *)PROGRAM_PAGE);
}

static MISTAKE write_program(void)
{
    *(volatile uint8_t *)PROGRAM_PAGE = 0;
}

static MISTAKE run_program(void)
{
    ((void (*)(void))PROGRAM_PAGE)();
}

static struct space *make_program(void)
{
    static const uint8_t ret = 0xC3;
    struct space *s = space_create(NULL);

    if (s == NULL)
        panic("no memory for a program's page");
    if (space_add_region(s, PROGRAM_PAGE, PROGRAM_PAGE + PAGE_SIZE,
                         PROT_READ | PROT_WRITE, REGION_IMAGE) != 0 ||
        space_transfer(s, PROGRAM_PAGE, NULL, (uaddr_t)&ret, 1) != 0)
        panic("no memory for a program's page");
    return s;
}

static void with_program(void (*mistake)(void))
{
    uint32_t cr3 = read_cr3();
    struct space *s = make_program();

    irq_disable(); /* a switch to this task would load its own page tables */
    write_cr3(space_cr3(s));
    mistake();
    write_cr3(cr3);
    irq_enable();
    space_destroy(s);
}

enum fault_kind {
    FAULT_NULL,
    FAULT_CONSOLE,
    FAULT_PRINT,
    FAULT_DIVIDE,
    FAULT_STACK,
    FAULT_WRITE_TEXT,
    FAULT_PROTECTION,
    FAULT_OPCODE,
    FAULT_MEMORY,
    FAULT_ARRAY,
    FAULT_LOCKED,
    FAULT_LOCK_TWICE,
    FAULT_LOCK_LOST,
    FAULT_READ_PROGRAM,
    FAULT_WRITE_PROGRAM,
    FAULT_RUN_PROGRAM,
    FAULT_KINDS
};

static const char *const fault_names[FAULT_KINDS] = {
    "null",        "console",    "print",     "divide",       "stack",
    "write-text",  "gp",         "opcode",    "memory",       "array",
    "locked",      "lock-twice", "lock-lost", "read-program", "write-program",
    "run-program",
};

/* Direct calls: a backtrace finds the caller of a function without a frame
 * only after these. */
static void run_fault(enum fault_kind kind)
{
    switch (kind) {
    case FAULT_NULL:
        read_null();
        break;
    case FAULT_CONSOLE:
        read_null_locked();
        break;
    case FAULT_PRINT:
        print_locked();
        break;
    case FAULT_DIVIDE:
        divide_by_zero();
        break;
    case FAULT_STACK:
        overflow_stack();
        break;
    case FAULT_WRITE_TEXT:
        write_text();
        break;
    case FAULT_PROTECTION:
        load_bad_segment();
        break;
    case FAULT_OPCODE:
        run_bad_opcode();
        break;
    case FAULT_ARRAY:
        overrun_array();
        break;
    case FAULT_LOCKED:
        fault_locked();
        break;
    case FAULT_LOCK_TWICE:
        take_twice();
        break;
    case FAULT_LOCK_LOST:
        wait_for_ever();
        break;
    case FAULT_READ_PROGRAM:
        with_program(read_program);
        break;
    case FAULT_WRITE_PROGRAM:
        with_program(write_program);
        break;
    case FAULT_RUN_PROGRAM:
        with_program(run_program);
        break;
    default:
        exhaust_memory();
        break;
    }
    kprintf("the processor raised no exception\n");
}

static int cmd_fault(char **argv)
{
    for (enum fault_kind kind = 0; kind < FAULT_KINDS; kind++) {
        if (strcmp(argv[1], fault_names[kind]) == 0) {
            run_fault(kind);
            return 0;
        }
    }
    return shell_error("no kind '%.32s'; `help fault` lists them", argv[1]);
}

static void offer_faults(const struct shell_offer *o)
{
    for (enum fault_kind kind = 0; kind < FAULT_KINDS; kind++)
        shell_offer(o, fault_names[kind]);
}

SHELL_COMMAND(fault, {"FAULT", cmd_fault, SHELL_ACTION});
SHELL_WORDS(FAULT, offer_faults);
