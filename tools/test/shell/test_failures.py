"""Allocation failure everywhere: each workload runs with its first request for
memory failing, then its second, and so on until a run has no failure; the
heap must be sound and nothing leaked after each run. The kernel's command
`fail` does the runs, all in one boot."""

import pytest

from conftest import tiers
from tools.run import qemu

WORKLOADS = tiers([
    "true",
    "spike -n 2 -t 20",
    "hackbench -g 1 -f 2 -l 2",
    "mounttest",
    "sh -c 'pong & ping -n 2 -p'",
], [
    "walk",
    "init true",
    "forktest -n 4",
    "syscallfuzz -s 1 -n 200",
    "sh -c 'pong & ping -n 2 -s 5000'",
    "sh -c 'find /home | grep o | sort | wc; cat /proc/kmastat | head -n 2'",
], [  # thousands of runs
    "kenbus -u 1 -i 1",
    "bench pipe.roundtrip",
])

pytestmark = [pytest.mark.workshop, pytest.mark.spread]
BUDGET = 2_000_000  # millions of instructions, most of them asleep


def fail(kernel, kind, workload):
    result = qemu.run(kernel, f"fail {kind} {workload}; verify; poweroff",
                      memory="64", budget=BUDGET).good()
    verdict = result.named["fail"][0]
    assert verdict["untouched"], result.explain()
    assert verdict["bad"] == 0, result.explain()
    return verdict["requests"]


@pytest.mark.parametrize("kind", ["slab", "page"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_request_may_fail(kernel, kind, workload):
    assert fail(kernel, kind, workload) >= 10


def test_a_hunt_without_memory_leaves_no_cache(smp):
    run = qemu.run(smp, "fail page 1 -f alloc_begin; hunt alloc; fail off; "
                        "cache hunt; poweroff", extra=["-smp", "2"])
    text = qemu.plain(run.text)
    assert "hunt: there is too little memory" in text, text
    assert "no cache is called 'hunt'" in text, text
