"""Marked regions: where the solutions of the labs stand in the sources.

    /* LAB 2.1 BEGIN: put the right halves on their lists */
        ...the solution...
    /* LAB 2.1 INSTEAD
     * block_link(p, from);
     * LAB_MISSING
     */
    /* LAB 2.1 END */

`scan()` finds the regions of one file and refuses what is not of this form;
`cut()` writes the file as one lab hands it out. Assembly comments the markers
with ";", Python, TOML and makefiles with "#". INSTEAD may be absent, and its
lines are handed out less their comment signs; "// text" there stands for a
comment in C, which cannot stand in another. A region in C without one may end
with "END, unused: p, from", names that only the solution uses. docs/labs.md is
for those who write labs.
"""

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

WIDTH = 80
HEADER = "kernel/lib/lab.h"
MISSING = "LAB_MISSING"

# How a comment begins, by a file's name.
SIGNS = {".c": "/*", ".h": "/*", ".ld": "/*", ".asm": ";", ".py": "#",
         ".toml": "#", ".mk": "#", ".sh": "#", "Makefile": "#"}


class MarkerError(Exception):
    """A marker that is not understood: FILE:LINE: text."""

    def __init__(self, path, line, text):
        super().__init__(f"{path}:{line}: {text}")


@dataclass
class Region:
    """One region. Lines are counted from 0: those of the markers BEGIN and
    END, and the one at which the solution stops. `instead` is None without an
    INSTEAD; `unused` are names that a compiler would miss in the hand-out."""
    path: str
    task: str
    title: str
    indent: str
    begin: int
    stop: int = 0
    end: int = 0
    instead: list = None
    unused: list = field(default_factory=list)

    @property
    def lab(self):
        return int(self.task.split(".")[0])

    @property
    def missing(self):
        """Whether the hand-out says that something is missing here."""
        return self.instead is None or \
            any(line.strip() == MISSING for line in self.instead)


def sign_of(path):
    """The comment sign of a file, or None if it can hold no markers."""
    name = Path(path).name
    return SIGNS.get(name) or SIGNS.get(Path(name).suffix)


def _marker(path, number, line, sign):
    """(indent, task, word, rest) if a line is a marker, None if it is not."""
    found = re.match(rf"(\s*){re.escape(sign)}\s*LAB\b(.*)$", line)
    if not found:
        return None
    indent, text = found.groups()
    parts = re.fullmatch(r" (\d+\.\d+) (BEGIN|INSTEAD|END)\b(.*)", text)
    if not parts:
        raise MarkerError(path, number + 1, "not a marker: it should be LAB, "
                          "a task (2.1), and BEGIN, INSTEAD or END")
    return (indent, *parts.groups())


def can_be_missing(path):
    """Whether LAB_MISSING means something in a file."""
    return str(path).endswith((".c", ".h", ".py"))


class _Scanner:
    """Goes through the lines of one file. `state` says what a line is that
    is no marker: code outside of regions (None), of the "solution", a line of
    the comment "instead", or what may not be there ("after" INSTEAD)."""

    def __init__(self, path, text):
        self.path, self.sign = str(path), sign_of(path)
        self.lines = text.splitlines()
        self.regions = []
        self.open = self.state = None

    def fail(self, number, text):
        raise MarkerError(self.path, number + 1, text)

    def scan(self):
        words = {"BEGIN": self.begin, "INSTEAD": self.instead, "END": self.end}
        for number, line in enumerate(self.lines):
            marker = _marker(self.path, number, line, self.sign)
            if marker:
                indent, task, word, rest = marker
                words[word](number, indent, task, rest)
            elif self.state == "instead":
                self.instead_line(number, line)
            elif self.state == "after" and line.strip():
                self.fail(number, "code between INSTEAD and END")
        if self.open:
            self.fail(self.open.begin, f"LAB {self.open.task} BEGIN without "
                      "END")
        self.check_includes()
        return self.regions

    def check_includes(self):
        """There is a place for the header that declares lab_missing."""
        missing = [r for r in self.regions if r.missing]
        if missing and self.sign == "/*" and \
                _behind_includes(self.lines[:self.regions[0].begin]) is None:
            self.fail(missing[0].begin, f"LAB {missing[0].task}: no #include "
                      f"above, behind which {HEADER} could be included")

    def rest_of(self, number, rest):
        """What stands in a marker behind its word."""
        rest = rest.strip()
        if self.sign != "/*":
            return rest
        if not rest.endswith("*/"):
            self.fail(number, "the marker does not end on its line")
        return rest[:-2].strip()

    def expect_open(self, number, task, word):
        if not self.open:
            self.fail(number, f"LAB {task} {word} without BEGIN")
        if self.open.task != task:
            self.fail(number, f"LAB {task} {word} in the region of "
                      f"LAB {self.open.task} that begins in line "
                      f"{self.open.begin + 1}")
        if self.state == "instead" and self.sign == "/*":
            self.fail(number, 'the comment of INSTEAD did not end: " */"')

    def begin(self, number, indent, task, rest):
        if self.open:
            self.fail(number, f"LAB {task} BEGIN in the region of "
                      f"LAB {self.open.task} that begins in line "
                      f"{self.open.begin + 1}")
        rest = self.rest_of(number, rest)
        if not re.match(r": \S", rest):
            self.fail(number, f"LAB {task} BEGIN wants a colon and a title")
        self.open = Region(self.path, task, rest[2:], indent, number)
        self.state = "solution"

    def instead(self, number, _, task, rest):
        self.expect_open(number, task, "INSTEAD")
        if self.open.instead is not None:
            self.fail(number, f"LAB {task} has a second INSTEAD")
        self.open.instead, self.open.stop = [], number
        self.state = "instead"
        if self.sign == "/*" and rest.strip() == "*/":
            self.state, rest = "after", ""
        if rest.strip():
            self.fail(number, "text behind INSTEAD: it begins in the next line")

    def instead_line(self, number, line):
        mark = "*" if self.sign == "/*" else self.sign
        text = line.strip()
        if self.sign == "/*" and text == "*/":
            self.state = "after"
        elif text.startswith(mark) and "*/" not in text:
            self.open.instead.append(self.bare(line, mark))
        elif self.sign == "/*":
            self.fail(number, 'lines of INSTEAD begin with " *"; the last is '
                      '" */"')
        elif text:
            self.fail(number, "code between INSTEAD and END")

    def bare(self, line, mark):
        """A line of INSTEAD as it is handed out, not yet indented."""
        text = re.sub(rf"^\s*{re.escape(mark)} ?", "", line).rstrip()
        if self.sign == "/*":
            text = re.sub(r"^(\s*)// ?(.*)$", r"\1/* \2 */", text)
        return text

    def unused(self, number, rest):
        """The names in "END, unused: p, from"."""
        if not rest:
            return []
        names = re.fullmatch(r", unused: (\w+(?:, \w+)*)", rest)
        if not names:
            self.fail(number, "text behind END")
        if self.open.instead is not None or self.sign != "/*":
            self.fail(number, "names that are unused stand behind END in C, "
                      "and where there is no INSTEAD")
        return names.group(1).split(", ")

    def end(self, number, _, task, rest):
        self.expect_open(number, task, "END")
        self.open.unused = self.unused(number, self.rest_of(number, rest))
        region, self.open, self.state = self.open, None, None
        region.end = number
        if region.instead is None:
            region.stop = number
            if not any(line.strip() for line in
                       self.lines[region.begin + 1:number]):
                self.fail(region.begin, f"LAB {task} is empty and has no "
                          "INSTEAD")
        if region.missing and not can_be_missing(self.path):
            self.fail(region.begin, f"LAB {task} wants an INSTEAD without "
                      f"{MISSING} here: that is for C and Python")
        self.regions.append(region)


