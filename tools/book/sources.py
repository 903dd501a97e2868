"""Pages of the sources that the book names. A name in one of them links to its
definition, so the sources that a page links to get pages, too.
"""

import html
import os
import re

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound

FRAME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{path}</title><link rel="stylesheet" href="{up}/book.css">
<link rel="stylesheet" href="{up}/code.css"></head>
<body class="source"><header><a href="{up}/index.html">Slate</a>
<code>{path}</code></header><main>{body}</main></body></html>
"""

NAME = re.compile(
    r'(?P<before>(?:\.|-&gt;|\b(?:struct|enum|union))'
    r'(?:</span>|<span class="w">|\s)*)?'
    r'(?P<span><span class="(?:n|n[bcfnv]|kt)">(?P<name>\w+)</span>)'
    r'(?P<call>(?=<span class="p">\())?')
INCLUDED = re.compile(r'(<span class="cpf">&quot;)([\w./-]+)(&quot;</span>)')


def means(place, m):
    """Whether a name is that of a definition, and not a member or a local
    variable of the same name."""
    before, name = m["before"] or "", m["name"]
    if place.kind == "structure" or before[:1].isalpha():
        return place.kind == "structure" and before[:1].isalpha()
    return not before and (m["call"] is not None or "_" in name
                           or name.isupper())


class Sources:
    """The sources that have a page: the book's, and all that they link to."""

    def __init__(self, names):
        self.names, self.paths = names, set()

    def address(self, path, folder, line=None):
        """The link from a page in `folder` of the site to a source."""
        self.paths.add(path)
        return os.path.relpath(f"src/{path}.html", folder or ".") + \
            (f"#L{line}" if line else "")

    def linked(self, body, path):
        """The listing of a source with links at its names and includes."""
        folder = os.path.dirname(f"src/{path}")

        def name(m):
            place = self.names.nearest(m["name"], path)
            if not place or not means(place, m):
                return m[0]
            href = self.address(place.path, folder, place.line)
            return f'{m["before"] or ""}<a href="{href}">{m["span"]}</a>'

        def include(m):
            if not self.names.is_source(m[2]):
                return m[0]
            return (f'{m[1]}<a href="{self.address(m[2], folder)}">{m[2]}</a>'
                    f"{m[3]}")
        return INCLUDED.sub(include, NAME.sub(name, body))

    def page(self, path):
        text = self.names.edition.text(path)
        try:
            lexer = get_lexer_for_filename(path, stripnl=False)
        except ClassNotFound:
            lexer = get_lexer_for_filename("x.txt", stripnl=False)
        body = highlight(text, lexer, HtmlFormatter(
            cssclass="hl", linenos="inline", lineanchors="L",
            anchorlinenos=True))
        body = body.replace('name="L-', 'id="L').replace('href="#L-',
                                                         'href="#L')
        return FRAME.format(path=html.escape(path),
                            up="/".join([".."] * (path.count("/") + 1)),
                            body=self.linked(body.replace('id="L-', 'id="L'),
                                             path))

    def write(self, site):
        """Writes all pages into the folder of the site."""
        written = set()
        while self.paths - written:
            for path in sorted(self.paths - written):
                place = site / "src" / f"{path}.html"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(self.page(path), encoding="utf-8")
                written.add(path)


def styles():
    """The style sheet of listings, light and dark."""
    light, dark = (HtmlFormatter(style=s).get_style_defs(".hl")
                   for s in ("friendly", "github-dark"))
    return (f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n")
