"""A small SVG writer: shapes, text, and the style of all of Slate's pictures.

Colours are classes, so a picture is light or dark as the browser is set, both
in a file of its own and in a page. It loads no other file.
"""

from xml.sax.saxutils import escape, quoteattr

SANS = ("system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, "
        "sans-serif")
MONO = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"

MARGIN = 16    # around a picture that is a file of its own

# (class, light, dark) of filled shapes.
FILLS = [
    ("bg", "#ffffff", "#15181d"),
    ("used", "#2f6db3", "#5a9ae0"),
    ("free", "#dbe6f3", "#27384e"),
    ("colour", "#2b313a", "#dfe4ea"),
    ("round", "#a9bdd4", "#43586f"),
    ("tail", "#ece7dd", "#35332e"),
    ("header", "#5f6b7a", "#99a5b5"),
    ("bad", "#c62828", "#ff6b6b"),
    ("kernel", "#6b7280", "#7b8494"),
    ("reserved", "#c9cdd3", "#3a3f48"),
    ("user", "#0f8a7e", "#2fb5a7"),
    ("oversize", "#8d6e63", "#b08d80"),
    ("empty", "#eef2ec", "#1f2723"),
    ("k0", "#3b6fb6", "#6a9fe6"), ("k1", "#e08a1e", "#f2a848"),
    ("k2", "#3f9c57", "#63c27b"), ("k3", "#c9464a", "#ea7377"),
    ("k4", "#8e64ad", "#b48ed2"), ("k5", "#2aa3b0", "#58c8d3"),
    ("k6", "#c9a81c", "#e3c84c"), ("k7", "#d8679b", "#ee93bd"),
    ("k8", "#7a8f2a", "#a5bb55"), ("kx", "#9aa1ab", "#6f7783"),
]
# (class, light, dark) of text and lines.
INKS = [("ink", "#1d232b", "#e6e9ee"), ("dim", "#5d6673", "#9aa4b2"),
        ("inkbad", "#c62828", "#ff6b6b")]
LINES = [("rule", "#d9dde3", "#333a44"), ("axis", "#8a929e", "#77808d"),
         ("mark", "#1d232b", "#e6e9ee"), ("cell", "#9fb5cf", "#46607f"),
         ("block", "#b9c4b4", "#3d4a42")]


def style():
    """The content of a <style> element."""
    def rules(which):
        for name, *colours in FILLS:
            yield f".{name}{{fill:{colours[which]}}}"
        for name, *colours in INKS:
            yield f"text.{name}{{fill:{colours[which]}}}"
        for name, *colours in LINES:
            yield f".{name}{{stroke:{colours[which]}}}"
    fixed = [
        f"text{{font-family:{SANS};font-size:12px}}",
        f"text.mono{{font-family:{MONO};font-size:10.5px}}",
        "text.small{font-size:10px}", "text.name{font-size:13.5px;"
        "font-weight:600}", "text.title{font-size:17px;font-weight:600}",
        "text.end{text-anchor:end}", "text.mid{text-anchor:middle}",
        "line,path.line{fill:none;stroke-width:1}",
        "rect.cell,rect.block{stroke-width:.5}",
        "line.mark{stroke-dasharray:2 3}",
    ]
    return "\n".join(fixed + list(rules(0))
                     + ["@media (prefers-color-scheme: dark) {"]
                     + list(rules(1)) + ["}"])


def number(value):
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


class Drawing:
    """A picture whose `width` and `height` grow with its content."""

    def __init__(self, width, title, description):
        self.width, self.height = width, 0
        self.title, self.description = title, description
        self.parts = []

    def rect(self, x, y, width, height, kind, tip="", **more):
        attributes = "".join(f" {key.replace('_', '-')}={quoteattr(str(v))}"
                             for key, v in more.items())
        shape = (f'<rect class="{kind}" x="{number(x)}" y="{number(y)}" '
                 f'width="{number(width)}" height="{number(height)}"'
                 f"{attributes}")
        self.parts.append(shape + (f"><title>{escape(tip)}</title></rect>"
                                   if tip else "/>"))
        self.height = max(self.height, y + height)

    def text(self, x, y, text, kind="ink", tip=""):
        tip = f"<title>{escape(tip)}</title>" if tip else ""
        self.parts.append(f'<text class="{kind}" x="{number(x)}" '
                          f'y="{number(y)}">{tip}{escape(text)}</text>')
        self.height = max(self.height, y + 4)

    def line(self, x1, y1, x2, y2, kind="rule"):
        self.parts.append(f'<line class="{kind}" x1="{number(x1)}" '
                          f'y1="{number(y1)}" x2="{number(x2)}" '
                          f'y2="{number(y2)}"/>')

    def area(self, points, kind, tip="", **more):
        attributes = "".join(f" {key.replace('_', '-')}={quoteattr(str(v))}"
                             for key, v in more.items())
        path = "L".join(f"{number(x)} {number(y)}" for x, y in points)
        tip = f"<title>{escape(tip)}</title>" if tip else ""
        self.parts.append(f'<path class="{kind}" d="M{path}Z"{attributes}>'
                          f"{tip}</path>")

    def _element(self, box, inside="", attributes=""):
        box = " ".join(number(value) for value in box)
        return (f'<svg xmlns="http://www.w3.org/2000/svg"{attributes} '
                f'viewBox="{box}" role="img">\n'
                f"<title>{escape(self.title)}</title>\n"
                f"<desc>{escape(self.description)}</desc>\n"
                + inside + "\n".join(self.parts) + "\n</svg>\n")

    def inline(self):
        """For a page that has the style already."""
        return self._element((0, 0, self.width, self.height + 12))

    def file(self):
        """A whole file, with a margin."""
        width, height = self.width + 2 * MARGIN, self.height + 2 * MARGIN
        size = f'width="{number(width)}" height="{number(height)}"'
        return self._element(
            (-MARGIN, -MARGIN, width, height),
            f"<style>\n{style()}\n</style>\n"
            f'<rect class="bg" x="{-MARGIN}" y="{-MARGIN}" {size}/>\n',
            " " + size)


def swatches(drawing, x, y, entries, right):
    """A legend of (class, text) pairs in lines up to `right`; returns the y
    below it. Widths are estimates, as there is no renderer."""
    at = x
    for kind, text in entries:
        width = 18 + 6.3 * len(text) + 18
        if at + width > right and at > x:
            at, y = x, y + 18
        if kind == "pointer":
            drawing.text(at, y, "\u25b6", "small ink")
        else:
            drawing.rect(at, y - 9.5, 12, 11, kind)
        drawing.text(at + 18, y, text, "dim")
        at += width
    return y + 18
