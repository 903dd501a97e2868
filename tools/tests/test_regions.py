"""What `make lab` does with marked regions: what it cuts, and what it refuses,
without building anything. The labs themselves are in test_labs.py."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT
from slate import labs, regions
from slate.regions import cut, scan

PAGE = "docs/labs/02-buddies/README.md"

C = """\
#include "mm/buddy.h"
#ifdef X
#include "mm/x.h"
#endif

void split(struct page *p)
{
    /* LAB 2.1 BEGIN: put the right halves on their lists */
    one(p);
    /* LAB 2.1 END */
}

void join(struct page *p, int k)
{
    /* LAB 2.1 BEGIN: and join them */
    joined(p, k);
    /* LAB 2.1 END, unused: p, k */
}

void merge(struct page *p)
{
    /* LAB 2.2 BEGIN: find the buddy */
    two(p);
    /* LAB 2.2 INSTEAD
     * (void)p;
     * if (p) {
     *     // here
     *     LAB_MISSING
     * }
     */
    /* LAB 2.2 END */
}

    /* LAB 3.1 BEGIN: another lab's */
three();
    /* LAB 3.1 INSTEAD */
    /* LAB 3.1 END */
"""

ALL_CUT = f"""\
#include "mm/buddy.h"
#include "kernel/lib/lab.h"
#ifdef X
#include "mm/x.h"
#endif

void split(struct page *p)
{{
    /* Task 2.1: put the right halves on their lists. See
     * {PAGE}. */
    lab_missing("2.1", "{PAGE}");
}}

void join(struct page *p, int k)
{{
    (void)p;
    (void)k;
    /* Task 2.1: and join them. See {PAGE}. */
    lab_missing("2.1", "{PAGE}");
}}

void merge(struct page *p)
{{
    (void)p;
    if (p) {{
        /* here */
        /* Task 2.2: find the buddy. See {PAGE}. */
        lab_missing("2.2", "{PAGE}");
    }}
}}

