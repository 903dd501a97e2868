"""Slate in QEMU.

`command()` makes QEMU's command line. `run()` boots, executes commands of the
kernel shell and waits for the end. `Machine` is a running machine: a test uses
its serial line, and QMP for keys and the screen.

A counted run (the default of `run`) uses the deterministic mode: a guest
instruction takes one nanosecond of guest time, all devices use that time, and
two runs give the same bytes. The kernel's option `budget=` (kernel/budget.c)
limits its length in guest instructions; only the watchdog (watchdog.py) counts
seconds of the host.

A `Machine` knows when all has been done that was typed: before the kernel waits
for a key, it reports on port 0xE9 how many bytes it has read from the serial
line, and how many it has written (console_report_wait).
"""

import asyncio
import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tools.run import sandbox, watchdog

QEMU = os.environ.get("QEMU", "qemu-system-i386")

# How often a file of the machine is looked at, in seconds: the console's, in
# case it grows too large; that of the events, for the next one.
LOOK_EVERY = 0.5
LOOK_FOR_EVENT = 0.002

KEYBOARD_FULL = 1  # in the status of the PS/2 controller: output to be read

# How often Machine.until() asks.
TRIES = 3000


def leave_in_order():
    """Makes SIGTERM, and SIGHUP from a terminal that is closed, end this
    program as sys.exit() does, so that QEMU ends and its files are removed."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def deterministic(shift=0):
    """Arguments of a counted run: an instruction takes 2^shift nanoseconds."""
    return ["-icount", f"shift={shift},sleep=off",
            "-rtc", "base=2020-01-01,clock=vm"]


# Millions of instructions that a counted run may take.
BUDGET = 4000

# Without QEMU's default devices (screen, CD, floppy disk) a machine starts in a
# third of the time.
BARE = ["-nodefaults"]

EXIT_PORT = ["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]


class QemuError(Exception):
    """QEMU could not be started, or does not respond."""


def initrd_of(kernel):
    """The archive beside a kernel: initrd.tar of slate.elf, initrd-workshop.tar
    of slate-workshop.elf and of those with another allocator, as
    slate-slob.elf. "" without one."""
    kernel = Path(kernel)
    archive = kernel.with_name("initrd-workshop.tar" if
                               kernel.name.startswith("slate-") else
                               "initrd.tar")
    return archive if archive.exists() else ""


def option(value):
    """The value of an option of QEMU's that has several, as file=…,if=ide."""
    return str(value).replace(",", ",,")


def loaded(path):
    """The path of a file that QEMU loads as a boot loader does: its first word
    is the file, the rest are words for the kernel. So it is the path from here
    if a folder above has a blank in its name."""
    return os.path.relpath(path) if " " in str(path) else str(path)


def boot_arguments(image, append="", initrd=None):
    """Arguments that boot `image`: a CD (.iso), or a kernel (.elf) with the
    archive of its root file system, by default the one built with it.
    `initrd` "" means none."""
    image = str(image)
    if image.endswith(".iso"):
        return ["-cdrom", image, "-boot", "d"]
    if initrd is None:
        initrd = initrd_of(image)
    return (["-kernel", loaded(image)] + (["-append", append] if append else [])
            + (["-initrd", option(loaded(initrd))] if initrd else []))


def link(folder, image, initrd=None):
    """Links the files that boot_arguments would name, and returns the links,
    which have the same names in every run. The kernel reads these names, so
    with longer ones the same run would have more instructions."""
    if initrd is None:
        initrd = initrd_of(image)
    links = []
    for name, path in ("kernel" + Path(image).suffix, image), \
            ("initrd.tar", initrd):
        if path and not os.path.isfile(path):
            raise QemuError(f"{path} is not a file")
        if path:
            os.symlink(os.path.realpath(path), f"{folder}/{name}")
        links.append(name if path else "")
    return links


def kernel_line(commands="", append="", budget=None):
    """The kernel's command line. run= comes last and takes the rest of it, so
    that commands need no quoting."""
    words = [append] if append else []
    if budget:
        words.append(f"budget={budget}")
    if commands:
        words.append(f"run={commands}")
    return " ".join(words)


def panic_ends(append):
    """The options with which a panic ends the machine, if they do not say what
    it does."""
    chosen = any(w.startswith("panic=") for w in append.split())
    return append if chosen else f"{append} panic=exit".strip()


