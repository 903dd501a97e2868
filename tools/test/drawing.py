"""What an SVG drawing has, for tests of pictures."""

from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def shapes(text, kind=None):
    """The rectangles and areas of a drawing, those of one class."""
    root = ElementTree.fromstring(text)
    return [e for e in root.iter() if e.tag in (SVG + "rect", SVG + "path")
            and (kind is None or kind in e.get("class", "").split())]


def words(text):
    """The text of a drawing, without the tips under the pointer."""
    return " ".join((e.text or "") + "".join(tip.tail or "" for tip in e)
                    for e in ElementTree.fromstring(text).iter(SVG + "text"))
