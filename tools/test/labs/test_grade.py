"""No submission breaks grading or earns points that are not due.

A tree with a lab made for this: two small functions, a test for each, and a
question. Hostile submissions of all kinds are graded, and the results of each
checked. Most do harm in the one function, so the other test shows that nothing
else is lost. `make test` grades a FEW of them, `make test-all` the rest.
"""

import csv
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import tarfile
from xml.etree import ElementTree

import pytest

from conftest import BUILD, ROOT, long, product, sanitized, tiers
from tools.grading import lab as handout
from tools.grading import labs, workshop
from tools.grading.budget import Budget
from tools.run import sandbox

pytestmark = pytest.mark.plain

FOLDER = "docs/labs/00-ends"
SERVICES = f"{FOLDER}/services"
WORK = f"{SERVICES}/work.c"
SHEET = f"{FOLDER}/answers.toml"
SEED = 2
RIGHT = f"sum = {40 + SEED}\n"

# Processor seconds for each process: more than an honest one takes; and for
# submissions that use all the time they get.
PATIENCE, LITTLE = 60, 5

SOURCES = {
    f"{SERVICES}/work.h": """\
#pragma once
int lab0_double(int n);
int lab0_half(int n);
""",
    WORK: """\
#include "docs/labs/00-ends/services/work.h"

int lab0_double(int n)
{
    return 2 * n;
}

int lab0_half(int n)
{
    return n / 2;
}
""",
    f"{FOLDER}/tests/try.c": """\
#include "tools/workshop/labs/lab.h"
#include "docs/labs/00-ends/services/work.h"

LAB_TEST(0, doubles, LAB_UP)
{
    KT_EQ(lab0_double(4), 8);
}

LAB_TEST(0, halves, LAB_EARLY)
{
    if (lab0_half(8) != 4)
        KT_FAIL("half of 8 is %d, want 4", lab0_half(8));
}
""",
    f"{FOLDER}/lab.toml": f"""\
number = 0
title = "Ends"
reading = []
files = ["{WORK}", "{SHEET}"]
tasks = ["0.1", "0.2", "0.3"]
open = {{ files = ["{WORK}"], points = 10 }}

[[test]]
name = "0.doubles"
tasks = ["0.1"]
points = 45
hint = "add it to itself"

[[test]]
name = "0.halves"
tasks = ["0.2"]
points = 35
hint = "shift it"

[[question]]
id = "sum"
form = "integer"
tasks = ["0.3"]
points = 20
text = "40 and the seed?"
hint = "add"
""",
    f"{FOLDER}/cuts/0.1.cut": f"""\
@@ {WORK}: lab0_double: twice a number
-    return 2 * n;
+    (void)n;
+    LAB_MISSING
""",
    f"{FOLDER}/cuts/0.2.cut": f"""\
@@ {WORK}: lab0_half: half of a number
-    return n / 2;
+    return n;
""",
    SHEET: 'sum = ""\n',
    # More than a lab would allow: these submissions try what is behind that.
    f"{FOLDER}/allowed.toml": """\
uses = ["cpu_triple_fault", "debugcon_line", "kmem_alloc", "ktest_excuse",
        "ktest_fail", "lab_must_panic", "power_off"]
defines = ["lab0_double", "lab0_half"]
instructions = ["cli", "hlt", "in", "out"]
""",
    f"{FOLDER}/answers.py": """\
def check(answers, machine):
    assert machine.kernel.is_file()
    right = answers["sum"] + 0 == 40 + machine.seed
    return {"sum": None if right else "another number"}
""",
}


def body(code, include="", half="return n / 2;"):
    """A hand-in file whose first function is `code`."""
    return (f'#include "docs/labs/00-ends/services/work.h"\n{include}\n'
            f"int lab0_double(int n)\n{{\n    {code}\n    return 2 * n;\n}}\n"
            f"int lab0_half(int n)\n{{\n    {half}\n}}\n")


