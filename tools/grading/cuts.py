"""Cuts: the code that the hand-out of a lab has in the place of a solution.

The tree holds the solutions, without a mark. The file docs/labs/NAME/cuts/
2.1.cut has the cuts of task 2.1:

    @@ mm/buddy.c: split: put the right halves on their lists
    -    block_link(p, from);
    -    return p;
    +    (void)from;
    +    LAB_MISSING

A cut names a file, a function ("file scope" outside of functions) and a title.
Lines with "-" are the solution as it is in the source, lines with "+" come in
its place, and lines with " " are context, which stays. Exactly one place in the
function may have those lines; anything else is refused. Lines with "+" alone
replace the whole body, and a head without lines removes the function with its
comment. docs/labs.md has the rest.
"""

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from tools.grading import functions
from tools.grading.functions import WIDTH

HEADER = "tools/workshop/labs/missing.h"
MISSING = "LAB_MISSING"
FILE_SCOPE = "file scope"
C = (".c", ".h")


class CutError(Exception):
    """A cut has an error or does not fit: FILE:LINE: text."""


@dataclass
class Cut:
    """The cut at line `line` of the file `source`. `before` are the lines that
    it replaces, `after` those of the hand-out; common lines at both ends are
    context. Without `before` it replaces the body of the function, and without
    `after` as well, it removes the function."""
    source: str
    line: int
    task: str
    path: str
    function: str
    title: str
    before: list = field(default_factory=list)
    after: list = field(default_factory=list)

    @property
    def missing(self):
        """Whether the hand-out marks missing code here."""
        return any(line.strip() == MISSING for line in self.after)

    def fail(self, text):
        raise CutError(f"{self.source}:{self.line}: {self.path}, "
                       f"{self.function}: {text}")


# ---- reading ---------------------------------------------------------------

def read(source, text):
    """The cuts in the text of the file `source`, NAME.cut for task NAME."""
    cuts, task = [], Path(source).stem
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("@@"):
            head = re.fullmatch(r"@@ (\S+): ([\w ]+): (\S.*)", line)
            if not head:
                raise CutError(f"{source}:{number}: a cut begins with "
                               "@@ FILE: FUNCTION: TITLE")
            cuts.append(Cut(str(source), number, task, *head.groups()))
        elif not cuts or line[:1] not in ("", " ", "-", "+"):
            raise CutError(f"{source}:{number}: neither the head of a cut "
                           'nor a line with "-", "+" or " "')
        else:
            if line[:1] != "+":
                cuts[-1].before.append(line[1:])
            if line[:1] != "-":
                cuts[-1].after.append(line[1:])
    if not cuts:
        raise CutError(f"{source}:1: there is no cut")
    for cut in cuts:
        _check(cut)
    return cuts


def _check(cut):
    while cut.before and cut.after and cut.before[-1] == cut.after[-1] == "":
        cut.before.pop()  # empty lines between two cuts
        cut.after.pop()
    if not cut.path.endswith(C) and cut.function != FILE_SCOPE:
        cut.fail(f'in a file that is not C, write "{FILE_SCOPE}"')
    if cut.before or cut.function == FILE_SCOPE:
        if cut.before == cut.after:
            cut.fail("nothing is cut")
        if not any(line.strip() for line in cut.before):
            cut.fail("no line says where the cut is")
    if cut.missing and not cut.path.endswith(C + (".py",)):
        cut.fail(f"{MISSING} is for C and Python")


# ---- finding ---------------------------------------------------------------

def _function(cut, lines):
    """The function that a cut is in."""
    for f in functions.functions("\n".join(lines)):
        if f.name == cut.function:
            return f
    return cut.fail("there is no such function")


def _scopes(cut, lines):
    """(start, end) of the parts of a file in which a cut may be."""
    if not cut.path.endswith(C):
        return [(0, len(lines))]
    if cut.function == FILE_SCOPE:
        found = functions.functions("\n".join(lines))
        return list(zip([0, *(f.end for f in found)],
                        [*(f.body for f in found), len(lines)]))
    f = _function(cut, lines)
    return [(f.head, f.end)]


def find(cut, lines):
    """The number of the first line of `cut.before` in a file's lines."""
    want, places, nearest = cut.before, [], (0, None)
    for start, end in _scopes(cut, lines):
        for at in range(start, end):
            same = 0
            while same < len(want) and at + same < end and \
                    lines[at + same] == want[same]:
                same += 1
            if same == len(want):
                places.append(at)
            elif same > nearest[0]:
                nearest = same, at
    if len(places) > 1:
        cut.fail(f"task {cut.task} fits more than once, at lines "
                 f"{', '.join(str(at + 1) for at in places)}: add context")
    if not places:
        _fail_near(cut, lines, *nearest)
    return places[0]


