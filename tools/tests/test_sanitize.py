"""The build that watches itself, `make SANITIZE=1 DEBUG=1`: the address and
undefined behaviour sanitizers, and the assertions about the order of locks. All
suites, in ring 0 and in ring 3, and the workloads must pass there as well; and
what the sanitizers find must end in a report and a panic."""

import os
import subprocess

import pytest

from conftest import BUILD, ROOT
from slate import qemu

WORK = ("test", "run init usertests", "run init kenbus", "run init hackbench",
        "run init syscallfuzz -s 7 -n 3000", "stress 42 3000", "verify",
        "poweroff")


@pytest.fixture(scope="module")
def watched():
    folder = BUILD / "sanitize"
    clean = {k: v for k, v in os.environ.items()
             if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "BUILD", "V")}
    done = subprocess.run(
        ["make", "--no-print-directory", "-j2", "SANITIZE=1", "DEBUG=1",
         "DWARF=0", f"BUILD={folder}", f"{folder}/slate.elf"], cwd=ROOT,
        text=True, check=False, capture_output=True, env=clean)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "slate.elf"


def boot(kernel, commands):
    return qemu.run(kernel, "; ".join(commands), memory="32", budget=200_000,
                    initrd=BUILD / "initrd.tar")


@pytest.fixture(scope="module")
def run(watched):
    return boot(watched, WORK)


def test_suites_of_the_kernel(run):
    assert run.problem is None, run.explain()
    verdict = run.named["tests"][0]
    assert verdict["passed"] > 500 and verdict["failed"] == 0, run.explain()
    seen = {e["name"] for e in run.named["test"] if e["suite"] == "sanitize"}
    assert "every_mistake_is_reported_and_named" in seen


def test_system_calls(run):
    verdict = run.named["user-tests"][0]
    assert verdict["passed"] > 150 and verdict["failed"] == 0, run.explain()


def test_workloads(run):
    assert "sanitizer" not in run.named, run.explain()
    assert "every invariant holds" in run.text, run.explain()


@pytest.mark.parametrize("command, report, says", [
    ("sanitize heap", "heap-out-of-bounds",
     ["write of 1 byte", "heap_write+0x", "cache kmem_alloc_16, in use",
      "*05 "]),
    ("sanitize free", "double-free",
     ["free_twice+0x", "cache kmem_alloc_64, free"]),
    ("sanitize stack", "stack-out-of-bounds",
     ["the frame of stack_write", "on_stack"]),
    ("sanitize global", "global-out-of-bounds",
     ["13 bytes from the start of table"]),
    ("sanitize divide", "division",
     ["1 / 0", "kernel/sanitize/mistakes.c:"]),
    ("bug write-after-free", "use-after-free",
     ["write of 4 bytes", "bug_write_after_free+0x", "cache zoo_snode, free"]),
])
def test_reports(watched, command, report, says):
    run = boot(watched, [command, "version", "poweroff"])
    events = run.named.get("sanitizer", [])
    assert [e["kind"] for e in events] == [report], run.explain()
    assert report in run.named["panic"][0]["text"], run.explain()
    for words in says:
        assert words in run.text, run.explain()
