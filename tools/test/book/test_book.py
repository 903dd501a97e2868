"""The book as a whole: the order of its chapters, the parts that each must
have, the sections of the paper, and the site of `make book`."""

import html
import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from conftest import ROOT, execute, long
from tools.book import book, hooks, names, search, sources
from tools.book.edition import Edition
from tools.grading import labs
from tools.test.shells import drawings

pytestmark = pytest.mark.plain

CHAPTERS = book.chapters()

# Pages about the book, or about teaching with it, and the labs' own.
ABOUT = ("paper.md", "statements.md", "tree.md", "glossary.md", "adopting.md",
         "demonstration.md", "style.md", "labs.md")
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


def mkdocs(tree, config, folder):
    """Builds a site; mkdocs is strict, and hooks.py fails it with errors."""
    tool = ROOT / ".venv/book/bin/mkdocs"
    assert tool.exists(), "`make book` once makes .venv/book"
    return execute(tool, "build", "-q", "-f", f"tools/book/{config}", "-d",
                   folder, cwd=tree)


class Site:
    """The site of an edition, and what it is made of."""

    def __init__(self, config, folder, tree=ROOT, instructors=False):
        done = mkdocs(tree, config, folder)
        assert done.returncode == 0, done.stdout + done.stderr
        self.folder = folder
        self.edition = Edition(instructors, tree)
        self.names = names.Names(self.edition)
        self.chapters = [c for c in CHAPTERS
                         if self.edition.shows(f"docs/{c.path}")]

    def text(self, name):
        return (self.folder / name).read_text(encoding="utf-8")

    def article(self, path):
        return re.search(r"<article>.*</article>", self.text(address(path)),
                         re.S)[0]


@pytest.mark.parametrize("setting, config", [
    ("STUDENT=", "mkdocs"), ("STUDENT=1", "mkdocs"), ("INSTRUCTOR=0", "mkdocs"),
    ("INSTRUCTOR=1", "instructors")])
def test_make_makes_the_students_edition_unless_told(setting, config):
    done = execute("make", "-n", "book", setting)
    assert re.findall(r"-f tools/book/(\w+)\.yml", done.stdout) == [config]
    assert ("not for publishing" in done.stdout) == (config == "instructors")


@pytest.fixture(scope="module")
def students(shared_path):
    return Site("mkdocs.yml", shared_path / "students")


@pytest.fixture(scope="module")
def instructors(shared_path):
    return Site("instructors.yml", shared_path / "instructors",
                instructors=True)


@pytest.fixture(scope="module", params=["students", "instructors"])
def site(request):
    return request.getfixturevalue(request.param)


def address(path):
    """The page of the site that a page of the book becomes."""
    return re.sub(r"README\.md$", "index.md", path)[:-len(".md")] + ".html"


def listings(text):
    return re.findall(r"<pre><code>(.*?)</code></pre>", text, re.S)


@long
def test_the_front_page_leads_to_every_chapter(site):
    links = re.findall(r'<a href="([^"#]+)">', site.article("index.md"))
    assert {address(c.path) for c in site.chapters} <= set(links)
    drawing = listings(site.article("index.md"))[0]
    assert re.findall(r'href="(\S+)">\1', drawing.replace(".md", ".html")) == [
        f"{n}.html" for n in ("boot memory slab syscalls ipc programs").split()]


TYPED = r"(?:slate!?> |\$ |\((?:gdb|slate)\) )"


@long
def test_each_prompt_of_a_transcript_is_marked(site):
    for chapter in site.chapters:
        typed = re.findall(rf"^ {{4,}}({TYPED})\S", re.sub(
            r"^```.*?^```", lambda m: m[0].replace("\n", "\n    "),
            chapter.file.read_text(encoding="utf-8"), flags=re.M | re.S), re.M)
        marked = [html.unescape(prompt) for listing in
                  listings(site.article(chapter.path))
                  for prompt in re.findall(r"^<i>([^<]+)</i><b>[^<]+</b>",
                                           listing, re.M)]
        assert marked == typed, chapter.path


