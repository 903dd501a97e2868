"""Writes a hand-in file for `make run GIVEN=1`: what its author has not written
is declared alone.

    python3 -m tools.grading.given SOURCE OBJECT OUT

OBJECT, which the hand-out has, defines the functions that the lab asks for, as
weak symbols. The kernel takes each that SOURCE has written, and the others from
there. A function is not written while it calls lab_missing.
"""

import sys
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tools.grading import functions


def offered(path):
    """The names of an object's weak functions."""
    with open(path, "rb") as f:
        return {s.name for s in ELFFile(f).get_section_by_name(
            ".symtab").iter_symbols() if s["st_info"]["bind"] == "STB_WEAK"}


def for_run(text, names):
    """(the text for a run, the names of what is not written)."""
    found = [f for f in functions.functions(text) if f.name in names]
    missing = [f.name for f in found if f.calls("lab_missing")]
    lines = text.split("\n")
    for f in reversed(found):
        if f.static and f.name not in missing:
            lines[f.head:f.end] = [functions.exported(f)]
    return functions.rest("\n".join(lines), missing), missing


def main():
    source, given, out = sys.argv[1:]
    text, missing = for_run(Path(source).read_text("utf-8"), offered(given))
    Path(out).write_text(text, encoding="utf-8")
    print(f"  GIVEN   in {source}: {', '.join(missing) or 'nothing'}")


if __name__ == "__main__":
    main()
