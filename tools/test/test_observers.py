"""The commands of the workshop kernel's shell that look at the heap: marks and
changes since, fragmentation, objects that keep slabs, planted failures."""
# Tests: tools/workshop/observe/*.c

import re

import pytest

from heap import (after_panic, audited, box,  # noqa: F401, fixtures
                  is_error, records, rows)

pytestmark = pytest.mark.workshop


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
    assert re.search(r"^newer +-1 .* destroyed$", shell.command("diff t3"),
                     re.M)


def test_the_fifth_mark_replaces_the_oldest(shell):
    for label in "abcd":
        shell.command(f"mark {label}")
    assert "mark a, the oldest, is deleted" in shell.command("mark e")
    assert [row["mark"] for row in records(shell, "mark -j")] == list("bcde")
    assert "mark c, the previous one, is deleted" in shell.command("mark c")
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
    stats = records(shell, "kmastat -j")[:-1]
    meta = sum(s["mem"] if s["kind"] == "internal" else s["hash_mem"]
               + s["slabs"] * (s["slab_pages"] * 4096 - s["slab_left"]
                               - s["slab_objects"] * s["chunk"])
               for s in stats)
    assert sum(s["mem"] for s in stats) == by_step["now"][1]
    assert by_step["now"][5] == pytest.approx(100 * meta / by_step["now"][1],
                                              abs=.006)


def test_diff_names_new_callers(shell, audited):
    shell.command("mark t1")
    assert "callers that are new: none" in shell.command("diff t1")
    shell.command("kmem create spy_b 24; debug +U spy_b; kmem alloc spy_b 2; "
                  "kmem alloc spy 2")
    new = shell.command("diff t1").split("callers that are new:")[1]
    shell.command("kmem free spy_b all; kmem destroy spy_b")
    assert re.search(r"^spy_b +2 +48 +\S+ 0x\w+ \w+\+0x", new, re.M)
    assert not re.search(r"^spy ", new, re.M)  # its caller had objects before


# ---- fragmentation ----------------------------------------------------------

def test_frag_adds_up(shell):
    *rows, total = records(shell, "frag -j")
    stats = records(shell, "kmastat -j")
    assert total["key"] == "frag.total"
    for key in ("mem", "used", "free", "lost"):
        assert sum(row[key] for row in rows) == total[key], key
    large = stats[-1]["oversize"]["mem"]
    assert total["mem"] == stats[-1]["total"]["mem"] - large
    assert total["lost"] == total["mem"] - total["used"]
    assert abs(total["percent"] - 100 * total["lost"] / total["mem"]) < 0.006
    assert [row["lost"] for row in rows] == \
        sorted((row["lost"] for row in rows), reverse=True)
    for row in rows:  # the allocator's own have no clients
        if row["cache"] in ("kmem_slab", "kmem_bufctl", "kmem_cache"):
            assert row["used"] == 0
    assert "boot 11 %, spike 13 %, find 14 %, kenbus 14 %" in \
        shell.command("frag")


def test_frag_counts_free_buffers_and_reports(shell):
    before = records(shell, "frag -j")[-1]
    shell.command("kmem create holes 1024; kmem alloc holes 40; "
                  "kmem free holes 39")
    row = next(r for r in records(shell, "frag -j")
               if r.get("cache") == "holes")
    assert row["used"] == 1024 and row["free"] >= 39 * 1024
    text = shell.command("frag -b some.label")
    event = shell.events("bench")[-1]
    assert event["key"] == "frag.some.label"
    assert f"{event['value']:.2f} %" in text and \
        event["value"] > before["percent"]
    shell.command("kmem free holes all; kmem destroy holes")


# ---- why --------------------------------------------------------------------

