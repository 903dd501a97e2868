"""Parts of the book's site that MkDocs does not make by itself.

    nav         the edition; the order of chapters, from docs/index.md
    markdown    syntax that GitHub and Python's Markdown read differently
    content     names of files and functions become links; prompts; tables
    search      its index (search.py); pages of sources (sources.py)

MkDocs calls the functions that begin with `on_`.
"""

import html
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.book import book, search, sources  # noqa: E402 (the path)
from tools.book.edition import Edition  # noqa: E402
from tools.book.names import Names  # noqa: E402
from tools.grading import labs  # noqa: E402

EDITION = NAMES = SOURCES = INDEX = None    # those of this build: on_config


# ---- nav ---------------------------------------------------------------------

def on_config(config):
    global EDITION, NAMES, SOURCES, INDEX
    try:
        EDITION = Edition(config.extra.get("instructors", False))
    except labs.LabError as e:
        raise SystemExit(f"book: {e}") from e
    NAMES = Names(EDITION)
    SOURCES, INDEX = sources.Sources(NAMES), search.Index()
    config.nav = [{"Slate": "index.md"}]
    for part, chapters in book.parts():
        config.nav.append({part: [{c.title: c.path} for c in shown(chapters)]})
    return config


def shown(chapters):
    return [c for c in chapters if EDITION.shows(f"docs/{c.path}")]


def on_files(files, **_):
    for file in list(files):
        if not EDITION.shows(f"docs/{file.src_uri}"):
            files.remove(file)
    return files


# ---- markdown ----------------------------------------------------------------

def plain_fences(text):
    """Fences whose first line says more than a language: the rest is for the
    tests of transcripts."""
    return re.sub(r"^( *```)(\w*)[^\n`]*$",
                  lambda m: m[1] + ("text" if m[2] in ("slate", "sh", "gdb")
                                    else m[2]), text, flags=re.M)


def plain_pipes(text):
    """GitHub wants pipes of code in a table escaped, Markdown does not."""
    return re.sub(r"^\|.*$", lambda row: re.sub(
        r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), row[0]),
        text, flags=re.M)


def lists_apart(text):
    """GitHub needs no empty line between text and a list; Markdown does."""
    return re.sub(r"^((?![ \-*|>#]|\d+\. ).+)\n(?=(- |1\. ))", r"\1\n\n",
                  text, flags=re.M)


def leave(link, page):
    """A link out of docs/, or to no page, becomes one to a source's page. (As
    HTML: MkDocs knows only of its own pages.) What this edition does not show
    is not linked."""
    target = os.path.normpath(os.path.join(
        "docs", os.path.dirname(page), link[2]))
    if not EDITION.shows(target):
        return link[1]
    if (link[3] or target.startswith("docs/")
            and target.endswith((".md", ".svg", ".png"))
            or not (book.ROOT / target).is_file()):
        return link[0]
    href = SOURCES.address(target, os.path.dirname(page))
    return f'<a href="{href}">{link[1]}</a>'


def with_labs(text):
    """The front page has a line for each page of the labs, too."""
    for part, name in book.FOUND.items():
        lines = "".join(f"- [{c.title}]({c.path})\n"
                        for c in shown(book.found_labs(name)))
        text = re.sub(rf"^## {part}\n(?:(?!## ).*\n)*",
                      lambda m: f"{m[0].rstrip()}\n\n{lines}\n",
                      text + "\n", flags=re.M)
    return text


def is_slides(path):
    return os.path.basename(path) == labs.SLIDES


def on_page_markdown(markdown, page, **_):
    path = page.file.src_uri
    if path == "index.md":
        markdown = with_labs(markdown)
    if is_slides(path):
        page.meta["template"] = "slides.html"
        if not EDITION.instructors:
            markdown = labs.without_notes(path, markdown)
    markdown = re.sub(r"\nNext: \[.*\s*$", "\n", markdown)  # the theme has it
    markdown = lists_apart(plain_pipes(plain_fences(markdown)))
    return re.sub(r"(?<!!)\[([^]]+)\]\((?!\w+:)([^)#\s]+)"
                  r"(#[^)\s]*)?\)",
                  lambda link: leave(link, path), markdown)


# ---- content -----------------------------------------------------------------

def link_of(code, page):
    """The address that a piece of code links to, or None."""
    folder = os.path.dirname(page)
    if NAMES.is_source(code):
        return SOURCES.address(code, folder)
    name = re.fullmatch(r"(?:struct |enum )?(\w+)(?:\(.*\))?", code)
    # a plain word may as well name a cache or a command
    place = name and re.search(r"[_( ]", code) and NAMES.named(name[1])
    return place and SOURCES.address(place.path, folder, place.line)


