; From the boot loader's jump to kmain (Multiboot Specification 0.6.96, 3.1
; and 3.2; Intel SDM volume 3, 4.3 for 4 MiB pages).
;
; The loader starts the kernel in 32-bit protected mode without paging, with its
; magic number in EAX and the physical address of its information in EBX. The
; code in .boot is linked where it runs, at 1 MiB; all else 3 GiB higher:
;
;     virtual 0x00000000  the first 4 MiB, until the jump is done
;     virtual 0xC0000000  physical 0 … 896 MiB, in 4 MiB pages
;
; kernel/x86/paging.c replaces this by page tables of 4 KiB.

KERNEL_BASE  equ 0xC0000000
DIRECT_MAP   equ 896 << 20
LARGE_PAGE   equ 4 << 20

HDR_MAGIC    equ 0x1BADB002
HDR_ALIGN    equ 1 << 0         ; modules on page boundaries
HDR_MEMINFO  equ 1 << 1         ; a memory map is needed
HDR_FLAGS    equ HDR_ALIGN | HDR_MEMINFO

PDE_PRESENT  equ 1 << 0
PDE_WRITE    equ 1 << 1
PDE_LARGE    equ 1 << 7
PDE_FLAGS    equ PDE_PRESENT | PDE_WRITE | PDE_LARGE

CR4_PSE      equ 1 << 4
CR0_EM       equ 1 << 2               ; no floating point, so tasks need not
                                        ; save its registers
CR0_WP       equ 1 << 16
CR0_PG       equ 1 << 31

PAGE         equ 4096
%ifndef STACK_PAGES
STACK_PAGES  equ 4
%endif

extern boot_high
extern processor_check
extern wire_interrupts

section .boot progbits alloc exec nowrite align=4

        dd HDR_MAGIC
        dd HDR_FLAGS
        dd -(HDR_MAGIC + HDR_FLAGS)

global _start
_start:
        mov     esi, eax
        mov     esp, boot_stack_top - KERNEL_BASE
        cld                             ; Multiboot says nothing of DF
        call    processor_check
        rdtsc
        mov     [boot_tsc - KERNEL_BASE], eax
        mov     [boot_tsc - KERNEL_BASE + 4], edx
        call    wire_interrupts

        mov     edi, boot_directory - KERNEL_BASE
        mov     dword [edi], PDE_FLAGS
        mov     eax, PDE_FLAGS
        add     edi, KERNEL_BASE / LARGE_PAGE * 4
fill:
        mov     [edi], eax
        add     edi, 4
        add     eax, LARGE_PAGE
        cmp     eax, DIRECT_MAP
        jb      fill

        mov     eax, cr4
        or      eax, CR4_PSE
        mov     cr4, eax
        mov     eax, boot_directory - KERNEL_BASE
        mov     cr3, eax
        mov     eax, cr0
        or      eax, CR0_PG | CR0_WP | CR0_EM
        mov     cr0, eax
        mov     eax, boot_high
        jmp     eax

section .bss align=PAGE

; For the calls of a debugger: kernel/shell/report.c.
global report_stack_bottom, report_stack_top
report_stack_bottom:
        resb    STACK_PAGES * PAGE
report_stack_top:

; The guard page below the stack: paging.c unmaps it.
global boot_stack_guard, boot_stack_bottom, boot_stack_top
boot_stack_guard:
        resb    PAGE
boot_stack_bottom:
        resb    STACK_PAGES * PAGE
boot_stack_top:

global boot_directory          ; boot/ap.asm uses it again
boot_directory:
        resb    PAGE

global boot_tsc
boot_tsc:                       ; the time-stamp counter at _start
        resq    1

section .note.GNU-stack noalloc noexec nowrite progbits
