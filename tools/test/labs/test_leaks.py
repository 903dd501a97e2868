"""Hand-outs hold no solutions of their lab or of a later one: the tool that
looks for them (tools/grading/leaks.py) on made-up labs, and this tree's
hand-outs. Nothing is built."""

import pytest

from conftest import ROOT
from tools.grading import labs, leaks
from tools.grading.labs import LabError

pytestmark = pytest.mark.plain

C = """\
#include "x.h"

int sum(const int *from, int count)
{
    int all = 0;

    for (int i = 0; i < count; i++)
        all += from[i];
    return all;
}

int half(int n)
{
    return (n + (n < 0)) / 2;
}

void move(void)
{
    first(one, two);
    second(one, two);
}
"""

CUT = """\
@@ {}: sum: add them up
-    int all = 0;
-
-    for (int i = 0; i < count; i++)
-        all += from[i];
-    return all;
+    LAB_MISSING

@@ {}: half: half of it
-    return (n + (n < 0)) / 2;
+    LAB_MISSING

@@ {}: move: in which order
-    first(one, two);
-    second(one, two);
+    second(one, two);
+    first(one, two);
"""

LAB = """\
number = {0}
title = "?"
reading = []
files = ["{1}"]
tasks = ["{0}.1"]
test = [{{ name = "{0}.t", tasks = ["{0}.1"], points = 100, hint = "?" }}]
"""



def renamed(text):
    return text.replace("all", "total").replace("count", "many")


@pytest.fixture
def tree(tmp_path):
    """A tree with two labs: one cuts mm/x.c, a later one tools/y.c."""
    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for number, folder, source, text in (
            (2, "docs/labs/02-two", "mm/x.c", C),
            (3, "docs/labs/03-three", "tools/y.c", renamed(C))):
        write(source, text)
        write(f"{folder}/lab.toml", LAB.format(number, source))
        sheet = CUT.format(source, source, source)
        write(f"{folder}/cuts/{number}.1.cut",
              sheet if number == 2 else renamed(sheet))
    write("docs/fine.md", "for (int i = 0; i < count; i++)\n")
    return tmp_path


def found(tree, text="", name="docs/page.md", may_stay=()):
    (tree / name).write_text(text, encoding="utf-8")
    return list(leaks.leaks(tree, labs.all_labs(tree), dict(may_stay)))


SUM = """\
int all = 0;
for (int i = 0; i < count; i++)
    all += from[i];
"""


def test_hand_outs_that_are_cut_hold_nothing(tree):
    assert found(tree) == []


@pytest.mark.parametrize("text, line, count", [
    (SUM, 1, 10),
    ("One.\n\nTwo:\n" + SUM, 4, 10),
    ("int all=0; for (int i=0; i<count; i++) {}", 1, 3),
    ("-" + SUM.replace("\n", "\n-"), 1, 10),
    ("> " + SUM.replace("\n", "\n> "), 1, 10),
    ("/* " + SUM + " */", 1, 10),
    (SUM.replace(";\n", "; /* here\nand */ // there\n"), 1, 10)])
def test_layout_and_comments_do_not_matter(tree, text, line, count):
    assert found(tree, text) == [
        f"docs/page.md:{line}: holds 2.1's solution (mm/x.c, sum: {count} of "
        "13 windows) in the hand-out of lab 2"]


@pytest.mark.parametrize("name", ["docs/fine.md", "tools/z.py", "x.patch"])
def test_any_text_is_looked_at(tree, name):
    assert len(found(tree, SUM, name)) == 1


def test_a_file_that_is_no_text(tree):
    (tree / "picture.png").write_bytes(b"\x89PNG\xff" + SUM.encode())
    assert found(tree) == []


def test_what_is_shorter_than_a_window_is_found_whole(tree):
    whole = "return (n + (n < 0)) / 2;"
    assert "half: 1 of 1 windows" in found(tree, whole)[0]
    assert found(tree, whole.replace("2", "4")) == []
    assert not leaks.windows(leaks.tokens("n = n / 2;")[0])


def test_what_a_cut_moves_is_no_solution(tree):
    assert found(tree, "first(one, two); second(one, two);") != []
    assert found(tree, "second(one, two);") == []


def test_a_later_labs_solution_is_one_an_earlier_labs_is_none(tree):
    both = SUM + renamed(SUM)
    assert [(line.split()[2], line.split(" lab ")[1])
            for line in found(tree, both)] == [("2.1's", "2"),
                                               ("3.1's", "2, 3")]


def test_idioms_do_not_count(tree):
    for name in "ab":
        assert found(tree, SUM) != []
        (tree / f"docs/{name}.md").write_text(SUM, encoding="utf-8")
    assert found(tree, SUM) == []


def test_what_authors_keep_is_no_hand_outs(tree):
    place = tree / "docs/labs/02-two/wrong"
    place.mkdir()
    assert found(tree, SUM, "docs/labs/02-two/wrong/a.patch") == []
    assert found(tree, SUM, "docs/labs/02-two/INSTRUCTOR.md") == []
    for name in ("tools/grading/leaks.py", leaks.ALLOWED):
        assert labs.FOR_AUTHORS.match(name)


def test_a_hand_out_has_tests_that_labs_use():
    for lab in labs.all_labs(ROOT):
        names = labs.in_hand_out(ROOT, lab, labs.tracked(ROOT))
        assert {n.rsplit("/", 1)[0] for n in names if "/tests/" in n} == {
            f"{lab.folder}/tests", "kernel/fs/tests", "kernel/x86/tests",
            "mm/debug/tests", "mm/others/tests", "mm/tests", "user/tests",
            "user/tests/devtest"}


def test_places_that_may_stay(tree):
    place = ("docs/page.md", "2.1")
    assert found(tree, SUM, may_stay={place: [2]}) == []
    assert len(found(tree, SUM, may_stay={place: [3]})) == 2
    assert found(tree, may_stay={place: [2]}) == [
        "tools/grading/leaks.toml:1: docs/page.md holds nothing of 2.1's "
        "solution"]


def test_a_place_without_a_reason_is_refused(tree):
    (tree / "tools/grading").mkdir()
    (tree / leaks.ALLOWED).write_text(
        'allowed = [{ file = "a", tasks = ["2.1"], labs = [2] }]', "utf-8")
    with pytest.raises(LabError, match="a place has no reason"):
        leaks.allowed(tree)


def test_this_trees_hand_outs_hold_no_solution():
    assert list(leaks.leaks(ROOT, labs.all_labs(ROOT),
                            leaks.allowed(ROOT))) == []
