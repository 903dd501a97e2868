"""Mutation tests: `make mutants`. Do the host tests notice when mm/ is wrong?

    .venv/bin/python -m tools.test.mutants [--sample 60] [--seed 1] [FILE ...]

universalmutator changes single lines of mm/*.c and mm/debug/*.c (or of these
files) by its rules for C: another operator, another number, a condition
negated, a statement removed. A sample of the changes, which the seed and the
sources decide, is tried: each is compiled into the host test program in a copy
of the tree, and the tests run until one fails. Changes that do not compile or
give the same machine code are replaced by others. Prints the changes that no
test noticed, and last how many were killed.
"""

import argparse
import concurrent.futures
import contextlib
import io
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from universalmutator import mutator

ROOT = Path(__file__).resolve().parents[2]
CC = os.environ.get("HOSTCC", "gcc")
# No line numbers: a line more is no difference.
CFLAGS = ["-std=gnu17", "-O1", "-w", "-DCASE_SECONDS=10", "-D__LINE__=0"]
LIBS = ["-lcmocka", "-lpthread", "-lm"]
SECONDS = 300   # for all tests, which take 10; a case ends by itself
RULES = ["universal.rules", "c_like.rules", "c.rules"]

# Lines whose change no test can or should notice.
IGNORED = [r"MM_ASSERT", r"^\s*#", r"^\s*/?\*", r"_Static_assert",
           r"^(static|extern|const|struct|enum|typedef)\b.*;$"]

STRING = re.compile(r'"[^"]*"')


@dataclass
class Mutant:
    """`line` (from 1) of `file` becomes `new`."""
    file: str
    line: int
    old: str
    new: str

    def __str__(self):
        return (f"{self.file}:{self.line}\n"
                f"    - {self.old.strip()}\n"
                + "".join(f"    + {line.strip() or '(nothing)'}\n"
                          for line in self.new.splitlines() or [""]))


def mutants_of(file):
    """All mutants of a source file."""
    source = (ROOT / file).read_text().splitlines(keepends=True)
    with contextlib.redirect_stdout(io.StringIO()):
        found = mutator.mutants_regexp(source, RULES, ignorePatterns=IGNORED,
                                       ignoreStringOnly=True)
    return [Mutant(file, line, source[line - 1], new)
            for line, new, *_ in found
            if STRING.sub("", new) != STRING.sub("", source[line - 1])]


def mm_sources(tree):
    """The files of the host test program."""
    stress = tree / "tools/workshop/stress"
    return sorted(str(p.relative_to(tree)) for p in (
        *(tree / "mm").rglob("*.c"), stress / "fail.c",
        stress / "tests/test_fail.c") if p.parent.name != "threads")


class Program:
    """The host test program in a copy of the tree, compiled once."""

    def __init__(self, folder):
        self.tree = Path(folder) / "tree"
        self.objects = Path(folder) / "objects"
        self.objects.mkdir()
        for name in ("mm", "kernel/lib", "tools/workshop"):
            shutil.copytree(ROOT / name, self.tree / name)
        self.sources = mm_sources(self.tree)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            done = list(pool.map(lambda s: self.compile(
                self.tree, s, self.object_of(s)), self.sources))
        if not all(done):
            sys.exit("mutants: mm/ does not compile")

    def object_of(self, source):
        return self.objects / (source.replace("/", "_")[:-2] + ".o")

    def compile(self, folder, source, out):
        """True if it compiles. Equal code gives an equal object, whatever the
        folder."""
        return subprocess.run(
            [CC, *CFLAGS, f"-I{self.tree}", f"-I{self.tree}/mm/tests/host",
             "-c", source, "-o", str(out)], cwd=folder,
            check=False, stderr=subprocess.DEVNULL).returncode == 0

    def passes(self, folder, replaced="", by=None):
        """Whether all tests pass, with the object of one source replaced."""
        program = Path(folder) / "mmtest"
        objects = [by if s == replaced else self.object_of(s)
                   for s in self.sources]
        subprocess.run([CC, *map(str, objects), *LIBS, "-o", str(program)],
                       check=True)
        with subprocess.Popen([str(program)], text=True,
                              start_new_session=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as run:
            timer = threading.Timer(SECONDS, os.killpg,
                                    (run.pid, signal.SIGKILL))
            timer.start()
            for line in run.stdout:
                if line.startswith("not ok"):    # the others need not run
                    os.killpg(run.pid, signal.SIGKILL)
            timer.cancel()
        return run.returncode == 0

    def survives(self, mutant):
        """Whether no test notices; None if it is no change."""
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            source = Path(folder) / mutant.file
            source.parent.mkdir(parents=True)
            lines = (self.tree / mutant.file).read_text().splitlines(True)
            lines[mutant.line - 1] = mutant.new
            source.write_text("".join(lines))
            out = Path(folder) / "changed.o"
            if not self.compile(folder, mutant.file, out) or \
                    out.read_bytes() == \
                    self.object_of(mutant.file).read_bytes():
                return None
            return self.passes(folder, mutant.file, out)


def try_all(mutants, sample):
    """Tries mutants until `sample` of them could be; returns how many, and
    those that survived."""
    tried, survivors = 0, []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        program = Program(folder)
        if not program.passes(folder):
            sys.exit("mutants: the tests fail without a change")
        for at in range(0, len(mutants), os.cpu_count()):
            some = mutants[at:at + os.cpu_count()]
            for mutant, survived in zip(some, pool.map(program.survives,
                                                       some)):
                if survived is None or tried == sample:
                    continue
                tried += 1
                if survived:
                    survivors.append(mutant)
                    print(f"SURVIVED {mutant}", end="", flush=True)
            if tried == sample:
                break
    return tried, survivors


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="*", metavar="FILE")
    options = parser.parse_args()
    files = options.files or sorted(
        str(p.relative_to(ROOT)) for folder in ("mm", "mm/debug")
        for p in (ROOT / folder).glob("*.c"))
    for file in files:
        if not (ROOT / file).is_file() or not file.endswith(".c"):
            parser.error(f"{file} is not a C file of this tree")
    mutants = [m for file in files for m in mutants_of(file)]
    random.Random(options.seed).shuffle(mutants)
    tried, survivors = try_all(mutants, options.sample)
    print(f"{len(mutants)} mutants; seed {options.seed}: {tried} tried, "
          f"{tried - len(survivors)} killed, {len(survivors)} survived")


if __name__ == "__main__":
    main()
