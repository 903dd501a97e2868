"""The heap as the kernel shell's commands show it: their rows, and caches of
the playground for tests."""

import json
import re

import pytest


def records(shell, line):
    return [json.loads(text) for text in shell.command(line).splitlines()]


def rows(text, pattern):
    """The named groups of each line that matches."""
    return [m.groupdict() for m in re.finditer(pattern, text, re.M)]


@pytest.fixture
def box(shell):
    """A cache of 200-byte objects: two slabs of 20, the second half full."""
    shell.command("kmem create box 200; kmem alloc box 30")
    yield "box"
    shell.command("kmem free box all; kmem destroy box")


@pytest.fixture
def audited(shell):
    """A cache in modes FPZU: 6 objects allocated, 4 freed before. Every object
    was allocated by the shell, task 1."""
    shell.command("kmem create spy 100; debug +FPZU spy; "
                  "kmem alloc spy 10; kmem free spy 4")
    yield "spy"
    shell.command("kmem free spy all; kmem destroy spy")


def is_error(text):
    """Whether the output for wrong input is one line that names the command, or
    the usage, which may have several forms."""
    return max(map(len, text.splitlines())) <= 80 and re.fullmatch(
        r"usage: (\w+) .*\n(?: {7}\1 .*\n)*|\w+: \S.*\n", text) is not None
