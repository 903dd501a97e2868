"""A recorded run in both directions (tools/run/replay.py starts it).

QEMU counts the instructions that have been executed. GDB's own commands move:
`continue` and `step` as ever, `reverse-continue`, `reverse-step` and others
the other way. QEMU cannot go back once it has passed the end of the recording
and switched the machine off, so every command that goes forward first sets a
stop there.
"""

import contextlib
import os
import re
import signal
import threading

import gdb

import command
import target
from target import Fail

FORWARD = ("continue", "step", "next", "stepi", "nexti", "finish", "until",
           "advance")

_end = None      # the number of the last instruction; None: no recording
_start = 0
_qemu = None     # QEMU's process number
_patience = 0    # seconds of the watchdog (tools/run/watchdog.py) for a
                 # movement: QEMU may hang for ever when it goes back
_moving = False  # a command of ours moves, and has set its own stop


def end():
    """The last instruction of the recording."""
    if _end is None:
        raise Fail("this is no recording; `make record` makes one and `make "
                   "replay` opens it")
    return _end


def start():
    """kmain's first instruction; before it no address is valid."""
    end()
    return _start


def count():
    """The instructions executed up to here."""
    answer = gdb.execute("monitor info replay", to_string=True)
    found = re.search(r"instruction count = (\d+)", answer)
    if not found:
        raise Fail("QEMU does not replay: " + answer.strip())
    return int(found[1])


def _stop_at(number):
    gdb.execute(f"monitor replay_break {number}", to_string=True)


class _Before(gdb.Command):
    """Runs before each command that goes forward."""

    def __init__(self):
        super().__init__("slate-before-moving", gdb.COMMAND_OBSCURE)
        for name in FORWARD:
            gdb.execute(f"define hook-{name}\nslate-before-moving\nend")

    def invoke(self, argument, from_tty):
        # reverse-step is `step` with the direction changed.
        if _moving or "Reverse" in gdb.execute("show exec-direction",
                                               to_string=True):
            return
        if count() >= _end:
            raise gdb.GdbError(
                "The recording ends here. reverse-continue goes back to the "
                "breakpoint before, reverse-step a line back.")
        _stop_at(_end)


def _stopped(_event):
    """Prints a line if a movement reached either end of the recording."""
    at = None if _moving else count()
    if at == 0:
        print("This is the beginning of the recording: the BIOS.")
    elif at and at >= _end:
        print("This is the end of the recording.")


@contextlib.contextmanager
def _silence():
    """Within it the standard output is discarded: GDB's messages about stops
    are not output of a command, so to_string does not capture them."""
    gdb.flush(gdb.STDOUT)
    standard = os.dup(1)
    with open(os.devnull, "w", encoding="ascii") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        gdb.flush(gdb.STDOUT)
        os.dup2(standard, 1)
        os.close(standard)


WATCH = gdb.BP_WATCHPOINT, gdb.WP_WRITE


@contextlib.contextmanager
def stop_at(place, kind=(gdb.BP_HARDWARE_BREAKPOINT,)):
    """Within it a breakpoint, or a watchpoint, of the command is set."""
    stop = gdb.Breakpoint(place, *kind, internal=True)
    try:
        yield
    finally:
        stop.delete()


def quietly(line):
    """Runs a command that moves, without its output. Ends a QEMU that does not
    respond in time."""
    global _moving
    hung = threading.Event()

    def give_up():
        hung.set()
        os.kill(_qemu, signal.SIGKILL)

    watchdog = threading.Timer(_patience, give_up)
    watchdog.start()
    _moving = True
    try:
        with _silence():
            gdb.execute(line, from_tty=False, to_string=True)
    except gdb.error as e:
        if hung.is_set():
            raise Fail(f"{line}: watchdog: QEMU did not respond in {_patience} "
                       "s and was ended; `make replay` opens the recording "
                       "again") from e
        raise
    finally:
        watchdog.cancel()
        _moving = False
        target.forget()


def run_to_end():
    """Goes forward to the next breakpoint, or to the end of the recording; True
    if a breakpoint came first."""
    go(end())
    return count() < end()


def go(number):
    """Goes forward to instruction `number`, if no breakpoint comes before."""
    if count() < number:
        _stop_at(number)
        quietly("continue")


def back():
    """Goes to the latest stop before this moment; False if there is none."""
    quietly("reverse-continue")
    return count() != 0


def start_again():
    """Goes to the first instruction of the recording, past all stops."""
    while back():
        pass


def return_to(number):
    """Goes to instruction `number`, if the machine still runs."""
    if gdb.selected_inferior().pid == 0:
        return
    if count() > number:
        start_again()
    go(number)


class When(command.Command):
    """slate when
    The present moment of a recording: how many instructions were executed."""

    def run(self, argument):
        last = end()
        print(f"instruction {count()} of {last}")


def begin(stub, last, process, patience):
    """Attaches GDB to the replay at `stub` and goes to kmain. `last` is the
    number of the last instruction, `process` that of QEMU's process, which a
    movement of more than `patience` seconds ends."""
    global _end, _start, _qemu, _patience
    gdb.execute("set print inferior-events off")
    _qemu, _patience = process, patience
    quietly(f"target remote {stub}")
    _end = last
    main = gdb.Breakpoint("kmain", type=gdb.BP_HARDWARE_BREAKPOINT,
                          internal=True, temporary=True)
    run_to_end()
    if main.is_valid():
        main.delete()
    _start = count()
    _Before()
    gdb.events.stop.connect(_stopped)


def greet():
    gdb.execute("frame")
    print(f"A recording of {_end} instructions; this is number {count()}.\n"
          "continue, step and next go on; reverse-continue, reverse-step, "
          "reverse-next\nand reverse-finish go back; `slate culprit` finds the "
          "code that damaged the heap.")
