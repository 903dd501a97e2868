; The 48 ways into the kernel: a stub for each exception and interrupt line.
;
; Some exceptions push an error code and others do not; the stubs even that out,
; add the vector, and save the registers as struct trapframe lists them.

        extern  trap_dispatch
        extern  trap_double_fault_report
        global  trap_stubs
        global  trap_double_fault
        global  trap_here

KERNEL_DATA     equ 0x10
TRAP_NONE       equ 0xff                ; as in trap.h

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

trap_common:
        push    ds
        push    es
        push    fs
        push    gs
        pushad
        cld
        mov     eax, KERNEL_DATA
        mov     ds, eax
        mov     es, eax
        mov     eax, esp
        call    trap_dispatch
        popad
        pop     gs
        pop     fs
        pop     es
        pop     ds
        add     esp, 8
        iretd

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
; What it interrupted is in the other task state segment.
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

section .note.GNU-stack noalloc noexec nowrite progbits
