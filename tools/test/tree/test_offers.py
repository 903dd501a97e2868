"""CI runs every target of `make help`, and docs/testing.md says where; and the
targets that no other test runs."""

import re
import sys

import pytest

from conftest import ROOT, execute

pytestmark = pytest.mark.plain

HERE = ROOT / "tools/test"


def rows():
    """(names offered, run that tests them, where) of the book's table."""
    text = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    table = text.split("| offered | tested by | where |\n")[1]
    for line in table.split("\n\n", 1)[0].splitlines()[1:]:
        offered, runs, where = line.strip("| ").split(" | ")
        yield re.findall(r"`([\w-]+)(?:=\w+)?`", offered), runs, where


def test_the_table_lists_what_make_help_offers():
    text = execute("make", "help").stdout
    offered = re.findall(r"(?m)^  ([a-z0-9-]+) +", text)
    offered += re.findall(r"\b([A-Z][A-Z0-9_]*)=", text)
    listed = [name for names, _, _ in rows() for name in names]
    assert len(listed) == len(set(listed))
    assert sorted(listed) == sorted(set(offered))


def collected(marks):
    """The files with a test of these marks."""
    done = execute(sys.executable, "-m", "pytest", "-c",
                   "tools/test/pytest.ini", "-q", "--collect-only", "-m", marks,
                   "tools/test")
    return set(re.findall(r"(?m)^(?:.*/)?(test_\w+\.py)::", done.stdout))


@pytest.mark.long
def test_each_place_of_the_table_has_a_test_in_that_run():
    """If the run is `make test`, a test without a mark of others."""
    there = {"`make test`": collected("not long and not sample and not soak"),
             "`make test-kernels`": {"test_kernels.py"},
             "`make test-samples`": collected("sample"),
             "`make test-all`": collected("not soak")}
    for _, runs, where in rows():
        files = set(re.findall(r"`(\w+\.py)`", where))
        assert all(any(HERE.rglob(name)) for name in files), where
        tests = {name for name in files if name.startswith("test_")}
        assert tests <= there.get(runs, set()), (runs, where)


# ---- targets that no other test runs ---------------------------------------

@pytest.mark.long
def test_coverage_is_measured(tmp_path):
    done = execute("make", "coverage", f"BUILD={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "coverage/index.html").exists()
    assert "mm/kmem_slab.c" in done.stdout


@pytest.mark.long
def test_a_solution_earns_all_points_on_a_busy_machine():
    """That of lab 3, whose hand-out has objects of parts of its files."""
    done = execute(sys.executable, "-m", "tools.grading.soak", "--lab", "3",
                   "--times", "1")
    assert done.returncode == 0, done.stdout + done.stderr
