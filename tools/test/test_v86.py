"""Slate in v86: the kernel's suites pass."""

import pytest

from conftest import product
from tools.run import elf, v86

# Counter and clock stand still within a block of code, and the controller does
# not repeat bytes as if they came from the keyboard.
SKIPPED = {"needs a keyboard that tests can press",
           "compares times; make ICOUNT=1 counts instructions",
           "needs ticks of the clock at any instruction"}

pytestmark = [pytest.mark.long, pytest.mark.plain, pytest.mark.spread]


def test_the_suites_pass():
    kernel = product("slate-workshop.elf", "workshop")
    result = v86.run(kernel, "test; verify; poweroff")
    assert result.problem is None, result.explain()
    cases = result.named["test"]
    assert [c for c in cases if not c["ok"]] == []
    assert {c["skipped"] for c in cases if c["skipped"]} == SKIPPED
    assert len(cases) == len(elf.kernel_cases(kernel))
    assert "every invariant holds" in result.text
