"""Checks answers.toml.

    its form                   forms.py, the same for students and the grader
    whether it is right        answers.py of the lab, which is not handed out

Where the second cannot be asked, an answer is "not checked", never wrong.
"""

import json
import sys
import traceback
from pathlib import Path

from tools.grading import forms, labs
from tools.grading.budget import Budget, Spent
from tools.grading.grading import LINES, NOT_CHECKED, GradeError, Outcome, \
    clean, limits
from tools.run import gdb, qemu

# Processor seconds for a machine that is asked: it has no watchdog and takes
# about 1.
QUESTION = 30


class CannotAsk(Exception):
    """A kernel cannot be asked; the text says why."""


class NotChecked(str):
    """What check() says of an answer that this kernel cannot be asked."""


class Machine:
    """For a lab's answers.py: the tree, its kernel, and ways to run it.
    `kernel` is None if it does not build."""

    def __init__(self, root, kernel, seed=0, budget=None):
        self.root, self.seed = Path(root), seed
        self.budget = budget or Budget()
        self._kernel = kernel

    @property
    def kernel(self):
        if self._kernel is None:
            raise CannotAsk("the kernel does not build")
        return self._kernel

    def run(self, commands="", append="", **options):
        """A counted run: qemu.run, within limits."""
        return qemu.run(self.kernel, commands, append, **options,
                        limits=limits(self.budget, QUESTION))

    def gdb(self, commands, steps, **options):
        """A session of GDB, within limits: see gdb.Session."""
        return gdb.Session(self.kernel, commands, steps, **options,
                           limits=limits(self.budget, QUESTION))


def load_checker(path):
    """The names that an answers.py defines."""
    names = {"__name__": "answers", "__file__": str(path)}
    code = compile(Path(path).read_text("utf-8-sig"), str(path), "exec")
    folder, before = str(Path(path).parent), set(sys.modules)
    sys.path.insert(0, folder)
    try:
        exec(code, names)  # pylint: disable=exec-used
    finally:
        sys.path.remove(folder)
        # Another lab may have a module of the same name.
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(
                    folder):
                del sys.modules[name]
    return names


# ---- the sheet -------------------------------------------------------------

def read_answers(data):
    """({id: answer}, error in the file or None)."""
    try:
        return labs.tomllib.loads(data.decode("utf-8-sig")), None
    except UnicodeDecodeError:
        return {}, "answers.toml is not UTF-8 text"
    except (labs.tomllib.TOMLDecodeError, RecursionError, ValueError) as e:
        return {}, f"answers.toml: {clean(e)}"


def unknown(lab, data):
    """A line about each answer to a question that the lab does not ask."""
    known = {q.id for q in lab.questions}
    return [f"answers.toml: there is no question {clean(name)}"
            for name in read_answers(data)[0] if name not in known]


def _toml(value):
    """A value in TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {_toml(v)}"
                               for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def write_answers(answers):
    """The bytes of an answers.toml."""
    return "".join(f"{name} = {_toml(answer)}\n"
                   for name, answer in answers.items()).encode()


# ---- judging ---------------------------------------------------------------

def _ask(checker, answers, machine):
    """What check() says of answers: {id: None, or why it is wrong}; or an
    Outcome's state and text for all of them."""
    try:
        said = checker["check"](dict(answers), machine)
    except CannotAsk as e:
        return NOT_CHECKED, [clean(e)]
    except Spent as e:
        return "no time", [str(e)]
    except GradeError:
        raise
    except Exception as e:  # pylint: disable=broad-except
        where = traceback.extract_tb(e.__traceback__)[-1]
        return NOT_CHECKED, [f"the checker failed on it ({type(e).__name__}, "
                             f"{Path(where[0]).name}:{where[1]})"]
    return said if isinstance(said, dict) else {}


def _state(said, name):
    """(state, text) of the answer `name`."""
    if isinstance(said, tuple):
        return said
    wrong = said.get(name, "the checker says nothing about it")
    if wrong is None:
        return "pass", []
    return NOT_CHECKED if isinstance(wrong, NotChecked) else "wrong", \
        [clean(line) for line in str(wrong).split("\n")][:LINES]


def _formal(question, answers, problem):
    """The Outcome of what is no answer at all, or None."""
    answer = answers.get(question.id, "")
    if problem:
        return Outcome(question, "unreadable", [problem])
    if answer == "":
        return Outcome(question, "no answer", ["no answer yet"])
    wrong = forms.problem(question, answer)
    return Outcome(question, "wrong form", [wrong]) if wrong else None


def check(lab, data, checker=None, own=None, pristine=None):
    """Outcomes of a lab's questions, from the bytes of answers.toml. `own` is
    the Machine with the submission's kernel, `pristine` one with the grader's;
    what would be asked of one that is None is not checked, and nothing is
    without a checker."""
    answers, problem = read_answers(data)
    found = {q.id: _formal(q, answers, problem) for q in lab.questions}
    for which, machine in ((False, own), (True, pristine)):
        mine = [q for q in lab.questions
                if q.pristine == which and found[q.id] is None]
        said = _ask(checker, {q.id: forms.plain(q, answers[q.id])
                              for q in mine}, machine) \
            if mine and checker and machine else (NOT_CHECKED, [])
        found.update({q.id: Outcome(q, *_state(said, q.id)) for q in mine})
    return list(found.values())
