"""`slate bt` at every instruction of a switch: each task has its own stack,
up to where it began, and the one that runs is the one whose stack ESP is on."""
# Tests: kernel/task/sched.c, kernel/x86/switch.asm

import re

import pytest

from conftest import sanitized
from tools.run import gdb

pytestmark = pytest.mark.skipif(
    sanitized(), reason="the sanitizers' kernel begins its stacks elsewhere")

# What a stack ends with: the shell's task, tasks of the kernel, programs.
FIRST = {"kernel": "boot_high", "reaper": "switch_begin",
         "kmem_reapd": "switch_begin", "idle": "switch_begin",
         "sleep": "_start"}
PIDS = 0, 1, 2, 4
STEPS = 150


def first(text):
    """The function that the stack of a task in this answer ends with. A
    program that has ended has no memory of its own any more."""
    return "trap_syscall" if text.startswith("sleep(4), ended\n") else \
        FIRST[text.split("(")[0]]


def names_in(text):
    return re.findall(r"^#\d+ +(?:0x\w+ in )?(\w+)", text, re.M)


@pytest.fixture(scope="module")
def steps(kernel):
    """For each instruction {command: what GDB says}. The shell's task waits for
    `sleep`, and the first task to run then begins; later `sleep` waits and
    ends while others run."""
    asked = ["x/i $pc", "slate bt", *(f"slate bt {pid}" for pid in PIDS)]
    session = gdb.Session(kernel, "run sleep 1; poweroff", [
        (at, [f"{command} # {i}" for i in range(n)
              for command in (*asked, "stepi")])
        for at, n in (("sched_block", STEPS), ("sys_sleep", 0),
                      ("sched_block", STEPS), ("sys_exit", 0),
                      ("sched_switch", STEPS))])
    return [{command: said[f"{command} # {i}"] for command in asked}
            for said in session.said for i in range(STEPS) if said]


def test_every_task_has_its_own_stack(steps):
    for said in steps:
        for pid in PIDS:
            text = said[f"slate bt {pid}"]
            if "has not run yet" not in text and \
                    text != "sleep(4), ended\n":
                assert names_in(text)[-1] == first(text), said


def test_the_task_that_runs_is_the_one_on_the_stack(steps):
    seen = set()
    for said in steps:
        text = said["slate bt"]
        task, pid = re.match(r"(\w+)\((\d+)\), ", text).groups()
        function = re.search(r"<(\w+)", said["x/i $pc"])[1]
        assert names_in(text)[-1] == first(text), said
        assert function in names_in(text), said
        assert said[f"slate bt {pid}"] == text
        seen.add((task, function))
    assert {("kernel", "switch_stack"), ("reaper", "switch_stack")} <= seen
