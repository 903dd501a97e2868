"""The slides of the labs: a deck for each, of a lecture's length; each slide
fits a screen and has the speaker's notes, which students do not see. And the
demonstration of a first lecture."""

import re

import pytest

from conftest import ROOT
from tools.book import book, hooks
from tools.grading import labs
from tools.test import shells

pytestmark = pytest.mark.plain

WIDE, HIGH, LONG = 80, 18, 26   # columns and lines of a listing; of a slide

each_lab = pytest.mark.parametrize("lab", labs.all_labs(ROOT),
                                   ids=lambda lab: lab.folder.name[:2])


def deck(lab):
    return (ROOT / lab.folder / labs.SLIDES).read_text(encoding="utf-8")


def slides(text):
    """The slides of a page: a heading of the first two levels begins each."""
    return re.split(r"^(?=##? )", text, flags=re.M)[1:]


@each_lab
def test_a_deck_is_a_lecture(lab):
    text = deck(lab)
    assert 8 <= len(slides(text)) <= 14
    for number in re.findall(r"\d(?:\.\d)+",
                             " ".join(r for r in lab.reading if "paper" in r)):
        assert number in slides(text)[0]
    shown = labs.without_notes(labs.SLIDES, text)
    assert shown.count("**Question.**") >= 5
    assert len(shells.drawings(shown)) >= 3
    assert "make grade" in slides(text)[-1]


@each_lab
def test_each_slide_has_notes_and_fits(lab):
    for slide in slides(deck(lab)):
        title = slide.split("\n")[0]
        assert re.search(r"^> ", slide, re.M), f"{title}: no notes"
        shown = labs.without_notes(labs.SLIDES, slide).strip().split("\n")
        listed = [line for line in shown if line.startswith("    ")]
        assert max(map(len, listed), default=0) <= WIDE + 4, title
        assert len(listed) <= HIGH and len(shown) <= LONG, title
        assert not re.search(r"^(```|#{3})", slide, re.M), title


def test_students_have_no_notes():
    text = "# Lab 2: x\n\nsaid\n\n> not said\n> at all\n\n    slate> x\n"
    assert labs.without_notes("a/slides.md", text) == \
        "# Lab 2: x\n\nsaid\n\n\n    slate> x\n"
    assert labs.without_notes("a/README.md", text) == text
    lab = labs.load(ROOT, 2)
    there = labs.page_in_hand_out(lab, f"{lab.folder}/slides.md", deck(lab))
    assert there.count("\n## ") >= 8 and "\n>" not in there


def test_each_slide_is_a_page_in_print():
    style = (ROOT / "tools/book/theme/slides.css").read_text(encoding="utf-8")
    printed = style[style.index("@media print"):]
    assert re.search(r"\.slides section \{[^}]*break-after: page", printed)
    assert re.search(r"^\.slides blockquote \{ display: none; \}", style, re.M)


def test_a_heading_begins_a_slide():
    one = '<h1 id="a">A</h1>\n<p>x</p>\n'
    two = '<h2 id="b">B</h2>\n<h3 id="c">C</h3>\n'
    assert hooks.with_slides(one + two) == (
        f"<section>\n{one}</section>\n<section>\n{two}</section>\n")


# ---- the first lecture -------------------------------------------------------

DEMONSTRATION = book.DOCS / "demonstration.md"


def test_each_command_of_the_demonstration_is_compared():
    """test_transcripts.py types the listings and compares their answers."""
    text = DEMONSTRATION.read_text(encoding="utf-8")
    steps = [s for b in shells.blocks(DEMONSTRATION) for s in b.steps]
    assert len(steps) > 15
    assert len(steps) == len(re.findall(r"^    (?:slate> |\$ |\^\\$)", text,
                                        re.M))
    assert {s.typed for s in steps if not any(s.lines)} == {
        "sh", "continue", "exit"}


def test_the_demonstration_has_minutes():
    text = DEMONSTRATION.read_text(encoding="utf-8")
    marks = [int(m) for m in re.findall(r"^## 0:(\d\d) ", text, re.M)]
    assert marks == sorted(marks) and marks[0] == 0 and len(marks) > 6
    assert marks[-1] == 19
    for part in re.split(r"^## 0:", text, flags=re.M)[1:]:
        assert "**Say.**" in part
