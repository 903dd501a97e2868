"""Checks the answers of lab 5: runs both workloads and reads what the shell
prints. Both are counted runs, in which time passes with instructions."""

import re

import workload
from tools.grading.questions import CannotAsk

# An instruction takes 64 ns, so half a minute costs few of them; and the most
# that a run may have, in millions of nanoseconds.
SHIFT, BUDGET = 6, 60_000

# {question: its commands, and its answer in what they print}
ASKED = {
    "released": (workload.released, r"foo +(?:\S+ +){5}(\d+) +\d+\s*$"),
    "free_slabs": (workload.free_slabs, r"bar: -.* (\d+) free\s*$"),
}


def ask(machine, name):
    commands, answer = ASKED[name]
    text = machine.run(f"{commands(machine.seed)}; poweroff", shift=SHIFT,
                       budget=BUDGET).text
    found = re.search(rf"(?m)^{answer}", text)
    if found is None:
        raise CannotAsk("the kernel does not come to the end of the workload")
    return int(found[1])


def judge(answer, right):
    return None if answer == right else \
        f"{answer} is not what the kernel shows after the workload"


def check(answers, machine):
    return {name: judge(answer, ask(machine, name))
            for name, answer in answers.items()}


def solve(machine):
    return {name: ask(machine, name) for name in ASKED}
