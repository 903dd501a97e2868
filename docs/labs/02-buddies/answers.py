"""Checks the answers of lab 2: repeats the two experiments with the kernel
that was handed in, and reckons with the free blocks that it shows."""

import json

ORDER = 9    # the orders beside it have quite other figures
NEAR = 2.0   # how far off an answer may be
EXPERIMENTS = ("random", "lifo")
EXPERIMENT = "kmem create hole 4096; kmem alloc hole 6000; " \
             "kmem free hole 3000 {}; reap -a; buddyinfo -j; poweroff"


def unusable(machine, how):
    """UNUSABLE% of ORDER after the experiment, or None if it does not end."""
    result = machine.run(EXPERIMENT.format(how), memory="32")
    rows = [json.loads(line) for line in result.text.splitlines()
            if line.startswith('{"order":')]
    pages = {row["order"]: row["free"] << row["order"] for row in rows}
    if not sum(pages.values()):
        return None
    small = sum(n for order, n in pages.items() if order < ORDER)
    return 100 * small / sum(pages.values())


def judge(answer, machine, how):
    """None if the answer is right, else what is wrong with it."""
    if answer == "":
        return "no answer yet"
    if isinstance(answer, bool) or not isinstance(answer, (int, float)):
        return "should be a number, like 12.3"
    right = unusable(machine, how)
    if right is None:
        return "the kernel does not get through the experiment"
    if abs(answer - right) <= NEAR:
        return None
    return f"{answer} is not what this kernel shows after the experiment"


def check(answers, machine):
    return {how: judge(answers.get(how, ""), machine, how)
            for how in EXPERIMENTS}


# ---- not handed out

def solve(machine):
    return {how: round(unusable(machine, how), 1)
            for how in EXPERIMENTS}
