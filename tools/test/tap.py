"""Reads the Test Anything Protocol, also in the kernel's dialect."""

import re
from dataclasses import dataclass, field

RESULT = re.compile(r"(not )?ok \d+ - (\S+)")


@dataclass
class Case:
    """The result of one case, and its notes."""
    passed: bool
    notes: list = field(default_factory=list)


def parse(text, notes_first):
    """{name: Case} of all results in `text`. The notes ("# …") of a result
    come before it if `notes_first` (the kernel), else after it (cmocka)."""
    cases, notes = {}, []
    for line in text.splitlines():
        line = line.strip("\r ")
        match = RESULT.match(line)
        if match:
            mine = notes if notes_first else []
            cases[match.group(2)] = Case(not match.group(1), mine)
            notes = [] if notes_first else mine
        elif line.startswith("#"):
            notes.append(line[1:].strip())
    return cases