three();
"""


def cut_c(text, lab, solved=(), path="mm/x.c"):
    return cut(path, text, scan(path, text), lab, PAGE, solved)


def test_solutions_are_cut():
    assert cut_c(C, 2) == ALL_CUT


def test_solved_tasks_and_other_labs_stay():
    text = cut_c(C, 2, ["2.1", "2.2"])
    assert text == "\n".join(
        line for line in C.splitlines() if "LAB" not in line and
        not line.startswith("     *")) + "\n"
    assert 'lab_missing("2.1"' not in cut_c(C, 2, ["2.1"])
    assert 'lab_missing("2.2"' in cut_c(C, 2, ["2.1"])
    assert "lab_missing" not in cut_c(C, 3)
    assert "three" not in cut_c(C, 3) and "two" in cut_c(C, 3)


def test_of_another_lab_a_file_lacks_the_marks_alone():
    found = labs.regions(ROOT, labs.tracked(ROOT))
    assert found
    for name, marks in found.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        assert cut(name, text, marks, 99, PAGE) == re.sub(
            r"(?ms)^ */\* LAB \d\.\d.*?\*/\n", "", text), name


def test_header_is_included_once():
    text = C.replace('"mm/buddy.h"', '"kernel/lib/lab.h"')
    assert cut_c(text, 2).count("kernel/lib/lab.h") == 1


def test_assembly():
    text = ("; LAB 1.1 BEGIN: load it\n    mov eax, 1\n"
            "; LAB 1.1 INSTEAD\n;     ; your code\n; hlt\n; LAB 1.1 END\n")
    assert cut_c(text, 1, path="boot/x.asm") == "    ; your code\nhlt\n"
    assert cut_c(text, 1, ["1.1"], "boot/x.asm") == "    mov eax, 1\n"


def test_python():
    text = ("def f():\n    # LAB 4.1 BEGIN: draw it\n    return 1\n"
            "    # LAB 4.1 END\n")
    names = {}
    exec(cut_c(text, 4, path="tools/x.py"), names)  # pylint: disable=W0122
    with pytest.raises(NotImplementedError, match="task 4.1"):
        names["f"]()


B, I, E = "/* LAB 2.1 BEGIN: t */", "/* LAB 2.1 INSTEAD", "/* LAB 2.1 END */"

REFUSED = [
    ("nested", [B, "x", "/* LAB 2.2 BEGIN: u */", E], 4, "in the region"),
    ("nested in itself", [B, "x", B, E], 4, "in the region of LAB 2.1"),
    ("no END", [B, "x"], 2, "without END"),
    ("no BEGIN", ["x", E], 3, "END without BEGIN"),
    ("INSTEAD outside", [I + " */"], 2, "INSTEAD without BEGIN"),
    ("END of another", [B, "x", "/* LAB 2.2 END */"], 4, "that begins in"),
    ("INSTEAD of another", [B, "x", "/* LAB 2.2 INSTEAD */"], 4, "begins in"),
    ("two INSTEADs", [B, "x", I, " * y", " */", I, " */", E], 7, "second"),
    ("code behind", [B, "x", I, " * y", " */", "z();", E], 7, "code between"),
    ("open comment", [B, "x", I, " * y", E], 6, "did not end"),
    ("other lines", [B, "x", I, "y", " */", E], 5, "begin with"),
    ("text at once", [B, "x", I + " y", " */", E], 4, "behind INSTEAD"),
    ("text behind END", [B, "x", "/* LAB 2.1 END of it */"], 4, "behind END"),
    ("unused, no name", [B, "x", "/* LAB 2.1 END, unused: */"], 4, "behind"),
    ("unused, code", [B, "x", "/* LAB 2.1 END, unused: f(x) */"], 4, "behind"),
    ("unused, INSTEAD", [B, "x", I, " * y", " */",
                         "/* LAB 2.1 END, unused: p */"], 7, "no INSTEAD"),
    ("unknown word", ["/* LAB 2.1 STOP */"], 2, "not a marker"),
    ("no task", ["/* LAB BEGIN: t */"], 2, "not a marker"),
    ("small letters", ["/* LAB 2.1 begin: t */"], 2, "not a marker"),
    ("no title", ["/* LAB 2.1 BEGIN */", "x", E], 2, "a title"),
    ("two lines", ["/* LAB 2.1 BEGIN: t", " */", "x", E], 2, "on its line"),
    ("empty", [B, "", E], 2, "no INSTEAD"),
]


@pytest.mark.parametrize("lines, where, why", [r[1:] for r in REFUSED],
                         ids=[r[0] for r in REFUSED])
def test_refused_with_its_place(lines, where, why):
    text = "\n".join(['#include "a.h"', *lines, ""])
    with pytest.raises(regions.MarkerError, match=rf"^a\.c:{where}: .*{why}"):
        scan("a.c", text)


def test_refused_where_nothing_can_be_missing():
    for path, sign in (("a.asm", ";"), ("a.toml", "#"), ("Makefile", "#")):
        text = f"{sign} LAB 2.1 BEGIN: t\nx\n{sign} LAB 2.1 END\n"
        with pytest.raises(regions.MarkerError, match=":1: .*INSTEAD"):
            scan(path, text)
    with pytest.raises(regions.MarkerError, match="a.h:1: .*no #include"):
        scan("a.h", f"{B}\nx\n{E}\n")


# ---- lab.toml ---------------------------------------------------------------

LAB_TOML = """\
number = 2
title = "Buddies"
hours = "3"
reading = ["paper 3.1"]
files = ["mm/x.c"]

[[task]]
id = "2.1"
title = "Split"

[[task]]
id = "2.2"
title = "Merge"

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
hours = "3"
reading = []
files = ["mm/x.c"]
task = [{ id = "3.1", title = "Three" }]
test = [{ name = "3.t", tasks = ["3.1"], points = 100, hint = "?" }]
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
            "docs/labs/02-buddies/answers.py":
                "def check():\n    pass\n# ---- not handed out\nsecret = 1\n",
            "docs/labs/03-slab/lab.toml": OTHER_TOML,
            "docs/labs/03-slab/README.md": "Later.\n",
            "kernel/labs/runner.c": "x\n", "kernel/labs/lab2_split.c": "x\n",
            "kernel/labs/lab3_t.c": "x\n", "build/x.o": "x\n"}.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copytree(ROOT / "tools", tmp_path / "tree/tools",
                    ignore=shutil.ignore_patterns("__pycache__", "tests"))
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
    ('["mm/x.c"]', "[]", "files is empty"),
    ('["mm/x.c"]', '["README.md"]', "mm/x.c:8: LAB 2.1 stands in a file"),
    ('id = "2.2"', 'id = "2.3"', "2.merge names the unknown task 2.2"),
    ("[[test]]", "[test]", "(?i)invalid|twice|cannot|overwrite"),
])
def test_lab_toml_is_checked(tree, old, new, why):
    path = tree / "docs/labs/02-buddies/lab.toml"
    assert labs.load(tree, 2).number == 2
    path.write_text(LAB_TOML.replace(old, new, 1))
    with pytest.raises(labs.LabError, match=why) as caught:
        labs.load(tree, 2)
        labs.regions(tree, ["mm/x.c"])
    assert "\n" not in str(caught.value)


def test_unknown_task_of_a_marker(tree):
    (tree / "mm/x.c").write_text(C.replace("2.2", "2.7"))
    with pytest.raises(labs.LabError, match=r"^mm/x.c:22: .* no task 2\.7"):
        labs.regions(tree, ["mm/x.c"])


