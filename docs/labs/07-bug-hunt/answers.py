"""Checks what students say about the six bugs. Nothing is known here of any
bug: the kernel is built as it was handed out, with this seed, and witness.py
watches it at work under GDB.

    hunted()    that kernel
    truth()     {question: answer} about one service
"""

import contextlib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.grading import labs, workshop
from tools.grading.budget import Budget
from tools.run import gdb
from tools.grading.grading import GradeError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SERVICES = ("meter", "bell", "parcel", "words", "channel", "seats")

# An error's name in the allocator, or the witness's own, and what students
# call it.
KINDS = {"REDZONE": "past-end", "MODIFIED": "after-free",
         "DUPFREE": "double-free", "BADCACHE": "wrong-cache",
         "BADSIZE": "wrong-size", "UNLIKE": "not-constructed"}
BEFORE = "before-start"  # a REDZONE whose offset is negative
LOST = ("leak", "no-lock")

MODES = "kmem.debug=FPZU"


@contextlib.contextmanager
def hunted(machine):
    """The kernel as it was handed out: nobody else builds there meanwhile."""
    lab = labs.read(ROOT, HERE.relative_to(ROOT))
    shop = workshop.Workshop(ROOT, ROOT / "build/grade/hunted", Budget(),
                             workshop.as_before(ROOT / "build"))
    with shop.alone():
        shop.put(workshop.as_handed_out(ROOT, lab, lab.files), lab,
                 machine.seed)
        built = shop.build()
        if built.kernel is None:
            raise GradeError("the hand-out does not build:\n" + built.errors)
        yield built.kernel


def ask(kernel, service, question, append):
    """What the witness says about a day of a service."""
    command = (f"python import sys; sys.path.insert(0, {str(HERE)!r}); "
               f"import witness; witness.{question}")
    session = gdb.Session(kernel, f"services {service}; poweroff",
                          [("cmd_services", [command])], memory="16",
                          append=append)
    said = session.said[0][command]
    found = re.search(r"^WITNESS (.*)$", said, re.M)
    if found is None:
        raise GradeError(f"{service}: the witness failed: {said}")
    return json.loads(found[1])


def cause(kernel, service, seen):
    """What the witness says of the code that caused the first error, which is
    reported at once or later."""
    if seen["error"] in ("REDZONE", "MODIFIED"):
        return ask(kernel, service, f"writer({seen['at']})", MODES)
    if seen["error"] == "LOST":
        return ask(kernel, service, f"loser({seen['object']})", MODES)
    return seen


def kind(seen, found):
    if seen["error"] == "LOST":
        return LOST[found["by"] != seen["task"]]
    if seen["error"] == "REDZONE" and seen["offset"] >> 31:
        return BEFORE
    return KINDS.get(seen["error"])


def truth(kernel, service):
    """{question: answer}, {} if nothing is wrong with the service."""
    seen = ask(kernel, service, f"first({service!r})", MODES)
    if seen["error"] == "NONE":  # poison constructs objects again and again
        seen = ask(kernel, service, f"unlike({service!r})", "")
    if seen["error"] == "NONE":
        return {}
    found = cause(kernel, service, seen)
    return {f"{service}_cache": seen["cache"],
            f"{service}_request": found["request"],
            f"{service}_culprit": found["culprit"],
            f"{service}_kind": kind(seen, found)}


known = {}  # (seed, service): what truth() said


def truths(machine, services):
    unknown = [s for s in services if (machine.seed, s) not in known]
    if unknown:
        with machine.budget.paused(), hunted(machine) as kernel, \
                ThreadPoolExecutor(2) as pool:
            for service, said in zip(unknown, pool.map(
                    lambda s: truth(kernel, s), unknown)):
                known[machine.seed, service] = said
    return {name: answer for s in services
            for name, answer in known[machine.seed, s].items()}


def check(answers, machine):
    right = truths(machine, [s for s in SERVICES
                             if any(name.startswith(s) for name in answers)])
    return {name: None if answer == right.get(name) else
            "that is not what happens" for name, answer in answers.items()}


def solve(machine):
    return truths(machine, SERVICES)
