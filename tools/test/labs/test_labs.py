"""Every lab, proven from the hand-out to the last wrong solution: the hand-out
builds and earns nothing, the solution earns everything, each task alone earns
its points, and each wrong solution loses the points that its patch names.

Each lab has a bench: the tree that `make lab` writes, beside what is built
already, so that only what is cut and put back is compiled. `make test-samples`
proves one lab, and has two wrong solutions of each other one; `make test-all`
proves all labs, `make test-labs LAB=n` lab n.
"""

import json
import os
import re
import shutil
from collections import Counter

import pytest
from elftools.elf.elffile import ELFFile

from conftest import BUILD, ROOT, execute, long, other_kernel, sample, sanitized
from tools.grading import grading
from tools.grading import lab as handout
from tools.grading import cuts, labs, mutants, questions, screen, workshop
from tools.grading.budget import Budget
from tools.run import elf, qemu
from tools.test.mutants import place, try_part

pytestmark = [pytest.mark.workshop, pytest.mark.plain]

QUICKEST = 6  # the lab that each `make test-samples` proves
# One lab of each kind: with objects of later tasks, with programs, on several
# processors.
KINDS = (3, 8, 9)
EACH = 1  # mutants of each solution that are tried, those of the seed 1


def wanted():
    """The labs to be tried: all, or LAB."""
    only = os.environ.get("LAB", "")
    if only:
        return [labs.load(ROOT, only)]
    return labs.all_labs(ROOT)


LABS = wanted()


def params(rows, is_sample=lambda lab, n: False):
    """Parameters of proofs: (lab, ...), those of one lab on one worker. The
    n-th of a lab is a sample if is_sample says so, else long."""
    done, found = Counter(), []
    for lab, *rest in rows:
        found.append(pytest.param(
            lab, *rest,
            id="-".join(filter(None, [lab.folder.name[:2], *rest])),
            marks=[pytest.mark.xdist_group(lab.folder.name),
                   sample if is_sample(lab, done[lab.number]) else long]))
        done[lab.number] += 1
    return found


def two_of_the_quickest(lab, n):
    return lab.number == QUICKEST and n < 2


each_lab = pytest.mark.parametrize("lab", [
    pytest.param(x, id=x.folder.name[:2]) for x in LABS])
EACH_LAB = [(x,) for x in LABS]
each_long = pytest.mark.parametrize("lab", params(EACH_LAB))
each_proof = pytest.mark.parametrize(
    "lab", params(EACH_LAB, two_of_the_quickest))


# ---- the bench -------------------------------------------------------------

