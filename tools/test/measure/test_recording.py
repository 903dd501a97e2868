"""Recorded traces: what the kernel of `make trace` writes down of the requests
to its allocator, the files that are made of it, and what is refused."""
# Tests: kernel/shell/cmd_trace.c

import json
import re
import struct
import sys
from collections import Counter

import pytest

from conftest import BUILD, ROOT, execute, linked, product
from tools.run import elf, qemu
from tools.test import transcript

pytestmark = pytest.mark.plain

REPLAY = BUILD / "replay" / "replay"
PACK = BUILD / "replay" / "pack"
BUDGET = "budget=40000"


def kernel():
    return product("slate-trace.elf", "tested")


def make_trace(folder, commands, **settings):
    """What `make trace` runs."""
    named = {"CMD": commands, "APPEND": BUDGET, **settings}
    return execute(sys.executable, "-m", "tools.run.trace", kernel(), PACK,
                   folder, **named)


def listed(path):
    """The caches {number: (name, size)} and the events of a trace, as
    (what, time, operand, slot)."""
    done = execute(REPLAY, "-l", path)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    caches = {int(row[1]): (row[3], int(row[2])) for row in rows
              if row[0] == "cache"}
    return caches, [(row[0], *map(int, row[1:])) for row in rows
                    if row[0] not in ("cache", "units")]


def requested(path):
    """{mark: bytes that clients had then}, as each replay finds them."""
    done = execute(REPLAY, "-j", path)
    assert done.returncode == 0, done.stderr
    found = {tuple(mark["requested"] for mark in json.loads(line)["marks"])
             for line in done.stdout.splitlines()}
    assert len(found) == 1
    return list(found.pop())


def tables(text):
    """Each output of `kmastat -z -j`, as {cache: its numbers}; size classes
    and whole pages by their size."""
    found, rows = [], {}
    for line in qemu.plain(text).splitlines():
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        if "cache" in row:
            rows[row["cache"]] = row
        else:
            found.append(({**rows, "oversize": row["oversize"]}))
            rows = {}
    return found


def class_of(size, table):
    """The name of the size class that serves so many bytes."""
    classes = sorted(row["size"] for row in table.values()
                     if row.get("kind") == "class")
    fits = [c for c in classes if c >= size]
    return f"kmem_alloc_{fits[0]}" if fits else "oversize"


def follow(path, table):
    """A trace from event to event: at each mark {cache: live objects}, {cache:
    allocations up to there} and the live bytes, untyped ones as requested."""
    caches, events = listed(path)
    blocks, allocs, marks = {}, Counter(), []
    for what, _, operand, slot in events:
        if what == "cache_alloc":
            blocks[slot] = caches[operand]
        elif what == "alloc":
            blocks[slot] = class_of(operand, table), operand
        elif what == "free":
            del blocks[operand]
        elif what == "mark":
            marks.append((Counter(name for name, _ in blocks.values()),
                          Counter(allocs), sum(n for _, n in blocks.values())))
        if what.endswith("alloc"):
            allocs[blocks[slot][0]] += 1
    return marks


def clients(table, key):
    """{cache: a number of it}, without zeros and the allocator's own."""
    return {name: row[key] for name, row in table.items()
            if row.get("kind") != "internal" and row[key]}


# ---- what is recorded -------------------------------------------------------

# Each `kmastat` is right after a mark. (Between them nothing else runs.)
WORK = ("kmastat -z -j; run kenbus -u 2 -i 1; run spike -n 20; "
        "kmem create box 300; kmem alloc box 40; kmem free box 13; "
        "trace mark; kmastat -z -j")


@pytest.fixture(scope="module")
def recorded(shared_path):
    """(trace, what the machine printed)."""
    done = make_trace(shared_path, WORK, TRACE_NAME="work")
    assert done.returncode == 0, done.stdout + done.stderr
    return shared_path / "work.ktr", done.stdout


def test_objects_at_each_mark_are_those_of_kmastat(recorded):
    path, text = recorded
    found = tables(text)
    assert len(found) == 2
    for table, (live, _, _) in zip(found, follow(path, found[0]), strict=False):
        assert clients(table, "inuse") == live
    assert clients(found[1], "inuse")["box"] == 27


def test_allocations_are_those_of_kmastat(recorded):
    """From boot on, and so between two marks."""
    path, text = recorded
    found = tables(text)
    for table, (_, allocs, _) in zip(found, follow(path, found[0]),
                                     strict=False):
        assert clients(table, "allocs") == allocs
    assert sum(clients(found[1], "allocs").values()) > \
        10 * sum(clients(found[0], "allocs").values())


