"""Runs of Slate that can be played again, forwards and backwards.

QEMU writes everything that came from outside into a log (the clock, the keys,
the moment of every interrupt) together with the number of the instruction that
it came at. With the log and a snapshot of the machine's first state it repeats
the run instruction for instruction; going back is loading a snapshot and
repeating up to a little earlier (docs/replay.md).

    record()    runs a kernel and keeps the run: a Recording, a folder with

        log           what came from outside
        disk          a qcow2 image without content that holds the snapshots
        about.json    what was recorded: digests of kernel and archive, the
                      kernel's options, memory, where it ends
        serial        what the serial line said
        events        what port 0xE9 said

    Recording   opens it: load() says what is wrong with it, replaying() is
                QEMU's command line for playing it
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

from tools.run import qemu

# One instruction is 128 ns of guest time: recordings of a real-time machine
# stay short. vapic is what keeps QEMU from hanging when it loads a snapshot:
# that device patches the guest's code and replays badly.
COUNTING = "shift=7"
FIXED = ["-global", "apic-common.vapic=off", "-rtc", "base=2020-01-01,clock=vm",
         "-nodefaults", "-vga", "std"]

# Snapshots: the first where the BIOS is about to start the kernel, then one
# every so many instructions. When there are ENOUGH, every other one goes, and
# the distance doubles.
BIOS_INSTRUCTIONS = 6_000_000
SNAPSHOT_EVERY = 500_000
ENOUGH = 24

# The end of a recording is at least so many instructions before the last one.
# QEMU does not stop at once when the guest is switched off, on a busy host only
# after tens of thousands; and in the log this stands where something came from
# outside for the last time before it.
LAST_STEPS = 256

# Seconds that a replay may be silent.
SILENCE = 120


class ReplayError(Exception):
    """One line for the user."""


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
    """The first line of `qemu --version`: logs are of one version only."""
    try:
        done = subprocess.run([qemu.QEMU, "--version"], check=False, text=True,
                              capture_output=True)
    except FileNotFoundError as e:
        raise ReplayError(f"{qemu.QEMU} not found: run tools/setup") from e
    return done.stdout.partition("\n")[0]


class Control:
    """QEMU with its QMP socket: started, asked, and ended."""

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
        """What QEMU itself printed, in one line."""
        self.errors.seek(0)
        return " ".join(self.errors.read().decode(errors="replace").split())

    def running(self):
        return self.process.poll() is None

    def wait(self):
        """Waits for the end. Returns the status, and why the guest was
        switched off, in QEMU's words; None if it was not."""
        status = self.process.wait(timeout=SILENCE)
        why = None
        while event := self.qmp.event(patience=SILENCE):
            if event["event"] == "SHUTDOWN":
                why = why or event["data"]["reason"]
        return status, why

    def quit(self):
        """Asks QEMU to end, so that it completes its files."""
        try:
            self.qmp.execute("quit")
        except qemu.QemuError:
            pass  # it was faster

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
        """The kernel's path is always the same one: the guest sees it."""
        about = self.about
        argv = qemu.command(
            qemu.boot_arguments(about["kernel"], about["line"],
                                about["initrd"]),
            about["memory"], serial=serial, events=events)
        return argv + FIXED + [
            "-icount", f"{COUNTING},rr={mode},rrfile={self.file('log')},"
            f"rrsnapshot={snapshot}", "-drive",
            f"file={disk},if=none,id=snapshots"]

    def recording(self, serial):
        """Records it, halted at first: a short run on a busy host could be over
        before anybody listens."""
        return self._arguments("record", self.file("disk"), serial,
                               self.file("events")) + ["-S"]

    def replaying(self, folder, serial):
        """Plays it, halted at first, with files of its own in `folder`. The
        guest's wish to be switched off only halts it."""
        shutil.copy(self.file("disk"), f"{folder}/disk")
        return self.going_on(folder, serial, "first")

    def going_on(self, folder, serial, snapshot):
        """The same again, with the files there, from one of its snapshots."""
        return self._arguments("replay", f"{folder}/disk", serial,
                               f"{folder}/events", snapshot) + \
            ["-no-shutdown", "-S"]

    # -- what is known about it

    def save(self):
        self.file("about.json").write_text(json.dumps(self.about, indent=1)
                                           + "\n")

    def load(self, kernel=None):
        """Reads what was recorded, and makes sure that it can be played: with
        `kernel`, if one is given. Raises ReplayError."""
        try:
            self.about = json.loads(self.file("about.json").read_text())
        except FileNotFoundError as e:
            raise ReplayError(f"there is no recording in {self.folder}: "
                              "make record") from e
        except ValueError as e:
            raise ReplayError(f"{self.file('about.json')} is damaged: "
                              "make record") from e
        missing = {"kernel", "kernel_digest", "initrd", "initrd_digest",
                   "line", "memory", "qemu", "end"} - set(self.about)
        if missing:
            raise ReplayError(f"{self.file('about.json')} says nothing about "
                              f"{', '.join(sorted(missing))}: make record")
        for name in ("log", "disk"):
            if not self.file(name).exists():
                raise ReplayError(f"{self.file(name)} is gone: make record")
        self._same_as_recorded(kernel)
        return self

    def _same_as_recorded(self, kernel):
        for what, path in (("kernel", kernel or self.about["kernel"]),
                           ("initrd", self.about["initrd"])):
            if not path:
                continue
            if not os.path.exists(path):
                raise ReplayError(f"{path} of this recording is gone")
            if digest(path) != self.about[f"{what}_digest"]:
                raise ReplayError(
                    f"{path} is not the one that was recorded: it was built "
                    "since; make record again")
        version = qemu_version()
        if version != self.about["qemu"]:
            raise ReplayError(f"recorded by {self.about['qemu']}, and this is "
                              f"{version}: make record again")


