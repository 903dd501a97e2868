"""The book as data: its pages, their order, and the names in them.

docs/index.md is the only list of chapters: a heading for each part, a line for
each chapter. Labs are found by their folders. The site (tools/book) and the
tests use both.
"""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

LABS = "Labs"
INSTRUCTORS = "Teaching with it"

FOLDERS = "boot kernel mm drivers user tools docs".split()
SOURCES = (".c", ".h", ".asm", ".ld", ".py", ".cfg")


@dataclass(frozen=True)
class Chapter:
    """A line of the list. `path` is below docs/."""
    title: str
    path: str
    about: str

    @property
    def file(self):
        return DOCS / self.path


def listed(text):
    """[(part, [Chapter])] of the lines of docs/index.md."""
    found = []
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        lines = re.findall(r"^(?:\d+\.|-) \[([^]]+)\]\(([\w/.-]+\.md)\): "
                           r"((?:.+\n?)(?:   ?\S.*\n?)*)", section, re.M)
        if lines:
            found.append((section.split("\n")[0], [
                Chapter(title, path, " ".join(about.split()))
                for title, path, about in lines]))
    return found


def heading(path):
    """The title of a page."""
    return re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.M)[1]


def found_labs(name):
    """The pages of that name of all labs, in order."""
    return [Chapter(heading(p), str(p.relative_to(DOCS)), "")
            for p in sorted(DOCS.glob(f"labs/*/{name}"))]


def parts():
    """[(part, [Chapter])] of the whole book, in reading order."""
    result = listed((DOCS / "index.md").read_text(encoding="utf-8"))
    known = {c.path for _, chapters in result for c in chapters}
    for part, name in ((LABS, "README.md"), (INSTRUCTORS, "INSTRUCTOR.md")):
        more = [c for c in found_labs(name) if c.path not in known]
        if not any(part == title for title, _ in result):
            result.append((part, []))
        next(c for title, c in result if title == part).extend(more)
    return [(title, chapters) for title, chapters in result if chapters]


def chapters():
    return [c for _, part in parts() for c in part]


def pages():
    """Every page of the book, and README.md."""
    return sorted([*DOCS.rglob("*.md"), ROOT / "README.md"])


# ---- what pages name ---------------------------------------------------------

def is_source(word):
    """A path from the root of the tree to a file that can be read."""
    path = ROOT / word
    return (word.split("/")[0] in FOLDERS and "." in word
            and not word.endswith((".md", ".png", ".svg"))
            and ".." not in word and path.is_file())


@functools.cache
def definitions():
    """{name: (path, line)} of functions and structures. Of equal names in
    several folders, mm/ comes first, then the kernel; names that a folder has
    twice are left out."""
    found = {}
    for folder in ("mm", "kernel", "drivers", "tools/workshop", "user"):
        places = {}
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            if "tests" in path.parts:
                continue
            for name, line in defined(path.read_text(encoding="utf-8")):
                places.setdefault(name, []).append(
                    (str(path.relative_to(ROOT)), line))
        for name, at in places.items():
            found.setdefault(name, at)
    return {name: at[0] for name, at in found.items() if len(at) == 1}


def defined(text):
    """(name, line) of the functions, structures and enumerations that C text
    defines."""
    text = re.sub(r"__attribute__\(\(.*?\)\)", "", text)
    for m in re.finditer(r"^(?:struct|enum) (\w+) \{$", text, re.M):
        yield m[1], text.count("\n", 0, m.start()) + 1
    for m in re.finditer(r"^(?![ #/}*])[^;{}=()]*?\b(\w+)\([^;{}]*?\)\n\{$",
                         text, re.M):
        yield m[1], text.count("\n", 0, m.start(1)) + 1


# ---- the site ----------------------------------------------------------------

def outside(text):
    """The addresses on other hosts that a page or style sheet loads."""
    return [*re.findall(r"<(?!a\b)[^>]*?\b(?:src|href|data|poster|srcset)="
                        r"[\"']?((?:\w+:)?//[^\"'> ]+)", text),
            *re.findall(r"(?:url\(|@import )[\"' ]*((?:\w+:)?//[^\"') ]+)",
                        text),
            *re.findall(r"\b(?:fetch|importScripts|import)\([\"'`]"
                        r"((?:\w+:)?//[^\"'`]+)", text)]


def dead_links(text, page, site):
    """Links of a page to missing files or anchors."""
    for link in re.findall(r"(?:href|src)=\"([^\"]+)\"", text):
        target, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.is_file() or site.resolve() not in file.resolve().parents:
            yield link
        elif anchor and file.suffix == ".html" and \
                f'id="{anchor}"' not in ids(file):
            yield link


@functools.cache
def ids(file):
    return file.read_text(encoding="utf-8")


def check_site(site):
    """Raises if the site loads from other hosts or has dead links."""
    wrong, count = [], 0
    ids.cache_clear()
    for file in sorted(site.rglob("*")):
        if file.suffix not in (".html", ".css", ".js", ".svg"):
            continue
        text = file.read_text(encoding="utf-8")
        count += 1
        name = file.relative_to(site)
        if name.name != "search.js":
            wrong += [f"{name} loads {url}" for url in outside(text)]
        if file.suffix == ".html" and name.parts[0] != "src":
            wrong += [f"{name}: {link} leads nowhere"
                      for link in dead_links(text, file, site)]
    if wrong or count < 10:
        raise SystemExit("\n".join([*wrong, f"the site has {len(wrong)} "
                                    f"faults in {count} files"]))
