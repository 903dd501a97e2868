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
from tools.run import gdb
from tools.grading.grading import GradeError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SERVICES = ("meter", "bell", "parcel", "words", "channel", "seats")
ASKED = ("cache", "where", "culprit", "kind")

# An error's name in the allocator, or the witness's own, and what students
# call it.
KINDS = {"REDZONE": "past-end", "MODIFIED": "after-free",
         "DUPFREE": "double-free", "BADCACHE": "wrong-cache",
         "BADSIZE": "wrong-size", "UNLIKE": "not-constructed"}
BEFORE = "before-start"  # a REDZONE whose offset is negative
LOST = ("leak", "no-lock")
WORDS = (*KINDS.values(), BEFORE, *LOST)

# Those for which a byte is wrong, and not an object.
BYTES = ("REDZONE", "MODIFIED", "UNLIKE")

MODES = "kmem.debug=FPZU"


@contextlib.contextmanager
def hunted(machine):
    """The kernel as it was handed out: nobody else builds there meanwhile."""
    lab = labs.read(ROOT, HERE.relative_to(ROOT))
    shop = workshop.Workshop(ROOT, ROOT / "build/grade/hunted",
                             machine.patience)
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


def culprit(kernel, service, seen):
    """(function, kind) that caused the first error."""
    error = seen["error"]
    if error in ("REDZONE", "MODIFIED"):
        found = ask(kernel, service, f"writer({seen['at']})", MODES)
    elif error == "LOST":
        found = ask(kernel, service, f"loser({seen['object']})", MODES)
        return found["culprit"], LOST[found["by"] != seen["task"]]
    else:
        found = {"culprit": seen.get("culprit") or seen.get("caller")}
    if error == "REDZONE" and seen["offset"] >> 31:
        return found["culprit"], BEFORE
    return found["culprit"], KINDS.get(error)


def truth(kernel, service):
    """{question: answer}, {} if nothing is wrong with the service."""
    seen = ask(kernel, service, f"first({service!r})", MODES)
    if seen["error"] == "NONE":  # poison constructs objects again and again
        seen = ask(kernel, service, f"unlike({service!r})", "")
    if seen["error"] == "NONE":
        return {}
    function, kind = culprit(kernel, service, seen)
    where = seen["offset" if seen["error"] in BYTES else "number"]
    return {f"{service}_cache": seen["cache"], f"{service}_where": where,
            f"{service}_culprit": function, f"{service}_kind": kind}


known = {}  # (seed, service): what truth() said


def truths(machine, services):
    unknown = [s for s in services if (machine.seed, s) not in known]
    if unknown:
        with hunted(machine) as kernel, ThreadPoolExecutor(2) as pool:
            for service, said in zip(unknown, pool.map(
                    lambda s: truth(kernel, s), unknown)):
                known[machine.seed, service] = said
    return {name: answer for s in services
            for name, answer in known[machine.seed, s].items()}


# ---- the questions ----------------------------------------------------------

def wrong_form(name, answer):
    """What is wrong with an answer before anybody looks at the machine, or
    None."""
    if name.endswith("_where"):
        if type(answer) is not int:
            return "wants a number, without quotes: 24 or 0x18"
        return None
    if not isinstance(answer, str):
        return "wants a text, in quotes"
    if name.endswith("_kind") and answer not in WORDS:
        return "is one of " + ", ".join(sorted(WORDS))
    if name.endswith("_culprit") and not re.fullmatch(r"\w+(\(\))?", answer):
        return "wants the name of one function"
    return None


def judge(name, answer, right):
    """None, or why it is wrong."""
    if answer == "":
        return "no answer yet"
    form = wrong_form(name, answer)
    if form is not None:
        return form
    if isinstance(answer, str):
        answer = answer.removesuffix("()")
    return None if answer == right else "that is not what happens"


def check(answers, machine):
    asked = [s for s in SERVICES
             if any(answers.get(f"{s}_{q}", "") != "" for q in ASKED)]
    right = truths(machine, asked) if asked else {}
    return {f"{s}_{q}": judge(f"{s}_{q}", answers.get(f"{s}_{q}", ""),
                              right.get(f"{s}_{q}"))
            for s in SERVICES for q in ASKED}


# ---- not handed out

def solve(machine):
    return truths(machine, SERVICES)