def test_a_replay_has_those_bytes_at_each_mark(recorded):
    """Of caches as kmastat says, of other requests what was asked for."""
    path, text = recorded
    marks = follow(path, tables(text)[0])
    bytes_ = requested(path)
    assert [live for _, _, live in marks] == bytes_
    for table, (live, _, _), total in zip(tables(text), marks, bytes_,
                                          strict=False):
        named = sum(row["inuse"] * row["size"] for row in table.values()
                    if row.get("kind") == "named")
        most = sum(live[name] * table[name]["size"] for name in live
                   if name.startswith("kmem_alloc_"))
        assert named < total <= named + most


def test_caches_have_what_they_were_created_with(recorded):
    path, text = recorded
    caches, _ = listed(path)
    table = tables(text)[1]
    assert {name: size for name, size in caches.values()} == {
        name: row["size"] for name, row in table.items()
        if row.get("kind") == "named"}


def test_a_recording_repeats(recorded, tmp_path):
    done = make_trace(tmp_path, WORK, TRACE_NAME="work")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "work.ktr").read_bytes() == recorded[0].read_bytes()


def test_the_summary_shows_a_recording(recorded, tmp_path):
    done = execute(sys.executable, "-m", "tools.measure.traces", REPLAY,
                   recorded[0], "--out", tmp_path / "work.svg")
    assert done.returncode == 0, done.stderr
    assert re.search(r"(?m)^page_table +4096 +\d+ ", done.stdout)
    assert "work: live bytes" in (tmp_path / "work.svg").read_text("utf-8")


# ---- on, off, failures ------------------------------------------------------

# `one` ends before kenbus, `two` begins after it; a third is all there was.
PARTS = ("trace off; trace; run kenbus -u 2 -i 1; trace save one; trace on; "
         "kmem create box 300; kmem alloc box 4; trace mark 7; kmastat -z -j; "
         "kmem free box all; kmem destroy box; trace save two")


@pytest.fixture(scope="module")
def parts(shared_path):
    done = make_trace(shared_path, PARTS)
    assert done.returncode == 0, done.stdout + done.stderr
    return shared_path, done.stdout


def test_nothing_is_recorded_after_off(parts):
    folder, text = parts
    _, events = listed(folder / "one.ktr")
    assert events[-1][:1] == ("mark",) and events[-1][2] == 1
    assert re.search(r"trace: off; (\d+) records, 0 before it", text)[1] == \
        re.search(r"trace: one has (\d+) records", text)[1]
    caches, events = listed(folder / "two.ktr")
    assert "pipe" not in {caches[e[2]][0] for e in events
                          if e[0] == "cache_alloc"}


def test_a_trace_begins_with_what_there_was(parts):
    folder, text = parts
    table, = tables(text)
    (live, _, size), = follow(folder / "two.ktr", table)
    assert live == clients(table, "inuse") and live["box"] == 4
    assert requested(folder / "two.ktr") == [size]
    caches, events = listed(folder / "two.ktr")
    before = [e for e in events if e[1] == 0]
    assert len(before) > 200 and {e[0] for e in before} <= {"alloc",
                                                            "cache_alloc"}
    assert [e[2] for e in events if e[0] == "mark"] == [7]


def test_a_cache_that_is_destroyed(parts):
    folder, _ = parts
    caches, events = listed(folder / "trace.ktr")
    assert [caches[e[2]] for e in events if e[0] == "destroy"][0] == \
        ("box", 300)
    assert ("mark", 8) in {(e[0], e[2]) for e in events}


# 900 pages, most of them freed at random: enough for an object of 255 pages,
# but no run of so many.
SCATTER = ("kmem create p 4096; kmem alloc p 900; kmem free p 700 random; "
           "reap -a p; kmem create big 1020k; kmem alloc big 2; "
           "kmastat -z -j; buddyinfo")


def test_failures_and_pressure(tmp_path):
    done = make_trace(tmp_path, SCATTER, MEM="8", BUFFER="4")
    assert done.returncode == 0, done.stdout + done.stderr
    table, = tables(done.stdout)
    caches, events = listed(tmp_path / "trace.ktr")
    at, = (i for i, e in enumerate(events) if e[0].endswith("fail"))
    assert caches[events[at][2]] == ("big", 1020 * 1024)
    assert clients(table, "fails") == {"big": 1}
    assert "pressure" in {e[0] for e in events[:at]}
    reaps = re.search(r"caches were reaped, (\d+) times", done.stdout)[1]
    assert Counter(e[0] for e in events)["pressure"] == int(reaps)


