"""What several processors cost each other (`make scale`): the orderings of the
talk "Slab allocators in the Linux kernel", with the slab layer for allocators
that have one lock and magazines for those with queues of each processor."""
# Tests: tools/measure/scale.py

import json

import pytest

from conftest import BUILD, ROOT, execute
from tools.measure import scale, table
from tools.run import qemu

pytestmark = pytest.mark.plain

PROGRAMS = BUILD / "scale"
SEVERAL = scale.CPUS[1:]


@pytest.fixture(scope="module")
def counted():
    """{(layer, processors): {phase: {figure: value}}}."""
    for layer in scale.LAYERS:
        program = PROGRAMS / layer / "mmscale"
        assert program.exists(), f"{program} does not exist: make scale"
    return {(layer, cpus): scale.count(PROGRAMS / layer / "mmscale", cpus)
            for layer in scale.LAYERS for cpus in scale.CPUS}


def figure(counted, layer, phase, what):
    return [counted[layer, cpus][phase][what] for cpus in SEVERAL]


def test_a_pair_does_not_concern_other_processors(counted):
    """Concurrent pairs: queues cost what they cost alone, one lock more with
    each processor."""
    for what in ("atomics", "lines"):
        assert set(figure(counted, "magazines", "pair", what)) == {0}
    assert figure(counted, "slab", "pair", "atomics") == [2] * len(SEVERAL)
    lines = figure(counted, "slab", "pair", "lines")
    assert 4 <= lines[0] < min(lines[1:])


@pytest.mark.parametrize(("phase", "atomics", "lines"), [
    ("alloc", 0.35, 1.5), ("free", 0.20, 0.5), ("stream", 0.20, 0.8)])
def test_queues_are_ahead_wherever_memory_moves(counted, phase, atomics,
                                                lines):
    """Concurrent allocations and frees, and objects freed elsewhere."""
    for what, most in (("atomics", atomics), ("lines", lines)):
        queues = figure(counted, "magazines", phase, what)
        assert max(queues) <= most, (what, queues)
        for one, many in zip(queues, figure(counted, "slab", phase, what)):
            assert 2.5 * one < many, (what, one, many)


def test_objects_freed_elsewhere_cost_one_lock_most(counted):
    """The talk: the dearest of all columns but for queues, which pass whole
    magazines on."""
    for cpus in SEVERAL:
        slab = counted["slab", cpus]
        assert slab["stream"]["lines"] > slab["pair"]["lines"]
        assert slab["stream"]["lines"] > \
            slab["alloc"]["lines"] + slab["free"]["lines"]


def test_one_processor_has_nothing_to_move(counted):
    for layer in scale.LAYERS:
        for phase in scale.PHASES:
            assert counted[layer, 1][phase]["lines"] == 0


def test_wrong_arguments():
    for arguments in ([], ["0"], ["9"], ["2", "0"], ["2", "5000"], ["x"]):
        done = execute(PROGRAMS / "slab/mmscale", *arguments)
        assert done.returncode == 2 and "usage: mmscale" in done.stderr


@pytest.mark.sample
def test_without_memory(smp):
    run = qemu.run(smp, "fail page 10; scale; fail off; verify; poweroff",
                   extra=["-smp", "4"]).good()
    assert "scale: too little memory" in run.text, run.explain()


@pytest.mark.sample
def test_the_instructions_do_not_depend_on_the_processors(smp):
    found = {cpus: scale.figures_of_kernel(smp, cpus) for cpus in (1, 4)}
    for layer, most in (("slab", 62), ("magazines", 42)):
        key = f"scale.{layer}.pair"
        assert found[1][key] == found[4][key] <= most
        assert found[4][key] < 103  # Linux's SLAB, on one processor
    for size in (64, 512, 4096):
        assert found[4][f"kmem_cache.pair.{size}"] <= 42
    assert found[4]["kmem.pair.64"] <= 58
    assert found[4]["kmem_cache.alloc.64"] <= 29
    assert found[4]["kmem_cache.free.64"] <= 28


@pytest.mark.sample
def test_magazines_cost_little_memory(smp):
    """As the chapter says."""
    found = scale.heap(smp, BUILD / "initrd-workshop.tar")
    on, off = found["smp.heap.on.4"], found["smp.heap.off.4"]
    assert off < on <= 1.1 * off
    assert found["smp.heap.on.reaped.4"] <= 1.02 * \
        found["smp.heap.off.reaped.4"]
    page = " ".join((ROOT / "docs/magazines.md").read_text("utf-8").split())
    assert f"the heap has {on:,} KiB, with `magazines=off` {off:,} KiB" in page
    assert f"it has {found['smp.heap.on.reaped.4']} KiB in both" in page


@pytest.mark.sample
def test_the_sentences_on_memory_are_written(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("So the heap\nhas 1 KiB, with `magazines=off` 2 KiB. "
                    "After it, it\nhas 3 KiB in both.", "utf-8")
    scale.write_heap(page, 1234, 999, 98)
    assert page.read_text("utf-8") == \
        "So the heap\nhas 1,234 KiB, with `magazines=off` 999 KiB. " \
        "After it, it\nhas 98 KiB in both."


@pytest.mark.sample
def test_tables_and_picture(smp, tmp_path):
    found = scale.measure(smp, PROGRAMS)
    rows = list(scale.tables(found))
    assert "| magazines, lines moved | 0.00 | 0.00 | 0.00 | 0.00 |" in rows
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- scale -->\nold\n<!-- end -->after\n", "utf-8")
    table.put_in(page, "scale", "\n".join(rows))
    assert page.read_text("utf-8") == \
        "before\n<!-- scale -->\n" + "\n".join(rows) + \
        "<!-- end -->after\n"
    picture = scale.draw(found).file()
    assert picture.count("<rect") >= 2 * len(scale.CPUS) * len(scale.PHASES)
    json.dumps(found)
    assert "\n".join(rows) in (ROOT / "docs/magazines.md").read_text("utf-8"), \
        "make scale DOC=1"