class Bench:
    """A lab's hand-out with everything solved, built once; then versions of
    the hand-in files in it."""

    def __init__(self, lab):
        self.lab = lab
        self.tree = BUILD / "labs" / lab.folder.name
        shutil.rmtree(self.tree, ignore_errors=True)
        self.solved = labs.hand_in(ROOT, lab)
        before = workshop.kind(ROOT, lab)[0]
        self.products, options = workshop.kind(self.tree, lab)
        self.options = [*options, *workshop.as_before(before)]
        workshop.copy_products(before, self.products)  # older than what is cut
        handout.hand_out(ROOT, lab, self.tree, labs.tracked(ROOT),
                         lab.tasks)
        handout.write_extras(ROOT, lab, self.tree, 0, lab.tasks)
        self.checker = questions.load_checker(ROOT / lab.answers[1]) \
            if lab.questions else None
        self.solution = self.build({})
        assert not self.solution.errors, self.solution.errors
        self.kept = self.keep_solution()
        self.right = self.checker["solve"](self.kept) if lab.questions else {}

    def put(self, files):
        """Puts {name: text} in the place of hand-in files; all others are
        those of the solution."""
        for name, solved in self.solved.items():
            text, path = files.get(name, solved), self.tree / name
            if path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")

    def build(self, files):
        """Puts files there, and builds."""
        self.put(files)
        errors = workshop.make(self.tree, Budget(), options=self.options) or \
            screen.errors(self.tree, self.lab, Budget())
        kernel = None if errors else self.products / "slate-workshop.elf"
        return workshop.Built(kernel, errors or "")

    def given(self, files):
        """The kernel of GIVEN=1; its programs are those of the first one. It
        begins with the products of the other kind, whose dependencies get its
        folder's name."""
        self.put(files)
        kernel = "build/given/slate-workshop.elf"
        there = (self.tree / kernel).exists()
        if not there:
            workshop.copy_products(self.products, self.tree / "build/given")
            for path in (self.tree / "build/given").rglob("*.d"):
                path.write_text(re.sub(
                    r"\bbuild/", "build/given/",
                    path.read_text("utf-8")), "utf-8")
        errors = workshop.make(self.tree, Budget(),
                               [kernel] if there else ["workshop"],
                               ["GIVEN=1", *self.options])
        assert errors is None, errors
        return self.tree / kernel

    def write_prebuilt(self, lab):
        for name, data in workshop.prebuilt(ROOT, lab).items():
            workshop.write(self.tree / name, data)

    def handed_in(self):
        """The hand-in files as they are now."""
        return {name: (self.tree / name).read_bytes()
                for name in self.lab.files}

    def keep_solution(self):
        """A Machine with the solution's kernel, which others may follow."""
        folder = self.tree / "build/solution"
        folder.mkdir(exist_ok=True)
        for name in ("slate-workshop.elf", "initrd-workshop.tar"):
            shutil.copy(self.products / name, folder)
        return questions.Machine(self.tree, folder / "slate-workshop.elf")

    def grade(self, kernel, answers):
        """{name: outcome} of everything."""
        outcomes = grading.run_tests(
            kernel, self.lab, Budget(),
            grading.hidden_options(ROOT, self.lab, 0))
        if self.lab.questions:
            outcomes += questions.check(
                self.lab, questions.write_answers(answers), self.checker,
                questions.Machine(self.tree, kernel), self.kept)
        return {o.item.name: o for o in outcomes}

    def build_clean(self, files):
        built = self.build(files)
        said = (self.tree / "build/make.log").read_text("utf-8", "replace")
        assert not built.errors, built.errors
        assert "warning:" not in said, said
        return built

    def with_tasks(self, solved):
        """The grade of the hand-out with some tasks solved."""
        built = self.build_clean(labs.handed_out(ROOT, self.lab, solved))
        answers = {q.id: self.right[q.id] for q in self.lab.questions
                   if set(q.tasks) <= solved}
        if answers and "solve_again" in self.checker:
            own = self.checker["solve_again"](
                questions.Machine(self.tree, built.kernel))
            answers.update({k: own[k] for k in own if k in answers})
        return self.grade(built.kernel, answers)


@pytest.fixture(scope="module")
def benches():
    return {}


@pytest.fixture
def bench(lab, kernel, benches, passing):
    """Made once for a lab, in any order of its tests; `kernel` names the make
    target if nothing is built."""
    if sanitized():
        pytest.skip("labs are graded on an ordinary kernel")
    if lab.cpus > 1:  # with programs, of which each bench copies the objects
        other_kernel("smp")
        other_kernel("smp", "initrd-workshop.tar")
    if lab.number not in benches:
        benches[lab.number] = Bench(lab)
        passing.append(benches[lab.number].tree)
    return benches[lab.number]


def told(outcomes):
    """The outcomes as text, for a test that fails."""
    return "\n".join(f"{name}: {o.state}\n    " + "\n    ".join(o.text)
                     for name, o in outcomes.items())


def passed(outcomes):
    return {name for name, o in outcomes.items() if o.state == "pass"}


# ---- the parts of a lab ----------------------------------------------------

def parts(path):
    """The headings of a page and the bold text that begins its paragraphs."""
    return [part.lower() for part in re.findall(
        r"(?m)^(?:#+ (.*)|\*\*(.*?)\*\*)", path.read_text(encoding="utf-8"))
        for part in part if part]


