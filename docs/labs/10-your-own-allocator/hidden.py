"""The kernel options of the tests of lab 10 that only the grader runs: the
seed of their traces, which no hand-out has."""

import random

TERM = "2026-1"  # another text each term


def append(seed):
    return f"unseen={random.Random(f'{TERM} {seed}').randrange(1, 10 ** 8)}"
