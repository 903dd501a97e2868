"""Recorded runs of Slate, in GDB forwards and backwards.

    python3 -m tools.run.replay record KERNEL               make record
    python3 -m tools.run.replay open KERNEL [-- GDB'S ...]  make replay
    python3 -m tools.run.replay culprit KERNEL              make culprit

record boots the kernel and records the run in the folder `record` beside it.
With CMD the run executes these commands and ends: by power off, by a panic, or
after BUDGET milliseconds of guest time (60000). Without CMD you type; the keys
are recorded, and Ctrl-A X ends the run. MEM and APPEND are as with `make run`,
but MEM is 16 by default: snapshots of a small machine are quick.

open opens the recording in GDB, at kmain. culprit does both, and lets GDB find
the code that damaged the heap (`slate culprit`).
"""

import argparse
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tools.run import debug, qemu, records, terminal, watchdog

BUDGET = 60_000


def folder_of(kernel):
    return Path(kernel).resolve().parent / "record"


def setting(name, default):
    """A number from the environment."""
    text = os.environ.get(name) or str(default)
    if not re.fullmatch(r"[1-9][0-9]*", text):
        raise records.ReplayError(f"{name}={text} is not a number, as in "
                                 f"{name}={default}")
    return text


# ---- record ----------------------------------------------------------------

def kernel_line(commands):
    """The kernel's options; commands end with `poweroff`."""
    append = os.environ.get("APPEND", "")
    if not commands:
        return qemu.kernel_line("", append)
    budget = setting("BUDGET", BUDGET)
    return qemu.kernel_line(f"{commands}; poweroff", append, budget)


def run(made, typing):
    """Runs QEMU until it ends or the user leaves; shows and saves its output.
    The output goes to a file: a full pipe would delay the serial port, and
    QEMU does not log such a delay."""
    keys, typed = os.pipe()
    line = ["-chardev", "stdio,id=line,signal=off"]
    with open(made.file("serial"), "w+b") as said, \
            records.Control(made.recording("chardev:line"), line, keys, said,
                           # A session of its own: ^C must not reach QEMU.
                           start_new_session=True) as control:
        os.close(keys)
        control.qmp.execute("cont")
        with open(made.file("serial"), "rb") as shown:
            left = not terminal.attend(shown, made.file("events"),
                                       typed if typing else None,
                                       control.running)
        if left:
            control.quit()
        status, made.about["ended"] = control.wait()
        os.close(typed)
        if status != 0:
            raise records.ReplayError(f"QEMU ended with status {status}: "
                                     f"{control.said()}")


def record(kernel, folder):
    """Makes a recording and prints its length."""
    commands = os.environ.get("CMD", "")
    made = records.start(folder, kernel, kernel_line(commands),
                        setting("MEM", 16))
    if not commands:
        print("Recording. Ctrl-A X leaves.", flush=True)
    run(made, typing=not commands)
    records.finish(made)
    if records.faulted(made):
        print("\nTriple fault. `continue` in the replay stops at the "
              "instruction.")
    print(f"\nrecorded: {made.about['end']} instructions, in {made.folder}; "
          "`make replay` opens it", flush=True)
    return made


# ---- replay ----------------------------------------------------------------

def gdb_command(recording, stub, process, arguments):
    about = recording.about
    return [debug.find_gdb(), "-nx", "-q", "-x", str(debug.SETTINGS),
            about["kernel"], "-ex", "python import reverse; reverse.begin("
            f"{stub!r}, {about['end']}, {process}, {watchdog.SECONDS})",
            *arguments]


def open_recording(kernel, folder, arguments, **options):
    """Runs GDB on a QEMU that replays. Returns GDB's exit status."""
    recording = records.Recording(folder).load(kernel)
    with debug.socket_folder() as own:
        stub = f"{own}/gdb"
        said = recording.file("replayed")
        with records.Control(
                recording.replaying(own, f"file:{said}"),
                ["-gdb", "chardev:gdb", "-chardev", "socket,id=gdb,path="
                 f"{qemu.option(stub)},server=on,wait=off"],
                start_new_session=True) as control:
            gdb = gdb_command(recording, stub, control.process.pid, arguments)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            status = subprocess.run(
                gdb, check=False,
                preexec_fn=lambda: signal.signal(signal.SIGINT,
                                                 signal.SIG_DFL),
                **options).returncode
            if not control.running() and control.said():
                print(f"QEMU ended by itself: {control.said()}", flush=True)
            return status


def culprit(kernel, folder):
    """Records, and finds the code that damaged the heap."""
    if not os.environ.get("CMD"):
        raise records.ReplayError('wants CMD="…": commands that damage the '
                                 'heap, as in make culprit CMD="bug list"')
    record(kernel, folder)
    return open_recording(
        kernel, folder, ["-batch", "-ex", "slate culprit"],
        stdin=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", help="of the recording, instead of "
                        "`record` beside the kernel")
    parser.add_argument("what", choices=["record", "open", "culprit"])
    parser.add_argument("kernel")
    parser.add_argument("arguments", nargs="*", help="for gdb, after --")
    args = parser.parse_args()
    qemu.leave_in_order()
    if qemu.processors():
        sys.exit(f"make {args.what}: QEMU records one processor, no CPUS")
    name = {"open": "replay"}.get(args.what, args.what)
    folder = args.folder or folder_of(args.kernel)
    try:
        if args.what == "record":
            record(args.kernel, folder)
        elif args.what == "open":
            sys.exit(open_recording(
                args.kernel, folder, ["-ex", "python reverse.greet()",
                                      *args.arguments]))
        else:
            sys.exit(culprit(args.kernel, folder))
    except records.ReplayError as e:
        sys.exit(f"make {name}: {e}")


if __name__ == "__main__":
    main()
