"""Power cuts of the ext2 server's core on this machine: after each write of
some commands, and at random moments of a workload. e2fsck -p, or the next
mount, repairs the disk. docs/ext2.md."""
# Tests: user/servers/ext2/*.c

import re

import pytest

from conftest import tiers
from test_ext2 import TOOL, make, run

pytestmark = [pytest.mark.plain, pytest.mark.spread]

# The number of ways in which the power is cut after each write.
WAYS = tiers([3], [8], soaks=[60])


def cuts(image, ways, before, under_way):
    """Cuts the power after each write of some commands. Returns the number of
    writes, the number of cuts while the journal was replayed, and the contents
    after the repairs."""
    script = [*filter(None, before.split(";")), "sync", "records",
              *under_way.split(";"), "sync"]
    said = run(TOOL, "cuts", image, ways,
               text="\n".join(script) + "\n")
    writes, replays = map(int, re.match(
        r"(\d+) writes, \d+ cuts, (\d+) of replays", said).groups())
    outcomes = {frozenset(line.split()[1:]) for line in said.splitlines()[1:]}
    return writes, replays, outcomes


# Commands before, and commands during which the power is cut. Fillers keep
# inodes that belong together in different sectors.
NAME = "/a-name-that-is-so-long-that-few-fit-into-a-sector-"
UNDER_WAY = {
    "new folder": ("", "mkdir /d;many /x 0 9;write /d/f 0 3000 1;mkdir /e;"
                   "many /e/y 0 9;mkdir /d/g;many /d/z 0 9;write /d/g/h 0 9 1"),
    "folders removed": ("mkdir /a;many /x 0 4;mkdir /a/b;many /y 0 4;"
                        "mkdir /a/b/c;many /z 0 4;write /a/b/c/f 0 5000 1",
                        "rm /a/b/c/f;rmdir /a/b/c;rmdir /a/b;rmdir /a"),
    "replaced": ("write /a 0 3000 1;many /x 0 4;write /b 0 3000 2",
                 "write /t 0 3000 3;mv /t /b;mv /a /c;rm /b"),
    "long names": ("", f"many {NAME} 0 30;rm {NAME}7;rm {NAME}8;rm {NAME}9;"
                   f"sync;many {NAME} 7 9"),
    "folder grows": (f"mkdir /d;many /d{NAME} 0 13",
                     f"many /d{NAME} 13 30;mkdir /d/sub;many /d/sub/x 0 9"),
    "same names": ("write /a 0 3000 1;mkdir /d;many /x 0 5",
                   "rm /a;mkdir /a;mv /d /e;write /d 0 1 1;rmdir /a;"
                   "write /a 0 3000 2;mv /x1 /x2;write /x1 0 9 1"),
    "blocks go round": ("write /a 0 300000 1;write /b 0 3000 2",
                        "truncate /a 5000;write /c 0 250000 3;rm /b;"
                        "write /a 200000 90000 4;rm /c;write /b 0 290000 1"),
    "replaced and moved": ("write /a 0 3000 1;write /b 0 3000 2",
                           "mv /a /b;mv /b /c;write /d 0 9 3;mv /d /c"),
    "folder renamed": (f"mkdir /d;mkdir /d{NAME}x;write /d{NAME}x/f 0 9 1;"
                       f"many /d{NAME} 0 12",
                       f"mv /d{NAME}x /d{NAME}y;sync;mv /d{NAME}y /d/short;"
                       "sync;mv /d /dd;mkdir /d"),
    "one file synced": ("write /a 0 30000 1;write /b 0 30000 2;many /x 0 9",
                        "write /b 0 9000 3;truncate /b 20000;write /a 5000 "
                        "40000 4;fsync /a;truncate /a 3000;rm /b;write /c 0 "
                        "30000 5;fsync /a;write /a 3000 60000 6;fsync /c"),
    "new file synced": ("mkdir /d;many /x 0 4",
                        "mkdir /d/e;write /d/e/f 0 20000 1;write /d/e/g 0 "
                        "20000 2;fsync /d/e/f;rm /d/e/g;write /d/e/g 0 9 3;"
                        "write /d/e/f 20000 300000 4"),
    "synced in a folder that grows": (f"mkdir /d;many /d{NAME} 0 13",
                                      f"many /d{NAME} 13 30;write /d/f 0 9 1;"
                                      f"fsync /d/f;many /d{NAME} 30 40"),
    "synced in a folder that has grown": (
        "mkdir /d;write /j 0 9000 1;sync;rm /j",
        f"write /d/f 0 9 1;many /d{NAME} 0 16;fsync /d/f"),
    "a name synced with another": (
        f"mkdir /d;many /d{NAME} 0 7",  # one more fits into the sector
        f"many /d{NAME} 10 11;write /d/f 0 9 1;fsync /d/f;rm /d{NAME}10;"
        f"many /d{NAME} 11 12;mv /d{NAME}0 /d{NAME}10"),
    "longer after a sync": ("write /j 0 300000 7;sync;rm /j",
                            "write /f 280000 9 1;fsync /f;write /f 540000 9 "
                            "2;write /f 810000 9 3;write /f 1070000 9 4"),
}


@pytest.mark.parametrize("what", UNDER_WAY)
@pytest.mark.parametrize("ways", WAYS)
def test_cut_at_every_write(what, ways, in_memory):
    """A mount repairs all of it. Blocks of 1 KiB, two inodes in a
    sector."""
    image = make(in_memory / "image", "1k-128", "600k", "-I", "256", "-N", "96")
    writes, _, outcomes = cuts(image, ways, *UNDER_WAY[what])
    assert writes > 5 and len(outcomes) > 1


@pytest.mark.parametrize("ways", WAYS)
def test_cut_while_inodes_are_written_to_free_buffers(ways, in_memory):
    """A commit of 257 inodes; there are 64 buffers of four inodes each."""
    image = make(in_memory / "image", "1k-128", "1M", "-I", "256", "-N", "400")
    writes, _, outcomes = cuts(image, ways, "", "many /f 0 320;write /f7 0 9 1")
    assert writes > 5 and len(outcomes) > 1


@pytest.mark.parametrize("seed, count", tiers([(1, 80)], [(2, 80), (3, 400)],
                         [(seed, 400) for seed in range(4, 61)]))
@pytest.mark.parametrize("form, size, journal", [
    ("1k-128", "4M", True), ("4k-256", "8M", True), ("1k-128", "2M", False)])
def test_power_cuts(form, size, journal, seed, count, in_memory):
    """e2fsck -p, or the next mount, repairs what a power cut leaves, and
    everything confirmed is there."""
    options = ["-O", "has_journal"] if journal else []
    image = make(in_memory / "image", form, size, "-N", "128", *options)
    said = run(TOOL, "powercut", image, seed, 400, count)
    moves, refused = map(int, re.match(
        r"(\d+) moves by the journal, (\d+) refused", said).groups())
    assert (refused if journal else moves) == 0
    # With a few seeds no directory is moved.
    assert moves + refused > 0 or seed > 16
