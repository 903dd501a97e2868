"""Runs inside GDB and executes the plan of tools/run/gdb.py.

The plan is a list of steps: a function to continue to (none: stay), commands
to execute there, and optionally a file for the machine's memory. The output so
far is written after each step, so that tools/run/gdb.py knows where a session
ended early.
"""

import json
import os

import gdb


def attach(stub):
    gdb.execute(f"target remote {stub}", to_string=True)
    gdb.execute("hbreak kmain", to_string=True)
    gdb.execute("continue", to_string=True)
    gdb.execute("delete", to_string=True)


def go_to(function):
    stop = gdb.Breakpoint(function, temporary=True)
    gdb.execute("continue", to_string=True)
    if stop.is_valid():
        raise gdb.GdbError(f"{function} was not reached")


def ask(command):
    """A command's output. A comment after " # " distinguishes two equal
    commands of a step."""
    try:
        return gdb.execute(command.split(" # ")[0], to_string=True)
    except gdb.error as e:
        return f"error: {e}\n"


def follow(plan):
    answers = []
    if plan["live"]:
        attach(plan["live"])
    for step in plan["steps"]:
        if step["at"]:
            go_to(step["at"])
        answers.append({command: ask(command) for command in step["do"]})
        if step["core"]:
            gdb.execute(f"monitor dump-guest-memory -p {step['core']}")
        with open(os.environ["SLATE_ANSWERS"], "w", encoding="utf-8") as f:
            json.dump(answers, f)
    if plan["live"]:
        gdb.execute("kill")


with open(os.environ["SLATE_PLAN"], encoding="utf-8") as plan_file:
    follow(json.load(plan_file))
