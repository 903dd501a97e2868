"""Runs commands and saves the machine's memory, or its screen.

    python3 -m tools.run.core build/slate.elf build/slate.core  `make core`
    python3 -m tools.run.core --screen build/slate.elf build/slate.png
                                                          `make screenshot`

Boots like `make run`, with CMD, APPEND, MEM, DISK, ICOUNT and CPUS from the
environment, and prints the kernel's output. Writes the file when

    the commands have ended and the shell prompts,
    the kernel has panicked and its shell prompts,
    the machine is switched off or resets (also by a triple fault), or
    you press Ctrl-C.

Then the machine ends. `make gdb CORE=build/slate.core` opens the memory; the
screen is a PNG.
"""

import argparse
import json
import os
import re
import struct
import sys
import zlib
from pathlib import Path

from tools.run import corefile, qemu, run


def run_on(machine):
    """Prints the kernel's output until there is a reason to stop, and returns
    that."""
    while True:
        more = machine.receive(0.1)
        if more:
            sys.stdout.write(qemu.plain(machine.buffer))
            sys.stdout.flush()
            machine.buffer = ""
        if machine.waiting("shell"):
            panics = machine.events("panic")
            return "the kernel has panicked" if panics else \
                "the kernel is at its prompt"
        event = None if more else machine.qmp.event()
        if event and event["event"] == "SHUTDOWN":
            return f"the machine has ended: {event['data']['reason']}"


def save_memory(machine, path):
    corefile.dump(machine.qmp, path)
    print(f"its memory is in {path}, {os.path.getsize(path) >> 20} MiB. To "
          f"look at it:\n  make gdb CORE={path}")


def png(ppm):
    """A picture as PNG, which QEMU writes only since version 7.1."""
    head = re.match(rb"P6\s+(\d+)\s+(\d+)\s+255\s", ppm)
    width, height = map(int, head.groups())
    rows = (ppm[head.end() + 3 * width * y:][:3 * width] for y in range(height))
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
             (b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))),
             (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data +
        struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts)


def save_screen(machine, path):
    shot = f"{machine.folder}/screen"
    machine.qmp.execute("screendump", filename=shot)
    Path(path).write_bytes(png(Path(shot).read_bytes()))
    print(f"its screen is in {path}")


def save(kernel, path, screen, wishes):
    """Boots, waits, prints the reason for the end, saves the file."""
    line = qemu.kernel_line(os.environ.get("CMD", ""), wishes.append)
    with qemu.Machine(kernel, line, wishes.memory, wishes.counted,
                      disks=wishes.disks, extra=qemu.processors(),
                      leave=["-no-shutdown"], screen=screen) as machine:
        print("Ctrl-C ends the run and keeps what there is then.")
        try:
            reason = run_on(machine)
        except KeyboardInterrupt:
            reason = "Ctrl-C"
        machine.qmp.execute("stop")
        print(f"\n{reason}; ", end="")
        (save_screen if screen else save_memory)(machine, path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--screen", action="store_true",
                        help="save the screen instead of the memory")
    parser.add_argument("kernel")
    parser.add_argument("file", help="the file to write")
    args = parser.parse_args()
    target = "make screenshot" if args.screen else "make core"
    wishes = run.Wishes(target)
    try:
        save(args.kernel, args.file, args.screen, wishes)
    except (qemu.QemuError, OSError, json.JSONDecodeError) as e:
        sys.exit(f"{target}: {e}")


if __name__ == "__main__":
    main()
