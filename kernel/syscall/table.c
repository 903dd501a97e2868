/*
 * The table of handlers for kernel/x86/trap.asm, from the list of all system
 * calls.
 */
#include "kernel/syscall/syscall.h"

#define SYSCALL_ENTRY(name) [SYS_##name] = sys_##name,

extern syscall_t *const syscall_table[];
extern const uint32_t syscall_limit;

syscall_t *const syscall_table[] = {SYSCALL_LIST(SYSCALL_ENTRY)};
const uint32_t syscall_limit = SYSCALL_COUNT;
