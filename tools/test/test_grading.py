"""The grader's parts, each alone: signatures, reports, the sandbox. Whole runs
are in test_grade.py."""

import os
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from conftest import ROOT
from tools.grading import grade as grader
from tools.grading import grading, report, verdict
from tools.grading.grading import Grade, Outcome
from tools.grading.labs import Question as LabQuestion
from tools.grading.labs import Test as LabTest
from tools.run import sandbox

pytestmark = pytest.mark.plain


# ---- signatures and reports ------------------------------------------------

def test_siphash():
    """The example of the paper that defines SipHash."""
    assert verdict.siphash(bytes(range(16)), bytes(range(15))) == \
        0xa129ca6149be45e5


def test_only_the_right_signature_counts():
    key, other = "1" * 32, "2" * 32
    right = {"event": "verdict", "test": "0.a", "result": "pass", "leaks": 0,
             "mac": verdict.sign(key, "0.a", "pass", 0)}
    assert verdict.find([right], key, "0.a") == (("pass", 0), 0)
    assert verdict.find([right], other, "0.a") == (None, 1)
    assert verdict.find([right], key, "0.b") == (None, 1)
    for change in ({"leaks": 1}, {"result": "fail"}, {"leaks": False},
                   {"mac": None}, {"test": ["0.a"]}):
        assert verdict.find([{**right, **change}], key, "0.a") == (None, 1)
    failed = {**right, "result": "fail",
              "mac": verdict.sign(key, "0.a", "fail", 0)}
    assert verdict.find([right, failed], key, "0.a") == (None, 0)


def test_keys_differ():
    keys = {verdict.new_key() for _ in range(100)}
    assert len(keys) == 100 and all(len(k) == 32 for k in keys)


def test_reports_stand_odd_text():
    """Reports for XML and terminals have no control characters."""
    test = LabTest("0.a", ["0.1"], 7, "why?")
    lab = type("Lab", (), {"number": 0, "title": "t"})
    grade = Grade(lab, [Outcome(test, "fail", ["\x1b[2J\0]]>&<\ud800"])])
    ElementTree.fromstring(report.junit(grade))
    assert "\x1b" not in report.junit(grade)


@pytest.mark.parametrize("state, told", (
    ("fail", True), ("panic", True), ("not written", False),
    ("no kernel", False), ("no answer", False), ("pass", False)))
def test_hints_are_for_what_was_tried(state, told):
    test = LabTest("0.a", ["0.1"], 7, "think")
    said = report.explanation(Outcome(test, state, ["said"]))
    assert ("hint: think" in said) == told
    assert ('alone: make gdb APPEND="grade=0.a"' in said) == told


@pytest.mark.parametrize("sheet, states", (
    ("sum = 42\nwhy = 0\n", ["not checked", "not checked"]),
    ("\ufeffsum = 42\r\nwhy = 0\r\n", ["not checked", "not checked"]),
    ("sum = 42\nwhy = \"\"\n", ["not checked", "no answer"]),
    ("sum 42", ["unreadable", "unreadable"])))
def test_checker_that_stays_at_home(sheet, states):
    """The report names missing answers; the others take one line, without a
    hint."""
    asked = [LabQuestion(name, ["0.1"], 5, "why?", "because")
             for name in ("sum", "why")]
    lab = type("Lab", (), {"number": 0, "title": "t", "questions": asked,
                           "answers": ("no", "such checker")})
    found = grader.answers_of(lab, sheet.encode(), None)
    assert [o.state for o in found] == states
    text = report.table(Grade(lab, found))
    left = states.count("not checked")
    assert ("because" in text) == ("unreadable" in states)
    assert (f"{left} answer" in text) == (left > 0)


@pytest.mark.parametrize("kernel, pristine, states", (
    ("k", "k", ["pass", "wrong"]), ("k", None, ["not checked", "wrong"]),
    (None, None, ["not checked", "not checked"])))
def test_what_cannot_be_asked_is_not_checked(kernel, pristine, states):
    """Without the grader's kernel, or any, no answer is called wrong."""
    asked = [LabQuestion("hers", ["0.1"], 5, "?", "!", pristine=True),
             LabQuestion("mine", ["0.1"], 5, "?", "!")]
    lab = type("Lab", (), {"questions": asked})

    def check(answers, machine):
        assert machine.kernel == "k"
        return {"hers": None, "mine": "no"}
    found = grading.check_answers(
        lab, {"check": check}, b"hers = 1\nmine = 2\n",
        grading.Machine(ROOT, kernel),
        pristine and grading.Machine(ROOT, pristine))
    assert [o.state for o in found] == states


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


@pytest.mark.skipif(bool(sandbox.problem()), reason=str(sandbox.problem()))
def test_the_sandbox(tmp_path):
    for name in ("hidden", "hidden/mine", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name, encoding="utf-8")
    said, _ = boxed(f"""cd {tmp_path}
        cat hidden/file hidden/mine/file other/file
        echo > hidden/mine/new; echo > other/new; echo > $HOME/.slate-test
        echo; cat /proc/1/comm; grep -c : /proc/net/dev""",
                    write=[tmp_path / "hidden/mine"],
                    read=[tmp_path / "other"], hide=[tmp_path / "hidden"])
    assert said.startswith("hidden/mineother\nbwrap\n1\n"), said
    assert (tmp_path / "hidden/mine/new").exists()
    assert "hidden/file: No such file" in said
    assert not (tmp_path / "other/new").exists()
    assert not os.path.exists(os.path.expanduser("~/.slate-test"))
