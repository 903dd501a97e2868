; The start of a program.
;
; The stack after exec, from ESP up, as in the i386 System V ABI:
;
;     argc | argv[0] … argv[argc - 1] | NULL | envp[0] … | NULL | the strings
;
; start() in start.c takes their addresses in registers, as all C functions
; of Slate take their first three arguments: EAX, EDX, ECX.

        bits 32
        extern start
        global _start

        section .text._start progbits alloc exec nowrite align=16
_start:
        xor     ebp, ebp                ; no caller: a backtrace ends here
        mov     eax, [esp]
        lea     edx, [esp + 4]
        lea     ecx, [edx + eax * 4 + 4]
        and     esp, -16
        call    start                   ; does not return
