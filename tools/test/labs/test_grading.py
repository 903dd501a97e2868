"""The grader's parts, each alone: reports, the sandbox. Whole runs
are in test_grade.py."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from conftest import ROOT
from tools.grading import budget, forms
from tools.grading import grade as grader
from tools.grading import grading, labs, questions, report, workshop
from tools.grading import lab as hand_out
from tools.grading.grading import Grade, Outcome
from tools.grading.labs import Question as LabQuestion
from tools.grading.labs import Test as LabTest
from tools.run import qemu, sandbox

pytestmark = pytest.mark.plain


# ---- reports ---------------------------------------------------------------

def test_reports_stand_odd_text():
    """Reports for XML and terminals have no control characters."""
    test = LabTest("0.a", ["0.1"], 7, "why?")
    lab = type("Lab", (), {"number": 0, "title": "t", "opened": False})
    grade = Grade(lab, [Outcome(test, "fail", ["\x1b[2J\0]]>&<\ud800"])])
    ElementTree.fromstring(report.junit(grade))
    assert "\x1b" not in report.junit(grade)
    grade = Grade(lab, [Outcome(test, "pass")], "x.c: \x1b[2J\n" * 1000)
    for text in report.table(grade), report.gradescope(grade)["output"]:
        assert "x.c: ?[2J\n" in text and len(text) < 2000


def test_a_name_that_is_not_utf_8_is_in_the_summary(tmp_path):
    report.write_csv([("J\udcfcrg", "is not a folder")], tmp_path / "rows")
    assert "\nJ\\udcfcrg,,,,is not a folder\n" in \
        (tmp_path / "rows").read_text("utf-8")


def graded(*states, number=2, error=""):
    """A Grade whose tests have these states."""
    lab = type("Lab", (), {"number": number})
    return Grade(lab, [Outcome(LabTest(f"2.{i}", ["2.1"], 5, "h"), state)
                       for i, state in enumerate(states)], error)


@pytest.mark.parametrize("grade, said", (
    (graded("pass", "pass"), "all earned"),
    (graded("pass", "fail"), "lost: 2.1"),
    (graded("panic", "fail"), "lost: all 2"),
    (graded("not written", "no answer"), "nothing written"),
    (graded("no kernel", error="gcc\nx.c:3: error: no ;\n"),
     "does not build: x.c:3: error: no ;")))
def test_a_zero_is_explained_in_the_summary(grade, said):
    assert report.summary([("a", grade)]).endswith(f"  {said}\n")


def test_the_table_of_a_class_keeps_who_is_not_graded_again(tmp_path):
    table = tmp_path / "summary.csv"
    report.write_csv([("a", graded("fail", "fail")), ("b", "is empty"),
                      ("c", graded("pass", number=3))], table)
    report.write_csv([("c", graded("pass", "fail")),
                      ("a", graded("pass", error="x: error: y\n"))], table)
    assert table.read_text("utf-8").splitlines() == [
        "submission,lab,seed,score,2.0,2.1,notes", "c,2,0,5,5,0,",
        "a,2,0,5,5,,x: error: y", "b,,,,,,is empty"]


@pytest.mark.parametrize("names, said", (
    ([], "is empty"), (["hand.zip"], "has only hand.zip, which is no archive "),
    (["a.zip", "b"], "has none of the files of lab 2 ("),
    ([".lab", "x"], "is a tree of lab 1")))
def test_a_tree_without_the_files_is_explained(names, said, tmp_path):
    for name in names:
        (tmp_path / name).write_text("lab = 1\n", "utf-8")
    assert grader.nothing_of(SimpleNamespace(number=2),
                             tmp_path).startswith(said)


def test_all_tasks_have_a_word():
    lab = labs.load(ROOT, 2)
    assert hand_out.wanted_tasks(lab, "all") == set(lab.tasks)
    with pytest.raises(labs.LabError, match="no task nine"):
        hand_out.wanted_tasks(lab, "2.1 nine")


def test_a_tree_of_another_name_may_have_the_seed_of_a_student():
    options = SimpleNamespace(name=None, seed=None, here=False,
                              roster={"alice": 7, "bob": 8, "carol": 7})
    for seed, said in (7, "; its .lab has the seed of alice and carol: "), \
            (9, ""), (None, ""):
        with pytest.raises(grader.Skipped,
                           match=f"^bob_102 is not in the roster{said}"):
            grader.seed_of("bob_102.tar.gz", seed, options)


@pytest.mark.parametrize("state, told", (
    ("fail", True), ("panic", True), ("not written", False),
    ("no kernel", False), ("no answer", False), ("pass", False)))
def test_hints_are_for_what_was_tried(state, told):
    test = LabTest("0.a", ["0.1"], 7, "think")
    said = report.explanation(Outcome(test, state, ["said"]))
    assert ("hint: think" in said) == told
    assert ('alone: make gdb APPEND="grade=0.a"' in said) == told


# ---- questions -------------------------------------------------------------

def lab_of(*asked):
    return type("Lab", (), {"number": 0, "title": "t", "opened": False,
                            "questions": asked,
                            "answers": ("no", "such checker")})


def question(name, form="integer", points=5, **more):
    return LabQuestion(name, ["0.1"], points, "why?", "because", form, **more)


@pytest.mark.parametrize("sheet, states", (
    ("sum = 42\nwhy = 0\n", ["not checked", "not checked"]),
    ("\ufeffsum = 42\r\nwhy = 0\r\n", ["not checked", "not checked"]),
    ("sum = 42\nwhy = \"\"\n", ["not checked", "no answer"]),
    ("sum = 42\nwhy = 1.5\n", ["not checked", "wrong form"]),
    ("sum 42", ["unreadable", "unreadable"])))
def test_what_a_tree_without_the_checker_says(sheet, states):
    """It names answers that are missing or badly formed; the others take one
    line, without a hint, and do not count as lost."""
    lab = lab_of(question("sum"), question("why"))
    found = grader.answers_of(lab, sheet.encode())
    assert [o.state for o in found] == states
    grade = Grade(lab, found)
    text = report.table(grade)
    left = states.count("not checked")
    assert grade.complete == (left == len(states))
    assert ("because" in text) == ("unreadable" in states or
                                   "wrong form" in states)
    assert (f"{left} answer" in text) == (left > 0)
    assert f" 0/{100 - 5 * left}" in text
    assert (f"and {5 * left} points that are not checked here" in text) == \
        (left > 0)


RIGHT = {"integer": (3, 0x18), "number": (3, 1.5, -2), "name": ("a b", "a"),
         "function": ("f", "f()"), "word": ("leak",),
         "names": ([], ["a", "b"]), "table": ([], [["a", 1], ["b", 1, 2.5]])}
ODD = (True, 3, 1.5, "3", "a b", "f ", [], {}, [1], [["a"]], [["a", "b"]],
       [[1, 2]], [[]], {"a": 1})


@pytest.mark.parametrize("form", forms.FORMS)
def test_forms(form):
    asked = question("q", form, words=["leak", "no-lock"])
    for answer in RIGHT[form]:
        assert forms.problem(asked, answer) is None
        questions.write_answers({"q": answer})
    for answer in ODD:
        said = forms.problem(asked, answer)
        kind = {bool: "", int: "integer number", float: "number",
                str: "name", list: "names table", dict: ""}[type(answer)]
        assert said is not None or form in kind or form == "function"
        assert said is None or said.startswith(("wants ", "is one of leak"))


@pytest.mark.parametrize("form, text", (
    ("number", "nan"), ("number", "-inf"), ("number", "1" + 400 * "0"),
    ("integer", "0x1" + 4000 * "0"), ("table", '[["a", 1, nan]]')),
    ids=("nan", "infinite", "decimal", "hexadecimal", "in-a-table"))
def test_a_checker_can_compute_with_each_number(form, text):
    """No comparison with nan is true; a large number makes the checker raise,
    and then no answer is checked."""
    lab = lab_of(question("q", form))
    (found,) = questions.check(lab, f"q = {text}".encode())
    assert found.state == "wrong form"


def test_a_student_and_a_grader_call_the_same_answers_badly_formed():
    """Whatever the answer: without the checker it is as with it, or not
    checked."""
    def check(answers, machine):
        return {name: "no" if answers[name] == 3 else None for name in answers}
    for form in forms.FORMS:
        lab = lab_of(question("q", form, words=["leak"]))
        for answer in (*ODD, *RIGHT[form], ""):
            sheet = questions.write_answers({"q": answer})
            machine = questions.Machine(ROOT, "k")
            (here,) = questions.check(lab, sheet)
            (there,) = questions.check(lab, sheet, {"check": check}, machine)
            if here.state == "not checked":
                assert there.state == ("wrong" if answer == 3 else "pass")
            else:
                assert (here.state, here.text) == (there.state, there.text)


def test_answers_to_no_question_are_said():
    assert questions.unknown(lab_of(question("sum")), b"sum = 1\nsun = 2\n") \
        == ["answers.toml: there is no question sun"]


@pytest.mark.parametrize("kernel, pristine, states", (
    ("k", "k", ["pass", "wrong"]), ("k", None, ["not checked", "wrong"]),
    (None, None, ["not checked", "not checked"])))
def test_what_cannot_be_asked_is_not_checked(kernel, pristine, states):
    """Without the grader's kernel, or any, no answer is called wrong."""
    lab = lab_of(question("hers", pristine=True), question("mine"))

    def check(answers, machine):
        assert machine.kernel == "k" and len(answers) == 1
        return {"hers": None, "mine": "no"}
    found = questions.check(
        lab, b"hers = 1\nmine = 2\n", {"check": check},
        questions.Machine(ROOT, kernel),
        pristine and questions.Machine(ROOT, pristine))
    assert [o.state for o in found] == states


