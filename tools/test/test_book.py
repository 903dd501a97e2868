"""The book as a whole: the order of its chapters, what each of them must have,
the sections of the paper, and the site of `make book`."""

import re
import subprocess

import pytest

from conftest import ROOT, long
from tools.book import book

pytestmark = pytest.mark.plain

CHAPTERS = book.chapters()

# Pages about the book, or about teaching with it, and the labs' own.
ABOUT = ("paper.md", "statements.md", "tree.md", "glossary.md", "adopting.md",
         "style.md", "labs.md")
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


# ---- the paper ---------------------------------------------------------------

SECTIONS = re.findall(r"^\| ([\d.]+) \| [^|]+ \| ([^|]+) \| ([^|]+) \|$",
                      (book.DOCS / "paper.md").read_text(), re.M)


def test_each_section_of_the_paper_has_its_row():
    assert [number for number, *_ in SECTIONS] == (
        "2 2.1 2.2 2.3 2.4 3 3.1 3.2 3.2.1 3.2.2 3.2.3 3.3 3.4 4 4.1 4.2 4.3 "
        "4.4 5.1 5.2 5.3 6 6.1 6.2 6.3 6.4 6.5 6.6 6.7 6.8 7.1 7.2 7.3"
    ).split()


@pytest.mark.parametrize("number, code", [(n, code) for n, _, code in SECTIONS
                                          if code.strip() != "-"])
def test_code_of_the_paper_is_where_the_page_says(number, code):
    for part in code.split(";"):
        path, _, names = part.partition(":")
        text = (ROOT / path.strip(" `")).read_text()
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"\b{name}\b", text), f"{number}: {name}"


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
