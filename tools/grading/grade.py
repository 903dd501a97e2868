"""Grades labs: `tools/grade TREE...` for instructors, `make grade` in a tree.

    tools/grade [--lab 2] [--open] [--roster seeds.csv] [--out dir] TREE...
    tools/grade --here [--lab 2]        this tree: make grade

The hand-in files of the lab (lab.toml) are taken from TREE, a folder or the
archive of `make handin`, all other files from the tree of this program. The
kernel is built, each test runs in a machine of its own, and a report lists the
points and explains the lost ones. The lab is read from the tree's .lab unless
given. The seed is the roster's, or that of --seed, or 0; a tree whose .lab has
another one is not graded without them.

Writes report.txt, results.json (Gradescope) and junit.xml to build/grade; for
several trees, to a folder for each, with summary.csv beside them. Of a tree
that cannot be graded the first two have the reason. Exit status 0
if all points were earned, 1 if not, 2 if grading failed.
"""

import argparse
import contextlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.grading import archive, grading, labs, questions, report, roster
from tools.grading import screen, tokens, workshop
from tools.grading.archive import ArchiveError
from tools.grading.budget import EACH, WHOLE, Budget
from tools.grading.grading import GradeError
from tools.grading.labs import LabError
from tools.grading.questions import Machine
from tools.run import sandbox

ROOT = Path(__file__).resolve().parents[2]

# A file of the open stage that holds more than this of the lab's is looked at.
COPIED = 0.3


# The folders to build in. Results are in the same one, if no other is named.
SHOPS = "work", "pristine"


class Skipped(Exception):
    """A tree cannot be graded; the text says why."""


# ---- which lab -------------------------------------------------------------