CPU = '#include "kernel/x86/cpu.h"\n#include "kernel/x86/io.h"\n'
SAY = '#include "drivers/debugcon.h"\n'


def say(text):
    """C that writes a line to the debug port."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'debugcon_line("{quoted}", {len(text)});'


# What a kernel prints about its test.
PASSES = json.dumps({"event": "verdict", "test": "0.doubles",
                     "result": "pass", "leaks": 0})

# {name: (the file's text, state of 0.doubles)}; 0.halves passes.
IN_THE_KERNEL = {
    "right": (body(""), "pass"),
    "wrong": (body("n++;"), "fail"),
    "not-written": (body('lab_missing("0.1", "x");',
                         '#include "tools/workshop/labs/missing.h"'),
                    "not written"),
    "loop": (body("for (;;)\n        cpu_halt();", CPU), "hang"),
    "loop-deaf": (body("irq_disable();\n    for (;;)\n        ;", CPU),
                  "hang"),
    "panic": (body('panic("no");', '#include "kernel/x86/panic.h"'),
              "panic"),
    "must-panic": (body('lab_must_panic();\n    panic("%s", "");',
                        '#include "tools/workshop/labs/lab.h"\n'
                        '#include "kernel/x86/panic.h"'), "panic"),
    "excuse": (body("ktest_excuse(yes);\n    n++;",
                    '#include "tools/workshop/ktest/failures.h"\n'
                    "static bool yes(void)\n{\n    return true;\n}\n"),
               "fail"),
    "triple": (body("cpu_triple_fault();", CPU), "triple fault"),
    "leak": (body("kmem_alloc(100, KM_SLEEP);", '#include "mm/kmem.h"'),
             "leak"),
    "wild-serial": (body("for (;;)\n        outb(0x3f8, 'x');", CPU),
                    "wild output"),
    "wild-port": (body("for (;;)\n        outb(0xe9, 'x');", CPU),
                  "wild output"),
    "says-pass": (body(say(PASSES) + "n = 5;", SAY), "fail"),
    "own-result": (body("lab_result[0] = 1;\n    n = 5;",
                        "static volatile unsigned lab_result[3];"), "fail"),
    "says-pass-and-exits": (body(say(PASSES) + "outb(0xf4, 0);", CPU + SAY),
                            "no verdict"),
    "odd-records": (body(say('{"event":["verdict"]}') + say("[[[[") +
                         say('{"event":"verdict","leaks":{}}') + "n = 5;",
                         SAY), "fail"),
    "deep-record": (body("for (int i = 0; i < 100000; i++)\n"
                         "        outb(0xe9, '[');", CPU), "pass"),
    "nameless-panic": (body(say('{"event":"panic"}') + "power_off();",
                            SAY + '#include "drivers/power.h"'), "panic"),
    "exit": (body("outb(0xf4, 0);", CPU), "no verdict"),
    "off": (body("power_off();", '#include "drivers/power.h"'), "no verdict"),
    "no-watchdog": (body("outb(0x441, 0);\n    irq_disable();\n"
                         "    for (;;)\n        ;", CPU), "stuck"),
}

# {name: what it writes to the exit port before the kernel has said anything}.
# QEMU ends with twice that plus one: also a shell's status for a command that
# it cannot run, or that was killed, for example without room for its memory.
LEAVES_EARLY = {"leaves-1": 0, "leaves-125": 62, "leaves-127": 63,
                "leaves-135": 67}

# While the kernel's code can be written: no expectation fails any more.
PATCHES = body("", "void ktest_fail(const char *, int, const char *, ...);",
               "*(volatile char *)ktest_fail = (char)0xc3; /* ret */\n"
               "    return n;")

# {name: text that does not compile}; only the answer is left.
NOT_BUILT = {
    "syntax": body("return 2 *;"),
    "judge": body("ktest_stop(__FILE__, 1, \"no\");",
                  "void ktest_stop(const char *, int, const char *);"),
    "result": body("lab_result[1] = 0;", "extern unsigned lab_result[];"),
    "assembler": body('__asm__("nop");'),
    "undefined": body("nowhere();", "void nowhere(void);"),
    "include-zero": '#include "/dev/zero"\n',
    "include-itself": "#include __FILE__\n#include __FILE__\n",
    "macro-bomb": "#define A 1,1,1,1,1,1,1,1,1,1\n" + "".join(
        f"#define {b} {a},{a},{a},{a},{a},{a},{a},{a},{a},{a}\n"
        for a, b in zip("ABCDEFGHI", "BCDEFGHIJ")) + "int a[] = {J};\n",
    "incbin-zero": body("", '__asm__(".incbin \\"/dev/zero\\"");'),
    "big-array": body("", "char big[1 << 29] = {1};"),
}
if not sandbox.problem():
    NOT_BUILT["include-solution"] = \
        f'#include "{BUILD}/grade-test/tree/{WORK}"\n'


FEW = {"right", "liar", "wrong", "panic", "leak", "says-pass", "leaves-127",
       "assembler", "syntax", "missing", "wrong-answer"}
ENDLESS = {"no-watchdog", *NOT_BUILT}  # but for FEW


def few_first(names):
    """Parameters: those of FEW for each `make test`."""
    return tiers([n for n in names if n in FEW],
                 [n for n in names if n not in FEW])


# ---- the grader's tree, and submissions ------------------------------------

def fill(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def tree(passing):
    if sanitized():
        pytest.skip("labs are graded on an ordinary kernel")
    product("slate-workshop.elf", "workshop")
    tree = BUILD / "grade-test/tree"
    shutil.rmtree(tree.parent, ignore_errors=True)
    passing.append(tree.parent)
    for name in ("boot", "kernel", "mm", "drivers", "user", "tools"):
        shutil.copytree(ROOT / name, tree / name,
                        ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "Makefile", tree)
    workshop.copy_products(BUILD, tree / "build")
    (tree / ".venv").symlink_to(ROOT / ".venv")
    fill(tree, SOURCES)
    return tree


def submissions(folder):
    """Writes all submissions; each has the right answer."""
    for name, (text, _) in IN_THE_KERNEL.items():
        fill(folder / name, {WORK: text})
    for name, text in NOT_BUILT.items():
        fill(folder / name, {WORK: text})
    for name, value in LEAVES_EARLY.items():
        fill(folder / name, {WORK: body(
            "", CPU, f"outb(0xf4, {value});\n    return n / 2;")})
    fill(folder / "patches", {WORK: PATCHES})
    for path in folder.iterdir():
        fill(path, {SHEET: RIGHT})
    odd_files(folder)
    odd_answers(folder)
    for path in folder.iterdir():
        at = path / "mine" if path.name == "nested" else path
        fill(at, {".lab": f"lab = 0\nseed = {SEED}\n"})
    for name in ("liar", "stranger"):
        fill(folder / name, {WORK: body(""), SHEET: RIGHT,
                             ".lab": f"lab = 0\nseed = {SEED + 1}\n"})
    (folder / "bad-stamp").mkdir()
    (folder / "bad-stamp/.lab").write_bytes(b"\xff[[[[")


def odd_files(folder):
    names = ("missing", "huge", "linked", "linked-folder", "folder", "binary",
             "pipe", "socket")
    for name in names:
        fill(folder / name, {SHEET: RIGHT})
        (folder / name / SERVICES).mkdir(parents=True)
    solution = BUILD / "grade-test/tree" / WORK
    (folder / "huge" / WORK).write_text(body("") + "/**/\n" * 100000, "utf-8")
    (folder / "linked" / WORK).symlink_to(solution)
    (folder / "linked-folder" / SERVICES).rmdir()
    (folder / "linked-folder" / SERVICES).symlink_to(solution.parent)
    (folder / "folder" / WORK).mkdir()
    (folder / "binary" / WORK).write_bytes(bytes(range(256)) * 8)
    os.mkfifo(folder / "pipe" / WORK)
    with socket.socket(socket.AF_UNIX) as s:
        here = os.getcwd()
        os.chdir(folder / "socket" / SERVICES)  # its name must be short
        s.bind("work.c")
        os.chdir(here)
    fill(folder / "flat", {"work.c": body(""), "answers.toml": RIGHT})
    fill(folder / "nested", {f"mine/{WORK}": body(""),
                             f"mine/{SHEET}": RIGHT})
    fill(folder / "edited", {
        WORK: body("n++;"), SHEET: RIGHT,
        f"{FOLDER}/tests/try.c": '#include "tools/workshop/labs/lab.h"\n'
        "LAB_TEST(0, doubles, LAB_UP) {}\nLAB_TEST(0, halves, LAB_UP) {}\n",
        f"{FOLDER}/lab.toml": SOURCES[f"{FOLDER}/lab.toml"].replace(
            "45", "80").replace("35", "0"),
        f"{FOLDER}/answers.py": "raise SystemExit\n",
        "Makefile": "kernel:\n\trm -rf /nowhere\n",
        "tools/grading/stopped.py": "raise SystemExit\n"})


ANSWERS = {"wrong-answer": ("sum = 1\n", "wrong"),
           "no-answer": ('sum = ""\n', "no answer"),
           "odd-answer": ("sum = [1, {a = 2}]\n", "wrong form"),
           "broken-answers": ("sum = = 3\n", "unreadable"),
           "deep-answers": ("sum = " + "[" * 20000 + "\n", "unreadable")}


def odd_answers(folder):
    for name, (text, _) in ANSWERS.items():
        fill(folder / name, {WORK: body(""), SHEET: text})


def run(tree, *arguments):
    """The grader, with the settings for which the copied products are up to
    date."""
    built = dict(o.split("=") for o in workshop.as_before(BUILD))
    return subprocess.run([tree / "tools/grade", *map(str, arguments)],
                          cwd="/", capture_output=True, encoding="utf-8",
                          check=False, env={**os.environ, **built})


class Graded:
    """Grades all submissions, each part when it is first asked for."""

    def __init__(self, tree):
        self.tree, self.folder = tree, tree.parent / "handed-in"
        self.folder.mkdir()
        submissions(self.folder)
        self.roster = tree.parent / "roster.csv"
        self.roster.write_text("group,name,seed\n" + "".join(
            f"a,{path.name},{SEED}\n" for path in self.folder.iterdir()
            if path.name != "stranger"), encoding="utf-8")
        self.rest = {path.name for path in self.folder.iterdir()} - \
            FEW - ENDLESS | {"gone"}
        self.runs = {}

    def part(self, out, patience, names):
        """The grader's process that graded these, and the results' folder."""
        folder = self.tree.parent / out
        if out not in self.runs:
            self.runs[out] = run(
                self.tree, "--out", folder, "--patience", patience,
                "--roster", self.roster,
                *(self.folder / name for name in sorted(names)))
        return folder, self.runs[out]

    def few(self):
        return self.part("few", PATIENCE, FEW)

    def others(self):
        return self.part("others", PATIENCE, self.rest)

    def of(self, name):
        """The folder with a submission's results."""
        if name in FEW:
            return self.few()[0] / name
        if name in ENDLESS:
            return self.part("endless", LITTLE, ENDLESS - FEW)[0] / name
        return self.others()[0] / name