@long
def test_kinds_of_prompts(site):
    text = "".join(site.article(c.path) for c in site.chapters)
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
    style = site.text("book.css")
    for box in (r"\.wide", "\npre", r"body\.source pre"):
        assert re.search(box + r" \{[^}]*overflow-x: auto", style)
    for chapter in site.chapters:
        text = site.article(chapter.path)
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
    text = site.text(f"src/{path}.html")
    return {os.path.normpath(os.path.join(os.path.dirname(path),
                                          m[1].replace(".html", "")))
            for m in re.finditer(
                rf'<a href="([^"]+)"><span class="\w+">{name}<', text)}


@long
@pytest.mark.parametrize("path, name, kind, to", [
    ("mm/kmem_cache.c", "kmem_cache_grow", "function", "mm/kmem_slab.c"),
    ("mm/kmem_slab.c", "kmem_cache", "structure", "mm/kmem_impl.h"),
    ("mm/segkmem.c", "mm_lock", "function", "kernel/mm_platform.h"),
    ("mm/kmem_slab.c", "KMEM_LARGE_MIN", "macro", "mm/kmem_impl.h"),
    ("kernel/main.c", "kprintf", "function", "drivers/console.c"),
    ("user/bin/date.c", "printf", "function", "user/lib/stdio.c"),
    ("tools/grading/cuts.py", "apply", "function", "tools/grading/cuts.py"),
])
def test_names_of_a_source_lead_to_their_definitions(site, path, name, kind,
                                                     to):
    place = site.names.nearest(name, path)
    assert (place.kind, place.path) == (kind, to)
    rows = site.text(f"src/{to}.html").split('<a id="L')
    assert name in rows[place.line]
    assert leads(site, path, name) == {f"{to}#L{place.line}"}


@long
def test_definitions_are_where_the_page_has_them(site):
    """In the files that labs cut, too."""
    places = {path: [] for path in labs.all_open(ROOT)}
    for found in site.names.definitions.values():
        for d in found:
            places.get(d.path, []).append(d)
    for path, found in places.items():
        rows = site.text(f"src/{path}.html").split('<a id="L')
        assert found and all(d.name in rows[d.line] for d in found), path


@long
def test_local_names_lead_nowhere(site):
    """`colour` is a variable there, and the tag of an enumeration elsewhere;
    members are not looked up."""
    assert site.names.definitions["colour"]
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

def entries(site):
    return json.loads(re.fullmatch(r"const INDEX = (.*);\n",
                                   site.text("search.js"), re.S)[1])


@pytest.fixture(scope="module")
def index(site):
    return entries(site)


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


# ---- the editions ------------------------------------------------------------

def test_students_see_what_hand_outs_have():
    students, instructors = Edition(), Edition(instructors=True)
    for path in ("docs/slab.md", "docs/labs.md", "mm/buddy.c", "docs/none.md",
                 "docs/labs/02-buddies/README.md",
                 "docs/labs/02-buddies/tests/zone.c",
                 "docs/labs/07-bug-hunt/services/bell.c"):
        assert students.shows(path) and instructors.shows(path), path
    for path in ("docs/labs/02-buddies/INSTRUCTOR.md",
                 "docs/labs/02-buddies/cuts/2.1.cut",
                 "docs/labs/02-buddies/wrong/any.patch",
                 "docs/labs/02-buddies/answers.py",
                 "docs/labs/07-bug-hunt/witness.py", "docs/labs/none/README.md",
                 "tools/test/survivors.txt"):
        assert not students.shows(path) and instructors.shows(path), path


def test_students_see_no_source_that_a_lab_cuts():
    cut = {c.path for lab in labs.all_labs(ROOT)
           for c in labs.all_cuts(ROOT, lab)
           if lab.solution(ROOT, c.path) == c.path}
    students, instructors = Edition(), Edition(instructors=True)
    assert len(cut) > 20
    for path in cut | {"mm/kmem.h"}:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert instructors.text(path) == text
        assert (students.text(path) == text) == (path not in cut), path


