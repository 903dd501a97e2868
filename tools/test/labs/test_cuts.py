"""Cuts of labs: the text that `make lab` puts in the place of solutions, and
the cuts that it refuses. Nothing is built; test_labs.py tests the labs."""

import os
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT
from tools.grading import cuts, functions, labs

pytestmark = pytest.mark.plain

PAGE = "docs/labs/02-buddies/README.md"

C = """\
#include "mm/buddy.h"
#ifdef X
#include "mm/x.h"
#endif

static int x;

void split(struct page *p)
{
    one(p);
}

static struct page *join(struct page *p,
                         int k)
{
    joined(p, k);
    joined(p, 1);
}

void merge(struct page *p)
{
    one(p);
    two(p);
}

void twice(void)
{
    again();

    again();
}
"""

SPLIT = """\
@@ mm/x.c: split: put the right halves on their lists
-    one(p);
+    LAB_MISSING

@@ mm/x.c: join: and join them
-    joined(p, k);
+    (void)p;
+    (void)k;
+    LAB_MISSING
     joined(p, 1);
"""

MERGE = """\
@@ mm/x.c: file scope: where they are
 static int x;
+static int y; /* Task 2.2: another */

@@ mm/x.c: merge: find the buddy
-    two(p);
+    if (p) {
+        /* here */
+        LAB_MISSING
+    }

@@ mm/x.c: twice: the second time
     again();

-    again();
+    once();
"""

FIRST = f"""\
#include "mm/buddy.h"
#include "tools/workshop/labs/missing.h"
#ifdef X
#include "mm/x.h"
#endif

static int x;

void split(struct page *p)
{{
    /* Task 2.1: put the right halves on their lists. See
     * {PAGE}. */
    lab_missing("2.1", "{PAGE}");
}}

static struct page *join(struct page *p,
                         int k)
{{
    (void)p;
    (void)k;
    /* Task 2.1: and join them. See {PAGE}. */
    lab_missing("2.1", "{PAGE}");
    joined(p, 1);
}}
"""

SECOND = f"""\
void merge(struct page *p)
{{
    one(p);
    if (p) {{
        /* here */
        /* Task 2.2: find the buddy. See {PAGE}. */
        lab_missing("2.2", "{PAGE}");
    }}
}}

void twice(void)
{{
    again();

    once();
}}
"""

ALL_CUT = FIRST.replace("int x;\n", "int x;\nstatic int y; /* Task 2.2: "
                        "another */\n") + "\n" + SECOND


def cut(text, *sheets, path="mm/x.c"):
    """`text` with the cuts of (task, text of a file of cuts)."""
    there = [c for task, sheet in sheets
             for c in cuts.read(f"cuts/{task}.cut", sheet)]
    assert {c.path for c in there} == {path}
    return cuts.apply(text, there, PAGE)


def test_solutions_are_cut():
    assert cut(C, ("2.1", SPLIT), ("2.2", MERGE)) == ALL_CUT


def test_each_task_alone():
    second = C[C.index("void merge"):]
    assert cut(C, ("2.1", SPLIT)) == FIRST + "\n" + second
    assert cut(C, ("2.2", MERGE)).endswith(SECOND)
    assert 'lab_missing("2.1"' not in cut(C, ("2.2", MERGE))
    assert cuts.apply(C, [], PAGE) == C


def test_header_is_included_once():
    text = C.replace('"mm/buddy.h"', '"tools/workshop/labs/missing.h"')
    assert cut(text, ("2.1", SPLIT)).count("tools/workshop/labs/missing.h") == 1
    bug = MERGE.replace("        LAB_MISSING", "        ;")
    assert "tools/workshop/labs/missing.h" not in cut(C, ("2.2", bug))


def test_a_whole_function():
    sheet = ("@@ mm/x.c: split: another\n-void split(struct page *p)\n-{\n"
             "-    one(p);\n-}\n+void split(struct page *);\n")
    assert cut(C, ("2.1", sheet)) == C.replace(
        "void split(struct page *p)\n{\n    one(p);\n}\n",
        "void split(struct page *);\n")


def test_a_body_without_its_lines():
    """It may be anything, also one in which a line occurs twice."""
    sheet = "@@ mm/x.c: twice: t\n+    once();\n+\n+    LAB_MISSING\n"
    assert cut(C, ("2.1", sheet)).endswith(f"""
void twice(void)
{{
    once();

    /* Task 2.1: t. See {PAGE}. */
    lab_missing("2.1", "{PAGE}");
}}
""")


