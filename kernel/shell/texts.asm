; Texts of the shell that are files (kernel/shell/text.h).

section shell_help progbits alloc noexec nowrite align=1
incbin "kernel/shell/help.txt"

section shell_paper progbits alloc noexec nowrite align=1
incbin "kernel/shell/paper.txt"
