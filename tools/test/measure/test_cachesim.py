"""The simulated cache: its misses are those counted by hand, and colouring
has the effect in it that section 4 of the paper describes."""

import re
import sys
from types import SimpleNamespace

import pytest

from conftest import ROOT
from tools.grading import questions
from tools.measure import cachesim as command
from tools.measure import cache_model, cachesim_picture, statistics
from tools.run import watchdog
from tools.test.drawing import shapes

SMALL = cache_model.Geometry("small", 128, 2, 16)    # four sets


def box(size=16, slabs=((0x1000, 0, "####"), (0x2000, 8, "#.#."))):
    """A cache of such objects with these slabs: base, colour, cells."""
    out = sum(cells.count("#") for _, _, cells in slabs)
    each = len(slabs[0][2])
    return statistics.Cache(
        "box", "named", size, size, 4096, each, 0, 64, 8, out,
        each * len(slabs), len(slabs), 0, 0, out, 0, len(slabs),
        [statistics.Slab(base, base, 4096, colour, cells.count("#"), each,
                         "partial", False, cells)
         for base, colour, cells in slabs])


# ---- the cache -------------------------------------------------------------

def test_the_line_used_longest_ago_goes():
    cache = cache_model.Cache(SMALL)
    assert not cache.touch(0) and not cache.touch(4)    # both of set 0
    assert cache.touch(0)
    assert not cache.touch(8)                           # takes the place of 4
    assert cache.touch(0) and cache.touch(8) and not cache.touch(4)
    assert not cache.touch(1)                           # another set


@pytest.mark.parametrize("count, warm", [(1, 0), (2, 0), (3, 3), (8, 8)])
def test_a_set_that_is_too_small_misses_each_time(count, warm):
    """All lines are in one set of two ways."""
    seen = cache_model.watch(SMALL, [64 * i for i in range(count)], 4)
    assert (seen.cold, seen.warm, seen.touches) == (count, warm, count)
    assert seen.load == [count, 0, 0, 0] and seen.used == 1
    assert seen.missed == [warm > 0] * count


def test_lines_that_fit_miss_once():
    seen = cache_model.watch(SMALL, range(0, 128, 16), 16, rounds=5)
    assert (seen.cold, seen.warm) == (8, 0)
    assert seen.load == [2, 2, 2, 2]


def test_hot_bytes_may_reach_into_the_next_line():
    assert list(cache_model.lines_of(SMALL, 8, 8)) == [0]
    assert list(cache_model.lines_of(SMALL, 8, 9)) == [0, 1]
    seen = cache_model.watch(SMALL, [8, 24], 16)
    assert seen.touches == 4 and seen.load == [1, 1, 1, 0]
    assert (seen.cold, seen.warm) == (3, 0)


def test_addresses_are_those_of_objects_that_are_out():
    assert cache_model.addresses(box()) == [
        0x1000, 0x1010, 0x1020, 0x1030, 0x2008, 0x2028]


@pytest.mark.parametrize("text, sets", [
    ("486", 128), ("pentium", 128), ("mmx", 128), ("8192:1:32", 256),
    ("32:2:16", 1)])
def test_caches_by_name_and_by_numbers(text, sets):
    assert cache_model.geometry(text).sets == sets


@pytest.mark.parametrize("text", ["", "z80", "8192", "8192:4", "8192:4:0",
                                  "8192:4:24", "8193:4:16", "8192:3:16",
                                  "-1:1:1", "6144:4:16"])
def test_invalid_caches_are_refused(text):
    with pytest.raises(cache_model.CacheError):
        cache_model.geometry(text)


@pytest.mark.parametrize("size, power", [(1, 1), (8, 8), (9, 16), (300, 512),
                                         (4096, 4096)])
def test_powers_of_two(size, power):
    assert cache_model.power_of_two(size) == power


# ---- the pictures ----------------------------------------------------------

def test_each_object_and_each_set_is_drawn():
    cache = box()
    seen = cache_model.watch(SMALL, cache_model.addresses(cache), 4)
    text = cachesim_picture.draw([(cache, seen, "words <&>")], 4).file()
    drawn = shapes(text)
    objects = [e.get("data-object") for e in drawn if e.get("data-object")]
    assert objects == [str(n) for n in range(len(seen.addresses))]
    rows = {e.get("y") for e in drawn if e.get("data-object")}
    assert len(rows) == len(cache.slabs)
    height = {}
    for e in drawn:
        if e.get("data-set"):
            number = int(e.get("data-set"))
            height[number] = height.get(number, 0) + float(e.get("height"))
    unit = cachesim_picture.BARS / max(max(seen.load), SMALL.ways)
    assert height == pytest.approx(
        {i: n * unit for i, n in enumerate(seen.load) if n}, abs=0.02)


