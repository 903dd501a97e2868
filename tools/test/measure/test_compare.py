"""`make compare`: what its kernels measure, and what it says of the figures."""
# Tests: tools/measure/compare.py, tools/workshop/compare/cmd_compare.c
# Tests: mm/others/yours.c

import copy
import json
import re

import pytest

from conftest import BUILD, execute, long, product
from tools.measure import compare, scale
from tools.run import qemu

pytestmark = pytest.mark.plain

PAIRS = ("slab", "bsd", "sunos")


def kernel(name):
    return product(f"compare/{name}.elf", "tested")


@pytest.fixture(scope="module")
def measured():
    """{allocator: {what: {size: instructions}}} of `compare boot`."""
    initrd = str(product("initrd-workshop.tar", "tested"))
    found = {}
    for name in PAIRS:
        result = compare.run(kernel(name), "compare boot; verify", 128,
                             initrd).good()
        found[name] = {}
        for e in result.named["compare"]:
            assert e["when"] == "boot"
            found[name].setdefault(e["what"], {})[str(e["size"])] = e["value"]
    return found


def test_every_figure_is_there(measured):
    sizes = {str(size) for size in compare.SIZES}
    objects = {str(size) for size in compare.OBJECTS}
    for figures in measured.values():
        for what in ("alloc", "free", "pair"):
            assert figures[what].keys() == sizes
        for what in ("cache", "constructed"):
            assert figures[what].keys() == objects


def test_figures_are_of_the_operations(measured):
    """A pair is an allocation and a free; a constructor of 512 bytes has a loop
    of 128 stores, which slabs do not pay and all others pay alike: no timer
    interrupt is part of a figure."""
    for figures in measured.values():
        assert abs(figures["pair"]["64"] - figures["alloc"]["64"]
                   - figures["free"]["64"]) < figures["pair"]["64"] / 4
    slab, bsd, sunos = (measured[name] for name in PAIRS)
    assert slab["constructed"] == slab["cache"]
    assert bsd["constructed"]["512"] - bsd["cache"]["512"] > 128
    for size, pair in sunos["cache"].items():
        assert abs(sunos["constructed"][size] - pair -
                   bsd["constructed"][size] + bsd["cache"][size]) < .2
    assert all(slab["pair"][size] < bsd["pair"][size] for size in slab["pair"])


def test_the_most_pages_are_of_the_time_between_two_marks():
    initrd = str(product("initrd-workshop.tar", "tested"))
    result = compare.run(kernel("bsd"), "compare; run spike; compare; compare",
                         64, initrd)
    before, spike, after = result.named["compare-mark"]
    assert spike["most"] > 2 * before["held"] > 0
    assert spike["most"] >= spike["held"] == after["most"] == after["held"]
    assert spike["instructions"] > 100 * after["instructions"]


def test_without_memory_it_says_so():
    result = qemu.run(kernel("slab"), "compare boot; verify; poweroff",
                      memory="8", budget=40_000).good()
    assert "compare: too little memory" in result.text, result.explain()


def test_a_run_that_fails_is_one_error():
    with pytest.raises(compare.CompareError) as caught:
        compare.run(kernel("slab"), "run there-is-no-such-program", 32,
                    str(product("initrd-workshop.tar", "tested")))
    assert "the run failed" in str(caught.value)


def test_messages_are_sent_and_freed():
    """A mistake in the arguments starts no task."""
    result = qemu.run(kernel("slob"), "messages 2 3; messages 11 1; messages 0 "
                      "1; messages 1 1; verify; poweroff", memory="32").good()
    done = result.named["messages"]
    assert [(e["groups"], e["messages"]) for e in done] == [(2, 2400), (1, 400)]
    assert all(e["instructions"] > 200 * e["messages"] for e in done)
    assert result.text.count("messages: needs groups, up to 10") == 2


# ---- what is said of figures ------------------------------------------------

# Waste of the paper's table, at rest: nothing more is returned then.
def figures_of(name, pair, cached, untyped):
    steps = [{"requested": 1000 - 10 * percent, "held": 1000}
             for percent in compare.PAPER_WASTE[name]]
    trace = {"mean": pair / 2, "p99": pair, "max": 2 * pair}
    sizes = {str(size): cached for size in compare.SIZES}
    constructed = {size: cached + (name != "slab") * int(size)
                   for size in sizes}
    work = {"cache": sizes, "constructed": constructed, "alloc": sizes,
            "free": sizes, "pair": {**sizes, "64": untyped}}
    lines = {str(cpus): dict.fromkeys(scale.PHASES, 1.5)
             for cpus in scale.CPUS}
    messages = {str(cpus): {str(groups): pair * groups
                            for groups in compare.GROUPS}
                for cpus in compare.PROCESSORS}
    return {"R1": {"alloc": trace, "free": trace}, "costs": {"work": work},
            "lines": lines,
            "hackbench": {"messages": messages, "program": messages},
            "fragmentation": [{"raw": step, "reclaimed": step}
                              for step in steps],
            "workloads": {title: {"instructions": 10 ** 6, "before": 1,
                                  "most": 2} for title in compare.WORKLOADS},
            "operations": {key: 100 for key in compare.OPERATIONS}}


@pytest.fixture
def paper():
    """The figures of the paper, in the place of instructions."""
    cost = compare.PAPER_PAIR
    return {name: figures_of(name, cost[name], cost["slab"], cost["untyped"])
            for name in compare.PAPER_WASTE}


def failing(found):
    return [e.text for e in compare.expectations(found) if not e.holds]


def test_the_papers_own_figures_are_as_published(paper):
    """But for one: Slate's slabs are to waste less than the paper's."""
    assert failing(paper) == ["slabs waste at most 10 % after every step"]


