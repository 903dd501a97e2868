"""Grades a lab: runs each test in a machine of its own, and explains lost
points. (questions.py checks the answers.)

The verdict is read from the machine's memory after its end (stopped.py); its
output only explains. A test without a verdict has failed. Nothing depends on
the host's speed: a watchdog in guest time ends a test that hangs. A test that
stops the watchdog has failed when the host's time-out ends it.
"""

import math
import mmap
import os
import re
import runpy
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from signal import SIGBUS, SIGKILL, SIGXCPU

from tools.grading import stopped
from tools.grading.budget import SLOWEST, Spent
from tools.run import elf, qemu, sandbox

# Further arguments of QEMU for a test: a watchdog.
MACHINE = ["-device", "ib700", "-action", "watchdog=inject-nmi"]

WRITES = 512        # KiB of output on one line
MEMORY = 4096       # MiB of QEMU's address space
RAM = 128           # MiB of the machine

# The state of what only the grader can judge.
NOT_CHECKED = "not checked"

STUCK = "stuck", ["did not end until the host stopped it: the watchdog did "
                  "not work"]

# Limits of a report: lines, and characters of a line.
LINES, WIDTH = 60, 200

TRAPS = {0: "division error", 6: "invalid opcode", 8: "double fault",
         10: "invalid TSS", 11: "segment not present", 12: "stack fault",
         13: "general protection", 14: "page fault"}


class GradeError(Exception):
    """Grading itself failed; the submission is not the cause."""


@dataclass
class Outcome:
    """The result of a test or a question. The state "pass" earns all points,
    "leak" half, others none. `text` has lines that explain."""
    item: object
    state: str
    text: list = field(default_factory=list)

    @property
    def score(self):
        share = {"pass": 2, "leak": 1}.get(self.state, 0)
        points = self.item.points * share / 2
        return int(points) if points == int(points) else points

    @property
    def kept(self):
        """Whether nothing here can judge it, whatever the kernel is."""
        return self.state == NOT_CHECKED and not self.text


@dataclass
class Grade:
    """All outcomes of a submission, in the order of lab.toml."""
    lab: object
    outcomes: list
    build_errors: str = ""
    problems: list = field(default_factory=list)  # with files
    notes: list = field(default_factory=list)     # for the instructor
    seed: int = 0
    version: str = ""

    @property
    def score(self):
        return sum(o.score for o in self.outcomes)

    @property
    def complete(self):
        """Whether no point is lost."""
        return all(o.state == "pass" or o.kept for o in self.outcomes)


# ---- output of machines ----------------------------------------------------

def clean(text):
    """The text as one line that is safe for a terminal and for XML."""
    text = "".join(c if c.isprintable() else "?" for c in str(text))
    return text if len(text) <= WIDTH else text[:WIDTH] + "..."


def _serial(result):
    return [clean(line) for line in qemu.plain(result.text).split("\n")]


def _texts(result, event):
    return [clean(e.get("text")) for e in result.named.get(event, ())]


def _panic_report(result):
    """The serial line from the last panic on, without registers."""
    lines = _serial(result)
    at = max((i for i, line in enumerate(lines)
              if line.startswith("panic: ")), default=None)
    if at is None:
        return []
    return [line for line in lines[at:]
            if line and not re.match(r"  e?(ax|si|ip|cr0|\w\w\w?) [0-9a-f]{8}",
                                     line)]


def _expectations(result):
    return [f"{clean(e.get('file'))}:{clean(e.get('line'))}: "
            f"{clean(e.get('text'))}" for e in
            result.named.get("expectation", ())]


def _last_events(result):
    events = result.events[-20:]
    return ["the last events on the debug port:"] + \
        ["  " + clean(e) for e in events] if events else []


def _triple_fault(result, kernel):
    """The places of the faults, from QEMU's log."""
    text = ["triple fault: the handler of a double fault faulted"]
    faults = re.findall(r"v=([0-9a-f]{2}) .*? pc=([0-9a-f]{8})", result.log)
    for vector, pc in faults[-3:]:
        number = int(vector, 16)
        text.append(f"  {TRAPS.get(number, f'trap {number}')} in "
                    f"{_symbol(kernel, int(pc, 16))}")
    return text


def _symbol(kernel, pc):
    symbols = elf.Elf(kernel).symbols.items()
    below = [(at, name) for name, at in symbols if name and at <= pc]
    at, name = max(below, default=(pc, "?"))
    return f"{name}+0x{pc - at:x}"


# ---- one test --------------------------------------------------------------

def limits(budget, most=math.inf):
    """Those of sandbox.wrap for a machine. Raises Spent."""
    return {"seconds": budget.next(most), "file": WRITES, "memory": MEMORY}