def kernel_tests():
    """{lab: names} of the labs' tests in the kernel."""
    found = {}
    for path in (ROOT / "docs/labs").glob("*/tests/*.c"):
        for number, name in re.findall(
                r"(?m)^LAB_TEST(?:_PANICS)?\((\d+), (\w+),",
                path.read_text(encoding="utf-8")):
            found.setdefault(int(number), set()).add(f"{number}.{name}")
    return found


def test_every_test_of_the_kernel_has_points():
    assert kernel_tests() == {lab.number: {t.name for t in lab.tests}
                              for lab in labs.all_labs(ROOT) if lab.tests}


@each_lab
def test_pages(lab):
    """The pages for students and for instructors have all required parts."""
    page = ROOT / lab.folder / "README.md"
    for word in ("goals", "read", "you get", "task", "hand in",
                 "challenge|no points"):
        assert any(re.search(word, part) for part in parts(page)), word
    text = page.read_text(encoding="utf-8")
    for name in lab.tasks + [t.name for t in lab.tests]:
        assert re.search(rf"(?<![\d.]){re.escape(name)}\b", text), name
    notes = ROOT / lab.folder / "INSTRUCTOR.md"
    for word in ("mistake", "year", "exam"):
        assert any(word in part for part in parts(notes)), word
    text = notes.read_text(encoding="utf-8")
    assert re.search(r"hours|minutes", text)
    questions = re.split(r"(?mi)^#+ .*exam.*$", text)[-1]
    assert len(re.findall(r"(?m)^(?:\d+\.|-|\*\*\d) ?", questions)) >= 5
    for patch in wrong(lab):
        assert patch.stem in text, patch.name


@each_lab
def test_pages_name_suites_that_hand_outs_have(lab):
    there = {suite for name in labs.in_hand_out(ROOT, lab, labs.tracked(ROOT))
             if name.endswith(".c") for suite in re.findall(
                 r"(?m)^KTEST\((\w+),", (ROOT / name).read_text("utf-8"))}
    page = (ROOT / lab.folder / "README.md").read_text("utf-8")
    assert set(re.findall(r"`test (\w+)", page)) <= there


@each_lab
def test_answers_are_empty(lab):
    if lab.questions:
        sheet = ROOT / lab.answers[0]
        answers, problem = questions.read_answers(sheet.read_bytes())
        assert problem is None
        assert answers == {q.id: "" for q in lab.questions}


@pytest.mark.parametrize("number, said", (
    ("4", "Your objects have 264 bytes"),
    ("5", "released:\n\n    make run CMD"),
    ("2", "mine: lab 2 is the same for everybody"),
    ("12", "mine: there is no lab 12")))
def test_what_is_ones_own(number, said):
    done = execute("make", "--no-print-directory", "mine", f"LAB={number}",
                   "SEED=10")
    assert (done.stdout or done.stderr).startswith(said)
    assert (done.returncode == 0) == (done.stderr == "")


def test_hidden_tests_are_for_the_grader(monkeypatch):
    monkeypatch.setattr(grading.stopped, "Kernel", lambda kernel: kernel)
    monkeypatch.setattr(grading, "run_test", lambda kernel, test, *_:
                        grading.Outcome(test, "pass", [test.append]))
    lab = labs.load(ROOT, 2)
    lab.tests = [labs.Test("2.x", ["2.1"], 1, "?", append="a=1", hidden=True)]
    said = [grading.run_tests("kernel", lab, Budget(), options)[0]
            for options in (None, "b=2")]
    assert [(o.state, o.text) for o in said] == [
        ("not checked", []), ("pass", ["a=1 b=2"])]
    assert said[1].item.append == "a=1"  # what is printed
    ten = labs.load(ROOT, 10)
    assert grading.hidden_options(ROOT, lab, 1) is None
    assert len({grading.hidden_options(ROOT, ten, n) for n in range(20)}) == 20


