"""A driver that dies again and again under a file system in use: the copy is
right, the disk is clean, nothing is left in the kernel.

Once in `make test-all`; `make storm` tries many seeds (SEEDS=20)."""

import os
import random
import re

import pytest

from conftest import FOUR, long, tiers
from tools.run import disk, qemu

pytestmark = pytest.mark.workshop

SEEDS = int(os.environ.get("SEEDS") or 20)
BIG = random.Random(4).randbytes(4 << 20)
COUNTS = "reap -a; kmastat -j"
KINDS = ("task", "space", "port", "file", "userfs", "handle_table", "pipe")


def inuse(part):
    found = dict(re.findall(r'"cache":"(\w+)".*?"inuse":(\d+)', part))
    return [found[kind] for kind in KINDS]


@pytest.mark.parametrize("seed", tiers((), [1], range(2, SEEDS + 1)))
def test_ata_is_killed_ten_times(kernel, tmp_path, seed):
    kill_ten_times(kernel, tmp_path, seed)


@long
@pytest.mark.plain
def test_ata_is_killed_beside_four_processors(smp, tmp_path):
    kill_ten_times(smp, tmp_path, 1, **FOUR)


def kill_ten_times(kernel, tmp_path, seed, **options):
    image, folder = tmp_path / "disk.img", tmp_path / "files"
    folder.mkdir()
    (folder / "big").write_bytes(BIG)
    disk.make(image, 16, folder=folder)
    result = qemu.run(
        kernel, f"run -p init ls /disk; echo -; {COUNTS}; echo -; "
        "run -b -p init sleep 9999; run sleep 2; "
        f"run -p storm -s {seed} -n 10 ata /disk/big /disk/copy; "
        f"sessions end 3; run sleep 3; run true; echo -; {COUNTS}; verify; "
        "poweroff", append="start=ext2", disks=[image], **options).good()
    storm = result.named["storm"][0]
    assert storm["equal"] and storm["kills"] == 10, result.explain()
    killed = [e for e in result.named["server-ended"] if e["name"] == "ata"]
    assert len(killed) == 10, result.explain()
    _, before, _, after = re.split(r"(?m)^-\r?$", result.text)
    assert inuse(before) == inuse(after), result.explain()
    disk.check(image)
    assert disk.read(image, "/copy") == BIG