# ---- the command ------------------------------------------------------------

def test_other_kernels_say_which_one_records():
    for name in ("slate.elf", "slate-workshop.elf"):
        run = qemu.run(product(name, "tested"), "trace on; trace mark 3; "
                       "poweroff")
        assert run.text.count("trace: this kernel does not record; `make "
                              "trace CMD=...` boots one that does") == 2, \
            run.explain()
        assert [e["status"] for e in run.named["status"]] == [1, 1]


def test_wrong_words_change_nothing():
    lines = {
        "trace mark 9999999999": "trace: '9999999999' is not a number below",
        "trace mark x": "usage: trace [on|off]",
        "trace maybe": "usage: trace [on|off]",
        "trace save a/b": "trace: 'a/b' is not a name of up to 31 ",
        "trace save " + "n" * 32: f"trace: '{'n' * 32}' is not a name of up ",
        "trace save one": None,
        "trace save one ": "trace: one is saved already; choose another name",
        "trace": None,
        "trace off": None,
        "trace off ": "trace: no trace is on; `trace on` begins one",
        "trace mark": "trace: no trace is on; `trace on` begins one"}
    run = qemu.run(kernel(), "; ".join([*lines, "poweroff"]),
                   append="trace=4").good()
    for said in filter(None, lines.values()):
        assert said in run.text, run.explain()
    assert len(run.named["status"]) == sum(map(bool, lines.values()))
    assert re.findall(r"trace: o\w+; (\d+) records", run.text) == \
        2 * re.findall(r"trace: one has (\d+) records", run.text)


def test_many_traces():
    with qemu.Machine(kernel(), "trace=4") as machine:
        machine.prompt()  # before it a typed character may be lost
        said = [machine.command("; ".join(f"trace save {row}-{i}"
                                          for i in range(13)))
                for row in "abcde"]
    assert re.findall(r"trace: (?!.* records).*", "".join(said)) == [
        "trace: 64 traces are saved, and no more can be"]


def test_memory_for_the_recording():
    run = qemu.run(kernel(), "trace; poweroff", append="trace=3 trace=8")
    assert "option trace=: 3 is not a value for it" in run.text
    assert "memory for 419430" in run.text
    run = qemu.run(kernel(), "trace; poweroff")
    assert re.search(r"memory for 0\n\d+ records are lost",
                     qemu.plain(run.text))


def test_the_allocator_is_that_of_the_product():
    """Its objects, linked; nothing else but the recorder is added."""
    own, recording = linked("slate"), linked("slate-trace")
    heap = {o for o in own if o.startswith(("mm/kmem_", "mm/inspect/kmem_",
                                            "mm/debug/"))}
    assert len(heap) > 10
    other = {o for o in recording ^ own if not o.startswith("symbols/")}
    assert other == heap | {"heap", "kernel/shell/cmd_trace",
                            "tools/workshop/trace/cmd_trace",
                            "tools/workshop/trace/recorder"}


# ---- losses and damage ------------------------------------------------------

def address():
    return elf.Elf(kernel()).symbols["recording"] - 0xc0000000


def pack(memory, folder, at=None):
    return execute(PACK, memory, hex(at or address()), folder)


def test_a_full_recording_is_marked(tmp_path):
    """The kernel goes on; the file says how many events are lost, and has no
    figures."""
    ram = tmp_path / "ram"
    ram.touch()
    run = qemu.run(kernel(), "trace save none; poweroff", ram=ram).good()
    events = int(re.search(r"none has (\d+) records", run.text)[1])
    done = pack(ram, tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        f"pack: {tmp_path}/none.ktr: {events} more events are lost, so it has "
        "no figures: the recorder had memory for 0\n")
    data = (tmp_path / "none.ktr").read_bytes()
    assert struct.unpack_from("<I", data, 8)[0] & 4
    assert struct.unpack_from("<I", data, 44)[0] == events
    done = execute(REPLAY, tmp_path / "none.ktr")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"replay: the recorder lost {events} events: the "
                           "trace has no figures\n")


# What tools/workshop/trace/recording.h has: five words, the blocks' addresses,
# the caches, the traces; records of 20 bytes.
AT, BLOCK, ROOM = 0x100, 0x10000, (4 << 20) // 20
CACHE_ALLOC, ALLOC, FREE, CACHE_FAIL, FAIL, MARK = range(1, 7)
DESTROY, CREATE = 9, 10


