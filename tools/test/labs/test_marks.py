"""Marks of a term: rosters, groups, lateness, and the tables for others."""

import csv
import json
import sys

import pytest

from conftest import execute
from tools.grading import report, roster
from tools.grading.labs import LabError

pytestmark = pytest.mark.plain

ROSTER = """\
name,seed,group,section,id
alice,1,g1,a,1001
bob,1,g1,a,1002
carol,3,,b,1003
dave,4,,b,1004
"""

LATE = """\
keep = [90, 50]
grace = 10
free = 1

[due]
1 = 2026-10-12T23:59:00+02:00
2 = 2026-10-26T23:59:00+01:00

[[extension]]
who = "dave"
lab = 2
days = 2
"""

# A minute before, within the grace, a second after it, two days.
TIMES = """\
name,lab,time
alice,1,2026-10-12T23:58:00+02:00
carol,1,2026-10-12T22:09:00Z
dave,1,2026-10-13 00:09:01
g1,2,2026-10-28T23:00:00+01:00
dave,2,2026-10-28T23:00:00+01:00
carol,2,2026-11-20T12:00:00+01:00
"""


@pytest.fixture
def term(tmp_path):
    """A function that writes results, {"lab1/alice": (lab, score, seed)}, and
    the files, runs the tool, and returns what it prints, its status and the
    rows of marks.csv."""
    def run(results, *options, times=TIMES, late=LATE, students=ROSTER):
        for name, (lab, score, seed) in results.items():
            folder = tmp_path / name
            folder.mkdir(parents=True)
            (folder / "results.json").write_text(json.dumps(
                {"score": score, "extra_data": {"lab": lab, "seed": seed}}),
                "utf-8")
        for name, text in (("roster.csv", students), ("late.toml", late),
                           ("times.csv", times)):
            (tmp_path / name).write_text(text, "utf-8", "surrogateescape")
        done = execute(
            sys.executable, "-m", "tools.grading.marks",
            "--roster", tmp_path / "roster.csv", "--late",
            tmp_path / "late.toml", "--times", tmp_path / "times.csv",
            "--out", tmp_path / "marks.csv", *options,
            *sorted({tmp_path / name.split("/")[0] for name in results}))
        return done.stdout + done.stderr, done.returncode, \
            rows(tmp_path / "marks.csv")
    return run


def rows(path):
    if not path.exists():
        return {}
    with open(path, newline="", encoding="utf-8") as f:
        return {row["name"]: row for row in csv.DictReader(f)}


RESULTS = {"lab1/alice": (1, 80, 1), "lab1/carol": (1, 70, 3),
           "lab1/dave": (1, 60, 4), "lab2/g1": (2, 90, 1),
           "lab2/carol": (2, 40, 3), "lab2/dave": (2, 22.5, 4)}


def test_marks_of_a_term(term):
    said, status, marks = term(RESULTS)
    assert status == 0, said
    assert list(marks["alice"])[:4] == ["name", "group", "section", "id"]
    # The group's submission counts for both; of its two late days one is free.
    for name in "alice", "bob":
        assert marks[name]["lab 1"] == "80" and marks[name]["lab 2"] == "81"
        assert marks[name]["lab 2 points"] == "90"
        assert marks[name]["lab 2 days late"] == "2"
        assert marks[name]["total"] == "161"
    # In time thanks to the grace; then too late by far.
    assert marks["carol"]["lab 1 days late"] == "0"
    assert marks["carol"]["lab 2"] == "0" and marks["carol"]["total"] == "70"
    # A second more than the grace; no zone is that of the due time. Its free
    # day is used; the extension is enough for lab 2.
    assert marks["dave"]["lab 1 days late"] == "1"
    assert marks["dave"]["lab 1"] == "60" and marks["dave"]["lab 2"] == "22.5"
    assert "lab 2: 2 days late, of which 1 cost: 90 % of 90" in said
    assert "dave       60    22.5   82.5\n" in said


