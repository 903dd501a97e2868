"""Checks the answers of lab 2: repeats the two experiments with the kernel
that was handed in, and reckons with the free blocks that it shows."""

import json

from tools.grading.questions import CannotAsk

ORDER = 9    # the orders beside it have quite other figures
NEAR = 2.0   # how far off an answer may be
EXPERIMENTS = ("random", "lifo")
EXPERIMENT = "kmem create hole 4096; kmem alloc hole 6000; " \
             "kmem free hole 3000 {}; reap -a; buddyinfo -j; poweroff"


def unusable(machine, how):
    """UNUSABLE% of ORDER after the experiment."""
    result = machine.run(EXPERIMENT.format(how), memory="32")
    rows = [json.loads(line) for line in result.text.splitlines()
            if line.startswith('{"order":')]
    pages = {row["order"]: row["free"] << row["order"] for row in rows}
    if not sum(pages.values()):
        raise CannotAsk("the kernel does not get through the experiment")
    small = sum(n for order, n in pages.items() if order < ORDER)
    return 100 * small / sum(pages.values())


def judge(answer, right):
    return None if abs(answer - right) <= NEAR else \
        f"{answer} is not what this kernel shows after the experiment"


def check(answers, machine):
    return {how: judge(answers[how], unusable(machine, how))
            for how in answers}


def solve(machine):
    return {how: round(unusable(machine, how), 1)
            for how in EXPERIMENTS}