@pytest.mark.parametrize("fails, said", (
    (questions.CannotAsk("no prompt"), "no prompt"),
    (ValueError("odd"), "the checker failed on it (ValueError")))
def test_a_checker_that_fails_calls_nothing_wrong(fails, said):
    def check(answers, machine):
        raise fails
    (found,) = questions.check(lab_of(question("q")), b"q = 1\n",
                               {"check": check}, questions.Machine(ROOT, "k"))
    assert found.state == "not checked" and found.text[0].startswith(said)
    assert found.score == 0


# ---- folders and disks -----------------------------------------------------

def test_results_have_folders_of_their_own():
    assert grader.folder_names(["a/ann", "b/ann.tgz", "work", "pristine"]) == \
        ["ann", "ann-2", "work-2", "pristine-2"]


def test_no_grader_builds_a_kernel_that_another_one_runs(tmp_path):
    mine = grader.Grader(SimpleNamespace(patience=9, budget=9, work=tmp_path))
    mine.own.put = lambda *_: None
    mine.own.build = lambda: workshop.Built("kernel")
    with mine.pristine(None, 0), open(tmp_path / "pristine.lock",
                                      encoding="utf-8") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_machine_without_room_for_its_memory(monkeypatch):
    """The kernel is not the cause. QEMU is killed when it cannot enlarge the
    file."""
    result = qemu.Result([], 128 + signal.SIGBUS, "", [])
    monkeypatch.setattr(qemu, "run", lambda *_, **options: result)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(grading.GradeError, match="no room for the machine's"):
        grading.run_test(SimpleNamespace(path="k"),
                         LabTest("0.a", ["0.1"], 7, "why?"),
                         SimpleNamespace(shift=0, cpus=1), budget.Budget())


