"""The pictures agree with the statistics to the object, the byte and the page;
and statistics that cannot be drawn give a clear error."""

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conftest import ROOT
from tools.measure import picture, pictures, statistics, svg
from tools.test.drawing import SVG, shapes, words

RECORDED = Path(__file__).with_name("statistics.jsonl")
LINES = RECORDED.read_text(encoding="utf-8").splitlines()
TIMES = [json.loads(line)["ms"] for line in LINES if '"user_pages"' in line]


@pytest.fixture(scope="module")
def stats():
    found = statistics.read(LINES, "recorded")
    assert not found.doubts
    return found


@pytest.fixture(scope="module")
def drawn(stats, shared_path):
    """The files that are made from the recorded statistics."""
    picture.draw(stats, shared_path, "echo <&>", each=0)
    return {p.name: p.read_text("utf-8") for p in shared_path.iterdir()}


# ---- what is drawn ---------------------------------------------------------

def test_a_cell_for_each_object(stats, drawn):
    text = drawn["slabs.svg"]
    legend = 1  # a swatch of each kind
    caches = stats.caches.values()
    assert sum(c.total for c in caches) > 1000
    assert len(shapes(text, "used")) - legend == sum(c.inuse for c in caches)
    assert len(shapes(text, "free")) - legend == \
        sum(c.total - c.inuse for c in caches)
    assert len(shapes(text, "header")) - legend == \
        sum(c.count for c in caches if c.header)


def test_colours_are_shifted_as_they_are(stats, drawn):
    gaps = [int(e.get("data-colour"))
            for e in shapes(drawn["slabs.svg"], "colour")[1:]]
    assert gaps == [s.colour for c in stats.by_memory() for s in c.slabs
                    if s.colour]
    assert len(set(gaps)) > 3


def test_bytes_are_to_scale(stats):
    box = stats.caches["box"]
    text = pictures.slabs(stats, only=["box"], each=0).file()
    scale = pictures.TRACK / box.slab_bytes
    rows = {}
    for cell in shapes(text, "used")[1:] + shapes(text, "free")[1:]:
        rows.setdefault(float(cell.get("y")), []).append(
            (float(cell.get("x")) - pictures.LEFT) / scale)
    assert len(rows) == len(box.slabs) > 3
    for (_, found), slab in zip(sorted(rows.items()), box.slabs):
        wanted = [slab.colour + i * box.chunk for i in range(slab.objects)]
        assert sorted(found) == pytest.approx(wanted, abs=0.1)


def test_which_objects_are_out(stats):
    """The cells of one slab from left to right."""
    box = stats.caches["box"]
    text = pictures.slabs(stats, only=["box"], each=0).file()
    cells = [e for e in shapes(text) if e.find(SVG + "title") is not None
             and e.find(SVG + "title").text.startswith("object ")]
    seen = "".join("#" if "used" in e.get("class").split() else "."
                   for e in cells)
    assert seen == "".join(s.cells for s in box.slabs)
    assert "#.#" in seen and ".#." in seen
    first = cells[0].find(SVG + "title").text
    assert first.endswith(f"0x{box.slabs[0].base + box.slabs[0].colour:08x}")


def test_every_block_of_the_buddy_map(stats, drawn):
    blocks = shapes(drawn["buddy.svg"])
    frames = [int(e.get("data-frames")) for e in blocks
              if e.get("data-frames")]
    wanted = [n for run in stats.runs if run.order is not None
              for _, n in run.blocks()]
    assert frames == wanted
    assert sum(wanted) == stats.buddy["total_pages"]
    free = [int(e.get("data-frames")) for e in blocks
            if "empty" in e.get("class") and e.get("data-frames")]
    assert sum(free) == stats.buddy["free_pages"]
    for order, count in stats.orders.items():
        assert free.count(1 << order) == count
    slabs = sum(r.frames for r in stats.runs if r.state == "slab")
    assert slabs * 4096 == sum(c.mem - c.hash_mem
                               for c in stats.caches.values())


