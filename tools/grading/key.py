"""The answer key of a lab, for its instructor: `make key LAB=3 SEED=7`.

    python3 -m tools.grading.key --lab 3 [--seed 7 | --roster seeds.csv]

Prints each question and its right answer, as an answers.toml would have it: for
a seed, or for all seeds of a roster (docs/labs.md), each below the names that
have it. The answers come from the lab's solve(), with the solution's kernel.
"""

import argparse

from tools.grading import grade, grading, labs, questions, roster
from tools.grading.budget import EACH, WHOLE


def asked(number):
    """The lab with its solve(), if it has questions and this is not a
    hand-out."""
    lab = labs.load(grade.ROOT, number)
    if (grade.ROOT / labs.STAMP).exists():
        raise labs.LabError("a hand-out has no answers")
    if not lab.questions:
        raise labs.LabError(f"lab {lab.number} has no questions")
    return lab, questions.load_checker(grade.ROOT / lab.answers[1])["solve"]


def seeds(options):
    """{seed: names that have it}, in the order of the roster."""
    found = {}
    for name, seed in roster.chosen(options.seed, options.roster).items():
        found.setdefault(seed, []).append(name)
    return found


def key(lab, solve, machine, names):
    """The text for one seed."""
    answers = solve(machine)
    if set(answers) != {q.id for q in lab.questions}:
        raise grading.GradeError("the lab's solve() has not found all answers")
    lines = [f"# {grading.clean(name)}" for name in names if name]
    for q in lab.questions:
        lines += ["", f"# {q.text}",
                  questions.write_answers(
                      {q.id: answers[q.id]}).decode().rstrip()]
    return "\n".join([f"# lab {lab.number}, {lab.title}: seed {machine.seed}",
                      *lines, ""])


def main():
    parser = argparse.ArgumentParser(
        prog="make key", description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lab", required=True)
    parser.add_argument("--seed", default="")
    parser.add_argument("--roster", default="")
    parser.add_argument("--work", help="folder to build in (build/grade)")
    parser.set_defaults(patience=EACH, budget=WHOLE)
    options = parser.parse_args()
    lab, solve = asked(options.lab)
    grader = grade.Grader(options)
    for seed, names in seeds(options).items():
        with grader.pristine(lab, seed) as machine:
            print(key(lab, solve, machine, names), flush=True)


if __name__ == "__main__":
    labs.command("key", main, grading.GradeError)
