"""`slate`: the kernel's objects other than its heap, for GDB.

What the kernel shell tells of tasks, files and messages is a subcommand here,
with the same columns and numbers, and more that only a debugger can have.

    objects_model.py    the objects as data: tasks, handles, pipes, inodes ...
    objects_task.py     tasks files space
    objects_stack.py    bt enter, and GDB's own frames across interrupts
    objects_fs.py       pipes inodes mounts
    objects_ipc.py      ports ipc locks
    objects_servers.py  servers irqs
    objects_machine.py  pages syms dmesg
    objects_verify.py   verify
    objects_symbols.py  symbols: those of programs
    objects_print.py    pretty-printers, $task() $task_name() $pid()
"""

import gdb

import common


class Slate(gdb.Command):
    """The kernel's tasks, files, messages and memory.
Usage: slate COMMAND
`slate` alone lists the commands, `help slate COMMAND` explains one.
Example: slate tasks"""

    def __init__(self):
        super().__init__("slate", gdb.COMMAND_DATA, prefix=True)

    def invoke(self, argument, from_tty):
        if argument:
            raise gdb.GdbError(f"slate: there is no '{argument.split()[0]}'; "
                               "`slate` lists the commands")
        for command in sorted(common.Command.instances,
                              key=lambda c: c.name):
            if command.name.startswith("slate "):
                line = f"{command.name} {command.usage}".strip()
                print(f"{line}\n        {command.summary}")


Slate()

# Each file makes its commands as it is loaded.
import objects_task     # noqa: E402,F401
import objects_stack    # noqa: E402,F401
import objects_fs       # noqa: E402,F401
import objects_ipc      # noqa: E402,F401
import objects_servers  # noqa: E402,F401
import objects_machine  # noqa: E402,F401
import objects_verify   # noqa: E402,F401
import objects_symbols  # noqa: E402,F401
import objects_print    # noqa: E402,F401