@pytest.fixture(scope="module")
def graded(tree):
    return Graded(tree)


def result(graded, name):
    """({name: (score, state)}, results.json) of a submission."""
    data = json.loads((graded.of(name) / "results.json").read_text("utf-8"))
    return {t["name"]: (t["score"], t["output"].split("\n")[0])
            for t in data["tests"]}, data


def output(data, name):
    return next(t["output"] for t in data["tests"] if t["name"] == name)


# ---- each of them ----------------------------------------------------------

@pytest.mark.parametrize("name", few_first(IN_THE_KERNEL))
def test_points_of_a_submission(graded, name):
    state = IN_THE_KERNEL[name][1]
    scores, data = result(graded, name)
    points = {"pass": 45, "leak": 22.5}.get(state, 0)
    assert scores["0.doubles"] == (points, state), data
    assert scores["0.halves"] == (35, "pass")
    assert scores["sum"] == (20, "pass")
    assert data["score"] == points + 55


@pytest.mark.parametrize("name", few_first(LEAVES_EARLY))
def test_a_kernel_that_leaves_at_once_has_no_verdict(graded, name):
    """Not even if its status is that of a QEMU that does not start."""
    scores, _ = result(graded, name)
    assert scores["0.halves"] == (0, "no verdict")
    assert scores["0.doubles"] == (45, "pass")


