"""The planted bugs (tools/workshop/bugs) for tests: the row of each in
docs/heap-bugs.md, and the line of the source that is marked with its name.

    MODES, TABLE, WHAT   the chapter's table, without its column SANITIZE
    seen()               that column: a sanitizer's report of a bug in a mode
    marked()             the marked line
    culprit()            the function that it is in
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PAGE = (ROOT / "docs/heap-bugs.md").read_text(encoding="utf-8")
COLUMN = "SANITIZE"


def _read_table():
    """[mode], {bug: {column: cell}}, {bug: what it does}."""
    head, *rows = re.findall(r"^\| (?:bug|`[\w-]+`) \|.*$", _PAGE, re.M)
    columns = [cell.strip() for cell in head.split("|")[3:-1]]
    cells, what = {}, {}
    for row in rows:
        name, text, *found = [c.strip() for c in row.split("|")[1:-1]]
        cells[name.strip("`")] = dict(zip(columns, found, strict=True))
        what[name.strip("`")] = text
    return [c for c in columns if c != COLUMN], cells, what


MODES, TABLE, WHAT = _read_table()


def seen(bug, mode):
    """(kind of report, when) of a sanitizer's first report, by the column's
    cell alone; None: no report. A cell has parts, separated by ";": a kind in
    the plain layout, or after "all:" or a mode's letter one in all modes or
    in that mode; after a comma the time, if not at once."""
    for way in TABLE[bug][COLUMN].split(";"):
        where, _, said = way.strip().rpartition(": ")
        kind, _, when = said.partition(", ")
        if kind != "·" and (where == "all" or
                            (where in mode if where else mode in "-V")):
            return kind, when or "at once"
    return None


def marked(bug):
    """(file, line) of the one marked line of a bug."""
    found = [(str(path.relative_to(ROOT)), number)
             for path in (ROOT / "tools/workshop/bugs").glob("*.c")
             for number, line in enumerate(path.read_text("utf-8").splitlines(),
                                           1)
             if re.search(rf"\S.*/\* culprit: {bug} \*/$", line)]
    assert len(found) == 1, f"lines marked with {bug}: {found}"
    return found[0]


def culprit(bug):
    """The function with that line."""
    file, line = marked(bug)
    for text in reversed((ROOT / file).read_text("utf-8").splitlines()[:line]):
        if found := re.match(r"\w.*?(\w+)\(", text):
            return found[1]
    raise AssertionError(f"{file}:{line} is in no function")


def reports(result):
    """{bug: (kind, when, function)} of the sanitizers' reports in a run."""
    return {e["name"]: (e["kind"], e["when"], e["by"].split("+")[0])
            for e in result.named.get("bug-sanitizer", ())}


def expected(bugs, mode):
    """The value that `reports` must have for these bugs."""
    return {bug: (*seen(bug, mode), culprit(bug)) for bug in bugs
            if seen(bug, mode)}


def differences(result, bugs, mode):
    """Reports of the sanitizers that the chapter does not expect for these
    bugs, and expected ones that are missing: {} if there are none."""
    said, wanted = reports(result), expected(bugs, mode)
    return {bug: (said.get(bug), wanted.get(bug))
            for bug in said.keys() | wanted.keys()
            if said.get(bug) != wanted.get(bug)}
