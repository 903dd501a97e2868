"""Recorded runs of Slate, which replay forwards and backwards.

QEMU logs each input of the machine (clock, keys, interrupts) with the number of
the instruction at which it arrived. From the log and a snapshot of the first
state QEMU repeats the run, instruction by instruction. To go back it loads a
snapshot and replays up to a little earlier (docs/replay.md).

A Recording is a folder:

    log           the inputs
    disk          an empty qcow2 image that holds the snapshots
    about.json    digests of kernel and archive, the kernel's options, the
                  memory, the number of the last instruction
    serial        output of the serial line
    events        output of port 0xE9

start() makes one, finish() completes it after the run; load() checks one, and
replaying() is QEMU's command line that replays it.
"""

import hashlib
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from tools.run import qemu, watchdog

# One instruction is 128 ns of guest time, which keeps recordings of interactive
# runs short. The device vapic patches the guest's code: with it QEMU hangs when
# it loads a snapshot.
COUNTING = "shift=7"
FIXED = ["-global", "apic-common.vapic=off", "-rtc", "base=2020-01-01,clock=vm",
         "-nodefaults", "-vga", "std"]

# Snapshots: the first just before the BIOS starts the kernel, then one after
# each SNAPSHOT_EVERY instructions. At ENOUGH snapshots every second one is
# deleted and the distance doubled.
BIOS_INSTRUCTIONS = 6_000_000
SNAPSHOT_EVERY = 500_000
ENOUGH = 24

# A recording ends at least this many instructions before the last one: QEMU
# stops some time after the guest is switched off (on a busy host after tens of
# thousands of instructions), and the log records that moment at the last input
# before it.
LAST_STEPS = 256


class ReplayError(Exception):
    """An error in one line."""


def make_disk(path, size=1 << 30):
    """An empty image in QEMU's format qcow2, version 3, for snapshots: header,
    table of reference counts, its one block, and the table of clusters, each
    in a cluster of 64 KiB. (docs/interop/qcow2.txt of QEMU.)"""
    cluster = 1 << 16
    header = struct.pack(
        ">4sIQIIQIIQQIIQQQQII", b"QFI\xfb", 3, 0, 0, 16, size, 0,
        -(-size >> 29), 3 * cluster, cluster, 1, 0, 0, 0, 0, 0, 4, 104)
    with open(path, "wb") as f:
        f.write(header)
        f.seek(cluster)
        f.write(struct.pack(">Q", 2 * cluster))
        f.seek(2 * cluster)
        f.write(struct.pack(">4H", 1, 1, 1, 1))
        f.truncate(4 * cluster)


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def qemu_version():
    """The first line of `qemu --version`. Only the same version can replay a
    log."""
    try:
        done = subprocess.run([qemu.QEMU, "--version"], check=False,
                              encoding="utf-8",
                              capture_output=True)
    except FileNotFoundError as e:
        raise ReplayError(f"{qemu.QEMU} not found: run tools/setup") from e
    return done.stdout.partition("\n")[0]


class Control:
    """A QEMU process with its QMP socket."""

    def __init__(self, argv, extra=(), keys=None, said=None, **options):
        """`keys` and `said` are for QEMU's standard input and output."""
        ours, theirs = socket.socketpair()
        wire = theirs.fileno()
        self.errors = tempfile.TemporaryFile()
        self.qmp = None
        self.process = subprocess.Popen(
            list(argv) + ["-chardev", f"socket,id=qmp,fd={wire}", "-mon",
                          "chardev=qmp,mode=control", *extra],
            pass_fds=(wire,), stdin=keys or subprocess.DEVNULL,
            stdout=said or self.errors, stderr=self.errors, **options)
        theirs.close()
        try:
            self.qmp = qemu.Qmp(ours)
        except qemu.QemuError as e:
            said = self.said()
            self.end()
            raise ReplayError(f"QEMU did not start: {said or e}") from e

    def said(self):
        """The output of QEMU itself, in one line."""
        self.errors.seek(0)
        return " ".join(self.errors.read().decode(errors="replace").split())

    def running(self):
        return self.process.poll() is None

    def wait(self):
        """Waits for the end. Returns the status and QEMU's reason for the
        guest's shutdown, or None."""
        status = self.process.wait(timeout=watchdog.SECONDS)
        why = None
        while event := self.qmp.event(wait=True):
            if event["event"] == "SHUTDOWN":
                why = why or event["data"]["reason"]
        return status, why

    def quit(self):
        """Asks QEMU to end, so that it completes its files."""
        try:
            self.qmp.execute("quit")
        except qemu.QemuError:
            pass  # it has ended already

    def end(self):
        if self.running():
            self.process.kill()
        self.process.wait()
        if self.qmp:
            self.qmp.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.errors.close()


