"""Writes the tree that a lab hands out: `make lab LAB=2 OUT=dir`.

    python3 -m tools.grading.lab --lab 2 --out dir [--seed n] [--tasks 2.1,2.3]
        [--open] [--git] [--roster file.csv]

The solutions of that lab are cut from the sources, except those of `tasks`.
What other labs cut is an object, built beforehand, and what is for instructors
is left out (docs/labs.md says what a hand-out has). `seed` is for labs whose
answers depend on the student; the hand-out's file .lab holds it and the number
of the lab, so that `make grade` needs no LAB there, and what the files to hand
in were, so that `make handin` knows which are edited. With --open it is the
lab's open stage. With --git it is a git
repository, into which `make update` merges a newer hand-out. With --roster each
student has a hand-out with their seed, in a folder of their name.
"""

import argparse
import os
import re
import shutil
from hashlib import sha256
from pathlib import Path

from tools.grading import labs, roster, upstream
from tools.grading.labs import LabError
from tools.grading.workshop import SEED_FILE, planted_seed, prebuilt, write

ROOT = Path(__file__).resolve().parents[2]

START = """\
# Lab {number}: {title}

Begin with [{page}]({page}), which lists the reading and the tasks.

    tools/setup     once: installs what is missing
    make run        boots what you have; `help` lists the shell's commands
    make grade      points per test, a hint for each failure
    make gdb        the same kernel under GDB, stopped at its first line
    make handin     packs what you hand in, after checking that it builds

What you hand in is build/handin-lab{number}.tar.gz, which `make handin` writes;
keep the receipt that it prints. It contains

{files}
All else is taken from the original tree when your work is graded, so you can
change other files to try things. But do not change a header that your files
include: `make grade` and `make handin` refuse that. Your code is plain C that
uses what the lab offers: {allowed}
lists it, and `make grade` prints what is not in the list. Parts of the kernel
that other labs ask for are objects, in prebuilt/: leave the structures in the
headers of mm/ and kernel/ as they are.

If `git branch` lists `main` and `upstream`, this tree is a git repository. Your
work is on the branch `main`: commit it as often as you like. When there is a
newer hand-out of this lab,

    make update FROM=dir-or-url

merges what is new into your work, and says what to do if both changed the same
lines. The branch `upstream` has what was handed out; leave it alone.
"""

# For labs whose kernel does not boot before all is written.
GIVEN = """
Your kernel stops where code is missing. `make run GIVEN=1` boots all the same:
objects take the place of the functions that you have not written, and what you
have written runs. `make grade` never uses them.
"""

OPEN = """
This is the open stage: of {files} you have the heads of the
functions. {page} says more. If all tests pass, it earns
{points} points more.
"""

# For labs whose places for code are marked; those that plant bugs have none.
PLACES = """
Each place for your code has a comment with its task:

    grep -n "Task {number}\\." {sources}
"""


def contents(root, lab, names, solved=(), seed=0):
    """(name, text) of each file of a hand-out; the text is None if it is that
    of the tree."""
    cut = labs.handed_out(root, lab, solved)
    for name in labs.in_hand_out(root, lab, names):
        source, text = Path(root) / name, cut.get(name)
        if name == SEED_FILE:
            text = planted_seed(name, source.read_text(encoding="utf-8"), seed)
        elif name.endswith(".md"):
            text = labs.page_in_hand_out(lab, name,
                                         source.read_text("utf-8"))
        yield name, text


def hand_out(root, lab, out, names, solved=(), seed=0):
    """Writes the files of a hand-out to the folder `out`."""
    for name, text in contents(root, lab, names, solved, seed):
        source, target = Path(root) / name, Path(out) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            shutil.copy2(source, target, follow_symlinks=False)
        else:
            target.write_text(text, encoding="utf-8")
            shutil.copymode(source, target)
    for name, data in prebuilt(root, lab).items():
        write(Path(out) / name, data)


def version(root):
    """The state of the tree, as git describes it."""
    status, said = upstream.Repository(root).run("describe", "--always",
                                                 "--dirty")
    return said if status == 0 else "unknown"


