; What `help` says of the workshop's commands (kernel/shell/text.h).

section shell_help progbits alloc noexec nowrite align=1
incbin "tools/workshop/help.txt"