def test_why_names_what_keeps_slabs(shell, audited):
    used = records(shell, "walk -j alloc spy")
    listed = records(shell, "why -j spy")
    assert [row["obj"] for row in listed] == [row["addr"] for row in used]
    assert all(row["used"] == 6 and "+0x" in row["caller"] for row in listed)
    text = shell.command("why spy")
    assert "1 of 1 partial slabs; 6 frees would release 1 page" in text
    by_slab = records(shell, f"why -j {used[0]['slab']:x}")
    by_addr = records(shell, f"why -j {used[3]['addr'] + 1:x}")
    key = [(row["slab"], row["obj"]) for row in listed]
    assert [(row["slab"], row["obj"]) for row in by_slab] == key
    assert [(row["slab"], row["obj"]) for row in by_addr] == key


def test_why_begins_with_the_emptiest_slabs(shell):
    shell.command("kmem create box 1000; kmem alloc box 40; "
                  "kmem free box 22 random")
    slabs = [s["used"] for s in records(shell, "slabs -j box")
             if s["state"] == "partial"]
    listed = records(shell, "why -j box")
    order = []
    for row in listed:
        if not order or order[-1][0] != row["slab"]:
            order.append((row["slab"], row["used"]))
    assert [used for _, used in order] == sorted(slabs)[:8]
    shell.command("kmem free box all; kmem destroy box")


# ---- failures on purpose ----------------------------------------------------

def test_fail_with_conditions(shell):
    shell.command("kmem create spy 100; kmem create other 100")
    shell.command("fail slab 2 -c spy")
    assert "+1 object:" in shell.command("kmem alloc other 1")
    assert "+1 object:" in shell.command("kmem alloc spy 5")  # one failed
    text = shell.command("fail")
    assert "request 2 for an object of spy: 2 so far, 1 failed" in text
    assert "has happened" in shell.command("fail off")
    shell.command("fail slab -r 4 -s 9 -c spy -f play_alloc -t 1")
    done = sum(int(re.search(r"\+(\d+) object",
                             shell.command("kmem alloc spy 1"))[1])
               for _ in range(60))
    text = shell.command("fail")
    assert re.search(r"one request in 4 for an object of spy by task 1 from "
                     rf"play_alloc: 60 so far, {60 - done} failed", text), text
    assert 5 <= 60 - done <= 30
    shell.command("fail slab 1 -t 2; kmem alloc spy 1")
    assert ": 0 so far, 0 failed" in shell.command("fail")
    shell.command("fail off; kmem free spy all; kmem free other all; "
                  "kmem destroy spy; kmem destroy other")


def test_log_keeps_failures(shell, audited):
    shell.command("fail slab 1 -c spy; kmem alloc spy 1; fail off")
    failed = records(shell, "log -j fail -c spy")[0]
    assert (failed["why"], failed["task"]) == ("on purpose", 1)


WRONG = ["fail slab no_such", "fail page 99999999999999", "fail slab 0x",
         "fail slab 0", "fail slab -r 0", "fail page 1 -c inode",
         "fail slab 1 -f no_such_function", "fail slab 1 -c no_such_cache",
         "fail slab 1 -t me", "fail slab -r 3 4", "why", "why zz_q",
         "why 0x1000", "mark now", "diff no_mark", "frag now", "frag -b",
         "frag -b A/B", "frag -jb x", "bug list -k"]


@pytest.mark.parametrize("line", WRONG)
def test_wrong_input_is_refused(shell, line):
    text = shell.command(line)
    assert is_error(text), text


# ---- on a stopped machine --------------------------------------------------

def test_all_of_it_works_after_a_panic(boot):
    machine = boot("kmem.debug=U,inode")
    machine.prompt()
    machine.command("kmem create spy 100; debug +FPZU spy; kmem alloc spy 3; "
                    "mark before; run ls")
    command = after_panic(machine)
    for line, said in (
            ("why spy", "1 of 1 partial"), ("diff before", "from before"),
            ("frag", "TOTAL"), ("frag", "now"), ("fail", "no failure"),
            ("fail slab ls", "fail: cannot work on a stopped"),
            ("bug double-free", "bug: cannot work on a stopped"),
            ("mark after", "mark after")):
        assert re.search(said, command(line)), line
