/*
 * System call handlers.
 *
 * The stub in kernel/x86/trap.asm calls syscall_table[EAX] with EBX, ECX and
 * EDX as arguments, interrupts enabled, and returns the result in EAX. A
 * handler checks everything first; what follows the comment "point of no
 * return" cannot fail. Pointers are checked with user_range (kernel/vm/user.h)
 * before any other use.
 *
 * Handlers are grouped in files: task.c, process.c (exec), memory.c, file.c,
 * path.c, ipc.c. docs/syscalls.md lists all calls and errors.
 */
#pragma once

#include "kernel/abi/errno.h"
#include "kernel/abi/syscall.h"
#include "kernel/task/task.h"
#include "kernel/vm/user.h"
#include "kernel/x86/trap.h"

typedef int32_t syscall_t(uint32_t a, uint32_t b, uint32_t c);

#define SYSCALL_DECLARE(name) syscall_t sys_##name;
SYSCALL_LIST(SYSCALL_DECLARE)

/* The registers of the program that made the running call. */
static inline struct trapframe *syscall_frame(void)
{
    return (struct trapframe *)task_self()->task_stack_top - 1;
}
