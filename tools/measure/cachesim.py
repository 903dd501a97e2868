"""The effect of colouring in a processor's cache: `make cachesim`.

    python3 -m tools.measure.cachesim build/slate.elf build/cachesim

Boots Slate, allocates the same number of objects in three ways, and touches the
first bytes of each repeatedly in a simulated set-associative cache:

    coloured   a cache as it is: each slab begins a little later (paper, 4.3)
    plain      the same without colours (`kmem create … nocolour`)
    powers     buffers of the next power of two, at multiples of it, as a
               power-of-two allocator has them (paper, 4.1)

Prints how many touches miss once each object has been touched before, and
writes index.html and cachesim.svg into the folder: where the objects are, and
how many lines they need in each set. make passes on, in the environment, SIZE
and ALIGN (of the objects, in bytes), OBJECTS (how many), HOT (bytes that are
touched), CACHE (486, pentium, mmx or BYTES:WAYS:LINE) and MEM (MiB).
"""

import argparse
import html
import os
import sys
from pathlib import Path

from tools.measure import cache_model, cachesim_picture, page, statistics
from tools.run import qemu
from tools.measure.pictures import plural

# The paper's inodes (4.1), as many as make the three cases differ: with colours
# all lines fit, without them one in three does, and of powers none.
DEFAULTS = {"SIZE": 300, "ALIGN": 8, "OBJECTS": 60, "HOT": 4}
LIMITS = {"SIZE": 4096, "ALIGN": 4096, "OBJECTS": 20000, "HOT": 4096}
PAGE_SIZE = 4096


def wishes(environment):
    """The settings SIZE, ALIGN, OBJECTS and HOT, by name."""
    found = {}
    for name, usual in DEFAULTS.items():
        text = environment.get(name) or str(usual)
        if not text.isdecimal() or not 1 <= int(text) <= LIMITS[name]:
            raise cache_model.CacheError(f"{name}={text}: a number from 1 to "
                                         f"{LIMITS[name]:,}")
        found[name] = int(text)
    if found["ALIGN"] & (found["ALIGN"] - 1):
        raise cache_model.CacheError(f"ALIGN={found['ALIGN']}: a power of two")
    if found["HOT"] > found["SIZE"]:
        raise cache_model.CacheError(
            f"HOT={found['HOT']}: the objects have only {found['SIZE']} bytes")
    return found


def gather(kernel, wish, memory):
    """The caches coloured, plain and powers, from the kernel's statistics."""
    size, align, count = wish["SIZE"], wish["ALIGN"], wish["OBJECTS"]
    power = cache_model.power_of_two(size)
    orders = {"coloured": f"{size} {align}",
              "plain": f"{size} {align} nocolour",
              "powers": f"{power} {min(power, PAGE_SIZE)}"}
    commands = "; ".join(f"kmem create {name} {order}; "
                         f"kmem alloc {name} {count}"
                         for name, order in orders.items())
    run = qemu.run(kernel, f"{commands}; kmastat -j; slabs -j; poweroff",
                   memory=memory)
    lines = qemu.plain(run.text).splitlines()
    if run.problem:
        raise qemu.QemuError(run.explain())
    stats = statistics.read([t for t in lines if t.startswith("{")], "slate")
    for name in orders:
        if name not in stats.caches or stats.caches[name].inuse != count:
            said = [t for t in lines if "stopped after" in t or name in t]
            raise qemu.QemuError(f"{name}: there are not {count} objects: "
                                 f"{said[-1] if said else 'no such cache'}")
    return [stats.caches[name] for name in orders]


def colours(cache):
    """The number of different colours of its slabs."""
    return len({slab.colour for slab in cache.slabs})


def words(cache):
    return (f"{plural(cache.inuse, 'object')}, {cache.chunk} bytes from one to "
            f"the next, in {plural(len(cache.slabs), 'slab')} of "
            f"{plural(colours(cache), 'colour')}")


def table(rows):
    yield (f"{'':10}{'CHUNK':>7}{'SLABS':>7}{'COLOURS':>9}{'SETS USED':>11}"
           f"{'MOST IN ONE':>13}{'LINES':>7}{'MISSES A ROUND':>16}")
    for cache, seen, _ in rows:
        share = 100 * seen.warm / seen.touches
        yield (f"{cache.name:10}{cache.chunk:7}{len(cache.slabs):7}"
               f"{colours(cache):9}{seen.used:11}{max(seen.load):13}"
               f"{seen.touches:7}{seen.warm:8}{share:6.1f} %")


def draw(kernel, wish, model, memory):
    """The drawing and its rows."""
    shape = cache_model.geometry(model)
    rows = [(c, cache_model.watch(shape, cache_model.addresses(c),
                                  wish["HOT"]),
             words(c)) for c in gather(kernel, wish, memory)]
    return cachesim_picture.draw(rows, wish["HOT"]), rows


def body(rows, shape, wish, drawing):
    yield (f"<p>{html.escape(str(shape))}. {wish['OBJECTS']:,} objects of "
           f"{wish['SIZE']} bytes; the first {wish['HOT']} bytes of each are "
           "touched, in the order in which they were allocated, over and "
           "over.</p>")
    yield ("<p>Each mark is the beginning of an object: its row is its slab, "
           "its place from left to right the set of the cache that it falls "
           "into. Below, a bar for each set: how many lines are wanted in it. "
           "What stands above the line of the ways does not fit.</p>")
    yield f"<figure>{drawing.inline()}</figure>"
    yield f"<pre>{html.escape(chr(10).join(table(rows)))}</pre>"
    yield ('<p class="note">Made by <code>make cachesim</code>. A miss a '
           "round is a touch that missed though each object had been touched "
           "before.</p>")


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel", help="boot this")
    parser.add_argument("folder", type=Path, help="where the picture goes")
    return parser.parse_args()


def main():
    args = arguments()
    wish = wishes(os.environ)
    model = os.environ.get("CACHE") or "486"
    drawing, rows = draw(args.kernel, wish, model,
                         os.environ.get("MEM") or "64")
    shape = rows[0][1].shape
    args.folder.mkdir(parents=True, exist_ok=True)
    (args.folder / "cachesim.svg").write_text(drawing.file(), encoding="utf-8")
    (args.folder / "index.html").write_text(
        page.html("Objects in a processor\u2019s cache",
                  body(rows, shape, wish, drawing)), encoding="utf-8")
    print(shape)
    print(f"{wish['OBJECTS']} objects of {wish['SIZE']} bytes, the first "
          f"{wish['HOT']} of each touched\n")
    print("\n".join(table(rows)))
    print(f"\n{args.folder}/index.html")


if __name__ == "__main__":
    try:
        main()
    except (OSError, cache_model.CacheError, qemu.QemuError,
            statistics.StatisticsError) as e:
        sys.exit(f"cachesim: {e}")
