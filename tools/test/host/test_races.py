"""mm/ on virtual processors, with a switch at any access to memory or lock:
schedules from seeds (mm/tests/races/)."""

import os
import re
import subprocess

import pytest

from conftest import BUILD, execute, tiers

pytestmark = pytest.mark.plain

MMRACES = BUILD / "races" / "mmraces"
SEEDS = tiers([(1, 10)], [(1_000, 300)], samples=[(500, 30)])


def mmraces(*arguments, program=MMRACES):
    return execute(program, *arguments)


def digest(*arguments, program=MMRACES):
    """A number that is the same if every schedule was: the exclusive or of one
    for each."""
    done = mmraces(*arguments, program=program)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    return int(re.search(r"digest (\w+)", done.stdout)[1], 16)


@pytest.mark.parametrize(("first", "count"), SEEDS)
@pytest.mark.parametrize("points", ["accesses", "locks"])
def test_schedules_of_seeds(points, first, count):
    digest(*(["-l"] if points == "locks" else []), first, count)


def test_a_seed_gives_the_same_schedules_whatever_ran_before():
    assert digest(1, 2) == digest(1) ^ digest(2)
    assert digest("-j", 1, 2) == digest(1, 2) != digest("-l", 1, 2)


def test_the_layout_of_the_program_has_no_say(tmp_path):
    """Linked in another order, it runs the same schedules."""
    objects = sorted(MMRACES.parent.rglob("*.o"), reverse=True)
    subprocess.run([os.environ.get("HOSTCC", "gcc"), "-no-pie",
                    "-Wl,--gc-sections", *objects, "-o", tmp_path / "mmraces"],
                   check=True)
    assert digest(1, 4, program=tmp_path / "mmraces") == digest(1, 4)


def test_all_steps_of_one_schedule():
    steps = re.findall(r"^  task \d, point \d+: (\w+)",
                       mmraces("3.4").stdout, re.M)
    assert {"lock", "has", "unlock", "accesses"} <= set(steps)
