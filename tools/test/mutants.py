"""Mutation tests: `make mutants`. Do the tests notice when mm/ is wrong?

    .venv/bin/python -m tools.test.mutants [--sample 500] [--seed 1]
        [--function NAME] [FILE ...]

Each mutant (tools/test/mutate.py) of mm/, mm/inspect/ and mm/debug/, or of
these files, or of one function, is compiled into the host test program, whose
cases run, cheap ones first, until one fails. If none does, mm/ runs on real
threads under the thread sanitizer. A case that hangs fails, too: it has a
budget of steps (tools/test/budget.h), so no result depends on time. Mutants
that do not compile or link, or compile to the same machine code, do not count.
The seed and the identities of mutants decide which are in a sample, so that a
change of one line leaves the others in the sample.

tools/test/survivors.txt explains mutants that no test can or should notice. The
others that survive are printed when they are found, and last how many were
killed.

With --locks it tries all mutants of locks instead, and runs the first 120 seeds
of mmraces (mm/tests/races/) on each, nothing else. Those that survive are
explained in tools/test/survivors-locks.txt.
"""

import argparse
import concurrent.futures
import hashlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.run import watchdog
from tools.test import mutate

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("SLATE_BUILD", "build")
SURVIVORS = ROOT / "tools/test/survivors.txt"
LOCK_SURVIVORS = ROOT / "tools/test/survivors-locks.txt"
PARTS = 10      # of a sample; each has as many mutants
BUDGET = 20     # times the steps that a case takes without a change
LEAST = 100_000_000     # steps of a budget: the tenth of a second
RACES = [(1, 4000), (2, 4000)]    # seeds and operations of mmthreads
SEEDS = 120     # of mmraces, for a mutant of locks


def sources():
    return sorted(str(p.relative_to(ROOT)) for folder in
                  ("mm", "mm/inspect", "mm/debug")
                  for p in (ROOT / folder).glob("*.c"))


def mutants_of(files):
    """Not those without a lock: whether real threads notice them depends on
    time. --locks has them."""
    return [m for file in files
            for m in mutate.mutants_of(file, (ROOT / file).read_text("utf-8"))
            if m.operator != "lock"]


def lock_mutants_of(files):
    return [m for file in files for m in
            mutate.lock_mutants_of(file, (ROOT / file).read_text("utf-8"))]


def place(mutant, seed):
    """A number that decides when a sample takes the mutant."""
    return int.from_bytes(hashlib.sha256(
        f"{seed} {mutant.identity}".encode()).digest(), "big")


def part_of(mutants, seed, part):
    """A tenth of the mutants, in the order in which a sample takes them."""
    return sorted((m for m in mutants if place(m, seed) % PARTS == part),
                  key=lambda m: place(m, seed))


def text_of(survivors):
    """The text of one of these files; without survivors there is none."""
    return survivors.read_text("utf-8") if survivors.exists() else ""


def explained(text=None):
    """{identity: reason} of survivors.txt, or of this text: blocks of lines,
    each the identities of mutants and then why they survive. A `-` line without
    a function belongs to the function before it, a `+` line without a `-` line
    to the `-` line before it."""
    found = {}
    text = text_of(SURVIVORS) if text is None else text
    for block in re.split(r"\n\n+", text.strip()):
        where = old = ""
        identities, reason = [], []
        for line in block.splitlines():
            head = re.fullmatch(r"\S+/\S+\.c \w+( #\d+)?", line)
            if reason or not (head or line.startswith(("    - ", "    + "))):
                reason.append(line.strip())
            elif head:
                where = line
            elif line.startswith("    - "):
                old = line
            else:
                identities.append(f"{where}\n{old}\n{line}\n")
        for identity in identities:
            if identity in found:
                raise ValueError(f"survivors.txt: twice: {identity}")
            found[identity] = " ".join(reason)
    return found


