"""A recorded run in both directions (tools/run/replay.py starts it).

QEMU knows where it stands by the number of instructions that have been
executed. GDB's own commands do the travelling: `continue` and `step` as ever,
`reverse-continue`, `reverse-step`, `reverse-next`, `reverse-finish` the other
way. What is here keeps them from running over the end of the recording, where
QEMU's machine is switched off and cannot go back any more: every command that
goes forward is preceded by a stop that is set there.

    begin()     attaches to a replay and goes to kmain
    count()     the instructions executed up to here
    end()       where the recording ends
    greet()     says so
    go(n)       forward to the instruction with this number
    back()      to the latest stop before this moment
    `slate when`   prints the first two
"""

import contextlib
import os
import re
import signal
import threading

import gdb

import common

FORWARD = ("continue", "step", "next", "stepi", "nexti", "finish", "until",
           "advance")

_end = None  # the number of the last instruction; None: no recording
_start = 0   # the number of kmain's first

# Seconds that one movement of a command may take. QEMU may hang for ever when
# it goes back; it is ended then.
PATIENCE = 90

_qemu = None  # its process number

_moving = False  # a command of ours moves, and knows where to stop


def end():
    """Where the recording ends. Fails if this is no recording."""
    if _end is None:
        raise common.Fail("this is no recording; `make record` makes one and "
                          "`make replay` opens it")
    return _end


def start():
    """The first instruction of the kernel's C code: before it paging is off,
    and nothing is where its address says."""
    end()
    return _start


def count():
    """Instructions executed since the machine was switched on."""
    answer = gdb.execute("monitor info replay", to_string=True)
    found = re.search(r"instruction count = (\d+)", answer)
    if not found:
        raise common.Fail("QEMU does not replay: " + answer.strip())
    return int(found.group(1))


def _stop_at(number):
    gdb.execute(f"monitor replay_break {number}", to_string=True)


class _Before(gdb.Command):
    """What is done before each command that goes forward."""

    def __init__(self):
        super().__init__("slate-before-moving", gdb.COMMAND_OBSCURE)

    def invoke(self, argument, from_tty):
        if _moving or _backwards():
            return
        if count() >= _end:
            raise gdb.GdbError(
                "The recording ends here. reverse-continue goes back to the "
                "breakpoint before, reverse-step a line back.")
        _stop_at(_end)


def _stopped(_event):
    """Says so when a movement came to an end of the recording. (What follows a
    command cannot: GDB takes the next one while the machine still runs.)"""
    if _moving:
        return
    at = count()
    if at >= _end:
        print("This is the end of the recording.")
    elif at == 0:
        print("This is the beginning of the recording: the BIOS.")


def _backwards():
    """reverse-step is `step` with the direction changed."""
    return "Reverse" in gdb.execute("show exec-direction", to_string=True)


def _install_hooks():
    _Before()
    for name in FORWARD:
        gdb.execute(f"define hook-{name}\nslate-before-moving\nend")
    gdb.events.stop.connect(_stopped)


# ---- for commands ----------------------------------------------------------

@contextlib.contextmanager
def _silence():
    """What GDB says about stops does not come back as a command's output, so
    the standard output itself goes nowhere for a while."""
    gdb.flush(gdb.STDOUT)
    standard = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    try:
        yield
    finally:
        gdb.flush(gdb.STDOUT)
        os.dup2(standard, 1)
        os.close(standard)


@contextlib.contextmanager
def alone():
    """While a command looks for something, the user's stops are not met."""
    others = [b for b in gdb.breakpoints() if b.enabled]
    for stop in others:
        stop.enabled = False
    try:
        yield
    finally:
        for stop in others:
            if stop.is_valid():
                stop.enabled = True


def quietly(command):
    """Runs a command that moves; only what went wrong is of interest. A QEMU
    that does not come back is ended."""
    global _moving
    hung = threading.Event()

    def give_up():
        hung.set()
        os.kill(_qemu, signal.SIGKILL)

    watchdog = threading.Timer(PATIENCE, give_up)
    watchdog.start()
    _moving = True
    try:
        with _silence():
            gdb.execute(command, from_tty=False, to_string=True)
    except gdb.error as e:
        if hung.is_set():
            raise common.Fail(f"{command}: QEMU did not answer in {PATIENCE} s "
                              "and was ended; `make replay` opens the "
                              "recording again") from e
        raise
    finally:
        watchdog.cancel()
        _moving = False
        common.forget()


def run_to_end():
    """Forward to the next breakpoint, or to the end of the recording; True if
    a breakpoint came first."""
    if count() >= end():
        return False
    _stop_at(end())
    quietly("continue")
    return count() < end()


def go(number):
    """Forward to instruction `number`, if nothing stops before."""
    if count() < number:
        _stop_at(number)
        quietly("continue")


def back():
    """To the latest stop before this moment; False if there is none."""
    quietly("reverse-continue")
    return count() != 0


def start_again():
    """To the first instruction of the recording, past all stops."""
    while back():
        pass


def alive():
    """Whether there still is a machine."""
    return gdb.selected_inferior().pid != 0


def return_to(number):
    """To instruction `number`, wherever that is from here."""
    if count() > number:
        start_again()
    go(number)


# ---- commands --------------------------------------------------------------

class When(common.Command):
    name = "slate when"
    summary = "Where this recording stands, in instructions executed"
    details = """
A recorded run has a moment for every instruction. The number is the same every
time that the recording is opened."""
    example = "slate when"

    def run(self, args):
        print(f"instruction {count()} of {end()}")


def begin(stub, last, process):
    """Attaches GDB to the replay at `stub`, whose last instruction is number
    `last` and which QEMU's `process` plays, and goes to kmain."""
    global _end, _start, _qemu
    gdb.execute("python import travel")
    gdb.execute("set print inferior-events off")
    _qemu = process
    quietly(f"target remote {stub}")
    _end = last
    main = gdb.Breakpoint("kmain", type=gdb.BP_HARDWARE_BREAKPOINT,
                          internal=True, temporary=True)
    run_to_end()
    if main.is_valid():
        main.delete()
    _start = count()
    _install_hooks()
    When()


def greet():
    """Says where this is, and what can be done."""
    gdb.execute("frame")
    print(f"A recording of {_end} instructions; this is number {count()}.\n"
          "continue, step and next go on; reverse-continue, reverse-step, "
          "reverse-next\nand reverse-finish go back; `slab culprit` finds who "
          "damaged the heap.")
