"""The labs: docs/labs/NN-name/lab.toml as data, and the tree that holds them.

    lab = labs.load(ROOT, 2)        # one lab, checked
    labs.all_labs(ROOT)             # all labs of the tree
    labs.handed_out(ROOT, lab)      # {path: text}, its solutions cut
    labs.all_open(ROOT)             # the same of all labs at once

Every error raises LabError with one line that names the place.
docs/labs.md explains what each key is for.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.grading import cuts, forms, functions

try:
    import tomllib
except ImportError:  # Python before 3.11; tools/setup installs this
    import tomli as tomllib

FOLDER = "docs/labs"
APPARATUS = "tools/"
SOLUTION = "solution"   # in a lab's folder: files that the tree has not solved
STAMP = ".lab"      # in a hand-out: which lab, seed and version it is
HEADERS = ".headers"    # there: the SHA-256 of each header

# Folders to skip where there is no git to list the files.
PRODUCTS = {".git", ".venv", "__pycache__", ".pytest_cache", "build"}


class LabError(Exception):
    """An error in a lab, in the tree or in what the user wrote."""


def command(name, main, *errors):
    """Runs the main() of a command, whose result is the exit status. An error
    is one line, and the status 2."""
    sys.stdout.reconfigure(errors="backslashreplace")  # as that of stderr
    try:
        sys.exit(main())
    except (LabError, OSError, *errors) as e:
        print(f"{name}: {e}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


# ---- lab.toml --------------------------------------------------------------

@dataclass
class Test:
    """A test of the kernel, run in a machine of its own."""
    name: str
    tasks: list
    points: int
    hint: str
    append: str = ""
    hidden: bool = False    # the grader alone runs it


@dataclass
class Question:
    """A question, answered in answers.toml in one of forms.FORMS, and checked
    by answers.py; against the grader's own kernel if `pristine`."""
    id: str
    tasks: list
    points: int
    text: str
    hint: str
    form: str
    words: list = field(default_factory=list)   # of the form "word"
    pristine: bool = False

    @property
    def name(self):
        return self.id


@dataclass
class Open:
    """The open stage: the same lab, but of `files` a hand-out has the heads of
    functions alone, except those of `keep`. Earns points if all tests pass."""
    name: str
    files: list
    points: int
    keep: list = field(default_factory=list)
    hint: str = "all tests of the lab must pass"
    title: str = "the open stage"
    tasks: list = field(default_factory=list)


@dataclass
class Lab:
    folder: Path        # from the tree's root
    number: int
    title: str
    reading: list
    files: list
    tasks: list         # their numbers; the lab's page has their titles
    shift: int = 2
    cpus: int = 1
    mine: str = ""
    given: bool = False
    offers: list = field(default_factory=list)
    tests: list = field(default_factory=list)
    questions: list = field(default_factory=list)
    open: Open = None
    opened: bool = False    # it is the open stage that is handed out, or graded

    @property
    def page(self):
        return str(self.folder / "README.md")

    @property
    def answers(self):
        """The student's answers, and their checker, which is not handed
        out."""
        return self.folder / "answers.toml", self.folder / "answers.py"

    def solution(self, root, name):
        """The name of the file that holds the solution of the hand-in file
        `name`: a copy in the lab's folder where the tree is to have a skeleton,
        or that file itself."""
        copy = f"{self.folder}/{SOLUTION}/{name}"
        return copy if (Path(root) / copy).exists() else name

    @property
    def stamp(self):
        """What a hand-out's .lab says of the lab. The number of processors is
        there if the kernel is one for several: the makefiles read it."""
        return f"lab = {self.number}\n" + \
            (f"cpus = {self.cpus}\n" if self.cpus > 1 else "")

    @property
    def items(self):
        """Everything that earns points."""
        return self.tests + self.questions


# The keys of lab.toml: their types, and whether they are required.
TEXT, TEXTS, NUMBER, SWITCH = "a text", "a list of texts", "a number", \
    "true or false"
KEYS = {
    "lab": {"number": (NUMBER, True), "title": (TEXT, True),
            "reading": (TEXTS, True), "files": (TEXTS, True),
            "tasks": (TEXTS, True), "shift": (NUMBER, False),
            "cpus": (NUMBER, False),
            "mine": (TEXT, False), "given": (SWITCH, False),
            "offers": (TEXTS, False)},
    "open": {"files": (TEXTS, True), "points": (NUMBER, True),
             "keep": (TEXTS, False)},
    "test": {"name": (TEXT, True), "tasks": (TEXTS, True),
             "points": (NUMBER, True), "hint": (TEXT, True),
             "append": (TEXT, False), "hidden": (SWITCH, False)},
    "question": {"id": (TEXT, True), "tasks": (TEXTS, True),
                 "points": (NUMBER, True), "text": (TEXT, True),
                 "hint": (TEXT, True), "form": (TEXT, True),
                 "words": (TEXTS, False), "each": (TEXTS, False),
                 "pristine": (SWITCH, False)},
}
TABLES = {"test": Test, "question": Question}


