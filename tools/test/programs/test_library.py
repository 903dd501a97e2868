"""The C library and the small programs: libtest runs in ring 3, and every case
that its sources list becomes a pytest case. `run` is the kernel shell's."""

import re

import pytest

from conftest import ROOT
from tools.run import qemu
from tools.test import tap

pytestmark = pytest.mark.workshop

NAMES = [f"{part or 'programs'}.{case}"
         for path in sorted((ROOT / "user/tests/libtest").glob("*.c"))
         for part, case in re.findall(r"^(?:TEST\((\w+), |CASE\()(\w+)",
                                      path.read_text("utf-8"), re.M)]


@pytest.fixture(scope="module")
def run(kernel):
    return qemu.run(kernel, "run /bin/libtest; verify; poweroff",
                    budget=20_000)


@pytest.fixture(scope="module")
def results(run):
    cases = tap.parse(run.text, notes_first=True)
    return {name: case.passed for name, case in cases.items()}, cases


def test_run_ends_well(run):
    assert f"# {len(NAMES)} passed, 0 failed" in run.good().text, run.explain()


@pytest.mark.parametrize("name", NAMES)
def test_library(name, run, results):
    tap.expect_passed(name, run, *results)
