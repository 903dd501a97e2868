"""Slate in Bochs: the product boots and runs programs, and the kernel's suites
pass. A run is the same on every host."""

import pytest

from conftest import product
from tools.run import bochs, elf, iso, qemu

pytestmark = [pytest.mark.long, pytest.mark.plain, pytest.mark.spread]


def run(kernel, folder, commands):
    """The result of these commands, after a boot from a CD."""
    image = folder / "slate.iso"
    iso.write(kernel, qemu.initrd_of(kernel), image, f"run={commands}")
    return bochs.run(image)


def test_the_product_boots_and_runs_programs(tmp_path):
    result = run(product("slate.elf", "kernel"), tmp_path,
                 "run ls /bin; verify; poweroff").good()
    text = qemu.plain(result.text)
    assert "slate> run ls /bin; verify; poweroff\n" in text  # no noise before
    assert "kenbus" in text


def test_the_suites_pass(tmp_path):
    kernel = product("slate-workshop.elf", "workshop")
    result = run(kernel, tmp_path, "test; verify; poweroff").good()
    cases = result.named["test"]
    assert [c for c in cases if not c["ok"] or c["skipped"]] == []
    assert len(cases) == len(elf.kernel_cases(kernel))