def test_a_build_without_room_is_no_error_of_the_source(tmp_path):
    said = "No space left on device"
    rule = "workshop:\n\t@echo '%s'; exit 1\n"
    (tmp_path / "Makefile").write_text(rule % f"as: x.o: {said}", "utf-8")
    with pytest.raises(OSError, match=said):
        workshop.make(tmp_path, budget.Budget())
    (tmp_path / "Makefile").write_text(rule % f"x.c:1:2: #error {said}",
                                       "utf-8")
    assert said in workshop.make(tmp_path, budget.Budget())


# ---- the budget ------------------------------------------------------------

@pytest.fixture
def spent(monkeypatch):
    """Sets the processor seconds that seem to be used, and the clock."""
    now = {"used": 1000.0, "clock": 0.0}
    monkeypatch.setattr(budget, "_used", lambda: now["used"])
    monkeypatch.setattr(budget.time, "monotonic", lambda: now["clock"])
    return now


def test_a_budget_is_for_one_submission(spent):
    mine = budget.Budget(each=20, whole=100)
    assert mine.next() == 20 and mine.next(7) == 7
    spent["used"] += 90
    assert mine.next() == 10
    spent["used"] += 9.5
    with pytest.raises(budget.Spent, match="all 100 s of processor time"):
        mine.next()
    with mine.paused():
        spent["used"] += 50
    spent["used"] -= 9.5
    assert mine.next() == 10
    mine.begin()
    assert mine.next() == 20
    assert budget.Budget(each=300).next() == 300
    spent["clock"] += 100 * budget.SLOWEST + 1
    with pytest.raises(budget.Spent, match="more than 1000 s"):
        mine.next()