def processors():
    """Arguments for CPUS=, the number of processors, in the environment."""
    count = os.environ.get("CPUS") or "1"
    if not re.fullmatch("[1-8]", count):
        raise SystemExit(f"make: CPUS={count} is not a number from 1 to 8")
    return ["-smp", count] if count != "1" else []


class DiskMissing(QemuError):
    """An image is missing or cannot be used."""


def disk_arguments(disks, cache="writeback"):
    """Arguments that attach images as IDE disks: the primary master, then the
    slave. An element is a path, or a dictionary of QEMU's own block options
    instead of one.

    With "writeback" a write completes in the guest after the host's kernel has
    it, and a flush after the host's disk has it. So killing QEMU loses no
    completed write."""
    argv = []
    for index, disk in enumerate(disks):
        if not isinstance(disk, dict):
            if not Path(disk).is_file():
                raise DiskMissing(f"{disk} is not a file; `make disk` makes "
                                  "build/disk.img")
            if not os.access(disk, os.R_OK | os.W_OK):
                raise DiskMissing(f"{disk} cannot be read and written")
            if Path(disk).stat().st_size < 512:
                raise DiskMissing(f"{disk} is smaller than a sector")
            disk = {"file": Path(disk).resolve(), "format": "raw"}
        options = {"if": "ide", "index": index, "media": "disk",
                   "cache": cache, **disk}
        argv += ["-drive", ",".join(
            f"{key}={option(value)}" for key, value in options.items())]
    return argv


def failing_disk(path, *rules):
    """For disk_arguments: an image whose accesses fail as the rules say. A
    rule is a dictionary of QEMU's blkdebug: {"event": "read_aio", "sector":
    100, "errno": 5, "once": "on"}."""
    disk = {"driver": "raw", "file.driver": "blkdebug",
            "file.image.driver": "file",
            "file.image.filename": Path(path).resolve()}
    for number, rule in enumerate(rules):
        disk.update({f"file.inject-error.{number}.{key}": value
                     for key, value in rule.items()})
    return disk


def command(boot, memory="128", counted=False, kvm=False, display=False,
            serial="stdio", events=None, extra=(), shift=0):
    """QEMU's argument vector for a machine with `memory` MiB."""
    argv = [QEMU, "-name", "slate", "-m", str(memory), "-no-reboot",
            "-accel", "kvm" if kvm else "tcg", "-serial", serial]
    argv += [] if display else ["-display", "none"]
    argv += ["-monitor", "none"] if not serial.startswith("mon:") else []
    argv += ["-net", "none", "-parallel", "none"]
    argv += deterministic(shift) if counted else []
    if events:
        argv += ["-debugcon", f"file:{events}",
                 "-global", "isa-debugcon.iobase=0xe9"]
    return argv + list(extra) + list(boot)


def memory_file(path, memory):
    """Arguments that make a file the machine's memory of so many MiB: after
    the run it holds what the memory held. Now it holds zeros."""
    os.truncate(path, 0)
    os.truncate(path, int(memory) << 20)
    return ["-object", f"memory-backend-file,id=ram,size={memory}M,share=on,"
            f"mem-path={option(path)}", "-machine", "memory-backend=ram"]


def read_events(path):
    """The kernel's records on port 0xE9: a list of dictionaries, each with a
    text as "event". Any other line becomes {"event": "garbled"}, which no test
    expects."""
    events = []
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return events
    for line in filter(None, text.splitlines()):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or \
                not isinstance(record.get("event"), str):
            record = {"event": "garbled", "text": line}
        events.append(record)
    return events


@dataclass
class Result:
    """The results of a finished run."""
    argv: list
    status: int
    text: str
    events: list
    log: str = ""
    named: dict = field(default_factory=dict)
    full: bool = False  # the output reached its limit

    def __post_init__(self):
        for event in self.events:
            self.named.setdefault(event.get("event"), []).append(event)

    @property
    def ended(self):
        """Whether the kernel itself ended the run."""
        return any(e in self.named for e in ("poweroff", "exit", "reset"))

    @property
    def problem(self):
        """One line that says why this run failed, or None."""
        if "budget" in self.named:
            return "the instruction budget was used up"
        if "panic" in self.named:
            return f"panic: {self.named['panic'][0].get('text')}"
        if self.ended:
            return None
        if self.status == 0:
            return "triple fault: the emulator stopped without a power off"
        return f"the emulator ended with status {self.status}"

    def good(self):
        """Returns this result. Raises an AssertionError if the run failed, or a
        `verify` that was typed found an error."""
        typed = [e for e in self.named.get("command", ())
                 if e["name"] == "verify"]
        if self.problem or \
                self.text.count("files: every invariant holds") < len(typed):
            raise AssertionError(self.explain())
        return self

    def explain(self):
        """The report of a failed run."""
        parts = [f"problem: {self.problem}", "command: " +
                 shlex.join(self.argv), "---- serial line",
                 self.text[-4000:], "---- events"]
        parts += [json.dumps(e) for e in self.events[-10:]]
        if self.log:
            parts += ["---- end of QEMU's log of interrupts and resets",
                      self.log]
        return "\n".join(parts)


