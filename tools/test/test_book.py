"""The book as a whole: the order of its chapters, what each of them must have,
the index of the paper, and the look that `make book` takes at its site."""

import re
import subprocess

import pytest

from conftest import ROOT, long
from tools.book import book
from tools.test import paper

pytestmark = pytest.mark.plain

CHAPTERS = book.chapters()

# Pages about the book, or about teaching with it, and the labs' own.
ABOUT = ("paper.md", "glossary.md", "adopting.md", "style.md", "labs.md")
TOLD = [c for c in CHAPTERS
        if c.path not in ABOUT and not c.path.startswith("labs/")]

each = pytest.mark.parametrize("chapter", TOLD, ids=lambda c: c.path)


# ---- the order of chapters ---------------------------------------------------

def test_every_page_is_in_the_book():
    there = {str(p.relative_to(book.DOCS)) for p in book.DOCS.rglob("*.md")}
    assert len(there) > 25
    assert sorted(c.path for c in CHAPTERS) == sorted(there - {"index.md"})


def test_the_order_is_read_from_the_page():
    parts = book.listed("# T\n\n## One\n\n1. [A](a.md): first,\n   goes on.\n"
                        "2. [B](b/c.md): x.\n\n## No list\n\ntext\n\n"
                        "## Two\n\n- [C](c.md): y.\n")
    assert [(p, [c.path for c in cs]) for p, cs in parts] == \
        [("One", ["a.md", "b/c.md"]), ("Two", ["c.md"])]
    assert parts[0][1][0].about == "first, goes on."


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.path)
def test_titles_are_those_of_the_pages(chapter):
    assert book.heading(chapter.file).replace("`", "") == chapter.title


def test_readme_leads_to_the_book():
    """And is short: two screens."""
    text = (ROOT / "README.md").read_text()
    assert "](docs/index.md)" in text
    assert len(text.splitlines()) <= 90


def test_the_glossary_is_sorted_and_leads_to_chapters():
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| \[[^]]+\]\(([\w/.-]+)\) \|$",
                      (book.DOCS / "glossary.md").read_text(), re.M)
    terms = [term.lower() for term, _ in rows]
    assert len(terms) > 30 and terms == sorted(terms)
    assert {path for _, path in rows} <= {c.path for c in CHAPTERS}


@each
def test_a_chapter_leads_to_the_next(chapter):
    """By its last line; the last one has none."""
    after = TOLD[TOLD.index(chapter) + 1:]
    last = chapter.file.read_text().rstrip().split("\n")[-1]
    assert not after or last == f"Next: [{after[0].title}]({after[0].path})"


# ---- what a chapter has ------------------------------------------------------

def drawings(text):
    """Pictures, and listings in which something is drawn."""
    listings = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.M) + \
        re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    return re.findall(r"!\[[^]]+\]\([^)]+\)", text) + \
        [part for part in listings
         if len(re.findall(r"[─│┌┐└┘├┤┬┴┼═║]|-->|──", part)) >= 3]


@each
def test_a_chapter_has_a_drawing(chapter):
    assert drawings(chapter.file.read_text())


def test_drawings_are_told_from_listings():
    assert not drawings("text\n\n    int a;\n    b -- c\n\ntext │ │ │ │\n")
    assert drawings("text\n\n    a ──> b\n    │\n    c\n\n")


def exercises(text):
    """The numbered exercises at the end of a chapter."""
    parts = re.split(r"^## Exercises$", text, flags=re.M)
    return re.findall(r"^\d+\. \*\*(.+?)\*\* ", parts[1], re.M) \
        if len(parts) == 2 else []


@each
def test_a_chapter_ends_with_exercises(chapter):
    assert 3 <= len(exercises(chapter.file.read_text())) <= 5
    assert "\n## " not in chapter.file.read_text().split("## Exercises")[1]


# ---- the index of the paper --------------------------------------------------