def test_what_is_not_shown_is_not_linked(monkeypatch):
    """But a link to a page that does not exist stays, and fails the build."""
    monkeypatch.setattr(hooks, "EDITION", Edition())
    monkeypatch.setattr(hooks, "SOURCES",
                        sources.Sources(names.Names(hooks.EDITION)))
    page = SimpleNamespace(file=SimpleNamespace(src_uri="memory.md"))
    assert hooks.on_page_markdown(
        "[a\nb](labs/02-buddies/INSTRUCTOR.md#c) `[d](labs/x/y.md)` "
        "[e](../docs/labs/02-buddies/answers.py) [f](slab.md#g) [h](none.md) "
        "[i](../mm/page.h)", page) == (
        "a\nb `d` e [f](slab.md#g) [h](none.md) "
        '<a href="src/mm/page.h.html">i</a>')


def test_a_hand_out_has_no_instructors_edition(tmp_path):
    (tmp_path / labs.STAMP).touch()
    with pytest.raises(labs.LabError, match="this tree is a hand-out"):
        Edition(instructors=True, root=tmp_path)


@long
def test_the_book_of_a_hand_out(shared_path):
    """All its sources are as they are; it has the pages of its own lab."""
    tree, folder = shared_path / "lab3", shared_path / "lab3-book"
    subprocess.run([sys.executable, "-m", "tools.grading.lab", "--lab", "3",
                    "--out", tree], cwd=ROOT, check=True, capture_output=True)
    site = Site("mkdocs.yml", folder, tree)
    assert [p.name for p in (folder / "labs").iterdir()] == ["03-slab"]
    links = set(re.findall(r'<a href="(labs/[^"#]+)">',
                           site.article("index.md")))
    assert links == {"labs/03-slab/index.html", "labs/03-slab/slides.html"}
    slides = site.article("labs/03-slab/slides.md")
    assert slides.count("<section>") >= 8 and "<blockquote>" not in slides
    assert not (folder / "src/mm/buddy.c.html").exists()  # an object
    for path in "mm/segkmem.c", "mm/kmem_slab.c":
        text = (tree / path).read_text(encoding="utf-8")
        assert code(text) == code(plain(site.text(f"src/{path}.html"))
                                  .split(path, 2)[2]), path
    done = mkdocs(tree, "instructors.yml", folder)
    assert done.returncode != 0 and done.stderr == (
        "book: this tree is a hand-out, which has no pages for instructors\n")


# ---- what students may not see -----------------------------------------------

# Tokens that are compared; pieces that are shorter than the second say nothing.
LONG, SHORT = 14, 7

# Lines as in a solution that are elsewhere in the book, and why they may be.
MODEL = "a driver that students of lab 8 read as a model"
KNOWN = {
    ("driver.html", "8.1"): MODEL,
    ("driver.html", "8.2"): MODEL,
    ("src/drivers/servers/rtc.c.html", "8.1"): MODEL,
    ("src/drivers/servers/rtc.c.html", "8.2"): MODEL,
    ("src/drivers/servers/uart.c.html", "8.2"): MODEL,
    ("src/docs/labs/08-messages/bin/beattest/main.c.html", "8.2"):
        "another server's `if`: is it a notification?",
    ("src/docs/labs/08-messages/bin/beattest/parts.c.html", "8.6"):
        "the format of a number that the test writes",
    ("src/kernel/fs/userfs.c.html", "5.6"): "an item leaves its list",
    ("src/tools/workshop/defrag/defrag.c.html", "4.3"):
        "a slab moves within the list, and the freelist pointer with it",
    ("src/tools/workshop/bench/cmd_bench.c.html", "6.3"):
        "how any loop is measured",
}

# Sentences of pages for instructors that the book teaches, too.
TAUGHT = ("a block is aligned to its size",
          "qemu runs one processor at a time")

# The head of a loop that counts is none of a solution's ideas.
COUNTS = re.compile(r"\bfor \(\w+ (\w+) = 0; \1 < [\w>-]+; \1\+\+\)")


def code(text):
    """The tokens of C."""
    return re.findall(r"\w+|->|\+\+|--|<<|>>|&&|\|\||[-+*/%&|^!=<>]=|[^\w\s]",
                      COUNTS.sub("for", text))