@pytest.mark.parametrize("change, text", [
    (lambda f: f["svr4"]["R1"]["alloc"].update({"mean": 90}),
     "least on slabs, more in SVr4"),
    (lambda f: f["bsd"]["R1"]["alloc"].update({"mean": 9}),
     "4.4BSD costs less than kmem_alloc"),
    (lambda f: f["bsd"]["R1"]["free"].update({"max": 99}),
     "SunOS has the largest spread"),
    (lambda f: f["slab"]["costs"]["work"]["constructed"].update({"512": 9}),
     "costs no construction"),
    (lambda f: f["sunos"]["fragmentation"][0]["reclaimed"].update(
        {"requested": 500}), "after boot SunOS wastes least"),
    (lambda f: f["bsd"]["fragmentation"][1]["reclaimed"].update(
        {"requested": 790}), "raise the waste of 4.4BSD and SVr4"),
    (lambda f: f["slab"]["fragmentation"][3]["reclaimed"].update(
        {"requested": 500}), "in the end slabs waste least"),
])
def test_what_is_otherwise_is_said(paper, change, text):
    found = copy.deepcopy(paper)
    change(found)
    assert any(text in expectation for expectation in
               set(failing(found)) - set(failing(paper))), failing(found)


@pytest.fixture
def article():
    """The seconds of the article, in the place of instructions."""
    return {name: {"hackbench": {"messages": {
        "1": {"1": 0, "10": 0}, **copy.deepcopy(compare.ARTICLE[name])}}}
        for name in compare.ARTICLE}


@pytest.mark.parametrize("name, cpus, groups, value, text", [
    ("slmb", "4", "10", 121, "4 processors with 10 groups"),
    ("slmb", "4", "1", 7, "4 processors with one group"),
    ("slmb", "1", "10", 222, "one processor with 10 groups"),
    ("slmb", "1", "1", 12, "almost twice as much")])
def test_the_articles_figures_are_as_published(article, name, cpus, groups,
                                               value, text):
    def wrong():
        return [e.text for e in compare.slmb_as_published(article)
                if not e.holds]
    assert wrong() == []
    article[name]["hackbench"]["messages"][cpus][groups] = value
    assert len(wrong()) == 1 and text in wrong()[0]


def test_the_tables_and_the_page_show_every_figure(paper, tmp_path):
    marks = [{"held": 4096, "waste": 7}] * 4
    trace = {"slab": {"marks": marks, "peak": 8192, "residue": 0}}
    tables = list(compare.all_tables(paper, trace,
                                     {"sparsest slab": [1, 2, 3]},
                                     {"sorted": [4, 5, 6]},
                                     paper["slab"]["lines"],
                                     [("2014", {**trace["slab"],
                                                "allocator": "slob"})]))
    text = compare.text_of(tables, list(compare.expectations(paper)))
    assert max(map(len, text.splitlines())) <= 95
    assert re.search(r"2014 +slob( +7){4} +8\n", text)
    waste, = [t for t in tables if t.title.startswith("Total fragmentation")]
    rows = {row[0]: row[1:] for row in waste.rows}
    for name, published in compare.PAPER_WASTE.items():
        assert [float(cell) for cell in rows[name]] == [*published] * 3
    cost = {row[0]: row[1:4] for row in tables[0].rows}
    assert cost["sunos"] == ["25", "6.6", "6.6"]
    assert cost["slab, kmem_alloc"] == ["5", "1.2", "1.2"]
    compare.write_page(tmp_path / "index.html", paper, tables,
                       list(compare.expectations(paper)))
    html = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert html.count("<svg") == 3 and "NOT as published" in html
    assert not re.search(r'(src|href)="', html)  # loads nothing


def test_profiles_are_rows_of_r1():
    """SLUB's of 2014 is that of the other replay."""
    rows = {name: {"row": name} for names in compare.PROFILES.values()
            for name in names}
    slub = {"row": "linux_slub", "peak": 1}
    found = compare.profiles(rows, {"linux_slub": slub})
    assert [when for when, row in found if row is slub] == ["2014"]
    assert [(when, row["row"]) for when, row in found] == [
        (when, name) for when, names in compare.PROFILES.items()
        for name in names]


# ---- the whole --------------------------------------------------------------

@long
def test_make_compare():
    """Two runs give the same."""
    out = BUILD / "compare"
    texts = []
    for _ in range(2):
        done = execute("make", "--no-print-directory", "compare")
        assert done.returncode == 0, done.stderr
        texts.append((out / "compare.json").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    found = json.loads(texts[0])
    for figures in found["allocators"].values():
        for step in figures["fragmentation"]:
            for sample in step.values():
                assert sample["held"] % 4096 == 0
                assert 0 < sample["requested"] <= sample["held"]
    evicted = found["evictions"]
    assert evicted["sparsest slab"][2] > 10 * evicted["least recently used"][2]
    not_so = [e["text"] for e in found["expectations"] if not e["holds"]]
    assert not_so == ["4.4BSD costs less than kmem_alloc on slabs",
                      "in the end slabs waste least, then SunOS, and 4.4BSD "
                      "and SVr4 most",
                      "on one processor with one group SLMB costs almost "
                      "twice as much as SLOB",
                      "SLUB costs less than SLAB",
                      "after boot SLOB holds least, then SLUB, then SLAB"]


@long
def test_yours_has_to_be_written_first():
    done = execute("make", "--no-print-directory", "compare", "ALLOCATOR=yours")
    assert done.returncode != 0
    assert "is not written yet" in done.stderr + done.stdout