class Program:
    """A program of mm/ that make has built: its flags, objects and libraries
    are those of the Makefile."""

    def __init__(self, name, libraries, flags=()):
        program = BUILD / name
        self.folder = program.parent
        self.flags = [*(self.folder / "flags").read_text("utf-8").split(),
                      *flags]
        self.sources = Path(f"{program}.sources").read_text("utf-8").split()
        self.libraries = libraries
        self.unchanged = {}

    def compile(self, file, text, out):
        """True if it compiles. Equal code gives an equal object."""
        return subprocess.run(
            [*self.flags, "-w", "-x", "c", "-c", "-", "-o", str(out)], cwd=ROOT,
            check=False, input=f'# 1 "{file}"\n{text}', encoding="utf-8",
            stderr=subprocess.DEVNULL).returncode == 0

    def original(self, file, folder):
        if file not in self.unchanged:
            out = Path(folder) / "unchanged.o"
            self.compile(file, (ROOT / file).read_text(encoding="utf-8"), out)
            self.unchanged[file] = out.read_bytes()
        return self.unchanged[file]

    def link(self, file, changed, out):
        """True if it links: a mutant may call what the program lacks."""
        objects = [changed if s == file else
                   self.folder / (s.removesuffix(".c") + ".o")
                   for s in self.sources]
        return subprocess.run(
            [self.flags[0], *(f for f in self.flags if f.startswith("-Wl,")),
             *map(str, objects), *self.libraries, "-o",
             str(out)], check=False, stderr=subprocess.DEVNULL).returncode == 0

    def mutated(self, mutant, folder):
        """The program with the mutant; None if it does not compile or link, or
        has the same machine code."""
        text = mutant.apply((ROOT / mutant.file).read_text(encoding="utf-8"))
        changed, program = Path(folder, "changed.o"), Path(folder, "program")
        if self.compile(mutant.file, text, changed) and \
                changed.read_bytes() != self.original(mutant.file, folder) and \
                self.link(mutant.file, changed, program):
            return program
        return None

    def with_mistake(self, file, changes, folder):
        """Links the program, after each text (old, new) has been changed in a
        file that has it once."""
        text = (ROOT / file).read_text(encoding="utf-8")
        for old, new in changes:
            assert text.count(old) == 1, f"{file} has not once: {old}"
            text = text.replace(old, new)
        changed, program = Path(folder, "changed.o"), Path(folder, "program")
        assert self.compile(file, text, changed), "it does not compile"
        assert self.link(file, changed, program), "it does not link"
        return program


class Tests:
    """The host test program and the one with threads."""

    def __init__(self):
        self.host = Program("mutants/mmtest",
                            ["-lcmocka", "-lpthread", "-lm"])
        self.threads = Program("threads/mmthreads",
                               ["-fsanitize=thread", "-lpthread"])
        done = run_cases(BUILD / "mutants/mmtest", ["-s"])
        if done.returncode != 0:
            raise RuntimeError("the host tests fail without a change")
        steps = {name: int(number) for name, number in re.findall(
            r"^# (\S+): (\d+) steps$", done.stdout, re.M)}
        self.cases = [f"{name}:{max(LEAST, BUDGET * steps[name])}"
                      for name in sorted(steps, key=steps.get)]

    def notice(self, mutant):
        """Whether the tests notice the mutant; None if it does not count."""
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            program = self.host.mutated(mutant, folder)
            if program is None:
                return None
            if run_cases(program, ["-f", *self.cases]).returncode != 0:
                return True
            program = self.threads.mutated(mutant, folder)
            return program is not None and \
                any(races(program, *race) for race in RACES)


class Seeds:
    """The first seeds of mmraces."""

    def __init__(self):
        self.races = Program("races/mmraces", ["-no-pie", "-Wl,--gc-sections"],
                             ["-g0"])
        self.slowest = 0    # the last seed that killed a mutant
        if self.first_failure(self.races.folder / "mmraces") is not None:
            raise RuntimeError("mmraces fails without a change")

    def notice(self, mutant):
        """Whether a seed notices the mutant; None if it does not count."""
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            program = self.races.mutated(mutant, folder)
            if program is None:
                return None
            seed = self.first_failure(program)
        self.slowest = max(self.slowest, seed or 0)
        return seed is not None

    @staticmethod
    def first_failure(program):
        """The first seed that fails; 0: before any; None: none does."""
        run = watchdog.run([str(program), "1", str(SEEDS)], encoding="utf-8",
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           errors="replace")
        found = re.search(r"mmraces (\d+)\.\d+:", run.stdout)
        return None if run.returncode == 0 else int(found[1]) if found else 0


