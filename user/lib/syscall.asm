; System calls: a stub for each.
;
; A C function has its arguments in EAX, EDX, ECX; the kernel expects them in
; EBX, ECX, EDX and the call's number in EAX (kernel/abi/syscall.h, from which
; make writes syscall.inc). Stubs pass three registers, whether or not they are
; arguments. Each is in a section of its own, so that a program links only those
; that it calls.

        bits 32
        extern errno

%include "syscall.inc"

%define ERRORS  -4095                   ; from here up a result is an error

; FUNCTION, NUMBER: the call itself; the result is returned unchanged.
%macro RAW 2
        global  %1
        section .text.%1 progbits alloc exec nowrite align=4
%1:
        mov     eax, %2
        int     SYSCALL_VECTOR
        ret
%endmacro

; FUNCTION, NUMBER: an error is stored in errno and -1 returned.
%macro STUB 2
        global  %1
        section .text.%1 progbits alloc exec nowrite align=4
%1:
        push    ebx
        mov     ebx, eax
        xchg    ecx, edx
        mov     eax, %2
        int     SYSCALL_VECTOR
        pop     ebx
        cmp     eax, ERRORS
        jae     syscall_error
        ret
%endmacro

        global  syscall_error
        section .text.syscall_error progbits alloc exec nowrite align=4
syscall_error:
        neg     eax
        mov     [errno], eax
        or      eax, -1
        ret

; ---- tasks ------------------------------------------------------------------

        RAW     getpid, SYS_getpid
        RAW     getppid, SYS_getppid
        RAW     uptime_ms, SYS_uptime
        STUB    _exit, SYS_exit
        STUB    fork, SYS_fork
        STUB    execve, SYS_exec
        STUB    waitpid, SYS_wait
        STUB    kill, SYS_kill
        STUB    grant_take, SYS_grant_take
        STUB    setpgid, SYS_setpgid
        STUB    yield, SYS_yield
        STUB    sleep_ms, SYS_sleep

; ---- memory -----------------------------------------------------------------

        STUB    sbrk, SYS_sbrk
        STUB    mmap, SYS_mmap
        STUB    munmap, SYS_munmap
        STUB    map_device, SYS_map_device
        STUB    dma_alloc, SYS_dma_alloc

; ---- files ------------------------------------------------------------------

        STUB    open, SYS_open
        STUB    close, SYS_close
        STUB    read, SYS_read
        STUB    write, SYS_write
        STUB    lseek, SYS_lseek
        STUB    stat, SYS_stat
        STUB    fstat, SYS_fstat
        STUB    ftruncate, SYS_ftruncate
        STUB    getdents, SYS_getdents
        STUB    mkdir, SYS_mkdir
        STUB    rmdir, SYS_rmdir
        STUB    unlink, SYS_unlink
        STUB    rename, SYS_rename
        STUB    link, SYS_link
        STUB    chdir, SYS_chdir
        STUB    getcwd, SYS_getcwd
        STUB    dup, SYS_dup
        STUB    dup2, SYS_dup2
        STUB    pipe, SYS_pipe
        STUB    ttymode, SYS_ttymode
        STUB    tcsetpgrp, SYS_tcsetpgrp
        STUB    mount, SYS_mount
        STUB    umount, SYS_umount
        STUB    sync, SYS_sync
        STUB    fsync, SYS_fsync
        STUB    statfs, SYS_statfs

; ---- ports ------------------------------------------------------------------

        STUB    port_create_flags, SYS_port_create
        STUB    notify, SYS_notify
        STUB    irq_bind, SYS_irq_bind
        STUB    irq_ack, SYS_irq_ack
        STUB    name_server, SYS_name_server
        STUB    alarm, SYS_alarm

; Messages use all registers (kernel/abi/ipc.h). EAX is the port or the client,
; EDX the struct message, whose members are at these places:

MSG_TAG    equ 0
MSG_WORD   equ 4
MSG_BUFFER equ 16
MSG_CLIENT equ 20

%macro MESSAGE 2
        global  %1
        section .text.%1 progbits alloc exec nowrite align=4
%1:
        push    ebp
        push    edi
        push    esi
        push    ebx
        push    edx                     ; the message, for later
        mov     ebx, eax
        mov     ebp, [edx + MSG_BUFFER]
        mov     edi, [edx + MSG_WORD + 8]
        mov     esi, [edx + MSG_WORD + 4]
        mov     ecx, [edx + MSG_TAG]
        mov     edx, [edx + MSG_WORD]
        mov     eax, %2
        int     SYSCALL_VECTOR
        pop     ebp
        mov     [ebp + MSG_TAG], ecx
        mov     [ebp + MSG_WORD], edx
        mov     [ebp + MSG_WORD + 4], esi
        mov     [ebp + MSG_WORD + 8], edi
        mov     [ebp + MSG_CLIENT], ebx
        pop     ebx
        pop     esi
        pop     edi
        pop     ebp
        cmp     eax, ERRORS
        jae     syscall_error
        ret
%endmacro

        MESSAGE ipc_call, SYS_ipc_call
        MESSAGE ipc_receive, SYS_ipc_receive
        MESSAGE ipc_reply, SYS_ipc_reply
        MESSAGE ipc_reply_receive, SYS_ipc_reply_receive

; ---- any call, with any registers -------------------------------------------

; EAX is the number, EDX six values for EBX, ECX, EDX, ESI, EDI, EBP. The result
; is returned unchanged.
        global  syscall_raw
        section .text.syscall_raw progbits alloc exec nowrite align=4
syscall_raw:
        push    ebp
        push    edi
        push    esi
        push    ebx
        mov     ebx, [edx]
        mov     ecx, [edx + 4]
        mov     esi, [edx + 12]
        mov     edi, [edx + 16]
        mov     ebp, [edx + 20]
        mov     edx, [edx + 8]
        int     SYSCALL_VECTOR
        pop     ebx
        pop     esi
        pop     edi
        pop     ebp
        ret