def chapter_links(listing, page):
    """Drawings name chapters by their files."""
    def linked(m):
        if not (EDITION.shows(f"docs/{m[0]}")
                and (book.DOCS / m[0]).is_file()):
            return m[0]
        to = os.path.relpath(m[0], os.path.dirname(page) or ".")
        return f'<a href="{to[:-len(".md")]}.html">{m[0]}</a>'
    return re.sub(r"\b[a-z-]+\.md\b", linked, listing)


def with_links(text, page):
    """HTML whose code links to the sources, except in listings and links."""
    parts = re.split(r"(<pre.*?</pre>|<a .*?</a>|<h\d.*?</h\d>)", text,
                     flags=re.S)

    def linked(m):
        href = link_of(html.unescape(m[1]), page)
        return f'<a class="src" href="{href}">{m[0]}</a>' if href else m[0]
    return "".join(
        re.sub(r"<code>([^<]+)</code>", linked, part) if i % 2 == 0
        else chapter_links(part, page) if part.startswith("<pre") else part
        for i, part in enumerate(parts))


# The kernel's shell, the same after a panic, the shell in ring 3, GDB. A remark
# may follow what is typed.
PROMPT = re.compile(r"^(slate!?&gt; |\$ |\((?:gdb|slate)\) )(.*?)(?=   |$)",
                    re.M)


def with_prompts(text):
    """Typed lines of a transcript look different from the output."""
    return re.sub(r"(<pre><code>)(.*?)(?=</code></pre>)",
                  lambda m: m[1] + PROMPT.sub(r"<i>\1</i><b>\2</b>", m[2]),
                  text, flags=re.S)


def with_frames(text):
    """A wide table or picture scrolls by itself, not with the page."""
    text = re.sub(r'<p>(<img [^>]*src="([^"]+)"[^>]*>)</p>',
                  lambda m: f'<div class="{width(m[2])}">{m[1]}</div>', text)
    return text.replace("<table>", '<div class="wide"><table>').replace(
        "</table>", "</table></div>")


def width(picture):
    """Whether a picture is wider than a telephone."""
    text = (book.DOCS / "pictures" / Path(picture).name).read_text("utf-8")
    wide = float(re.search(r'<svg [^>]*\bwidth="([\d.]+)"', text)[1]) > 400
    return "wide" if wide else "narrow"


def plain(text):
    """The words of HTML."""
    text = re.sub(r"<a class=\"headerlink.*?</a>", "", text)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())


def note(text, page):
    """Enters a page into the index of the search, section by section."""
    for part in re.split(r"(?=<h[1-4] id=)", text):
        head = re.match(r'<h(\d) id="([^"]+)">(.*?)</h\d>', part, re.S)
        if not head:
            continue
        words = plain(part[head.end():].replace("</t", " </t"))
        name, address = plain(head[3]), page.file.url
        if head[1] == "1":
            INDEX.add("chapter", name, address, words)
        else:
            INDEX.add("section", name, f"{address}#{head[2]}", words,
                      f"{page.title}: {name}")


def with_terms(text, page):
    """The glossary with an anchor at each term; enters the terms."""
    def term(m):
        name = plain(m[1])
        anchor = "term-" + "-".join(search.words(name))
        INDEX.add("term", name, f"{page.file.url}#{anchor}", plain(m[2]))
        return (f'<tr>\n<td id="{anchor}">{m[1]}</td>\n'
                f"<td>{m[2]}</td>")
    return re.sub(r"<tr>\n<td>(.*?)</td>\n<td>(.*?)</td>", term, text)


def with_slides(text):
    """A slide for each heading."""
    return re.sub(r"(<h[12] id=.*?)(?=<h[12] id=|\Z)",
                  r"<section>\n\1</section>\n", text, flags=re.S)


def note_code():
    """Enters the functions and structures that the book may mean."""
    for name in NAMES.definitions:
        place = NAMES.named(name)
        if place:
            kind = "static" if place.static else "code"
            INDEX.add(kind, name, SOURCES.address(place.path, "",
                                                    place.line),
                      f"{place.path}: {place.text}")


def on_page_content(content, page, **_):
    path = page.file.src_uri
    note(content, page)
    if path == "glossary.md":
        content = with_terms(content, page)
    # codehilite writes <pre><span></span><code>
    content = content.replace("<pre><span></span><code>", "<pre><code>")
    content = with_frames(with_prompts(with_links(content, path)))
    return with_slides(content) if is_slides(path) else content


def on_post_build(config, **_):
    site = Path(config.site_dir)
    note_code()
    SOURCES.write(site)
    (site / "search.js").write_text(INDEX.script(), encoding="utf-8")
    (site / "code.css").write_text(sources.styles(), encoding="utf-8")
    book.check_site(site)
