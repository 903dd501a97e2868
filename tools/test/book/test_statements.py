"""docs/statements.md: every statement has its row, every test in it exists, and
the tests that are named after a statement are in its row. docs/security.md:
every promise has tests, and they exist."""

import re

import pytest

from conftest import ROOT, named_cases

pytestmark = pytest.mark.plain

LAST = 63
ROWS = [(int(number), re.findall(r"`([\w.]+(?:::\w+)?)`", tests), tests)
        for number, tests in re.findall(
            r"^\| S-(\d+) \| [^|]+ \| ([^|]+) \|$",
            (ROOT / "docs/statements.md").read_text(encoding="utf-8"), re.M)]

MAGAZINES = re.findall(r"^\| M-(\d+) \| ([^|]+) \| ([^|]+) \|$",
                       (ROOT / "docs/statements.md").read_text("utf-8"), re.M)

PROMISES = re.findall(r"^\| ([A-Z`][^|]+) \| [^|]+ \| ([^|]*) \|$",
                      (ROOT / "docs/security.md").read_text("utf-8"), re.M)


def exists(name, known):
    file, _, function = name.partition("::")
    if not function:
        return name in known
    return any(f"def {function}(" in path.read_text("utf-8")
               for path in (ROOT / "tools/test").rglob(file))


def test_every_statement_has_a_row():
    assert [number for number, *_ in ROWS] == list(range(1, LAST + 1))


def test_a_row_without_tests_says_so():
    for number, listed, text in ROWS:
        assert listed or text.startswith("Not covered: "), f"S-{number}"


def test_every_named_test_exists(cases):
    assert len(cases) > 500
    for number, listed, _ in ROWS:
        for name in listed:
            assert exists(name, cases), f"S-{number}: {name}"


def test_statements_about_magazines_have_tests_that_exist(cases):
    assert len(MAGAZINES) > 40
    for number, text, tests in MAGAZINES:
        listed = re.findall(r"`([\w.]+(?:::\w+)?)`", tests)
        assert listed or re.match("Dropped|.*`make", text), number
        for name in listed:
            assert exists(name, cases), f"M-{number}: {name}"


def test_tests_of_a_statement_are_in_its_row(cases):
    listed = {(number, name) for number, tests, _ in ROWS for name in tests}
    for case in sorted(cases):
        number = re.match(r"\w+\.S(\d+)[a-z]?_", case)
        assert not number or (int(number[1]), case) in listed, case


def test_every_promise_has_tests_that_exist(cases):
    known = cases | named_cases(r"\bTEST\w*\((\w+), (\w+)",
                                "user/tests/usertests")
    known |= {f"trap{name}" for name in named_cases(r"\bINSTRUCTIONS\(()(\w+)",
                                                    "user/tests/usertests")}
    assert len(PROMISES) > 30
    for promise, tests in PROMISES:
        listed = re.findall(r"`([\w.]+(?:::\w+)?)`", tests)
        assert listed, promise
        for name in listed:
            assert exists(name, known), f"{promise}: {name}"
