; The first code at its linked address: entry.asm jumps here once paging is on,
; with the boot loader's EAX and EBX in ESI and EBX. (A separate file, because
; debuggers expect the code of a file to be contiguous.)

extern kmain
extern boot_stack_top

; The first task's registers, for messages that the kernel sends for it
; (struct trapframe in kernel/x86/trap.h, rounded up).
FRAME   equ     80

section .text

global boot_high
boot_high:
        mov     esp, boot_stack_top - FRAME
        xor     ebp, ebp        ; a backtrace ends here
        mov     eax, esi        ; kmain(magic, info), arguments in registers
        mov     edx, ebx
        call    kmain
        ud2                     ; it does not return

section .note.GNU-stack noalloc noexec nowrite progbits
