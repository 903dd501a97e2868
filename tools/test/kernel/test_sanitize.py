"""The build that watches itself, `make SANITIZE=1 DEBUG=1`: the address and
undefined behaviour sanitizers, and the assertions about the order of locks. An
error that the sanitizers find must end in a report and a panic.

This is part of `make test-all`, as are this kernel's suites and workloads
(test_kernels.py). `make test SANITIZE=1` runs all other tests on a kernel under
the sanitizers, and test_bugs.py compares the reports of planted bugs there."""

import pytest

from conftest import BUILD, long, other_kernel
from tools.book import book
from tools.run import qemu
from tools.test import shells

pytestmark = long


@pytest.fixture(scope="module")
def sanitized():
    return other_kernel("sanitize-debug")


def test_transcripts_of_the_sanitized_kernel(sanitized):
    """Its transcripts of such a kernel (tools/test/shells.py)."""
    found = [b for page in book.pages()
             for b in shells.blocks(page, "sanitize")]
    assert len(found) == 2
    wrong = shells.differences(shells.answers(
        sanitized, found, initrd=BUILD / "initrd-workshop.tar"))
    assert not wrong, wrong


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
def test_reports(sanitized, command, report, says):
    end = qemu.run(sanitized, f"{command}; poweroff", memory="32",
                   initrd=BUILD / "initrd-workshop.tar")
    events = end.named.get("sanitizer", [])
    assert [e["kind"] for e in events] == [report], end.explain()
    assert report in end.named["panic"][0]["text"], end.explain()
    for words in says:
        assert words in end.text, end.explain()
