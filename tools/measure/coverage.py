"""Branch and line coverage of mm/ by the host tests: `make coverage`.

    python3 -m tools.measure.coverage build/coverage build/coverage.json

Runs DIR/mmtest, which was built with --coverage, and asks gcov what ran. The
branches of an MM_ASSERT are not counted: one of the two is taken only when
the allocator is broken. Writes flat keys, in per cent: mm.branch, mm.line,
and both for each file.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASSERTION = re.compile(r"\bMM_ASSERT\s*\(")


class File:
    """What ran of one source file, over all objects that contain it."""

    def __init__(self):
        self.lines = defaultdict(int)     # line -> times executed
        self.branches = defaultdict(int)  # (function, line, n) -> times taken

    def add(self, function, record, skip):
        number = record["line_number"]
        self.lines[number] += record["count"]
        if number in skip:
            return
        for n, branch in enumerate(record["branches"]):
            if not branch.get("throw"):
                self.branches[function, number, n] += branch["count"]

    @staticmethod
    def share(counts):
        """(how many ran, how many there are)."""
        return sum(1 for c in counts.values() if c), len(counts)

    def missed(self):
        """Lines with a branch that was never taken."""
        return sorted({key[1] for key, c in self.branches.items() if not c})


def assertion_lines(path):
    """The numbers of all lines that belong to an MM_ASSERT(…);"""
    lines = (ROOT / path).read_text().splitlines()
    numbers = set()
    inside = False
    for number, line in enumerate(lines, 1):
        inside = inside or bool(ASSERTION.search(line))
        if inside:
            numbers.add(number)
            inside = not line.rstrip().endswith(";")
    return numbers


def gcov(folder):
    """gcov's records on every object's sources, one JSON document each."""
    notes = [str(p.resolve()) for p in sorted((folder / "mm").glob("*.gcda"))]
    done = subprocess.run(["gcov", "--json-format", "--stdout", "-b", *notes],
                          cwd=ROOT, check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def collect(folder):
    files, skip = defaultdict(File), {}
    for document in gcov(folder):
        for source in document["files"]:
            name = os.path.normpath(source["file"])
            if not re.fullmatch(r"mm/(debug/)?[^/]+\.[ch]", name):
                continue
            if name not in skip:
                skip[name] = assertion_lines(name)
            for record in source["lines"]:
                files[name].add(record.get("function_name"), record, skip[name])
    return files


def per_cent(share):
    ran, there = share
    return 100.0 * ran / there if there else 100.0


def table(files):
    """Prints a line per file; returns the figures under flat keys."""
    figures = {}
    total = {"branch": [0, 0], "line": [0, 0]}
    print(f"{'file':<22} {'branches':>14} {'':>7} {'lines':>12} {'':>7}  "
          "lines with a branch not taken")
    for name, data in sorted(files.items()):
        shares = {"branch": File.share(data.branches),
                  "line": File.share(data.lines)}
        for kind, share in shares.items():
            figures[f"{name}.{kind}"] = round(per_cent(share), 2)
            total[kind] = [a + b for a, b in zip(total[kind], share)]
        row(name, shares, " ".join(map(str, data.missed())))
    for kind, share in total.items():
        figures[f"mm.{kind}"] = round(per_cent(share), 2)
    row("mm", total, "")
    return figures


def row(name, shares, note):
    cells = [f"{ran:>6} /{there:>6} {per_cent((ran, there)):>6.1f}%"
             for ran, there in shares.values()]
    print(f"{name:<22} {cells[0]} {cells[1]}  {note}".rstrip())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="where mmtest was built")
    parser.add_argument("out", type=Path, help="the JSON file to write")
    args = parser.parse_args()

    for old in args.folder.rglob("*.gcda"):
        old.unlink()
    program = args.folder / "mmtest"
    done = subprocess.run([str(program)], cwd=ROOT, check=False,
                          capture_output=True, text=True, errors="replace")
    if done.returncode:
        sys.stderr.write(done.stdout[-3000:] + done.stderr[-3000:])
        sys.exit(f"coverage: {program} failed; its figures would mislead")
    figures = table(collect(args.folder))
    print("Branches of MM_ASSERT are not counted: one side of each is taken "
          "only when\nthe allocator is broken.")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
