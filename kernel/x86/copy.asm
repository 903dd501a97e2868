; Copying where either side may be a program's memory. After a page fault in
; these instructions that cannot be resolved, kernel/vm/fault.c continues at
; copy_fault. Only here may ring 0 use the pages of programs.

        global  copy_bytes
        global  copy_zero
        global  copy_string
        global  copy_begin
        global  copy_end
        global  copy_fault

section .text

copy_begin:

; int copy_bytes(void *dst, const void *src, size_t n): 0 or -EFAULT
copy_bytes:
        push    esi
        push    edi
        stac
        mov     edi, eax
        mov     esi, edx
        cmp     ecx, 16
        jb      .bytes
        mov     edx, ecx
        shr     ecx, 2
        rep movsd
        mov     ecx, edx
        and     ecx, 3
.bytes:
        rep movsb
        xor     eax, eax
.clac:  clac
        pop     edi
        pop     esi
        ret

; int copy_zero(void *dst, size_t n)
copy_zero:
        push    esi
        push    edi
        stac
        mov     edi, eax
        mov     ecx, edx
        xor     eax, eax
        shr     ecx, 2
        rep stosd
        mov     ecx, edx
        and     ecx, 3
        rep stosb
.clac:  clac
        pop     edi
        pop     esi
        ret

; int copy_string(char *dst, const char *src, size_t max): the length without
; the NUL, max if there is none among the first max bytes.
copy_string:
        push    esi
        push    edi
        stac
        mov     edi, eax
        mov     esi, edx
        mov     edx, ecx
.next:
        jecxz   .done
        lodsb
        stosb
        dec     ecx
        test    al, al
        jnz     .next
        inc     ecx                     ; the NUL does not count
.done:
        mov     eax, edx
        sub     eax, ecx
.clac:  clac
        pop     edi
        pop     esi
        ret

copy_end:

; EAX: the function's result.
copy_fault:
        clac
        pop     edi
        pop     esi
        ret

; Where stac and clac are: kernel/x86/protect.c replaces them if need be. Each
; stac is after two pushes of one byte. (With a label there, GDB would call the
; rest of the function by it.)
PUSHES  equ     2

section smap_sites progbits alloc noexec nowrite align=4
        dd      copy_bytes + PUSHES, copy_bytes.clac
        dd      copy_zero + PUSHES, copy_zero.clac
        dd      copy_string + PUSHES, copy_string.clac
        dd      copy_fault

section .note.GNU-stack noalloc noexec nowrite progbits
