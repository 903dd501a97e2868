"""The marks of a term, from the results of several labs.

    python3 -m tools.grading.marks --roster roster.csv [--late late.toml]
        [--times times.csv] [--out marks.csv] [--canvas canvas.csv] RESULTS...

RESULTS are folders that tools/grade has written, with a folder for each
submission in them. Prints a table, and what to look at; `--out` has a line for
each student of the roster, `--canvas` what Canvas imports.

A submission is that of the student or of the group whose name it has, and
counts for all members of the group; of several the best mark counts. late.toml
says when each lab is due and what lateness costs, and times.csv (columns name,
lab, time) when each submission was handed in (docs/labs.md).
"""

import argparse
import csv
import datetime
import json
import math
from dataclasses import dataclass, field
from pathlib import Path

from tools.grading import labs, roster
from tools.grading.labs import LabError

ROOT = Path(__file__).resolve().parents[2]
DAY = datetime.timedelta(days=1)


@dataclass
class Result:
    """The result of a submission, as tools/grade wrote it; or why there is
    none."""
    name: str
    lab: int = 0
    score: float = 0
    seed: int = 0
    refused: str = ""


@dataclass
class Mark:
    """What a student has for a lab. `cost` are the late days that cost
    points."""
    result: Result
    late: int
    cost: int
    value: float


@dataclass
class Sheet:
    """A student's line: {lab: Mark}, and notes."""
    student: object
    marks: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)

    @property
    def total(self):
        return round(sum(mark.value for mark in self.marks.values()), 2)


# ---- results ---------------------------------------------------------------

def read_result(path):
    try:
        data = json.loads(path.read_text("utf-8"))
        extra = data["extra_data"]
        if "refused" in extra:
            return Result(path.parent.name, refused=str(extra["refused"]))
        return Result(path.parent.name, int(extra["lab"]),
                      float(data["score"]), int(extra["seed"]))
    except (ValueError, KeyError, TypeError) as e:
        raise LabError(f"{path}: not what tools/grade writes: {e!r}") from e


def read_results(folders):
    """({(lab, submission): Result}, {the same: a line about one without}). The
    lab of what was refused is that of the folder's other results."""
    found, failed = {}, {}
    for folder in map(Path, folders):
        paths = sorted(folder.glob("*/results.json"))
        if (folder / "results.json").exists():
            raise LabError(f"{folder}: results.json, report.txt and junit.xml "
                           "are of one tree: move them into a folder of its "
                           "name")
        if not paths:
            raise LabError(f"{folder}: no results in folders of submissions")
        read = [read_result(path) for path in paths]
        numbers = {result.lab for result in read if not result.refused} or {0}
        for result in read:
            key = result.lab, result.name
            if result.refused:
                failed |= {(lab, result.name): f"{result.name}: not graded in "
                           f"{folder}: {result.refused}" for lab in numbers}
                continue
            if key in found:
                raise LabError(f"{folder}: {result.name} has results of lab "
                               f"{result.lab} in another folder, too")
            found[key] = result
    return found, failed


# ---- lateness --------------------------------------------------------------

