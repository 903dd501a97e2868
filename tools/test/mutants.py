"""Mutation tests: `make mutants`. Do the tests notice when mm/ is wrong?

    .venv/bin/python -m tools.test.mutants [--sample 500] [--seed 1] [FILE ...]

Each mutant (tools/test/mutate.py) of mm/*.c and mm/debug/*.c, or of these
files, is compiled into the host test program, whose cases run, cheap ones
first, until one fails. If none does, mm/ runs on real threads under the thread
sanitizer. Mutants that do not compile, or compile to the same machine code, do
not count. The seed and the identities of mutants decide which are in a sample,
so that a change of one line leaves the others in the sample.

tools/test/survivors.txt explains mutants that no test can or should notice. The
others that survive are printed, and last how many were killed.
"""

import argparse
import concurrent.futures
import contextlib
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tools.test import mutate

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("SLATE_BUILD", "build")
SURVIVORS = ROOT / "tools/test/survivors.txt"
PARTS = 10      # of a sample; each has as many mutants
SECONDS = 600   # for all cases, which take 10; a case ends by itself
RACES = [(1, 4000), (2, 4000)]    # seeds and operations of mmthreads


def sources():
    return sorted(str(p.relative_to(ROOT)) for folder in ("mm", "mm/debug")
                  for p in (ROOT / folder).glob("*.c"))


def mutants_of(files):
    return [m for file in files
            for m in mutate.mutants_of(file, (ROOT / file).read_text())]


def place(mutant, seed):
    """A number that decides when a sample takes the mutant."""
    return int.from_bytes(hashlib.sha256(
        f"{seed} {mutant.identity}".encode()).digest(), "big")


def part_of(mutants, seed, part):
    """A tenth of the mutants, in the order in which a sample takes them."""
    return sorted((m for m in mutants if place(m, seed) % PARTS == part),
                  key=lambda m: place(m, seed))


def explained():
    """{identity: reason} of survivors.txt: blocks of four lines and more, each
    the identity of a mutant and then why it survives."""
    found = {}
    for block in re.split(r"\n\n+", SURVIVORS.read_text().strip()):
        lines = block.splitlines()
        if not lines[0].startswith("#"):
            found["\n".join(lines[:3]) + "\n"] = " ".join(
                line.strip() for line in lines[3:])
    return found


class Program:
    """A program of mm/ that make has built: its flags, objects and libraries
    are those of the Makefile."""

    def __init__(self, name, libraries):
        self.folder = BUILD / name
        self.flags = (self.folder / "flags").read_text().split()
        self.sources = (self.folder / "objects").read_text().split()
        self.libraries = libraries
        self.unchanged = {}

    def compile(self, file, text, out):
        """True if it compiles. Equal code gives an equal object."""
        return subprocess.run(
            [*self.flags, "-w", "-x", "c", "-c", "-", "-o", str(out)], cwd=ROOT,
            check=False, input=f'# 1 "{file}"\n{text}', text=True,
            stderr=subprocess.DEVNULL).returncode == 0

    def original(self, file, folder):
        if file not in self.unchanged:
            out = Path(folder) / "unchanged.o"
            self.compile(file, (ROOT / file).read_text(), out)
            self.unchanged[file] = out.read_bytes()
        return self.unchanged[file]

    def link(self, file, changed, out):
        objects = [changed if s == file else
                   self.folder / (s.removesuffix(".c") + ".o")
                   for s in self.sources]
        subprocess.run([self.flags[0], *map(str, objects), *self.libraries,
                        "-o", str(out)], check=True)