@pytest.mark.parametrize("name", few_first(NOT_BUILT))
def test_a_failed_build_leaves_the_points_of_answers(graded, name):
    scores, data = result(graded, name)
    assert scores["0.doubles"] == scores["0.halves"] == (0, "no kernel")
    assert scores["sum"] == (20, "pass")
    assert "The kernel does not build:\n" in data["output"]
    assert len(data["output"].splitlines()) < 30


@pytest.mark.parametrize("name, said", tiers(
    [("syntax", "work.c:5:")],
    [("judge", "work.c: error: uses ktest_stop, which the lab does not offer"),
     ("assembler", 'work.c:5: error: asm("nop") is not for hand-ins'),
     ("undefined", "undefined reference to"),
     ("result", "work.c: error: uses lab_result, which the lab does not"),
     ("include-zero", "out of memory"),
     *([] if sandbox.problem() else
       [("include-solution", "No such file or directory")])]))
def test_compilers_first_errors_are_shown(graded, name, said):
    assert said in result(graded, name)[1]["output"]


@pytest.mark.parametrize("name, said", tiers(
    [("missing", "is missing")],
    [("huge", "has more than 256 KiB"),
     ("linked", "symbolic link"), ("linked-folder", "symbolic link"),
     ("folder", "is not a regular file"), ("binary", "is not a text"),
     ("pipe", "is not a regular file"), ("socket", "is not a regular file")]))
