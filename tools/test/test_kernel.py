"""The kernel's own suites: one boot runs the shell command `test`, and every
case that is in the kernel's file becomes a pytest case. Results come from the
events on port 0xE9; what a failed case said, from the console."""
# Tests: drivers/debugcon.c, drivers/pic.c

import pytest

from conftest import BUILD
from tools.run import elf, qemu
from tools.test import tap

pytestmark = pytest.mark.workshop

KERNEL = BUILD / "slate-workshop.elf"


def pytest_generate_tests(metafunc):
    tap.parametrize(metafunc, "kernel_case", KERNEL, elf.kernel_cases)


@pytest.fixture(scope="module")
def run(kernel):
    return qemu.run(kernel, "test; poweroff", budget=20_000)


@pytest.fixture(scope="module")
def results(run):
    verdicts = {f"{e['suite']}.{e['name']}": e["ok"]
                for e in run.named.get("test", [])}
    return verdicts, tap.parse(run.text, notes_first=True)


def test_run_ends_well(run):
    assert run.problem is None, run.explain()
    assert len(run.named.get("tests", [])) == 1, run.explain()


def test_kernel(kernel_case, run, results):
    tap.expect_passed(kernel_case, run, *results)
