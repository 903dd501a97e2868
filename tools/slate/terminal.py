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
import tty

ESCAPE = b"\x01"  # Ctrl-A

LOOK_EVERY = 0.02  # seconds


class Keys:
    """The standard input, key by key while in use in a `with` statement."""

    def __init__(self):
        self.terminal = os.isatty(0)
        self.escaped = False

    def __enter__(self):
        if self.terminal:
            self.before = termios.tcgetattr(0)
            tty.setraw(0)
        return self

    def __exit__(self, *_):
        if self.terminal:
            termios.tcsetattr(0, termios.TCSADRAIN, self.before)

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


def _show(shown):
    """Prints what has been added to the file."""
    data = shown.read()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _type(keys, typed):
    """Passes on what was typed. Returns whether to leave, and whether more can
    come."""
    data = os.read(0, 1024)
    wanted, leave = keys.translate(data)
    if wanted:
        os.write(typed, wanted)
    return leave, bool(data)


def attend(shown, typed, running):
    """Shows what is added to the file `shown`, and types what comes from the
    standard input into the pipe `typed`, None for nothing. Returns True if the
    machine ended, which `running()` says, and False if the user left: by
    Ctrl-A X, or by ^C where that is not typed into the machine."""
    sources = [] if typed is None else [sys.stdin]
    try:
        with Keys() if sources else open(os.devnull) as keys:
            while running():
                if select.select(sources, [], [], LOOK_EVERY)[0]:
                    leave, more = _type(keys, typed)
                    if leave:
                        return False
                    if not more:
                        sources = []
                _show(shown)
    except KeyboardInterrupt:
        return False
    finally:
        _show(shown)
    return True
