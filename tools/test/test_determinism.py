"""Two counted runs are the same to the last byte."""
# Tests: kernel/budget.c, drivers/pit.c

import pytest

from tools.run import qemu


@pytest.mark.parametrize("commands", [
    "kmastat; poweroff", "run spike -n 20; kmastat -j; poweroff"])
def test_counted_runs_are_identical(kernel, commands):
    first, second = (qemu.run(kernel, commands) for _ in range(2))
    assert first.problem is None, first.explain()
    assert "kmem_cache" in first.text, first.explain()
    assert first.text == second.text
    assert first.events == second.events


def test_the_budget_ends_a_run(kernel):
    run = qemu.run(kernel, "run kenbus -i 100000; poweroff", budget=30)
    assert run.problem == "the instruction budget was used up", run.explain()
    assert run.status == 2 * 3 + 1, run.explain()