def last_change(root):
    """When the tree's last commit was made, or "": so that the same hand-out is
    the same commit."""
    status, said = upstream.Repository(root).run("log", "-1", "--format=%cI")
    return said if status == 0 else ""


def write_extras(root, lab, out, seed, solved):
    """Writes .lab, .headers and START-HERE.md."""
    tasks = ", ".join(f'"{task}"' for task in sorted(solved))
    (out / labs.STAMP).write_text(
        f"# Written by `make lab`; `make grade` reads it.\n"
        f"{lab.stamp}seed = {seed}\nsolved = [{tasks}]\n"
        + ("open = true\n" if lab.opened else "") +
        f'version = "{version(root)}"\n'
        "\n[files]\n" + "".join(
            f'"{name}" = "{sha256((out / name).read_bytes()).hexdigest()}"\n'
            for name in lab.files), encoding="utf-8")
    (out / labs.HEADERS).write_text("".join(
        f"{sha256(path.read_bytes()).hexdigest()} {path.relative_to(out)}\n"
        for path in sorted(out.rglob("*.h"))), encoding="utf-8")
    files = "".join(f"    {name}\n" for name in lab.files)
    text = START.format(number=lab.number, title=lab.title, page=lab.page,
                        files=files, allowed=lab.folder / "allowed.toml")
    text += GIVEN if lab.given else ""
    mark = f"Task {lab.number}."
    marked = [name for name in lab.files if not name.endswith(".toml")
              and mark in (out / name).read_text("utf-8")]
    if marked:
        text += PLACES.format(number=lab.number, sources=" ".join(marked))
    if lab.opened:
        text += OPEN.format(page=lab.page, files=" ".join(lab.open.files),
                            points=lab.open.points)
    (out / "START-HERE.md").write_text(text, encoding="utf-8")


# ---- the command line ------------------------------------------------------

def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("lab", "out", "seed", "tasks", "roster"):
        parser.add_argument(f"--{name}", metavar=name.upper(), default="")
    parser.add_argument("--git", action="store_true")
    parser.add_argument("--open", action="store_true")
    return parser.parse_args()


def wanted_tasks(lab, text):
    """The tasks of TASKS=2.1,2.3 or TASKS=all, as a set."""
    known = lab.tasks
    tasks = set(known if text == "all" else re.findall(r"[^\s,]+", text))
    for task in sorted(tasks - set(known)):
        raise LabError(f"TASKS: lab {lab.number} has no task {task!s:.20}; "
                       f"there are {', '.join(known)}")
    return tasks


def empty_folder(text):
    """Makes the folder OUT."""
    if not text:
        raise LabError("OUT is missing: make lab LAB=2 OUT=dir")
    out = Path(text)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise LabError(f"OUT: {out} is not empty")
    except OSError as e:
        raise LabError(f"OUT: {out}: {e.strerror}") from e
    return out


def seeds_of(options):
    """{folder below OUT: seed} of the hand-outs to make."""
    found = roster.chosen(options.seed, options.roster)
    for name in found:
        if "/" in name or name in (".", ".."):
            raise LabError(f"ROSTER: {name} cannot be the name of a folder")
    return found


def main():
    options = parse()
    if (ROOT / labs.STAMP).exists():
        raise LabError("this tree is a hand-out itself: make lab works in the "
                       "tree that has the solutions")
    if not options.lab:
        raise LabError("LAB is missing: make lab LAB=2 OUT=dir")
    lab = labs.load(ROOT, options.lab)
    lab = labs.open_stage(lab) if options.open else lab
    solved = wanted_tasks(lab, options.tasks)
    seeds = seeds_of(options)
    names = labs.tracked(ROOT)
    labs.handed_out(ROOT, lab, solved)  # before anything is written
    folder = empty_folder(options.out)
    for name, seed in seeds.items():
        out = folder / name
        hand_out(ROOT, lab, out, names, solved, seed)
        write_extras(ROOT, lab, out, seed, solved)
        if options.git:
            upstream.begin(out, f"Lab {lab.number}: {lab.title}",
                           last_change(ROOT))
        print(f"{out}: lab {lab.number}, {lab.title}; begin with "
              f"{os.path.join(out, 'START-HERE.md')}")


if __name__ == "__main__":
    labs.command("lab", main)
