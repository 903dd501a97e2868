"""The roster of a course: a CSV file with a line for each student.

    name,seed,group,section,email
    alice,17,g1,a,alice@example.edu

`name` is that of the student's submissions, and `seed` that of the hand-outs.
Students with the same `group` may hand in one submission, named as the group or
as one of them. Only `name` and `seed` are required; other columns are kept.
"""

import csv
import re
from dataclasses import dataclass

from tools.grading.labs import LabError


@dataclass
class Student:
    name: str
    seed: int
    group: str      # or ""
    row: dict       # all columns


def seed_number(text):
    """The seed that is written so."""
    if not re.fullmatch(r"\d{1,9}", text):
        raise LabError(f"{text:.20} is no seed: a number of at most 9 digits")
    return int(text)


def read(path, required=("name", "seed")):
    """The students of a roster, checked. Without a column of seeds they are
    0."""
    students = {}
    with open(path, newline="", encoding="utf-8-sig") as f:
        rows = csv.DictReader(f, restval="")
        if not set(required) <= set(rows.fieldnames or ()):
            raise LabError(f"{path}: its first line must name the columns "
                           f"{' and '.join(required)}")
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
                seed = seed_number(row.get("seed", "0"))
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
