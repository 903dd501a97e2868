"""Slate in v86: the kernel's suites, usertests and the workloads pass. A case
that v86 cannot do is skipped, and the reason is printed."""

import pytest

from conftest import BUILD, ROOT, archive, product
from tools.run import elf, v86
from tools.test import tap

pytestmark = [pytest.mark.long, pytest.mark.plain]

# Of cases of the kernel, which find out what a machine can do. In v86 counter
# and clock stand still within a block of code, and the controller does not
# repeat bytes as if they came from the keyboard.
REASONS = {"needs a keyboard that tests can press",
           "compares times; make ICOUNT=1 counts instructions",
           "needs ticks of the clock at any instruction"}

# Of usertests: a program cannot find out what ends the emulator.
LIST = ROOT / "tools/test/kernel/v86-skipped.txt"
SKIPPED = dict(line.split(maxsplit=1) for line in
               LIST.read_text(encoding="utf-8").splitlines()
               if line and not line.startswith("#"))

WORKLOADS = ("hackbench", "kenbus", "spike", "find", "walk")


def pytest_generate_tests(metafunc):
    tap.parametrize(metafunc, "kernel_case", BUILD / "slate-workshop.elf",
                    elf.kernel_cases)
    tap.parametrize(metafunc, "user_case", BUILD / "user/bin/usertests",
                    elf.user_cases)


@pytest.fixture(scope="module")
def boot(shared_path):
    """Runs commands, and verify after them."""
    kernel = product("slate-workshop.elf", "workshop")
    initrd = archive(kernel, shared_path, {"skipped": LIST})

    def run(*commands):
        return v86.run(kernel, "; ".join([*commands, "verify", "poweroff"]),
                       initrd)
    return run


def results(run, event, name):
    """A run, and of its cases: {name: ok}, {name: Case}."""
    return run, {name.format(**e): e["ok"] for e in run.named.get(event, [])}, \
        tap.parse(run.text, notes_first=True)


def expect_passed_or_skipped(name, run, verdicts, cases):
    tap.expect_passed(name, run, verdicts, cases)
    if cases[name].skipped:
        pytest.skip(f"{name}: {cases[name].skipped}")


# ---- the kernel's suites ---------------------------------------------------

@pytest.fixture(scope="module")
def suites(boot):
    return results(boot("test"), "test", "{suite}.{name}")


def test_run_ends_well_suites(suites):
    run, _, cases = suites
    run.good()
    assert {c.skipped for c in cases.values() if c.skipped} == REASONS


def test_kernel(kernel_case, suites):
    expect_passed_or_skipped(kernel_case, *suites)


# ---- usertests -------------------------------------------------------------

@pytest.fixture(scope="module")
def calls(boot):
    return results(boot("run -p init usertests -x /skipped"), "user-test",
                   "{name}")


def test_run_ends_well_usertests(calls):
    run, _, cases = calls
    run.good()
    assert {n: c.skipped for n, c in cases.items() if c.skipped} == SKIPPED, \
        run.explain()


def test_system_calls(user_case, calls):
    expect_passed_or_skipped(user_case, *calls)


@pytest.mark.parametrize("name", SKIPPED)
def test_a_skipped_case_cannot_pass(name, boot):
    """It fails, or v86 ends."""
    run = boot(f"run -p init usertests {name}")
    assert "\n1..1\r\n" in run.text, run.explain()
    assert [e["ok"] for e in run.named.get("user-test", [])] in ([], [False])


# ---- workloads -------------------------------------------------------------

@pytest.fixture(scope="module")
def work(boot):
    return boot(*(f"run {name}" for name in WORKLOADS))


def test_run_ends_well_workloads(work):
    work.good()


@pytest.mark.parametrize("name", WORKLOADS)
def test_workload(name, work):
    done = {e["name"]: (e["exit"], e["signal"]) for e in work.named["run"]}
    assert done.get(name) == (0, 0), work.explain()
