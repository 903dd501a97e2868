"""Runs commands and saves the machine's memory: `make core`.

    python3 -m tools.run.core build/slate.elf build/slate.core

Boots like `make run`, with CMD, APPEND, MEM and ICOUNT from the environment,
and prints the kernel's output. Writes the memory to the file when

    the commands have ended and the shell prompts,
    the kernel has panicked and its shell prompts,
    the machine is switched off or resets (also by a triple fault), or
    you press Ctrl-C.

Then the machine ends. `make gdb CORE=build/slate.core` opens the file.
"""

import argparse
import json
import os
import re
import sys

from tools.run import corefile, qemu

PROMPT = r"(?:\A|\n)slate> \Z"
PANIC = r"(?:\A|\n)slate!> \Z"


def switch(name):
    """An on/off setting from the environment."""
    return os.environ.get(name, "") not in ("", "0")


class Run:
    """A machine and its output so far."""

    def __init__(self, machine, commands):
        self.machine = machine
        self.commands = commands
        self.printed = 0

    def show(self):
        """Prints new output of the serial line."""
        text = self.machine.buffer[self.printed:]
        self.printed = len(self.machine.buffer)
        sys.stdout.write(qemu.plain(text))
        sys.stdout.flush()

    def at_prompt(self):
        """Why the kernel prompts, or None. The first prompt only echoes
        the commands; at the next one they have ended."""
        text = qemu.plain(self.machine.buffer)
        if re.search(PANIC, text):
            return "the kernel has panicked"
        if self.commands:
            line = text.find("slate> " + self.commands[:40])
            end = text.find("\n", line)
            if line < 0 or end < 0:
                return None
            text = text[end:]
        return "the kernel is at its prompt" if re.search(PROMPT, text) \
            else None

    def end(self):
        """Runs until there is a reason to stop; returns the reason."""
        while True:
            if self.machine.receive(0.1):
                self.show()
                reason = self.at_prompt()
                if reason:
                    return reason
                continue
            event = self.machine.qmp.event()
            if event and event["event"] == "SHUTDOWN":
                return f"the machine has ended: {event['data']['reason']}"


def run(kernel, path):
    """Boots, waits, saves the memory; prints the reason."""
    commands = os.environ.get("CMD", "")
    line = qemu.kernel_line(commands, os.environ.get("APPEND", ""))
    memory = os.environ.get("MEM") or "128"
    with qemu.Machine(kernel, line, memory, switch("ICOUNT"),
                      leave=["-no-shutdown"]) as machine:
        print("Ctrl-C ends the run and keeps the memory as it is then.")
        state = Run(machine, commands)
        try:
            reason = state.end()
        except KeyboardInterrupt:
            reason = "Ctrl-C"
        machine.qmp.execute("stop")
        corefile.dump(machine.qmp, path)
    size = os.path.getsize(path) >> 20
    print(f"\n{reason}; its memory is in {path}, {size} MiB. To look at it:\n"
          f"  make gdb CORE={path}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("core", help="the file to write")
    args = parser.parse_args()
    memory = os.environ.get("MEM") or "128"
    if not memory.rstrip("MG").isdigit():
        sys.exit(f"make core: MEM={memory} is not a number of MiB, as in "
                 "MEM=16")
    try:
        run(args.kernel, args.core)
    except (qemu.QemuError, OSError, json.JSONDecodeError) as e:
        sys.exit(f"make core: {e}")


if __name__ == "__main__":
    main()
