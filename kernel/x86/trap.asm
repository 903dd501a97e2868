; Entry into the kernel: a stub for each exception and interrupt line, and
; one for system calls.
;
; Some exceptions push an error code and others do not; the stubs push 0
; instead, add the vector, and save the registers as in struct trapframe.

        extern  trap_dispatch
        extern  trap_double_fault_report
        extern  trap_handle_pending
        extern  cpu_boot
        extern  syscall_table
        extern  syscall_limit
%ifdef CONFIG_SMP
        extern  ipi_interrupt
        global  trap_shootdown
        global  trap_call
        global  trap_resched
%endif
        global  trap_syscall
        global  trap_return
        global  trap_stubs
        global  trap_double_fault
        global  trap_here

KERNEL_DATA     equ 0x10
CPU_DATA        equ 0x38                ; GDT_CPU in gdt.h
TRAP_NONE       equ 0xff                ; as in trap.h
TRAP_SHOOTDOWN     equ 0x30
TRAP_CALL       equ 0x31
TRAP_RESCHED    equ 0x32
SYSCALL_VECTOR  equ 0x80
FRAME_EAX       equ 28                  ; in struct trapframe
ENOSYS          equ 38

section .text

%macro STUB 1
stub_%1:
%if %1 == 8 || (%1 >= 10 && %1 <= 14) || %1 == 17 || %1 == 21
                                        ; the processor pushes a code
%elif %1 == 29 || %1 == 30
                                        ; here too
%else
        push    dword 0
%endif
        push    dword %1
        jmp     trap_common
%endmacro

%assign v 0
%rep 48
        STUB    v
%assign v v + 1
%endrep

%macro SAVE 0
        push    ds
        push    es
        push    fs
        push    gs
        pushad
        cld
%endmacro

; The running task, and loading GS, by a register, for that and for C
; (kernel/x86/cpu.h). On one processor C knows the address.
%ifdef CONFIG_SMP
%define CPU_TASK gs:4
%macro LOAD_GS 1
        mov     %1, CPU_DATA
        mov     gs, %1
%endmacro
%else
%define CPU_TASK cpu_boot
%macro LOAD_GS 1
%endmacro
%endif

; After clac, which has to be found in each entry: the frame, in EAX.
%macro ENTER 0
        SAVE
        mov     eax, KERNEL_DATA
        mov     ds, eax
        mov     es, eax
        LOAD_GS eax
        mov     eax, esp
%endmacro

trap_common:
        clac                            ; a program may have set EFLAGS.AC
        ENTER
        call    trap_dispatch
.done:  test    al, al                  ; from ring 3?
        jz      restore
        cli                             ; a page fault's handler enabled them
        jmp     to_user

%ifdef CONFIG_SMP
; Messages of other processors: ipi.c.
trap_shootdown:
        push    dword 0
        push    dword TRAP_SHOOTDOWN
        jmp     message
trap_call:
        push    dword 0
        push    dword TRAP_CALL
        jmp     message
trap_resched:
        push    dword 0
        push    dword TRAP_RESCHED
message:
        clac
        ENTER
        call    ipi_interrupt
        jmp     trap_common.done
%endif

; int 0x80, interrupts still enabled: EAX is the number, EBX, ECX and EDX are
; the arguments. EBP is 0, so that a backtrace ends here.
trap_syscall:
        clac
        push    dword 0
        push    dword SYSCALL_VECTOR
        SAVE
        mov     esi, KERNEL_DATA
        mov     ds, esi
        mov     es, esi
        LOAD_GS esi
        xor     ebp, ebp
        cmp     eax, [syscall_limit]
        jae     no_call
        mov     esi, eax
        mov     eax, ebx
        xchg    ecx, edx                ; regparm: EAX, EDX, ECX
        call    [syscall_table + esi * 4]
.result:
        mov     [esp + FRAME_EAX], eax
        cli                             ; goes on to to_user

; Returns to a program, interrupts disabled, after pending work of the task, if
; any (the first word of struct task).
to_user:
        mov     eax, [CPU_TASK]
        cmp     dword [eax], 0
        jne     first
restore:
        popad
        pop     gs
        pop     fs
        pop     es
        pop     ds
        add     esp, 8
        iretd
first:
        call    trap_handle_pending
        jmp     to_user

no_call:
        mov     eax, -ENOSYS
        jmp     trap_syscall.result

; void trap_return(struct trapframe *tf)
trap_return:
        cli
        mov     esp, eax
        jmp     to_user

; void trap_here(struct trapframe *tf): fills in the frame (EAX) as if the
; caller had trapped on its return.
trap_here:
        mov     [eax], edi
        mov     [eax + 4], esi
        mov     [eax + 8], ebp
        mov     [eax + 16], ebx
        mov     [eax + 20], edx
        mov     [eax + 24], ecx
        mov     [eax + 28], eax
        mov     ecx, gs                 ; (by way of a register: to memory
        mov     [eax + 32], ecx         ; only 16 bits would go)
        mov     ecx, fs
        mov     [eax + 36], ecx
        mov     ecx, es
        mov     [eax + 40], ecx
        mov     ecx, ds
        mov     [eax + 44], ecx
        mov     dword [eax + 48], TRAP_NONE
        mov     dword [eax + 52], 0
        mov     ecx, [esp]
        mov     [eax + 56], ecx
        mov     ecx, cs
        mov     [eax + 60], ecx
        pushfd
        pop     dword [eax + 64]
        lea     ecx, [esp + 4]
        mov     [eax + 68], ecx
        mov     ecx, ss
        mov     [eax + 72], ecx
        ret

; A task of its own, entered by a task gate with the error code on its stack.
; The interrupted state is in the other task state segment.
trap_double_fault:
        clts
        xor     ebp, ebp
        call    trap_double_fault_report
.halt:  hlt
        jmp     .halt

section .rodata
        align   4
trap_stubs:
%assign v 0
%rep 48
        dd      stub_ %+ v
%assign v v + 1
%endrep

; Where clac is: kernel/x86/protect.c replaces it if need be.
section smap_sites progbits alloc noexec nowrite align=4
        dd      trap_common, trap_syscall
%ifdef CONFIG_SMP
        dd      message
%endif

section .note.GNU-stack noalloc noexec nowrite progbits
