"""Prints what is a student's own in a lab, because it follows from the seed of
the hand-out: `make mine`; in the whole tree, `make mine LAB=5 SEED=7`.

lab.toml names a file of the lab as `mine`; its text(seed) is printed.
"""

import argparse

from tools.grading import grade, labs, questions


def main():
    parser = argparse.ArgumentParser(
        prog="make mine", description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lab")
    parser.add_argument("--seed")
    parser.set_defaults(here=True, name=None, roster=None, open=False)
    lab, seed, *_ = grade.which(grade.ROOT, grade.ROOT, parser.parse_args())
    if not lab.mine:
        raise labs.LabError(f"lab {lab.number} is the same for everybody, but "
                            "for what its page says")
    print(questions.load_checker(
        grade.ROOT / lab.folder / lab.mine)["text"](seed))


if __name__ == "__main__":
    labs.command("mine", main, grade.Skipped)
