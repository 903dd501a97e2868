"""Grades a lab's solution ten times on a busy machine: `make grade-soak LAB=n`.

    python3 -m tools.grading.soak --lab 2 [--times 10]

During each grading two busy loops run per processor. All results must be equal,
byte for byte, and earn all points. Exit status 1 if not.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.grading import grade as grader
from tools.grading import labs, questions, workshop
from tools.grading.budget import EACH, WHOLE
from tools.grading.grading import GradeError

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ("results.json", "junit.xml", "report.txt")


def solution(lab, folder):
    """Writes the hand-in files of the solution."""
    for name, text in labs.hand_in(ROOT, lab).items():
        workshop.write(folder / name, text.encode())
    if lab.questions:
        options = argparse.Namespace(patience=EACH, budget=WHOLE, work=None)
        checker = questions.load_checker(ROOT / lab.answers[1])
        with grader.Grader(options).pristine(lab, 0) as machine:
            (folder / lab.answers[0]).write_bytes(
                questions.write_answers(checker["solve"](machine)))


def grade(lab, tree, out):
    """Grades once; returns the bytes of all results."""
    began = time.monotonic()
    done = subprocess.run(["bash", ROOT / "tools/grade", "--lab",
                           str(lab.number), "--out", out, tree], check=False,
                          capture_output=True, encoding="utf-8")
    said = done.stdout.splitlines()
    print(f"{time.monotonic() - began:6.1f} s  status {done.returncode}  "
          f"{said[-1] if said else done.stderr.strip()}", flush=True)
    return done.returncode, [(Path(out) / name).read_bytes()
                             for name in RESULTS if (Path(out) / name).exists()]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lab", required=True)
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args()
    lab = labs.load(ROOT, options.lab)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "solution"
        solution(lab, tree)
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                 for _ in range(2 * (os.cpu_count() or 1))]
        try:
            runs = [grade(lab, tree, f"{folder}/{n}")
                    for n in range(options.times)]
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
    different = sum(run != runs[0] for run in runs)
    print(f"soak: {len(runs)} results, {different} of them different from the "
          "first")
    return int(bool(different or runs[0][0]))


if __name__ == "__main__":
    labs.command("soak", main, GradeError)