# ---- the command -----------------------------------------------------------

def run(kernel, folder, **environment):
    return watchdog.run(
        [sys.executable, "-m", "tools.measure.cachesim", kernel, folder],
        cwd=ROOT, env={"PATH": "/usr/bin:/bin:/usr/local/bin", **environment},
        capture_output=True, encoding="utf-8")


def row(text, name):
    """The last number of objects missed, and the rest of a line's numbers."""
    line = re.search(rf"^{name} .*$", text, re.M).group()
    return [int(n) for n in re.findall(r"\d+(?![\d.]*\.\d| %)", line)][:7]


def test_the_usual_case_tells_the_three_apart(kernel, tmp_path):
    """13 objects of 304 bytes in a slab. Uncoloured the eight of a fifth slab
    share their sets with those of four others; coloured, two at most do; in
    buffers of 512 bytes all 60 are in four sets."""
    done = run(kernel, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "128 sets" in done.stdout
    assert row(done.stdout, "coloured") == [304, 5, 5, 34, 2, 60, 0]
    assert row(done.stdout, "plain") == [304, 5, 1, 13, 5, 60, 40]
    assert row(done.stdout, "powers") == [512, 8, 1, 4, 15, 60, 60]
    for name in ("index.html", "cachesim.svg"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        drawing = text[text.index("<svg"):text.index("</svg>") + 6]
        marks = [e.get("class") for e in shapes(drawing)
                 if e.get("data-object")]
        assert marks[:60] == ["used"] * 60 and marks[120:] == ["bad"] * 60
        assert sorted(marks[60:120]) == ["bad"] * 40 + ["used"] * 20


def test_colouring_on_a_486(kernel, tmp_path):
    """256 bytes: a slab of each of 29 colours, 15 objects in each. Uncoloured
    they begin in 8 sets of 128, 58 or 50 in each; coloured, four at most."""
    done = run(kernel, tmp_path, SIZE="256", OBJECTS="435")
    assert done.returncode == 0, done.stderr
    assert row(done.stdout, "coloured") == [256, 29, 29, 120, 4, 435, 0]
    assert row(done.stdout, "plain") == [256, 29, 1, 8, 58, 435, 435]


def test_power_of_two_buffers_use_a_tenth_of_the_cache(kernel, tmp_path):
    """The paper's inodes (4.1): 300 bytes in buffers of 512, 48 bytes hot."""
    done = run(kernel, tmp_path, SIZE="300", HOT="48", OBJECTS="128")
    assert done.returncode == 0, done.stderr
    chunk, slabs, _, used, most, lines, missed = row(done.stdout, "powers")
    assert (chunk, slabs, used, most, lines) == (512, 16, 12, 32, 384)
    assert missed == lines
    assert row(done.stdout, "coloured")[3] > 6 * used


@pytest.mark.parametrize("environment, text", [
    ({"SIZE": "0"}, "SIZE=0: a number from 1"),
    ({"SIZE": "x"}, "SIZE=x"), ({"ALIGN": "24"}, "power of two"),
    ({"SIZE": "32", "HOT": "33"}, "only 32 bytes"),
    ({"OBJECTS": "99999"}, "OBJECTS=99999"),
    ({"CACHE": "z80"}, "there is no cache 'z80'"),
    pytest.param(  # a sanitized kernel needs more to boot
        {"MEM": "8", "SIZE": "4096", "OBJECTS": "9000"},
        "coloured: there are not 9000 objects", marks=pytest.mark.plain),
])
def test_invalid_settings_give_one_line(kernel, tmp_path, environment,
                                            text):
    done = run(kernel, tmp_path / "new", **environment)
    assert done.returncode == 1
    assert done.stderr.startswith("cachesim: ") and text in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_wishes_have_their_usual_values():
    assert command.wishes({}) == command.DEFAULTS
    assert command.wishes({"SIZE": "300", "HOT": ""})["SIZE"] == 300


# ---- lab 4 -----------------------------------------------------------------

LAB = ROOT / "docs/labs/04-caches"


@pytest.mark.parametrize("seed", (0, 4, 7))
def test_the_rules_of_lab_4_are_what_the_kernel_does(kernel, seed):
    """For three of the eight sizes, answers.py agrees with a run."""
    lab = questions.load_checker(LAB / "answers.py")
    machine = SimpleNamespace(seed=seed, kernel=kernel)
    found = lab["solve"](machine)
    assert lab["rules"](lab["size_of"](seed)) == found
    assert set(lab["check"](found, machine).values()) == {None}
    wrong = {name: answer + 1 for name, answer in found.items()}
    assert None not in lab["check"](wrong, machine).values()
