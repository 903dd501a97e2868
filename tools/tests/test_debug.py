"""The build that asserts the order of locks, `make DEBUG=1`: all suites, in
ring 0 and in ring 3, must pass there as well."""

import os
import subprocess

import pytest

from conftest import BUILD, ROOT
from slate import qemu


@pytest.fixture(scope="module")
def run():
    folder = BUILD / "debug"
    clean = {k: v for k, v in os.environ.items()
             if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "BUILD", "V")}
    done = subprocess.run(
        ["make", "--no-print-directory", "-j2", "DEBUG=1", f"BUILD={folder}",
         "kernel"], cwd=ROOT, text=True, check=False, capture_output=True,
        env=clean)
    assert done.returncode == 0, done.stdout + done.stderr
    return qemu.run(folder / "slate.elf",
                    "test; run init usertests; verify; poweroff",
                    memory="64", budget=100_000)


def test_suites_of_the_kernel(run):
    assert run.problem is None, run.explain()
    verdict = run.named["tests"][0]
    assert verdict["passed"] > 500 and verdict["failed"] == 0, run.explain()


def test_system_calls(run):
    verdict = run.named["user-tests"][0]
    assert verdict["passed"] > 150 and verdict["failed"] == 0, run.explain()
    assert "every invariant holds" in run.text, run.explain()
