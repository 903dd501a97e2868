/*
 * Exceptions and interrupts (Intel SDM volume 3, chapter 6).
 */
#pragma once

#include "kernel/x86/cpu.h"

#define TRAP_EXCEPTIONS 32
#define TRAP_VECTORS    48 /* exceptions, and the PIC's 16 lines */
#define TRAP_IRQ_BASE   32
#define TRAP_SHOOTDOWN  0x30 /* interprocessor interrupts: ipi.h */
#define TRAP_CALL       0x31
#define TRAP_RESCHED    0x32
#define TRAP_SYSCALL    0x80

#define TRAP_NONE 0xff /* a frame not made by a trap */

#define TRAP_DIVIDE       0
#define TRAP_DEBUG        1
#define TRAP_NMI          2
#define TRAP_BREAKPOINT   3
#define TRAP_OVERFLOW     4
#define TRAP_OPCODE       6
#define TRAP_DOUBLE_FAULT 8
#define TRAP_STACK        12
#define TRAP_PROTECTION   13
#define TRAP_PAGE_FAULT   14

/* The frame that the stubs in trap.asm build on the stack, lowest address
 * first. The processor pushes esp and ss only when it comes from another ring,
 * and es, ds, fs and gs above them when it comes from virtual-8086 mode. */
struct trapframe {
    uint32_t edi, esi, ebp, esp_dummy, ebx, edx, ecx, eax;
    uint32_t gs, fs, es, ds;
    uint32_t vector;
    uint32_t error;
    uint32_t eip, cs, eflags;
    uint32_t esp, ss;
};

/* Fills the interrupt table and loads it. Interrupts stay disabled. */
void trap_init(void);

/* Loads it on another processor. */
void trap_load(void);

/* Where the interrupt with this vector enters the kernel; interrupts are
 * disabled there. */
void trap_set_gate(unsigned vector, uint32_t entry);

/* Sets the handler of an exception (NULL: none); it returns true if the program
 * may continue. Returns the previous handler. */
typedef bool (*trap_handler_t)(struct trapframe *tf);
trap_handler_t trap_set_handler(unsigned vector, trap_handler_t fn);

/* The processor's name for an exception, with its mnemonic. */
const char *trap_name(unsigned vector);

/* Describes the error code (and, for a page fault, CR2) in words. */
void trap_describe(const struct trapframe *tf, uint32_t cr2, char *buf,
                   size_t size);

/* The stack pointer at the moment of the trap. */
uintptr_t trap_esp(const struct trapframe *tf);

/* Fills *tf with the registers of the caller. */
void trap_here(struct trapframe *tf);

/* Whether a frame is that of a program. In virtual-8086 mode CS is no selector:
 * its low bits say nothing. */
static inline bool trap_from_user(const struct trapframe *tf)
{
    return ((tf->cs & 3) | (tf->eflags & EFLAGS_VM)) >= 3;
}

/* Enters ring 3 with these registers. The frame is at the top of the running
 * task's kernel stack. */
void trap_return(struct trapframe *tf) __attribute__((noreturn));

/* Called by trap.asm, interrupts disabled, before a return to ring 3 while the
 * first word of the running task is not 0; in kernel/syscall/process.c. */
void trap_handle_pending(void);

/* Sets the function called, interrupts disabled, at the end of every interrupt
 * that arrived in the kernel. */
void trap_set_preempt(void (*fn)(void));

/* Calls that function if the interrupt arrived in the kernel. */
void trap_preempt(const struct trapframe *tf);

/* The processor's entry point after a double fault. */
void trap_double_fault(void);

/*
 * Interrupt lines: their handlers and acknowledgement. The controller is a
 * driver (drivers/pic.c), which registers here.
 */

/* Sets the handler of line `irq` (0 to 15), called with interrupts disabled;
 * NULL: none. */
void irq_set_handler(int irq, void (*fn)(struct trapframe *tf));

/* Whether a line has a handler, or is the one that joins the controllers. */
bool irq_taken(int irq);

/* The address of a line's handler (0: none), and its count of interrupts. */
uintptr_t irq_handler(int irq);
uint32_t irq_count(int irq);

/* Sets the function that acknowledges an interrupt at the controller, before
 * the handler: a long one may let others in (irq_window). */
void irq_set_ack(void (*fn)(int irq));
