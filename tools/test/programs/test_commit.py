"""Promised memory, seen from both rings: its figures, the kernel's share, and
machines with little memory."""
# Tests: kernel/vm/commit.c, user/tests/promise.c, user/lib/mm_sbrk.c
# Tests: user/bin/free.c

import re

import pytest

from conftest import sanitized, sessions
from tools.run import qemu

pytestmark = [pytest.mark.workshop, pytest.mark.skipif(
    sanitized(), reason="the sanitizers' kernel needs other amounts")]

PAGE = 4  # KiB


def meminfos(text):
    """The figures of each `meminfo -j`, in pages."""
    found = []
    for row in (row for row in qemu.json_lines(text) if "use" in row):
        if row["use"] == "frames":
            found.append({})
        found[-1][row["use"]] = row["pages"]
    return found


def files(text):
    """The figures of each reading of /proc/meminfo, and of `meminfo`, which
    prints the same table, in KiB."""
    found = []
    for table in re.findall(r"(?m)^USE +PAGES +KIB\r?\n"
                            r"((?: *\w+ +\d+ +\d+\r?\n)+)", text):
        rows = [line.split() for line in table.splitlines()]
        assert all(int(kib) == int(pages) * PAGE for _, pages, kib in rows)
        found.append({use: int(kib) for use, _, kib in rows})
    return found


def run(kernel, commands, **arguments):
    result = qemu.run(kernel, f"{commands}; verify; poweroff",
                      budget=20_000, **arguments).good()
    return result


@pytest.mark.parametrize("memory", ["8", "64"])
def test_both_rings_show_the_same(kernel, memory):
    """A program prints them while `sleep` runs, then the kernel's shell does,
    with these two programs again."""
    result = run(kernel, "run -b promise 1000 60;run sleep 0.5;"
                 "run -b sleep 60;meminfo -j;meminfo;sessions -j",
                 memory=memory)
    theirs, shown = files(result.text)
    ours, = meminfos(result.text)
    most, used = sessions(result.text).values()
    reserve = most["regions"] // 2 // 32
    assert theirs["committed"] == ours["committed"] * PAGE > 1000
    assert ours["committed"] == used["pages"]
    assert theirs["limit"] == \
        min(ours["limit"] - reserve, most["pages"]) * PAGE
    assert 0 < ours["user"] < ours["committed"] - 1000 / PAGE
    assert shown == {use: pages * PAGE for use, pages in ours.items()}


def test_free_shows_it(kernel):
    result = run(kernel, "run free;run cat /proc/meminfo")
    for rows in files(result.text):
        assert 0 < rows["user"] < rows["committed"] < rows["limit"]
        assert rows["limit"] < rows["free"] + rows["user"]
    assert len(files(result.text)) == 2


def test_all_promises_end(kernel):
    """A program that ends by itself, is killed or refused leaves no promise."""
    result = run(kernel, "run true;run promise 100;meminfo -j;"
                 "run promise -u 20000;run promise 1000000;"
                 "run -b promise 20000 60;run sleep 0.5;meminfo -j;"
                 "run crash null;kill -9 8;run sleep 0.1;meminfo -j",
                 memory="64")
    before, during, after = meminfos(result.text)
    assert "promise: 1000000 KiB: out of memory" in result.text
    assert before["committed"] == after["committed"] == 0
    assert during["committed"] * PAGE > 20000
    assert before["user"] == after["user"] == 0


def test_what_is_promised_is_there(kernel):
    """Two programs wait with all memory between them; a third is refused, then
    both use all of theirs."""
    result = run(kernel, "run -b promise -u 29000 4;run -b promise -u 26000 4;"
                 "run sleep 1;run promise 9000;stress 1 3000;verify;"
                 "run sleep 6;meminfo -j", memory="64")
    assert "promise: 9000 KiB: out of memory" in result.text
    assert "killed" not in result.text, result.explain()
    assert meminfos(result.text)[-1]["committed"] == 0


@pytest.mark.parametrize("memory", ["8", "16"])
def test_small_machines(kernel, memory):
    result = run(kernel, "run -p init usertests commit;verify;run sleep 0.1;"
                 "run forktest;run spike;verify;run promise 100",
                 memory=memory)
    done, = result.named["user-tests"]
    assert done["passed"] > 0 and done["failed"] == 0, result.explain()
    assert re.search(r"forktest: \d+ processes, then: out of memory; "
                     "fork works again", result.text), result.explain()
    assert len(files(result.text)) == 1


def test_the_kernels_share(kernel):
    """The figures beside COMMIT_KERNEL_SHARE: pages of the kernel for a
    process, and for what its shell shows."""
    processes = "run -b sleep 60;" * 8
    result = run(kernel, "run -b sleep 60;meminfo -j;" + processes +
                 "meminfo -j")
    one, nine = (info["slab"] for info in meminfos(result.text))
    assert (nine - one) / 8 == pytest.approx(5, abs=0.5)
    result = run(kernel, "run true;meminfo -j;ps;kmastat;slabs;pages;inodes;"
                 "meminfo -j")
    before, after = (info["slab"] for info in meminfos(result.text))
    assert before == after


def test_the_message_of_a_stack_that_cannot_grow(kernel):
    result = run(kernel, "run -p init usertests commit.stack_beyond_reserve "
                 "memory.stack_overflow", memory="16")
    killed = re.findall(r"usertests .* killed .*", result.text)
    assert "memory for a larger stack cannot be promised" in killed[-1] \
        or "memory for a larger stack cannot be promised" in killed[0]
    assert any("the stack has its maximum of 1024 KiB" in line
               for line in killed)
