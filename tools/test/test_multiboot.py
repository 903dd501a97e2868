"""A boot loader that does not keep to Multiboot. No loader at hand is that bad,
so GDB spoils what it handed over before the kernel looks."""

import os
import subprocess
import sys
from pathlib import Path

from conftest import ROOT


def boot_spoiled(kernel, *spoil):
    """What the kernel printed until it halted, from kmain on. console_drain is
    the last that it calls."""
    commands = [*spoil, "break console_drain", "continue", "detach"]
    arguments = [word for c in commands for word in ("-ex", c)]
    session = subprocess.run(
        [sys.executable, "-m", "tools.gdb.debug", str(kernel), "--", "--batch",
         *arguments], cwd=ROOT, text=True, check=False, timeout=300,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env={**os.environ, "CMD": "", "APPEND": ""})
    assert ", console_drain ()" in session.stdout, session.stdout
    return (Path(kernel).parent / "gdb-serial.log").read_text()


def test_another_boot_loader_is_refused(kernel):
    text = boot_spoiled(kernel, "set $eip = kmain", "set $eax = 0x1234")
    assert "not Multiboot (EAX is 0x00001234)" in text
    assert "Halted" in text


def test_a_missing_memory_map_is_reported(kernel):
    text = boot_spoiled(kernel, "hbreak *memmap_init", "continue",
                        "set {int}$eax = 0")
    assert "gave no memory map" in text
    assert "Halted" in text


def test_a_broken_memory_map_is_reported(kernel):
    text = boot_spoiled(kernel, "hbreak *memmap_init", "continue",
                        "set {int}($eax + 44) = 3")
    assert "memory map is empty or broken" in text
