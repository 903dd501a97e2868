"""The power is cut while files are written: QEMU is killed at random moments
(seeded). Afterwards `e2fsck -p` repairs the disk without a question, a second
check finds nothing, and every file that fsync or sync had confirmed is there
with its contents, by the rule of user/tests/confirm. Meanwhile folders that
were confirmed are moved: each must be in one place, with all its
files.

A few moments in each test run; `make powercut` tries many (SEEDS=60)."""

import os
import random
import time

import pytest

from conftest import FOUR, long, tiers
from tools.run import disk, qemu, watchdog

pytestmark = pytest.mark.workshop

SEEDS = int(os.environ.get("SEEDS") or 60)
BYTES_MAX = 60000
GROUP = 8
PLACES = ["", "/p1", "/p2", "/p3"]


def contents(number):
    size = number * 7919 % BYTES_MAX + 1
    return bytes((number * 131 + i * 7 + (i >> 8)) & 0xff
                 for i in range(size))


def confirmed(machine):
    """Names and numbers of the files that are certain."""
    files = {}
    for event in machine.events("confirmed"):
        n = event["number"]
        if event["kind"] == "f":
            files[f"/f{n}"] = n
        else:
            files.update({f"/d{n}/s{i}": i
                          for i in range(n * GROUP, (n + 1) * GROUP)})
    return files


def write_and_cut(kernel, image, wait, options):
    """Boots, lets `confirm` work for a while, cuts. Returns what is
    certain."""
    with qemu.Machine(kernel, append="start=ext2", disks=[image],
                      **options) as machine:
        machine.prompt()
        machine.send("run -p init confirm /disk\r")
        def moved():
            machine.receive(0.1)
            assert machine.process.poll() is None, machine.errors()
            return machine.events("moved")
        watchdog.poll(moved)
        time.sleep(wait)
        machine.cut_power()
        certain = confirmed(machine)
        assert certain, machine.transcript[-3000:]
        return certain


def found(image, name):
    """The contents of a file, in any folder; it must not be in two."""
    there = []
    for place in PLACES if name.startswith("/d") else [""]:
        try:
            there.append(disk.read(image, place + name))
        except disk.DiskError:
            pass
    assert len(there) == 1, f"{name} is in {len(there)} places"
    return there[0]


@pytest.mark.parametrize("seed", tiers(
    [1], [3], range(4, SEEDS + 1), samples=[2]))
def test_power_cut(kernel, tmp_path, seed):
    cut_and_check(kernel, tmp_path, seed)


@long
@pytest.mark.plain
def test_power_cut_of_four_processors(smp, tmp_path):
    cut_and_check(smp, tmp_path, 1, **FOUR)


def cut_and_check(kernel, tmp_path, seed, **options):
    chance = random.Random(seed)
    image = tmp_path / "disk.img"
    disk.make(image, 24, block=chance.choice([1024, 2048, 4096]))
    certain = write_and_cut(kernel, image, chance.uniform(0, 1.5), options)
    said = disk.repair(image)
    assert "UNEXPECTED" not in said, said
    disk.check(image)
    # The newest are most likely to be lost; a few of the older are enough.
    names = list(certain)
    looked_at = names[-20:] + chance.sample(names[:-20],
                                            min(10, len(names[:-20])))
    for name in looked_at:
        assert found(image, name) == contents(certain[name]), \
            f"{name}, one of {len(certain)} that were confirmed\n{said}"