def _is_a(value, kind):
    if kind == SWITCH:
        return isinstance(value, bool)
    if kind == NUMBER:
        return isinstance(value, int) and not isinstance(value, bool) \
            and value >= 0
    if kind == TEXTS:
        return isinstance(value, list) and \
            all(isinstance(v, str) and v for v in value)
    return isinstance(value, str) and value.strip() != ""


def _checked(table, kind, place):
    """A table of lab.toml, after a check of its keys."""
    keys = KEYS[kind]
    if not isinstance(table, dict):
        raise LabError(f"{place} is not a table")
    for key, value in table.items():
        if key not in keys:
            raise LabError(f"{place}: unknown key {key}; there are "
                           f"{', '.join(keys)}")
        if not _is_a(value, keys[key][0]):
            raise LabError(f"{place}: {key} must be {keys[key][0]}")
    for key, (_, needed) in keys.items():
        if needed and key not in table:
            raise LabError(f"{place}: {key} is missing")
    return table


def _rows(row, place):
    """The rows that a row of lab.toml means: itself, or one for each name in
    `each`, with the name for {} in its texts and with the task in the same
    place of `tasks`."""
    names = row.pop("each", None)
    if names is None:
        return [row]
    if len(names) != len(row["tasks"]):
        raise LabError(f"{place}: each has {len(names)} names for "
                       f"{len(row['tasks'])} tasks")
    texts = {key: text for key, text in row.items() if isinstance(text, str)}
    return [{**row, "tasks": [task], **{
        key: text.replace("{}", name) for key, text in texts.items()}}
            for name, task in zip(names, row["tasks"])]


def parse(path):
    """A TOML file as data."""
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError as e:
        raise LabError(f"{path} does not exist") from e
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise LabError(f"{path}: {e}") from e


def read(root, folder):
    """The lab in a folder of the tree, checked by itself."""
    path = Path(folder) / "lab.toml"
    data = parse(Path(root) / path)
    lists = {name: data.pop(name, []) for name in TABLES}
    stage = data.pop("open", None)
    lab = Lab(folder=Path(folder), **_checked(data, "lab", path))
    for name, kind in TABLES.items():
        if not isinstance(lists[name], list):
            raise LabError(f"{path}: {name} must be written [[{name}]]")
        rows = []
        for number, row in enumerate(lists[name], 1):
            place = f"{path}: {name} {number}"
            rows += _rows(_checked(row, name, place), place)
        setattr(lab, name + "s", [kind(**row) for row in rows])
    if stage is not None:
        lab.open = Open(name=f"{lab.number}.open",
                        **_checked(stage, "open", f"{path}: open"))
    _check(root, lab, path)
    # those of one task together
    lab.questions.sort(key=lambda q: lab.tasks.index(q.tasks[-1]))
    return lab


def _check(root, lab, path):
    def fail(text):
        raise LabError(f"{path}: {text}")
    number = re.match(r"(\d\d)-[a-z-]+$", lab.folder.name)
    if not number or int(number.group(1)) != lab.number:
        fail(f"number = {lab.number}, but the folder is {lab.folder.name}")
    if lab.shift > 10:
        fail("shift must be at most 10")
    if not 1 <= lab.cpus <= 8:
        fail("cpus must be 1 to 8")
    _check_names(lab, fail)
    points = sum(item.points for item in lab.items)
    if points != 100:
        fail(f"the points add up to {points}, not 100")
    _check_files(Path(root), lab, fail)