@pytest.mark.parametrize("after", ["", "#endif\n", "\nint y;\n"])
def test_a_function_goes_with_its_comment(after):
    text = "int x;\n\n/* Returns\n * one. */\nint f(void)\n{\n    g();\n}\n"
    sheet = "@@ mm/x.c: f: t\n"
    assert cut(text + after, ("2.1", sheet)).split() == \
        ("int x;\n" + after).split()


def test_a_body_and_what_is_in_it():
    """Two tasks may not cut both."""
    with pytest.raises(cuts.CutError, match="the same lines"):
        cut(C, ("2.1", HEAD + TO), ("2.2", HEAD + "-    two(p);\n"))


def test_neighbours_and_their_context():
    """Cuts of two tasks may touch, and be each other's context."""
    first = ("@@ mm/x.c: join: a\n-    joined(p, k);\n+    a();\n"
             "     joined(p, 1);\n")
    second = ("@@ mm/x.c: join: b\n     joined(p, k);\n-    joined(p, 1);\n"
              "+    b();\n")
    assert "{\n    a();\n    b();\n}" in cut(C, ("2.1", first), ("2.2", second))


def test_assembly():
    text = "    mov eax, 1\n    mov ebx, 2\n"
    sheet = ("@@ boot/x.asm: file scope: load it\n-    mov eax, 1\n"
             "+    ; your code\n+hlt\n")
    assert cut(text, ("1.1", sheet), path="boot/x.asm") == \
        "    ; your code\nhlt\n    mov ebx, 2\n"


def test_python():
    text = "def f():\n    return 1\n"
    sheet = ("@@ tools/x.py: file scope: draw it\n-    return 1\n"
             "+    LAB_MISSING\n")
    names = {}
    exec(cut(text, ("4.1", sheet),  # pylint: disable=W0122
             path="tools/x.py"), names)
    with pytest.raises(NotImplementedError, match="task 4.1"):
        names["f"]()


HEAD = "@@ mm/x.c: merge: t\n"
TO = "+    LAB_MISSING\n"

MISFITS = [
    ("solution changed", HEAD + "-    one(p);\n-    three(p);\n" + TO, 1,
     r'replaces "three\(p\);", but line 23 is "two\(p\);"'),
    ("solution gone", HEAD + "-    four(p);\n" + TO, 1,
     r'replaces "four\(p\);", which is not there'),
    ("in another function", HEAD + "-    joined(p, k);\n" + TO, 1,
     "which is not there"),
    ("in no function", "@@ mm/x.c: file scope: t\n-    one(p);\n" + TO, 1,
     "which is not there"),
    ("no such function", "@@ mm/x.c: mergesort: t\n-    one(p);\n" + TO, 1,
     "no such function"),
    ("no such body", "@@ mm/x.c: mergesort: t\n" + TO, 1, "no such function"),
    ("nothing to go", "@@ mm/x.c: mergesort: t\n", 1, "no such function"),
    ("twice", "@@ mm/x.c: twice: t\n-    again();\n" + TO, 1,
     "more than once, at lines 28, 30: add context"),
    ("past the function", HEAD + "-    two(p);\n-}\n-\n" + TO, 1,
     'but line 25 is ""'),
    ("the second of two", HEAD + "-    one(p);\n" + TO + "\n" + HEAD +
     "-    too(p);\n" + TO, 5, "not there"),
    ("both the same", HEAD + "-    one(p);\n" + TO + HEAD +
     "-    one(p);\n-    two(p);\n" + TO, 4, "the same lines"),
]


@pytest.mark.parametrize("sheet, where, why", [m[1:] for m in MISFITS],
                         ids=[m[0] for m in MISFITS])
def test_misfits_are_refused_with_their_place(sheet, where, why):
    with pytest.raises(cuts.CutError, match=rf"^2\.1\.cut:{where}: mm/x\.c, "
                       rf"[\w ]+: .*{why}$"):
        cuts.apply(C, cuts.read("2.1.cut", sheet), PAGE)


def test_a_declaration_is_no_function():
    text = "void f(void);\n\nvoid g(void)\n{\n    f(1);\n}\n"
    sheet = "@@ mm/x.c: f: t\n-    f(1);\n+    f(2);\n"
    with pytest.raises(cuts.CutError, match="no such function"):
        cut(text, ("2.1", sheet))


