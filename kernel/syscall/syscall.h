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

typedef int32_t syscall_t(uint32_t a, uint32_t b, uint32_t c);

/* Arguments that a handler does not use. */
#define NO_C   uint32_t c UNUSED
#define NO_BC  uint32_t b UNUSED, NO_C
#define NO_ABC uint32_t a UNUSED, NO_BC

#define SYSCALL_DECLARE(name) syscall_t sys_##name;
SYSCALL_LIST(SYSCALL_DECLARE)
