"""Kernels that are built otherwise: each boots, and passes the suites of the
kernel, those of programs, and workloads. `make test-kernels` runs this file
alone; `make test DEBUG=1` and others run all tests on such a kernel."""

import pytest

from conftest import BUILD, KERNELS, other_kernel, tiers
from tools.run import elf, qemu

pytestmark = [pytest.mark.plain, pytest.mark.spread]

PROGRAMS = ("run -p init usertests", "run -p init libtest",
            "run -p init kenbus", "run -p init hackbench",
            "run -p init syscallfuzz -s 7 -n 3000")

each_kernel = pytest.mark.parametrize("name", tiers(
    [], ["sanitize-debug"], samples=[k for k in KERNELS
                                     if k != "sanitize-debug"]))


def boot(name, *commands):
    """A machine with as many processors as the kernel is for."""
    run = qemu.run(other_kernel(name),
                   "; ".join([*commands, "verify", "poweroff"]), memory="64",
                   budget=100_000, initrd=BUILD / "initrd-workshop.tar", extra=[
                       "-smp", "4" if "SMP=1" in KERNELS[name] else "1"]).good()
    assert "sanitizer" not in run.named, run.explain()
    return run


@each_kernel
def test_suites_of_the_kernel(name):
    run = boot(name, "test")
    cases = run.named["test"]
    assert [e["name"] for e in cases if not e["ok"] or e["skipped"]] == [], \
        run.explain()
    assert len(cases) == len(elf.kernel_cases(other_kernel(name)))


@each_kernel
def test_programs(name):
    run = boot(name, *PROGRAMS, "stress 42 3000")
    verdict = run.named["user-tests"][0]
    assert verdict["passed"] > 150 and verdict["failed"] == 0, run.explain()
    assert [e["exit"] or e["signal"] for e in run.named["run"]] == \
        [0] * len(PROGRAMS), run.explain()