def _check_names(lab, fail):
    names = lab.tasks + [i.name for i in lab.items]
    for name in names:
        if names.count(name) > 1:
            fail(f"{name} is there twice")
    for task in lab.tasks:
        if not re.fullmatch(rf"{lab.number}\.\d+", task):
            fail(f"task {task}: an id is {lab.number}., and a number")
    for test in lab.tests:
        if not re.fullmatch(rf"{lab.number}\.[a-z]\w*", test.name):
            fail(f"test {test.name}: a name is {lab.number}., and a word")
    for question in lab.questions:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", question.id):
            fail(f"question {question.id}: an id is one word of small letters")
        if question.form not in forms.FORMS:
            fail(f"question {question.id}: unknown form {question.form:.20}; "
                 f"there are {', '.join(forms.FORMS)}")
        if (question.form == "word") != bool(question.words):
            fail(f"question {question.id}: words are for the form word")
    known = set(lab.tasks)
    for item in lab.items:
        if not item.tasks:
            fail(f"{item.name} needs no task, so doing nothing would earn it")
        if item.points == 0:
            fail(f"{item.name} has no points")
        for task in item.tasks:
            if task not in known:
                fail(f"{item.name} names the unknown task {task}")
    for task in sorted(known - {t for i in lab.items for t in i.tasks}):
        fail(f"no test and no question needs task {task}")


def _check_files(root, lab, fail):
    if not lab.files:
        fail("files is empty: nothing would be handed in")
    for name in lab.files:
        if os.path.isabs(name) or os.path.normpath(name) != name \
                or name.startswith(".."):
            fail(f"files: {name} is not a path from the tree's root")
        if lab.files.count(name) > 1:
            fail(f"files: {name} is there twice")
        if name.endswith(".h"):
            fail(f"files: {name} is a header, which tests would include")
        if not (root / name).is_file() or (root / name).is_symlink():
            fail(f"files: {name} is not a file")
    for name in lab.open.files if lab.open else ():
        if name not in lab.files or not name.endswith(".c"):
            fail(f"open: {name} is no C file among those that are handed in")
    if lab.mine and not (root / lab.folder / lab.mine).is_file():
        fail(f"mine: {lab.folder}/{lab.mine} is not a file")
    for name in lab.offers:
        if not (root / name).is_file() and not (root / STAMP).exists():
            fail(f"offers: {name} is not a file")
    sheet, checker = lab.answers
    if lab.questions:
        if str(sheet) not in lab.files:
            fail(f"there are questions, but {sheet} is not among the files")
        if not (root / checker).is_file() and not (root / STAMP).exists():
            fail(f"there are questions, but no {checker}")


# ---- the tree --------------------------------------------------------------

def folders(root):
    """The labs' folders, by number."""
    found = (p for p in (Path(root) / FOLDER).glob("[0-9][0-9]-*")
             if p.is_dir())
    return {int(p.name[:2]): p.relative_to(root) for p in sorted(found)}


def all_labs(root):
    return [read(root, folder) for folder in folders(root).values()]


def load(root, number):
    """Lab `number`, a number or text that the user typed."""
    there = folders(root)
    if not there:
        raise LabError("this tree has no labs")
    if not re.fullmatch(r"\d{1,2}", str(number)) or int(number) not in there:
        raise LabError(f"there is no lab {number!s:.20}; there are "
                       f"{', '.join(map(str, there))}")
    return read(root, there[int(number)])


def open_stage(lab):
    """The open stage of a lab."""
    if lab.open is None:
        raise LabError(f"lab {lab.number} has no open stage")
    return replace(lab, opened=True)


def tracked(root):
    """The names of the tree's files without products: those that git tracks,
    or all in a tree without git."""
    root = Path(root)
    if (root / ".git").exists():
        done = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=False,
                              capture_output=True)
        if done.returncode == 0:
            names = done.stdout.decode().split("\0")[:-1]
            return sorted(n for n in names if os.path.lexists(root / n))
    names = []
    for folder, below, files in os.walk(root):
        if STAMP in files and Path(folder) != root:  # a hand-out in the tree
            below[:] = files[:] = []
        below[:] = [n for n in below if n not in PRODUCTS]
        names += [os.path.relpath(os.path.join(folder, n), root)
                  for n in files if not n.endswith(".pyc")]
    return sorted(names)


# What no hand-out has: the tools of authors and instructors; the tests of the
# whole tree, which hold solutions or need them, and cost the first `make grade`
# a third of its time, but those that a lab uses; and what answers questions,
# because it would answer them for students.
FOR_AUTHORS = re.compile(
    r"\.ci/|\.github/|tools/test/|tools/make/test\.mk|tools/workshop/trace/|"
    r"tools/grading/(jplag|key|leaks|marks|mutants|soak)\.|"
    r"(?!docs/|kernel/fs/)(\w+/)+tests/"
    r"(?!(kmem|debug)_test\.|fault\.h|servers$|bench\.c|devtest/|r1\.[ch]|"
    r"trace\.h)|"
    rf"{FOLDER}/[^/]+/(cuts/|given/|{SOLUTION}/|wrong/|INSTRUCTOR\.md|"
    r"answers\.py|hidden\.py|survivors\.txt|witness\.py)")


