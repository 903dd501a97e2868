"""Two counted runs are the same to the last byte."""
# Tests: kernel/budget.c, drivers/pit.c

import shutil

import pytest

from tools.run import qemu


def test_counted_runs_are_identical(kernel):
    first, second = (qemu.run(kernel, "run spike -n 20; kmastat -j; poweroff")
                     for _ in range(2))
    assert "kmem_cache" in first.good().text, first.explain()
    assert first.text == second.text
    assert first.events == second.events


def test_the_folder_does_not_matter(kernel, tmp_path):
    """A boot loader hands a kernel the paths of what it loaded. The kernel
    reads them before its first prompt, whose event counts instructions."""
    there = tmp_path / ("a" * 90)
    there.mkdir()
    pairs = [(path, shutil.copy(path, there))
             for path in (kernel, qemu.initrd_of(kernel))]
    here, far = (qemu.run(image, "run spike -n 2; kmastat; poweroff",
                          initrd=initrd) for image, initrd in zip(*pairs))
    assert here.good().text == far.text and here.events == far.events


def test_what_cannot_be_loaded(kernel, tmp_path):
    for image, archive in ((tmp_path / "no.elf", ""), (kernel, tmp_path)):
        with pytest.raises(qemu.QemuError, match="is not a file"):
            qemu.run(image, "poweroff", initrd=archive)


def test_the_budget_ends_a_run(kernel):
    run = qemu.run(kernel, "run kenbus -i 100000; poweroff", budget=5)
    assert run.problem == "the instruction budget was used up", run.explain()
    assert run.status == 2 * 3 + 1, run.explain()
