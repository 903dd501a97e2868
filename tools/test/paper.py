"""The paper's sections, and who refers to them: sources and chapters.

A comment of mm/ that says "section 3.4", "(3.2.2)" or "(paper, 3.1 and 7.1)"
is a reference, and so is one elsewhere that names the paper; that of a chapter
says "section 5.2 of the paper", or is a row of one of its tables with a column
"paper". What a comment is about:

    the first of a file     the file; in mm/, where it names one or two, its
                            public functions that nothing else is said of
    a divider, /* ---- */   the functions up to the next divider
    above a function        that function, or structure
    within a function       the same

    python3 -m tools.test.paper [FILE]

writes the index into docs/paper.md, between its marks.
"""

import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from tools.book import book

ROOT = book.ROOT
PAGE = book.DOCS / "paper.md"

SECTIONS = {
    "1": "Introduction",
    "2": "Object Caching",
    "2.1": "An Example",
    "2.2": "The Case for Object Caching in the Central Allocator",
    "2.3": "Object Cache Interface",
    "2.4": "An Example",
    "3": "Slab Allocator Implementation",
    "3.1": "Caches",
    "3.2": "Slabs",
    "3.2.1": "Slab Layout - Logical",
    "3.2.2": "Slab Layout for Small Objects",
    "3.2.3": "Slab Layout for Large Objects",
    "3.3": "Freelist Management",
    "3.4": "Reclaiming Memory",
    "4": "Hardware Cache Effects",
    "4.1": "Impact of Buffer Address Distribution on Cache Utilization",
    "4.2": "Impact of Buffer Address Distribution on Bus Balance",
    "4.3": "Slab Coloring",
    "4.4": "Arena Management",
    "5": "Performance",
    "5.1": "Speed Comparison",
    "5.2": "Memory Utilization Comparison",
    "5.3": "Overall System Performance",
    "6": "Debugging Features",
    "6.1": "Auditing",
    "6.2": "Freed-Address Verification",
    "6.3": "Detecting Use of Freed Memory",
    "6.4": "Redzone Checking",
    "6.5": "Synchronous Unmapping",
    "6.6": "Page-per-buffer Mode",
    "6.7": "Leak Detection",
    "6.8": "An Example",
    "7": "Future Directions",
    "7.1": "Managing Other Types of Memory",
    "7.2": "Per-Processor Memory Allocation",
    "7.3": "User-level Applications",
    "8": "Conclusions",
}
ORDER = list(SECTIONS)

NUMBER = r"[1-8](?:\.\d){0,2}"
LIST = rf"{NUMBER}(?:(?:,? and |, | to |–){NUMBER})*(?!\w|\.\d)"
# In a comment of mm/, and in other text, where more must be said.
NEAR = re.compile(rf"(?:[Ss]ections? |\(paper, |[(] ?)({LIST})")
FAR = re.compile(rf"paper(?:'s|,)? (?:[Ss]ections? )?({LIST})|"
                 rf"[Ss]ections? ({LIST}) of the paper|"
                 rf"paper[^.]*? in its sections? ({LIST})|"
                 rf"\([Ss]ections? ({LIST})\)|"
                 rf"([Ss]ection {LIST}) says that the allocator")
OTHERS = re.compile(r"(?:volume \d,? ?|Multiboot 1, |ECMA-48, |sheet, |"
                    r"Conventions, )$")

# Sources outside mm/ that refer to the paper say so; these are looked at.
ELSEWHERE = ("kernel/shell", "kernel/fs", "user/lib", "user/bin",
             "kernel/task", "kernel/vm")


def expand(words):
    """The sections that a list like "6.1 to 6.4 and 6.6" names."""
    found = []
    for part in re.split(r",? and |, ", words):
        ends = re.findall(NUMBER, part)
        if any(e not in SECTIONS for e in ends):
            return []
        if len(ends) == 2:
            depth = ends[0].count(".")
            run = ORDER[ORDER.index(ends[0]):ORDER.index(ends[1]) + 1]
            ends = [s for s in run if s.count(".") == depth]
        found += ends
    return found


def named(text, near):
    """The sections that a piece of text refers to, in order."""
    text = " ".join(re.sub(r"^[ /]*\*+/?", " ", text, flags=re.M).split())
    found = []
    for m in (NEAR if near else FAR).finditer(text):
        if not OTHERS.search(text[:m.start()]):
            found += expand(next(g for g in m.groups() if g).split("ection ")
                            [-1])
    return sorted(set(found), key=ORDER.index)


# ---- sources -----------------------------------------------------------------

@dataclass(frozen=True)
class Place:
    """A function or structure, or a file as a whole (name "")."""
    path: str
    name: str


def comments(text):
    """(start, end, text) of each comment; rows of // do not exist here."""
    return [(m.start(), m.end(), m[0])
            for m in re.finditer(r"/\*.*?\*/", text, re.S)]


def definitions(text):
    """(offset, end, name, public) of functions and structures."""
    lines = [0]
    for line in text.split("\n"):
        lines.append(lines[-1] + len(line) + 1)
    for name, number in book.defined(text):
        start = lines[number - 1]
        # the type may stand on the line before
        before = text.rfind("\n", 0, start - 1) + 1
        if start and re.match(r"[\w_]", text[before:start]) and \
                text[before:start].rstrip()[-1] not in ";}":
            start = before
        end = text.find("\n}", start)
        yield start, end, name, not text.startswith("static", start) or \
            text.startswith("static inline", start)


