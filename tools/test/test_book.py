"""The book as a whole: the order of its chapters, the parts that each must
have, the sections of the paper, and the site of `make book`."""

import html
import json
import os
import re
import subprocess

import pytest

from conftest import ROOT, long
from tools.book import book, names, search

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
        [("One", ["a.md", "b/c.md"]), ("No list", []), ("Two", ["c.md"])]
    assert parts[0][1][0].about == "first, goes on."


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.path)
def test_titles_are_those_of_the_pages(chapter):
    assert book.heading(chapter.file).replace("`", "") == chapter.title


def test_pages_for_instructors_are_named_alike():
    for page in book.DOCS.glob("labs/*/INSTRUCTOR.md"):
        lab, title = book.heading(page.with_name("README.md")).split(": ", 1)
        assert book.heading(page) == f"{lab} for instructors: {title}"


def test_readme_leads_to_the_book():
    """The README links to the book, and has at most two screens."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "](docs/index.md)" in text
    assert len(text.splitlines()) <= 90


def test_the_glossary_is_sorted_and_leads_to_chapters():
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| \[[^]]+\]\(([\w/.-]+)\) \|$",
                      (book.DOCS / "glossary.md").read_text("utf-8"), re.M)
    terms = [term.lower() for term, _ in rows]
    assert len(terms) > 30 and terms == sorted(terms)
    assert {path for _, path in rows} <= {c.path for c in CHAPTERS}


@each
def test_a_chapter_leads_to_the_next(chapter):
    """The last line links to the next chapter; the last chapter has none."""
    after = TOLD[TOLD.index(chapter) + 1:]
    last = chapter.file.read_text(encoding="utf-8").rstrip().split("\n")[-1]
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
    assert drawings(chapter.file.read_text(encoding="utf-8"))


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
    assert 3 <= len(exercises(chapter.file.read_text(encoding="utf-8"))) <= 5
    text = chapter.file.read_text("utf-8")
    assert "\n## " not in text.split("## Exercises")[1]


# ---- the paper ---------------------------------------------------------------

SECTIONS = re.findall(r"^\| ([\d.]+) \| [^|]+ \| ([^|]+) \| ([^|]+) \|$",
                      (book.DOCS / "paper.md").read_text("utf-8"), re.M)


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
        text = (ROOT / path.strip(" `")).read_text(encoding="utf-8")
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
    (tmp_path / "a.html").write_text('<h2 id="x">', encoding="utf-8")
    page = tmp_path / "b.html"
    text = ('<a href="a.html#x"><a href="a.html#y"><a href="c.html">'
            '<a href="../a.html"><a href="https://h/">')
    book.ids.cache_clear()
    assert list(book.dead_links(text, page, tmp_path)) == \
        ["a.html#y", "c.html", "../a.html"]


@pytest.fixture(scope="module")
def site(shared_path):
    """Builds the site; mkdocs is strict, and hooks.py fails it with errors."""
    tool = ROOT / ".venv/book/bin/mkdocs"
    assert tool.exists(), "`make book` once makes .venv/book"
    folder = shared_path / "site"
    done = subprocess.run([tool, "build", "-q", "-f", "tools/book/mkdocs.yml",
                           "-d", folder], cwd=ROOT, check=False,
                          capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def address(path):
    """The page of the site that a page of the book becomes."""
    return re.sub(r"README\.md$", "index.md", path)[:-len(".md")] + ".html"


def article(site, path):
    return re.search(r"<article>.*</article>", (site / address(path))
                     .read_text(encoding="utf-8"), re.S)[0]


def listings(text):
    return re.findall(r"<pre><code>(.*?)</code></pre>", text, re.S)


@long
def test_the_front_page_leads_to_every_chapter(site):
    links = re.findall(r'<a href="([^"#]+)">', article(site, "index.md"))
    assert {address(c.path) for c in CHAPTERS} <= set(links)
    drawing = listings(article(site, "index.md"))[0]
    assert re.findall(r'href="(\S+)">\1', drawing.replace(".md", ".html")) == [
        f"{n}.html" for n in ("boot memory slab syscalls ipc programs").split()]


TYPED = r"(?:slate!?> |\$ |\((?:gdb|slate)\) )"


@long
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.path)
def test_each_prompt_of_a_transcript_is_marked(site, chapter):
    typed = re.findall(rf"^ {{4,}}({TYPED})\S", re.sub(
        r"^```.*?^```", lambda m: m[0].replace("\n", "\n    "),
        chapter.file.read_text(encoding="utf-8"), flags=re.M | re.S), re.M)
    marked = [html.unescape(prompt) for listing in
              listings(article(site, chapter.path))
              for prompt in re.findall(r"^<i>([^<]+)</i><b>[^<]+</b>", listing,
                                       re.M)]
    assert marked == typed


@long
def test_kinds_of_prompts(site):
    text = "".join(article(site, c.path) for c in CHAPTERS)
    for prompt in ("slate&gt; ", "$ ", "(gdb) "):
        assert text.count(f"<i>{prompt}</i><b>") > 20


def test_the_header_is_as_wide_as_the_window():
    """The columns that are left over are beside the text, not beside all."""
    style = (ROOT / "tools/book/theme/book.css").read_text("utf-8")
    grids = re.findall(r'grid: "((?:top ?)+)" auto "(\. [^"]*\.)" 1fr\s+/ '
                       r'([^;]+);', style)
    assert len(grids) == 2 and "justify-content: center" not in style
    for top, row, widths in grids:
        columns = re.findall(r"minmax\(0, \S+\)|\S+", widths)
        assert len(top.split()) == len(row.split()) == len(columns)
        assert columns[0] == columns[-1] == "minmax(0, 1fr)"


def test_what_is_cut_has_a_shadow():
    style = (ROOT / "tools/book/theme/book.css").read_text("utf-8")
    rule = re.search(r"^pre, \.wide \{(.*?)\}", style, re.M | re.S)[1]
    assert "background-attachment: local, local, scroll, scroll" in rule
    assert rule.count("var(--cover)") == 3 and rule.count("var(--edge)") == 2


@long
def test_wide_parts_of_a_page_scroll_by_themselves(site):
    """A page is as wide as the window: its tables and listings have boxes."""
    style = (site / "book.css").read_text(encoding="utf-8")
    for box in (r"\.wide", "\npre", r"body\.source pre"):
        assert re.search(box + r" \{[^}]*overflow-x: auto", style)
    for chapter in CHAPTERS:
        text = article(site, chapter.path)
        tables = len(re.findall("<table", text))
        assert tables == text.count('<div class="wide"><table>'), chapter.path
        pictures = re.findall('<div class="(?:wide|narrow)"><img [^>]*>', text)
        assert text.count("<img") == len(pictures), chapter.path
        outside = re.sub(r"<pre.*?</pre>|<div class=\"wide\">.*?</div>", "",
                         text, flags=re.S)
        assert not re.search(r"width=|<td", outside), chapter.path


# ---- the pages of sources ----------------------------------------------------

def leads(site, path, name):
    """The link of a name on a page of a source."""
    text = (site / f"src/{path}.html").read_text(encoding="utf-8")
    return {os.path.normpath(os.path.join(os.path.dirname(path),
                                          m[1].replace(".html", "")))
            for m in re.finditer(
                rf'<a href="([^"]+)"><span class="\w+">{name}<', text)}


@long
@pytest.mark.parametrize("path, name, kind, to", [
    ("mm/kmem_cache.c", "kmem_cache_grow", "function", "mm/kmem_slab.c"),
    ("mm/kmem_slab.c", "kmem_cache", "structure", "mm/kmem_impl.h"),
    ("mm/kmem_slab.c", "mm_lock", "function", "kernel/mm_platform.h"),
    ("mm/kmem_slab.c", "KMEM_LARGE_MIN", "macro", "mm/kmem_impl.h"),
    ("kernel/main.c", "kprintf", "function", "drivers/console.c"),
    ("user/bin/date.c", "printf", "function", "user/lib/stdio.c"),
    ("tools/test/lint.py", "finding", "function", "tools/test/lint.py"),
])
def test_names_of_a_source_lead_to_their_definitions(site, path, name, kind,
                                                     to):
    place = names.nearest(name, path)
    assert (place.kind, place.path) == (kind, to)
    assert name in (ROOT / to).read_text("utf-8").splitlines()[place.line - 1]
    assert leads(site, path, name) == {f"{to}#L{place.line}"}


@long
def test_local_names_lead_nowhere(site):
    """`colour` is a variable there, and the tag of an enumeration elsewhere;
    members are not looked up."""
    assert names.all_definitions()["colour"]
    assert not leads(site, "mm/kmem_slab.c", "colour")
    assert not leads(site, "mm/kmem_slab.c", "cache_name")


def test_definitions_are_seen():
    text = ("/* a */\nstatic int one(int a,\n               int b)\n{\n}\n"
            "struct two {\n    int one;\n};\n#define THREE(x) x\n"
            "enum four {\n    FIVE, /* 5 */\n    SIX = 1 << 3,\n};\n"
            "typedef void seven_t(int);\ntypedef unsigned eight_t;\n"
            "int one_used(void);\nint nine = one(1, 2);\n")
    found = [(d.name, d.line, d.kind, d.static)
             for d in names.definitions_in("mm/x.c", text)]
    assert sorted(found) == sorted([
        ("one", 2, "function", True), ("two", 6, "structure", True),
        ("THREE", 9, "macro", True), ("four", 10, "structure", True),
        ("FIVE", 11, "constant", True), ("SIX", 12, "constant", True),
        ("seven_t", 14, "type", True), ("eight_t", 15, "type", True)])
    seen = [d for d in names.definitions_in("mm/x.h", text)]
    assert not any(d.static for d in seen)
    assert seen[-1].text == "static int one(int a, int b)"


# ---- the search --------------------------------------------------------------

@pytest.fixture(scope="module")
def index(site):
    text = (site / "search.js").read_text(encoding="utf-8")
    return json.loads(re.fullmatch(r"const INDEX = (.*);\n", text, re.S)[1])


def found(index, word):
    """The addresses of the entries with a word, as the page orders them."""
    hits = index["words"].get(word, [])
    order = sorted(zip(hits[1::2], hits[::2]))
    return [index["entries"][entry][1] for _, entry in order]


@long
@pytest.mark.parametrize("word, first", [
    ("slab", "glossary.html#term-slab"),
    ("colour", "glossary.html#term-colour"),
    ("destructor", "glossary.html#term-constructor-destructor"),
    ("kmem_cache_grow", "src/mm/kmem_slab.c.html#L"),
    ("buddy_alloc", "src/mm/buddy.c.html#L"),
    ("tasks", "tasks.html"), ("messages", "ipc.html"),
])
def test_the_definition_of_a_word_is_found_first(index, word, first):
    addresses = found(index, word)
    assert addresses[0].startswith(first) and len(addresses) > 3


@long
def test_names_come_before_mentions(index):
    """However often a page mentions a name, its definition comes first."""
    hits = index["words"]["allocator"]
    cost = {index["entries"][entry][1]: cost
            for entry, cost in zip(hits[::2], hits[1::2])}
    assert cost["slab.html"] < 100 < cost["performance.html#fragmentation"]
    text = "slab " * 1000
    assert search.costs("section", "The slab", "")["slab"] + search.PREFIX \
        < search.costs("section", "x", text)["slab"]


@long
def test_excerpts_do_not_cut_words(index):
    """Each piece of a text has whole words; joined they are the text."""
    whole = search.words((book.DOCS / "slab.md").read_text(encoding="utf-8"))
    for title, address, pieces in index["entries"]:
        assert all(p and p == p.strip() for p in pieces), title
        if address.startswith("slab.html"):
            seen = [w for p in pieces for w in search.words(p)]
            assert not set(seen) - set(whole)
    long = "a_word_longer_than_a_line" * 20
    assert search.pieces(f"one {long} two") == ["one", long, "two"]
