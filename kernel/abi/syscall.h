/*
 * The list of system calls, from which the kernel's table and the programs'
 * stubs are generated.
 *
 * A call is `int 0x80` with its number in EAX and up to three arguments in EBX,
 * ECX and EDX. EAX returns the result or a negated error number. All other
 * registers are preserved. (Messages use more registers: kernel/abi/ipc.h.)
 */
#pragma once

#define SYSCALL_VECTOR 0x80

/* X(name): the handler is sys_name, the number SYS_name. */
#define SYSCALL_LIST(X)                                                        \
    X(getpid)                                                                  \
    X(exit)                                                                    \
    X(fork)                                                                    \
    X(exec)                                                                    \
    X(wait)                                                                    \
    X(kill)                                                                    \
    X(getppid)                                                                 \
    X(yield)                                                                   \
    X(sleep)                                                                   \
    X(uptime)                                                                  \
    X(setpgid)                                                                 \
    X(sbrk)                                                                    \
    X(mmap)                                                                    \
    X(munmap)                                                                  \
    X(open)                                                                    \
    X(close)                                                                   \
    X(read)                                                                    \
    X(write)                                                                   \
    X(lseek)                                                                   \
    X(stat)                                                                    \
    X(fstat)                                                                   \
    X(ftruncate)                                                               \
    X(getdents)                                                                \
    X(mkdir)                                                                   \
    X(rmdir)                                                                   \
    X(unlink)                                                                  \
    X(rename)                                                                  \
    X(link)                                                                    \
    X(chdir)                                                                   \
    X(getcwd)                                                                  \
    X(dup)                                                                     \
    X(dup2)                                                                    \
    X(pipe)                                                                    \
    X(ttymode)                                                                 \
    X(tcsetpgrp)                                                               \
    X(port_create)                                                             \
    X(ipc_call)                                                                \
    X(ipc_receive)                                                             \
    X(ipc_reply)                                                               \
    X(ipc_reply_receive)                                                       \
    X(notify)                                                                  \
    X(irq_bind)                                                                \
    X(irq_ack)                                                                 \
    X(name_server)                                                             \
    X(grant_take)                                                              \
    X(map_device)                                                              \
    X(dma_alloc)                                                               \
    X(alarm)                                                                   \
    X(mount)                                                                   \
    X(umount)                                                                  \
    X(sync)                                                                    \
    X(fsync)                                                                   \
    X(statfs)

#define SYSCALL_NUMBER(name) SYS_##name,

enum {
    SYSCALL_LIST(SYSCALL_NUMBER) SYSCALL_COUNT
};