def test_frames_of_no_block_have_their_area(stats, drawn):
    """The frames may fill more than a row, and begin anywhere in it."""
    kernel = [r for r in stats.runs if r.state == "kernel"]
    assert sum(r.frames for r in kernel) > pictures.ACROSS
    cell = pictures.MAP_WIDTH / pictures.ACROSS
    across = sum(float(e.get("width")) / cell
                 for e in shapes(drawn["buddy.svg"], "kernel")
                 if float(e.get("x")) < pictures.MAP_LEFT + pictures.MAP_WIDTH)
    assert across == pytest.approx(sum(r.frames for r in kernel), abs=0.1)


def test_memory_adds_up(stats, drawn):
    last = stats.samples[-1]
    areas = [int(e.get("data-last")) for e in shapes(drawn["memory.svg"])
             if e.get("data-last")]
    assert sum(areas) == 4096 * (last.supplier + last.user)
    assert sum(c.mem for c in stats.caches.values()) == 4096 * last.supplier


def test_a_cache_has_one_colour_in_all_pictures(stats, drawn):
    """Nine caches have their own; the others, which are small, share one."""
    colours = pictures.palette(stats)
    own = {name: kind for name, kind in colours.items() if kind != "kx"}
    assert len(set(own.values())) == len(own) == 9
    slabs = ElementTree.fromstring(drawn["slabs.svg"])
    rows = [e.get("class") for e in slabs.iter() if e.tag.startswith(SVG)]
    at = [i for i, e in enumerate(slabs.iter())
          if e.tag == SVG + "text" and "name" in e.get("class").split()]
    for cache, first, last in zip((c for c in stats.by_memory() if c.slabs),
                                  at, [*at[1:], len(rows)]):
        assert {k for k in rows[first:last - 1] if k and "used" in k.split()} \
            <= {f"used {colours[cache.name]}"}
        assert rows[first - 1] == colours[cache.name]
    for file in ("memory.svg", "buddy.svg"):
        texts = [e for e in ElementTree.fromstring(drawn[file])
                 if e.tag in (SVG + "rect", SVG + "text")]
        legend = {e.text: swatch.get("class")
                  for swatch, e in zip(texts, texts[1:])
                  if e.text in own and swatch.tag == SVG + "rect"}
        assert legend == {name: own[name] for name in legend}
        assert len(legend) > 4


def test_commands_are_marked_on_the_axis(stats):
    begin, end = stats.samples[0].ms, stats.samples[-1].ms
    more = [json.dumps({"event": "command", "ms": ms, "name": command})
            for ms, command in ((begin, "echo <&>"), (end, "reap; -a"))]
    text = pictures.memory(statistics.read(LINES + more)).file()
    lines = [e for e in ElementTree.fromstring(text).iter(SVG + "line")
             if e.get("class") == "mark"]
    left = pictures.PLOT_LEFT
    assert [float(e.get("x1")) for e in lines] == \
        [left, left + pictures.PLOT_WIDTH]
    for line in (f"1 {begin:,} ms echo <&>", f"2 {end:,} ms reap; -a"):
        assert line in words(text)


@pytest.mark.parametrize("line, commands", [
    ("reap", ["reap"]), (" a -b ;; c; ", ["a -b", "c"]),
    ("run sh -c 'x; y'; echo \"a; 'b\"", ["run sh -c 'x; y'",
                                         "echo \"a; 'b\""]),
    ("echo a';'b;c", ["echo a';'b", "c"])])
def test_commands_are_divided_as_by_the_shell(line, commands):
    assert picture.commands_of(line) == commands


def test_a_command_is_found_by_its_name():
    """The commands that began; one that does not exist has no event."""
    events = [{"ms": 1, "name": "run"}, {"ms": 5, "name": "run"}]
    assert list(picture.began(["run a", "nonsense", "run b"], events)) == [
        {"ms": 1, "name": "run a"}, {"ms": 5, "name": "run b"}]