# ---- recording -------------------------------------------------------------

FILES = ("log", "disk", "about.json", "serial", "events")


def start(folder, kernel, line="", memory="16", initrd=None):
    """A Recording in `folder`, in place of the one there, with all that is
    known before it runs."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    kernel = Path(kernel).resolve()
    if initrd is None:
        initrd = str(qemu.initrd_of(kernel))
    made = Recording(folder)
    made.about = {
        "kernel": str(kernel), "kernel_digest": digest(kernel),
        "initrd": initrd, "initrd_digest": digest(initrd) if initrd else "",
        "line": line, "memory": str(memory), "qemu": qemu_version()}
    make_disk(made.file("disk"))
    return made


def _play_on(control, count):
    """Plays up to instruction `count`. Returns where it stands, and whether the
    guest was switched off before: it may have come this far all the same, and
    the next time not."""
    control.qmp.execute("replay-break", icount=count)
    control.qmp.execute("cont")
    seen = set()
    while "STOP" not in seen:
        event = control.qmp.event(patience=SILENCE)
        if event is None:
            raise qemu.QemuError("QEMU did not reach that instruction")
        seen.add(event["event"])
    at = control.qmp.execute("query-replay")["icount"]
    state = control.qmp.execute("query-status")["status"]
    while event := control.qmp.event():
        seen.add(event["event"])
    return at, state != "paused" or "SHUTDOWN" in seen


def _monitor(control, command):
    """A command of QEMU's own monitor, which is silent if all is well."""
    said = control.qmp.execute("human-monitor-command",
                               **{"command-line": command})
    if said.strip():
        raise ReplayError(f"QEMU: {command}: {said.strip()}")


def _survey(control):
    """Plays a run to its end, and keeps a snapshot every now and then. Returns
    the number of the last instruction, and that of the last snapshot; 0: there
    is but the first."""
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
    """The last instruction that each replay can be stopped at for certain, if
    one went on to number `at` before it was switched off; to LAST_STEPS. `kept`
    is the last snapshot, in `folder`."""
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
    """Whether the run ended with a triple fault: a reset that the kernel did
    not ask for. Such a machine stands still at once."""
    asked = any(e.get("event") == "reset"
                for e in qemu.read_events(made.file("events")))
    return made.about.get("ended") == "guest-reset" and not asked


def finish(made):
    """Plays the recording once: where it ends, whether it says what was said
    when it was recorded, and snapshots on the way, so that going back is
    quick. Raises ReplayError; otherwise it is complete and saved."""
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