def stamp(tree):
    """A hand-out's .lab: {"lab": 2, "seed": 7, ...}, or nothing. `files` are
    the SHA-256 of what is handed in, as it was handed out."""
    try:
        with open(tree / labs.STAMP, "rb") as f:
            data = labs.tomllib.loads(f.read(4096).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {key: data[key] for key, kind in
            (("lab", int), ("seed", int), ("version", str), ("files", dict),
             ("open", bool), ("gcc", str)) if type(data.get(key)) is kind}


def whose(seed, options):
    """Whose hand-out has this seed, as a part of a message: a hint, since a
    student can edit .lab."""
    names = [name for name, given in options.roster.items() if given == seed]
    return f"; its .lab has the seed of {' and '.join(names)}: rename the " \
        "tree so, or use --name" if names and seed is not None else ""


def seed_of(tree, own, options):
    """(seed, note for the instructor or None). `own` is what the tree's .lab
    says, which a student can edit; None: nothing."""
    name = options.name or archive.name_of(tree)
    if options.seed:
        seed = roster.seed_number(options.seed)
    elif options.here:
        seed = own or 0
    elif options.roster is None:
        seed = 0
        if own not in (None, seed):
            raise Skipped(f"its .lab says that it was handed out with seed "
                          f"{own}: use --roster or --seed")
    elif name not in options.roster:
        raise Skipped(f"{name} is not in the roster" + whose(own, options))
    elif options.roster[name] is None:
        raise Skipped(f"{name} is a group whose members have several seeds in "
                      "the roster: use --seed")
    else:
        seed = options.roster[name]
    return seed, None if own in (None, seed) else f"its .lab says seed {own}"


def which(tree, folder, options):
    """(Lab, seed, notes, version) of a tree whose files are in `folder`."""
    said = stamp(folder) or stamp(workshop.inner(folder) or folder)
    number = options.lab or said.get("lab")
    if number is None:
        raise Skipped("which lab? it has no .lab: use --lab N (make grade "
                      "LAB=N)")
    lab, opened = labs.load(ROOT, number), said.get("open", False)
    seed, note = seed_of(tree, said.get("seed"), options)
    notes = [note] if note else []
    if said.get("lab", lab.number) != lab.number:
        notes.append(f"its .lab says lab {said['lab']}")
    if said.get("gcc", ours := workshop.gcc(ROOT)) != ours:
        notes.append(f"its .lab says gcc {said['gcc']}, and {ours} grades: "
                     "answers that depend on it can be wrong here")
    if opened and not options.here and not options.open:
        raise Skipped("its .lab says that it is of the open stage: use --open")
    if options.open and not opened:
        notes.append("its .lab does not say that it is of the open stage")
    if options.open or options.here and opened:
        lab = labs.open_stage(lab)
    return lab, seed, notes, grading.clean(said.get("version", ""))


def nothing_of(lab, folder):
    """Why a folder has none of the lab's files."""
    number = stamp(workshop.inner(folder) or folder).get("lab", lab.number)
    inside = sorted(p.name for p in folder.iterdir() if p.name[0] != ".")
    if number != lab.number:
        return f"is a tree of lab {number}"
    if len(inside) < 2:
        return f"has only {grading.clean(inside[0])}, which is no archive of " \
            "`make handin`" if inside else "is empty"
    return f"has none of the files of lab {lab.number} (an archive must be " \
        "alone in its folder)"


# ---- grading ---------------------------------------------------------------

def answers_of(lab, sheet, own=None, pristine=None):
    """Outcomes of the lab's questions. `sheet` is the content of
    answers.toml."""
    path = ROOT / lab.answers[1]
    checker = questions.load_checker(path) if path.exists() else None
    return questions.check(lab, sheet, checker, own, pristine)


def grade_here(options):
    """Grades this tree, with its own build."""
    lab, seed, _, version = which(ROOT, ROOT, options)
    budget = Budget(options.patience, options.budget)
    build, kind = workshop.kind(ROOT, lab)
    errors = workshop.make(ROOT, budget, options=kind) or \
        screen.errors(ROOT, lab, budget)
    kernel = None if errors else build / "slate-workshop.elf"
    path = ROOT / lab.answers[0]
    sheet = path.read_bytes() if path.is_file() else b""
    return grading.Grade(
        lab, grading.run_tests(kernel, lab, budget,
                               grading.hidden_options(ROOT, lab, seed)) +
        answers_of(lab, sheet, Machine(ROOT, kernel, seed, budget)),
        errors or "", questions.unknown(lab, sheet), seed=seed,
        version=version)


class Grader:
    """Grades trees one after another."""

    def __init__(self, options):
        self.options = options
        self.budget = Budget(options.patience, options.budget)
        base = Path(options.work or ROOT / "build/grade")
        self.shop = workshop.Workshop(ROOT, base / SHOPS[0], self.budget,
                                      boxed=True)
        self.own = workshop.Workshop(ROOT, base / SHOPS[1], Budget())

    @contextlib.contextmanager
    def pristine(self, lab, seed):
        """A Machine with the kernel of the lab's solution. Meanwhile no other
        grader rebuilds it."""
        with self.own.alone():
            self.own.budget.begin()
            self.own.put({}, lab, seed)
            built = self.own.build()
            if built.kernel is None:
                raise GradeError("the grader's own tree does not build:\n"
                                 f"{built.errors}")
            yield Machine(self.own.folder, built.kernel, seed, self.own.budget)

    def build(self, lab):
        """Builds what was put into the workshop; there is no kernel if it has
        what no hand-in may have."""
        built = self.shop.build()
        refused = screen.errors(self.shop.folder, lab, self.budget,
                                boxed=True) if built.kernel else ""
        return workshop.Built(errors=refused) if refused else built

    def grade(self, tree):
        with archive.opened(tree) as (folder, left_out):
            lab, seed, notes, version = which(tree, folder, self.options)
            handed = workshop.collect(folder, lab.files)
            if not handed.files:
                raise Skipped(nothing_of(lab, folder))
        plain = workshop.as_handed_out(ROOT, lab, lab.files)
        self.budget.begin()
        with self.shop.alone():
            self.shop.put({**plain, **handed.files}, lab, seed)
            built = self.build(lab)
            grade = grading.Grade(
                lab, grading.run_tests(built.kernel, lab, self.budget,
                                       grading.hidden_options(ROOT, lab, seed)),
                built.errors, handed.problems, seed=seed, version=version)
            self.ask(grade, handed.files, built.kernel)
        grade.notes += left_out + notes
        grade.notes += self.copies(lab, handed.files) if lab.opened else []
        grade.notes += [f"{o.item.name}: {o.text[-1]}"
                        for o in grade.outcomes if o.state == "changed"]
        return grade

    @staticmethod
    def copies(lab, files):
        """A line about each file of the open stage that holds much of what the
        lab's other hand-out has."""
        heads, solved = labs.handed_out(ROOT, lab), labs.hand_in(ROOT, lab)
        for name in files.keys() & set(lab.open.files):
            part = tokens.share(files[name].decode(), solved[name],
                                heads[name])
            if part > COPIED:
                yield f"{name}: holds {part:.0%} of the lab's own text"

    def ask(self, grade, files, kernel):
        """Adds the outcomes of the questions."""
        lab, seed = grade.lab, grade.seed
        sheet = files.get(str(lab.answers[0]), b"")
        given = questions.read_answers(sheet)[0]
        kept = any(given.get(q.id, "") != "" and (q.pristine or not kernel)
                   for q in lab.questions)
        with contextlib.ExitStack() as stack:
            with self.budget.paused():
                pristine = stack.enter_context(self.pristine(lab, seed)) \
                    if kept else None
            own = Machine(self.shop.folder, kernel, seed, self.budget) \
                if kernel else pristine
            grade.outcomes += answers_of(lab, sheet, own, pristine)
        grade.problems += questions.unknown(lab, sheet)


# ---- the command line ------------------------------------------------------

def parse():
    parser = argparse.ArgumentParser(
        prog="tools/grade", description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trees", metavar="TREE", nargs="*")
    parser.add_argument("--lab", metavar="N")
    parser.add_argument("--seed", metavar="N",
                        help="what the tree was handed out with (0)")
    parser.add_argument("--roster", metavar="FILE",
                        help="CSV file with the columns name and seed, and\n"
                        "maybe group; a TREE has the name of one")
    parser.add_argument("--name", metavar="NAME",
                        help="of the one TREE in the roster (its folder's)")
    parser.add_argument("--open", action="store_true",
                        help="the lab's open stage")
    parser.add_argument("--out", metavar="DIR",
                        help="folder for the results")
    parser.add_argument("--work", metavar="DIR",
                        help="folder to build in (build/grade)")
    parser.add_argument("--patience", metavar="SECONDS", type=int,
                        default=EACH,
                        help="processor time of each compiler and QEMU\n"
                        f"({EACH})")
    parser.add_argument("--budget", metavar="SECONDS", type=int, default=WHOLE,
                        help="processor time of a whole submission "
                        f"({WHOLE})")
    parser.add_argument("--here", action="store_true")
    options = parser.parse_args()
    if options.here == bool(options.trees):
        parser.error("name the trees to grade, or --here")
    if min(options.patience, options.budget) < 1:
        parser.error("--patience and --budget must be at least a second")
    if options.name and len(options.trees) != 1:
        parser.error("--name is for one tree")
    if options.roster and options.here:
        parser.error("--roster is for trees that were handed in")
    if options.roster:
        options.roster = roster.seeds(roster.read(options.roster))
    return options


def folder_names(trees):
    """A different name for the results of each tree."""
    names = []
    for tree in trees:
        name = archive.name_of(tree) or "root"
        number, free = 2, name
        while free in names or free in SHOPS:
            number, free = number + 1, f"{name}-{number}"
        names.append(free)
    return names


def grade_many(trees, options, out):
    """Grades trees; returns [(name, Grade or error)]."""
    grader, rows, several = Grader(options), [], len(trees) > 1
    for tree, name in zip(trees, folder_names(trees)):
        folder = out / name if several else out
        try:
            grade = grader.grade(tree)
        except (Skipped, ArchiveError, LabError, GradeError, OSError) as e:
            print(f"{tree}: {e}", file=sys.stderr)
            report.refuse(e, folder)
            rows.append((name, str(e)))
            continue
        if several:
            print(f"\n== {tree}")
        show(grade)
        report.write(grade, folder)
        rows.append((name, grade))
    return rows


def show(grade):
    print(report.table(grade), end="", flush=True)
    for note in grade.notes:
        print(f"look at {grading.clean(note)}")


def main():
    options = parse()
    out = Path(options.out or ROOT / "build/grade")
    if sandbox.problem():
        print(f"grade: {sandbox.problem()}", file=sys.stderr)
    if options.here:
        grade = grade_here(options)
        show(grade)
        report.write(grade, out)
        rows = [("here", grade)]
    else:
        rows = grade_many(options.trees, options, out)
    if len(rows) > 1:
        report.write_csv(rows, out / "summary.csv")
        print("\n" + report.summary(rows), end="")
    elif (out.parent / "summary.csv").exists():  # one more of a class
        report.write_csv([(out.name, rows[0][1])], out.parent / "summary.csv")
    if any(isinstance(grade, str) for _, grade in rows):
        return 2
    return 0 if all(grade.complete for _, grade in rows) else 1


if __name__ == "__main__":
    labs.command("grade", main, GradeError, Skipped)
