"""Takes a C source apart at its functions: a hand-out has what a later lab asks
for as an object.

    rest(text, names)        the source without the functions `names`
    part(text, names)        a source with these alone, for the object

In the rest each has its comment and its declaration. A static one that the rest
calls is not static in the part; one that only those of `names` call goes with
them. A weak part is for a rest that may define some of `names` itself.
"""

import re
import textwrap
from dataclasses import dataclass

WIDTH = 80


@dataclass(frozen=True)
class Function:
    """A function's lines are [start, end): its comment, its head, its body."""
    name: str
    start: int
    head: int
    body: int
    end: int
    text: str       # of the head and the body

    @property
    def static(self):
        return re.match(r"static\b", self.text) is not None

    @property
    def declaration(self):
        """That of a function of another file, in lines that end at commas."""
        head = " ".join(self.text[:self.text.index("\n{")].split())
        head = re.sub(r"\b(static|inline) |__attribute__\(\(.*?\)\) ?", "",
                      head)
        lines = textwrap.wrap(
            re.sub(r"(?<!,) ", "\0", head + ";"), WIDTH,
            subsequent_indent=" " * (head.index("(") + 1))
        return "\n".join(lines).replace("\0", " ")

    @property
    def parameters(self):
        """The names of its parameters."""
        head = " ".join(self.text[:self.text.index("\n{")].split())
        return re.findall(r"(\w+)(?=[,)])", head[head.index(
            self.name + "("):].replace("(void)", "()"))

    def calls(self, name):
        return re.search(rf"\b{name}\b", self.text) is not None


def functions(text):
    """The functions of a source, whose braces are in column 0."""
    lines, found, first, last = text.split("\n"), [], None, 0
    for number, line in enumerate(lines):
        if line == "{":
            first = number
        elif line == "}" and first is not None:
            found.append(_function(lines, last, first, number + 1))
            first, last = None, number + 1
    return found


def _function(lines, above, body, end):
    head = body - 1
    while head > above and not re.match(r"\w", lines[head]):
        head -= 1
    while head > above and re.match(r"\w.*[^;]$", lines[head - 1]):
        head -= 1
    start = head
    if lines[head - 1].endswith("*/"):
        start -= 1
        while start > above and not lines[start].startswith("/*"):
            start -= 1
    name = re.search(r"(\w+)\(", re.sub(
        r"__attribute__\(\(.*?\)\)", "", " ".join(lines[head:body])))
    return Function(name[1], start, head, body, end,
                    "\n".join(lines[head:end]))


def _called(function, by):
    return any(other.calls(function.name) for other in by if other != function)


def _stay(found, names):
    """The functions of the rest."""
    kept = [f for f in found if f.name not in names]
    while True:
        gone = [f for f in found if f not in kept]
        used = [f for f in kept if not f.static or _called(f, kept) or
                not _called(f, gone)]
        if used == kept:
            return kept
        kept = used


def _shared(found, names):
    """Those of `names` that other files call, or the rest."""
    kept = _stay(found, names)
    return [f for f in found if f.name in names and
            (not f.static or _called(f, kept))]


def shared(text, names):
    """The names of the functions that the rest has as declarations."""
    return {f.name for f in _shared(functions(text), names)}


def rest(text, names):
    """The source without the functions `names`."""
    found, lines = functions(text), text.split("\n")
    kept, declared = _stay(found, names), _shared(found, names)
    for f in reversed(found):
        if f in declared:
            lines[f.head:f.end] = [f.declaration]
        elif f not in kept:
            del lines[f.start:f.end + 1]    # and the empty line
    return "\n".join(lines)


def exported(function, before=""):
    """The text of a function that other files call, with a declaration."""
    return before + function.declaration + "\n" + function.declaration[:-1] + \
        function.text[function.text.index("\n{"):]


def part(text, names, weak=False):
    """A source with the functions `names` and the static ones that they need;
    what else they call is declared. Of the lines between functions only those
    of the preprocessor stay."""
    found = functions(text)
    kept = [f for f in found if f.name in names]
    offered = kept.copy() if weak else _shared(found, names)
    for f in kept:
        kept += [g for g in found if g.static and g not in kept and
                 f.calls(g.name)]
    lines, out, at = text.split("\n"), [], 0
    for f in found:
        out += _directives(lines[at:f.start])
        at = f.end
        if f in offered:
            out.append(exported(f, "__attribute__((weak)) " if weak else ""))
        elif f in kept:
            out.append(f.text)
        elif _called(f, kept):
            out.append(f.declaration)
    return "\n".join(out + _directives(lines[at:])) + "\n"


def _directives(lines):
    """Those of the preprocessor, with the lines that continue them."""
    return re.findall(r"^#(?:.*\\\n)*.*$", "\n".join(lines), re.M)
