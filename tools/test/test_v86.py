"""Slate in v86: the kernel's suites pass."""

import pytest

from conftest import product
from tools.run import elf, v86

pytestmark = [pytest.mark.long, pytest.mark.plain, pytest.mark.spread]


def test_the_suites_pass():
    kernel = product("slate-workshop.elf", "workshop")
    result = v86.run(kernel, "test; verify; poweroff")
    assert result.problem is None, result.explain()
    cases = result.named["test"]
    assert [c for c in cases if not c["ok"] or c["skipped"]] == []
    assert len(cases) == len(elf.kernel_cases(kernel))
    assert "every invariant holds" in result.text
