"""Traces: the reference trace R1 replayed on every allocator, the tool that
summarises a trace, and what both say of a damaged file."""
# Tests: tools/measure/traces.py, mm/others/tests/replay/main.c

import json
import sys
from xml.etree import ElementTree

import pytest

from conftest import BUILD, OTHERS, ROOT, execute
from tools.measure import traces

pytestmark = pytest.mark.plain

REPLAY = BUILD / "replay" / "replay"

# Held KiB and waste at the four marks, and the most KiB, as the description of
# the other allocators has them; and how many per cent a figure may differ from
# it. Most are exact; sunos has nodes of twice the size here, and the figures of
# the slab allocator are of a simple model.
PUBLISHED = {
    "slab": (2, [(1128, 16), (1648, 42), (1752, 41), (2148, 49)], 2148),
    "slab, reclaimed at each mark":
        (2, [(1076, 12), (1100, 14), (1280, 19), (1308, 16)], 2024),
    "sunos": (3, [(980, 4), (1092, 13), (1168, 11), (1720, 36)], 1764),
    "sunos, pages are kept":
        (3, [(980, 4), (1476, 36), (1480, 30), (1772, 38)], 1772),
    "sunos, leftmost":
        (3, [(976, 3), (1044, 9), (1188, 12), (1488, 26)], 1744),
    "sunos, nodes inside":
        (6, [(996, 5), (1084, 13), (1184, 12), (1752, 37)], 1784),
    "bsd":
        (0, [(1464, 36), (2104, 55), (2108, 51), (2484, 56)], 2484),
    "svr4":
        (0, [(1512, 38), (2212, 57), (2212, 53), (2568, 57)], 2568),
    "svr4, eager":
        (0, [(1512, 38), (1616, 41), (1816, 43), (2512, 56)], 2516),
    "slob, header 8":
        (0, [(1008, 6), (1072, 11), (1200, 13), (1632, 32)], 1848),
    "slob, header 4":
        (0, [(980, 4), (1048, 9), (1172, 11), (1592, 31)], 1800),
    "slmb":
        (0, [(1036, 9), (1140, 17), (1284, 19), (1820, 39)], 1924),
    "linux_slab":
        (0, [(1096, 14), (1132, 16), (1312, 21), (1340, 18)], 1996),
    "linux_slab, 4 processors":
        (0, [(1096, 14), (1160, 18), (1312, 21), (1416, 22)], 2000),
    "linux_slub":
        (0, [(1124, 16), (1472, 36), (1628, 36), (1844, 40)], 2052),
    "linux_slub, shrunk at marks":
        (0, [(1076, 12), (1108, 14), (1288, 19), (1332, 17)], 1980),
    "linux_slub, 4 processors":
        (0, [(1144, 18), (1508, 37), (1644, 37), (1992, 45)], 2060),
}
REQUESTED = [965_500, 971_776, 1_067_140, 1_129_526]


def replay(*arguments):
    return execute(REPLAY, *arguments)


