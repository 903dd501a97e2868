"""Packs what is graded of a hand-out: `make handin`.

    python3 -m tools.grading.handin [--force]

Writes the files of lab.toml and .lab to build/handin-labN.tar.gz, lists them,
and prints a receipt: the SHA-256 of the archive, which is the same for the same
files. What does not build, contains what no hand-in may, or is as it was handed
out, is packed only with --force. Points are `make grade`'s business.
"""

import argparse
import re
import sys
from hashlib import sha256
from pathlib import Path

from tools.grading import archive, grade, labs, questions, screen, workshop
from tools.grading.budget import Budget
from tools.grading.labs import LabError

ROOT = Path(__file__).resolve().parents[2]


def unusable(lab, sheet):
    """A line about each answer that cannot be right as it is written."""
    problem = questions.read_answers(sheet)[1]
    if problem:
        return [problem]
    return [f"answers.toml: {o.item.id} {o.text[0]}"
            for o in questions.check(lab, sheet) if o.state == "wrong form"] + \
        questions.unknown(lab, sheet)


def problems(lab, handed, before):
    """What speaks against handing in these files: lines of text."""
    found = list(handed.problems) + unusable(
        lab, handed.files.get(str(lab.answers[0]), b""))
    if not any(is_edited(name, handed, before) for name in lab.files):
        found.append("no file is edited: all are as they were handed out")
    budget = Budget()
    errors = workshop.make(ROOT, budget,
                           options=workshop.kind(ROOT, lab)[1]) or \
        screen.errors(ROOT, lab, budget)
    if errors:
        found += ["it does not build:",
                  *("    " + line for line in errors.splitlines())]
    return found


def is_edited(name, handed, before):
    data = handed.files.get(name)
    return data is not None and \
        sha256(data).hexdigest() != before.get(name)


def listing(lab, handed, before):
    """A line for each file in the archive, and about what is missing there."""
    width = max(map(len, lab.files))
    for name, data in handed.files.items():
        state = "edited" if is_edited(name, handed, before) else \
            "as handed out"
        yield f"    {name:<{width}}  {len(data):>7,} bytes, {state}"
    text = b"".join(handed.files.values()).decode()
    ids = lab.tasks + [lab.open.name if lab.open else ""]
    left = [task for task in ids if f'lab_missing("{task}"' in text]
    if left:
        yield f"not written yet: task {', '.join(left)}"
    sheet = handed.files.get(str(lab.answers[0]), b"")
    answers = questions.read_answers(sheet)[0]
    empty = [q.id for q in lab.questions if answers.get(q.id, "") == ""]
    if empty:
        yield f"no answer yet: {', '.join(empty)}"


def stamp():
    """.lab, with the version of the compiler: what depends on it can differ in
    the grader's kernel."""
    text = (ROOT / labs.STAMP).read_text("utf-8-sig")
    return (f'gcc = "{workshop.gcc(ROOT)}"\n' +
            re.sub(r"(?m)^gcc = .*\n", "", text)).encode()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--force", action="store_true",
                        help="pack in spite of all problems")
    options = parser.parse_args()
    said = grade.stamp(ROOT)
    if "lab" not in said:
        raise LabError("this tree is no hand-out: it has no .lab that names "
                       "a lab")
    lab, before = labs.load(ROOT, said["lab"]), said.get("files", {})
    handed = workshop.collect(ROOT, lab.files)
    found = problems(lab, handed, before)
    for line in found:
        print(f"handin: {line}", file=sys.stderr)
    if found and not options.force:
        print("handin: nothing is packed; FORCE=1 packs it all the same",
              file=sys.stderr)
        return 1
    path = Path(f"build/handin-lab{lab.number}{archive.SUFFIX}")
    archive.pack(ROOT / path, {**handed.files, labs.STAMP: stamp()})
    print(f"{path}: lab {lab.number}, {lab.title}")
    for line in listing(lab, handed, before):
        print(line)
    print(f"receipt: {sha256((ROOT / path).read_bytes()).hexdigest()}")
    return 0


if __name__ == "__main__":
    labs.command("handin", main)
