"""The answer key that `make key` prints."""

import re
import sys
from types import SimpleNamespace

import pytest

from conftest import ROOT, execute, long
from tools.grading import labs, questions

pytestmark = pytest.mark.plain


def key(*words):
    return execute(sys.executable, "-m", "tools.grading.key", *words)


@pytest.mark.parametrize("words, error", (
    (["--lab", "8"], "lab 8 has no questions"),
    (["--lab", "99"], "there is no lab 99"),
    (["--lab", "4", "--seed", "x"], "x is no seed"),
    (["--lab", "4", "--roster", "/no/roster"], "/no/roster"),
    (["--lab", "4", "--seed", "1", "--roster", "r"], "SEED is one for all")))
def test_what_has_no_key(words, error):
    done = key(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"key: .*{error}.*\n", done.stderr), done.stderr


@long
def test_the_key_of_a_roster(tmp_path):
    """Lab 4's checker computes its answers from the paper alone: it accepts
    the key of its seed, and not that of another."""
    roster = tmp_path / "roster.csv"
    roster.write_text("name,seed\nbob,5\nann,3\ncid,3\n", encoding="utf-8")
    done = key("--lab", "4", "--roster", str(roster), "--work",
               str(tmp_path / "work"))
    assert done.returncode == 0, done.stderr
    texts = done.stdout.split("# lab 4, Caches: ")
    assert [text.splitlines()[:3] for text in texts] == [
        [], ["seed 5", "# bob", ""], ["seed 3", "# ann", "# cid"]]
    check = questions.load_checker(
        ROOT / labs.load(ROOT, 4).answers[1])["check"]
    for seed, text in zip((5, 3), texts[1:]):
        answers = labs.tomllib.loads("# " + text)
        assert set(check(answers, SimpleNamespace(seed=seed)).values()) == \
            {None}
        assert any(check(answers, SimpleNamespace(seed=8 - seed)).values())