class Tests:
    """The host test program and the one with threads."""

    def __init__(self):
        self.host = Program("mutants", ["-lcmocka", "-lpthread", "-lm"])
        self.threads = Program("threads", ["-fsanitize=thread", "-lpthread"])
        costs, passed = {}, False
        last = time.monotonic()
        for line in run_cases(BUILD / "mutants/mmtest", []):
            if line.startswith(("ok ", "not ok ")):
                costs[line.split()[-1]] = time.monotonic() - last
                last = time.monotonic()
            passed = line.startswith("# ok")
        if not passed:
            raise RuntimeError("the host tests fail without a change")
        self.cases = sorted(costs, key=costs.get)

    def notice(self, mutant):
        """Whether the tests notice the mutant; None if it does not count."""
        text = mutant.apply((ROOT / mutant.file).read_text())
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            changed, program = Path(folder, "changed.o"), Path(folder, "test")
            if not self.host.compile(mutant.file, text, changed) or \
                    changed.read_bytes() == self.host.original(mutant.file,
                                                               folder):
                return None
            self.host.link(mutant.file, changed, program)
            if not list(run_cases(program, self.cases))[-1:] == ["# ok - mm"]:
                return True
            self.threads.compile(mutant.file, text, changed)
            self.threads.link(mutant.file, changed, program)
            return any(races(program, *race) for race in RACES)


def run_cases(program, cases):
    """The lines of the test program up to the first case that fails."""
    with subprocess.Popen([str(program), *cases], text=True, errors="replace",
                          start_new_session=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as run:
        def kill():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
        timer = threading.Timer(SECONDS, kill)
        timer.start()
        for line in run.stdout:
            yield line.rstrip("\n")
            if line.startswith("not ok"):
                break
        kill()
        timer.cancel()


def races(program, seed, operations):
    """Whether mm/ fails on real threads."""
    # The sanitizer needs addresses that are not random (test_threads.py).
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    try:
        return subprocess.run(
            [*fixed, str(program), str(seed), str(operations)], check=False,
            timeout=SECONDS, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1"}
        ).returncode != 0
    except subprocess.TimeoutExpired:
        return True


class Result:
    """The number of mutants that were tried, and the identities of those that
    survived and of those that survivors.txt explains but the tests kill."""

    def __init__(self):
        self.tried = 0
        self.survived, self.unexplained, self.killed_after_all = [], [], []

    def add(self, mutant, noticed, reasons):
        self.tried += 1
        if not noticed:
            self.survived.append(mutant.identity)
        if not noticed and mutant.identity not in reasons:
            self.unexplained.append(mutant.identity)
        if noticed and mutant.identity in reasons:
            self.killed_after_all.append(mutant.identity)

    def join(self, other):
        self.tried += other.tried
        self.survived += other.survived
        self.unexplained += other.unexplained
        self.killed_after_all += other.killed_after_all

    def faults(self):
        return "".join(
            f"SURVIVED {i}" for i in self.unexplained) + "".join(
            f"EXPLAINED, BUT KILLED {i}" for i in self.killed_after_all)


def try_part(tests, mutants, sample):
    """Tries mutants until `sample` of them count."""
    result, reasons = Result(), explained()
    for mutant in mutants:
        if result.tried == sample:
            break
        noticed = tests.notice(mutant)
        if noticed is not None:
            result.add(mutant, noticed, reasons)
    return result


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sample", type=int, default=0,
                        help="how many; 0: all, which takes hours")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("files", nargs="*", metavar="FILE")
    options = parser.parse_args()
    for file in options.files:
        if file not in sources():
            parser.error(f"{file} is not one of {', '.join(sources())}")
    mutants = mutants_of(options.files or sources())
    each = -(-options.sample // PARTS) or len(mutants)
    tests, result = Tests(), Result()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        parts = [pool.submit(try_part, tests,
                             part_of(mutants, options.seed, part), each)
                 for part in range(PARTS)]
        for part in concurrent.futures.as_completed(parts):
            print(part.result().faults(), end="", flush=True)
            result.join(part.result())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = (used.ru_utime + used.ru_stime) / max(result.tried, 1)
    print(f"{len(mutants)} mutants; seed {options.seed}: {result.tried} tried, "
          f"{result.tried - len(result.survived)} killed, "
          f"{len(result.survived)} survived, {len(result.unexplained)} of "
          f"them unexplained; {seconds:.1f} seconds of processor each")
    sys.exit(result.faults() != "")


if __name__ == "__main__":
    main()
