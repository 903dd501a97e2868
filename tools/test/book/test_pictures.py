"""The pictures of the book: they are those that the present sources draw, and
agree with the kernel's figures."""

import re
from xml.etree import ElementTree

import pytest

from conftest import ROOT, long
from tools.book import layouts, pictures, screen
from tools.test.drawing import SVG, shapes, words

pytestmark = [pytest.mark.plain, pytest.mark.workshop]

FOLDER = ROOT / "docs/pictures"


@pytest.fixture(scope="module")
def facts(workshop):
    return layouts.Facts(workshop)


# ---- all are current ---------------------------------------------------------

def rates(text):
    """A screen without its figures, in any order: two caches with nearly the
    same rate may change places. Which cache comes last on the screen differs
    from run to run, so the slow ones have no name."""
    lines = re.findall(r"<text[^>]*>([^<]+)<", text)
    named = [re.sub(r"^[a-z_0-9]+ +(?=[1-9]\d{,2}\.\d )", "SLOW ", line)
             for line in lines]
    return sorted(re.sub(r"[\d.]+", "N", line).split() for line in named)


@long
def test_the_pictures_are_those_of_the_sources(workshop):
    """`make pictures` makes them anew."""
    made = pictures.drawn(workshop)
    assert sorted(p.name for p in FOLDER.iterdir()) == sorted(made)
    for name, text in made.items():
        there = (FOLDER / name).read_text(encoding="utf-8")
        same = rates if name == "slabtop.svg" else str
        assert same(there) == same(text), f"{name} is old: make pictures"


def test_a_screen_is_compared_without_its_figures():
    line = '<text x="0">{}</text>'.format
    one = line("file  9479 4.0 100.0") + line("task 12 8 99")
    two = line("task  999 8 9.9") + line("file 1 4 3")
    assert rates(one) == rates(two) != rates(two.replace("task", "pipe"))
    slow = line("kmem_slab  578.9    0.0  99.1")
    assert rates(slow) == rates(slow.replace("slab", "bufctl"))
    assert rates(slow) != rates(slow.replace("  99.1", ""))
    fast = line("kmem_slab    5789    0.0  99.1")
    assert rates(fast) != rates(fast.replace("slab", "bufctl"))


def test_each_picture_is_in_the_book_and_small():
    pages = "".join(p.read_text("utf-8") for p in (ROOT / "docs").glob("*.md"))
    for path in FOLDER.iterdir():
        assert f"](pictures/{path.name})" in pages, path
        assert path.stat().st_size < pictures.LARGEST


# ---- layouts -----------------------------------------------------------------

def test_a_small_slab_is_to_scale(facts):
    cache, slab = facts.caches["small"], facts.slabs["small"][-1]
    text = layouts.layouts(facts)["small"].file()
    scale = layouts.WIDTH / slab["bytes"]
    cells = [e for kind in ("used", "free") for e in shapes(text, kind)
             if float(e.get("width")) == pytest.approx(
                 cache["size"] * scale - 0.6, abs=0.02)]
    assert [float(e.get("x")) / scale for e in cells] == pytest.approx(
        [slab["colour"] + i * cache["chunk"] for i in range(len(cells))],
        abs=0.2)
    assert len(cells) == cache["slab_objects"]
    assert f"colour: {slab['colour']} bytes" in words(text)
    # colour, objects, unused, and the slab's data fill the page
    data = slab["base"] + slab["bytes"] - slab["slab"]
    unused = int(re.search(r"unused: (\d+)", words(text))[1])
    assert f"kmem_slab: {data}" in words(text)
    assert slab["colour"] + cache["slab_objects"] * cache["chunk"] + unused \
        + data == slab["bytes"]


def test_colours_are_those_of_the_slabs(facts):
    text = layouts.layouts(facts)["colours"].file()
    assert len(facts.slabs["small"]) == 4
    assert re.findall(r"\+(\d+)", words(text)) == ["0", "8", "16", "24"]


def test_each_object_of_a_large_slab_has_its_bufctl(facts):
    slab = facts.slabs["large"][0]
    text = layouts.layouts(facts)["large"].file()
    key = 1
    assert len(shapes(text, "used")) == slab["used"]
    assert len(shapes(text, "header")) - key == slab["used"]
    free = slab["objects"] - slab["used"]
    assert free > 1 and len(shapes(text, "free")) - key == 2 * free
    assert f"{facts.caches['large']['hash_entries']} buckets" in words(text)


def test_redzones_are_where_their_bytes_are(facts):
    cache = facts.caches["guarded"]
    text = layouts.layouts(facts)["redzones"].file()
    zones = [tuple(map(int, e.get("data-zone").split()))
             for e in shapes(text, "bad") if e.get("data-zone")]
    objects = [int(e.get("data-object")) for e in shapes(text, "used")
               if e.get("data-object")]
    assert len(zones) == 3 and len(objects) == 2
    for at, before, after in zip(objects, zones, zones[1:]):
        assert before[1] == at and after[0] == at + cache["size"]
    assert layouts.runs(b"\xbb\xbb\0\xbb") == [[0, 2], [3, 4]]


def test_the_life_of_an_object_has_its_counts(facts):
    cache = facts.caches["foo"]
    text = layouts.life(facts).file()
    assert [e.get("data-state") for e in
            ElementTree.fromstring(text).iter(SVG + "rect")
            if e.get("data-state")] == [
                "a page of buddy", "free", "allocated", "free",
                "a page of buddy"]
    assert cache["ctors"] == cache["dtors"] > cache["allocs"] > 0
    assert words(text).count(f"{cache['ctors']} times") == 2
    assert words(text).count(f"{cache['allocs']} times") == 2


# ---- the screen --------------------------------------------------------------

def test_a_screen_keeps_its_characters_and_colours():
    cells = bytearray(b" \x07" * 2000)
    cells[160:166] = b"<\x70b\x70!\x1e"
    text = screen.draw(bytes(cells), "x & y")
    root = ElementTree.fromstring(text)
    seen = [(e.text, e.get("x"), e.get("fill"))
            for e in root.iter(SVG + "text")]
    assert seen == [("<b", "0", screen.PALETTE[0]),
                    ("!", "16", screen.PALETTE[14])]
    backs = [(e.get("x"), e.get("width"), e.get("fill"))
             for e in root.iter(SVG + "rect") if e.get("fill")]
    assert backs == [("0", "16", screen.PALETTE[7]),
                     ("16", "8", screen.PALETTE[1])]
