"""Boots Slate in QEMU on this terminal: `make run`, `make run-iso`.

    python3 -m tools.run.run build/slate.elf
    python3 -m tools.run.run --iso build/slate.iso

Reads from the environment:

    CMD="kmastat; poweroff"   commands for the kernel shell
    MEM=16                    memory in MiB (128)
    ICOUNT=1                  one instruction per nanosecond: repeatable runs
    APPEND="kmem.debug=F"     further kernel options
    CPUS=4                    processors (1)
    KVM=1                     use /dev/kvm
    DISK=build/disk.img       an IDE disk, which `sh` mounts on /disk; two,
                              separated by a colon
    SERIAL2=pty               the second serial line: pty for a terminal of its
                              own, or any argument of QEMU's -serial (null)

The serial line is this terminal. In a terminal and without CMD, the kernel
gets the option terminal=both: colours, and a page at a time. Without a
terminal, or if CMD ends with poweroff, it gets panic=exit: a panic ends the
run, with a status that is not 0. An ISO gets no options but those of its menu.
If there is a display, a window opens too.
Ctrl-A X leaves QEMU; Ctrl-A C switches to QEMU's monitor.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile

from tools.run import qemu


def has_display():
    """Whether QEMU can open a window: there is a display, and QEMU was built
    with a user interface for it."""
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
            or sys.platform == "darwin"):
        return False
    try:
        kinds = subprocess.run([qemu.QEMU, "-display", "help"], check=False,
                               capture_output=True,
                               encoding="utf-8").stdout.split()
    except FileNotFoundError:
        return False
    return bool({"gtk", "sdl", "cocoa"} & set(kinds))


def switch(name):
    """An on/off setting from the environment."""
    return os.environ.get(name, "") not in ("", "0")


class Wishes:
    """The machine that the environment describes. `who` is the make target, for
    messages."""

    def __init__(self, who):
        self.append = os.environ.get("APPEND", "")
        self.memory = os.environ.get("MEM") or "128"
        self.counted = switch("ICOUNT")
        if not self.memory.rstrip("MG").isdigit():
            sys.exit(f"{who}: MEM={self.memory} is not a number of MiB, as in "
                     "MEM=16")
        if not self.memory.endswith("G") and int(self.memory.rstrip("M")) < 2:
            sys.exit(f"{who}: MEM={self.memory} is too little to start a "
                     "kernel; MEM=16 is enough")
        self.disks = [name for name in os.environ.get("DISK", "").split(":")
                      if name]
        if self.disks and self.counted:
            sys.exit(f"{who}: a run with a disk cannot be counted; ICOUNT=1 or "
                     "DISK, not both")
        try:
            self.disk_arguments = qemu.disk_arguments(self.disks)
        except qemu.DiskMissing as e:
            sys.exit(f"{who}: DISK: {e}")
        if self.disks and "start=" not in self.append:
            self.append = f"{self.append} start=ext2".strip()


def boot_once(argv, events):
    """Runs QEMU to its end. Returns its exit status, and "reset" if the kernel
    reset the machine, "triple fault" if the processor did, else None."""
    ours, theirs = socket.socketpair()
    wire = theirs.fileno()
    control = ["-chardev", f"socket,id=qmp,fd={wire}", "-mon",
               "chardev=qmp,mode=control"]
    ours.sendall(b'{"execute": "qmp_capabilities"}')
    try:
        qemu_process = subprocess.Popen(argv + control, pass_fds=(wire,))
    except FileNotFoundError:
        sys.exit(f"make run: {argv[0]} not found: run tools/setup")
    theirs.close()
    try:
        status = qemu_process.wait()
    finally:
        qemu_process.kill()
    ours.setblocking(False)
    try:
        said = ours.recv(1 << 20).decode(errors="replace")
    except OSError:
        said = ""
    if '"guest-reset"' not in said:
        return status, None
    wanted = any(e.get("event") == "reset" for e in qemu.read_events(events))
    return status, "reset" if wanted else "triple fault"


def boot(argv, events):
    """Boots until the machine is switched off. A reset by the kernel boots
    again; a triple fault ends the run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        status, reset = boot_once(argv, events)
        if reset == "triple fault":
            print("\nTriple fault: the processor reset itself. Step to the "
                  "instruction with `make gdb`.", file=sys.stderr)
            return 1
        if not reset:
            return status
        os.unlink(events)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--iso", action="store_true",
                        help="the image is a CD; CMD, APPEND and DISK cannot "
                             "be used")
    parser.add_argument("image", help="a multiboot kernel, or an ISO image")
    args = parser.parse_args()

    commands = os.environ.get("CMD", "")
    if args.iso and any(map(os.environ.get, ("CMD", "APPEND", "DISK"))):
        sys.exit("make run-iso: the ISO's boot menu sets the command line; "
                 "use make run for CMD, APPEND and DISK")
    wishes = Wishes("make run")
    append = wishes.append
    if switch("KVM") and not os.access("/dev/kvm", os.R_OK | os.W_OK):
        sys.exit("make run: KVM=1 needs read and write access to /dev/kvm")
    attended = sys.stdin.isatty() and sys.stdout.isatty()
    if not (args.iso or commands) and "terminal=" not in append and attended:
        append = f"{append} terminal=both".strip()
    if not attended or commands.split(";")[-1].strip() == "poweroff":
        append = qemu.panic_ends(append)
    line = qemu.kernel_line(commands, append)
    qemu.leave_in_order()
    with tempfile.TemporaryDirectory(prefix="slate-") as folder:
        events = f"{folder}/events"
        argv = qemu.command(qemu.boot_arguments(args.image, line),
                            wishes.memory, wishes.counted, switch("KVM"),
                            has_display(), serial="mon:stdio", events=events,
                            extra=qemu.processors() + qemu.EXIT_PORT +
                            wishes.disk_arguments)
        print("Ctrl-A X leaves QEMU.", flush=True)
        # The second serial line is that of drivers/servers/uart.c.
        sys.exit(boot([*argv, "-serial", os.environ.get("SERIAL2") or "null"],
                      events))


if __name__ == "__main__":
    main()
