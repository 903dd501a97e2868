; What `help` says of the workshop's commands (kernel/shell/cmd_help.c).

section shell_help progbits alloc noexec nowrite align=1
incbin "tools/workshop/help.txt"