def test_nothing_runs_when_the_time_is_used_up(spent, tmp_path):
    mine = budget.Budget(whole=10)
    spent["used"] += 10
    test = LabTest("0.a", ["0.1"], 7, "why?")
    found = grading.run_test("no kernel", test, None, mine)
    assert found.state == "no time" and "10 s" in found.text[0]
    assert "10 s" in workshop.make(tmp_path, mine)
    machine = questions.Machine(tmp_path, tmp_path / "kernel", 0, mine)
    (found,) = questions.check(
        lab_of(question("q")), b"q = 1\n",
        {"check": lambda answers, machine: machine.run("help")}, machine)
    assert found.state == "no time"


# ---- the sandbox -----------------------------------------------------------

def boxed(script, **options):
    """Output of a shell under sandbox.wrap, and the signal that ended it."""
    argv = sandbox.wrap(["sh", "-c", script], **{"seconds": 5, **options})
    done = subprocess.run(argv, capture_output=True,
                          encoding="utf-8", check=False)
    return done.stdout + done.stderr, sandbox.signal_of(done.returncode)


@pytest.mark.skipif(not shutil.which("prlimit"), reason="no prlimit")
@pytest.mark.parametrize("write", [(), ("/var/tmp",)])
def test_limits(write):
    assert boxed("while :; do :; done", seconds=1, write=write)[1] == 9
    said = boxed("ulimit -v; ulimit -f; ulimit -c", memory=50, file=8,
                 write=write)[0]
    assert said.split() == ["51200", "16", "0"]


in_a_box = pytest.mark.skipif(bool(sandbox.problem()),
                              reason=str(sandbox.problem()))


@in_a_box
def test_a_checkers_gdb_is_in_the_sandbox(kernel):
    """It reads a kernel that was handed in."""
    command = "python print(*os.listdir('/etc'))"
    session = questions.Machine(ROOT, kernel).gdb("", [(None, [command])])
    assert set(session.said[0][command].split()) <= {"alternatives",
                                                     "ld.so.cache"}


@in_a_box
def test_the_sandbox(tmp_path):
    for name in ("hidden", "hidden/mine", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name, encoding="utf-8")
    said, _ = boxed(f"""cd {tmp_path}
        cat hidden/file hidden/mine/file other/file /etc/passwd
        echo > hidden/mine/new; echo > other/new; echo > $HOME/.slate-test
        echo; cat /proc/1/comm; grep -c : /proc/net/dev; ls -A $HOME {ROOT}""",
                    write=[tmp_path / "hidden/mine"],
                    read=[tmp_path / "other"])
    assert said.startswith("hidden/mineother\nbwrap\n1\n"), said
    assert (tmp_path / "hidden/mine/new").exists()
    for path in ("hidden/file", "/etc/passwd", os.path.expanduser("~"), ROOT):
        assert re.search(rf"{path}'?: No such file", said), said
    assert not (tmp_path / "other/new").exists()
    assert not os.path.exists(os.path.expanduser("~/.slate-test"))
