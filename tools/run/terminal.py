"""The terminal of a machine that is being recorded.

QEMU can connect its own terminal to the serial line, but if the monitor shares
that terminal, QEMU does not log the keys. So this module copies the bytes: the
machine's output comes from a file, keys go into a pipe, and Ctrl-A X is handled
here.
"""

import os
import select
import sys
import termios
import time
import tty

from tools.run import qemu

ESCAPE = b"\x01"  # Ctrl-A

# Keys pass through QEMU's log. They are lost if the serial port, which buffers
# 16 bytes, has no room when they arrive.
AT_ONCE = 8

LOOK_EVERY = 0.02  # seconds


class Keys:
    """The standard input, if `wanted`. In a `with` statement a terminal
    delivers single keys."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.sources = [sys.stdin] if wanted else []
        self.terminal = wanted and os.isatty(0)
        self.escaped = False
        self.pending = b""  # for the machine
        self.typed = 0      # bytes that it has got
        self.leaving = False

    def __enter__(self):
        if self.terminal:
            self.before = termios.tcgetattr(0)
            tty.setraw(0)
        return self

    def __exit__(self, *_):
        if self.terminal:
            termios.tcsetattr(0, termios.TCSADRAIN, self.before)

    def exhausted(self):
        return self.wanted and not self.sources and not self.pending

    def translate(self, data):
        """The part of `data` for the machine, and whether the user leaves."""
        out = b""
        for byte in (bytes([b]) for b in data):
            if self.escaped and byte in b"xX":
                return out, True
            if byte == ESCAPE and not self.escaped:
                self.escaped = True
                continue
            self.escaped = False
            out += byte
        return out, False


def _type(keys, typed):
    """Passes keys on to the machine. Returns True when the user leaves and all
    earlier keys have been passed on."""
    sources = [] if keys.pending or keys.leaving else keys.sources
    if select.select(sources, [], [], LOOK_EVERY)[0]:
        data = os.read(0, 1024)
        if not data:
            keys.sources = []  # end of file
        wanted, keys.leaving = keys.translate(data)
        keys.pending += wanted
    if keys.pending:
        keys.typed += os.write(typed, keys.pending[:AT_ONCE])
        keys.pending = keys.pending[AT_ONCE:]
    return keys.leaving and not keys.pending


def _show(said):
    """Copies new output of the machine to the standard output."""
    sys.stdout.buffer.write(said.read())
    sys.stdout.buffer.flush()


def attend(said, events, typed, running):
    """Copies the growing file `said` to the standard output, and, after the
    first prompt, the standard input to the pipe `typed` (None: no input).
    `events` is the path of the kernel's records. Returns True if the machine
    ended (`running()` is false), and False if the user left: by Ctrl-A X, by ^C
    where the machine does not get it, or at the end of an input that is no
    terminal, when the kernel waits for more.
    """
    waits, prompted = qemu.Waits(events), False
    try:
        with Keys(typed is not None) as keys:
            while running():
                _show(said)
                prompted = prompted or waits.last(0)
                if not keys.wanted or not prompted:
                    time.sleep(LOOK_EVERY)
                elif _type(keys, typed):
                    return False
                if keys.exhausted() and waits.last(keys.typed):
                    return False
    except KeyboardInterrupt:
        return False
    finally:
        _show(said)
    return True
