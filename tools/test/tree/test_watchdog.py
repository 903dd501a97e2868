"""The watchdog of the host's processes (tools/run/watchdog.py)."""

import os
import subprocess
import sys

import pytest

from tools.run import watchdog

pytestmark = pytest.mark.plain


def test_runs_a_program():
    done = watchdog.run([sys.executable, "-c", "print(input()); exit(3)"],
                        input="said\n",
                        encoding="utf-8", stdout=subprocess.PIPE)
    assert (done.stdout, done.returncode) == ("said\n", 3)


def test_there_is_no_input_from_the_terminal():
    done = watchdog.run(["cat"], capture_output=True)
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0)


def test_ends_a_program_and_what_it_started(monkeypatch, tmp_path):
    """Each holds the pipe open; its end is read when both are dead."""
    monkeypatch.setattr(watchdog, "SECONDS", 0.2)
    os.mkfifo(tmp_path / "held")
    reader = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(watchdog.Watchdog, match=r"(?s)^watchdog: sh -c .* "
                       r"still ran after 0\.2 s of the host; this"):
        watchdog.run(["sh", "-c", f"exec 3>{tmp_path}/held\n"
                      "sleep 1000000 & sleep 1000000"])
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""
    os.close(reader)
