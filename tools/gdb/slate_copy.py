"""A copy of the machine, for reports that the machine cannot run: a core has no
processor, a recording must not change, a machine that has ended does not run,
and a processor in `hlt` waits for an interrupt.

    core, recording, machine                another QEMU
      memory, registers  ── saved ──>  the same kernel, booted up to its shell;
                                       then this memory and these registers
                                         a GDB of its own: slate COMMAND

The kernel is at the same addresses in every run, and so are its page directory
and segments: the copy's processor can stay as it is.
"""

import tempfile
from pathlib import Path

import gdb

import target
from target import PAGE_SHIFT, WORD_MASK, Fail, constant, integer, register
from tools.run import qemu
from tools.run.gdb import GdbError, Session

REGISTERS = "eax", "ecx", "edx", "ebx", "esi", "edi", "ebp", "esp"


def save(path):
    """Writes the machine's memory to a file; returns its size in MiB."""
    size, base = integer("page_count") << PAGE_SHIFT, constant("KERNEL_BASE")
    if not 0 < size <= WORD_MASK - base:
        raise Fail("the kernel has no heap yet, or this is the memory of "
                   f"another kernel than {target.kernel().filename}")
    if gdb.selected_inferior().connection.type != "core":
        gdb.execute(f'monitor pmemsave 0 {size:#x} "{path}"', to_string=True)
    else:
        with open(path, "wb") as file:
            for address, data in target.present(base, base + size):
                file.seek(address - base)
                file.write(data)
    return -(-size >> 20)


def registers():
    """The commands that set the registers; a core may have none."""
    return [f"set var ${name} = {register(name)}" for name in REGISTERS] \
        if gdb.selected_thread() else []


def report(line):
    """The text of a report, and its status."""
    command = f"slate {line}"
    with tempfile.TemporaryDirectory(prefix="slate-") as folder:
        memory, ram = Path(folder, "memory"), Path(folder, "ram")
        size = save(memory)
        ram.touch()
        steps = [f"python open({str(ram)!r}, 'r+b').write("
                 f"open({str(memory)!r}, 'rb').read())",
                 *registers(), command, "output $_exitcode",
                 "slate echo here"]
        try:
            said = Session(target.kernel().filename, "", [("shell_run", steps)],
                           str(size), extra=qemu.memory_file(ram, size)).said[0]
        except GdbError as e:
            raise Fail("the copy of the machine did not start: "
                       f"{str(e).splitlines()[0]}") from e
    text = said[command].removeprefix("error: slate: ")
    if said["slate echo here"] != "here\n":
        raise Fail("this is the memory of another kernel than "
                   f"{target.kernel().filename}")
    if text != said[command]:
        raise Fail(text.rstrip())
    return text, int(said["output $_exitcode"])
