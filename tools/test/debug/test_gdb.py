"""`make gdb`: GDB attaches to a halted machine, stops at kmain, shows source,
steps; and no QEMU is left running."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, execute
from tools.run import watchdog

COMMANDS = ["-ex", "echo at:", "-ex", "info line", "-ex", "list", "-ex", "step",
            "-ex", "info registers eip", "-ex", "bt", "-ex", "detach"]


MARK = f"echo mark-{os.getpid()}"  # finds our QEMU among all processes


@pytest.fixture(scope="module")
def session(kernel):
    return watchdog.run(
        [sys.executable, "-m", "tools.run.debug", str(kernel), "--", "--batch",
         *COMMANDS], cwd=ROOT, encoding="utf-8", stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env={**os.environ, "CMD": MARK})


def test_steps_and_sees_the_stack(session):
    after = session.stdout.split("Breakpoint 1, kmain", 1)[-1]
    assert "eip            0xc01" in after, session.stdout
    assert "#0 " in after, session.stdout


def test_shows_source_and_names_its_commands(session):
    """The arguments of this file come after what everybody gets: the line of
    the stop, and the lines around it."""
    assert session.returncode == 0, session.stdout
    before = session.stdout.split("at:", 1)[0]
    at = re.search(r"Breakpoint 1, kmain .* at kernel/main\.c:(\d+)\n", before)
    lines = (ROOT / "kernel/main.c").read_text("utf-8").splitlines()
    shown = [(int(number), text) for number, text in
             re.findall(r"(?m)^(\d+)\t(.*)$", before[at.end():])]
    assert len(shown) == 11 and [n for n, _ in shown].count(int(at[1])) == 2
    assert all(lines[number - 1] == text for number, text in shown), before
    assert "\n`slate help` lists the kernel's reports" in before, before


@pytest.mark.parametrize("further", [[], ["-ex", "continue"]])
def test_the_end_of_a_machine_that_powers_off(kernel, further):
    done = execute(sys.executable, "-m", "tools.run.debug", kernel, "--",
                   "-batch", "-ex", "break power_off", "-ex", "continue",
                   *further, "-ex", "quit", CMD="poweroff")
    assert "Breakpoint 2, power_off" in done.stdout, done.stdout
    assert ("signal SIGQUIT" in done.stdout) == bool(further), done.stdout
    assert "communication error" not in done.stdout, done.stdout
    assert done.returncode == 0


def test_names_the_serial_line(session):
    assert "serial line: /dev/pts/" in session.stdout, session.stdout


def test_a_long_name_of_the_folder_for_temporary_files(kernel, tmp_path):
    """The path of a Unix socket has at most 107 bytes."""
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    done = execute(sys.executable, "-m", "tools.run.debug", kernel, "--",
                   "--batch", TMPDIR=str(folder))
    assert "Breakpoint 1, kmain" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(),
                    reason="processes are listed in another way here")
def test_no_qemu_is_left_running(session):
    assert "Breakpoint 1, kmain" in session.stdout, session.stdout
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert MARK.encode() not in process.read_bytes(), process
        except OSError:
            pass  # the process ended meanwhile
