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

ESCAPE = b"\x01"  # Ctrl-A

PROMPT = b"slate> "

# Keys pass through QEMU's log. They are lost if the serial port, which buffers
# 16 bytes, has no room when they arrive.
AT_ONCE = 8

LOOK_EVERY = 0.02  # seconds
SILENCE = 2        # seconds without output: the commands have ended


class Keys:
    """The standard input, if `wanted`. In a `with` statement a terminal
    delivers single keys."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.sources = [sys.stdin] if wanted else []
        self.terminal = wanted and os.isatty(0)
        self.escaped = False
        self.pending = b""  # for the machine
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
        os.write(typed, keys.pending[:AT_ONCE])
        keys.pending = keys.pending[AT_ONCE:]
    return keys.leaving and not keys.pending


class Screen:
    """Copies the machine's output to the standard output."""

    def __init__(self, said):
        self.said = said
        self.tail = b""
        self.prompted = False
        self.changed = time.monotonic()

    def update(self):
        data = self.said.read()
        if data:
            self.changed = time.monotonic()
        self.tail = self.tail[-len(PROMPT):] + data
        self.prompted = self.prompted or PROMPT in self.tail
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def silent(self):
        return time.monotonic() - self.changed > SILENCE


def attend(said, typed, running):
    """Copies the growing file `said` to the standard output, and, after the
    first prompt, the standard input to the pipe `typed` (None: no input).
    Returns True if the machine ended (`running()` is false), and False if the
    user left: by Ctrl-A X, by ^C where the machine does not get it, or at the
    end of an input that is no terminal.
    """
    screen = Screen(said)
    try:
        with Keys(typed is not None) as keys:
            while running():
                screen.update()
                if not keys.wanted or not screen.prompted:
                    time.sleep(LOOK_EVERY)
                elif _type(keys, typed):
                    return False
                if keys.exhausted() and screen.silent():
                    return False
    except KeyboardInterrupt:
        return False
    finally:
        screen.update()
    return True