# ---- the command -----------------------------------------------------------

def lab(tree, *options):
    return subprocess.run([sys.executable, tree / "tools/lab.py", *options],
                          cwd=tree, capture_output=True, text=True,
                          check=False)


def files(folder):
    return {os.path.relpath(os.path.join(at, name), folder)
            for at, _, names in os.walk(folder) for name in names
            if not name.endswith(".pyc")}


def test_what_is_handed_out(tree, tmp_path):
    done = lab(tree, "--lab", "2", "--out", tmp_path / "out", "--seed", "7")
    assert done.returncode == 0, done.stderr
    out, L = tmp_path / "out", "docs/labs/02-buddies/"
    here = {n for n in files(out) if not n.startswith("tools/")}
    assert here == {
        ".lab", "START-HERE.md", "README.md", "mm/x.c", L + "lab.toml",
        L + "README.md", L + "answers.py", "kernel/labs/runner.c",
        "kernel/labs/lab2_split.c"}
    assert (out / "mm/x.c").read_text() == ALL_CUT
    assert "secret" not in (out / L / "answers.py").read_text()
    assert "seed = 7\n" in (out / ".lab").read_text()
    start = (out / "START-HERE.md").read_text()
    assert L + "README.md" in start
    assert 'grep -n "Task 2\\." mm/x.c\n' in start
    assert os.access(out / "tools/lab.py", os.X_OK)


def test_hand_outs_in_the_tree_are_not_of_it(tree, tmp_path):
    lab(tree, "--lab", "3", "--out", tree / "first")
    lab(tree, "--lab", "2", "--out", tmp_path / "out")
    assert not {n for n in files(tmp_path / "out") if "first" in n}


def test_secret_checkers_stay(tree, tmp_path):
    """With what they are made of."""
    folder = tree / "docs/labs/02-buddies"
    (folder / "lab.toml").write_text("secret = true\n" + LAB_TOML)
    (folder / "witness.py").write_text("def see():\n    pass\n")
    assert lab(tree, "--lab", "2", "--out", tmp_path / "o").returncode == 0
    assert not {n for n in files(tmp_path / "o")
                if n.startswith("docs/labs") and n.endswith(".py")}


def test_solved_tasks(tree, tmp_path):
    lab(tree, "--lab", "2", "--out", tmp_path / "out", "--tasks", "2.1,2.2")
    assert "lab_missing" not in (tmp_path / "out/mm/x.c").read_text()


def test_only_what_git_tracks(tree, tmp_path):
    for words in (["init", "-q"], ["add", "mm", "docs", "tools"]):
        subprocess.run(["git", *words], cwd=tree, check=True)
    (tree / "mm/x.c").write_text(C.replace("three", "edited"))
    assert lab(tree, "--lab", "2", "--out", tmp_path / "o").returncode == 0
    assert "README.md" not in files(tmp_path / "o")
    assert "edited" in (tmp_path / "o/mm/x.c").read_text()


@pytest.mark.parametrize("options, why", [
    (["--out", "new"], "LAB is missing"),
    (["--lab", "2"], "OUT is missing"),
    (["--lab", "9", "--out", "new"], "there is no lab 9; there are 2, 3"),
    (["--lab", "two", "--out", "new"], "there is no lab two"),
    (["--lab", "2", "--out", "mm"], "mm is not empty"),
    (["--lab", "2", "--out", "README.md"], "README.md: File exists"),
    (["--lab", "2", "--out", "new", "--tasks", "2.1,2.8"], "no task 2.8"),
    (["--lab", "2", "--out", "new", "--seed", "-1"], "SEED: -1 is not"),
])
def test_refusals_are_one_line(tree, options, why):
    done = lab(tree, *options)
    assert done.returncode == 2 and why in done.stderr, done.stderr
    assert done.stderr.startswith("lab: ") and done.stderr.count("\n") == 1
    assert not (tree / "new").exists()


def test_bad_markers_write_nothing(tree):
    (tree / "mm/x.c").write_text(C.replace("LAB 2.1 END", "LAB 2.1 FIN"))
    done = lab(tree, "--lab", "3", "--out", "new")
    assert done.returncode == 2
    assert done.stderr.startswith("lab: mm/x.c:10: not a marker")
    assert not (tree / "new").exists()


def test_a_hand_out_hands_out_nothing(tree, tmp_path):
    lab(tree, "--lab", "2", "--out", tmp_path / "out")
    done = lab(tmp_path / "out", "--lab", "2", "--out", tmp_path / "again")
    assert done.returncode == 2 and "is a hand-out itself" in done.stderr