def windows(tokens):
    """The pieces of LONG tokens, or all of fewer."""
    return {tuple(tokens[i:i + LONG])
            for i in range(max(1, len(tokens) - LONG + 1))
            if len(tokens) >= SHORT}


def solved():
    """(task, piece) of the lines that cuts replace, without those that the
    lab's hand-out has in the same files."""
    for lab in labs.all_labs(ROOT):
        given = " ".join(token for text in labs.handed_out(ROOT, lab).values()
                         for token in code(text))
        for cut in labs.all_cuts(ROOT, lab):
            lines = labs.replaced(ROOT, lab, cut)
            for piece in windows(code("\n".join(lines))):
                if f" {' '.join(piece)} " not in given:
                    yield cut.task, piece


def noted():
    """(lab, piece) of the sentences for instructors: of their pages, and of the
    notes on slides. A row of a table is one."""
    for page in book.DOCS.glob("labs/*/*.md"):
        if page.name not in ("INSTRUCTOR.md", labs.SLIDES):
            continue
        text = re.sub(r"\]\([^)]*\)", "]", page.read_text(encoding="utf-8"))
        if page.name == labs.SLIDES:
            text = "\n".join(re.findall(r"^> ?(.*)|^#", text, re.M))
        for sentence in re.split(r"(?<=[.:;?!])\s|\n\s*\n|\n *(?:[-|]|\d+\.) ",
                                 text):
            for piece in windows(search.words(sentence)):
                if " ".join(piece) not in TAUGHT:
                    yield page.parent.name, piece


def plain(text):
    """The text of a page, without the numbers of lines."""
    return hooks.plain(re.sub(r'<span class="linenos">.*?</span>', "", text))


def texts(site):
    """(page, text) of all files of a site, and of what the search shows."""
    for file in site.folder.rglob("*.*"):
        name = str(file.relative_to(site.folder))
        if name == "search.js":
            for title, address, pieces in entries(site)["entries"]:
                yield address.split("#")[0], " ".join([title, *pieces])
        elif file.suffix == ".html":
            yield name, plain(site.text(name))
        elif file.is_file() and file.suffix != ".gz":
            yield name, site.text(name)


def seen(site, secrets, split):
    """{(page, source)} of the pieces [(source, piece)] that a site shows."""
    found, begin = set(), {}
    for source, piece in secrets:
        begin.setdefault(piece[:SHORT], []).append((source, piece))
    for page, text in texts(site):
        tokens = split(text)
        for i in range(len(tokens)):
            for source, piece in begin.get(tuple(tokens[i:i + SHORT]), ()):
                if tuple(tokens[i:i + len(piece)]) == piece:
                    found.add((page, source))
    return found


@long
def test_students_see_no_solution(students):
    """Lab 10's models count, lock and check as its solution does, since all of
    them have one interface."""
    found = {(page, task) for page, task in seen(students, solved(), code)
             if not (task.startswith("10.") and re.match(
                 r"src/mm/others/(?!yours)", page))}
    assert found == set(KNOWN)


@long
def test_students_see_nothing_for_instructors(students):
    assert seen(students, noted(), search.words) == set()
    names = [str(p.relative_to(students.folder))
             for p in students.folder.rglob("*.*")]
    assert len(names) > 500
    assert not [n for n in names if re.search(
        r"INSTRUCTOR|/(cuts|wrong|solution)/|/(answers|hidden|witness)\.py|"
        r"survivors", n)]


@long
def test_instructors_see_all(instructors):
    """So what students do not see would be found."""
    secrets = list(solved())
    places = seen(instructors, secrets, code)
    for task in {task for task, _ in secrets}:
        lab = labs.load(ROOT, task.split(".")[0])
        assert {page for page, t in places - set(KNOWN) if t == task} & {
            f"src/{lab.solution(ROOT, cut.path)}.html"
            for cut in labs.all_cuts(ROOT, lab) if cut.task == task}, task
    pages = seen(instructors, noted(), search.words)
    assert {(f"labs/{p.parent.name}/{p.stem}.html", p.parent.name)
            for name in ("INSTRUCTOR.md", labs.SLIDES)
            for p in book.DOCS.glob(f"labs/*/{name}")} <= pages