def _boot(kernel, test, lab, ram, within):
    """The run of a test, with the file `ram` as its memory; or None after the
    host's time-out."""
    line = f"panic=exit grade={test.name} {test.append}".strip()
    try:
        result = qemu.run(kernel, append=line, memory=str(RAM), budget=None,
                          shift=lab.shift, limits=within, ram=ram,
                          extra=[*MACHINE, "-smp", str(lab.cpus)],
                          timeout=SLOWEST * within["seconds"])
    except qemu.QemuError as e:
        if "still runs" in str(e):
            return None
        raise GradeError(str(e)) from e
    if result.status in (1, 126, 127) and result.log.strip() and \
            not result.events and not result.text:
        raise GradeError(f"QEMU does not start: {result.log.strip()}")
    if sandbox.signal_of(result.status) == SIGBUS and \
            shutil.disk_usage(ram).free < RAM << 20:
        raise GradeError("no room for the machine's memory in "
                         f"{os.path.dirname(ram)}")
    return result


def _not_written(result):
    tasks = {clean(e.get("task")) for e in result.named["lab-missing"]}
    return [f"task {task} is not written yet" for task in sorted(tasks)]


def _without_verdict(result, kernel):
    """(state, text) of a run that ended without a verdict."""
    named = result.named
    if sandbox.signal_of(result.status) in (SIGXCPU, SIGKILL):
        return STUCK
    if "lab-missing" in named:
        return "not written", _not_written(result)
    if "lab-hang" in named:
        report = _panic_report(result)
        return "hang", report[:LINES] + _last_events(result)
    if "panic" in named:
        return "panic", _panic_report(result)[:30] or _texts(result, "panic")
    if "lab-unknown" in named:
        return "no such test", ["the kernel has no test of this name"]
    if "halt" in named:
        return "halt", ["the kernel halted before the test:"] + \
            _serial(result)[-5:]
    if result.status == 0 and not result.ended:
        return "triple fault", _triple_fault(result, kernel)
    return "no verdict", ["the machine ended without a verdict: the code "
                          "switched it off, or wrote to the exit port"] + \
        _last_events(result)


def _explain(result, failures, leaked):
    """(state, text) of a run with a verdict."""
    leaks = _texts(result, "leak")
    table = ["leaked:"] + ["  " + line for line in leaks] if leaks else []
    if failures and "lab-missing" in result.named:
        return "not written", _not_written(result)  # met by a program
    if failures:
        text = _expectations(result) or ["an expectation failed"]
        return "fail", text[:LINES] + table[:LINES]
    return ("leak", table[:LINES] or [f"{leaked} leaks"]) if leaked else \
        ("pass", [])


def _verdict(kernel, test, result, memory):
    """(state, text) of a run that ended; `memory` is what the machine's was
    then."""
    found = kernel.result(memory, test.name)
    if found is None:
        return _without_verdict(result, kernel.path)
    changed = kernel.changed(memory)
    if changed is not None:
        return "changed", ["the kernel's code or its constants were changed, "
                           f"in {_symbol(kernel.path, changed)}"]
    return _explain(result, *found)


def run_test(kernel, test, lab, budget):
    """Runs one test of a lab, with a stopped.Kernel; returns its Outcome."""
    try:
        within = limits(budget)
    except Spent as e:
        return Outcome(test, "no time", [str(e)])
    with tempfile.NamedTemporaryFile(prefix="slate-") as ram:
        result = _boot(kernel.path, test, lab, ram.name, within)
        if result is None:
            return Outcome(test, *STUCK)
        if result.full:  # the verdict may be missing
            return Outcome(test, "wild output", [
                f"wrote {WRITES} KiB or more to its serial line or to the "
                "debug port"])
        with mmap.mmap(ram.fileno(), 0, prot=mmap.PROT_READ) as memory:
            return Outcome(test, *_verdict(kernel, test, result, memory))


def hidden_options(root, lab, seed):
    """The kernel options of a lab's hidden tests, which its hidden.py has; None
    in a hand-out, which has no such file."""
    path = Path(root) / lab.folder / "hidden.py"
    return runpy.run_path(str(path))["append"](seed) if path.exists() else None


def _try_test(kernel, test, lab, budget, hidden):
    """The Outcome of a test, which the options `hidden` are for if it is; no
    report has them."""
    if not test.hidden:
        return run_test(kernel, test, lab, budget)
    if hidden is None:
        return Outcome(test, NOT_CHECKED)
    options = f"{test.append} {hidden}".strip()
    return replace(run_test(kernel, replace(test, append=options), lab, budget),
                   item=test)


def run_tests(kernel, lab, budget, hidden=None):
    """Outcomes of all tests of a lab, and of its open stage; as many run at a
    time as there are processors. Without a kernel none runs, and without the
    options `hidden` no hidden one."""
    if kernel is None:
        outcomes = [Outcome(test, "no kernel", [])
                    for test in lab.tests]
    else:
        kernel = stopped.Kernel(kernel)
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            outcomes = list(pool.map(
                lambda test: _try_test(kernel, test, lab, budget, hidden),
                lab.tests))
    return outcomes + ([_open_stage(lab, outcomes)] if lab.opened else [])


def _open_stage(lab, outcomes):
    left = [o.item.name for o in outcomes if o.state != "pass"]
    return Outcome(lab.open, "fail", [f"not passed: {', '.join(left)}"]) \
        if left else Outcome(lab.open, "pass")
