"""Lays out hand-ins for JPlag, which finds copies among them.

    python3 -m tools.grading.jplag --lab 2 --out dir TREE...

Writes the C files that the lab hands in: those of each TREE, a folder or an
archive, to dir/submissions/NAME, those that were handed out to dir/base, whose
matches do not count, and the solution to dir/solutions/solution. Prints the
command that compares them.
"""

import argparse
import sys
from pathlib import Path

from tools.grading import archive, grade, labs, workshop
from tools.grading.archive import ArchiveError
from tools.grading.lab import empty_folder

ROOT = Path(__file__).resolve().parents[2]


def write(folder, files):
    for name, data in files.items():
        workshop.write(folder / name, data)


def lay_out(lab, trees, out):
    """Returns how many trees were taken. What cannot be is named."""
    names = [name for name in lab.files if name.endswith(".c")]
    write(out / "base", workshop.as_handed_out(ROOT, lab, names))
    solution = labs.hand_in(ROOT, lab)
    write(out / "solutions/solution",
          {name: solution[name].encode() for name in names})
    taken = 0
    for tree, name in zip(trees, grade.folder_names(trees)):
        try:
            with archive.opened(tree) as (folder, notes):
                handed = workshop.collect(folder, names)
        except (ArchiveError, OSError) as e:
            print(f"{tree}: {e}", file=sys.stderr)
            continue
        if not handed.files:
            print(f"{tree}: has no source of lab {lab.number}", file=sys.stderr)
            continue
        for line in notes:
            print(f"{tree}: {line}", file=sys.stderr)
        write(out / "submissions" / name, handed.files)
        taken += 1
    return taken


def main():
    parser = argparse.ArgumentParser(
        prog="jplag", description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trees", metavar="TREE", nargs="+")
    parser.add_argument("--lab", metavar="N", required=True)
    parser.add_argument("--out", metavar="DIR", required=True)
    options = parser.parse_args()
    lab = labs.load(ROOT, options.lab)
    out = empty_folder(options.out)
    taken = lay_out(lab, options.trees, out)
    print(f"{taken} of {len(options.trees)} submissions; compare them with\n"
          f"java -jar jplag.jar {out}/submissions -l c -bc {out}/base "
          f"-old {out}/solutions")
    return 0 if taken == len(options.trees) else 2


if __name__ == "__main__":
    labs.command("jplag", main)
