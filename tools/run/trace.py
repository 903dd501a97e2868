"""Records traces of the allocator's requests: `make trace CMD="run kenbus"`.

    python3 -m tools.run.trace build/slate-trace.elf build/replay/pack FOLDER

Boots the kernel that records (tools/workshop/trace/) on this terminal, with
CMD, APPEND, MEM, CPUS, DISK and KVM from the environment as `make run`, and

    TRACE_NAME=busy   the trace's name, FOLDER/busy.ktr (trace)
    BUFFER=64         MiB for what is recorded, besides MEM: 50,000 events each

With CMD the trace has a mark at the end of boot and one at the end; the run is
counted, so that a second one gives the same bytes, unless there is a disk or
KVM=1. Without CMD you type the commands, and `trace save NAME`.

The machine's memory is a file. When the machine has ended, the program pack
takes out of it the traces that were saved, and writes one file for each.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.run import elf, qemu, run

KERNEL_BASE = 0xc0000000
LINE_MAX = 256     # of the kernel shell
BUFFER_MAX = 1024  # MiB, of tools/workshop/trace/recorder.c


def number(name, default, most):
    """A number of MiB in the environment."""
    value = os.environ.get(name) or default
    if not re.fullmatch("[1-9][0-9]{0,4}", value) or int(value) > most:
        sys.exit(f"make trace: {name}={value} is not a number of MiB up to "
                 f"{most}, as in {name}={default}")
    return int(value)


def line_of(commands, name):
    """What the kernel shell runs: the commands, and those that save."""
    if not re.fullmatch("[A-Za-z0-9_-]{1,31}", name):
        sys.exit(f"make trace: NAME={name} is not a name of up to 31 letters, "
                 "digits, - and _")
    if not commands:
        return ""
    line = (f"trace mark; {commands}; trace mark; trace save {name}; "
            "poweroff")
    if len(line) > LINE_MAX:
        sys.exit("make trace: CMD is too long for the kernel's shell by "
                 f"{len(line) - LINE_MAX}")
    return line


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("pack", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    wishes = run.Wishes("make trace")
    name = os.environ.get("TRACE_NAME") or "trace"
    line = line_of(os.environ.get("CMD", "").strip(" ;"), name)
    buffer = number("BUFFER", "64", BUFFER_MAX)
    memory = number("MEM", "128", 2048) + buffer
    append = f"{wishes.append} trace={buffer}".strip()
    if line or not sys.stdin.isatty():
        append = qemu.panic_ends(append)
    kvm = run.switch("KVM")
    qemu.leave_in_order()
    with tempfile.TemporaryDirectory(prefix="slate-") as folder:
        ram, events = Path(folder, "ram"), f"{folder}/events"
        ram.touch()
        argv = qemu.command(
            qemu.boot_arguments(args.kernel, qemu.kernel_line(line, append)),
            memory, bool(line) and not (wishes.disks or kvm), kvm,
            serial="mon:stdio", events=events,
            extra=qemu.BARE + qemu.processors() + qemu.EXIT_PORT +
            wishes.disk_arguments + qemu.memory_file(ram, memory))
        status = run.boot(argv, events)
        args.folder.mkdir(parents=True, exist_ok=True)
        address = elf.Elf(args.kernel).symbols["recording"] - KERNEL_BASE
        packed = subprocess.run([args.pack, ram, hex(address), args.folder],
                                check=False)
    sys.exit(status or packed.returncode)


if __name__ == "__main__":
    main()
