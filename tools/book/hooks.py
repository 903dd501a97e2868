"""Parts of the book's site that MkDocs does not make by itself.

    nav         the order of chapters, from docs/index.md
    markdown    what GitHub and Python's Markdown understand differently
    content     paths and functions become links to pages of their source
    search      an index that a page can load from a file system, too

MkDocs calls the functions that begin with `on_`.
"""

import html
import json
import os
import re
import sys
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.book import book  # noqa: E402 (the path comes first)

ROOT = book.ROOT
SEARCH = []      # [page, heading, anchor, text]
NAMED = set()    # sources that the book has linked to


# ---- nav ---------------------------------------------------------------------

def on_config(config):
    SEARCH.clear()
    NAMED.clear()
    config.nav = [{"Slate": "index.md"}]
    for part, chapters in book.parts():
        config.nav.append({part: [{c.title: c.path} for c in chapters]})
    return config


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
    """A list may follow a line of text at once, for GitHub."""
    return re.sub(r"^((?![ \-*|>#]|\d+\. ).+)\n(?=(- |1\. ))", r"\1\n\n",
                  text, flags=re.M)


def leave(link, page):
    """A link out of docs/, or to no page, leads to the page of a source. (As
    HTML: MkDocs knows only of its own pages.)"""
    target = os.path.normpath(os.path.join(
        "docs", os.path.dirname(page), link[2]))
    if (target.startswith("docs/") and target.endswith((".md", ".svg", ".png"))
            or not (ROOT / target).is_file()):
        return link[0]
    return f'<a href="{source_link(target, page)}">{link[1]}</a>'


def on_page_markdown(markdown, page, **_):
    path = page.file.src_uri
    markdown = re.sub(r"\nNext: \[.*\s*$", "\n", markdown)  # the theme has it
    markdown = lists_apart(plain_pipes(plain_fences(markdown)))
    return re.sub(r"(?<!!)\[([^]]+)\]\((?!\w+:)([^)#\s]+)\)",
                  lambda link: leave(link, path), markdown)


# ---- content -----------------------------------------------------------------

def source_link(path, page, line=None):
    """From a page to a source."""
    NAMED.add(path)
    up = os.path.relpath("src", os.path.dirname(page) or ".")
    return f"{up}/{path}.html" + (f"#L{line}" if line else "")


def link_of(code, page):
    """Where a piece of code leads, or None."""
    if book.is_source(code):
        return source_link(code, page)
    name = re.fullmatch(r"(?:struct |enum )?(\w+)(?:\(.*\))?", code)
    # a plain word is as often that of a cache or a command
    place = name and re.search(r"[_( ]", code) and \
        book.definitions().get(name[1])
    return place and source_link(place[0], page, place[1])


def with_links(text, page):
    """HTML whose code leads to the sources; not in listings and links."""
    parts = re.split(r"(<pre.*?</pre>|<a .*?</a>|<h\d.*?</h\d>)", text,
                     flags=re.S)

    def linked(m):
        href = link_of(html.unescape(m[1]), page)
        return f'<a class="src" href="{href}">{m[0]}</a>' if href else m[0]
    return "".join(part if i % 2 else
                   re.sub(r"<code>([^<]+)</code>", linked, part)
                   for i, part in enumerate(parts))


def with_prompts(text):
    """Typed lines of a transcript look different from the answers."""
    def typed(m):
        return re.sub(r"^((?:\(gdb\)|slate!?&gt;|\$) )(.*)$",
                      r"<i>\1</i><b>\2</b>", m[0], flags=re.M)
    return re.sub(r"(?<=<code>).*?(?=</code></pre>)", typed, text, flags=re.S)


def with_frames(text):
    """A wide table is moved within itself, not with the page."""
    return text.replace("<table>", '<div class="wide"><table>').replace(
        "</table>", "</table></div>")


def note(text, page):
    """Enters a page into the index of the search, section by section."""
    for part in re.split(r"(?=<h[1-4] id=)", text):
        head = re.match(r'<h\d id="([^"]+)">(.*?)</h\d>', part, re.S)
        words = html.unescape(re.sub(r"<[^>]+>", " ", part))
        SEARCH.append([page.file.url, page.title,
                       strip(head[2]) if head else "",
                       head[1] if head else "", " ".join(words.split())])


def strip(text):
    return html.unescape(re.sub(r"<a class=\"headerlink.*?</a>|<[^>]+>", "",
                                text)).strip()


def on_page_content(content, page, **_):
    path = page.file.src_uri
    note(content, page)
    # codehilite says <pre><span></span><code>
    content = content.replace("<pre><span></span><code>", "<pre><code>")
    return with_frames(with_prompts(with_links(content, path)))


# ---- sources and search ------------------------------------------------------

FRAME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{path}</title><link rel="stylesheet" href="{up}/book.css">
<link rel="stylesheet" href="{up}/code.css"></head>
<body class="source"><header><a href="{up}/index.html">Slate</a>
<code>{path}</code></header><main>{body}</main></body></html>
"""


def write_source(site, path):
    text = (ROOT / path).read_text(encoding="utf-8")
    try:
        lexer = get_lexer_for_filename(path, stripnl=False)
    except ClassNotFound:
        lexer = get_lexer_for_filename("x.txt", stripnl=False)
    body = highlight(text, lexer, HtmlFormatter(
        cssclass="hl", linenos="inline", lineanchors="L",
        anchorlinenos=True)).replace('name="L-', 'id="L').replace(
            'href="#L-', 'href="#L').replace('id="L-', 'id="L')
    place = site / "src" / f"{path}.html"
    place.parent.mkdir(parents=True, exist_ok=True)
    up = "/".join([".."] * (path.count("/") + 1))
    place.write_text(FRAME.format(path=path, up=up, body=body),
                     encoding="utf-8")


def on_post_build(config, **_):
    site = Path(config.site_dir)
    for path in sorted(NAMED):
        write_source(site, path)
    (site / "search.js").write_text(
        "const PAGES = " + json.dumps(SEARCH, ensure_ascii=False) + ";\n",
        encoding="utf-8")
    light, dark = (HtmlFormatter(style=s).get_style_defs(".hl")
                   for s in ("friendly", "github-dark"))
    (site / "code.css").write_text(
        f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n",
        encoding="utf-8")
    book.check_site(site)
