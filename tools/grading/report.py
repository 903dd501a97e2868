"""Reports of a grade: a table with explanations, results.json in Gradescope's
format, JUnit XML, and rows of a CSV. None contains a time, a path of this
machine or a key, so two runs give the same bytes."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

from tools.grading.grading import LINES, NOT_CHECKED, clean
from tools.grading.labs import Test


# Of summary.csv, beside one for each test and question.
COLUMNS = ["submission", "lab", "seed", "score", "notes"]
KEPT = "your instructor's grader checks it"

# Where a hint would give away what nobody has tried. (Without a kernel the
# compiler's errors at the top are the hint.)
NOT_TRIED = {"no kernel", "no time", "not written", "no answer"}


def debug_line(outcome):
    """The command that runs this test alone under GDB."""
    test = outcome.item
    words = " ".join(filter(None, [f"grade={test.name}", test.append]))
    return f'make gdb APPEND="{words}"'


def explanation(outcome):
    """Lines that explain lost points, with the next step."""
    if outcome.state == "pass":
        return []
    if outcome.state == NOT_CHECKED:
        return outcome.text or [KEPT]
    lines = list(outcome.text)
    if outcome.state in NOT_TRIED:
        return lines
    lines.append(f"hint: {outcome.item.hint}")
    if isinstance(outcome.item, Test):
        lines.append(f"alone: {debug_line(outcome)}")
    return lines


def _points(outcome):
    return f"{outcome.score:g}/{outcome.item.points}"


def _row(outcome, width):
    tasks = ", ".join(outcome.item.tasks)
    which = f"task{'s' * (',' in tasks)} {tasks}" if tasks else "all tasks"
    return (f"{outcome.item.name:<{width}}  {_points(outcome):>7}  "
            f"{outcome.state:<12}  {which}")


def _unchecked(outcomes, width):
    """One line about all answers, or tests, that only the instructor can
    check."""
    left = [o.item.points for o in outcomes if o.kept]
    if not left:
        return []
    tests = any(isinstance(o.item, Test) for o in outcomes if o.kept)
    name = f"{len(left)} {'test' if tests else 'answer'}{'s' * (len(left) > 1)}"
    return [f"{name:<{width}}  {f'?/{sum(left)}':>7}  {NOT_CHECKED:<12}  "
            f"{KEPT}"]


def _build_errors(grade):
    """The errors of the build, cleaned: they quote the submission's source."""
    return [clean(line.expandtabs())
            for line in grade.build_errors.splitlines()[:LINES]]


def table(grade):
    """The whole report, as text."""
    lab = grade.lab
    width = max(len(o.item.name) for o in grade.outcomes)
    stage = ", the open stage" if lab.opened else ""
    lines = [f"Lab {lab.number}: {lab.title}{stage}", ""]
    lines += [f"note: {line}" for line in grade.problems]
    if grade.build_errors:
        lines += ["the kernel does not build:"]
        lines += ["    " + line for line in _build_errors(grade)]
    for outcome in grade.outcomes:
        if not outcome.kept:
            lines.append(_row(outcome, width))
            lines += ["    " + line for line in explanation(outcome)]
    lines += _unchecked(grade.outcomes, width)
    left = sum(o.item.points for o in grade.outcomes if o.kept)
    most = 100 + (lab.open.points if lab.opened else 0)
    lines += ["", f"{'total':<{width}}  {grade.score:g}/{most - left}" +
              (f", and {left} points that are not checked here" if left
               else "")]
    return "\n".join(lines) + "\n"


def gradescope(grade):
    """results.json, as Gradescope reads it."""
    tests = [{"name": o.item.name, "number": str(number),
              "score": o.score, "max_score": o.item.points,
              "status": "passed" if o.state == "pass" else "failed",
              "output": "\n".join([o.state, *explanation(o)]),
              "visibility": "visible"}
             for number, o in enumerate(grade.outcomes, 1)]
    if grade.notes:
        tests.append({"name": "notes for the instructor", "score": 0,
                      "max_score": 0, "output": "\n".join(grade.notes),
                      "visibility": "hidden"})
    said = [*grade.problems]
    if grade.build_errors:
        said += ["The kernel does not build:", *_build_errors(grade)]
    return {"score": grade.score, "output": "\n".join(said),
            "output_format": "text", "test_output_format": "text",
            "visibility": "visible", "stdout_visibility": "hidden",
            "extra_data": {"lab": grade.lab.number, "seed": grade.seed,
                           "version": grade.version}, "tests": tests}


