"""`defrag`: pages come back when unused inodes are evicted from sparse slabs,
and not when as many are reclaimed in the order of their last use."""
# Tests: tools/workshop/defrag/cmd_defrag.c, tools/workshop/defrag/defrag.c

import json
import re

import pytest

from tools.run import qemu

pytestmark = [pytest.mark.plain, pytest.mark.workshop]

# All inodes are cached; then some of each folder are used again.
WORK = "run walk; run sh -c 'ls -l /bin/*e >/dev/null'"
SLABS = re.compile(r"^inode: (\d+) objects in (\d+) slabs: (\d+) full, (\d+) "
                   r"partial, (\d+) free", re.M)


def run(kernel, *commands):
    done = qemu.run(kernel, "; ".join([*commands, "verify", "poweroff"]),
                    budget=40_000).good()
    return done


def states(text):
    """(objects, slabs, full, partial, free) before and after each command."""
    return [tuple(map(int, found.groups())) for found in SLABS.finditer(text)]


def test_the_same_number_evicted_returns_more_slabs(kernel):
    free = {}
    for option in ("-n", "-l"):
        done = run(kernel, WORK, f"defrag {option} 60 inode",
                   "defrag -s inode")
        before, after, sorted_before, sorted_after = states(done.text)
        assert before[0] - after[0] == 60 and after[1] == before[1]
        assert sorted_before == sorted_after == after
        free[option] = after[4]
    assert free["-n"] > free["-l"], free


def test_sparse_slabs_alone(kernel):
    """Without -n slabs of which more than half is in use are left alone."""
    done = run(kernel, WORK, "defrag inode", "reap -a inode", "run walk",
               "defrag inode")
    before, after, *_ = states(done.text)
    evicted, used = map(int, re.search(
        r"^(\d+) objects evicted; (\d+) are in use", done.text, re.M).groups())
    assert before[0] - after[0] == evicted
    assert {e["exit"] for e in done.named["run"]} == {0}


def test_slabs_are_kept_sorted(kernel):
    """From the next update of the working set on, until it is switched off."""
    done = run(kernel, "reap -i 1; kmem create b 200; kmem alloc b 400",
               "kmem free b 160 random", "slabs -j b",
               "cache b partial=sorted", "run sleep 2", "slabs -j b",
               "cache b partial=own", "kmem free b 60 random", "run sleep 2",
               "slabs -j b")
    orders = []
    for row in map(json.loads, re.findall(r"^{.*}", done.text, re.M)):
        if row["state"] != "partial":
            continue
        if row["freelist"]: # the first partial slab
            orders.append([])
        orders[-1].append(row["used"])
    own, kept, after = orders
    assert kept == sorted(kept, reverse=True) and len(kept) > 10
    assert own != sorted(own, reverse=True)
    assert after != sorted(after, reverse=True)


def test_the_order_is_measured(kernel):
    done = run(kernel, "defrag -e")
    rows = re.findall(r"^(own|sorted) +(\d+) +(\d+) +(\d+) +(\d+)", done.text,
                      re.M)
    assert [row[0] for row in rows] == ["own", "sorted"]
    for _, slabs, *states in rows:
        assert int(slabs) == sum(map(int, states)) == 200


@pytest.mark.parametrize("command, error", [
    ("defrag task", "defrag: task: its owner has no function that evicts an "
                    "object; inode has one"),
    ("defrag nothing", "defrag: no cache is called 'nothing'"),
    ("defrag", "usage: defrag [-s] [-n N] [-l N] CACHE"),
    ("defrag -n 0 inode", "defrag: -n "),
    ("defrag -l many inode", "usage: defrag"),
    ("defrag -l 5 task", "defrag: -l is about inodes"),
    ("cache nothing partial=own", "cache: no cache is called 'nothing'"),
    ("defrag -l 5 -n 5 inode", "defrag: one of -s, -n and -l"),
])
def test_bad_arguments(shell, command, error):
    assert error in shell.command(command)
    assert "every invariant holds" in shell.command("verify")
