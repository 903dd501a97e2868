"""The terminal in front of a machine that is being recorded.

QEMU can put its own terminal on the serial line, but what is typed there is
not in its log of the run if its monitor shares the terminal. So the bytes are
carried here: what the machine says comes out of a file, what is typed goes into
a pipe, and Ctrl-A X is ours.
"""

import os
import select
import sys
import termios
import time
import tty

ESCAPE = b"\x01"  # Ctrl-A

PROMPT = b"slate> "

# What is typed into a recorded machine goes through QEMU's log, and is lost if
# the serial port has no room for it by then: it has 16 bytes.
AT_ONCE = 8

LOOK_EVERY = 0.02  # seconds
SILENCE = 2        # seconds: what was to be done is done


class Keys:
    """The standard input, if it is `wanted`: key by key while in use in a
    `with` statement."""

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
        """What of `data` is for the machine, and whether it says to leave."""
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
    """Passes on what has been typed, if anything. True: somebody leaves, and
    all that was typed before has been passed on."""
    sources = [] if keys.pending or keys.leaving else keys.sources
    if select.select(sources, [], [], LOOK_EVERY)[0]:
        data = os.read(0, 1024)
        if not data:
            keys.sources = []  # that was all
        wanted, keys.leaving = keys.translate(data)
        keys.pending += wanted
    if keys.pending:
        os.write(typed, keys.pending[:AT_ONCE])
        keys.pending = keys.pending[AT_ONCE:]
    return keys.leaving and not keys.pending


class Screen:
    """The standard output, which what the machine says is copied to."""

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
    """Shows what is added to the file `said`, and types what comes from the
    standard input into the pipe `typed`, None for nothing; not before the
    machine is there to read it. Returns True if the machine ended, which
    `running()` says, and False if it was left: by Ctrl-A X; by ^C where that is
    not typed into the machine; after the last of what was not typed by hand.
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
