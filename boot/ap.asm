; The first code of a further processor (Intel SDM volume 3, 8.4 and 9.9), for
; SMP=1. kernel/x86/mp.c copies it to AP_PAGE and fills in ap_words. The
; processor starts there in real mode with CS = AP_PAGE / 16 and IP = 0, and
; continues in the kernel at a frame of switch_prepare (kernel/x86/switch.h).
;
; The directory of boot maps both this page and the kernel.

AP_PAGE         equ 0x8000              ; as in mp.c
KERNEL_BASE     equ 0xC0000000
CR0_PE          equ 1 << 0
CODE            equ 8
DATA            equ 16

        extern  boot_directory
        global  ap_start, ap_words, ap_end

%define AT(label) (AP_PAGE + label - ap_start)

section .rodata
        align   8
        bits    16
ap_start:
        cli
        mov     ax, cs
        mov     ds, ax
        o32 lgdt [table - ap_start]
        mov     eax, cr0
        or      eax, CR0_PE
        mov     cr0, eax
        jmp     dword CODE:AT(protected)

        bits    32
protected:
        mov     eax, DATA
        mov     ds, eax
        mov     es, eax
        mov     ss, eax
        mov     eax, [AT(ap_words)]
        mov     cr4, eax
        mov     eax, boot_directory - KERNEL_BASE
        mov     cr3, eax
        mov     eax, [AT(ap_words) + 4]
        mov     cr0, eax
        mov     esp, [AT(ap_words) + 8]
        pop     edi
        pop     esi
        pop     ebx
        pop     ebp
        ret

        align   8
segments:                               ; none, flat code, flat data
        dq      0, 0x00CF9A000000FFFF, 0x00CF92000000FFFF
table:
        dw      $ - segments - 1
        dd      AT(segments)
        align   4
ap_words:                               ; CR4, CR0, the frame
        dd      0, 0, 0
ap_end:

section .note.GNU-stack noalloc noexec nowrite progbits