def belongs(name, lab):
    """Whether a file of the tree may be in the hand-out of a lab. Nothing of
    another lab is: a later one would be read there."""
    parts = Path(name).parts
    if FOR_AUTHORS.match(name):
        return False
    if parts[:2] != ("docs", "labs") or len(parts) <= 3:
        return True
    return Path(*parts[:3]) == lab.folder


def in_hand_out(root, lab, names):
    """Those of the files `names` that the hand-out of a lab has."""
    away = _of_others(root, lab)
    return [n for n in names if belongs(n, lab) and n not in away]


# A part of a page that says what a lab asks, as far as <!-- /asked -->.
ASKED = re.compile(r"^<!-- asked in lab (\d+) -->\n.*?^<!-- /asked -->\n",
                   re.M | re.S)


# The slides of a lab. Their quotations are the speaker's notes, which only
# instructors have.
SLIDES = "slides.md"
NOTES = re.compile(r"^>.*\n", re.M)


def without_notes(name, text):
    """A page as students see it."""
    return NOTES.sub("", text) if Path(name).name == SLIDES else text


def page_in_hand_out(lab, name, text):
    """A page without the speaker's notes, and without what this lab or a later
    one asks."""
    text = without_notes(name, text)
    return ASKED.sub(lambda part: part[0] if int(part[1]) < lab.number else
                     f"(Lab {part[1]} asks for what is here in the book.)\n",
                     text)


def all_cuts(root, lab, folder="cuts"):
    """All cuts of a lab, checked for themselves. A hand-out has none. Those of
    the folder "given" replace solutions in its objects for GIVEN=1."""
    found = []
    for path in sorted((Path(root) / lab.folder / folder).glob("*")):
        name = path.relative_to(root)
        if path.suffix != ".cut" or path.stem not in lab.tasks:
            raise LabError(f"{name}: cuts of a task are in TASK.cut, and "
                           f"{lab.folder}/lab.toml has no task {path.stem}")
        try:
            found += cuts.read(name, path.read_text("utf-8-sig"))
        except UnicodeDecodeError as e:
            raise LabError(f"{name}: {e}") from e
        except cuts.CutError as e:
            raise LabError(str(e)) from e
    for cut in found:
        if cut.path not in lab.files:
            raise LabError(f"{cut.source}:{cut.line}: {cut.path} is not among "
                           f"the files that {lab.folder}/lab.toml hands in")
    return found


def replaced(root, lab, cut):
    """The lines of the solution that a cut replaces."""
    path = Path(root) / lab.solution(root, cut.path)
    lines = path.read_text("utf-8").splitlines()
    start, end = cuts.span(cut, lines)
    return lines[start:end]


def _foreign(root, lab):
    """[(lab, cut)] of all other labs."""
    return [(other, cut) for other in all_labs(root)
            if other.number != lab.number for cut in all_cuts(root, other)]


def _of_others(root, lab):
    """The sources with solutions that other labs cut and this one does not hand
    in."""
    return {cut.path for other, cut in _foreign(root, lab)
            if other.solution(root, cut.path) == cut.path} - set(lab.files)


def withheld(root, lab):
    """Those that the kernel of a lab runs: its hand-out has objects of them.
    (The apparatus does without.)"""
    return {name for name in _of_others(root, lab)
            if not name.startswith((FOLDER, APPARATUS))}


def _later(root, lab):
    """(cuts of later labs in this one's files, those of them without whose
    tasks the kernel does not run)."""
    later = [cut for other, cut in _foreign(root, lab)
             if other.number > lab.number and cut.path in lab.files]
    needed = {cut.task for cut in later if cut.missing}
    return later, [cut for cut in later if cut.task in needed]


def later_functions(root, lab):
    """{path: names} of the functions in this lab's files that later labs ask
    for and its kernel runs: its hand-out has objects of them."""
    found = {}
    for cut in _later(root, lab)[1]:
        found.setdefault(cut.path, set()).add(cut.function)
    return found


def later_parts(root, lab):
    """{path: source} of the objects with these functions."""
    parts = {path: functions.part((Path(root) / path).read_text("utf-8"), names)
             for path, names in later_functions(root, lab).items()}
    for cut in all_cuts(root, lab):
        if any(f.name == cut.function
               for f in functions.functions(parts.get(cut.path, ""))):
            raise LabError(f"{cut.source}:{cut.line}: {cut.path}: "
                           f"{cut.function} would be in the object of what "
                           "later labs ask for")
    return parts


