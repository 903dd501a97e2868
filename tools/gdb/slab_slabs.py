"""slab slabs: a cache's slabs in the order of its list (paper, section 3.3), a
cell per object. slab colours: where colouring (section 4) puts objects in a
processor cache. slab freelist: link by link through one slab.
As kernel/shell/cmd_kmem_slabs.c.
"""

import common
import slab_heap
from common import BadMemory, Broken, Command, age, json_line
from slab_buf import put_aside
from slab_heap import COMPLETE, STATES, Heap
from slab_verify import note_broken, slab_wrong
from slab_stat import NAME, name_cell

CELLS_BESIDE = 28
CELLS_BELOW = 64
SHOWN = 8
BINS = 11
BAR = 40


def cells(slab, pages):
    """A character per object."""
    bad = put_aside(slab)
    return "".join("!" if i in bad else "#" if used else "."
                   for i, used in enumerate(slab.bitmap(pages)[0]))


# ---- slabs -----------------------------------------------------------------

def used_bin(used, n):
    """The bin of `used` out of `n`: the first is 0 alone, the last n."""
    if used == 0:
        return 0
    if used >= n:
        return BINS - 1
    return 1 + (used - 1) * (BINS - 2) // max(n - 1, 1)


class Slabs(Command):
    name = "slab slabs"
    usage = "[-v|-j] [NAME]"
    summary = "A picture of a cache's slabs, a cell per object"
    details = """\
Of one cache, or of each that has memory, largest first: a row per slab, in
the order of the cache's list: first those with every object out, then partial
ones, then free ones. `>` is the freelist pointer: the next object comes from
there. A slab marked ! is broken.
  SLAB BASE  the kmem_slab; its first page
  COLOUR     bytes before the first object
  IDLE       for how long all its objects have been free
  -v         every slab; else the first 8 of each state
  -j         a JSON object per slab"""
    example = "slab slabs kmem_alloc_224"
    options, most = "vj", 1
    wants = "wants one cache at most; `slab slabs` shows all"

    def run(self, args):
        heap, everything = Heap(), "v" in args
        one = heap.cache(args.word()) if args.words else None
        for cache in [one] if one else heap.ordered():
            if cache.mem == 0 and not one:
                continue
            if "j" in args:
                for slab in cache.slab_list():
                    self.json(heap, slab)
                continue
            if not one:
                print(f"{cache.name}:")
            if cache.slabs == 0:
                print(f"{cache.name} has no slabs: the first allocation "
                      f"makes one of {cache.slab_objects} objects")
            else:
                self.table(heap, cache, everything)
            if not one:
                print()

    def json(self, heap, slab):
        json_line({"cache": slab.cache.name, "slab": slab.address,
                   "base": slab.base, "bytes": slab.bytes,
                   "colour": slab.colour,
                   "used": slab.refcnt, "objects": slab.chunks,
                   "state": slab.state_name, "freelist": slab.freelist,
                   "bad": slab_wrong(heap, slab) is not None,
                   "idle_ms": slab.idle_ms,
                   "cells": cells(slab, heap.pages)})

    def table(self, heap, cache, everything):
        print(f"  {'SLAB':<10} {'BASE':<10} {'COLOUR':>6} {'USED/N':>7} "
              f"{'STATE':<7} {'IDLE':>6} # used . free")
        seen, used, freelist, last = [0, 0, 0], [0] * BINS, False, None
        try:
            for slab in cache.slab_list():
                if last not in (None, slab.state):
                    self.end_of_run(seen, last, everything)
                if everything or seen[slab.state] < SHOWN:
                    self.row(heap, slab)
                last = slab.state
                seen[last] += 1
                used[used_bin(slab.refcnt, slab.chunks)] += 1
                freelist |= slab.freelist
        except (Broken, BadMemory):
            pass  # note_broken says so
        if last is not None:
            self.end_of_run(seen, last, everything)
        self.histogram(cache, used, freelist)
        note_broken(heap, cache)

    def row(self, heap, slab):
        line = cells(slab, heap.pages)
        idle = age(slab.idle_ms) if slab.state == COMPLETE else "-"
        text = f"{'>' if slab.freelist else ' '}" \
               f"{'!' if slab_wrong(heap, slab) else ' '}" \
               f"0x{slab.address:08x} 0x{slab.base:08x} " \
               f"{slab.colour:6} {slab.refcnt:3}/{slab.chunks:<3} " \
               f"{slab.state_name:<7} {idle:>6}"
        if slab.chunks <= CELLS_BESIDE:
            print(f"{text} {line}")
            return
        print(text)
        for i in range(0, len(line), CELLS_BELOW):
            print(f"       {i:4} {line[i:i + CELLS_BELOW]}")

    def end_of_run(self, seen, state, everything):
        if not everything and seen[state] > SHOWN:
            print(f"  ... and {seen[state] - SHOWN} more {STATES[state]} "
                  "slabs (-v shows them)")

    def histogram(self, cache, used, freelist):
        if not freelist:
            print("> no slab has a free object: the next one makes a slab")
        n = cache.slab_objects
        print(f"\n{'USED':>7} {'SLABS':>7}   objects used of {n}")
        for number, slabs in enumerate(used):
            values = [u for u in range(n + 1) if used_bin(u, n) == number]
            if not values:
                continue
            text = str(values[0]) if len(values) == 1 else \
                f"{values[0]}-{values[-1]}"
            bar = "=" * -(-slabs * BAR // max(cache.slabs, 1))
            print(f"{text:>7} {slabs:7}{'  ' if bar else ''}{bar}")

    def complete(self, text, word):
        return slab_heap.complete_cache(word)


# ---- colours ---------------------------------------------------------------

SETS = 64
LINE_BYTES = 64
HOT_BYTES = 48
PAIRS = 5


class _Heat:
    """How many objects touch each cache set with their first bytes; and, had
    all slabs colour 0."""

    def __init__(self, cache):
        self.slabs, self.sets, self.plain = {}, [0] * SETS, [0] * SETS
        self.walked = 0
        try:
            for slab in cache.slab_list():
                self._slab(cache, slab)
        except (Broken, BadMemory) as e:
            print(f"! {e}")

    def _slab(self, cache, slab):
        self.walked += 1
        self.slabs[slab.colour] = self.slabs.get(slab.colour, 0) + 1
        for i in range(slab.chunks):
            offset = slab.base + i * cache.chunk
            self._touch(self.plain, offset)
            self._touch(self.sets, offset + slab.colour)

    @staticmethod
    def _touch(sets, offset):
        for line in range(offset // LINE_BYTES,
                          (offset + HOT_BYTES - 1) // LINE_BYTES + 1):
            sets[line % SETS] += 1

    @staticmethod
    def touched(sets):
        return sum(1 for n in sets if n)


def print_heat(label, sets):
    most = max([1, *sets])
    print(f"{label:<9}" + "".join(str(n * 9 // most) if n else "."
                                  for n in sets))
    print(f"{'':9}{_Heat.touched(sets)} of {SETS} sets, at most {most} "
          "objects in one")


class Colours(Command):
    name = "slab colours"
    usage = "[-j] [NAME]"
    summary = "Slab colours and the cache sets that objects touch"
    details = """\
Slabs of one cache begin their objects at different offsets, so that objects
spread over the processor's cache. Of one cache: how many slabs have each
colour, and a map of 64 cache sets, with the colours and as it would be
without.
  -j  JSON lines"""
    example = "slab colours kmem_alloc_224"
    options, most = "j", 1
    wants = "wants one cache at most; `slab colours` shows all"

    def run(self, args):
        heap = Heap()
        one = heap.cache(args.word()) if args.words else None
        if one and "j" not in args:
            self.one(one)
            return
        if "j" not in args:
            print(f"{'CACHE':<{NAME}} {'COLOURS':>7} {'STEP':>5} "
                  f"{'NEXT':>5} {'SLABS':>6} {'SETS':>5} "
                  f"{'UNCOLOURED':>10}")
        for cache in [one] if one else heap.ordered():
            if cache.slabs or "j" in args:
                self.row(cache, "j" in args)
        if "j" not in args:
            print(f"sets: cache sets of {SETS} that the first {HOT_BYTES} "
                  "bytes of the objects touch")

    def row(self, cache, as_json):
        heat = _Heat(cache)
        values = (cache.colours, cache.align,
                  cache.colour_next, cache.slabs, heat.touched(heat.sets),
                  heat.touched(heat.plain))
        if as_json:
            keys = ("colours", "step", "next", "slabs", "sets",
                    "sets_uncoloured")
            json_line({"cache": cache.name, **dict(zip(keys, values))})
            return
        cells_ = "".join(f" {v:{w}}" for v, w in
                         zip(values, (7, 5, 5, 6, 5, 10)))
        print(name_cell(cache.name) + cells_)

    def one(self, cache):
        heat = _Heat(cache)
        colours = range(cache.front, cache.colour_max + 1, cache.align)
        line = "   ".join(["COLOUR  SLABS"] * min(len(colours), PAIRS))
        for i, colour in enumerate(colours):
            line += "  " if i % PAIRS else "\n"
            mark = "<" if colour == cache.colour_next else " "
            line += f"{colour:6} {heat.slabs.get(colour, 0):6}{mark}"
        print(line)
        print("< the next slab's colour\n")
        print(f"The first {HOT_BYTES} bytes of each object in a cache of "
              f"{SETS} sets with lines of {LINE_BYTES}\nbytes: digits are "
              "tenths of the fullest set, a dot is a set never touched.")
        print_heat("coloured", heat.sets)
        print_heat("all at 0", heat.plain)
        if heat.walked < cache.slabs:
            print(f"(the first {heat.walked} slabs of {cache.slabs})")

    def complete(self, text, word):
        return slab_heap.complete_cache(word)


# ---- freelist --------------------------------------------------------------

class Freelist(Command):
    name = "slab freelist"
    usage = "SLAB"
    summary = "Follow a slab's freelist, link by link"
    details = """\
SLAB is any address in the slab: its kmem_slab, its page, an object.
  IDX     which object the link stands for; in this order they go out
  LINK    where the link is: the last word of a free small object, or the
          bufctl of a large one
  NEXT    what is in it
A link that leads astray ends the walk, marked `!`."""
    example = "slab freelist $cache(\"inode\")->cache_freelist"
    least, joined = 1, True
    wants = "wants the address of a slab; `slab slabs NAME` prints some"

    def run(self, args):
        heap = Heap()
        slab = find_slab(heap, common.parse_address(args.word()))
        cache, free = slab.cache, slab.chunks - slab.refcnt
        print(f"slab 0x{slab.address:08x} of {cache.name}, "
              f"{slab.state_name}: {free} of {slab.chunks} free; "
              f"slab_head 0x{slab.head:08x}")
        table = common.Table(("STEP", 6), ("IDX", 3), ("LINK", -10),
                             ("BUFFER", -10), ("NEXT", -10))
        table.head()
        steps, why = 0, None
        for link, buf, index, why in slab.steps(heap.pages):
            step = f"!{steps}" if why else str(steps)
            table.row(step, "-" if index is None else index,
                      f"0x{link:08x}", "-" if buf is None else
                      f"0x{buf:08x}", "-" if why else
                      f"0x{common.word(link):08x}")
            steps += why is None
        self.verdict(steps, free, why)

    def verdict(self, steps, free, why):
        if why:
            print(f"! the last link {why}")
        elif steps != free:
            print(f"! {common.plural(steps, 'link')}, but {free} objects are "
                  "free by the count")
        else:
            print(f"{common.plural(steps, 'link')}, then NULL: as many as "
                  "objects are free")


def find_slab(heap, address):
    """The slab at or around an address, kmem_slab of large ones included."""
    place = heap.whose(address)
    if place:
        cache, slab, index = place
        inner = slab_object(heap, cache, slab, index)
        return inner or slab
    raise common.Fail(f"no slab holds 0x{address:08x}; `slab whatis` says "
                      "what is there")


def slab_object(heap, cache, slab, index):
    """The slab that an object of the cache kmem_slab describes, or None."""
    if index is None or cache.name != "kmem_slab" or \
            not slab.bitmap(heap.pages)[0][index]:
        return None
    raw = common.record("struct kmem_slab", slab.chunk(index))
    owner = heap.cache_at(raw.slab_cache)
    return slab_heap.Slab(owner, raw.address) if owner else None


for _command in (Slabs, Colours, Freelist):
    _command()