REFUSED = [
    ("empty", "", 1, "there is no cut"),
    ("no head", "-    one(p);\n", 1, "neither the head"),
    ("no sign", HEAD + "one(p);\n", 2, "neither the head"),
    ("no title", "@@ mm/x.c: merge\n", 1, "begins with @@"),
    ("no function", "@@ mm/x.c: t\n", 1, "begins with @@"),
    ("nothing cut", HEAD + "     one(p);\n", 1, "nothing is cut"),
    ("the same", HEAD + "-    one(p);\n+    one(p);\n", 1, "nothing is cut"),
    ("no place", "@@ mm/x.c: file scope: t\n" + TO, 1, "no line says where"),
    ("no lines", "@@ mm/x.c: file scope: t\n", 1, "nothing is cut"),
    ("not in C", "@@ x.asm: f: t\n+    ret\n", 1, "in a file that is not C"),
    ("no call in it", "@@ x.asm: file scope: t\n-    ret\n" + TO, 1,
     "LAB_MISSING is for C and Python"),
]


@pytest.mark.parametrize("sheet, where, why", [r[1:] for r in REFUSED],
                         ids=[r[0] for r in REFUSED])
def test_refused_with_its_place(sheet, where, why):
    with pytest.raises(cuts.CutError, match=rf"^2\.1\.cut:{where}: .*{why}"):
        cuts.read("2.1.cut", sheet)


def test_refused_without_an_include():
    sheet = "@@ a.h: f: t\n-    x();\n" + TO
    with pytest.raises(cuts.CutError, match="a.h, f: no #include"):
        cut("void f(void)\n{\n    x();\n}\n", ("2.1", sheet), path="a.h")


# ---- lab.toml ---------------------------------------------------------------

LAB_TOML = """\
number = 2
title = "Buddies"
reading = ["paper 3.1"]
files = ["mm/x.c"]
tasks = ["2.1", "2.2"]

[[test]]
name = "2.split"
tasks = ["2.1"]
points = 60
hint = "which half?"

[[test]]
name = "2.merge"
tasks = ["2.1", "2.2"]
points = 40
hint = "which buddy?"
"""

OTHER_TOML = """\
number = 3
title = "A slab"
reading = []
files = ["mm/x.c"]
tasks = ["3.1"]
test = [{ name = "3.t", tasks = ["3.1"], points = 100, hint = "?" }]
"""

QUESTION = """\
[[question]]
id = "{}_half"
each = ["left"]
tasks = ["2.1", "2.2"]
form = "word"
words = ["{}"]
points = 1
text = "which {}?"
hint = "?"
"""


@pytest.fixture
def tree(tmp_path):
    """A tree with two labs and the tools, and nothing that builds."""
    for name, text in {
            "mm/x.c": C, "README.md": "Slate\n",
            "docs/labs/02-buddies/lab.toml": LAB_TOML,
            "docs/labs/02-buddies/README.md": "Do it.\n",
            "docs/labs/02-buddies/INSTRUCTOR.md": "Give it.\n",
            "docs/labs/02-buddies/wrong/a.patch": "wrong\n",
            "docs/labs/02-buddies/cuts/2.1.cut": SPLIT,
            "docs/labs/02-buddies/cuts/2.2.cut": MERGE,
            "docs/labs/02-buddies/answers.py": "def check():\n    pass\n",
            "docs/labs/02-buddies/survivors.txt": "mm/x.c f\n",
            "docs/labs/02-buddies/size.py": "print(7)\n",
            "docs/labs/03-slab/lab.toml": OTHER_TOML,
            "docs/labs/03-slab/README.md": "Later.\n",
            "docs/labs/02-buddies/tests/split.c": "x\n",
            "docs/labs/03-slab/tests/t.c": "x\n", "build/x.o": "x\n"}.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "tools", tmp_path / "tree/tools",
                    ignore=shutil.ignore_patterns("__pycache__", "test",
                                                  "workshop"))
    return tmp_path / "tree"


