"""Compares the kernel shell's commands with the sections of its help texts: a
line for each command without a section, and each section without a command.

    helped.py [--part] SOURCE.c …

With --part, as for a hand-out, some commands may be missing.
"""

import re
import sys
from pathlib import Path

from commands import names

SHELL = Path("kernel/shell/help.txt")
WORKSHOP = Path("tools/workshop/help.txt")


def sections(path):
    """{name: line number} of the sections of a help text."""
    return {line.split()[1]: number for number, line in
            enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
            if line.startswith("= ")}


def text_for(source):
    """The help text that describes the commands of a source."""
    return SHELL if source.parts[0] == "kernel" else WORKSHOP


def missing(source, described):
    """A line for each command of a source that has no section."""
    for name in names([source]):
        text = text_for(source)
        if name not in described[text]:
            yield (f"{source}: the command {name} has no section "
                   f"\"= {name}\" in {text}")


def stray(text, described, commands):
    """A line for each section of a text that is not of a command."""
    for name, number in described.items():
        if name not in commands:
            yield (f"{text}:{number}: there is no command {name}; remove its "
                   f"section, or register it with SHELL_COMMAND")


def main():
    part = "--part" in sys.argv
    sources = [Path(a) for a in sys.argv[1:] if a != "--part"]
    described = {text: sections(text) for text in (SHELL, WORKSHOP)}
    wrong = [line for p in sources for line in missing(p, described)]
    for text, found in described.items() if not part else ():
        own = [p for p in sources if text_for(p) == text]
        wrong += stray(text, found, names(own))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