def image(path, records, caches=(("box", 300),), traces=(("t", 0, None),),
          block=BLOCK, counts=(), room=ROOM):
    """A machine's memory with a recording of (op, addr, what[, us, cpu])."""
    names = b"".join(struct.pack("<32s3I", name.encode(), size, 8, 0)
                     for name, size in caches).ljust(256 * 44, b"\0")
    parts_ = b"".join(struct.pack(
        "<32s2I", name.encode(), first, len(records) if end is None else end)
        for name, first, end in traces)
    head = [0x4352544b, len(records), room, len(caches), len(traces)]
    head[:len(counts)] = counts
    with open(path, "wb") as f:
        f.seek(AT)
        f.write(struct.pack("<5I", *head) + struct.pack("<256I", block,
                                                        *[0] * 255)
                + names + parts_)
        f.seek(BLOCK)
        for n, (op, addr, what, *more) in enumerate(records):
            us, cpu = more or (1000 + n, 0)
            f.write(struct.pack("<QIIHH", us, addr, what, cpu, op))
        f.truncate(BLOCK + (4 << 20))
    return path


SMALL = [(CREATE, 0x900, 0), (CACHE_ALLOC, 0x2000, 0x900), (ALLOC, 0x3000, 20),
         (FREE, 0x2000, 0x900), (ALLOC, 0x2000, 9), (MARK, 0, 1)]


