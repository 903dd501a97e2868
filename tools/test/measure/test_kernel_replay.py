"""Traces carried out in the kernel: what an allocation and a free take there,
in instructions, on every allocator; and what is refused."""
# Tests: tools/workshop/compare/cmd_replay.c

import random
import re

import pytest

from conftest import BUILD, BUILD_NAME, execute, product
from tools.measure import kernel_replay
from tools.run import qemu

pytestmark = pytest.mark.plain

ALLOCATORS = ("bsd", "slob", "sunos", "svr4")
INITRD = BUILD / "initrd-workshop.tar"


def kernel_of(allocator):
    return product(f"compare/{allocator}.elf", "tested")


def carry_out(allocator, module, commands="replay"):
    return kernel_replay.run(kernel_of(allocator), INITRD, module, commands)


def mixed(events=3000, seed=1):
    """A trace, as `replay -l` lists it: two caches, one of them with a
    constructor, and memory of any size; half of the blocks are live in the
    end."""
    rnd = random.Random(seed)
    lines = ["cache 1 100 plain 0 0", "cache 2 100 made 64 3",
             "units 1000000"]
    live, free, slots = [], [], 0
    for at in range(events):
        if live and rnd.random() < 0.4:
            slot = live.pop(rnd.randrange(len(live)))
            free.append(slot)
            lines.append(f"free {at} {slot} {slot}")
            continue
        slot = free.pop() if free else slots
        slots = max(slots, slot + 1)
        live.append(slot)
        lines.append(rnd.choice([
            f"cache_alloc {at} 1 {slot}", f"cache_alloc {at} 2 {slot}",
            f"alloc {at} {rnd.randrange(1, 9000)} {slot}"]))
        if at % 500 == 0:
            lines += [f"mark {at} 1 0", f"pressure {at} 0 0", f"fail {at} 9 0"]
    return lines


def counts(result):
    """{(pass, op): its event}."""
    return {(e["pass"], e["op"]): e for e in result.good().named["replay"]}


def pairs(what, rounds=1000):
    """The same request again and again, each freed at once. One block stays,
    so that its slab is never free."""
    return [f"{what} 1", *(line for _ in range(rounds)
                           for line in (f"{what} 0", "free 0 0 0"))]


def cost(allocator, lines):
    """What an allocation takes, and a free, if nearly each takes the same."""
    found = counts(carry_out(allocator, kernel_replay.image(lines)))
    for op in "alloc", "free":
        e = found["warm", op]
        assert abs(e["total"] / e["count"] - e["p99"]) < 2
    return found["warm", "alloc"]["p99"], found["warm", "free"]["p99"]


# ---- what is counted --------------------------------------------------------

@pytest.mark.parametrize("allocator", ("slab", *ALLOCATORS))
def test_each_event_is_counted_and_nothing_is_left(allocator):
    lines = mixed()
    module = kernel_replay.image(lines)
    result = carry_out(allocator, module,
                       "kmastat -z -j; replay; kmastat -z -j; verify")
    found = counts(result)
    for when in "cold", "warm":
        assert found[when, "alloc"]["count"] == \
            sum("alloc " in line for line in lines)
        assert found[when, "free"]["count"] == \
            sum(line.startswith("free ") for line in lines)
    for e in found.values():
        assert 0 < e["total"] // e["count"] <= e["p99"] <= e["max"]
    inuse = re.findall(r'"cache":"(\w+)".*?"inuse":(\d+)', result.text)
    half = len(inuse) // 2
    clients = [{(name, n) for name, n in part
                if not name.startswith("kmem_") or "alloc" in name}
               for part in (inuse[:half], inuse[half:])]
    assert clients[0] == clients[1]
    assert "replay" not in {name for name, _ in inuse}
    again = carry_out(allocator, module,
                      "kmastat -z -j; replay; kmastat -z -j; verify")
    assert again.named["replay"] == result.named["replay"]


def test_a_pair_costs_what_bench_says():
    """But for a store and a load of the pointer between the two."""
    run = qemu.run(product("slate-workshop.elf", "tested"),
                   "bench kmem; poweroff")
    bench = {e["key"]: e["value"] for e in run.named["bench"]}
    for size in 64, 1024:
        both = sum(cost("slab", pairs(f"alloc 0 {size}")))
        assert both - bench[f"kmem.pair.{size}"] == 2


