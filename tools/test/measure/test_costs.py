"""The measurements of the paper's section 5, exactly: instructions of the
workshop kernel's `bench`, and memory. `make bench` prints the figures; these
tests check the paper's conclusions."""

import re
import subprocess

import pytest

from conftest import BUILD, BUILD_NAME, ROOT, output_of
from tools.measure import bench
from tools.run import qemu

pytestmark = [pytest.mark.workshop, pytest.mark.plain]

COMMANDS = "bench self; bench kmem_cache; bench kmem; bench kinds; " \
    "bench object; run bench memcpy.4096 memmove.4096 memset.4096; poweroff"


@pytest.fixture(scope="module")
def figures(kernel):
    result = qemu.run(kernel, COMMANDS).good()
    return {e["key"]: e["value"] for e in result.named["bench"]}


def by_size(figures, key):
    """[figure], from the smallest size to the largest."""
    found = {int(name[len(key) + 1:]): value for name, value in figures.items()
             if re.fullmatch(rf"{re.escape(key)}\.\d+", name)}
    return [found[size] for size in sorted(found)]


def test_of_known_instructions_exactly_their_number_is_counted(figures):
    assert figures["self.ten"] == 10
    assert figures["self.stored"] == 10
    assert figures["self.eleven"] == 11


def test_the_loops_that_are_subtracted_are_those_around(kernel):
    """Each loop of `bench` ends as the empty one does, with two instructions
    that count a register down."""
    text = output_of("objdump", "-d", "--no-show-raw-insn", kernel)
    for name in ("benchcmd_empty_loop", "benchcmd_cache_pair",
                 "benchcmd_without"):
        body = re.search(rf"<{name}>:\n(.*?)\n\n", text, re.S).group(1)
        loops = re.findall(r"\t(.*)\n *(\w+):\tjne +(\w+) ", body)
        ends = [before for before, at, to in loops
                if int(to, 16) < int(at, 16)]
        assert ends, name
        for end in ends:
            assert re.match(r"dec +%e..$|sub +\$0x1,%e..$", end), (name, end)


def test_a_boot_of_many_instructions(kernel):
    """More than a 32-bit number of hundredths."""
    run = qemu.run(kernel, "bench boot; poweroff", memory="64",
                   append="kmem.verify=1 kmem.debug=FPZU").good()
    boot = run.named["prompt"][0]["instructions"]
    assert boot > 2 ** 32 // 100
    assert [e["value"] for e in run.named["bench"]] == [boot]
    assert re.search(rf"boot\.instructions +{boot}\.00", run.text)


def test_without_memory_for_a_slab(kernel):
    """The last requests for a page are those of the slab that is measured."""
    def bench(n):
        done = qemu.run(kernel, f"fail page {n} -f bench_kmem_cache; "
                        "bench kmem_cache; fail; fail off; poweroff")
        return done.good().text
    requests = int(re.search(r"(\d+) so far", bench(10_000_000))[1])
    for n in requests, requests - 1:
        assert "4096 bytes: skipped: too little memory" in bench(n)


def test_without_a_largest_block(kernel):
    done = qemu.run(kernel, "bench buddy; verify; poweroff", memory="8").good()
    assert "buddy.chain.0: skipped" in done.text
    assert "buddy.chain.0" not in {e["key"] for e in done.named["bench"]}


def test_programs_move_memory_by_words(figures):
    """Of 4,096 bytes, with all of a call; a loop of bytes takes four or five
    instructions for each."""
    assert figures["memcpy.4096"] < 4096 * 0.8
    assert figures["memset.4096"] < 4096 * 0.6
    assert figures["memmove.4096"] < 4096 * 1.6


def test_hot_pairs_keep_their_budgets(figures):
    assert figures["kmem_cache.pair.64"] <= 58
    assert figures["kmem_cache.pair.512"] <= 84


def test_s60_kmem_alloc_costs_a_look_at_a_table_more(figures):
    """The paper: 4.7 against 3.8 us, a factor of 1.24, for every size."""
    caches = by_size(figures, "kmem_cache.pair")
    classes = by_size(figures, "kmem.pair")
    assert len(caches) == len(classes) >= 10
    assert len({round(b - a, 1) for a, b in zip(caches, classes)}) == 1
    assert 1.1 < classes[0] / caches[0] < 1.4


def test_s60_a_pair_costs_the_same_for_all_small_objects(figures):
    assert len(set(by_size(figures, "kmem_cache.pair")[:6])) == 1


def test_s61_caching_saves_for_each_kind_of_object(figures):
    kinds = [key[len("kinds.with."):] for key in figures
             if key.startswith("kinds.with.")]
    assert len(kinds) >= 18
    for kind in kinds:
        assert figures[f"kinds.with.{kind}"] < \
            figures[f"kinds.without.{kind}"], kind


def test_s61_the_cost_of_a_constructor_is_saved_whole(figures):
    """A cached pair does not depend on what the constructor does; without the
    cache each of the object's words is stored at each allocation."""
    cached = by_size(figures, "object.cached")
    uncached = by_size(figures, "object.uncached")
    assert cached[0] == by_size(figures, "kmem_cache.pair")[3]
    assert uncached == sorted(uncached)
    assert uncached[-1] > 6 * cached[-1]


def test_s62_fragmentation_stays_small(kernel):
    """The paper's kernel: 11 per cent after booting, 13 after the spike, 14
    after `find` and after kenbus; with its objects freed, memory comes back."""
    subprocess.run(["make", "--no-print-directory", "-s",
                    f"BUILD={BUILD_NAME}", "initrd-big"], cwd=ROOT, check=True)
    said, _ = bench.fragmentation(kernel, BUILD / "initrd-big.tar", "")
    steps = [said[f"frag.{step}"] for step in bench.FRAG_STEPS]
    assert 0 < steps[0] <= 11 and max(steps) <= 14, steps


def test_outside_counted_mode_figures_are_noisy(workshop):
    """Times are whole ticks then; other figures keep their digits."""
    def figures(counted):
        text = qemu.run(workshop, "bench kmem; bench util; poweroff",
                        counted=counted).text.replace("\r", "")
        kmem, util = text.split("payload", 1)
        return text, [re.findall(rf"^  {key}\.\S+ +(\S+)$", part, re.M)
                      for key, part in (("kmem", kmem), ("util", util))]

    for counted in (True, False):
        text, (kmem, util) = figures(counted)
        assert len(kmem) == 10 and len(util) > 10
        assert ("ticks, noisy" in text) != counted
        assert all(("." in figure) == counted for figure in kmem)
        assert all("." in figure for figure in util)
