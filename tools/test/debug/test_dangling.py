"""Uses after a free, and wrong frees, that `make culprit` leads to: each patch
of tools/test/debug/dangling plants one in a copy of the tree. Its head says
which commands show it, and which function of which file must be named, and as
what: as unbalanced, or as the one that freed. The function is near the top of
the stack: functions that change counts for their callers come before it."""
# Tests: tools/replay/, user/lib/malloc.c

import os
import re
import subprocess
import sys

import pytest

from conftest import ROOT, copy_tree, tiers
from tools.replay.balance import unbalanced
from tools.run import watchdog

pytestmark = pytest.mark.plain

PATCHES = {path.stem: path for path in
           sorted((ROOT / "tools/test/debug/dangling").glob("*.patch"))}
QUICK = ["grep-frees-a-line-twice"]
NEAR = 4  # functions of the stack


@pytest.fixture(scope="module")
def tree(shared_path):
    """A built copy of the tree."""
    copy_tree(shared_path)
    return shared_path


def run(tree, *command, **settings):
    clean = {k: v for k, v in os.environ.items() if k != "BUILD"}
    done = watchdog.run(command, cwd=tree,
                        encoding="utf-8", stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, env={**clean, **settings})
    assert done.returncode == 0, done.stdout
    return done.stdout


def head_of(patch):
    return re.search(r"^Commands: (.*)\nNamed: (.*): (\w+) at (\S+)$",
                     patch.read_text(encoding="utf-8"), re.M).groups()


def test_every_patch_fits():
    assert len(PATCHES) == 10
    for patch in PATCHES.values():
        run(ROOT, "git", "apply", "--check", str(patch))


@pytest.mark.parametrize("name", tiers(
    QUICK, [name for name in PATCHES if name not in QUICK]))
def test_the_wrong_function_is_named(tree, name):
    commands, role, function, file = head_of(PATCHES[name])
    run(tree, "git", "apply", str(PATCHES[name]))
    try:
        run(tree, "make", "-j2", "workshop")
        said = run(tree, sys.executable, "-m", "tools.run.replay", "culprit",
                   "build/slate-workshop.elf", CMD=commands,
                   APPEND="kmem.debug=FPZU")
    finally:
        run(tree, "git", "apply", "-R", str(PATCHES[name]))
    stack = re.search(rf"^{role}: .*\n(?: .*\n)*?((?:  #\d.*\n)+)", said, re.M)
    assert stack, said
    assert any(f" {function} at {file}:" in line
               for line in stack[1].splitlines()[:NEAR]), said


# ---- the rule that finds the unbalanced step --------------------------------

P, C, NONE = frozenset("P"), frozenset("C"), frozenset()


@pytest.mark.parametrize("steps,last,wanted", [
    # A child's place is filled without a count; the parent drops its own.
    ([(1, 1, NONE), (-1, 1, P | C)], C, (0, ["C", "P"])),
    # The same, while another task takes and drops one.
    ([(1, 1, NONE), (1, 2, P | C), (-1, 2, P | C), (-1, 1, P | C)], C,
     (0, ["C", "P"])),
    # Two are counted; one is dropped twice.
    ([(1, 1, NONE), (1, 2, P), (-1, 2, P), (-1, 2, P)], P, (3, [])),
    # A place that pointed to an object that was there before.
    ([(1, 1, C), (-1, 1, P | C)], C, (-1, ["C"])),
    # Nothing points to the object any more.
    ([(1, 1, NONE), (-1, 1, P)], NONE, None),
    ([], C, None),
])
def test_the_unbalanced_step(steps, last, wanted):
    assert unbalanced(steps, last) == wanted