def junit(grade):
    failures = [o for o in grade.outcomes if o.state != "pass"]
    suite = ElementTree.Element(
        "testsuite", name=f"lab {grade.lab.number}",
        tests=str(len(grade.outcomes)), failures=str(len(failures)))
    for outcome in grade.outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"lab{grade.lab.number}",
            name=outcome.item.name)
        if outcome in failures:
            failure = ElementTree.SubElement(case, "failure",
                                             message=outcome.state)
            failure.text = "\n".join(clean(line)
                                     for line in explanation(outcome))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode") + "\n"


def write(grade, folder):
    """The files of one grade."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(
        json.dumps(gradescope(grade), indent=2) + "\n", encoding="utf-8")
    (folder / "junit.xml").write_text(junit(grade), encoding="utf-8")
    (folder / "report.txt").write_text(table(grade), encoding="utf-8")


def refuse(reason, folder):
    """The same of a tree that cannot be graded, in the place of earlier
    ones."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "junit.xml").unlink(missing_ok=True)
    said = f"not graded: {clean(reason)}\n"
    (folder / "report.txt").write_text(said, encoding="utf-8")
    (folder / "results.json").write_text(json.dumps(
        {"score": 0, "output": said, "extra_data": {"refused": clean(reason)}},
        indent=2) + "\n", encoding="utf-8")


# ---- many ------------------------------------------------------------------

def _first_error(grade):
    """Why there is no kernel, or ""."""
    lines = grade.build_errors.splitlines()
    return clean(next((line for line in lines if "error: " in line),
                      *lines[:1])) if lines else ""


def _lost(grade):
    """What a submission lost, in a line."""
    lost = [o for o in grade.outcomes if o.state != "pass"]
    if grade.build_errors:
        return f"does not build: {_first_error(grade)}"
    if not lost:
        return "all earned"
    if len(lost) < len(grade.outcomes):
        return "lost: " + ", ".join(o.item.name for o in lost)
    return "nothing written" if {o.state for o in lost} <= NOT_TRIED \
        else f"lost: all {len(lost)}"


def summary(rows):
    """A table of many grades: rows are (name, Grade or the error's text)."""
    width = max(len(name) for name, _ in rows)
    lines = []
    for name, grade in rows:
        if isinstance(grade, str):
            lines.append(f"{name:<{width}}  not graded: {grade}")
            continue
        said = _lost(grade) + \
            (f"; files not taken: {len(grade.problems)}"
             if grade.problems else "") + \
            (f"; notes: {len(grade.notes)}" if grade.notes else "")
        lines.append(f"{name:<{width}}  {grade.score:>5g}  {said}")
    return "\n".join(lines) + "\n"


def write_csv(rows, path):
    """One line per submission, one column per test. Lines of other submissions
    that the file has remain."""
    items, old = [], []
    labs = {"", *(str(grade.lab.number) for _, grade in rows
                  if not isinstance(grade, str))}
    if path.exists():
        with open(path, newline="", encoding="utf-8", errors="replace") as f:
            reader = csv.DictReader(f)
            old = [row for row in reader if row.get("lab") in labs]
            items = [name for name in reader.fieldnames or ()
                     if old and name not in COLUMNS]
    for _, grade in rows:
        if not isinstance(grade, str):
            items += [o.item.name for o in grade.outcomes
                      if o.item.name not in items]
    with open(path, "w", newline="", encoding="utf-8",
              errors="backslashreplace") as f:  # a name may be in Latin-1
        out = csv.DictWriter(f, [*COLUMNS[:-1], *items, COLUMNS[-1]], "",
                             extrasaction="ignore")
        out.writeheader()
        for name, grade in rows:
            if isinstance(grade, str):
                out.writerow({"submission": name, "notes": grade})
                continue
            first = _first_error(grade)
            out.writerow({
                "submission": name, "lab": grade.lab.number,
                "seed": grade.seed, "score": grade.score,
                **{o.item.name: o.score for o in grade.outcomes},
                "notes": " | ".join([*grade.problems, *grade.notes,
                                     *[first] * bool(first)])})
        graded = {name for name, _ in rows}
        out.writerows(row for row in old if row.get("submission") not in graded)
