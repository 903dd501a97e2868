"""`slate bt` at every instruction of a switch, and of the functions of the
scheduler: each task has its own stack, of functions that call each other, up to
where it began, and the one that runs is the one whose stack ESP is on."""
# Tests: kernel/task/sched.c, kernel/x86/switch.asm

import re

import pytest

from conftest import long, output_of, sanitized
from tools.run import gdb

pytestmark = [long, pytest.mark.skipif(
    sanitized(), reason="the sanitizers' kernel begins its stacks elsewhere")]

# The last function of a stack: the shell's task, kernel tasks, programs.
FIRST = {"kernel": "boot_high", "reaper": "switch_begin",
         "kmem_reapd": "switch_begin", "idle": "switch_begin",
         **dict.fromkeys(("sleep", "init", "names", "sh", "pong", "ping"),
                         "_start")}
PIDS = 0, 1, 2, 4
STEPS, FEW = 150, 20
ENDED = 120  # then the shell removes the task that has ended

# The shell's task waits for `sleep`, and the first task to run then begins;
# later `sleep` waits and ends while others run, and programs exchange messages.
COMMANDS = "run sleep 1; run -b -p init; run -b pong; run sleep 1; run ping; " \
    "poweroff"
SWITCHES = [("sched_block", STEPS), ("sys_sleep", 0), ("sched_block", STEPS),
            ("sys_exit", 0), ("sched_switch", ENDED)]
POINTS = [("sched_begin", FEW), ("sched_ready", FEW), ("sched_sleep_ms", FEW),
          ("sched_tick", 2 * FEW), ("sched_wake", FEW), ("sched_switch", FEW),
          ("sched_block_handoff", 3 * FEW), ("let_others_run", 2 * FEW),
          ("switch_begin", FEW)]


def first(text):
    """The last function of a task's stack in this output. A program that has
    ended has no memory of its own any more."""
    return "trap_syscall" if text.startswith("sleep(4), ended\n") else \
        FIRST[text.split("(")[0]]


def names_in(text):
    return re.findall(r"^#\d+ +(?:0x\w+ in )?(\S+)", text, re.M)


@pytest.fixture(scope="module")
def callees(kernel):
    """{return address: the function called, "" if by a pointer}"""
    text = output_of("objdump", "-d", "--no-show-raw-insn", kernel)
    lines = re.findall(r"^ *(\w+):\t(.*)", text, re.M)
    return {int(after, 16): "".join(re.findall(r"<([\w.]+)", what)[:1])
            for (_, what), (after, _) in zip(lines, lines[1:])
            if what.startswith("call")}


@pytest.fixture(scope="module")
def steps(kernel):
    """For each instruction {command: GDB's output}."""
    here, found = ["x/i $pc", "slate bt"], []
    for points in (SWITCHES, *([point] for point in POINTS)):
        asked = here if points is not SWITCHES else \
            [*here, *(f"slate bt {pid}" for pid in PIDS)]
        session = gdb.Session(kernel, COMMANDS, [
            (at, [f"{command} # {i}" for i in range(n)
                  for command in (*asked, "stepi")]) for at, n in points])
        found += [{command: said[f"{command} # {i}"] for command in asked}
                  for (_, n), said in zip(points, session.said)
                  for i in range(n)]
    return found


def test_every_task_has_its_own_stack(steps):
    for said in steps:
        for pid in PIDS if len(said) > 2 else ():
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
        assert said.get(f"slate bt {pid}", text) == text
        seen |= {(task, name) for name in names_in(text)}
    assert {("kernel", "switch_stack"), ("reaper", "switch_stack"),
            ("reaper", "switch_begin"), ("reaper", "sched_begin"),
            ("ping", "sched_block_handoff")} <= seen, seen
    assert {name for name, _ in POINTS} <= {name for _, name in seen}


def test_every_function_was_called_by_the_next(steps, callees):
    """The address in a false frame is not after a call. Neither the function
    that was interrupted nor the first of a task has made a call."""
    for said in steps:
        name = None
        for address, function in re.findall(
                r"^#\d+ +(?:(0x\w+) in )?(\S+) \(",
                said["slate bt"].split("-- ring 3")[0], re.M):
            if address and name not in (None, "trap_common") and \
                    (name, function) != ("switch_stack", "switch_begin"):
                assert callees.get(int(address, 16), "no call") in \
                    ("", name), said
            name = function