def test_free_days_are_used_up_in_the_order_of_labs(term):
    marks = term(RESULTS, late=LATE.replace('who = "dave"', 'who = "bob"'))[2]
    assert marks["dave"]["lab 1"] == "60"       # the free day
    assert marks["dave"]["lab 2"] == "11.25"    # two days, 50 %
    assert marks["alice"]["lab 2"] == "81"
    assert marks["bob"]["lab 2"] == "90"        # an extension of its own


def test_what_is_missing_is_said(term):
    said, status, marks = term({
        "lab1/alice": (1, 80, 1), "lab1/bob": (1, 100, 1),
        "lab2/carol": (2, 40, 3)}, late="", times="name,lab,time\n")
    assert status == 0
    assert marks["dave"]["lab 1"] == "" and marks["dave"]["total"] == "0"
    assert marks["dave"]["notes"] == \
        "lab 1: nothing handed in | lab 2: nothing handed in"
    assert marks["alice"]["lab 1"] == "100"
    assert "lab 1: best of alice, bob\n" in said


def test_what_to_look_at(term, tmp_path):
    report.refuse("is not a folder", tmp_path / "lab1/carol")
    said, status, marks = term({"lab1/alice": (1, 80, 2), "lab1/eve": (1, 9, 0),
                            "lab1/J\udcfcrg": (1, 9, 0)},
                           late=LATE.replace("dave", "eva"))
    assert status == 1
    assert "look at lab 1: no time of eve, which counts as in time\n" in said
    assert "lab 1: could not be graded" in marks["carol"]["notes"]
    assert "look at lab 2: an extension of eva, not in the roster\n" in said
    assert "look at lab 1: eve is not in the roster\n" in said
    assert "look at lab 1: J\\udcfcrg is not in the roster\n" in said
    assert "look at lab 1: alice was graded with seed 2, and has 1 in the " \
        "roster\n" in said
    assert "look at lab 1: a time of dave, and no result\n" in said
    assert "look at lab 2: a time" not in said  # none is graded
    assert f"look at carol: not graded in {tmp_path}/lab1: is not a folder\n" \
        in said


def test_canvas_imports_it(term, tmp_path):
    """The rules of Canvas's importer: the first columns name the student, the
    last of them is the section; then a row with the points possible."""
    path = tmp_path / "canvas.csv"
    assert term(RESULTS, "--canvas", path)[1] == 0
    with open(path, newline="", encoding="utf-8") as f:
        head, points, *students = csv.reader(f)
    assert head == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section",
                    "Lab 1: First light", "Lab 2: Buddies"]
    assert "Points Possible" in points[0] and points[5:] == ["100", "100"]
    assert students[1] == ["bob", "1002", "", "", "a", "80", "81"]
    said, status, _ = term({}, "--canvas", path, tmp_path / "lab1",
                           students="name\nalice\n")
    assert status == 2
    assert "needs one of the columns student, id, sis_user_id and login" in said


