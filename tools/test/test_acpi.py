"""The firmware's tables of processors as a program of this machine, under the
sanitizers: right ones, broken ones, and 10,000 random changes."""
# Tests: kernel/x86/acpi.c

import re
import subprocess

import pytest

from conftest import BUILD, ROOT
from tools.run import watchdog
from tools.test import tap

pytestmark = pytest.mark.plain

ACPITEST = BUILD / "acpi/acpitest"
SOURCE = ROOT / "kernel/x86/tests/acpi/test_acpi.c"
CASES = re.findall(r"^    ROW\((\w+)\)", SOURCE.read_text("utf-8"), re.M)


@pytest.fixture(scope="module")
def results():
    assert ACPITEST.exists(), f"{ACPITEST} does not exist: make test-host"
    done = watchdog.run([str(ACPITEST)], cwd=ROOT,
                        encoding="utf-8", errors="replace",
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return tap.parse(done.stdout, notes_first=True), done.stdout


@pytest.mark.parametrize("case", CASES)
def test_acpi(case, results):
    cases, text = results
    if case not in cases or not cases[case].passed:
        pytest.fail(text[-3000:], pytrace=False)
