"""The kernel's waits and wake-ups on several processors, which are fibers of a
program of this machine: every schedule of each case."""

import re

import pytest

from conftest import BUILD, ROOT
from tools.test import tap

pytestmark = pytest.mark.plain

SOURCE = ROOT / "kernel/task/tests/wakes/test_wakes.c"
CASES = re.findall(r"\{CASE\((\w+)\)", SOURCE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def results():
    return tap.program(BUILD / "wakes/waketest")


@pytest.mark.parametrize("case", CASES)
def test_wakes(case, results):
    notes = tap.passed(case, results).notes
    schedules = re.fullmatch(r"(\d+) schedules", notes[-1])
    assert int(schedules.group(1)) > 100, results[1]
