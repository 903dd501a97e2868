"""The firmware's tables of processors as a program of this machine, under the
sanitizers: right ones, broken ones, and 10,000 random changes."""
# Tests: kernel/x86/acpi.c

import re

import pytest

from conftest import BUILD, ROOT
from tools.test import tap

pytestmark = pytest.mark.plain

SOURCE = ROOT / "kernel/x86/tests/acpi/test_acpi.c"
CASES = re.findall(r"^    ROW\((\w+)\)", SOURCE.read_text("utf-8"), re.M)


@pytest.fixture(scope="module")
def results():
    return tap.program(BUILD / "host/acpitest")


@pytest.mark.parametrize("case", CASES)
def test_acpi(case, results):
    tap.passed(case, results)