def scan(path, text):
    """The regions of a file, in order. Raises MarkerError."""
    if sign_of(path) is None or "LAB" not in text:
        return []
    return _Scanner(path, text).scan()


# ---- cutting ---------------------------------------------------------------

def _comment(region, page, indent):
    """The comment that stands where something is to be written."""
    text = f"Task {region.task}: {region.title}. See {page}."
    if region.path.endswith(".py"):
        return textwrap.wrap(text, WIDTH, initial_indent=indent + "# ",
                             subsequent_indent=indent + "# ")
    lines = textwrap.wrap(text, WIDTH - 3, break_on_hyphens=False,
                          initial_indent=indent + "/* ",
                          subsequent_indent=indent + " * ")
    lines[-1] += " */"
    return lines


def _call(region, page, indent):
    """The lines that say so when the program comes there."""
    if region.path.endswith(".py"):
        return [f'{indent}raise NotImplementedError(',
                f'{indent}    "task {region.task}: see {page}")']
    start = f'{indent}lab_missing("{region.task}",'
    whole = f'{start} "{page}");'
    if len(whole) <= WIDTH:
        return [whole]
    return [start, f'{indent}{" " * len("lab_missing(")}"{page}");']


def _handed_out(region, page):
    """What stands in a hand-out in the place of a region."""
    lines = []
    plain = [f"(void){name};" for name in region.unused] + [MISSING]
    for text in plain if region.instead is None else region.instead:
        bare = text.lstrip()
        indent = region.indent + text[:len(text) - len(bare)]
        if bare == MISSING:
            lines += _comment(region, page, indent)
            lines += _call(region, page, indent)
        else:
            lines.append((indent + bare).rstrip())
    return lines


def _behind_includes(lines):
    """The number of the line behind the last #include that stands outside of
    any #if, or None."""
    depth, place = 0, None
    for number, line in enumerate(lines):
        word = re.match(r"#\s*(if|endif|include)", line)
        depth += {"if": 1, "endif": -1}.get(word and word.group(1), 0)
        if word and word.group(1) == "include" and depth == 0:
            place = number + 1
    return place


def cut(path, text, regions, lab, page, solved=()):
    """A file's text as lab `lab` hands it out with the tasks of `solved` done:
    solutions of other tasks are cut, the markers of all labs are gone. `page`
    is the hand-out text that a missing body names."""
    if not regions:
        return text
    lines, missing = text.splitlines(), False
    for region in reversed(regions):
        body = lines[region.begin + 1:region.stop]
        if region.lab == lab and region.task not in solved:
            body = _handed_out(region, page)
            missing |= region.missing
        lines[region.begin:region.end + 1] = body
    include = f'#include "{HEADER}"'
    if missing and not str(path).endswith(".py") and include not in lines:
        lines.insert(_behind_includes(lines[:regions[0].begin]), include)
    return "\n".join(lines) + "\n"