class Late:
    """late.toml: when labs are due, and what lateness costs. A submission
    without a time, or of a lab that is never due, is in time."""

    KEYS = {"due": dict, "keep": list, "free": int, "grace": int,
            "extension": list}

    def __init__(self, path, times):
        data = labs.parse(Path(path)) if path else {}
        for key, value in data.items():
            if type(value) is not self.KEYS.get(key):
                raise LabError(f"{path}: {key}: not a key, or not of its type")
        self.path, self.times = path, times
        self.keep = data.get("keep", [])
        self.free = data.get("free", 0)
        self.grace = datetime.timedelta(minutes=data.get("grace", 0))
        self.due = {number(key, path): value
                    for key, value in data.get("due", {}).items()}
        self.more = {}
        for row in data.get("extension", []):
            key, more = extension(row, path)
            if key in self.more:
                raise LabError(f"{path}: {key[0]} has two extensions for lab "
                               f"{key[1]}: write their sum")
            self.more[key] = more
        for value in self.due.values():
            if not isinstance(value, datetime.datetime):
                raise LabError(f"{path}: due: {value} is not a date and time")
        for value in self.keep:
            if not isinstance(value, (int, float)) or not 0 <= value <= 100:
                raise LabError(f"{path}: keep: {value} is no per cent")

    def days(self, result, student):
        """The days that a submission is late for a student, begun ones
        whole."""
        due, time = self.due.get(result.lab), self.times.get(
            (result.lab, result.name))
        if due is None or time is None:
            return 0
        if time.tzinfo is None:
            time = time.replace(tzinfo=due.tzinfo)
        if (due.tzinfo is None) != (time.tzinfo is None):
            raise LabError(f"{self.path}: due {due} has no zone, but a time "
                           "has one")
        more = [self.more.get((who, result.lab), DAY * 0)
                for who in (student.name, student.group)]
        over = time - due - max(more)
        return math.ceil(over / DAY) if over > self.grace else 0

    def per_cent(self, days):
        """What is kept of the points after days that cost something."""
        if days == 0:
            return 100
        return self.keep[days - 1] if days <= len(self.keep) else 0


def extension(row, path):
    """((student or group, lab), more time)."""
    kinds = {"who": str, "lab": int, "days": int}
    if not isinstance(row, dict) or \
            {key: type(value) for key, value in row.items()} != kinds:
        raise LabError(f"{path}: an extension has who, lab and days, as in "
                       'who = "alice", lab = 2, days = 3')
    return (row["who"], row["lab"]), row["days"] * DAY


def number(text, path):
    if not str(text).isdigit():
        raise LabError(f"{path}: {text!s:.20} is not the number of a lab")
    return int(text)


def read_times(path):
    """{(lab, submission): time} of a CSV file; {} without one."""
    if not path:
        return {}
    found = {}
    with roster.table(path, "name", "lab", "time") as rows:
        for row in rows:
            text = row["time"].strip().replace("Z", "+00:00")
            try:
                time = datetime.datetime.fromisoformat(text)
            except ValueError as e:
                raise LabError(f"{path}:{rows.line_num}: {e}") from e
            key = number(row["lab"], path), row["name"].strip()
            if key in found:
                raise LabError(f"{path}:{rows.line_num}: {key[1]} has a time "
                               f"for lab {key[0]} already")
            found[key] = time
    return found


# ---- marks -----------------------------------------------------------------

def submissions_of(student, students):
    """The names that a student's submissions may have, the own one first."""
    names = [student.name]
    if student.group:
        names += [student.group, *(s.name for s in students
                                   if s.group == student.group)]
    return list(dict.fromkeys(names))


def mark(result, student, late, left):
    """The Mark for a result, if `left` late days still cost nothing."""
    days = late.days(result, student)
    cost = max(0, days - left)
    value = round(result.score * late.per_cent(cost) / 100, 2)
    return Mark(result, days, cost, value)


def sheet(student, students, numbers, results, failed, late):
    """A student's Sheet. Free late days are used in the order of the labs."""
    line, left = Sheet(student), late.free
    names = submissions_of(student, students)
    for lab in numbers:
        marks = [mark(results[lab, name], student, late, left)
                 for name in names if (lab, name) in results]
        if not marks:
            line.notes.append(
                f"lab {lab}: " + ("could not be graded" if
                                  any((lab, name) in failed for name in names)
                                  else "nothing handed in"))
            continue
        best = max(marks, key=lambda m: m.value)
        left -= best.late - best.cost
        line.marks[lab] = best
        if len(marks) > 1:
            line.notes.append(f"lab {lab}: best of " + ", ".join(
                m.result.name for m in marks))
        if best.late:
            line.notes.append(
                f"lab {lab}: {best.late} days late, of which {best.cost} cost: "
                f"{late.per_cent(best.cost):g} % of {best.result.score:g}")
    return line