# ---- what it earns ---------------------------------------------------------

@each_proof
def test_hand_out_earns_nothing_and_says_why(bench):
    outcomes = bench.with_tasks(set())
    for name, outcome in outcomes.items():
        assert outcome.score == 0, f"{name} passes on the hand-out"
        assert outcome.text and all(outcome.text), name


@each_proof
def test_solution_earns_everything(bench):
    outcomes = bench.grade(bench.kept.kernel, bench.right)
    assert {o.state for o in outcomes.values()} == {"pass"}, told(outcomes)


@pytest.mark.parametrize("lab", params(
    EACH_LAB, lambda lab, _: lab.number in KINDS))
def test_the_grader_builds_the_students_kernel(bench, lab, tmp_path):
    """An answer that depends on an address, or a size, is right for both."""
    shop = workshop.Workshop(ROOT, tmp_path / "work", Budget(), bench.options)
    mine = bench.build({})
    shop.put(bench.handed_in(), lab)
    built = shop.build()
    assert not built.errors, built.errors
    assert elf.Elf(built.kernel).segments == elf.Elf(mine.kernel).segments


@each_long
def test_so_it_does_for_every_seed(bench, lab, tmp_path):
    shop = workshop.Workshop(ROOT, tmp_path / "work", Budget(), bench.options)
    header = bench.tree / workshop.SEED_FILE
    text = header.read_text(encoding="utf-8")
    kernels = set()
    for seed in range(20):
        header.write_text(workshop.planted_seed(workshop.SEED_FILE, text, seed),
                          encoding="utf-8")
        mine = bench.build({})
        shop.put(bench.handed_in(), lab, seed)
        its = shop.build()
        assert not mine.errors and not its.errors, mine.errors + its.errors
        assert elf.Elf(mine.kernel).segments == elf.Elf(its.kernel).segments
        kernels.add(tuple(elf.Elf(its.kernel).segments))
    header.write_text(text, encoding="utf-8")
    assert len(kernels) == 20


def grade(tree, out, *arguments):
    """{item: {...}} of results.json, as tools/grade in `tree` writes it."""
    done = execute(tree / "tools/grade", "--out", out, *arguments)
    assert done.returncode in (0, 1), done.stderr
    data = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return {item["name"]: item for item in data["tests"]}


def other(answer):
    """A wrong answer of the same type."""
    if isinstance(answer, list):
        return answer[1:]
    return f"{answer}x" if isinstance(answer, str) else 2 * answer + 1


@each_long
def test_a_student_sees_what_the_grader_says(bench, lab, tmp_path):
    """Item by item, for one task that is done, and for answers that are right,
    wrong, badly formed and missing. Only what the grader alone can check is
    "not checked" before."""
    right = bench.right
    answers = {q.id: (right[q.id], other(right[q.id]), {}, "")[i % 4]
               for i, q in enumerate(lab.questions)}
    sheet = {str(lab.answers[0]): questions.write_answers(answers).decode()} \
        if lab.questions else {}
    bench.build({**labs.handed_out(ROOT, lab, {lab.tasks[0]}), **sheet})
    if not (bench.tree / ".venv").exists():
        (bench.tree / ".venv").symlink_to(ROOT / ".venv")
    here = grade(bench.tree, tmp_path / "here", "--here")
    there = grade(ROOT, tmp_path / "there", "--work", tmp_path / "work",
                  bench.tree)
    assert list(here) == list(there) == [item.name for item in lab.items]
    kept = [name for name, item in here.items()
            if item["output"].startswith("not checked")]
    hidden = [t.name for t in lab.tests if t.hidden]
    assert kept == hidden + [q.id for i, q in enumerate(lab.questions)
                             if i % 4 < 2]
    for name in set(here) - set(kept):
        assert here[name] == there[name]
    for name in kept:
        said = there[name]["output"].split("\n")[0]
        if name in hidden:
            assert said == "not written"
            continue
        assert said in ("pass", "wrong", "not checked")
        assert said != "pass" or answers[name] == right[name]