def _fault_log(argv, folder):
    """Repeats the run with QEMU's log of interrupts and resets; returns the
    end of the log."""
    log = Path(folder) / "qemu.log"
    again = argv + ["-d", "int,cpu_reset", "-D", str(log)]
    try:
        watchdog.run(again, cwd=folder, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
    except watchdog.Watchdog:
        return "(the second run did not end)"
    with open(log, "rb") as f:
        f.seek(0, os.SEEK_END)
        f.seek(max(0, f.tell() - 6000))
        return f.read().decode(errors="replace")


def _full(paths, most):
    """Whether a file has `most` KiB (None: no limit)."""
    return most is not None and any(
        os.path.exists(p) and os.path.getsize(p) >= most * 1024 for p in paths)


def _wait(argv, folder, timeout, paths, most):
    """Runs QEMU in `folder` to its end; returns its status and its own
    messages. Kills it when one of the files `paths` has `most` KiB."""
    end = time.monotonic() + timeout
    with subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:
        while True:
            try:
                said, _ = process.communicate(timeout=LOOK_EVERY)
                return process.returncode, said
            except subprocess.TimeoutExpired:
                if time.monotonic() > end:
                    process.kill()
                    raise
                if _full(paths, most):
                    process.kill()


def run(image, commands="", append="", memory="128", counted=None,
        budget=BUDGET, extra=(), initrd=None, disks=(),
        timeout=watchdog.SECONDS, shift=0, limits=None, ram=None):
    """Boots, runs the shell commands, waits for the end. Returns a Result;
    raises QemuError if QEMU cannot be started or still runs after `timeout`
    seconds of the host. The machine is BARE. By default the run is counted
    unless there are `disks`. `limits` are those of sandbox.wrap, for a kernel
    that is not trusted. `ram` is a file for memory_file()."""
    counted = not disks if counted is None else counted
    if counted and disks:
        raise QemuError("a run with a disk cannot be counted")
    folder = tempfile.mkdtemp(prefix="slate-")
    try:
        serial, events = f"{folder}/serial", f"{folder}/events"
        line = kernel_line(commands, append if counted else panic_ends(append),
                           budget if counted else None)
        links = link(folder, image, initrd)
        argv = command(boot_arguments(links[0], line, links[1]), memory,
                       counted, serial=f"file:{serial}", events=events,
                       extra=BARE + EXIT_PORT + disk_arguments(disks) +
                       (memory_file(ram, memory) if ram else []) + list(extra),
                       shift=shift)
        if limits:
            argv = sandbox.wrap(argv, write=[folder] + ([ram] if ram else []),
                                read=[Path(image).parent], **limits)
        try:
            status, said = _wait(argv, folder, timeout, (serial, events),
                                 (limits or {}).get("file"))
        except FileNotFoundError as e:
            raise QemuError(f"{QEMU} not found: run tools/setup") from e
        except subprocess.TimeoutExpired as e:
            text = Path(serial).read_text("utf-8", "replace")
            raise QemuError(f"watchdog: {shlex.join(argv)}\nstill runs after "
                            f"{timeout} s; printed:\n{text[-4000:]}") from e
        text = Path(serial).read_bytes().decode(errors="replace") \
            if os.path.exists(serial) else ""
        result = Result(argv, status, text, read_events(events))
        result.full = _full((serial, events), (limits or {}).get("file"))
        if result.problem and status == 0:
            if ram:
                memory_file(ram, memory)  # the second run needs zeros, too
            result.log = _fault_log(argv, folder)
        elif status in (1, 126, 127):
            result.log = said.decode(errors="replace")
        return result
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Qmp:
    """QEMU's control socket: the client of the package qemu.qmp, without the
    asynchronous part. `sock` is connected to QEMU."""

    def __init__(self, sock):
        try:
            from qemu.qmp import QMPClient
        except ImportError as e:
            raise QemuError("the package qemu.qmp is missing: run tools/setup, "
                            "and use .venv/bin/python") from e
        self.loop = asyncio.new_event_loop()
        self.client = QMPClient()
        self.wait_for(self.client.connect(sock))

    def wait_for(self, answer):
        """Waits for `answer`; raises QemuError if QEMU has ended, is silent or
        refuses."""
        from qemu.qmp import QMPError
        try:
            return self.loop.run_until_complete(
                asyncio.wait_for(answer, watchdog.SECONDS))
        except asyncio.TimeoutError as e:
            raise QemuError("watchdog: QEMU did not respond for "
                            f"{watchdog.SECONDS} s") from e
        except (QMPError, EOFError, OSError) as e:
            raise QemuError(str(e) or "QEMU closed its control socket") from e

    def execute(self, name, **arguments):
        """Sends a command; returns the answer."""
        return self.wait_for(self.client.execute(name, arguments))

    def event(self, wait=False):
        """The next event, as a dictionary; None if there is none, or, with
        `wait`, if QEMU has ended or does not respond."""
        from qemu.qmp import Runstate
        end = time.monotonic() + (watchdog.SECONDS if wait else 0)
        while True:
            self.loop.run_until_complete(asyncio.sleep(0.01))
            if not self.client.events.empty():
                return dict(self.wait_for(self.client.events.get()))
            if time.monotonic() >= end or \
                    self.client.runstate != Runstate.RUNNING:
                return None

    def close(self):
        try:
            self.wait_for(self.client.disconnect())
        except QemuError:
            pass  # QEMU closed the socket first
        self.loop.close()


class Waits:
    """The kernel's records of its waits for a key, as they come into a file of
    events."""

    def __init__(self, path):
        self.path, self.offset, self.records = path, 0, []

    def last(self, typed, reader="shell|program"):
        """The last unused record of such a reader by which the kernel had read
        `typed` bytes from the serial line, or None."""
        if os.path.exists(self.path):
            with open(self.path, "rb") as f:
                f.seek(self.offset)
                lines = f.read().rpartition(b"\n")[0]
            self.offset += len(lines) + 1 if lines else 0
            self.records += [json.loads(line) for line in lines.splitlines()
                             if line.startswith(b'{"event":"waits"')]
        return next((r for r in reversed(self.records) if r["read"] == typed
                     and re.fullmatch(reader, r["reader"])), None)

    def used(self):
        """All records up to now have been seen."""
        self.records.clear()


class Machine:
    """A running machine. Use it in a `with` statement.

    The serial line and QMP are socket pairs that QEMU inherits: no output is
    lost and no port number is in use. `leave` are arguments for the end of the
    kernel, `handles` are open files that `extra` names by number. Only with
    `screen` does the machine have a screen. With `own_session` ^C on this
    terminal does not reach QEMU.
    """

    PROMPT = "slate> "

    def __init__(self, image, append="", memory="128", counted=False,
                 boot=None, extra=(), initrd=None, leave=EXIT_PORT,
                 disks=(), handles=(), screen=False, own_session=False):
        if counted and disks:
            raise QemuError("a run with a disk cannot be counted")
        wires = BARE + (["-vga", "std"] if screen else []) + \
            disk_arguments(disks)
        self.folder = tempfile.mkdtemp(prefix="slate-")
        self.events_file = f"{self.folder}/events"
        self.buffer = ""
        self.transcript = ""
        self.sent = self.received = 0  # bytes on the serial line
        self.waits = Waits(self.events_file)
        self.process = self.qmp = None
        self.serial, serial_end = socket.socketpair()
        self.serial.setblocking(False)
        qmp, qmp_end = socket.socketpair()
        wires += ["-chardev", f"socket,id=line,fd={serial_end.fileno()}",
                  "-chardev", f"socket,id=qmp,fd={qmp_end.fileno()}",
                  "-mon", "chardev=qmp,mode=control"]
        self.argv = command(boot or boot_arguments(image, append, initrd),
                            memory, counted, serial="chardev:line",
                            events=self.events_file,
                            extra=list(leave) + wires + list(extra))
        self.stderr = open(f"{self.folder}/stderr", "w+b")
        try:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=self.stderr,
                stderr=self.stderr, start_new_session=own_session,
                pass_fds=(serial_end.fileno(), qmp_end.fileno(), *handles))
        except FileNotFoundError as e:
            self.close()
            raise QemuError(f"{QEMU} not found: run tools/setup") from e
        serial_end.close()
        qmp_end.close()
        try:
            self.qmp = Qmp(qmp)
        except QemuError as e:
            message = self.errors()
            self.close()
            raise QemuError(f"{e}: {message}") from e

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def cut_power(self):
        """Kills QEMU, like a power cut: its disks stay as they are."""
        self.process.kill()
        self.process.wait()

    def close(self):
        """Kills QEMU and removes its files."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
        if self.qmp:
            self.qmp.close()
        self.serial.close()
        self.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def errors(self):
        """QEMU's own messages."""
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace").strip()

    # -- the serial line ----------------------------------------------------

    def send(self, data):
        """Types on the serial line, and reads output meanwhile: a guest that
        cannot write would stop reading."""
        left = memoryview(data.encode() if isinstance(data, str) else data)
        while left:
            readable, writable, _ = select.select(
                [self.serial], [self.serial], [], watchdog.SECONDS)
            if readable and not self.receive(0):
                raise AssertionError("the machine ended during input;"
                                     f" its output:\n{self.transcript[-3000:]}")
            if writable:
                count = self.serial.send(left[:512])
                self.sent += count
                left = left[count:]
            if not readable and not writable:
                raise AssertionError("watchdog: the machine does not read its "
                                     "serial line")

    def receive(self, wait):
        """Reads available output. False at the end of the line, or after
        `wait` seconds without output."""
        if not select.select([self.serial], [], [], wait)[0]:
            return False
        try:
            data = self.serial.recv(65536)
        except ConnectionError:
            data = b""
        text = data.decode("latin-1")
        self.received += len(data)
        self.buffer += text
        self.transcript += text
        if len(self.transcript) > 200_000:
            self.transcript = self.transcript[-100_000:]
        return bool(data)

    def _fail(self, what):
        raise AssertionError(f"{what}; the last of the output:\n"
                             f"{self.transcript[-3000:]}\n{self.errors()}")

    def waiting(self, reader="shell|program"):
        """The record of a wait of such a reader that has read all that was
        typed, if all output before it has been received; else None."""
        last = self.waits.last(self.sent, reader)
        return last if last and self.received >= last["written"] else None

    def ended(self, wait):
        """Reads available output for at most `wait` seconds. Whether the
        machine has ended and there is no more."""
        return not self.receive(wait) and self.process.poll() is not None and \
            not self.receive(0)

    def settle(self, reader="shell|program", unless="slate!> "):
        """Waits until the kernel's shell, or a program, waits for a key and
        has read all that was typed since the last call. Returns the output up
        to then. Fails at once if `unless` matches, or the machine ends."""
        end = time.monotonic() + watchdog.SECONDS
        while True:
            last = self.waiting(reader)
            if last:
                break
            if unless and re.search(unless, self.buffer):
                self._fail(f"{unless!r} came before the prompt")
            if self.ended(LOOK_FOR_EVENT):
                self._fail("the machine ended before the prompt")
            if time.monotonic() > end:
                self._fail("watchdog: no prompt")
        self.waits.used()
        at = max(len(self.buffer) - (self.received - last["written"]), 0)
        text, self.buffer = self.buffer[:at], self.buffer[at:]
        return text

    def expect(self, pattern, unless=None):
        """Reads up to the first match of `pattern`; returns the text up to its
        end. Fails at once if `unless` matches earlier, if the machine ends, or
        if the kernel's shell waits for a command and all its output has
        come."""
        end = time.monotonic() + watchdog.SECONDS
        while True:
            found = re.search(pattern, self.buffer)
            wrong = re.search(unless, self.buffer) if unless else None
            if found and not (wrong and wrong.start() < found.start()):
                text = self.buffer[:found.end()]
                self.buffer = self.buffer[found.end():]
                return text
            if wrong:
                self._fail(f"{wrong.group()!r} came before {pattern!r}")
            if self.waiting("shell"):
                self._fail(f"{pattern!r} did not come before the prompt")
            if self.ended(LOOK_EVERY):
                self._fail(f"the machine ended before {pattern!r} came")
            if time.monotonic() > end:
                self._fail(f"watchdog: {pattern!r} did not come")

    def prompt(self):
        """Waits until the kernel's shell waits for a command; returns the
        output up to then, with the prompt."""
        return self.settle("shell")

    def command(self, line):
        """Types a command and returns its output, without the echo."""
        self.send(line + "\r")
        text = self.prompt()
        return plain(text).split("\n", 1)[-1].rsplit(self.PROMPT, 1)[0]

    def program(self, line):
        """Types a line to a program that reads lines, as sh; returns the output
        up to where a program reads again."""
        self.send(line + "\r")
        return self.settle("program")

    def stopped(self, line):
        """Types a command that ends in a panic, or one to the shell after a
        panic; returns the output up to that shell's prompt."""
        self.send(line + "\r")
        return plain(self.expect(r"\nslate!> ", unless=r"\nslate> "))

    def until(self, line, pattern):
        """Types a command again and again until its output has a match of
        `pattern`; returns that output."""
        for _ in range(TRIES):
            text = self.command(line)
            if re.search(pattern, text, re.M):
                return text
            time.sleep(watchdog.PAUSE)
        self._fail(f"{line}: no {pattern!r} in {TRIES} answers")

    def kill(self, whom):
        """Kills a program or a group of the kernel's shell; returns the report
        of its end, which comes before this prompt or before a later one."""
        return (self.command(f"kill {whom}").strip()
                or self.until("echo", r"\w").strip())

    def wait_halt(self):
        """Waits until all processors halt."""
        watchdog.poll(lambda: self.qmp.execute(
            "human-monitor-command", **{"command-line": "info registers -a"}),
            lambda said: "HLT=1" in said and "HLT=0" not in said)

    def wait(self):
        """Waits for QEMU to end; returns its exit status."""
        while self.receive(watchdog.SECONDS):
            pass
        return self.process.wait(timeout=watchdog.SECONDS)

    def events(self, name=None):
        """The kernel's records up to now, or those of one kind."""
        return [e for e in read_events(self.events_file)
                if name in (None, e.get("event"))]

    # -- screen and keyboard ------------------------------------------------

    def memory(self, address, size):
        """Bytes of physical memory."""
        path = f"{self.folder}/memory"
        self.qmp.execute("pmemsave", val=address, size=size, filename=path)
        return Path(path).read_bytes()

    def screen(self):
        """The text on the VGA screen: 25 strings of 80 characters."""
        cells = self.memory(0xB8000, 4000)[::2].decode("cp437")
        return [cells[i:i + 80] for i in range(0, 2000, 80)]

    def wait_screen(self, pattern):
        """Waits until a line of the screen matches; returns the screen. Reads
        serial output meanwhile, so that the machine does not wait."""
        end = time.monotonic() + watchdog.SECONDS
        while True:
            lines = self.screen()
            if any(re.search(pattern, line) for line in lines):
                return lines
            if time.monotonic() > end:
                raise AssertionError(f"watchdog: no {pattern!r} on the "
                                     "screen:\n" +
                                     "\n".join(lines))
            self.receive(0.05)

    def keys(self, *chords):
        """Types on the PS/2 keyboard. A chord is QEMU's name of a key, or
        several joined by "-" ("shift-a")."""
        for chord in chords:
            names = chord.split("-")
            for name in names:
                self._move_key(name, True)
            for name in reversed(names):
                self._move_key(name, False)

    def _move_key(self, name, down):
        """Presses or releases a key, and waits until the kernel has read that
        from the keyboard's controller, which holds few bytes."""
        key = {"down": down, "key": {"type": "qcode", "data": name}}
        self.qmp.execute("input-send-event",
                         events=[{"type": "key", "data": key}])
        watchdog.poll(self._has_read_keyboard)

    def _has_read_keyboard(self):
        """Whether the controller's status says that its output is empty. Reads
        serial output meanwhile, so that the machine does not wait."""
        self.receive(0)
        answer = self.qmp.execute("human-monitor-command",
                                  **{"command-line": "i /b 0x64"})
        return not int(answer.split("=")[1], 16) & KEYBOARD_FULL


def plain(text):
    """Serial text without escape sequences, with \\n line ends."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return text.replace("\r\n", "\n").replace("\r", "")


def json_lines(text):
    """The objects that commands have printed with -j, one a line."""
    return [json.loads(line) for line in plain(text).splitlines()
            if line.startswith("{")]
