/*
 * Exceptions and interrupts (Intel SDM volume 3, chapter 6).
 */
#pragma once

#include "kernel/lib/types.h"

#define TRAP_EXCEPTIONS 32
#define TRAP_VECTORS    48 /* exceptions, and the PIC's 16 lines */
#define TRAP_IRQ_BASE   32
#define TRAP_SYSCALL    0x80

#define TRAP_NONE 0xff /* a frame that no trap made */

#define TRAP_DIVIDE       0
#define TRAP_NMI          2
#define TRAP_BREAKPOINT   3
#define TRAP_OPCODE       6
#define TRAP_DOUBLE_FAULT 8
#define TRAP_STACK        12
#define TRAP_PROTECTION   13
#define TRAP_PAGE_FAULT   14

/* What the stubs in trap.asm leave on the stack, lowest address first. The
 * processor pushes esp and ss only when it comes from another ring. */
struct trapframe {
    uint32_t edi, esi, ebp, esp_dummy, ebx, edx, ecx, eax;
    uint32_t gs, fs, es, ds;
    uint32_t vector;
    uint32_t error;
    uint32_t eip, cs, eflags;
    uint32_t esp, ss;
};

/* Fills the interrupt table and switches it on. Interrupts stay disabled. */
void trap_init(void);

/* `fn` handles an exception from now on; true says that the program may go on.
 * NULL for nobody. Returns the one before. */
typedef bool (*trap_handler_t)(struct trapframe *tf);
trap_handler_t trap_set_handler(unsigned vector, trap_handler_t fn);

/* The processor's name for an exception, with its mnemonic. */
const char *trap_name(unsigned vector);

/* Says in words what the error code (and, of a page fault, CR2) means. */
void trap_describe(const struct trapframe *tf, uint32_t cr2, char *buf,
                   size_t size);

/* The stack pointer at the moment of the trap. */
uintptr_t trap_esp(const struct trapframe *tf);

/* Fills *tf with the registers of the caller. */
void trap_here(struct trapframe *tf);

/* Whether a frame is that of a program. */
static inline bool trap_from_user(const struct trapframe *tf)
{
    return (tf->cs & 3) == 3;
}

/* Leaves for ring 3 with these registers; the frame lies at the top of the
 * kernel stack of the task that runs. */
void trap_return(struct trapframe *tf) __attribute__((noreturn));

/* `fn` is called, interrupts disabled, on the way back to ring 3 whenever the
 * first word of the running task is not 0, until it is. */
void trap_set_pending_handler(void (*fn)(struct trapframe *tf));

/* `fn` is called at the end of every interrupt that the kernel itself was
 * interrupted by, interrupts disabled. */
void trap_set_preempt(void (*fn)(void));

/* Where the processor enters after a double fault. */
void trap_double_fault(void);
