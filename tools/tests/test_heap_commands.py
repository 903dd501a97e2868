"""The kernel shell's commands that look at the heap: each one's rows against
what the playground did, and against what other commands say of the same."""

import json
import re

import pytest

WORDS = 3  # of an object that walk shows


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


# ---- walk ------------------------------------------------------------------

def test_walk_shows_what_slabs_shows(shell, box):
    slabs = records(shell, f"slabs -j {box}")
    assert [slab["used"] for slab in slabs] == [20, 10]
    used = records(shell, f"walk -j alloc {box}")
    free = records(shell, f"walk -j free {box}")
    assert len(used) == 30 and len(free) == 10
    first = {slab["slab"]: slab["base"] + slab["colour"] for slab in slabs}
    for row in used + free:
        assert row["addr"] == first[row["slab"]] + 200 * row["index"]
        assert len(row["words"]) == WORDS and not row["bad"]
    for slab in slabs:
        cells = ["."] * 20
        for row in used:
            if row["slab"] == slab["slab"]:
                cells[row["index"]] = "#"
        assert "".join(cells) == slab["cells"]


def test_walk_slab_is_the_list(shell, box):
    slabs = records(shell, f"slabs -j {box}")
    walked = records(shell, f"walk -j slab {box}")
    assert [row["addr"] for row in walked] == [s["slab"] for s in slabs]
    assert [row["index"] for row in walked] == [0, 1]
    assert [row["state"] for row in walked] == ["full", "partial"]
    # the first word of slab data is the list's link
    assert walked[0]["words"][0] == walked[1]["addr"]


def test_walk_of_small_bufctls_is_the_freelist(shell, box):
    links = records(shell, f"walk -j bufctl {box}")
    assert len(links) == 10 and {row["state"] for row in links} == {"free"}
    follows = {row["addr"]: row["words"][0] for row in links}
    ends = [addr for addr, link in follows.items() if link == 0]
    assert len(ends) == 1
    assert set(follows.values()) - {0} == set(follows) - {links[0]["addr"]}


def test_walk_of_large_bufctls_and_their_hash_table(shell):
    shell.command("kmem create big 900; kmem alloc big 25")
    used = {row["addr"]: row for row in records(shell, "walk -j alloc big")}
    bufctls = records(shell, "walk -j bufctl big")
    hashed = records(shell, "walk -j hash big")
    assert len(used) == len(hashed) == 25
    assert {b["words"][1] for b in bufctls if b["state"] == "used"} == \
        set(used)
    assert {b["addr"] for b in bufctls if b["state"] == "used"} == \
        {entry["addr"] for entry in hashed}
    for entry in hashed:
        assert entry["words"][2] == entry["slab"]
        assert used[entry["words"][1]]["slab"] == entry["slab"]
    assert sorted(entry["index"] for entry in hashed) == \
        [entry["index"] for entry in hashed]
    shell.command("kmem free big all; kmem destroy big")


def test_walk_all_caches(shell, box):
    stats = records(shell, "kmastat -j")
    text = shell.command("walk alloc")
    counts = {}
    for row in rows(text, r"^ 0x[0-9a-f]{8} (?P<cache>\w+)"):
        counts[row["cache"]] = counts.get(row["cache"], 0) + 1
    for stat in stats[:-1]:
        assert counts.get(stat["cache"], 0) == stat["inuse"], stat["cache"]
    assert text.splitlines()[-1] == f"{sum(counts.values())} rows"


def test_walk_is_limited(shell, box):
    text = shell.command("walk alloc -n 3")
    assert len(rows(text, r"^ (?P<addr>0x\w+)")) == 3
    assert "3 rows, as many as asked for" in text
    assert len(records(shell, "walk free -jn2")) == 2


# ---- mark and diff ---------------------------------------------------------

def test_diff_counts_what_happened(shell, box):
    shell.command("mark t1")
    shell.command(f"kmem alloc {box} 40; kmem free {box} 5")
    changes = {row["cache"]: row for row in records(shell, "diff -j t1")}
    assert changes[box] == {"cache": box, "inuse": 35, "slabs": 2,
                            "mem": 2 * 4096, "allocs": 40, "frees": 5}
    assert changes["kmem_play"]["inuse"] == 35
    shell.command("mark t2")
    text = shell.command("diff t1 t2")
    assert rows(text, rf"^{box} +(?P<line>.*)$")[0]["line"].split() == \
        ["+35", "+2", "+8192", "+40", "+5"]
    assert "from t1 to t2" in text
    assert shell.command("diff -j t2") == ""


def test_diff_of_caches_that_come_and_go(shell, box):
    shell.command("mark t1; kmem create newer 64; mark t2")
    text = shell.command("diff t1 t2")
    shell.command("kmem destroy newer")
    assert "newer" not in text  # created, but nothing happened in it
    shell.command("kmem create newer 64; kmem alloc newer 1; mark t3")
    assert re.search(r"^newer +\+1 .* new$", shell.command("diff t1 t3"), re.M)
    shell.command("kmem free newer 1; kmem destroy newer")
    assert re.search(r"^newer +-1 .* gone$", shell.command("diff t3"), re.M)


def test_the_fifth_mark_replaces_the_oldest(shell):
    for label in "abcd":
        shell.command(f"mark {label}")
    assert "mark a, the oldest, is forgotten" in shell.command("mark e")
    assert [row["mark"] for row in records(shell, "mark -j")] == list("bcde")
    assert "mark c, the one before, is forgotten" in shell.command("mark c")
    assert [row["mark"] for row in records(shell, "mark -j")] == list("bdec")
    assert "the older mark comes first" in shell.command("diff c b")