def test_files_that_are_none_are_as_handed_out(graded, name, said):
    """Each is named and replaced by the hand-out's; no other point is lost."""
    scores, data = result(graded, name)
    assert f"{WORK} " in data["output"] and said in data["output"]
    assert scores == {"0.doubles": (0, "not written"),
                      "0.halves": (0, "fail"), "sum": (20, "pass")}


@long
def test_files_side_by_side_or_in_a_folder(graded):
    assert result(graded, "flat")[1]["score"] == 100
    assert result(graded, "nested")[1]["score"] == 100


@long
def test_edited_tests_and_tools_do_not_count(graded):
    scores, data = result(graded, "edited")
    assert scores["0.doubles"] == (0, "fail")
    assert scores["0.halves"] == (35, "pass") and data["score"] == 55


@pytest.mark.parametrize("name", few_first(ANSWERS))
def test_odd_answers(graded, name):
    scores, data = result(graded, name)
    assert scores["sum"] == (0, ANSWERS[name][1])
    assert data["score"] == 80


@long
def test_the_others_are_graded(graded):
    """The grader names a path that is no tree, and a tree without a lab."""
    out, done = graded.others()
    assert done.returncode == 2
    assert "gone: is not there" in done.stderr
    assert "stranger: stranger is not in the roster" in done.stderr
    assert "bad-stamp: which lab?" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    rows = summary(out)
    assert rows["flat"]["score"] == "100" and rows["gone"]["score"] == ""
    assert "linked " in done.stdout.split("\n\n")[-1]


def summary(out):
    """{submission: row} of a grader's table."""
    with open(out / "summary.csv", newline="", encoding="utf-8") as f:
        return {row["submission"]: row for row in csv.DictReader(f)}


