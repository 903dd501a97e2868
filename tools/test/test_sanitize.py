"""The build that watches itself, `make SANITIZE=1 DEBUG=1`: the address and
undefined behaviour sanitizers, and the assertions about the order of locks. All
suites, in ring 0 and in ring 3, and the workloads must pass there as well; and
an error that the sanitizers find must end in a report and a panic, or of `bug
-s` in a report. docs/heap-bugs.md has their reports of planted bugs.

This is part of `make test-all`. `make test SANITIZE=1` runs all other tests
on a kernel under the sanitizers, too."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import BUILD, ROOT, long
from tools.book import book
from tools.run import qemu
from tools.test import planted, shells

pytestmark = long

FOLDER = BUILD / "sanitize-debug"
KERNEL = FOLDER / "slate-workshop.elf"
WORK = ("run -p init usertests", "run -p init kenbus", "run -p init hackbench",
        "run -p init syscallfuzz -s 7 -n 3000", "stress 42 3000", "verify",
        "poweroff")


def build():
    clean = {k: v for k, v in os.environ.items()
             if k not in ("BUILD", "V")}
    return subprocess.run(
        ["make", "--no-print-directory", "-j2", "SANITIZE=1", "DEBUG=1",
         "DWARF=0", f"BUILD={FOLDER.relative_to(ROOT)}",
         str(KERNEL.relative_to(ROOT))], cwd=ROOT, encoding="utf-8",
        check=False, capture_output=True, env=clean)


def boot(commands):
    return qemu.run(KERNEL, "; ".join(commands), memory="32", budget=200_000,
                    initrd=BUILD / "initrd-workshop.tar")


@pytest.fixture(scope="module")
def runs():
    """One of the suites and one of WORK, side by side."""
    done = build()
    assert done.returncode == 0, done.stdout + done.stderr
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(boot, [("test", "poweroff"), WORK]))


@pytest.fixture
def run(runs):
    return runs[1]


def test_suites_of_the_kernel(runs):
    run = runs[0]
    assert run.problem is None, run.explain()
    assert "sanitizer" not in run.named, run.explain()
    verdict = run.named["tests"][0]
    assert verdict["passed"] > 500 and verdict["failed"] == 0, run.explain()
    seen = {e["name"] for e in run.named["test"] if e["suite"] == "sanitize"}
    assert "every_mistake_is_reported_and_named" in seen


def test_system_calls(run):
    verdict = run.named["user-tests"][0]
    assert verdict["passed"] > 150 and verdict["failed"] == 0, run.explain()


def test_transcripts_of_the_sanitized_kernel(run):
    """Its transcripts of such a kernel (tools/test/shells.py)."""
    found = [b for page in book.pages()
             for b in shells.blocks(page, "sanitize")]
    assert len(found) == 2
    wrong = shells.differences(shells.answers(
        KERNEL, found, initrd=BUILD / "initrd-workshop.tar"))
    assert not wrong, wrong


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
     ["1 / 0", "tools/workshop/sanitize/mistakes.c:"]),
    ("bug write-after-free", "use-after-free",
     ["write of 4 bytes", "bug_write_after_free+0x", "cache bugs_snode, free"]),
])
def test_reports(run, command, report, says):
    end = boot([command, "poweroff"])
    events = end.named.get("sanitizer", [])
    assert [e["kind"] for e in events] == [report], end.explain()
    assert report in end.named["panic"][0]["text"], end.explain()
    for words in says:
        assert words in end.text, end.explain()


@pytest.mark.parametrize("mode", ["-", "P"])
def test_planted_bugs(run, mode):
    """With and without objects left to a mode."""
    end = boot([f"bug -s -m {mode} all", "verify", "poweroff"])
    bugs = {e["name"] for e in end.named["bug-step"]}
    assert bugs == planted.survived(mode), end.explain()
    wrong = planted.differences(end, bugs, mode)
    assert not wrong, f"{wrong}\n{end.explain()}"
    assert planted.reports(end), end.explain()
    assert "every invariant holds" in end.text, end.explain()


@pytest.mark.parametrize("mode, bug", [
    ("-", "zero-bytes"), ("P", "uninitialised"), ("P", "free-loop")])
def test_planted_bugs_that_fault(run, mode, bug):
    end = boot([f"bug -s -m {mode} {bug}", "poweroff"])
    assert {e["name"] for e in end.named["bug-step"]} == {bug}
    wrong = planted.differences(end, {bug}, mode)
    assert not wrong, f"{wrong}\n{end.explain()}"
    assert planted.reports(end), end.explain()
