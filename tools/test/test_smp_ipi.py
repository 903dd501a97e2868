"""Interprocessor interrupts: the cases of the suite `ipi` on machines with one
to eight processors, the same each time, and where they really run at once."""
# Tests: kernel/x86/ipi.c

import pytest

from conftest import long
from test_smp_start import run

pytestmark = [long, pytest.mark.plain]

CASES = 4


@pytest.mark.parametrize("kernel", ["smp", "smp_debug"])
@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_interrupts_reach_all(request, kernel, count):
    kernel = request.getfixturevalue(kernel)
    commands = ("test ipi", "test paging", "leaks", "verify")
    done = run(kernel, count, *commands)
    assert f"# {CASES} passed, 0 failed" in done.text, done.explain()
    assert done.text.count(", 0 failed") == 2, done.explain()
    again = run(kernel, count, *commands)
    assert (again.text, again.events) == (done.text, done.events)


@pytest.mark.parametrize("count", [2, 4])
def test_interrupts_of_processors_that_run_at_once(smp, count):
    done = run(smp, count, *["test ipi"] * 5, counted=False,
               extra=["-accel", "tcg,thread=multi"])
    assert done.text.count(f"# {CASES} passed, 0 failed") == 5, done.explain()