def test_summary(graded):
    rows = summary(graded.few()[0])
    assert set(rows) == FEW
    assert rows["right"]["score"] == "100"
    assert rows["right"]["seed"] == str(SEED)
    assert rows["leak"]["0.doubles"] == "22.5"


# ---- failures explain themselves -------------------------------------------

@pytest.mark.parametrize("name, lines", tiers([
    ("wrong", ["try.c:6: ", "hint: add it to itself",
               'alone: make gdb APPEND="grade=0.doubles"']),
    ("panic", ["panic: no", "lab_0_doubles+0x"]),
    ("leak", ["leaked:", "kmem_alloc_112 objects in use"]),
], [
    ("not-written", ["task 0.1 is not written yet"]),
    ("loop", ["hangs, in lab0_double", "WAITS-FOR", "lab_0_doubles+0x",
              "the last events on the debug port:"]),
    ("triple", ["triple fault: ", "double fault in cpu_triple_fault+0x"]),
    ("wild-serial", ["wrote 512 KiB or more"]),
    ("exit", ["switched it off, or wrote to the exit port"]),
    ("no-watchdog", ["until the host stopped it"]),
]))
def test_explanations(graded, name, lines):
    said = output(result(graded, name)[1], "0.doubles")
    for line in lines:
        assert line in said, said


@long
def test_a_kernel_that_changes_its_code_has_no_points(graded):
    """And the instructor reads of it."""
    scores, data = result(graded, "patches")
    assert scores["0.halves"] == (0, "changed"), data
    assert scores["0.doubles"] == (45, "pass")
    notes = next(t for t in data["tests"]
                 if t["name"] == "notes for the instructor")
    assert notes["visibility"] == "hidden"
    said = "the kernel's code or its constants were changed, in ktest_fail+0x0"
    assert said in output(data, "0.halves")
    assert notes["output"] == f"0.halves: {said}"
    assert "notes for the instructor" not in result(graded, "right")[0]


def test_the_seed_is_the_rosters(graded):
    """An edited .lab changes no answer, and the instructor reads of it."""
    assert result(graded, "liar")[0]["sum"] == (20, "pass")
    assert output(result(graded, "liar")[1], "notes for the instructor") \
        .startswith(f"its .lab says seed {SEED + 1}")


# ---- the command -----------------------------------------------------------

def test_one_tree(tree, graded):
    """The same bytes as before; all points earned; the other formats."""
    done = run(tree, "--patience", PATIENCE, "--seed", SEED,
               tree.parent / "handed-in/right")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "total      100/100" in done.stdout
    out = tree / "build/grade"
    for name in ("results.json", "junit.xml", "report.txt"):
        assert (out / name).read_bytes() == \
            (graded.of("right") / name).read_bytes()
    cases = ElementTree.parse(out / "junit.xml").getroot()
    assert cases.get("tests") == "3" and cases.get("failures") == "0"


def test_a_build_that_was_killed_is_not_used(tree, tmp_path):
    """The build leaves an incomplete file that is newer than its sources."""
    shop = workshop.Workshop(tree, tmp_path / "work", Budget(PATIENCE),
                             boxed=True)
    lab, name = labs.load(tree, 0), "build/mm/buddy.o"
    shop.put({"Makefile": b"workshop:\n\t: >%s; kill -9 $$PPID\n"
              % name.encode()}, lab)
    shop.build()
    assert (shop.folder / name).read_bytes() == b""
    shop.put({}, lab)
    assert (shop.folder / name).read_bytes() == (tree / name).read_bytes()


@pytest.fixture
def here(tree):
    """The hand-out of the lab, solved but for the answer, in the folder where
    all are built."""
    shop = workshop.Workshop(tree, tree / "build/grade/work", Budget(PATIENCE))
    lab = labs.load(tree, 0)
    shop.put({}, lab)
    if not (shop.folder / ".venv").exists():
        (shop.folder / ".venv").symlink_to(ROOT / ".venv")
    handout.write_extras(tree, lab, shop.folder, SEED, [])
    return shop.folder