def references(path, text, near):
    """{Place: sections} of a file."""
    found = {}
    defined = sorted(definitions(text))
    divider, whole = [], []
    marks = sorted([(d[0], "d", d) for d in defined] +
                   [(c[0], "c", c) for c in comments(text)],
                   key=lambda mark: mark[:2])
    first = True
    for _, kind, item in marks:
        if kind == "d":
            start, end, name, public = item
            place = Place(path, name)
            own = found.get(place, [])
            if not own and divider:
                own = divider
            elif not own and public and near:
                own = whole if len(whole) <= 2 else []
            if own:
                found[place] = own
            continue
        start, end, comment = item
        sections = named(comment, near)
        if first:
            whole, first = sections, False
            if whole:
                found[Place(path, "")] = whole
        elif comment.startswith("/* ----"):
            divider = sections
        elif sections:
            about = next((d for d in defined if d[0] <= start < d[1] or
                          0 <= d[0] - end <= 2), None)
            if about:
                place = Place(path, about[2])
                found[place] = sorted({*found.get(place, []), *sections},
                                      key=ORDER.index)
    return found


def sources():
    """[(path, near)] of the sources that may refer to the paper."""
    yield from ((p, True) for folder in ("mm", "mm/debug")
                for p in sorted((ROOT / folder).glob("*.[ch]")))
    for folder in ELSEWHERE:
        yield from ((p, False)
                    for p in sorted((ROOT / folder).glob("*.[ch]")))


def by_source():
    """{Place: sections} of the tree."""
    found = {}
    for path, near in sources():
        found.update(references(str(path.relative_to(ROOT)),
                                path.read_text(encoding="utf-8"), near))
    return found


# ---- chapters ----------------------------------------------------------------

def anchor(heading):
    """What GitHub and the site call a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def rows(text):
    """The first cells of tables whose column "paper" or "section" comes first
    or second: what they name are sections of the paper."""
    for head, body in re.findall(r"^(\|.*)\n\|[-| :]+\n((?:\|.*\n?)+)", text,
                                 re.M):
        columns = [c.strip() for c in head.split("|")[1:-1]]
        for column in ("paper", "section"):
            if column in columns[:2]:
                at = columns.index(column) + 1
                for row in body.splitlines():
                    yield re.sub(r" \(\d\)", "", row.split("|")[at].strip())


def of_text(text):
    """The sections that a piece of a chapter refers to."""
    prose = re.sub(r"^```.*?^```$|^    .*$", "", text, flags=re.M | re.S)
    found = named(prose, False)
    for cell in rows(text):
        if re.fullmatch(LIST, cell):
            found += expand(cell.replace("–", " to "))
    return sorted(set(found), key=ORDER.index)


def by_chapter():
    """{(chapter, heading or ""): sections} in the order of the book."""
    found = {}
    for chapter in book.chapters():
        if chapter.path in (PAGE.name, "style.md"):
            continue
        text = chapter.file.read_text(encoding="utf-8")
        for part in re.split(r"^(?=##+ )", text, flags=re.M):
            head = re.match(r"##+ (.+)", part)
            if sections := of_text(part):
                found[chapter, head[1] if head else ""] = sections
    return found


# ---- the page ----------------------------------------------------------------

def link(chapter, head):
    to = f"#{anchor(head)}" if head else ""
    title = f"{chapter.title}: {head}" if head else chapter.title
    return f"[{title.replace('`', '')}]({chapter.path}{to})"


def code(place):
    return f"`{place.name}` (`{place.path}`)" if place.name \
        else f"`{place.path}`"


def table(head, body):
    return "\n".join([f"| {' | '.join(head)} |",
                      f"|{'---|' * len(head)}",
                      *(f"| {' | '.join(row)} |" for row in body)])


def functions_of(places):
    """Files with the functions of theirs: `path`: `a`, `b`."""
    files = defaultdict(list)
    for place in places:
        files[place.path].append(place.name)
    return "; ".join(
        f"`{path}`" + (": " if any(names) else "") +
        ", ".join(f"`{n}`" for n in sorted(filter(None, names)))
        for path, names in sorted(files.items()))


def about(number, chapters):
    """The parts of chapters that refer to a section; a table of all sections
    only where there is no other."""
    where = [w for w, sections in chapters.items() if number in sections]
    return [w for w in where if len(chapters[w]) < len(SECTIONS) / 2] or where


def to_book():
    """Section, chapters, functions."""
    sources_, chapters = by_source(), by_chapter()
    return table(("section", "its title", "in the book", "in the sources"), [
        (number, title,
         ", ".join(link(*where) for where in about(number, chapters)) or "-",
         functions_of([p for p, s in sources_.items() if number in s]) or "-")
        for number, title in SECTIONS.items()])


def from_functions():
    places = sorted((p for p in by_source().items() if p[0].name),
                    key=lambda item: (item[0].name, item[0].path))
    return table(("function or structure", "where", "sections"), [
        (f"`{place.name}`", f"`{place.path}`", ", ".join(sections))
        for place, sections in places])


def from_chapters():
    merged = defaultdict(set)
    for (chapter, _), sections in by_chapter().items():
        merged[chapter].update(sections)
    return table(("chapter", "sections"), [
        (link(chapter, ""), ", ".join(sorted(sections, key=ORDER.index)))
        for chapter, sections in merged.items()])


PARTS = {"sections": to_book, "chapters": from_chapters,
         "functions": from_functions}


def filled(text):
    """The page with the index as it should be."""
    for mark, make in PARTS.items():
        text, count = re.subn(
            rf"(<!-- {mark} -->\n).*?(<!-- end -->)",
            lambda m, body=make(): f"{m[1]}{body}\n{m[2]}", text, flags=re.S)
        if count != 1:
            raise SystemExit(f"the page has {count} parts <!-- {mark} -->")
    return text


if __name__ == "__main__":
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    page.write_text(filled(page.read_text(encoding="utf-8")),
                    encoding="utf-8")