class Recording:
    """A recorded run in `folder`."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.about = {}

    def file(self, name):
        return self.folder / name

    # -- QEMU's command line

    def _arguments(self, mode, disk, serial, events, snapshot="first"):
        """The kernel's path must not change: the guest sees it."""
        about = self.about
        argv = qemu.command(
            qemu.boot_arguments(about["kernel"], about["line"],
                                about["initrd"]),
            about["memory"], serial=serial, events=events)
        return argv + FIXED + [
            "-icount", f"{COUNTING},rr={mode},rrfile="
            f"{qemu.option(self.file('log'))},rrsnapshot={snapshot}",
            "-drive", f"file={qemu.option(disk)},if=none,id=snapshots"]

    def recording(self, serial):
        """QEMU's command line to record, halted at first: a short run could end
        before QMP is connected."""
        return self._arguments("record", self.file("disk"), serial,
                               self.file("events")) + ["-S"]

    def replaying(self, folder, serial):
        """QEMU's command line to replay, halted at first, with a copy of the
        disk in `folder`. At a shutdown the guest only halts."""
        shutil.copy(self.file("disk"), f"{folder}/disk")
        return self.going_on(folder, serial, "first")

    def going_on(self, folder, serial, snapshot):
        """The command line to replay the files in `folder` from a snapshot."""
        return self._arguments("replay", f"{folder}/disk", serial,
                               f"{folder}/events", snapshot) + \
            ["-no-shutdown", "-S"]

    # -- about.json

    def save(self):
        self.file("about.json").write_text(json.dumps(self.about, indent=1)
                                           + "\n", encoding="utf-8")

    def load(self, kernel=None):
        """Reads about.json and checks that the recording can be replayed, with
        `kernel` if given. Raises ReplayError."""
        try:
            self.about = json.loads(self.file("about.json").read_text("utf-8"))
        except FileNotFoundError as e:
            raise ReplayError(f"there is no recording in {self.folder}: "
                              "make record") from e
        except ValueError as e:
            raise ReplayError(f"{self.file('about.json')} is damaged: "
                              "make record") from e
        missing = {"kernel", "kernel_digest", "initrd", "initrd_digest",
                   "line", "memory", "qemu", "end"} - set(self.about)
        if missing:
            raise ReplayError(f"{self.file('about.json')} lacks "
                              f"{', '.join(sorted(missing))}: make record")
        for name in ("log", "disk"):
            if not self.file(name).exists():
                raise ReplayError(f"{self.file(name)} is missing: make record")
        self._same_as_recorded(kernel)
        return self

    def _same_as_recorded(self, kernel):
        for what, path in (("kernel", kernel or self.about["kernel"]),
                           ("initrd", self.about["initrd"])):
            if not path:
                continue
            if not os.path.exists(path):
                raise ReplayError(f"{path} of this recording is missing")
            if digest(path) != self.about[f"{what}_digest"]:
                raise ReplayError(
                    f"{path} has changed since the recording: make record "
                    "again")
        version = qemu_version()
        if version != self.about["qemu"]:
            raise ReplayError(f"recorded by {self.about['qemu']}, and this is "
                              f"{version}: make record again")


# ---- recording -------------------------------------------------------------

FILES = ("log", "disk", "about.json", "serial", "events")