def odd(results, failed, students, late):
    """What an instructor should look at: lines of text."""
    seeds = roster.seeds(students)
    for (lab, name), result in sorted(results.items()):
        if name not in seeds:
            yield f"lab {lab}: {name} is not in the roster"
        elif seeds[name] not in (None, result.seed):
            yield (f"lab {lab}: {name} was graded with seed {result.seed}, and "
                   f"has {seeds[name]} in the roster")
        if lab in late.due and (lab, name) not in late.times:
            yield f"lab {lab}: no time of {name}, which counts as in time"
    for who, lab in late.more:
        if who not in seeds:
            yield f"lab {lab}: an extension of {who}, not in the roster"
    graded = {lab for lab, _ in results}
    for lab, name in sorted(late.times.keys() - results.keys()):
        if lab in graded:
            yield f"lab {lab}: a time of {name}, and no result"
    yield from dict.fromkeys(failed.values())


# ---- output ----------------------------------------------------------------

def write_csv(sheets, numbers, path):
    kept = [key for key in sheets[0].student.row if key != "seed"]
    head = [word for lab in numbers for word in (
        f"lab {lab}", f"lab {lab} points", f"lab {lab} days late")]
    with open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f)
        out.writerow([*kept, *head, "total", "notes"])
        for line in sheets:
            cells = []
            for lab in numbers:
                m = line.marks.get(lab)
                cells += [f"{m.value:g}", f"{m.result.score:g}", m.late] \
                    if m else ["", "", ""]
            out.writerow([*(line.student.row[key] for key in kept), *cells,
                          f"{line.total:g}", " | ".join(line.notes)])


# The columns by which Canvas knows a student, and those of the roster with
# them. The first of them that has a value counts.
CANVAS = {"Student": "student", "ID": "id", "SIS User ID": "sis_user_id",
          "SIS Login ID": "login", "Section": "section"}


def title(lab):
    """The name of the assignment of a lab."""
    return f"Lab {lab}: {labs.load(ROOT, lab).title}"


def write_canvas(sheets, numbers, path):
    """What Canvas imports into its gradebook: students, a column for each
    assignment, and above them the points possible."""
    row = sheets[0].student.row
    if not {"student", "id", "sis_user_id", "login"} & set(row):
        raise LabError("for Canvas the roster needs one of the columns "
                       "student, id, sis_user_id and login")
    with open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f)
        out.writerow([*CANVAS, *map(title, numbers)])
        out.writerow(["Points Possible", *[""] * (len(CANVAS) - 1),
                      *[100] * len(numbers)])
        for line in sheets:
            row = {"student": line.student.name, **line.student.row}
            out.writerow([
                *(row.get(key, "") for key in CANVAS.values()),
                *(f"{line.marks[lab].value:g}" if lab in line.marks else ""
                  for lab in numbers)])


def table(sheets, numbers):
    width = max(len("name"), *(len(line.student.name) for line in sheets))
    lines = ["  ".join([f"{'name':<{width}}", *(f"lab {lab:<2}" for lab in
                                                numbers), "total"])]
    for line in sheets:
        cells = [f"{line.marks[lab].value:>6g}" if lab in line.marks else
                 "     -" for lab in numbers]
        lines.append("  ".join([f"{line.student.name:<{width}}", *cells,
                                f"{line.total:>5g}"]))
        lines += [f"    {note}" for note in line.notes]
    return "\n".join(lines)


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", metavar="RESULTS", nargs="+")
    parser.add_argument("--roster", metavar="FILE", required=True)
    for name in ("late", "times", "out", "canvas"):
        parser.add_argument(f"--{name}", metavar="FILE")
    return parser.parse_args()


def main():
    options = parse()
    students = roster.read(options.roster, required=("name",))
    if not students:
        raise LabError(f"{options.roster}: there is no student")
    results, failed = read_results(options.folders)
    late = Late(options.late, read_times(options.times))
    numbers = sorted({lab for lab, _ in results} | set(late.due))
    sheets = [sheet(student, students, numbers, results, failed, late)
              for student in students]
    print(table(sheets, numbers))
    if options.out:
        write_csv(sheets, numbers, options.out)
    if options.canvas:
        write_canvas(sheets, numbers, options.canvas)
    found = list(odd(results, failed, students, late))
    for line in found:
        print(f"look at {line}")
    return 1 if found else 0


if __name__ == "__main__":
    labs.command("marks", main)
