"""`make gdb`: GDB attaches to a halted machine, stops at kmain, shows source,
steps; and no QEMU stays behind."""

import subprocess
import sys

import pytest

from conftest import ROOT

COMMANDS = ["-ex", "echo at:", "-ex", "info line", "-ex", "list", "-ex", "step",
            "-ex", "info registers eip", "-ex", "bt", "-ex", "kill"]


@pytest.fixture(scope="module")
def session(kernel):
    return subprocess.run(
        [sys.executable, "tools/gdb/debug.py", str(kernel), "--", "--batch",
         *COMMANDS], cwd=ROOT, text=True, check=False, timeout=300,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)


def test_stops_at_kmain_with_source(session):
    assert "Breakpoint 1, kmain" in session.stdout, session.stdout
    assert "kernel/main.c" in session.stdout, session.stdout
    assert session.returncode == 0, session.stdout


def test_steps_and_sees_the_stack(session):
    after = session.stdout.split("Breakpoint 1, kmain", 1)[-1]
    assert "eip            0xc01" in after, session.stdout
    assert "#0 " in after, session.stdout


def test_names_the_serial_line(session):
    assert "serial line: /dev/pts/" in session.stdout, session.stdout
