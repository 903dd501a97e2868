"""Finds solutions in hand-outs: `make leaks`, LAB=2 for one of them.

    python3 -m tools.grading.leaks [--lab n]

A hand-out must not hold what its students are to write, now or in a later lab:
in sources, pages, patches, or any other text. The lines that the cuts of this
lab and of later ones remove are compared with each file of the hand-out, token
by token, so that neither the layout nor a comment matters. A window of WINDOW
tokens that occurs in a file is reported, unless it is an idiom: one that COMMON
files of the tree have.

leaks.toml lists places that may stay, each with a reason. This file, that one
and the cuts are never handed out. Exit status 1 if something was found.
"""

import argparse
import functools
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from tools.grading import lab as handout
from tools.grading import labs
from tools.grading.cuts import CutError, context
from tools.grading.labs import LabError
from tools.grading.tokens import SHORTEST, bare, tokens, windows

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = "tools/grading/leaks.toml"

# How many files have an idiom.
COMMON = 4


# ---- solutions -------------------------------------------------------------

@dataclass(frozen=True)
class Solution:
    """What a cut removes."""
    lab: int
    task: str
    path: str
    function: str
    windows: frozenset


def solutions(root, lab):
    """The solutions of a lab. What a cut only moves is none."""
    cuts, removed, given = labs.all_cuts(root, lab), [], ""
    for cut in cuts:
        top, bottom = context(cut)
        before, after = (tokens(bare("\n".join(lines)))[0] for lines in (
            labs.replaced(root, lab, cut),
            cut.after[top:len(cut.after) - bottom]))
        removed.append(windows(before))
        given += f" {' '.join(after)} \n"
    return [Solution(lab.number, cut.task, cut.path, cut.function, frozenset(
        w for w in before if f" {' '.join(w)} " not in given))
        for cut, before in zip(cuts, removed)]


class Search:
    """Looks for the solutions of some labs of the tree `root`."""

    def __init__(self, root, names, several):
        self.root = Path(root)
        self.solutions = [s for lab in several for s in solutions(root, lab)]
        self.starts = defaultdict(set)
        for window in {w for s in self.solutions for w in s.windows}:
            self.starts[window[:SHORTEST]].add(window)
        self.seen = functools.lru_cache(maxsize=None)(self.occurring)
        count = Counter(w for name in names if not labs.FOR_AUTHORS.match(name)
                        for w in self.seen(self.read(name)))
        self.idioms = {w for w, files in count.items() if files >= COMMON}

    def read(self, name):
        """The text of a file; none if it is not a text."""
        try:
            return (self.root / name).read_text("utf-8")
        except UnicodeDecodeError:
            return ""

    def occurring(self, text):
        """{window: line} of those that a text has, in it or without its
        comments."""
        found = {}
        for form in (text, bare(text)):
            words, places = tokens(form)
            starts = zip(*(words[i:] for i in range(SHORTEST)))
            for at, start in enumerate(starts):
                for window in self.starts.get(start, ()):
                    if tuple(words[at:at + len(window)]) == window:
                        found.setdefault(window, places[at])
        return found

    def in_text(self, text, solutions):
        """[(solution, line, how many of its windows)] of a text."""
        there = {w: line for w, line in self.seen(text).items()
                 if w not in self.idioms}
        for found in solutions if there else ():
            lines = [there[w] for w in found.windows if w in there]
            if lines:
                yield found, min(lines), len(lines)

    def in_hand_out(self, lab, names):
        """[(file, solution, line, how many)] of a lab's hand-out."""
        wanted = [s for s in self.solutions if s.lab >= lab.number]
        return [(name, *found)
                for name, text in handout.contents(self.root, lab, names)
                for found in self.in_text(
                    self.read(name) if text is None else text, wanted)]


# ---- places that may stay --------------------------------------------------

def allowed(root):
    """{(file, task): the numbers of the labs where that may stay}."""
    try:
        return {(place["file"], task): place["labs"]
                for place in labs.parse(Path(root) / ALLOWED)["allowed"]
                if place["reason"] for task in place["tasks"]}
    except KeyError as e:
        raise LabError(f"{ALLOWED}: a place has no {e.args[0]}") from e


def leaks(root, several, may_stay):
    """One line for each leak; and, with all labs, one for each of `may_stay`
    that is none."""
    names, every = labs.tracked(root), labs.all_labs(root)
    search, found, used = Search(root, names, every), {}, set()
    for lab in several:
        for name, what, line, count in search.in_hand_out(lab, names):
            if lab.number in may_stay.get((name, what.task), ()):
                used.add((name, what.task))
            else:
                found.setdefault((name, line, what, count), []).append(
                    str(lab.number))
    for (name, line, what, count), numbers in sorted(
            found.items(), key=lambda leak: leak[0][:2]):
        yield (f"{name}:{line}: holds {what.task}'s solution ({what.path}, "
               f"{what.function}: {count} of {len(what.windows)} windows) in "
               f"the hand-out of lab {', '.join(numbers)}")
    for name, task in sorted(may_stay.keys() - used):
        if several == every:
            yield f"{ALLOWED}:1: {name} holds nothing of {task}'s solution"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lab", metavar="N", default="")
    options = parser.parse_args()
    several = [labs.load(ROOT, options.lab)] if options.lab else \
        labs.all_labs(ROOT)
    found = list(leaks(ROOT, several, allowed(ROOT)))
    print("\n".join(found) or "no hand-out holds a solution")
    return 1 if found else 0


if __name__ == "__main__":
    labs.command("leaks", main, CutError)
