"""The kernel's waits and wake-ups on several processors, which are fibers of a
program of this machine: every schedule of each case."""

import re
import subprocess

import pytest

from conftest import BUILD, ROOT
from tools.run import watchdog
from tools.test import tap

pytestmark = pytest.mark.plain

WAKETEST = BUILD / "wakes/waketest"
SOURCE = ROOT / "kernel/task/tests/wakes/test_wakes.c"
CASES = re.findall(r"\{CASE\((\w+)\)", SOURCE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def results():
    assert WAKETEST.exists(), f"{WAKETEST} does not exist: make test-host"
    done = watchdog.run([str(WAKETEST)], cwd=ROOT,
                        encoding="utf-8", errors="replace",
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return tap.parse(done.stdout, notes_first=True), done.stdout


@pytest.mark.parametrize("case", CASES)
def test_wakes(case, results):
    cases, text = results
    if case not in cases or not cases[case].passed:
        pytest.fail(text[-3000:], pytrace=False)
    schedules = re.fullmatch(r"(\d+) schedules", cases[case].notes[-1])
    assert int(schedules.group(1)) > 100, text