@pytest.mark.parametrize("mib", (16, 64, 256))
def test_a_row_of_the_buddy_map_can_be_read(mib):
    few = statistics.Statistics(runs=[
        statistics.Run(i * 1024, 1024, 10, "free", None)
        for i in range(mib // 4)])
    text = pictures.buddy(few).file()
    blocks = [float(e.get("height")) for e in shapes(text, "empty")
              if e.get("data-frames")]
    assert len(blocks) == mib // 4 and min(blocks) > 4 * 16
    labels = re.findall(r"\b(\d+) MiB", words(text))
    assert {str(n) for n in range(mib)} <= set(labels)


def test_many_slabs_are_told_not_drawn(stats):
    text = pictures.slabs(stats, each=1).file()
    assert re.search(r"and 3 more full \(not drawn\)", words(text))
    heads = sum(len({s.state for s in c.slabs})
                for c in stats.caches.values() if c.header)
    assert len(shapes(text, "header")) - 1 == heads


def test_the_page_needs_nothing_else(stats, drawn):
    page = drawn["index.html"]
    assert page.count("<svg") == page.count("</svg>") == 3
    assert "echo &lt;&amp;&gt;" in page
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r"<script|<link|@import|url\(|src=|href=", page)
    assert set(re.findall(r"https?://[^\s\"<]+", page)) == \
        {"http://www.w3.org/2000/svg"}
    for cache in stats.by_memory():
        assert f"<td>{cache.name}<td>" in page


def test_two_looks_in_one_step_are_one_sample():
    again = [line for line in LINES if f'"ms": {TIMES[-1]},' in line]
    again = [line.replace('"user_pages": 0', '"user_pages": 7')
             for line in again]
    samples = statistics.read(LINES + again).samples
    assert [s.ms for s in samples] == sorted(set(TIMES))
    assert samples[-1].user == 7


def test_any_text_can_stand_in_a_drawing():
    d = svg.Drawing(10, "<t>", "&")
    d.text(0, 0, "a<b>&c", tip='"<')
    d.rect(0, 0, 1, 1, "used", "<&", data_name='"<')
    assert words(d.file()) == "a<b>&c"
    assert words(d.inline()) == "a<b>&c"


# ---- what cannot be drawn --------------------------------------------------

def line_with(*parts):
    return next(i for i, line in enumerate(LINES)
                if all(part in line for part in parts))


def edited(index, **changes):
    """The recorded lines, one of them with other members."""
    record = {**json.loads(LINES[index]), **changes}
    record = {k: v for k, v in record.items() if v is not ...}
    return LINES[:index] + [json.dumps(record)] + LINES[index + 1:]


BOX = line_with('"cache":"box"', '"chunk"')
SLAB = line_with('"cache":"box"', '"cells"')
BLOCK = line_with('"frame":', '"order"')
SAMPLE = line_with('"event": "sample"', '"free_pages"')


@pytest.mark.parametrize("lines, text", [
    ([], "no line of `kmastat -j`"),
    (['{"cache": '], ":1: no JSON"),
    (["[1]"], ":1: no JSON object"),
    (edited(BOX, size=...), f':{BOX + 1}: "size" is missing'),
    (edited(BOX, chunk="big"), '"chunk" is missing or no int'),
    (edited(BOX, total=-1), '"total" is below zero'),
    (edited(BOX, slab_objects=99), "99 objects of 208 bytes are no slab"),
    (edited(BOX, cache="kstack"), "a second cache called kstack"),
    (edited(SLAB, cache="nobody"), "a slab of nobody, a cache without a line"),
    (edited(SLAB, cells="#x"), "are not a slab's"),
    (edited(SLAB, state="gone"), "are not a slab's"),
    (edited(SLAB, base=...), '"base" is missing'),
    (edited(BLOCK, order=11), "there is no order 11"),
    (edited(BLOCK, frames=999999), "does not follow the run before"),
    (edited(SAMPLE, ms=10 ** 9), "time goes back"),
    (edited(SAMPLE, user_pages=None), '"user_pages" is missing'),
], ids=lambda v: v.strip(":") if isinstance(v, str) else "")
def test_bad_input_is_named(lines, text):
    with pytest.raises(statistics.StatisticsError) as error:
        statistics.read(lines, "recorded")
    assert text in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("change, text", [
    (dict(used=1), "1 of 19 counted"),
    (dict(cells="##"), "2 cells of 2 used"),
    (dict(colour=4000), "reach beyond its end"),
    (dict(bad=True), "its freelist is broken"),
], ids=["used", "cells", "colour", "bad"])
def test_a_damaged_slab_is_drawn_and_marked(change, text, tmp_path):
    stats = statistics.read(edited(SLAB, **change))
    assert any(d.startswith("box: ") and text in d for d in stats.doubts)
    picture.draw(stats, tmp_path)
    assert "<td>box !<td>" in (tmp_path / "index.html").read_text("utf-8")
    assert len(shapes((tmp_path / "slabs.svg").read_text("utf-8"), "used")) > 2


@pytest.mark.parametrize("index, change, text", [
    (line_with('"order":7', '"allocs"'), dict(free=5), "free blocks by order"),
    (SAMPLE, dict(supplier_pages=1), "the supplier gave 4096"),
    (line_with('"supplier"'), dict(equal=False), "is not what the supplier"),
    (BOX, dict(slabs=6), "5 slabs on the list, 6 counted"),
    (BOX, dict(bad=True), "contradicts itself"),
])
def test_sums_that_differ_are_doubts(index, change, text):
    assert any(text in d
               for d in statistics.read(edited(index, **change)).doubts)


def test_slabs_count_the_objects_in_magazines():
    inuse = json.loads(LINES[BOX])["inuse"]
    lines = edited(BOX, inuse=inuse - 3, trapped=3)
    assert statistics.read(lines).doubts == []


def command(*words_, **environment):
    return subprocess.run([sys.executable, "-m", "tools.measure.picture",
                           *map(str, words_)], capture_output=True,
                           encoding="utf-8",
                          env={"PATH": "/usr/bin:/bin", **environment},
                          cwd=ROOT, check=False)


def test_the_command_says_what_is_wrong(tmp_path):
    bad = tmp_path / "bad"
    bad.write_text("nonsense\n", encoding="utf-8")
    out = tmp_path / "out"
    for done in (command("--from", bad, out),
                 command("--from", tmp_path / "missing", out),
                 command("--from", RECORDED, "--only", "nobody", out),
                 command("--from", RECORDED, out, STEP="soon")):
        assert done.returncode == 1 and done.stdout == ""
        assert re.fullmatch(r"picture: \S.*\n", done.stderr), done.stderr
    assert not out.exists()
    done = command("--from", RECORDED, out)
    assert done.returncode == 0, done.stderr
    assert re.search(r"22 caches, 1,798 objects, 3 samples", done.stdout)


# ---- from the kernel -------------------------------------------------------

def test_end_to_end(workshop, tmp_path):
    lines = picture.gather(workshop, "kmem create box 100; "
                           "kmem alloc box 50; run spike -n 3", "20", "16")
    stats = statistics.read(lines)
    assert stats.doubts == []
    assert stats.caches["box"].inuse == 50
    kinds = [(r.order, r.state, r.cache) for r in stats.runs]
    assert all(a != b for a, b in zip(kinds, kinds[1:]))
    times = [s.ms for s in stats.samples]
    assert len(times) > 4
    assert [m.command for m in stats.marks] == [
        "kmem create box 100", "kmem alloc box 50", "run spike -n 3"]
    assert times[0] <= stats.marks[0].ms <= stats.marks[2].ms < times[-1]
    assert {b - a for a, b in zip(times, times[1:-1])} == {20}
    held = [sum(s.mem.values()) for s in stats.samples]
    assert max(held) > 2 * held[0]
    picture.draw(stats, tmp_path, each=0)
    text = (tmp_path / "slabs.svg").read_text(encoding="utf-8")
    assert len(shapes(text, "used")) - 1 == \
        sum(c.inuse for c in stats.caches.values())


def test_a_workload_that_does_not_end_is_an_error(kernel):
    with pytest.raises(picture.qemu.QemuError) as error:
        picture.gather(kernel, "panic on purpose", "10", "16")
    assert "panic: on purpose" in str(error.value)


def test_sample_says_what_is_wrong_and_stops(boot, workshop):
    machine = boot(image=workshop)
    for word in ("", "5", "x", "-1", "9999999"):
        said = machine.command(f"sample {word}")
        assert re.fullmatch(r"(sample|usage): \S.*\n", said), said
    assert machine.events("sample") == []
    machine.command("sample 10")
    machine.command("sample off; sample off")
    count = len(machine.events("sample"))
    assert count > 10
    machine.command("run sleep 0.1")
    assert len(machine.events("sample")) == count