def test_slots_times_and_processors(tmp_path):
    """Of two processors; one read the clock before the other and wrote after
    it. The second allocation of an address is another block."""
    records = [*SMALL, (FREE, 0x3000, 20, 4000, 1), (MARK, 0, 2, 3900, 0),
               (CACHE_FAIL, 0, 0x900, 5000, 0), (FAIL, 0, 70, 5000, 0),
               (DESTROY, 0x900, 0x900, 5000, 0)]
    done = pack(image(tmp_path / "ram", records), tmp_path, AT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (f"{tmp_path}/t.ktr: 10 events, 3 allocations, 2 "
                           "frees\n")
    caches, events = listed(tmp_path / "t.ktr")
    assert caches == {1: ("box", 300)}
    assert events == [("cache_alloc", 1, 1, 0), ("alloc", 2, 20, 1),
                      ("free", 3, 0, 0), ("alloc", 4, 9, 0), ("mark", 5, 1, 0),
                      ("free", 3000, 1, 1), ("mark", 3000, 2, 0),
                      ("cache_fail", 4000, 1, 0), ("fail", 4000, 70, 0),
                      ("destroy", 4000, 1, 0)]
    data = (tmp_path / "t.ktr").read_bytes()
    assert struct.unpack_from("<2I", data, 8) == (1 | 2, 2)


def test_the_address_of_a_cache_is_used_again(tmp_path):
    records = [*SMALL, (DESTROY, 0x900, 0x900), (CREATE, 0x900, 1),
               (CACHE_ALLOC, 0x4000, 0x900)]
    image(tmp_path / "ram", records, caches=(("box", 300), ("bag", 50)))
    assert pack(tmp_path / "ram", tmp_path, AT).returncode == 0
    _, events = listed(tmp_path / "t.ktr")
    assert events[-2:] == [("destroy", 6, 1, 0), ("cache_alloc", 8, 2, 2)]


def test_requests_of_a_cache_without_room_are_lost(tmp_path):
    records = [*SMALL, (CREATE, 0xa00, 256), (CACHE_ALLOC, 0x5000, 0xa00),
               (FREE, 0x5000, 0xa00)]
    done = pack(image(tmp_path / "ram", records), tmp_path, AT)
    assert done.returncode == 1
    assert "t.ktr: 1 more events are lost" in done.stderr
    assert len(listed(tmp_path / "t.ktr")[1]) == len(SMALL) - 1


def change(records, at, record):
    return [*records[:at], record, *records[at:]]


@pytest.mark.parametrize("made, error", [
    ({"counts": [7]}, "no recording is at 0x100"),
    ({"counts": [0x4352544b, 6, ROOM * 256 + 1]}, "damaged: its counts"),
    ({"counts": [0x4352544b, 6, ROOM, 1, 65]}, "damaged: its counts"),
    ({"block": 1 << 30}, "damaged: 0x40000000 is outside of memory"),
    ({"caches": [("n" * 32, 8)]}, "damaged: cache 1"),
    ({"traces": [("t", 0, None), ("../t", 0, 1)]}, "damaged: trace 2"),
    ({"traces": [("", 0, 1)]}, "damaged: trace 1"),
    ({"traces": [("t", 2, 1)]}, "damaged: trace 1"),
    ({"traces": [("t", 0, 7)]}, "damaged: trace 1"),
    ({"traces": []}, "no trace was saved"),
    ({"records": change(SMALL, 2, (0, 0, 0))}, "damaged: record 3"),
    ({"records": change(SMALL, 2, (11, 0, 0))}, "damaged: record 3"),
    ({"records": change(SMALL, 2, (ALLOC, 0x2000, 4))},
     "damaged: record 3 allocates 0x2000, which is allocated"),
    ({"records": change(SMALL, 2, (FREE, 0x2008, 4))},
     "damaged: record 3 frees 0x2008, which is not allocated"),
    ({"caches": [("box", 300), ("bag", 9)], "records": [
        (CREATE, 0x900, 0), (CACHE_ALLOC, 0x2000, 0x900)], "align": 3},
     "t: damaged: cache 2"),
])
def test_a_damaged_recording(tmp_path, made, error):
    """One line says so, and there is no file."""
    made = dict(made)
    align = made.pop("align", None)
    path = image(tmp_path / "ram", **{"records": SMALL, **made})
    if align:
        with open(path, "r+b") as f:
            f.seek(AT + 5 * 4 + 256 * 4 + 44 + 36)
            f.write(struct.pack("<I", align))
    done = pack(path, tmp_path, AT)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"pack: {error}\n"
    assert not list(tmp_path.glob("*.ktr*"))


def test_no_memory_no_folder(tmp_path):
    ram = image(tmp_path / "ram", SMALL)
    assert pack(tmp_path / "none", tmp_path, AT).stderr == (
        f"pack: {tmp_path}/none: No such file or directory\n")
    assert pack(ram, tmp_path / "none", AT).stderr == (
        f"pack: {tmp_path}/none/t.ktr: No such file or directory\n")
    (tmp_path / "empty").touch()
    assert pack(tmp_path / "empty", tmp_path, AT).stderr == (
        "pack: damaged: 0x100 is outside of memory\n")
    done = execute(PACK, ram)
    assert (done.returncode, done.stderr) == (
        2, "usage: pack MEMORY ADDRESS FOLDER\n")


# ---- make trace -------------------------------------------------------------

@pytest.mark.parametrize("settings, error", [
    ({"TRACE_NAME": "a/b"}, "make trace: NAME=a/b is not a name of up to 31 "
     "letters, digits, - and _"),
    ({"BUFFER": "0"}, "make trace: BUFFER=0 is not a number of MiB up to 1024, "
     "as in BUFFER=64"),
    ({"BUFFER": "1028"}, "make trace: BUFFER=1028 is not a number of MiB up "
     "to 1024, as in BUFFER=64"),
    ({"MEM": "2G"}, "make trace: MEM=2G is not a number of MiB up to 2048, as "
     "in MEM=128"),
    ({"CMD": "echo " + "x" * 200}, "make trace: CMD is too long for the "
     "kernel's shell by 1"),
])
def test_wrong_settings(tmp_path, settings, error):
    done = make_trace(tmp_path, settings.pop("CMD", "echo"), **settings)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", error + "\n")
    assert not list(tmp_path.iterdir())


def test_commands_that_save_nothing(tmp_path):
    """And what was there stays."""
    (tmp_path / "trace.ktr").write_text("the last one", encoding="utf-8")
    done = make_trace(tmp_path, "poweroff")
    assert (done.returncode, done.stderr) == (1, "pack: no trace was saved\n")
    assert (tmp_path / "trace.ktr").read_text("utf-8") == "the last one"


def test_the_book_has_that_run(tmp_path):
    """Its words; numbers may change with the kernel."""
    page = (ROOT / "docs/others.md").read_text(encoding="utf-8")
    section = page.split("## Recording a trace")[1].split("\n## ")[0]
    commands, shown, table = re.search(
        r'    \$ make trace CMD="(.*)"\n((?:    .*\n)+)\n'
        r"    \$ make replay-trace .*\n((?:    .*\n)+)", section).groups()
    done = make_trace(tmp_path, commands, APPEND="")
    assert done.returncode == 0, done.stdout + done.stderr
    said = qemu.plain(done.stdout).replace(str(tmp_path), "build/trace")
    replayed = execute(REPLAY, tmp_path / "trace.ktr")
    for wanted, lines in ((shown, said[said.index("slate> "):]),
                          (table, replayed.stdout)):
        assert transcript.matches(
            [line[4:] for line in wanted.splitlines()], lines.splitlines()), \
            lines