def replay_json(*arguments):
    done = replay("-j", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def rows():
    """{row: figures}."""
    return {row["row"]: row for row in replay_json()}


@pytest.fixture(scope="module")
def r1(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "R1.ktr"
    done = replay("-w", path)
    assert done.returncode == 0, done.stderr
    return path


# ---- the reference trace ----------------------------------------------------

def test_every_allocator_has_a_row(rows):
    assert {row["allocator"] for row in rows.values()} == {"slab", *OTHERS}
    assert rows.keys() == PUBLISHED.keys()


def test_one_allocator(rows):
    assert replay_json("-a", "slob") == [rows["slob, header 8"],
                                         rows["slob, header 4"]]
    for name, error in (("slobs", "there is no allocator slobs"),
                        ("yours", "is not written yet")):
        done = replay("-a", name)
        assert done.returncode != 0 and error in done.stderr, done.stderr


@pytest.mark.parametrize("row", PUBLISHED)
def test_the_table_of_the_description(rows, row):
    within, marks, peak = PUBLISHED[row]
    found = rows[row]
    held = [m["held"] / 1024 for m in found["marks"]]
    for is_, want in zip([*held, found["peak"] / 1024],
                         [*(kib for kib, _ in marks), peak], strict=True):
        assert abs(is_ - want) * 100 <= within * want, (row, held)
    if within == 0:
        assert [m["waste"] for m in found["marks"]] == [w for _, w in marks]


def test_most_requests_of_slab_find_a_queue(rows):
    """99.6 % of its allocations and 99.9 % of its frees need no more."""
    counts = rows["linux_slab"]["counts"]
    for op, want in (("alloc", 99.6), ("free", 99.9)):
        hits, misses = counts[f"{op}_hit"], counts[f"{op}_miss"]
        assert round(100 * hits / (hits + misses), 1) == want


def test_clients_have_the_same_at_each_mark(rows):
    for name, row in rows.items():
        assert [m["requested"] for m in row["marks"]] == REQUESTED, name


# What an allocator has counted of its own work, exactly; or for each operation
# or allocation, and how many per cent it may differ.
@pytest.mark.parametrize("row, counts", [
    ("svr4", {"splits": 7448, "lazy": 203_398, "reclaiming": 0,
              "accelerated": 203_635 - 203_398}),
    ("svr4, eager", {"splits": 23_846, "lazy": 0, "accelerated": 0}),
    ("linux_slub", {
        "alloc_fast": 176_202, "alloc_slow": 34_523, "refill": 32_535,
        "from_partial": 1436, "new": 552, "free_fast": 82_508,
        "free_slow": 120_965, "free_frozen": 58_029, "cpu_free": 34_222,
        "drain": 1358, "returned": 130, "aliases": 3}),
])
def test_counts_of_the_description(rows, row, counts):
    assert rows[row]["counts"] == {**rows[row]["counts"], **counts}


@pytest.mark.parametrize("row, each, count, want, within", [
    ("slob, header 8", "allocation", "pages_scanned", 5, 10),
    ("slob, header 8", "allocation", "blocks_scanned", 44, 1),
    ("slmb", "allocation", "pages_scanned", 7.3, 1),
    ("sunos", "operation", "visits", 8.6, 10),
    ("sunos", "operation", "relinks", 2.7, 10),
    ("sunos, leftmost", "operation", "visits", 14, 10),
    ("sunos, leftmost", "operation", "relinks", 5, 10),
])
def test_work_of_an_operation(rows, row, each, count, want, within):
    found = rows[row]
    assert (found["allocs"], found["frees"]) == (210_725, 203_473)
    operations = found["allocs"] + found["frees"] * (each == "operation")
    is_ = found["counts"][count] / operations
    assert abs(is_ - want) * 100 <= within * want, is_


def test_the_tree_is_far_from_balanced(rows):
    counts = rows["sunos"]["counts"]
    assert 1000 <= counts["nodes"] <= 1200 and 30 <= counts["depth"] <= 60


def test_every_byte_is_one_of_four_kinds(rows):
    for name, row in rows.items():
        for m in row["marks"]:
            assert m["held"] % 4096 == 0
            assert m["held"] == sum(m[part] for part in (
                "requested", "internal", "external", "metadata")), name


def test_what_is_left_is_returned_in_the_end(rows):
    """All pages; those of nodes are sunos's for ever, and bsd returns none.
    Where svr4 is eager, halves of split blocks stay locally free."""
    for name, row in rows.items():
        if name == "bsd":
            assert row["residue"] == row["marks"][3]["held"]
        elif name == "svr4, eager":
            assert row["residue"] == 28 * 1024
        elif row["allocator"] == "sunos" and name != "sunos, nodes inside":
            assert row["residue"] == row["marks"][3]["metadata"] > 0
        else:
            assert row["residue"] == 0, name


def test_the_orders_of_the_paper(rows):
    """After boot the others waste less; in the end the slab allocator does."""
    waste = {name: [m["waste"] for m in row["marks"]]
             for name, row in rows.items()}
    slab = waste["slab, reclaimed at each mark"]
    assert waste["sunos"][0] < waste["slob, header 8"][0] < slab[0]
    assert slab[3] <= 20 < waste["slob, header 8"][3] < waste["sunos"][3]


def test_slub_of_2014_keeps_less(rows):
    """Processors keep fewer objects, so more slabs become free."""
    found = replay_json("-o", "-a", "linux_slub")
    assert len(found) == 3
    for row in found:
        now = rows[row["row"]]
        for mark, late in zip(row["marks"][1:], now["marks"][1:], strict=True):
            assert mark["requested"] == late["requested"]
            assert mark["held"] <= late["held"]
        assert row["marks"][3]["held"] < now["marks"][3]["held"]
        assert row["peak"] < now["peak"] and row["residue"] == 0


def test_a_replay_repeats(rows, r1):
    """From the file too, and whatever is checked meanwhile."""
    assert replay_json("-c", 100_000, r1) == list(rows.values())


@pytest.fixture(scope="module")
def table():
    """The lines that a replay prints."""
    done = replay()
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_text_shows_the_same(rows, table):
    head, *lines = table
    assert [f"mark {i}" in head for i in range(1, 6)] == [True] * 4 + [False]
    for line, (name, row) in zip(lines, rows.items(), strict=True):
        assert line.startswith(name)
        assert line[len(name):].replace("%", "").split() == [
            str(figure) for m in row["marks"]
            for figure in (m["held"] // 1024, m["waste"])] + [
                str(row["peak"] // 1024), str(row["residue"] // 1024)]


def test_the_book_has_that_table(table):
    page = (ROOT / "docs/others.md").read_text(encoding="utf-8")
    for line in table:
        assert f"    {line}\n" in page


# ---- damaged files ----------------------------------------------------------

def changed(data, at, byte):
    return data[:at] + bytes([byte]) + data[at + 1:]


@pytest.mark.parametrize("change, error", [
    (lambda d: b"", "truncated: 0 bytes, and a header has 64"),
    (lambda d: d[:-1], "truncated: 1055402 bytes of 1055403"),
    (lambda d: d + b"x", "damaged: 1 bytes after its end"),
    (lambda d: changed(d, 0, 0x4c), "not a trace: it does not begin with KTR1"),
    (lambda d: changed(d, 4, 2), "version 2, not 1"),
    (lambda d: changed(d, 500_000, d[500_000] ^ 1), "damaged: its CRC-32 is"),
    (lambda d: changed(d, 24, d[24] ^ 1), "damaged: 414453 events, 210725 "
     "allocations, 203473 frees, 10445 slots, 1662187 live bytes: the header "
     "has others"),
], ids=["empty", "truncated", "longer", "magic", "version", "events", "counts"])
def test_a_damaged_file(r1, tmp_path, change, error):
    """One line says so; no row, no list, and the last picture stays."""
    path = tmp_path / "R1.ktr"
    path.write_bytes(change(r1.read_bytes()))
    out = tmp_path / "R1.svg"
    out.write_text("the last picture", encoding="utf-8")
    for done in (replay(path), replay("-l", path), summary(path, out)):
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.startswith(f"replay: {path}: {error}")
        assert done.stderr.count("\n") == 1
    assert out.read_text(encoding="utf-8") == "the last picture"


def test_a_trace_with_losses_has_no_figures(r1, tmp_path):
    path = tmp_path / "lost.ktr"
    path.write_bytes(changed(r1.read_bytes(), 44, 3))
    done = replay(path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("replay: the recorder lost 3 events: the trace has "
                           "no figures\n")


def test_no_file(tmp_path):
    done = replay(tmp_path / "none.ktr")
    assert done.returncode == 1
    assert done.stderr == (f"replay: {tmp_path}/none.ktr: No such file or "
                           "directory\n")
    done = replay("-w", tmp_path / "none" / "R1.ktr")
    assert done.returncode == 1 and "No such file" in done.stderr


@pytest.mark.parametrize("arguments", [["-x"], ["-c", "0"], ["-c", "many"],
                                       ["a", "b"], ["-w"]])
def test_usage(arguments):
    done = replay(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert "usage: replay" in done.stderr


# ---- the summary ------------------------------------------------------------

def summary(*arguments):
    trace, out = arguments
    return execute(sys.executable, "-m", "tools.measure.traces", REPLAY, trace,
                   "--out", out)


LISTED = """\
cache 1 300 inode
cache 2 16 name
units 1000000
cache_alloc 0 1 0
alloc 0 100 1
cache_alloc 0 2 2
free 0 1 1
mark 1000000 1 0
cache_fail 1000000 1 0
alloc 1000000 9000 1
free 3000000 0 0
mark 3500000 2 0
""".splitlines()


def test_figures_of_a_small_trace():
    s = traces.summarise(LISTED)
    assert (s.allocs, s.frees, s.failures, s.slots) == (4, 2, 1, 3)
    assert s.live == [300, 400, 416, 316, 316, 316, 9316, 9016, 9016]
    assert s.marks == [(1, 4), (2, 8)] and s.seconds == 3.5
    assert s.requests == {1: 1, 2: 1, 0: 2}
    assert {name: n for name, n in traces.size_rows(s) if n} == {
        "to 16": 1, "to 128": 1, "to 512": 1, "above 8,192": 1}
    assert {name: n for name, n in traces.lifetime_rows(s) if n} == {
        "below 10": 2, "never freed": 2}


def test_lifetimes_are_counted_in_allocations():
    assert [traces.decade(n) for n in (0, 9, 10, 99, 100, 99_999, 10 ** 9)] \
        == [0, 0, 1, 1, 2, 4, 5]


def test_the_summary_of_r1(r1, tmp_path):
    out = tmp_path / "new" / "R1.svg"
    done = summary(r1, out)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "414,453 events: 210,725 allocations, 203,473 frees, 0 failures; " \
        "502 s" in text
    assert "live at most: 10,445 blocks; 1,662,187 bytes" in text
    for requested in REQUESTED:
        assert f"{requested:,}" in text
    root = ElementTree.parse(out).getroot()
    words = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [w for w in words if w.isdecimal()] == ["1", "2", "3", "4"]
    assert "107,274, 50.9 %" in words and "never freed" in words
