; The texts of `help` (kernel/shell/cmd_help.c).

section shell_help progbits alloc noexec nowrite align=1
incbin "kernel/shell/help.txt"
incbin "kernel/shell/paper.txt"
