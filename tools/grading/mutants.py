"""Mutants of a lab's solution: `make lab-mutants LAB=5`. Do the tests of the
lab notice when it is wrong?

    .venv/bin/python -m tools.grading.mutants --lab 5
        [--sample 40] [--seed 1] [--function NAME]

Each mutant (tools/test/mutate.py) of the solution's own lines, which are those
that a cut takes out of the hand-out, is compiled, linked, and booted for each
test of the lab, those of its task first, until one fails. Mutants that do not
build, or compile to the same machine code, do not count. The seed and the
identities of mutants decide which are in a sample.

survivors.txt in the lab's directory, which is never handed out, explains
mutants that no test can or should notice. The others that survive are printed
when they are found, and last how many were killed.
"""

import argparse
import concurrent.futures
import io
import os

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from tools.grading import cuts, grading, labs, stopped, workshop
from tools.grading.budget import Budget
from tools.test import mutants, mutate

ROOT = mutants.ROOT
BUILD = mutants.BUILD
KERNEL = "slate-workshop.elf"


# ---- which -----------------------------------------------------------------

def place_of(cut, text):
    """(start, end) of the characters that a cut replaces."""
    lines = text.splitlines(keepends=True)
    start, end = cuts.span(cut, text.splitlines())
    return len("".join(lines[:start])), len("".join(lines[:end]))


def mutants_of(lab):
    """{mutant: task} of the solution's lines in C."""
    found, texts = {}, labs.hand_in(ROOT, lab)
    every = {name: mutate.mutants_of(name, text)
             for name, text in texts.items() if name.endswith(".c")}
    for cut in labs.all_cuts(ROOT, lab):
        start, end = place_of(cut, texts[cut.path])
        found.update({m: cut.task for m in every.get(cut.path, ())
                      if start <= m.edits[0][0] and m.edits[-1][1] <= end})
    return found


def explained(lab):
    """{identity: reason} of the lab's survivors."""
    return mutants.explained(mutants.text_of(
        ROOT / lab.folder / "survivors.txt"))


# ---- trying ----------------------------------------------------------------

def code(data):
    """What an object puts into memory: its sections, and their relocations."""
    sections = list(ELFFile(io.BytesIO(data)).iter_sections())
    kept = {i for i, s in enumerate(sections)
            if s["sh_flags"] & SH_FLAGS.SHF_ALLOC}
    return [(s.name, s["sh_size"], s.data()) for i, s in enumerate(sections)
            if i in kept or s["sh_type"] == "SHT_REL" and s["sh_info"] in kept]


def solved_tree(lab, folder):
    """Makes the directory hold the lab's solution, built."""
    shop = workshop.Workshop(ROOT, folder, Budget(), workshop.as_before(
        workshop.kind(ROOT, lab)[0]))
    shop.put({}, lab)
    errors = shop.build().errors
    if errors:
        raise RuntimeError(errors)
    return folder


class Tests:
    """The tests of a lab, and a tree with its solution, built, in which mutants
    are built. Only one that is part of a program changes the programs."""

    def __init__(self, lab, tree):
        self.lab, self.tree = lab, tree
        self.build, self.options = workshop.kind(tree, lab)
        self.tasks, self.budget = mutants_of(lab), Budget()
        failed = self.first_failure(lab.tests)
        if failed:
            raise RuntimeError(f"{failed.name} fails without a change")

    def make(self, target):
        """True if make makes it."""
        return workshop.make(self.tree, self.budget, [target],
                             [*self.options,
                              *workshop.as_before(self.build)]) is None

    def object_of(self, file):
        """The object of a file: of the kernel or of a program."""
        return str(workshop.objects_of(self.build, file)[0]
                   .relative_to(self.tree))

    def first_failure(self, tests):
        """A test that fails on the kernel as it is built now, or None."""
        kernel = stopped.Kernel(self.build / KERNEL)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            runs = {pool.submit(grading.run_test, kernel, test,
                                self.lab, self.budget): test
                    for test in tests}
            for run in concurrent.futures.as_completed(runs):
                if run.result().state != "pass":
                    pool.shutdown(cancel_futures=True)
                    return runs[run]
        return None

    def notice(self, mutant):
        """Whether a test notices the mutant; None if it does not count."""
        self.budget.begin()
        name = self.object_of(mutant.file)
        source, made = self.tree / mutant.file, self.tree / name
        text, before = source.read_text(encoding="utf-8"), made.read_bytes()
        whole = "workshop" if (self.build / "user") in made.parents else \
            str((self.build / KERNEL).relative_to(self.tree))
        try:
            source.write_text(mutant.apply(text), encoding="utf-8")
            if not self.make(name) or \
                    code(made.read_bytes()) == code(before) or \
                    not self.make(whole):
                return None
            return self.first_failure(self.tests_for(
                self.tasks[mutant])) is not None
        finally:
            source.write_text(text, encoding="utf-8")
            made.write_bytes(before)    # newer: nothing to compile

    def tests_for(self, task):
        """All tests, those that need the task alone first."""
        return sorted(self.lab.tests, key=lambda t: (
            task not in t.tasks, len(t.tasks)))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lab", required=True)
    parser.add_argument("--sample", type=int, default=0,
                        help="how many; 0: all, which may take an hour")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--function", help="only the mutants of this one")
    options = parser.parse_args()
    lab = labs.load(ROOT, options.lab)
    every = sorted((m for m in mutants_of(lab)
                    if options.function in (None, m.function)),
                   key=lambda m: mutants.place(m, options.seed))
    if not every:
        raise labs.LabError("no mutant is in a solution's line of "
                            f"{options.function or lab.folder}")
    tests = Tests(lab, solved_tree(
        lab, BUILD / "labs" / f"mutants-{lab.folder.name}"))
    result = mutants.try_part(tests, every, options.sample or len(every),
                              mutants.show, explained(lab))
    print(f"{len(every)} mutants; seed {options.seed}: {result}")
    return int(result.faults != [])


if __name__ == "__main__":
    labs.command("lab-mutants", main)
