"""The commands of `slab` in GDB, against the kernel shell's own.

The machine runs a workload and then the shell's commands one by one; GDB stops
where each begins and gives its own answer to the same question. Both texts
must be equal, line by line. At the last stop every command's example is tried,
and then the heap is broken, one invariant at a time.
"""

import json
import re
import subprocess

import pytest

from conftest import ROOT
from slate import gdb

WORKLOAD = "stress 1 99;kmem create box 200;kmem alloc box 50;" \
           "kmem free box 17;mark a;run ls;"
LINE_MAX = 255  # of the kernel's shell

# What the shell is asked. `slab` gets the same line in front of it. A shell's
# line holds no more, so there are several runs of the same workload. No command
# comes twice in a row: where the compiler has split its function, GDB may stop
# in it twice.
FIRST = ["kmastat -z", "frag", "kmastat -w", "cache inode", "kmastat -j",
         "ws", "kmastat -T", "cache kstack", "kmastat -m pipe", "ws -j",
         "kmastat -s waste kmem_*", "cache -j pipe"]
SECOND = ["hash", "slabs box", "hash kstack", "frag -j", "hash -j",
          "slabs -v kmem_slab", "colours", "mark", "slabs -j", "colours box",
          "mark -j", "colours -j", "verify box"]
THIRD = ["diff a", "buddyinfo", "diff -j a", "pages", "buddyinfo -j",
         "pages -j", "whatis kmain", "pages -r", "whatis page_array",
         "pages kmain", "whatis 3fff000", "verify", "walk hash", "verify -j"]
FOURTH = ["walk alloc box", "map {inode}", "walk -j free box",
          "whatis {inode}", "walk slab -n 9", "whatis {free}",
          "walk bufctl kstack", "map {free}", "walk -j bufctl box -n 5"]

# Everything that section 9 of the allocator's specification asks for, of what
# needs no debugging mode.
COMMANDS = """break buddyinfo cache colours diff explain frag freelist hash
    kmastat layout map mark pages refs selftest slabs snapshot timeline verify
    walk whatis ws""".split()


def function(line):
    """The shell's function that runs a command line."""
    return f"cmd_{line.split()[0]}"


# The shell complains of this between two commands.
END = "try_acpi"  # where the machine has printed everything
MARK = "@"
MARKED = r'^slate: no command "@".*\n'


def answers(kernel, lines, last=(), workload=WORKLOAD, **options):
    """{line: (what the shell printed, what GDB did)}, and what GDB answered to
    `last` behind them all. A shell's line holds only so much: there are as
    many runs as are needed."""
    n, typed = 0, workload + MARK
    while n < len(lines):
        more = f"{typed};{lines[n]};{MARK}"
        if len(more + ";poweroff") > LINE_MAX:
            break
        n, typed = n + 1, more
    assert n, typed
    here, rest = lines[:n], lines[n:]
    steps = [(function(line), [f"slab {line}"]) for line in here]
    steps.append((END, list(last)))
    session = gdb.Session(kernel, f"{typed};poweroff", steps, **options)
    shell = [text.splitlines() for text in
             re.split(MARKED, session.serial, flags=re.M)[1:]]
    own = [said[f"slab {line}"].splitlines()
           for said, line in zip(session.said, here)]
    pairs, said = dict(zip(here, zip(shell, own))), session.said[-1]
    if rest:
        more, said = answers(kernel, rest, last, workload, **options)
        pairs.update(more)
    return pairs, said


@pytest.fixture(scope="module")
def addresses(first):
    """Two addresses in slabs: of an object in use, and of a free one."""
    own = first[1]
    return {"inode": re.search(r"0x(\w+)", own['print $cache("inode")'])[1],
            "free": re.search(r"0x(\w+)", own["slab walk free box -n 1"])[1]}


@pytest.fixture(scope="module")
def first(kernel):
    return answers(kernel, FIRST, ['print $cache("inode")',
                                   "slab walk free box -n 1"])


@pytest.fixture(scope="module")
def compared(kernel, first, addresses):
    """All pairs of answers."""
    pairs = dict(first[0])
    fourth = {line: line.format(**addresses) for line in FOURTH}
    for lines in (SECOND, THIRD):
        pairs.update(answers(kernel, lines)[0])
    told = answers(kernel, list(fourth.values()))[0]
    pairs.update((line, told[real]) for line, real in fourth.items())
    return pairs


def bare(lines):
    """Columns at the end of a line may be empty."""
    return [line.rstrip() for line in lines]


@pytest.mark.parametrize("line", FIRST + SECOND + THIRD + FOURTH)
def test_gdb_and_shell_say_the_same(compared, line):
    shell, own = compared[line]
    assert shell and own and not own[0].startswith("error"), own
    if line.startswith("verify") and "box" not in line:
        # The shell goes on to what is no heap.
        shell, own = shell[:len(own) - 1], own[:-1]
    if line == "diff a":  # the clock may step between the two
        shell[-1], own[-1] = (re.sub(r"\d+ms", "ms", text)
                              for text in (shell[-1], own[-1]))
    assert bare(own) == bare(shell)


def test_the_comparison_can_fail(compared):
    """Two different answers, taken for the same question."""
    assert bare(compared["kmastat -z"][0]) != bare(compared["kmastat -w"][1])
