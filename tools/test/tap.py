"""Reads the Test Anything Protocol, also in the kernel's dialect."""

import re
import subprocess
from dataclasses import dataclass, field

import pytest

from tools.run import watchdog

RESULT = re.compile(r"(not )?ok \d+ - (\S+)(?: # SKIP (.+))?")


@dataclass
class Case:
    """The result of one case, its notes, and why it was skipped, or None."""
    passed: bool
    notes: list = field(default_factory=list)
    skipped: str = None


def parametrize(metafunc, fixture, program, names):
    """One test for each case in a program's file: names(program)."""
    if fixture in metafunc.fixturenames:
        metafunc.parametrize(fixture, names(program) if program.exists()
                             else ["missing"])


def parse(text, notes_first):
    """{name: Case} of all results in `text`. The notes ("# …") of a result
    come before it if `notes_first` (the kernel), else after it (cmocka)."""
    cases, notes = {}, []
    for line in text.splitlines():
        line = line.strip("\r ")
        match = RESULT.match(line)
        if match:
            mine = notes if notes_first else []
            cases[match.group(2)] = Case(not match.group(1), mine,
                                          match.group(3))
            notes = [] if notes_first else mine
        elif line.startswith("#"):
            notes.append(line[1:].strip())
    return cases


def program(path, *arguments, notes_first=True, env=None):
    """(parse() of what a program of this machine prints, the text)"""
    assert path.exists(), f"{path} does not exist: make test-host"
    done = watchdog.run([str(path), *arguments], encoding="utf-8",
                        errors="replace", stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, env=env)
    return parse(done.stdout, notes_first), \
        f"{done.stdout}(exit status {done.returncode})\n"


def passed(name, results):
    """The Case of that name of a program's results. Unless it passed, fails and
    shows the text around its line, or the end if it has none."""
    cases, text = results
    if name not in cases or not cases[name].passed:
        line = re.search(rf" - {re.escape(name)}$", text, re.M)
        end = line.end() + 1000 if line else len(text)
        pytest.fail(text[max(end - 4000, 0):end], pytrace=False)
    return cases[name]


def expect_passed(name, run, verdicts, cases):
    """Fails unless the case `name` passed in `run`, according to `verdicts`;
    prints the case's notes, which are in `cases` (parse)."""
    if name not in verdicts:
        pytest.fail(f"no result: {run.problem or 'it was not run'}; see "
                    "test_run_ends_well", pytrace=False)
    if not verdicts[name]:
        case = cases.get(name)
        notes = case.notes if case else ["its line is not on the console"]
        pytest.fail("\n".join(notes), pytrace=False)