def make(folder, *arguments):
    return subprocess.run(["make", "--no-print-directory", *arguments],
                          cwd=folder, capture_output=True, encoding="utf-8",
                          check=False, env={**os.environ, "BUILD": "build"})


def test_here(here):
    """make grade in an unchanged tree: the answers are not there yet. The
    results are in the same folder whatever kernel is built."""
    done = make(here, "grade", "BUILD=build/smp")
    assert done.returncode == 2 and "80/100" in done.stdout, done.stdout
    data = json.loads((here / "build/grade/results.json").read_text("utf-8"))
    assert data["score"] == 80


HANDIN = "build/handin-lab0.tar.gz"


def test_handin_packs_what_is_graded(tree, here):
    """The receipt is that of the archive; the archive earns what the tree
    does, and whose it is its name says."""
    (here / SHEET).write_text(RIGHT, "utf-8")
    done = make(here, "handin")
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0] == f"{HANDIN}: lab 0, Ends"
    assert re.fullmatch(rf" +{WORK} +[0-9,]+ bytes, as handed out", said[1])
    assert re.fullmatch(rf" +{SHEET} +[0-9,]+ bytes, edited", said[2])
    data = (here / HANDIN).read_bytes()
    assert said[3:] == [f"receipt: {hashlib.sha256(data).hexdigest()}"]
    assert make(here, "handin").stdout == done.stdout
    with tarfile.open(here / HANDIN) as there:
        assert sorted(there.getnames()) == [".lab", SHEET, WORK]
        assert re.match(rb'gcc = "\d+\.[\d.]+"\n# Written by `make lab`;',
                        there.extractfile(".lab").read())
    alice = tree.parent / "alice.tar.gz"
    shutil.copy(here / HANDIN, alice)
    bob = tree.parent / "bob.tar.gz"
    bob.write_bytes(data[:-100])
    twice, other = tree.parent / "twice", tree.parent / "other"
    for name in ".lab", "first.tar.gz", "second.tar.gz":
        fill(twice, {name: "lab = 0\n"})
    fill(other, {SHEET: RIGHT, ".lab": 'gcc = "1.0"\nlab = 3\n'})
    roster = tree.parent / "archives.csv"
    roster.write_text("name,seed\n" + "".join(
        f"{name},{SEED}\n" for name in ("alice", "twice", "other")), "utf-8")
    done = run(tree, "--patience", PATIENCE, "--roster", roster, "--out",
               tree.parent / "archives", "--lab", 0, alice, bob, twice, other)
    assert done.returncode == 2
    assert f"{twice}: has none of the files of lab 0 (an archive" in done.stderr
    assert done.stdout.count("look at") == 2  # alice has the same compiler
    assert "look at its .lab says lab 3\n" in done.stdout
    assert "look at its .lab says gcc 1.0, and " in done.stdout
    assert f"{bob}: is no .tar.gz archive: " in done.stderr
    refused = json.loads(
        (tree.parent / "archives/bob/results.json").read_text("utf-8"))
    assert refused["score"] == 0
    assert refused["output"].startswith("not graded: is no .tar.gz archive: ")
    rows = summary(tree.parent / "archives")
    assert rows["alice"]["score"] == "100" and rows["bob"]["score"] == ""


