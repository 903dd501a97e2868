"""slate COMMAND: a report of the kernel's own shell, in a stopped machine.

The line is stored in the machine, and GDB calls report_run() (see
kernel/shell/report.h): on a stack of its own, with interrupts disabled, as
after a panic. Afterwards the registers, the kernel's static data and its
caches are as before: the machine continues as if there had been no report. So
a call can also be given up at any moment, where it would panic, or wait. Where
nothing can be called, a copy of the machine prints the report (slate_copy.py).
"""

import contextlib
import re

import gdb

import slate_copy
import slate_stack
import system
import target
from command import Slate, alone, evaluate
from target import Fail, constant, integer, layout, linker, variable

EFLAGS_VM, RESERVED = 1 << 17, 1 << 1

# A call is given up where the kernel would panic, is interrupted, switches to
# another task, or waits for a key.
ENDS = {"panic": "would panic", "panic_at": "would panic",
        "panic_trap": "would panic",
        "trap_dispatch": "would fault, or be interrupted",
        "switch_stack": "would wait", "console_getkey": "would wait for a key"}


def monitor(command):
    """What QEMU's monitor says; "" of another stub."""
    try:
        return gdb.execute(f"monitor {command}", to_string=True)
    except gdb.error:
        return ""


def is_halted():
    """Whether GDB's current processor waits in `hlt`. It continues only after
    an interrupt, and there are no interrupts during a report."""
    found = re.search(rf"CPU#{target.thread() - 1}\b.*?HLT=(\d)",
                      monitor("info registers -a"), re.S)
    return found is not None and found[1] == "1"


def can_call():
    """Whether the processor of this machine can run a report."""
    return gdb.selected_inferior().connection.type != "core" and \
        "Replaying" not in monitor("info replay") and \
        "shutdown" not in monitor("info status") and \
        not target.register("eflags") & EFLAGS_VM and not is_halted()


def write(address, data):
    gdb.selected_inferior().write_memory(address, data)


def set_registers(values):
    for name, value in values.items():
        if target.register(name) != value:
            gdb.execute(f"set var ${name} = {value}")


class Machine:
    """What is put back: the registers, and the memory that reports write: the
    kernel's static data, its caches, the data of page frames."""

    NAMES = ("cr2", "eflags", "cs", "ss", "ds", "es", "fs", "gs", "eax", "ecx",
             "edx", "ebx", "esp", "ebp", "esi", "edi", "eip")

    def __init__(self):
        static = linker("data_start"), linker("bss_end")
        frames = integer("page_array")
        if not frames:
            raise Fail("there are no page frames yet; let it run past "
                       "memmap_init")
        self.registers = {name: target.register(name) for name in self.NAMES}
        self.memory = [
            *target.present(*static),
            *target.present(frames, frames + integer("page_count") *
                            layout("page").size),
            *((c.address, c.data) for c in system.caches()
              if not static[0] <= c.address < static[1])]

    def put_back(self):
        set_registers(self.registers)
        for start, before in self.memory:
            after = target.read_run(start, len(before))
            for at in range(0, len(before), 256):
                if before[at:at + 256] != after[at:at + 256]:
                    write(start + at, before[at:at + 256])
        target.forget()


class Full(gdb.Breakpoint):
    """Where the kernel's text has no room for more."""

    def __init__(self, call):
        self.call = call
        super().__init__("*report_full", internal=True)

    def stop(self):
        self.call.take_text()
        return False


class End(gdb.Breakpoint):
    """Where the call is given up."""

    def __init__(self, call, name):
        self.call, self.name = call, name
        super().__init__(f"*{name}", internal=True)
        self.silent = True

    def stop(self):
        self.call.ended = ENDS[self.name]
        return True


class Call:
    """One call of the kernel."""

    def __init__(self, line):
        self.report = target.record_of("report")
        self.text, self.ended = b"", None
        self.machine = Machine()
        self.store(line)

    def store(self, line):
        """The line, and registers that are not put on the kernel's stack."""
        most = self.report.layout.members["report_line"][1].sizeof - 1
        write(self.report.where("report_line"),
              line.encode("latin-1", "replace")[:most] + b"\0")
        for name in ("esp", "eax", "ecx", "edx"):
            write(self.report.where(f"report_{name}"),
                  self.machine.registers[name].to_bytes(4, "little"))

    def take_text(self):
        length = int(variable("report")["report_length"])
        self.text += target.read_run(self.report.where("report_text"), length)

    def run(self):
        """The status of the command; None if it was given up."""
        data = constant("GDT_KERNEL_DATA")
        set_registers({"eflags": RESERVED, "cs": constant("GDT_KERNEL_CODE"),
                       "ss": data, "ds": data, "es": data,
                       "esp": linker("report_stack_top")})
        if target.symbol("spin_wait"):  # the kernel is for several processors
            set_registers({"gs": constant("GDT_CPU")})
        try:
            return int(gdb.parse_and_eval("report_run()"))
        except (gdb.error, KeyboardInterrupt) as e:
            self.ended = self.ended or f"was interrupted: {e}"
            return None
        finally:
            self.take_text()


@contextlib.contextmanager
def around(call):
    """Within it the call can end, and only this processor runs; then all is put
    back."""
    locking = gdb.parameter("scheduler-locking")
    level = gdb.selected_frame().level()
    gdb.newest_frame().select()  # registers are set in the innermost frame
    entered = slate_stack.unwinder.entered
    own = [Full(call), *(End(call, name) for name in ENDS)]
    gdb.execute("set scheduler-locking on")
    try:
        yield
    finally:
        gdb.execute(f"set scheduler-locking {locking}")
        for b in own:
            b.delete()
        call.machine.put_back()
        slate_stack.enter(entered)
        gdb.execute(f"frame level {level}", to_string=True)


def evaluated(word):
    """The value of an expression that begins with $, as the kernel reads it."""
    value = evaluate(word[0])
    if value is None:
        raise Fail(f"'{word[0]}' has no value")
    return f"0x{value:x}"


def called(line):
    """The text of a report of this machine, and its status."""
    call = Call(line)
    with alone(), around(call):
        status = call.run()
    text = call.text.decode("latin-1")
    if call.ended:
        print(text, end="")
        raise Fail(f"given up where it {call.ended}; the machine is as before")
    return text, status


def report(line):
    """A report of the kernel's own shell: `slate help` lists them"""
    target.need_target()
    line = re.sub(r"(?<!\S)\$\S+", evaluated, line)
    text, status = called(line) if can_call() else slate_copy.report(line)
    print(text, end="")
    gdb.set_convenience_variable("_exitcode", status)


Slate.report = staticmethod(report)
