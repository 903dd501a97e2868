; Switching from one kernel stack to another.
;
; The stack of a task that does not run holds the registers that C preserves,
; and the address at which the task continues:
;
;     task_esp -> | edi | esi | ebx | ebp | eip | ...
;
; A new task's eip is switch_begin, with the function to call in EBX and its
; argument in ESI.

        global  switch_stack
        global  switch_begin

section .text

; void switch_stack(uint32_t *save, uint32_t load)
switch_stack:
        push    ebp
        push    ebx
        push    esi
        push    edi
        mov     [eax], esp
        mov     esp, edx
        pop     edi
        pop     esi
        pop     ebx
        pop     ebp
        ret

switch_begin:
        xor     ebp, ebp                ; a backtrace ends here
        mov     eax, esi
        call    ebx
        ud2                             ; it does not return

section .note.GNU-stack noalloc noexec nowrite progbits