@long
def test_handin_says_what_is_not_packed(here):
    text = (here / WORK).read_text("utf-8")
    (here / SHEET).write_text(SOURCES[SHEET], "utf-8")
    (here / HANDIN).unlink(missing_ok=True)

    def refused(said):
        done = make(here, "handin")
        assert done.returncode == 2 and not done.stdout
        assert f"handin: {said}" in done.stderr
        assert "handin: nothing is packed; FORCE=1" in done.stderr
        assert not (here / HANDIN).exists()

    refused("no file is edited")
    (here / SHEET).write_text("sum =\n", "utf-8")
    refused("answers.toml: ")
    (here / SHEET).write_text('sum = "42"\n', "utf-8")
    refused("answers.toml: sum wants a whole number")
    (here / SHEET).write_bytes(b"\0")
    refused(f"{SHEET} is not a text")
    (here / SHEET).write_text(SOURCES[SHEET], "utf-8")
    (here / WORK).write_text(text + "int lab0_more;\n", "utf-8")
    refused(f"it does not build:\nhandin:     {WORK}: error: defines ")
    (here / "mm/mine.h").write_text("#define TWO 2\n", "utf-8")
    (here / WORK).write_text(f'#include "mm/mine.h"\n{text}', "utf-8")
    refused("it does not build:\nhandin:     mm/mine.h: error: is included, "
            "and is not as it was handed out\n")
    (here / "mm/mine.h").unlink()
    (here / WORK).write_text(body('lab_missing("0.1", ""); x'), "utf-8")
    refused("it does not build:\nhandin: ")
    done = make(here, "handin", "FORCE=1")
    assert done.returncode == 0 and (here / HANDIN).exists()
    assert "\nnot written yet: task 0.1\nno answer yet: sum\nreceipt: " \
        in done.stdout


OWN = """\
#include "docs/labs/00-ends/services/work.h"

static int shifted(int n, int by)
{
    return by < 0 ? n >> -by : n << by;
}

int lab0_double(int n)
{
    return shifted(n, 1);
}

int lab0_half(int n)
{
    return shifted(n, -1);
}
"""


def test_the_open_stage(tree, graded):
    """It earns points of its own if all tests pass. A copy of what the other
    hand-out has is named; whether it is the open stage, not .lab says."""
    half = OWN.replace("n >> -by", "n")
    stamp = f"lab = 0\nseed = {SEED}\nopen = true\n"
    folder = tree.parent / "opened"
    for name, text, lab in (("own", OWN, stamp), ("half", half, stamp),
                            ("copy", SOURCES[WORK], "lab = 0\n")):
        fill(folder / name, {WORK: text, ".lab": lab, SHEET: RIGHT})
    out = tree.parent / "opened-results"
    done = run(tree, "--patience", PATIENCE, "--open", "--seed", SEED, "--out",
               out, *(folder / name for name in ("own", "half", "copy")))
    assert done.returncode == 1, done.stderr
    scores = {name: row["score"] for name, row in summary(out).items()}
    assert scores == {"own": "110", "half": "65", "copy": "110"}
    report = (out / "half/report.txt").read_text("utf-8")
    assert re.search(r"(?m)^0\.open +0/10 +fail +all tasks\n"
                     r" +not passed: 0\.halves$", report)
    assert re.search(r"(?m)^total +65/110$", report)
    assert "look at" not in done.stdout.split("== ")[1]
    assert f"look at {WORK}: holds 100% of the lab's own text" in done.stdout
    assert "its .lab does not say that it is of the open stage" in done.stdout
    done = run(tree, "--seed", SEED, folder / "own")
    assert done.returncode == 2
    assert "says that it is of the open stage: use --open" in done.stderr


@pytest.mark.parametrize("arguments, said", [
    ([], "name the trees to grade"),
    (["--here", "x"], "name the trees to grade"),
    (["--here", "--roster", "x"], "--roster is for trees that were handed"),
    (["--here", "--lab", "0", "--seed", "x"], "x is no seed"),
    (["--lab", "7", "right"], "there is no lab 7; there are 0"),
    (["--seed", "x", "right"], "x is no seed"),
    (["right"], "handed out with seed 2: use --roster or --seed"),
    (["--name", "a", "right", "right"], "--name is for one tree"),
    (["--roster", "/nowhere", "right"], "No such file"),
    (["--roster", "right/.lab", "right"], "must name the columns name, seed"),
    (["--patience", "0", "right"], "at least a second"),
])
def test_usage(tree, graded, arguments, said):
    places = [tree.parent / "handed-in" / a if a.startswith("right") else a
              for a in arguments]
    done = run(tree, *places)
    assert done.returncode == 2 and said in done.stderr