@pytest.mark.parametrize("changed, said", [
    ({"students": "name,seed\na,1\na,2\n"}, "roster.csv:3: a is there twice"),
    ({"students": "name,seed\n,1\n"}, "roster.csv:2: there is no name"),
    ({"students": "name,seed\na,x\n"}, "roster.csv:2: x is no seed"),
    ({"students": "name,seed\na,1,2\n"}, "roster.csv:2: has more columns"),
    ({"students": "name,seed\n"}, "roster.csv: there is no student"),
    ({"students": "seed\n1\n"}, "its first line must name the columns name"),
    ({"students": "name,group\na,b\nb,\n"}, "b is a group and a student"),
    ({"students": "name,seed\nJ\udcfcrg,1\n"}, "roster.csv: is not UTF-8"),
    ({"students": "name,seed\n" + "a" * 200000}, "roster.csv: field larger"),
    ({"times": "name,lab,time\nJ\udcfcrg\n"}, "times.csv: is not UTF-8"),
    ({"late": "keep = [110]\n"}, "keep: 110 is no per cent"),
    ({"late": "kept = 1\n"}, "kept: not a key, or not of its type"),
    ({"late": "free = true\n"}, "free: not a key, or not of its type"),
    ({"late": "[due]\n1 = 2026-10-12\n"}, "2026-10-12 is not a date and time"),
    ({"late": "[due]\none = 2026-10-12T00:00:00\n"}, "one is not the number"),
    ({"late": "[[extension]]\nwho = \"a\"\n"}, "has who, lab and days"),
    ({"late": "extension = [1]\n"}, "has who, lab and days"),
    ({"late": "[due\n"}, "late.toml: "),
    ({"late": "[due]\n1 = 2026-10-12T00:00:00\n"}, "has no zone, but a time"),
    ({"times": "name,time\n"}, "must name the columns name, lab, time"),
    ({"times": "name,lab,time\na,1,noon\n"}, "times.csv:2: "),
    ({"times": "name,lab,time\na,x,2026-10-12\n"}, "x is not the number"),
    ({"times": "name, lab,time \na,1,2026-10-12\na,1,2026-10-13\n"},
     "times.csv:3: a has a time for lab 1 already"),
    ({"late": '[[extension]]\nwho = "a"\nlab = 1\ndays = 3\n' * 2},
     "a has two extensions for lab 1"),
])
def test_errors_are_one_line(term, changed, said):
    done, status, _ = term(RESULTS, **changed)
    assert status == 2 and said in done, done
    assert done.startswith("marks: ") and done.count("\n") == 1


def test_results_that_are_none(term, tmp_path):
    said, status, _ = term({}, tmp_path)
    assert status == 2 and "no results in folders of submissions" in said
    (tmp_path / "lab1/alice").mkdir(parents=True)
    (tmp_path / "lab1/alice/results.json").write_text("[]", "utf-8")
    said, status, _ = term({}, tmp_path / "lab1")
    assert status == 2 and "not what tools/grade writes" in said
    (tmp_path / "lab1/results.json").write_text("{}", "utf-8")
    said, status, _ = term({}, tmp_path / "lab1")
    assert status == 2 and "are of one tree: move them into a folder" in said
    said, status, _ = term({"lab2/bob": (1, 1, 1), "lab3/bob": (1, 2, 1)})
    assert status == 2 and "bob has results of lab 1 in another folder" in said


def test_the_seed_of_a_group(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("name,seed,group\na,1,g\nb,1,g\nc,2,h\nd,3,h\ne,4,\n",
                    "utf-8")
    assert roster.seeds(roster.read(path)) == {
        "a": 1, "b": 1, "c": 2, "d": 3, "e": 4, "g": 1, "h": None}
    with pytest.raises(LabError, match="must name the columns name, seed"):
        path.write_text("name,group\na,g\n", "utf-8")
        roster.read(path)


def test_seeds_for_those_without(tmp_path):
    """Those that are there stay, a group has one, no two others are equal."""
    path = tmp_path / "roster.csv"
    path.write_text("name,seed,group,note\na,5,,x\nb,,g,\nc,,g,\nd,7,h,\n"
                    "e,,h,\n" + "".join(f"s{n},,,\n" for n in range(50)),
                    "utf-8")
    for new in 53, 0:
        done = execute(sys.executable, "-m", "tools.grading.roster", path)
        assert done.stdout == f"{path}: {new} of 55 seeds are new\n"
        seeds = {s.name: s.seed for s in roster.read(path)}
    assert seeds["a"] == 5 and seeds["d"] == seeds["e"] == 7
    assert seeds["b"] == seeds["c"]
    assert len(set(seeds.values())) == 53
    assert roster.read(path)[0].row["note"] == "x"
