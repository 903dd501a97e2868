"""Messages between processors: the cases of the suite `call` on machines with
one to eight, the same each time, and where they really run at once."""
# Tests: kernel/x86/call.c

import pytest

from conftest import long
from test_smp_start import run

pytestmark = [long, pytest.mark.plain]

CASES = 4


@pytest.mark.parametrize("kernel", ["smp", "smp_debug"])
@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_messages_reach_all(request, kernel, count):
    kernel = request.getfixturevalue(kernel)
    commands = ("test call", "test paging", "leaks", "verify")
    done = run(kernel, count, *commands)
    assert f"# {CASES} passed, 0 failed" in done.text, done.explain()
    assert done.text.count(", 0 failed") == 2, done.explain()
    assert "every invariant holds" in done.text
    again = run(kernel, count, *commands)
    assert (again.text, again.events) == (done.text, done.events)


@pytest.mark.parametrize("count", [2, 4])
def test_messages_of_processors_that_run_at_once(smp, count):
    done = run(smp, count, *["test call"] * 5, counted=False,
               extra=["-accel", "tcg,thread=multi"])
    assert done.text.count(f"# {CASES} passed, 0 failed") == 5, done.explain()
