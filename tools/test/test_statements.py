"""docs/statements.md: every statement has its row, every test in it exists, and
the tests that are named after a statement are in its row."""

import re

import pytest

from conftest import ROOT

pytestmark = pytest.mark.plain

LAST = 63
ROWS = [(int(number), re.findall(r"`([\w.]+(?:::\w+)?)`", tests), tests)
        for number, tests in re.findall(
            r"^\| S-(\d+) \| [^|]+ \| ([^|]+) \|$",
            (ROOT / "docs/statements.md").read_text(), re.M)]


@pytest.fixture(scope="module")
def cases():
    """SUITE.CASE of every KTEST in the tree."""
    return {f"{suite}.{case}"
            for folder in ("mm", "kernel", "drivers", "tools", "docs")
            for path in (ROOT / folder).rglob("*.c")
            for suite, case in re.findall(r"\bKTEST\(\s*(\w+),\s*(\w+)\s*\)",
                                          path.read_text())}


def test_every_statement_has_a_row():
    assert [number for number, *_ in ROWS] == list(range(1, LAST + 1))


def test_a_row_without_tests_says_so():
    for number, names, text in ROWS:
        assert names or text.startswith("Not covered: "), f"S-{number}"


def test_every_named_test_exists(cases):
    assert len(cases) > 500
    for number, names, _ in ROWS:
        for name in names:
            file, _, function = name.partition("::")
            if function:
                text = (ROOT / "tools/test" / file).read_text()
                assert f"def {function}(" in text, f"S-{number}: {name}"
            else:
                assert name in cases, f"S-{number}: {name}"


def test_tests_of_a_statement_are_in_its_row(cases):
    listed = {(number, name) for number, names, _ in ROWS for name in names}
    for case in sorted(cases):
        number = re.match(r"\w+\.S(\d+)[a-z]?_", case)
        assert not number or (int(number[1]), case) in listed, case
