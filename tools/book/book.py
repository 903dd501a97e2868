"""The book as data: its pages and their order; and the checks of its site.

docs/index.md is the only list of chapters: a heading for each part, a line for
each chapter. Labs are found by their folders. The site (tools/book) and the
tests use both.
"""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from tools.grading import labs

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

# Parts that have pages of labs, too, and the names of those.
FOUND = {"Labs": "README.md", "Slides": labs.SLIDES,
         "Teaching with it": "INSTRUCTOR.md"}


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
    result = dict(listed((DOCS / "index.md").read_text(encoding="utf-8")))
    for part, name in FOUND.items():
        result[part] += found_labs(name)
    return [(title, chapters) for title, chapters in result.items()
            if chapters]


def chapters():
    return [c for _, part in parts() for c in part]


def pages():
    """Every page of the book, and README.md."""
    return sorted([*DOCS.rglob("*.md"), ROOT / "README.md"])


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
    site, files = site.resolve(), {}
    for link in re.findall(r"(?:href|src)=\"([^\"]+)\"", text):
        target, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        if target not in files:     # each line of a source has a link to itself
            file = (page.parent / (target or page.name)).resolve()
            there = file.is_file() and site in file.parents
            files[target] = file if there else None
        file = files[target]
        if file is None or (anchor and file.suffix == ".html"
                            and anchor not in ids(file)):
            yield link


@functools.cache
def ids(file):
    """The anchors of a page."""
    return frozenset(re.findall(r'\bid="([^"]+)"',
                                file.read_text(encoding="utf-8")))


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
        if file.suffix == ".html":
            wrong += [f"{name}: {link} does not exist"
                      for link in dead_links(text, file, site)]
    if wrong or count < 10:
        raise SystemExit("\n".join([*wrong, f"the site has {len(wrong)} "
                                    f"faults in {count} files"]))