def test_frag_has_a_row_per_mark(shell, box):
    shell.command(f"mark steady; kmem alloc {box} 100; kmem free {box} 99")
    table = shell.command("frag").split("\n\n")[0].splitlines()
    assert table[0].split() == ["STEP", "REQUESTED", "CONSUMED", "FRAG%",
                                "INTERNAL%", "FREE-BUF%", "META%"]
    by_step = {line.split()[0]: [float(cell) for cell in line.split()[1:]]
               for line in table[1:]}
    assert "steady" in by_step and table[-1].split()[0] == "now"
    for requested, consumed, frag, internal, free, meta in by_step.values():
        assert frag == pytest.approx(100 * (1 - requested / consumed), abs=.01)
        assert internal + free + meta == pytest.approx(frag, abs=.02)
    assert by_step["now"][4] > by_step["steady"][4]  # free buffers


# ---- slabs, map, pages -----------------------------------------------------

def test_slabs_of_all_caches(shell, box):
    stats = {stat["cache"]: stat for stat in records(shell, "kmastat -j")[:-1]}
    count = {}
    for slab in records(shell, "slabs -j"):
        count[slab["cache"]] = count.get(slab["cache"], 0) + 1
    assert count == {name: stat["slabs"] for name, stat in stats.items()
                     if stat["slabs"]}
    assert re.search(rf"^{box}:\n +SLAB", shell.command("slabs"), re.M)


def test_map_follows_the_freelist(shell, box):
    shell.command(f"kmem free {box} 15 random")
    slab = records(shell, f"slabs -j {box}")[0]
    text = shell.command(f"map {slab['base']:x}")
    cells = {}
    for m in re.finditer(r"(\d+) 0x([0-9a-f]{4}) (used|free) +(-|end|\d+)",
                         text):
        cells[int(m[1])] = (int(m[2], 16), m[3], m[4])
    assert len(cells) == 20
    for i, (offset, state, link) in cells.items():
        assert offset == slab["colour"] + 200 * i
        assert (state == "used") == (slab["cells"][i] == "#")
        assert (link == "-") == (state == "used")
    free = {i for i, cell in cells.items() if cell[1] == "free"}
    links = {i: cells[i][2] for i in free}
    at = (free - {int(n) for n in links.values() if n != "end"}).pop()
    walked = []
    while at != "end":
        walked.append(int(at))
        at = links[int(at)]
    assert sorted(walked) == sorted(free)


def test_page_runs_add_up(shell, box):
    runs = rows(shell.command("pages -r"),
                r"^ *(?P<first>\d+) +(?P<frames>\d+) +\d+  0x\w+ "
                r"(?P<state>\w+) *(?P<owner>\S*)$")
    at = 0
    for run in runs:
        assert int(run["first"]) == at
        at += int(run["frames"])
    counts = records(shell, "pages -j")[0]
    assert at == counts["frames"]
    for state in ("slab", "free", "kernel"):
        assert counts[state] == sum(int(run["frames"]) for run in runs
                                    if run["state"] == state)
    stat = records(shell, f"cache -j {box}")[0]
    assert stat["slabs"] == sum(int(run["frames"]) for run in runs
                                if run["owner"] == box)


# ---- whatis ----------------------------------------------------------------

def test_whatis_knows_the_parts_of_a_slab(shell, box):
    slab = records(shell, f"slabs -j {box}")[1]
    base, colour = slab["base"], slab["colour"]
    assert colour == 8
    free = records(shell, f"walk -j free {box}")[0]["addr"]
    for addr, said in (
            (base, "colour gap"),
            (base + colour + 3, "object 0 of cache box, in use"),
            (free + 5, r"cache box, free: 0x\w+ \+ 5, in the object"),
            (free + 197, "free: .* the link to the next free"),
            (base + colour + 4000, "unused tail"),
            (slab["slab"] + 4, "kmem_slab at the end")):
        assert re.search(said, shell.command(f"whatis {addr:x}")), said


def test_whatis_knows_the_allocators_own(shell):
    shell.command("kmem create big 900; kmem alloc big 3")
    bufctl = records(shell, "walk -j hash big")[0]
    slab = records(shell, "slabs -j big")[0]
    obj = f"0x{bufctl['words'][1]:08x}"
    assert f"bufctl of object {obj} of cache big" in \
        shell.command(f"whatis {bufctl['addr']:x}")
    assert "slab data of cache big, slab base " in \
        shell.command(f"whatis {slab['slab']:x}")
    tables = "".join(shell.command(f"whatis {row['addr']:x}")
                     for row in records(shell, "walk -j alloc kmem_hash"))
    assert "hash table of cache big\n" in tables
    itself = "".join(shell.command(f"whatis {row['addr']:x}")
                     for row in records(shell, "walk -j alloc kmem_cache"))
    assert "the cache big itself" in itself
    shell.command("kmem free big all; kmem destroy big")


def test_whatis_knows_symbols(shell):
    for name, kind in (("kmem_cache_alloc", "code"), ("kmem_caches", "data")):
        addr = int(shell.command(f"sym {name}").split()[0], 16)
        assert f"{kind}: {name}+0x3\n" in shell.command(f"whatis {addr + 3:x}")


def test_whatis_knows_pages_of_programs(shell):
    pid = int(re.search(r"pid (\d+)", shell.command("run -b sleep 600"))[1])
    text = shell.command("whatis 0x500000")
    m = re.search(rf"page 0x00500000 of task {pid} \(sleep\), image or heap: "
                  r"frame (\d+)", text)
    assert m, text
    text = shell.command(f"whatis {0xc0000000 + 4096 * int(m[1]):x}")
    assert f"page 0x00500000 of task {pid} (sleep)" in text
    shell.command(f"kill -KILL {pid}")
    assert "no task has a page there" in shell.command("whatis 0x500000")
