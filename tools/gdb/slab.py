"""`slab`: the heap's commands for GDB, in the words of the kernel shell.

Every command of the shell that looks at the heap is a subcommand here, with
the same columns and the same numbers, and some that only a debugger can have.

    slab_heap.py     the heap as data: caches, slabs, buffers, pages
    slab_stat.py     kmastat cache hash frag ws buddyinfo pages ...
"""

import gdb

import common


class Slab(gdb.Command):
    """The slab allocator, in the words of the kernel shell.
Usage: slab COMMAND
`slab` alone lists the commands, `help slab COMMAND` explains one.
Example: slab kmastat"""

    def __init__(self):
        super().__init__("slab", gdb.COMMAND_DATA, prefix=True)

    def invoke(self, argument, from_tty):
        if argument:
            raise gdb.GdbError(f"slab: there is no '{argument.split()[0]}'; "
                               "`slab` lists the commands")
        for command in common.Command.instances:
            if command.name.startswith("slab "):
                line = f"{command.name} {command.usage}".strip()
                print(f"{line}\n        {command.summary}")


Slab()

import slab_stat  # noqa: E402,F401
import slab_cache  # noqa: E402,F401
import slab_verify  # noqa: E402,F401
import slab_slabs  # noqa: E402,F401
import slab_whatis  # noqa: E402,F401
import slab_pages  # noqa: E402,F401
import slab_walk  # noqa: E402,F401
import slab_marks  # noqa: E402,F401
import slab_frag  # noqa: E402,F401
import slab_layout  # noqa: E402,F401
import slab_refs  # noqa: E402,F401
import slab_print  # noqa: E402,F401
import slab_break  # noqa: E402,F401
import slab_users  # noqa: E402,F401
import slab_log  # noqa: E402,F401
import slab_debug  # noqa: E402,F401
import slab_selftest  # noqa: E402,F401
