; The first code that runs where it is linked: entry.asm jumps here once paging
; is on, with the boot loader's EAX and EBX in ESI and EBX. (A file of its own,
; since debuggers want the code of a file in one piece.)

extern kmain
extern boot_stack_top

; The first task's registers, when the kernel itself sends a message for it
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