@pytest.mark.parametrize("lab, task", params(
    ((lab, task) for lab in LABS for task in lab.tasks),
    two_of_the_quickest))
def test_task_alone_earns_its_points(bench, lab, task):
    outcomes = bench.with_tasks({task})
    assert passed(outcomes) == {i.name for i in lab.items
                                if i.tasks == [task]}, told(outcomes)


# ---- tasks at work before the others are done -------------------------------

# What the kernel of GIVEN=1 prints without a task, and with it alone.
VISIBLE = {
    "2.2": ("run kenbus; buddyinfo", r" 0 merges", r" [1-9]\d* merges"),
    "2.6": ("buddyinfo", r"(?m)^ +10 .* 0\.0 +\d+ +\d+$",
            r"(?m)^ +10 .* [1-9]\d*\.\d +\d+ +\d+$"),
    "3.1": ("kmem create a 400; kmem create b 400 8 ctor",
            "chunk 480, 8 in.*\n.*chunk 480, 8 in",
            "chunk 400, 10 in.*\n.*chunk 408, 9 in"),
    "3.2": ("kmem create a 400; kmem alloc a 3; slabs a", r" \.+###\n",
            r" ###\.+\n"),
    "3.5": ("kmem create a 3000", "1 in a slab of 1 page",
            "4 in a slab of 3 pages"),
}


def said(kernel, commands):
    return qemu.plain(qemu.run(kernel, f"{commands}; poweroff").text)


def own_functions(lab):
    """{function: tasks} of those that the lab's hand-out lacks."""
    found = {}
    for cut in labs.all_cuts(ROOT, lab):
        if cut.missing:
            found.setdefault(cut.function, set()).add(cut.task)
    return found


@pytest.mark.parametrize("lab, solved", params(
    ((lab, solved) for lab in LABS if lab.given
     for solved in ("", *lab.tasks)),
    lambda lab, n: lab.number == 3 and n == 0))
def test_each_task_is_at_work_before_the_others(bench, lab, solved):
    """With GIVEN=1 the kernel boots and runs programs whatever is written. It
    has all that is, and the objects of the rest."""
    solved = {solved} if solved else set()
    own = own_functions(lab)
    kernel = bench.given(labs.handed_out(ROOT, lab, solved))
    with open(kernel, "rb") as f:
        weak = {s.name for s in ELFFile(f).get_section_by_name(
            ".symtab").iter_symbols() if s["st_info"]["bind"] == "STB_WEAK"}
    assert weak == {name for name in own if not own[name] <= solved}
    for task in sorted(set().union(*own.values()) & VISIBLE.keys()):
        commands, without, alone = VISIBLE[task]
        if solved <= {task}:
            text = said(kernel, commands)
            assert re.search(alone if solved else without, text), text
    text = said(kernel, "run sh -c 'ls /bin | wc'")
    assert re.search(r"(?m)^ +\d\d +\d\d +\d{3}$", text), text


# ---- the open stage --------------------------------------------------------

@pytest.mark.parametrize("lab", params(
    ((lab,) for lab in LABS if lab.open), lambda lab, _: lab.number == 3))
def test_the_open_stage(bench, lab):
    """Its hand-out builds without a warning, earns nothing, and boots with what
    is given; the solution earns its points."""
    stage = labs.open_stage(lab)
    files = labs.handed_out(ROOT, stage)
    built = bench.build_clean(files)
    outcomes = grading.run_tests(built.kernel, stage, Budget())
    assert not any(o.score for o in outcomes), outcomes
    bench.write_prebuilt(stage)
    text = said(bench.given(files), "verify")
    bench.write_prebuilt(lab)
    assert "every invariant holds" in text, text
    outcomes = grading.run_tests(bench.kept.kernel, stage, Budget())
    assert {o.state for o in outcomes} == {"pass"}
    assert sum(o.item.points for o in outcomes if o.item == lab.open) > 0


