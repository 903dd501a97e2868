"""A boot loader that violates Multiboot. No available loader does, so GDB
changes the loader's data before the kernel reads them."""

import os
import subprocess
import sys

import pytest

from conftest import ROOT
from tools.run import watchdog


@pytest.fixture
def boot_spoiled(kernel, tmp_path):
    """boot_spoiled(command, ...): the kernel's output from kmain until it
    halted, after GDB's commands. The last function that it calls is
    console_drain. The log of the serial line is written beside the kernel, so
    each test has a link to the kernel in a folder of its own."""
    (tmp_path / "slate.elf").symlink_to(kernel)

    def boot(*spoil):
        commands = [*spoil, "break console_drain", "continue", "detach"]
        arguments = [word for c in commands for word in ("-ex", c)]
        session = watchdog.run(
            [sys.executable, "-m", "tools.run.debug", tmp_path / "slate.elf",
             "--", "--batch", *arguments], cwd=ROOT, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "CMD": "", "APPEND": ""})
        assert ", console_drain ()" in session.stdout, session.stdout
        return (tmp_path / "gdb-serial.log").read_text(encoding="utf-8")
    return boot


def test_another_boot_loader_is_refused(boot_spoiled):
    text = boot_spoiled("set $eip = kmain", "set $eax = 0x1234")
    assert "not Multiboot (EAX is 0x00001234)" in text
    assert "Halted" in text


def test_a_missing_memory_map_is_reported(boot_spoiled):
    text = boot_spoiled("hbreak *memmap_init", "continue",
                        "set {int}$eax = 0")
    assert "gave no memory map" in text
    assert "Halted" in text


def test_a_broken_memory_map_is_reported(boot_spoiled):
    text = boot_spoiled("hbreak *memmap_init", "continue",
                        "set {int}($eax + 44) = 3")
    assert "memory map is empty or broken" in text