def run_cases(program, arguments):
    return watchdog.run([str(program), *arguments],
                        encoding="utf-8", errors="replace",
                        capture_output=True)


def with_threads(program, *arguments):
    """Runs a program under the thread sanitizer up to its first report, for
    which the status is not 0."""
    # The sanitizer needs addresses that are not random where the kernel
    # randomises more bits than it expects.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    return watchdog.run(
        [*fixed, str(program), *map(str, arguments)], encoding="utf-8",
        errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1"})


def races(program, seed, operations):
    """Whether mm/ fails on real threads."""
    return with_threads(program, seed, operations).returncode != 0


class Result:
    """How many mutants were tried and how many survived, and the faults: the
    survivors that survivors.txt does not explain, and the mutants that it
    explains but the tests kill."""

    def __init__(self):
        self.tried = self.survived = self.unexplained = 0
        self.faults = []

    def add(self, mutant, noticed, reasons):
        """The fault, if there is one."""
        fault = None
        self.tried += 1
        self.survived += not noticed
        if not noticed and mutant.identity not in reasons:
            self.unexplained += 1
            fault = f"SURVIVED {mutant.identity}"
        if noticed and mutant.identity in reasons:
            fault = f"EXPLAINED, BUT KILLED {mutant.identity}"
        if fault:
            self.faults.append(fault)
        return fault

    def __str__(self):
        return (f"{self.tried} tried, {self.tried - self.survived} killed, "
                f"{self.survived} survived, {self.unexplained} of them "
                "unexplained")

    def join(self, other):
        self.tried += other.tried
        self.survived += other.survived
        self.unexplained += other.unexplained
        self.faults += other.faults


def try_part(tests, mutants, sample, show=lambda fault: None, reasons=None):
    """Tries mutants until `sample` of them count. Shows each fault at once."""
    result, reasons = Result(), explained() if reasons is None else reasons
    for mutant in mutants:
        if result.tried == sample:
            break
        noticed = tests.notice(mutant)
        if noticed is not None:
            fault = result.add(mutant, noticed, reasons)
            if fault:
                show(fault)
    return result


def show(fault):
    print(fault, end="", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sample", type=int, default=0,
                        help="how many; 0: all, which takes hours")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--locks", action="store_true",
                        help="mutants of locks, and the seeds of mmraces")
    parser.add_argument("--function", help="only the mutants of this one")
    parser.add_argument("files", nargs="*", metavar="FILE")
    options = parser.parse_args()
    for file in options.files:
        if file not in sources():
            parser.error(f"{file} is not one of {', '.join(sources())}")
    of = lock_mutants_of if options.locks else mutants_of
    mutants = [m for m in of(options.files or sources())
               if options.function in (None, m.function)]
    if not mutants:
        parser.error(f"no mutant is in {options.function}")
    each = -(-options.sample // PARTS) or len(mutants)
    tests, result = Seeds() if options.locks else Tests(), Result()
    reasons = explained(text_of(LOCK_SURVIVORS) if options.locks else None)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        parts = [pool.submit(try_part, tests,
                             part_of(mutants, options.seed, part), each, show,
                             reasons)
                 for part in range(PARTS)]
        for part in concurrent.futures.as_completed(parts):
            result.join(part.result())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = (used.ru_utime + used.ru_stime) / max(result.tried, 1)
    print(f"{len(mutants)} mutants; seed {options.seed}: {result}; "
          f"{seconds:.1f} seconds of processor each")
    if options.locks:
        print(f"the last one was killed by seed {tests.slowest}")
    sys.exit(result.faults != [])


if __name__ == "__main__":
    main()
