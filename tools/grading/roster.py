"""The roster of a course: a CSV file with a line for each student.

    name,seed,group,section,email
    alice,17,g1,a,alice@example.edu

    python3 -m tools.grading.roster roster.csv      # seeds for those without

`name` is that of the student's submissions, and `seed` that of the hand-outs.
Students with the same `group` may hand in one submission, named as the group or
as one of them. Only `name` and `seed` are required; other columns are kept.
"""

import argparse
import contextlib
import csv
import os
import re
import secrets
from dataclasses import dataclass

from tools.grading import labs
from tools.grading.labs import LabError


@dataclass
class Student:
    name: str
    seed: int       # or None
    group: str      # or ""
    row: dict       # all columns


def seed_number(text):
    """The seed that is written so."""
    if not re.fullmatch(r"\d{1,9}", text):
        raise LabError(f"{text:.20} is no seed: a number of at most 9 digits")
    return int(text)


@contextlib.contextmanager
def table(path, *columns):
    """A csv.DictReader of a file that must have these columns."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as f:
            rows = csv.DictReader(f, restval="")
            rows.fieldnames = [n.strip() for n in rows.fieldnames or ()]
            if not set(columns) <= set(rows.fieldnames):
                raise LabError(f"{path}: its first line must name the columns "
                               f"{', '.join(columns)}")
            yield rows
    except OSError as e:
        raise LabError(f"{path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise LabError(f"{path}: is not UTF-8") from e
    except csv.Error as e:
        raise LabError(f"{path}: {e}") from e


def read(path, required=("name", "seed")):
    """The students of a roster, checked. Seeds may be missing if they are not
    required."""
    students = {}
    with table(path, *required) as rows:
        for row in rows:
            place = f"{path}:{rows.line_num}"
            if None in row:
                raise LabError(f"{place}: has more columns than the first "
                               "line")
            row = {key: value.strip() for key, value in row.items()}
            name = row["name"]
            if not name or name in students:
                raise LabError(f"{place}: " + (f"{name} is there twice" if name
                                               else "there is no name"))
            try:
                seed = seed_number(row["seed"]) if row.get("seed") or \
                    "seed" in required else None
            except LabError as e:
                raise LabError(f"{place}: {e}") from e
            students[name] = Student(name, seed, row.get("group", ""), row)
    for student in students.values():
        if student.group in students and student.group != student.name:
            raise LabError(f"{path}: {student.group} is a group and a student")
    return list(students.values())


def seeds(students):
    """{name of a student or group: seed}. That of a group whose members have
    several is None."""
    found = {}
    for student in students:
        if student.group:
            one = found.setdefault(student.group, student.seed)
            found[student.group] = student.seed if one == student.seed else None
    return {**found, **{s.name: s.seed for s in students}}


def chosen(seed, path):
    """{name: seed} of SEED, whose name is "", or of the roster `path`, as the
    user typed them."""
    if not path:
        try:
            return {"": seed_number(seed or "0")}
        except LabError as e:
            raise LabError(f"SEED: {e}") from e
    if seed:
        raise LabError("SEED is one for all, ROSTER has those of each student")
    return {student.name: student.seed for student in read(path)}


# ---- seeds for all ---------------------------------------------------------

def give_seeds(students):
    """Gives a random seed to each student without one, the same to a group;
    returns how many got one."""
    groups = {s.group: s.seed for s in students
              if s.group and s.seed is not None}
    without = [s for s in students if s.seed is None]
    for student in without:
        student.seed = groups.get(student.group, secrets.randbelow(10 ** 9))
        student.row["seed"] = str(student.seed)
        if student.group:
            groups[student.group] = student.seed
    return len(without)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("roster", metavar="FILE")
    path = parser.parse_args().roster
    students = read(path, required=("name",))
    if not students:
        raise LabError(f"{path}: there is no student")
    count = give_seeds(students)
    if count:
        with open(path + ".new", "w", newline="", encoding="utf-8") as f:
            out = csv.DictWriter(f, students[0].row)
            out.writeheader()
            out.writerows(student.row for student in students)
        os.replace(path + ".new", path)
    print(f"{path}: {count} of {len(students)} seeds are new")


if __name__ == "__main__":
    labs.command("roster", main)