def given_parts(root, lab):
    """{path: source} of the objects with which `make run GIVEN=1` replaces the
    functions that a student of the lab has not written."""
    if not lab.given:
        return {}
    found = {}
    for cut in all_cuts(root, lab):
        if cut.function != cuts.FILE_SCOPE:
            found.setdefault(cut.path, set()).add(cut.function)
    for path in lab.open.files if lab.opened else ():
        found[path] = {f.name for f in functions.functions(
            hand_in(root, lab)[path]) if not f.static} - set(lab.open.keep)
    texts = _made(root, lab, lab.tasks)
    texts.update(_cut(root, lab, all_cuts(root, lab, "given"), texts))
    return {path: functions.part(
        texts.get(path) or (Path(root) / path).read_text("utf-8"), names,
        weak=True) for path, names in found.items()}


def _cut(root, lab, several, texts=()):
    """{name: text} of the files in which the cuts `several` of a lab are.
    `texts` are those that are not as in the tree. Raises LabError at the first
    cut that does not fit."""
    wanted, texts = {}, dict(texts)
    for cut in several:
        wanted.setdefault(cut.path, []).append(cut)
    try:
        return {name: cuts.apply(texts.get(name) or
                                 (Path(root) / name).read_text("utf-8"),
                                 there, lab.page)
                for name, there in wanted.items()}
    except cuts.CutError as e:
        raise LabError(str(e)) from e


def _solutions(root, lab):
    """{name: text} of the hand-in files that the tree has not solved."""
    there = {name: lab.solution(root, name) for name in lab.files}
    return {name: (Path(root) / copy).read_text("utf-8")
            for name, copy in there.items() if copy != name}


def _made(root, lab, solved, texts=()):
    """{name: text} of the files that cuts of this lab, except those of the
    tasks `solved`, and of later ones change. `texts` are those that are not as
    in the tree."""
    texts = {**_solutions(root, lab), **dict(texts)}
    later, needed = _later(root, lab)
    return {**texts, **_cut(root, lab, [
        cut for cut in all_cuts(root, lab) + later
        if cut not in needed and cut.task not in solved], texts)}


def handed_out(root, lab, solved=(), texts=()):
    """{name: text} of the files that differ in the hand-out of a lab with the
    tasks `solved` done. `texts` are those that are not as in the tree."""
    made = _made(root, lab, solved, texts)
    for path, names in later_functions(root, lab).items():
        text = made.get(path) or (Path(root) / path).read_text("utf-8")
        made[path] = functions.rest(text, names)
    if lab.opened:
        for path in lab.open.files:
            text = made.get(path) or (Path(root) / path).read_text("utf-8")
            made[path] = cuts.outline(text, lab.open, path, lab.page)
    return made


def solved(root, lab, texts=()):
    """The same, with all tasks done."""
    return handed_out(root, replace(lab, opened=False), lab.tasks, texts)


def hand_in(root, lab):
    """{name: text} of the solution's hand-in files."""
    done = solved(root, lab)
    return {name: done.get(name) or (Path(root) / name).read_text("utf-8")
            for name in lab.files}


def all_open(root):
    """{name: text} of the files that differ where no task of any lab is
    done."""
    texts = {}
    for lab in all_labs(root):
        texts.update(_cut(root, lab, [
            cut for cut in all_cuts(root, lab)
            if lab.solution(root, cut.path) == cut.path], texts))
    return texts


def check_cuts(root):
    """(number of cuts, [error]), over all labs."""
    count, problems = 0, []
    for lab in all_labs(root):
        try:
            count += len(all_cuts(root, lab) + all_cuts(root, lab, "given"))
            handed_out(root, lab)
            given_parts(root, lab)
        except LabError as e:  # of this lab, or of one that it looks at
            problems += [] if str(e) in problems else [str(e)]
    if not problems:  # each lab's fit the tree; do they fit each other?
        try:
            all_open(root)
        except LabError as e:
            problems.append(str(e))
    return count, problems


def check_patches(root):
    """(number of wrong solutions, [error]), over all labs: each wrong solution
    is a diff against the tree as it is."""
    patches = sorted((Path(root) / FOLDER).glob("*/wrong/*.patch"))
    problems = []
    for patch in patches:
        done = subprocess.run(["git", "apply", "--check", "-p1", patch],
                              cwd=root, check=False, capture_output=True,
                              encoding="utf-8")
        if done.returncode != 0:
            problems.append(f"{patch.relative_to(root)}:1: does not apply: "
                            f"{done.stderr.splitlines()[0]}")
    return len(patches), problems