def _fail_near(cut, lines, same, at):
    """Refuses a cut of which `same` lines were found at line `at`."""
    if at is None:
        cut.fail(f'task {cut.task} replaces "{cut.before[0].strip()}", which '
                 "is not there")
    there = lines[at + same].strip() if at + same < len(lines) else ""
    cut.fail(f'task {cut.task} replaces "{cut.before[same].strip()}", but '
             f'line {at + same + 1} is "{there}"')


# ---- cutting ---------------------------------------------------------------

def _comment(cut, page, indent):
    """The comment at a place for code."""
    text = f"Task {cut.task}: {cut.title}. See {page}."
    if cut.path.endswith(".py"):
        return textwrap.wrap(text, WIDTH, initial_indent=indent + "# ",
                             subsequent_indent=indent + "# ")
    lines = textwrap.wrap(text, WIDTH - 3, break_on_hyphens=False,
                          initial_indent=indent + "/* ",
                          subsequent_indent=indent + " * ")
    lines[-1] += " */"
    return lines


def _call(cut, page, indent):
    """The lines that report missing code when they run."""
    if cut.path.endswith(".py"):
        return [f'{indent}raise NotImplementedError(',
                f'{indent}    "task {cut.task}: see {page}")']
    start = f'{indent}lab_missing("{cut.task}",'
    whole = f'{start} "{page}");'
    if len(whole) <= WIDTH:
        return [whole]
    return [start, f'{indent}{" " * len("lab_missing(")}"{page}");']


def _missing(cut, page, indent):
    return _comment(cut, page, indent) + _call(cut, page, indent)


def context(cut):
    """The number of context lines at the top and at the bottom of a cut."""
    short, top, bottom = min(len(cut.before), len(cut.after)), 0, 0
    while top < short and cut.before[top] == cut.after[top]:
        top += 1
    while bottom < short - top and \
            cut.before[-1 - bottom] == cut.after[-1 - bottom]:
        bottom += 1
    return top, bottom


def span(cut, lines):
    """(start, end) of the lines that a cut replaces, among those of a file."""
    if not cut.before:
        f = _function(cut, lines)
        return (f.body + 1, f.end - 1) if cut.after else (f.start, f.end)
    at = find(cut, lines)
    top, bottom = context(cut)
    return at + top, at + len(cut.before) - bottom


def _placed(cut, lines, page):
    """(start, end, cut, new lines): the change of a cut in a file's lines."""
    start, end = span(cut, lines)
    top, bottom = context(cut)
    new = []
    for line in cut.after[top:len(cut.after) - bottom]:
        if line.strip() == MISSING:
            indent = line[:-len(MISSING)]
            new += _missing(cut, page, indent)
        else:
            new.append(line)
    return start, end, cut, new


def _include(cut, lines):
    """Includes the header that declares lab_missing after the last #include
    that is outside of any #if."""
    include = f'#include "{HEADER}"'
    if include in lines:
        return
    depth, place = 0, None
    for number, line in enumerate(lines):
        word = re.match(r"#\s*(if|endif|include)", line)
        depth += {"if": 1, "endif": -1}.get(word and word.group(1), 0)
        if word and word.group(1) == "include" and depth == 0:
            place = number + 1
    if place is None:
        cut.fail(f"no #include after which {HEADER} could be included")
    lines.insert(place, include)


def apply(text, cuts, page):
    """A file's text with some of its cuts made. `page` is the page of the lab,
    which a missing body names."""
    if not cuts:
        return text
    lines = text.splitlines()
    placed = sorted((_placed(cut, lines, page) for cut in cuts),
                    key=lambda place: place[:2])
    for (_, end, _, _), (start, _, cut, _) in zip(placed, placed[1:]):
        if start < end:
            cut.fail("another cut changes the same lines")
    for start, end, _, new in reversed(placed):
        lines[start:end] = new
    missing = [cut for cut in cuts if cut.missing and cut.path.endswith(C)]
    if missing:
        _include(missing[0], lines)
    # Where a function and its comment are gone, one empty line remains.
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


# ---- the open stage --------------------------------------------------------

def outline(text, stage, path, page):
    """The text of the file `path` with missing bodies, and without static
    functions, except those of `stage.keep`."""
    lines = text.splitlines()
    for f in reversed(functions.functions(text)):
        cut = Cut("", 0, stage.name, path, f.name, stage.title)
        if f.name in stage.keep:
            continue
        if f.static:
            del lines[f.start:f.end + 1]
        else:
            lines[f.body + 1:f.end - 1] = [
                *(f"    (void){name};" for name in f.parameters),
                *_missing(cut, page, "    ")]
    _include(Cut("", 0, stage.name, path, FILE_SCOPE, stage.title), lines)
    return "\n".join(lines) + "\n"