@pytest.mark.parametrize("old, new, why", [
    ("number = 2", "number = 4", "the folder is 02-buddies"),
    ("points = 60", "points = 59", "add up to 99, not 100"),
    ("points = 60", 'points = "60"', "points must be a number"),
    ("points = 60", "points = 60\npiont = 1", "unknown key piont"),
    ('hint = "which half?"', "", "test 1: hint is missing"),
    ('tasks = ["2.1"]', 'tasks = ["2.9"]', "the unknown task 2.9"),
    ('tasks = ["2.1"]', "tasks = []", "doing nothing would earn it"),
    ('"2.merge"', '"2.split"', "2.split is there twice"),
    ('name = "2.split"', 'name = "3.split"', "test 3.split: a name is 2."),
    ('["mm/x.c"]', '["mm/y.c"]', "mm/y.c is not a file"),
    ('["mm/x.c"]', '["../mm/x.c"]', "not a path from"),
    ('["mm/x.c"]', '["mm/x.h"]', "mm/x.h is a header, which tests would"),
    ("reading =", 'offers = ["mm/w.c"]\nreading =', "offers: mm/w.c is not a"),
    ("points = 60", "points = 60\nhidden = 1", "hidden must be true or false"),
    ('["mm/x.c"]', "[]", "files is empty"),
    ('["mm/x.c"]', '["README.md"]',
     r"/cuts/2\.1\.cut:1: mm/x\.c is not among the files"),
    ('"2.1", "2.2"]', '"2.1", "2.3"]', "2.merge names the unknown task 2.2"),
    ('"2.1", "2.2"]', '"2.1", "2.1"]', "2.1 is there twice"),
    ('"2.1", "2.2"]', '"2.1", "3.2"]', "task 3.2: an id is 2., and a"),
    ("[[test]]", 'open = { files = ["a.c"], points = 1 }\n[[test]]',
     "open: a.c is no C file among those that are handed in"),
    ("[[test]]", "open = { files = [] }\n[[test]]", "open: points is missing"),
    ("[[test]]", QUESTION + '[[test]]', "question 1: each has 1 names for 2 t"),
    ("[[test]]", "[test]", "(?i)invalid|twice|cannot|overwrite"),
])
def test_lab_toml_is_checked(tree, old, new, why):
    path = tree / "docs/labs/02-buddies/lab.toml"
    assert labs.load(tree, 2).number == 2
    path.write_text(LAB_TOML.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(labs.LabError, match=why) as caught:
        labs.handed_out(tree, labs.load(tree, 2))
    assert "\n" not in str(caught.value)


def test_a_question_for_each_of_several_names(tree):
    """Those of one task are together; only texts have the name."""
    folder = tree / "docs/labs/02-buddies"
    (folder / "answers.toml").write_text("", encoding="utf-8")
    text = LAB_TOML.replace("points = 40", "points = 36").replace(
        '"mm/x.c"', '"mm/x.c", "docs/labs/02-buddies/answers.toml"')
    sheet = QUESTION.replace('["left"]', '["left", "right"]')
    (folder / "lab.toml").write_text(
        text + sheet + sheet.replace("_half", "_end"), encoding="utf-8")
    assert [(q.id, q.tasks, q.text, q.words)
            for q in labs.load(tree, 2).questions] == [
        (f"{name}_{part}", [task], f"which {name}?", ["{}"])
        for name, task in (("left", "2.1"), ("right", "2.2"))
        for part in ("half", "end")]


@pytest.mark.parametrize("name, text, why", [
    ("2.7.cut", SPLIT, r"cuts/2\.7\.cut: .* no task 2\.7$"),
    ("2.1.txt", SPLIT, r"cuts/2\.1\.txt: .* in TASK\.cut"),
    ("2.1.cut", "x", r"cuts/2\.1\.cut:1: neither the head"),
    ("2.1.cut", SPLIT.replace("x.c", "y.c"), "mm/y.c is not among the files"),
    ("2.1.cut", SPLIT.replace("one", "won"), r'"won\(p\);", which is not'),
])
def test_bad_cuts_write_nothing(tree, name, text, why):
    (tree / "docs/labs/02-buddies/cuts" / name).write_text(text, "utf-8")
    with pytest.raises(labs.LabError, match=why) as caught:
        labs.handed_out(tree, labs.load(tree, 2))
    count, problems = labs.check_cuts(tree)
    assert problems == [str(caught.value)] and count in (0, 5)
    done = lab(tree, "--lab", "2", "--out", "new")
    assert done.returncode == 2 and done.stderr == f"lab: {caught.value}\n"
    assert not (tree / "new").exists()


def test_labs_that_share_a_file_are_all_open(tree):
    """Each task once, each lab with its own page."""
    folder = tree / "docs/labs/03-slab"
    (folder / "cuts").mkdir()
    (folder / "cuts/3.1.cut").write_text(
        "@@ mm/x.c: join: one\n-    joined(p, 1);\n+    LAB_MISSING\n", "utf-8")
    both = labs.all_open(tree)
    assert list(both) == ["mm/x.c"]
    for task in "2.1", "2.2", "3.1":
        assert f'lab_missing("{task}", "docs/labs/0{task[0]}-' in both["mm/x.c"]
        assert f"Task {task}: " in both["mm/x.c"]
    for solution in "joined(p, k)", "two(p)", "joined(p, 1)":
        assert solution not in both["mm/x.c"]
    assert both["mm/x.c"].count(f'#include "{cuts.HEADER}"') == 1


def test_check_cuts(tree):
    assert labs.check_cuts(tree) == (5, [])


def test_cuts_of_two_labs_that_do_not_fit_each_other(tree):
    folder = tree / "docs/labs/03-slab/cuts"
    folder.mkdir()
    (folder / "3.1.cut").write_text(
        "@@ mm/x.c: join: both\n-    joined(p, k);\n-    joined(p, 1);\n"
        "+    LAB_MISSING\n", "utf-8")
    count, (problem,) = labs.check_cuts(tree)
    assert count == 6
    assert problem.startswith("docs/labs/03-slab/cuts/3.1.cut:1: ")


def test_wrong_solutions_that_do_not_apply(tree):
    """The context differs, as after a change of the source."""
    patch = ("What: wrong.\nLoses: 2.split\n\n--- a/mm/x.c\n+++ b/mm/x.c\n"
             "@@ -9,3 +9,3 @@\n {\n-    one(p);\n+    two(p);\n }\n")
    path = tree / "docs/labs/02-buddies/wrong/a.patch"
    path.write_text(patch, encoding="utf-8")
    assert labs.check_patches(tree) == (1, [])
    path.write_text(patch.replace("one", "won"), encoding="utf-8")
    count, (problem,) = labs.check_patches(tree)
    assert count == 1
    assert problem.startswith("docs/labs/02-buddies/wrong/a.patch:1: does not")


# ---- the command -----------------------------------------------------------

def lab(tree, *options, python=()):
    return subprocess.run([sys.executable, *python, "-m", "tools.grading.lab",
                           *options],
                          cwd=tree, capture_output=True, encoding="utf-8",
                          check=False)


def files(folder):
    return {os.path.relpath(os.path.join(at, name), folder)
            for at, _, names in os.walk(folder) for name in names
            if not name.endswith(".pyc")}


def test_contents_of_a_hand_out(tree, tmp_path):
    done = lab(tree, "--lab", "2", "--out", tmp_path / "out", "--seed", "7")
    assert done.returncode == 0, done.stderr
    out, L = tmp_path / "out", "docs/labs/02-buddies/"
    here = {n for n in files(out) if not n.startswith("tools/")}
    assert here == {
        ".headers", ".lab", "START-HERE.md", "README.md", "mm/x.c",
        L + "lab.toml", L + "README.md", L + "size.py", L + "tests/split.c"}
    assert (out / "mm/x.c").read_text(encoding="utf-8") == ALL_CUT
    assert "seed = 7\n" in (out / ".lab").read_text(encoding="utf-8")
    start = (out / "START-HERE.md").read_text(encoding="utf-8")
    assert "make update" in start  # a later hand-out may go into a repository
    assert L + "README.md" in start
    assert 'grep -n "Task 2\\." mm/x.c\n' in start
    assert os.access(out / "tools/setup", os.X_OK)


# A second file for lab 3, which it cuts; `make objects` builds it for the
# kernel and for programs.
OTHERS_CUT = """\
@@ mm/z.c: split: as in lab 2
-    one(p);
+    LAB_MISSING

@@ tools/z.c: split: as in lab 2
-    one(p);
+    LAB_MISSING
"""
OBJECTS = """\
objects:
\tmkdir -p build/mm build/user/mm
\techo $(SOURCES) >build/mm/z.o
\techo of programs >build/user/mm/z.o
"""


@pytest.fixture
def others(tree):
    """The tree, with files of lab 3 that lab 2 does not hand in."""
    for name, text in {
            "mm/z.c": C, "tools/z.c": C,
            "docs/labs/03-slab/cuts/3.1.cut": OTHERS_CUT,
            "docs/labs/03-slab/lab.toml": OTHER_TOML.replace(
                '["mm/x.c"]', '["mm/x.c", "mm/z.c", "tools/z.c"]'),
            "Makefile": OBJECTS}.items():
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text(text, encoding="utf-8")
    return tree


def test_others_parts_are_objects(others, tmp_path):
    """Of what another lab cuts, a hand-out has what its kernel runs."""
    done = lab(others, "--lab", "2", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    here = files(tmp_path / "out")
    assert {n for n in here if n.endswith((".o", "z.c"))} == {
        "prebuilt/mm/z.o", "prebuilt/user/mm/z.o"}
    assert (tmp_path / "out/prebuilt/mm/z.o").read_bytes() == b"mm/z.c\n"
    lab(others, "--lab", "3", "--out", tmp_path / "later")
    here = files(tmp_path / "later")
    assert {n for n in here if n.endswith((".o", "z.c"))} == {
        "mm/z.c", "tools/z.c"}


def test_a_solution_of_what_is_a_skeleton_in_the_tree(others, tmp_path):
    """The hand-out of its lab is cut from it; others have the skeleton."""
    (others / "mm/z.c").write_text("int skeleton;\n", encoding="utf-8")
    copy = others / "docs/labs/03-slab/solution/mm/z.c"
    copy.parent.mkdir(parents=True)
    copy.write_text(C, encoding="utf-8")
    assert labs.check_cuts(others)[1] == []
    assert labs.solved(others, labs.load(others, 3))["mm/z.c"] == C
    assert "mm/z.c" not in labs.all_open(others)
    lab(others, "--lab", "2", "--out", tmp_path / "out")
    text = (tmp_path / "out/mm/z.c").read_text(encoding="utf-8")
    assert text == "int skeleton;\n"
    lab(others, "--lab", "3", "--out", tmp_path / "later")
    text = (tmp_path / "later/mm/z.c").read_text(encoding="utf-8")
    assert "lab_missing" in text and "skeleton" not in text
    assert not any("solution" in name for name in files(tmp_path / "later"))


def test_others_parts_that_do_not_build(others, tmp_path):
    (others / "Makefile").write_text("objects:\n\tfalse\n", encoding="utf-8")
    done = lab(others, "--lab", "2", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr.startswith(f"lab: {others} does not build:\n")


def later(tree, sheet):
    """Makes lab 3 cut what lab 2 hands in; returns lab 2."""
    (tree / "docs/labs/03-slab/cuts").mkdir()
    (tree / "docs/labs/03-slab/cuts/3.1.cut").write_text(sheet, "utf-8")
    return labs.load(tree, 2)


def test_a_later_labs_task_without_which_the_kernel_runs(tree):
    """In a file of both labs, it is cut in the first one's as well."""
    lab2 = later(tree, "@@ mm/x.c: merge: t\n-    one(p);\n+    two(p);\n")
    assert labs.solved(tree, lab2) == {"mm/x.c": C.replace(
        "    one(p);\n    two(p);\n", "    two(p);\n    two(p);\n")}
    assert labs.later_parts(tree, lab2) == {}


LATER = "@@ mm/x.c: merge: t\n-    one(p);\n+    LAB_MISSING\n"
BUILT = """\
objects:
\tmkdir -p $(BUILD)/mm $(BUILD)/user/mm
\tcp $(BUILD)/$(SOURCES) $(BUILD)/mm/x.o
\techo of programs >$(BUILD)/user/mm/x.o
"""


def test_a_later_labs_task_that_the_kernel_runs(tree, tmp_path):
    """Its function is an object."""
    (tree / "docs/labs/02-buddies/cuts/2.2.cut").unlink()
    lab2 = later(tree, LATER)
    (tree / "Makefile").write_text(BUILT, encoding="utf-8")
    there = "void merge(struct page *p);\n"
    whole = "void merge(struct page *p)\n{\n    one(p);\n    two(p);\n}\n"
    assert labs.solved(tree, lab2) == {"mm/x.c": C.replace(whole, there)}
    assert "two(p)" not in labs.handed_out(tree, lab2)["mm/x.c"]
    done = lab(tree, "--lab", "2", "--out", tmp_path / "out", "--tasks", "2.1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/mm/x.c").read_text("utf-8") == \
        C.replace(whole, there)
    prebuilt = tmp_path / "out/prebuilt"
    assert files(prebuilt) == {"mm/x_later.o", "user/mm/x_later.o"}
    assert (prebuilt / "mm/x_later.o").read_text("utf-8") == \
        labs.later_parts(tree, lab2)["mm/x.c"]


def test_given_objects_have_what_is_asked_for(tree, tmp_path):
    """Solutions, but where the directory `given` has something else."""
    path = tree / "docs/labs/02-buddies/lab.toml"
    path.write_text("given = true\n" + LAB_TOML, encoding="utf-8")
    (tree / "docs/labs/02-buddies/given").mkdir()
    sheet = tree / "docs/labs/02-buddies/given/2.2.cut"
    sheet.write_text("@@ mm/x.c: merge: no\n-    two(p);\n+    three(p);\n",
                     encoding="utf-8")
    (tree / "Makefile").write_text(BUILT, encoding="utf-8")
    done = lab(tree, "--lab", "2", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "out/prebuilt") == {"mm/x_given.o",
                                                "user/mm/x_given.o"}
    text = (tmp_path / "out/prebuilt/mm/x_given.o").read_text("utf-8")
    found = functions.functions(text)
    assert [f.name for f in found] == ["split", "join", "merge", "twice"]
    assert "    three(p);\n" in text and "two(p)" not in text
    assert text.count("__attribute__((weak))") == 4
    assert not {n for n in files(tmp_path / "out") if "/given/" in n}
    sheet.write_text("@@ mm/x.c: merge: no\n-    one(q);\n+    three(p);\n",
                     encoding="utf-8")
    assert "given/2.2.cut:1: mm/x.c, merge" in labs.check_cuts(tree)[1][0]


@pytest.mark.parametrize("task, name", [
    ("2.2", "split"),   # static, and merge() calls it
    ("2.1", "merge")])  # both labs cut it
def test_an_object_never_has_the_labs_own_solution(tree, task, name):
    (tree / "mm/x.c").write_text(
        C.replace("void split", "static void split").replace("two", "split"),
        encoding="utf-8")
    (tree / f"docs/labs/02-buddies/cuts/{task}.cut").unlink()
    with pytest.raises(labs.LabError) as caught:
        labs.later_parts(tree, later(tree, LATER))
    assert str(caught.value).endswith(
        f"mm/x.c: {name} would be in the object of what later labs ask for")


def test_pages_lack_what_a_lab_asks(tree, tmp_path):
    page = "One.\n{}Two.\n"
    asked = "<!-- asked in lab 2 -->\n| 7 |\n<!-- /asked -->\n"
    (tree / "docs/page.md").write_text(page.format(asked), encoding="utf-8")
    for number, text in ((2, "(Lab 2 asks for what is here in the book.)\n"),
                         (3, asked)):
        out = tmp_path / str(number)
        lab(tree, "--lab", str(number), "--out", out)
        assert (out / "docs/page.md").read_text("utf-8") == page.format(text)


def test_a_hand_out_for_each_student(tree, tmp_path):
    roster = tmp_path / "roster.csv"
    roster.write_text("name,seed\nalice,3\nbob,44\n", "utf-8")
    done = lab(tree, "--lab", "2", "--out", tmp_path / "out", "--roster",
               roster)
    assert done.returncode == 0, done.stderr
    for name, seed in ("alice", 3), ("bob", 44):
        out = tmp_path / "out" / name
        assert f"\nseed = {seed}\n" in (out / ".lab").read_text("utf-8")
        assert (out / "mm/x.c").read_text("utf-8") == ALL_CUT
    roster.write_text("name,seed\n../eve,3\n", "utf-8")
    done = lab(tree, "--lab", "2", "--out", tmp_path / "more", "--roster",
               roster)
    assert done.returncode == 2 and "cannot be the name of a fo" in done.stderr
    assert not (tmp_path / "more").exists()


OPENED = """\
#include "mm/buddy.h"
#include "tools/workshop/labs/missing.h"
#ifdef X
#include "mm/x.h"
#endif

static int x;

void split(struct page *p)
{{
    (void)p;
    /* Task 2.open: the open stage. See docs/labs/02-buddies/README.md. */
    lab_missing("2.open", "docs/labs/02-buddies/README.md");
}}

{}
void twice(void)
{{
    again();

    again();
}}
"""
MERGE_OPENED = """\
void merge(struct page *p)
{
    (void)p;
    /* Task 2.open: the open stage. See docs/labs/02-buddies/README.md. */
    lab_missing("2.open", "docs/labs/02-buddies/README.md");
}
"""


@pytest.mark.parametrize("tasks", ["", "2.1", "2.1,2.2"])
def test_the_open_stage(tree, tmp_path, tasks):
    """Heads without bodies and without static functions, but what is kept,
    whatever tasks are solved; what is a later lab's is an object."""
    path = tree / "docs/labs/02-buddies/lab.toml"
    path.write_text(LAB_TOML.replace("[[test]]", '[open]\nfiles = ["mm/x.c"]\n'
                                     'points = 9\nkeep = ["twice"]\n[[test]]',
                                     1), "utf-8")
    (tree / "docs/labs/02-buddies/cuts/2.2.cut").unlink()
    done = lab(tree, "--lab", "2", "--out", tmp_path / "out", "--open",
               "--tasks", tasks)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out/mm/x.c").read_text("utf-8")
    assert text == OPENED.format(MERGE_OPENED)
    stamp = (tmp_path / "out/.lab").read_text("utf-8")
    assert "\nopen = true\n" in stamp
    start = (tmp_path / "out/START-HERE.md").read_text("utf-8")
    assert "of mm/x.c you have the heads" in start and "9 points" in start
    lab(tree, "--lab", "2", "--out", tmp_path / "plain")
    assert "open" not in (tmp_path / "plain/.lab").read_text("utf-8")
    later(tree, LATER)
    text = labs.handed_out(tree, labs.open_stage(labs.load(tree, 2)))["mm/x.c"]
    assert text == OPENED.format("void merge(struct page *p);\n")


def test_hand_outs_in_the_tree_are_not_of_it(tree, tmp_path):
    lab(tree, "--lab", "3", "--out", tree / "first")
    lab(tree, "--lab", "2", "--out", tmp_path / "out")
    assert not {n for n in files(tmp_path / "out") if "first" in n}


@pytest.mark.parametrize("tasks", ["2.1,2.2", "all"])
def test_solved_tasks(tree, tmp_path, tasks):
    lab(tree, "--lab", "2", "--out", tmp_path / "out", "--tasks", tasks)
    assert "lab_missing" not in (tmp_path / "out/mm/x.c").read_text("utf-8")


def test_only_what_git_tracks(tree, tmp_path):
    for words in (["init", "-q"], ["add", "mm", "docs", "tools"]):
        subprocess.run(["git", *words], cwd=tree, check=True)
    (tree / "mm/x.c").write_text(C.replace("int x", "int edited"), "utf-8")
    (tree / "docs/labs/02-buddies/cuts/2.2.cut").unlink()
    assert lab(tree, "--lab", "2", "--out", tmp_path / "o").returncode == 0
    assert "README.md" not in files(tmp_path / "o")
    assert "edited" in (tmp_path / "o/mm/x.c").read_text(encoding="utf-8")


def test_the_encoding_of_the_locale_has_no_say(tree, tmp_path, monkeypatch):
    """As with EUC-KR or GBK; ASCII lacks these characters for certain."""
    monkeypatch.setenv("LC_ALL", "C")
    (tree / "mm/x.c").write_text("/* §, «x» */\n" + C, encoding="utf-8")
    done = lab(tree, "--lab", "2", "--out", tmp_path / "§",
               python=["-X", "utf8=0"])
    assert done.returncode == 0, done.stderr
    assert "§, «x»" in (tmp_path / "§/mm/x.c").read_text("utf-8")
    said = subprocess.run([sys.executable, "-X", "utf8=0", "-c",
                           "import tools; print('\\u00a7')"], cwd=tree,
                          check=True, stdout=subprocess.PIPE).stdout
    assert said == b"\\xa7\n"


@pytest.mark.parametrize("change", [
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: data.replace(b"\n", b"\r\n")])
@pytest.mark.parametrize("name", ["lab.toml", "cuts/2.1.cut"])
def test_marks_and_line_ends_of_other_editors(tree, tmp_path, name, change):
    path = tree / "docs/labs/02-buddies" / name
    path.write_bytes(change(path.read_bytes()))
    done = lab(tree, "--lab", "2", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/mm/x.c").read_text("utf-8") == ALL_CUT


@pytest.mark.parametrize("options, why", [
    (["--out", "new"], "LAB is missing"),
    (["--lab", "2"], "OUT is missing"),
    (["--lab", "9", "--out", "new"], "there is no lab 9; there are 2, 3"),
    (["--lab", "two", "--out", "new"], "there is no lab two"),
    (["--lab", "2", "--out", "mm"], "mm is not empty"),
    (["--lab", "2", "--out", "README.md"], "README.md: File exists"),
    (["--lab", "2", "--out", "new", "--tasks", "2.1,2.8"], "no task 2.8"),
    (["--lab", "2", "--out", "new", "--seed", "-1"], "SEED: -1 is no seed"),
    (["--lab", "2", "--out", "new", "--open"], "lab 2 has no open stage"),
    (["--lab", "2", "--out", "new", "--roster", "no.csv"],
     "lab: no.csv: No such file"),
    (["--lab", "2", "--out", "new", "--roster", "x", "--seed", "1"],
     "SEED is one for all"),
])
def test_refusals_are_one_line(tree, options, why):
    done = lab(tree, *options)
    assert done.returncode == 2 and why in done.stderr, done.stderr
    assert done.stderr.startswith("lab: ") and done.stderr.count("\n") == 1
    assert not (tree / "new").exists()


def test_a_hand_out_hands_out_nothing(tree, tmp_path):
    lab(tree, "--lab", "2", "--out", tmp_path / "out")
    done = lab(tmp_path / "out", "--lab", "2", "--out", tmp_path / "again")
    assert done.returncode == 2 and "is a hand-out itself" in done.stderr
