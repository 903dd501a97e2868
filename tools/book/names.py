"""Where a name of the sources is defined.

A page of the book mentions `kmem_cache_grow` without a place: `named` finds the
definition that is meant. A page of a source uses a name: `nearest` finds the
definition that is visible in the file. Both look at the texts that an edition
of the book shows.
"""

import functools
import os
import re
from dataclasses import dataclass

FOLDERS = "boot kernel mm drivers user tools docs".split()
SOURCES = (".c", ".h", ".asm", ".ld", ".py", ".cfg")

# If several of these have a name, a page of the book means the first.
MEANT = ("mm/", "kernel/", "drivers/", "tools/workshop/", "user/")


@dataclass(frozen=True)
class Definition:
    name: str
    path: str
    line: int
    kind: str
    text: str       # its head, in one line
    static: bool    # visible in its own file only


# (kind, pattern) of C; the name is the first group.
C = [(kind, re.compile(pattern, re.M)) for kind, pattern in (
    ("structure", r"^(?:typedef )?(?:struct|enum|union) (\w+) \{$"),
    ("type", r"^typedef [^;{}()]*?\b(\w+);"),
    ("type", r"^typedef [^;{}()]*?\b(\w+)\([^*]"),
    ("type", r"^typedef [^;{}()]*\(\*(\w+)\)"),
    ("type", r"^\} (\w+_t);"),
    ("macro", r"^# *define (\w+)"),
    ("constant", r"^    ([A-Z][A-Z0-9_]+)(?: = [^,;{}()]+)?,?(?: +/\*.*)?$"),
    ("function", r"^(?![ #/}*])[^;{}=()]*?\b(\w+)\([^;{}]*?\)\n\{$"))]
OTHER = {".asm": [("function", re.compile(r"^(\w+):", re.M))],
         ".py": [("function", re.compile(r"^def (\w+)\(", re.M)),
                 ("class", re.compile(r"^class (\w+)\b", re.M))]}


def hidden(path, kind, text, name, head):
    """Whether a definition is invisible to other files."""
    if path.endswith(".asm"):
        return not re.search(rf"^ *global {name}\b", text, re.M)
    return path.endswith(".py") or path.endswith(".c") and \
        (kind != "function" or head.startswith("static "))


def definitions_in(path, text):
    """The definitions of a file."""
    suffix = os.path.splitext(path)[1]
    text = re.sub(r"__attribute__\(\(.*?\)\)", "", text)
    for kind, pattern in C if suffix in (".c", ".h") else OTHER[suffix]:
        for m in pattern.finditer(text):
            head = " ".join(m[0].split()).rpartition("*/ ")[2].rstrip(" {")
            yield Definition(m[1], path, text.count("\n", 0, m.start(1)) + 1,
                             kind, head, hidden(path, kind, text, m[1], head))


def is_test(path):
    return "/tests/" in path


def meant(path):
    return next((i for i, folder in enumerate(MEANT)
                 if path.startswith(folder)), len(MEANT))


class Names:
    """The definitions in the sources of an edition."""

    def __init__(self, edition):
        self.edition = edition

    def is_source(self, word):
        """A path from the root of the tree to a file that can be read."""
        return (word.split("/")[0] in FOLDERS and "." in word
                and not word.endswith((".md", ".png", ".svg"))
                and ".." not in word and self.edition.shows(word)
                and (self.edition.root / word).is_file())

    @functools.cached_property
    def definitions(self):
        """{name: [Definition]} of all sources."""
        root, found = self.edition.root, {}
        for path in sorted(str(p.relative_to(root)) for folder in FOLDERS
                           for p in (root / folder).rglob("*.*")
                           if p.suffix in (".c", ".h", *OTHER)):
            if self.edition.shows(path):
                for d in definitions_in(path, self.edition.text(path)):
                    found.setdefault(d.name, []).append(d)
        return found

    def named(self, name):
        """The function or structure that the book means, or None. A name that
        is twice in the first folder is ambiguous."""
        for folder in MEANT:
            found = [d for d in self.definitions.get(name, ())
                     if d.kind in ("function", "structure")
                     and d.path.startswith(folder) and not is_test(d.path)
                     and d.path.endswith((".c", ".h"))]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def nearest(self, name, path):
        """The definition of a name that is visible in a file: its own, or that
        in the nearest folder; None if two are equally near."""
        found = self.definitions.get(name, ())
        own = [d for d in found if d.path == path]
        if own:
            return own[0]

        def distance(d):
            return -len(os.path.commonpath([d.path, path])), meant(d.path)
        # definitions in tests are visible to the tests beside them
        seen = [d for d in found if not d.static and not (
            is_test(d.path) and -distance(d)[0] < len("mm/tests"))]
        best = [d for d in seen if distance(d) == min(map(distance, seen))]
        return best[0] if len({d.path for d in best}) == 1 else None