def test_the_index_of_the_paper_is_up_to_date():
    """`make paper-index` writes it."""
    text = paper.PAGE.read_text()
    assert paper.filled(text) == text


@pytest.mark.parametrize("text, found", [
    ("/* Large (3.2.3): a bufctl. */", ["3.2.3"]),
    ("/* (paper, sections 6.1 to 6.4 and 6.6) */",
     ["6.1", "6.2", "6.3", "6.4", "6.6"]),
    ("/* (paper, 3.1 and\n * 7.1) */", ["3.1", "7.1"]),
    ("/* at most 12.5 % (3.2, 4th point) */", ["3.2"]),
    ("/* Knuth's, volume 1, section 2.5. */", []),
    ("/* 3.2 % of it; section 9.9 */", []),
])
def test_references_of_comments(text, found):
    assert paper.named(text, near=True) == found


@pytest.mark.parametrize("text, found", [
    ("section 5.2 of the paper", ["5.2"]), ("the paper's section 2", ["2"]),
    ("by the clock (section 3.4).", ["3.4"]),
    ("Multiboot 1, section 3.3, describes", []), ("in section 4", []),
])
def test_references_of_chapters(text, found):
    assert paper.named(text, near=False) == found


def test_what_a_comment_is_about():
    text = ("/* The file (paper, sections 2.3, 3.1 and 3.3). */\n\n"
            "/* ---- one (3.2) ---- */\n\n"
            "static int a(void)\n{\n    /* (6.2) */\n}\n\n"
            "void b(void)\n{\n}\n\n/* ---- two ---- */\n\n"
            "void c(void)\n{\n}\n\n/* (3.4) */\nvoid d(void)\n{\n}\n")
    found = {p.name: s for p, s in paper.references("x.c", text, True).items()}
    assert found == {"": ["2.3", "3.1", "3.3"], "a": ["3.2", "6.2"],
                     "b": ["3.2"], "d": ["3.4"]}


def test_sections_of_the_allocator_have_both():
    """Chapters and functions: none of the sections that Slate implements has
    been forgotten in the comments."""
    sources = {s for found in paper.by_source().values() for s in found}
    chapters = {s for found in paper.by_chapter().values() for s in found}
    told = [s for s in paper.SECTIONS
            if s.startswith(("2.3", "3.", "4.3", "6.", "7.1", "7.3"))]
    assert len(told) == 19
    assert set(told) <= sources & chapters


# ---- the site ----------------------------------------------------------------

@pytest.mark.parametrize("text", [
    '<script src="https://cdn.example/x.js"></script>',
    "<img src='//host/x.png'>", '<link rel="x" href="http://h/x.css">',
    "@import 'https://fonts.example/x'", "a { b: url(//h/x.woff) }",
    'fetch("https://h/api")'])
def test_requests_to_other_hosts_are_seen(text):
    assert book.outside(text)


def test_links_to_other_hosts_are_none():
    assert not book.outside('<a href="https://h/">x</a> <img src="x.svg">')


def test_dead_links_are_seen(tmp_path):
    (tmp_path / "a.html").write_text('<h2 id="x">')
    page = tmp_path / "b.html"
    text = ('<a href="a.html#x"><a href="a.html#y"><a href="c.html">'
            '<a href="../a.html"><a href="https://h/">')
    book.ids.cache_clear()
    assert list(book.dead_links(text, page, tmp_path)) == \
        ["a.html#y", "c.html", "../a.html"]


@long
def test_the_site_is_made(tmp_path):
    """mkdocs is strict, and hooks.py ends it with what is wrong."""
    tool = ROOT / ".venv/book/bin/mkdocs"
    assert tool.exists(), "`make book` once makes .venv/book"
    done = subprocess.run([tool, "build", "-q", "-f", "tools/book/mkdocs.yml",
                           "-d", tmp_path / "site"], cwd=ROOT, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Slate" in (tmp_path / "site/index.html").read_text()