# ---- wrong solutions -------------------------------------------------------

def wrong(lab):
    return sorted((ROOT / lab.folder / "wrong").glob("*.patch"))


@each_lab
def test_there_are_wrong_solutions(lab):
    assert len(wrong(lab)) >= 3


def head(patch):
    """The tests and questions that a patch's first lines say it loses."""
    text = patch.read_text(encoding="utf-8")
    said = re.split(r"(?m)^(?:diff |--- )", text)[0]
    found = re.search(r"(?m)^Loses: +(.*)$", said)
    assert found, f"{patch.name} has no line that begins with Loses:"
    assert len(said[:found.start()].split()) >= 4, f"{patch.name}: what is it?"
    return set(found.group(1).split())


def patched(lab, patch, folder):
    """{name: text} of the files that a patch changes, as in a hand-out."""
    names = set(re.findall(r"(?m)^\+\+\+ b/(\S+)", patch.read_text("utf-8")))
    files = {lab.solution(ROOT, name): name for name in lab.files}
    assert names and names <= set(files), \
        f"{patch.name} changes {names - set(files)}: not handed in"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    done = execute("git", "apply", "-p1", patch, cwd=folder)
    assert done.returncode == 0, done.stderr
    return labs.solved(ROOT, lab, {
        files[name]: (folder / name).read_text(encoding="utf-8")
        for name in names})


@pytest.mark.parametrize("lab, patch", params(
    ((lab, path.stem) for lab in LABS for path in wrong(lab)),
    lambda _, n: n < 2))
def test_wrong_solution_loses_what_it_says(bench, lab, patch, tmp_path):
    """No other points are lost, except that questions about experiments on
    the submission's own kernel may have other answers on a wrong kernel."""
    path = ROOT / lab.folder / "wrong" / f"{patch}.patch"
    loses = head(path)
    known = {item.name for item in lab.items}
    assert loses and loses <= known, f"unknown: {loses - known}"
    files = patched(lab, path, tmp_path)
    answers = dict(bench.right)
    sheet = files.pop(str(lab.answers[0]), None)
    if sheet is not None:
        given = questions.read_answers(sheet.encode())[0]
        answers.update({k: a for k, a in given.items() if a != ""})
    built = bench.build(files)
    assert not built.errors, built.errors
    outcomes = bench.grade(built.kernel, answers)
    may = {q.id for q in lab.questions if files and not q.pristine}
    assert loses <= known - passed(outcomes) <= loses | may, told(outcomes)


# ---- mutants of the solutions ----------------------------------------------

@each_lab
def test_mutants_change_the_solution_alone(lab):
    """All lines but those that the cuts of its task replace stay."""
    texts = labs.hand_in(ROOT, lab)
    for mutant, task in mutants.mutants_of(lab).items():
        kept = texts[mutant.file].splitlines()
        for cut in labs.all_cuts(ROOT, lab):
            if cut.task == task and cut.path == mutant.file:
                start, end = cuts.span(cut, kept)
                del kept[start:end]
        changed = mutant.apply(texts[mutant.file])
        assert set(kept) <= set(changed.splitlines()), mutant.identity


@each_lab
def test_each_explained_survivor_is_a_mutant(lab):
    reasons = mutants.explained(lab)
    known = {m.identity for m in mutants.mutants_of(lab)}
    assert not set(reasons) - known, "survivors.txt: no such mutant"
    assert all(reason.endswith(".") for reason in reasons.values())


@pytest.mark.parametrize("lab", params(EACH_LAB, lambda _, n: n < 1))
def test_mutants_of_the_solution_are_killed_or_explained(bench, lab):
    bench.build({})
    every = sorted(mutants.mutants_of(lab), key=lambda m: place(m, 1))
    result = try_part(mutants.Tests(lab, bench.tree), every, EACH,
                      reasons=mutants.explained(lab))
    assert result.tried == EACH
    assert not result.faults, "".join(result.faults)