def start(folder, kernel, line="", memory="16", initrd=None):
    """A new Recording in `folder`, which replaces an older one."""
    kernel = Path(kernel).resolve()
    if initrd is None:
        initrd = str(qemu.initrd_of(kernel))
    made = Recording(folder)
    made.about = {
        "kernel": str(kernel), "kernel_digest": digest(kernel),
        "initrd": initrd, "initrd_digest": digest(initrd) if initrd else "",
        "line": line, "memory": str(memory), "qemu": qemu_version()}
    made.folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        made.file(name).unlink(missing_ok=True)
    make_disk(made.file("disk"))
    return made


def _play_on(control, count):
    """Replays up to instruction `count`. Returns the instruction reached, and
    whether the guest was switched off before it."""
    control.qmp.execute("replay-break", icount=count)
    control.qmp.execute("cont")
    seen = set()
    while "STOP" not in seen:
        event = control.qmp.event(wait=True)
        if event is None:
            raise qemu.QemuError("QEMU did not reach that instruction")
        seen.add(event["event"])
    at = control.qmp.execute("query-replay")["icount"]
    state = control.qmp.execute("query-status")["status"]
    while event := control.qmp.event():
        seen.add(event["event"])
    return at, state != "paused" or "SHUTDOWN" in seen


def _monitor(control, command):
    """Runs a command of QEMU's monitor, which prints nothing on success."""
    said = control.qmp.execute("human-monitor-command",
                               **{"command-line": command})
    if said.strip():
        raise ReplayError(f"QEMU: {command}: {said.strip()}")


def _survey(control):
    """Replays to the end and saves snapshots on the way. Returns the number of
    the last instruction, and that of the last snapshot (0: only the first)."""
    step, kept = SNAPSHOT_EVERY, []
    at, ended = _play_on(control, BIOS_INSTRUCTIONS)
    while not ended:
        _monitor(control, f"savevm at-{at}")
        kept.append(at)
        if len(kept) == ENOUGH:
            for number in kept[1::2]:
                _monitor(control, f"delvm at-{number}")
            kept, step = kept[::2], 2 * step
        at, ended = _play_on(control, at + step)
    return at, kept[-1] if kept else 0


def last_stop(made, folder, at, kept):
    """The last instruction at which every replay can stop, within LAST_STEPS,
    if one replay reached number `at` before the shutdown. `kept` is the last
    snapshot in `folder`."""
    back = LAST_STEPS
    start = f"at-{kept}" if kept else "first"
    while at - back > kept:
        with Control(made.going_on(folder, "null", start),
                     ["-monitor", "none"]) as control:
            goal, ended = _play_on(control, at - back)
            if not ended and back == LAST_STEPS:
                return goal
            while not ended:
                last = goal
                goal, ended = _play_on(control, goal + LAST_STEPS)
                if ended:
                    return last
        back *= 4
    return kept


def faulted(made):
    """Whether the run ended with a triple fault, a reset without the kernel's
    event. Such a machine halts at once."""
    asked = any(e.get("event") == "reset"
                for e in qemu.read_events(made.file("events")))
    return made.about.get("ended") == "guest-reset" and not asked


def finish(made):
    """Replays the recording once, to find its end, to compare its output and to
    save snapshots for going back, and saves it. Raises ReplayError."""
    folder = tempfile.mkdtemp(prefix="slate-")
    start_time = time.monotonic()
    try:
        with Control(made.replaying(folder, f"file:{folder}/serial"),
                     ["-monitor", "none"]) as control:
            try:
                end, kept = _survey(control)
            except qemu.QemuError as e:
                raise ReplayError("the recording cannot be played: "
                                  f"{control.said() or e}") from e
        recorded = made.file("serial").read_bytes()
        played = Path(f"{folder}/serial").read_bytes()
        if not recorded.startswith(played) or \
                len(recorded) - len(played) > LAST_STEPS:
            raise ReplayError("the recording plays differently: "
                              f"{len(played)} of {len(recorded)} bytes on the "
                              "serial line")
        try:
            end = end - 1 if faulted(made) else last_stop(made, folder, end,
                                                          kept)
        except (TimeoutError, qemu.QemuError) as e:
            raise ReplayError("the recording cannot be played from its last "
                              f"snapshot: {e}") from e
        made.about["end"] = end
        shutil.move(f"{folder}/disk", made.file("disk"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    made.about["seconds"] = round(time.monotonic() - start_time, 2)
    made.save()
