/*
 * Page faults and other exceptions: which are resolved, which kill a program,
 * and which are the kernel's.
 *
 *     page fault ── the region allows it ──> the page is filled in
 *         │
 *         ├─ in kernel/x86/copy.asm, at an address of programs
 *         │                     ──> the copy fails, the call gets -EFAULT
 *         ├─ in a program ──> the program ends, with one line that says why
 *         └─ in the kernel ──> panic
 */
#include "kernel/abi/types.h"
#include "kernel/lib/printf.h"
#include "kernel/task/task.h"
#include "kernel/vm/space_impl.h"
#include "kernel/x86/copy.h"
#include "kernel/x86/panic.h"
#include "kernel/x86/trap.h"

#define ERROR_PRESENT 1u /* of a page fault: something is mapped there */
#define ERROR_WRITE   2u
#define ERROR_EXECUTE 16u

/* All that virtual-8086 mode can address, 0xFFFF0 + 0xFFFF, is below. */
_Static_assert(USER_BASE >= 0x00110000, "nothing to run in that mode");

/* ---- faults of programs ------------------------------------------------- */

static int signal_of(uint32_t vector)
{
    switch (vector) {
    case TRAP_DIVIDE:
    case TRAP_OVERFLOW:
        return SIGFPE;
    case 1:
    case TRAP_BREAKPOINT:
        return SIGTRAP;
    case TRAP_OPCODE:
    case 7: /* programs have no floating-point unit */
        return SIGILL;
    default:
        return SIGSEGV;
    }
}

/* Kills the running program, with one line that says why. One that is in
 * virtual-8086 mode ends at its first instruction: nothing is mapped below
 * USER_BASE. */
static void end_program(const struct trapframe *tf, const char *what,
                        const char *why)
{
    struct task *self = task_self();

    if (tf->eflags & EFLAGS_VM)
        why = "in virtual-8086 mode";
    kprintf("%s (pid %d) killed at 0x%08x: %s%s%s%s%s\n", self->task_name,
            (int)self->task_pid, (unsigned)tf->eip, trap_name(tf->vector),
            what[0] != '\0' ? ": " : "", what, why != NULL ? ", " : "",
            why != NULL ? why : "");
    task_end(signal_of(tf->vector));
}

#define PREFIXES 4    /* prefixes of a port instruction, at most */
#define OPERAND  0x66 /* prefix for 16 bits instead of 32 */

/* The number of ports that the instruction at `eip` uses (Intel SDM volume 2),
 * 0: none; *first gets the lowest. */
static unsigned port_instruction(const struct trapframe *tf, unsigned *first)
{
    const uint8_t __user *at = (const uint8_t __user *)tf->eip;
    bool small = false;
    uint8_t byte = 0;

    for (int i = 0; i < PREFIXES; i++) {
        if (copy_from_user(&byte, at++, 1) != 0)
            return 0;
        if (byte != OPERAND && byte != 0xf2 && byte != 0xf3)
            break;
        small |= byte == OPERAND;
    }
    *first = tf->edx & 0xffff;
    if ((byte & 0xfc) == 0xe4) { /* in, out: the port is the next byte */
        uint8_t port;

        if (copy_from_user(&port, at, 1) != 0)
            return 0;
        *first = port;
    } else if ((byte & 0xfc) != 0x6c && (byte & 0xfc) != 0xec) {
        return 0;
    }
    return (byte & 1) == 0 ? 1 : small ? 2 : 4;
}

static bool exception(struct trapframe *tf)
{
    char what[96];
    unsigned first, ports = 0;

    if (!trap_from_user(tf))
        return false;
    irq_enable();
    if (tf->vector == TRAP_PROTECTION)
        ports = port_instruction(tf, &first);
    if (ports == 0)
        trap_describe(tf, 0, what, sizeof(what));
    else if (ports == 1)
        snprintf(what, sizeof(what), "port 0x%x is not granted", first);
    else
        snprintf(what, sizeof(what), "ports 0x%x-0x%x are not all granted",
                 first, first + ports - 1);
    end_program(tf, what, NULL);
    return true;
}

/* ---- page faults -------------------------------------------------------- */

#define STACK_MISS KIB(64) /* a fault so close below the stack is its own */

/* The kernel's own fault: names one at a program's page, which only the
 * functions of copy.asm may use. */
static bool kernel_fault(struct trapframe *tf, uaddr_t addr)
{
    char text[96];

    if (addr >= USER_TOP || (tf->error & ERROR_PRESENT) == 0)
        return false;
    snprintf(text, sizeof(text),
             "the kernel %s 0x%08lx, a program's page, outside copy.asm",
             tf->error & ERROR_EXECUTE ? "ran"
             : tf->error & ERROR_WRITE ? "wrote to"
                                       : "read",
             (unsigned long)addr);
    panic_at(tf, text);
}

static bool page_fault(struct trapframe *tf)
{
    uaddr_t addr = read_cr2();
    bool write = (tf->error & ERROR_WRITE) != 0;
    bool program = trap_from_user(tf);
    bool copying = !program && tf->eip >= (uint32_t)copy_begin &&
                   tf->eip < (uint32_t)copy_end;
    struct space *s = task_self()->task_space;
    const char *why = NULL;
    int error = -EFAULT;
    char what[96];

    if (!program && (!copying || addr >= USER_TOP))
        return kernel_fault(tf, addr);
    if (program || (tf->eflags & EFLAGS_IF) != 0)
        irq_enable();
    if (addr < USER_TOP && s != NULL &&
        (write || (tf->error & ERROR_PRESENT) == 0))
        error = space_fault(s, addr, write);
    if (error == 0)
        return true;
    if (copying) {
        tf->eip = (uint32_t)copy_fault;
        tf->eax = (uint32_t)error;
    } else {
        trap_describe(tf, addr, what, sizeof(what));
        if (error == -ENOMEM)
            why = "and memory for a larger stack cannot be promised";
        else if (addr < USER_BASE && addr >= USER_BASE - STACK_MISS)
            why = "the stack has its maximum of 1024 KiB";
        end_program(tf, what, why);
    }
    return true;
}

void space_init(void)
{
    space_caches_init();
    for (unsigned v = 0; v < TRAP_EXCEPTIONS; v++)
        if (v != 2 && v != TRAP_DOUBLE_FAULT && v != 18)
            trap_set_handler(v, exception);
    trap_set_handler(TRAP_PAGE_FAULT, page_fault);
}