def test_constructors_cost_where_objects_are_not_cached():
    """The paper's section 2: slab constructs an object once."""
    extra = {}
    for allocator in "slab", "slob":
        plain, made = (cost(allocator, [f"cache 1 100 c 0 {flags}",
                                        *pairs("cache_alloc 0 1")])
                       for flags in (0, 3))
        extra[allocator] = [b - a for a, b in zip(plain, made, strict=True)]
    assert extra["slab"] == [0, 0]
    assert min(extra["slob"]) > 10


def test_the_99th_percentile_of_large_costs():
    """Each allocation makes a slab, with the constructor of each object."""
    rounds = ["cache_alloc 0 1 0", "free 0 0 0", "pressure 0 0 0"] * 100
    alloc, _ = cost("slab", ["cache 1 8 c 0 3", *rounds])
    assert alloc > 1 << 14


def test_sizes_have_rows():
    lines = ["cache 1 100 c 0 0"]
    for slot, size in enumerate((1, 16, 17, 4096, 4097, 8192, 8193, 100_000)):
        lines.append(f"alloc 0 {size} {slot}")
    result = carry_out("slab", kernel_replay.image(
        [*lines, "cache_alloc 0 1 8"])).good()
    rows = re.findall(r"(?m)^(to|>) (\d+) +(\d+) +\d+ +\d+\r?$", result.text)
    assert rows == [("to", "16", "2"), ("to", "32", "1"), ("to", "128", "1"),
                    ("to", "4096", "1"), ("to", "8192", "2"),
                    (">", "8192", "2")]


# ---- what is refused --------------------------------------------------------

def test_without_a_trace():
    run = qemu.run(kernel_of("slab"), "replay; poweroff")
    assert ("replay: no trace is loaded; `make replay-kernel` does"
            in run.text), run.explain()


def refused(module):
    result = carry_out("slab", module,
                       "replay; kmastat -z replay; verify").good()
    assert not re.search(r"(?m)^replay_\d", result.text)
    assert [e["status"] for e in result.named["status"]][0] == 1
    assert "replay" not in result.named
    return re.search(r"(?m)^replay: .*?(?=\r?$)", result.text)[0]


WHOLE = kernel_replay.image(["cache 1 100 c 0 0", "alloc 0 10 0",
                             "cache_alloc 0 1 1", "free 0 0 0"])


@pytest.mark.parametrize("module, error", [
    (WHOLE[:-1], "the second boot module is not a trace, or not all of one"),
    (WHOLE + b"x", "the second boot module is not a trace, or not all of one"),
    (WHOLE[:8], "the second boot module is not a trace, or not all of one"),
    (b"KTRJ" + WHOLE[4:], "the second boot module is not a trace, or not all "
                          "of one"),
    (kernel_replay.image(["cache 1 100 c 0 0", "cache_alloc 0 2 0"]),
     "event 1 of the trace is damaged"),
    (kernel_replay.image(["alloc 0 8 0", "alloc 0 8 0"]),
     "event 2 of the trace is damaged"),
    (kernel_replay.image(["alloc 0 8 0", "free 0 0 0", "free 0 0 0"]),
     "event 3 of the trace is damaged"),
    (WHOLE.replace(b"\x01\0\0\0\x01\0\0\0\x01\0\0\0",
                   b"\x01\0\0\0\x01\0\0\0\x02\0\0\0"),
     "event 2 of the trace is damaged"),
    (kernel_replay.image(["alloc 0 8 0", f"alloc 0 {1 << 30} 1"]),
     "event 2: no memory, and the trace had some"),
    (kernel_replay.image([f"alloc 0 8 {1 << 20}"]),
     f"no memory for {(1 << 20) + 1} blocks"),
], ids=["truncated", "longer", "header", "magic", "cache", "live", "free",
        "slot", "memory", "tables"])
def test_a_damaged_module(module, error):
    assert refused(module) == f"replay: {error}"


def test_a_cache_that_cannot_be():
    result = carry_out("slab", kernel_replay.image(
        ["cache 1 100 c 3 0", "cache_alloc 0 1 0"]), "replay; verify").good()
    assert "kmem_cache_create: replay_1: " in result.text, result.explain()


# ---- make replay-kernel -----------------------------------------------------

def test_make_says_what_it_cannot(tmp_path):
    """-o keeps make from building what the test needs."""
    path = tmp_path / "x.ktr"
    path.write_bytes(b"KTR")
    built = (f"{BUILD_NAME}/{name}" for name in (
        "compare/slab.elf", "replay/replay", "initrd-workshop.tar"))
    done = execute(
        "make", "--no-print-directory", f"BUILD={BUILD_NAME}",
        *(word for name in built for word in ("-o", name)), "replay-kernel",
        f"TRACE={path}")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"replay: {path}: truncated: 3 bytes")
