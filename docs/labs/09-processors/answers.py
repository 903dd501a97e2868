"""Checks the answers of lab 9 by counted runs of the kernel, on as many
processors as the page says."""

import re

import workload
from tools.grading.questions import CannotAsk

PHASES = ("alloc", "free", "pair", "stream")


def run(machine, commands, cpus):
    return machine.run(f"{commands}; poweroff", extra=["-smp", str(cpus)])


def number(machine, commands, cpus, pattern):
    """The number that the last match of a pattern has in what is printed."""
    found = re.findall(pattern, run(machine, commands, cpus).text, re.M)
    if not found:
        raise CannotAsk("the kernel does not come to the end of it")
    return int(found[-1])


def scaling(machine):
    said = {e["key"]: e["value"]
            for e in run(machine, "scale", 4).named.get("bench", ())}
    try:
        return [[phase, said[f"scale.slab.{phase}"],
                 said[f"scale.magazines.{phase}"]] for phase in PHASES]
    except KeyError as e:
        raise CannotAsk("the kernel does not come to the end of `scale`") from e


# {question: its answer}
ASKED = {
    "waits": lambda m: number(m, "magazines off; hunt alloc", 4,
                              r"^alloc: .* wait in (\d+)\s*$"),
    "scaling": scaling,
    "trapped": lambda m: number(m, workload.commands(m.seed), 1,
                                r"^box +\d+ .* (\d+) +[\d.]+\s*$"),
}


def table(answer, right):
    """What is wrong with a table, or None; figures as `scale` prints them."""
    rows = {row[0]: row[1:] for row in answer}
    if sorted(rows) != sorted(row[0] for row in right) or \
            len(rows) != len(answer):
        return "the rows are " + ", ".join(PHASES)
    for phase, *figures in right:
        if len(rows[phase]) != 2:
            return f"the row {phase} has two figures: slab, magazines"
        for got, want in zip(rows[phase], figures):
            if abs(got - want) > 0.051:
                return f"{got} in the row {phase} is not what `scale` prints"
    return None


def judge(name, answer, right):
    if name == "scaling":
        return table(answer, right)
    return None if answer == right else \
        f"{answer} is not what the kernel shows"


def check(answers, machine):
    return {name: judge(name, answer, ASKED[name](machine))
            for name, answer in answers.items()}


def solve(machine):
    return {name: ask(machine) for name, ask in ASKED.items()}
