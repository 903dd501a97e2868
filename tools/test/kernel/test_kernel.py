"""The kernel's own suites: one boot runs the shell command `test`, and every
case that is in the kernel's file becomes a pytest case. Results come from the
events on port 0xE9, the notes of a failed case from the console."""
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
    return qemu.run(kernel, "test; poweroff", budget=60_000)


@pytest.fixture(scope="module")
def results(run):
    verdicts = {f"{e['suite']}.{e['name']}": e["ok"]
                for e in run.named.get("test", [])}
    return verdicts, tap.parse(run.text, notes_first=True)


def test_run_ends_well(run):
    assert run.problem is None, run.explain()
    assert len(run.named.get("tests", [])) == 1, run.explain()


def test_no_case_is_skipped(run):
    assert [e for e in run.named.get("test", []) if e["skipped"]] == []


@pytest.mark.plain
@pytest.mark.long
@pytest.mark.parametrize("mebibytes, most", [(5, 45), (6, 30), (7, 30),
                                             (8, 30)])
def test_a_small_machine_skips_what_needs_more(kernel, mebibytes, most):
    """4 MiB are too little for the workshop kernel (test_machine.py)."""
    run = qemu.run(kernel, "test; verify; poweroff", budget=60_000,
                   memory=mebibytes)
    assert run.problem is None, run.explain()
    tests = run.named["test"]
    assert len(tests) == len(elf.kernel_cases(kernel))
    assert [e["name"] for e in tests if not e["ok"]] == [], run.explain()
    skipped = [e for e in tests if e["skipped"]]
    assert 0 < len(skipped) < most
    for event in skipped:
        assert f"{event['name']} # SKIP needs" in run.text


@pytest.mark.plain
@pytest.mark.long
def test_every_case_notices_that_memory_is_refused(kernel):
    """Each case runs with its first request failing, then its second, … It
    passes or is skipped; there is no panic, no leak and no damage."""
    run = qemu.run(kernel, "refuse 4; verify; poweroff", budget=400_000,
                   memory=16)
    assert run.problem is None, run.explain()
    cases = run.named["refuse"]
    assert len(cases) == len(elf.kernel_cases(kernel))
    assert [e["name"] for e in cases if e["failed"]] == [], run.explain()
    assert sum(e["refused"] for e in cases) > 2500
    assert sum(e["skipped"] for e in cases) > 2000
    assert "every invariant holds" in run.text.replace("\r", "")


def test_kernel(kernel_case, run, results):
    tap.expect_passed(kernel_case, run, *results)


def test_a_failed_case_is_seen(kernel):
    """A case fails when its first request for memory does; the others pass."""
    run = qemu.run(kernel, "fail slab 1; test pipe; poweroff")
    failed = [e["name"] for e in run.named["test"] if not e["ok"]]
    assert len(failed) == 1 < len(run.named["test"]), run.explain()
    cases = tap.parse(run.text, notes_first=True)
    assert [n for n, c in cases.items() if not c.passed] == \
        [f"pipe.{failed[0]}"]
    assert "open_pipe()" in cases[f"pipe.{failed[0]}"].notes[-1]
    with pytest.raises(pytest.fail.Exception, match=r"open_pipe\(\)"):
        tap.expect_passed(failed[0], run, {failed[0]: False},
                          {failed[0]: cases[f"pipe.{failed[0]}"]})
