"""`make test-times`: the cost of a test, its children included."""

import json
import sys

import pytest

from conftest import ROOT, execute

pytestmark = pytest.mark.plain

# So many processor seconds, in the test itself and in a child of it.
BUSY = 0.2
FILE = f'''import subprocess, sys, time
WORK = "import time\\nwhile time.process_time() < {BUSY}: pass"
def busy():
    end = time.process_time() + {BUSY}
    while time.process_time() < end: pass
busy()  # a test does not cost what its file does
def test_cheap(): pass
def test_child(): subprocess.run([sys.executable, "-c", WORK], check=True)
def test_busy(): busy()
'''


def test_processor_seconds_are_noted_and_printed(tmp_path):
    (tmp_path / "test_work.py").write_text(FILE, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {ROOT}/tools/test\n", encoding="utf-8")
    out = tmp_path / "times/test.json"
    run = execute(sys.executable, "-m", "pytest", "-p", "times",
                  f"--times={out}", cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    seconds = {name.split("::")[1]: value
               for name, value in json.loads(out.read_text("utf-8")).items()}
    assert set(seconds) == {"test_cheap", "test_child", "test_busy"}
    assert min(seconds["test_child"], seconds["test_busy"]) >= BUSY
    assert seconds["test_cheap"] < BUSY
    shown = execute(sys.executable, "tools/test/times.py", out.parent).stdout
    rows = [line.split() for line in shown.splitlines()]
    assert ["test_work.py"] == [row[2] for row in rows if len(row) == 3
                                and row[1] == "3" and row[2] != "in"]
    assert rows[-2][-1].endswith("::test_cheap")  # the dearest come first
