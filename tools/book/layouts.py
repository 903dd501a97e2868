"""Drawings of the slab layouts and of the life of an object, for the book.

All figures are the kernel's: statistics of caches that a run has created, and
the bytes of a slab in a debugging mode, read from the machine's memory. The
drawings are narrow, for a telephone.
"""

import json

from tools.measure.svg import Drawing
from tools.run import qemu

WIDTH = 340
BAR = 22
KERNEL = 0xC0000000    # the direct map begins here
GUARD = 0xBB           # a byte of a redzone (mm/debug/debug.h)

MODES = "kmem.debug=FPZU,guarded"
COMMANDS = ("kmem create small 200 8 ctor; kmem alloc small 70; "
            "kmem create large 700; kmem alloc large 18; "
            "kmem free large 3 fifo; kmem create guarded 200; "
            "kmem alloc guarded 5; kmem create foo 200 8 ctor; "
            "kmem alloc foo 30; kmem free foo 30; reap -a foo")


class Facts:
    """The kernel's statistics of its caches after COMMANDS."""

    def __init__(self, kernel):
        with qemu.Machine(kernel, f"{MODES} run={COMMANDS}", memory="32",
                          counted=True) as machine:
            machine.prompt()
            lines = machine.command("kmastat -j") + machine.command("slabs -j")
            records = [json.loads(line) for line in lines.splitlines()
                       if line.startswith("{")]
            self.caches = {r["cache"]: r for r in records if "chunk" in r}
            self.slabs = {}
            for r in records:
                if "cells" in r:
                    self.slabs.setdefault(r["cache"], []).append(r)
            slab = self.slabs["guarded"][0]
            self.guarded = machine.memory(slab["base"] - KERNEL, slab["bytes"])


def centred(d, x, width, y, text, kind="small dim"):
    d.text(x + width / 2, y, text, f"{kind} mid")


def heading(d, y, title, *lines):
    d.text(0, y, title, "name ink")
    for line in lines:
        y += 17
        d.text(0, y, line, "dim")
    return y + 12


def key(d, y, entries):
    """A legend for the parts of a bar: (class, text), a line each."""
    for kind, text in entries:
        d.rect(0, y - 9.5, 12, 11, kind)
        d.text(18, y, text, "dim")
        y += 17
    return y


def bar(d, y, slab, cache, header=0):
    """A slab to scale."""
    scale = WIDTH / slab["bytes"]
    d.rect(0, y, WIDTH, BAR, "tail")
    d.rect(0, y, slab["colour"] * scale, BAR, "colour")
    places = []
    for i, cell in enumerate(slab["cells"]):
        x = (slab["colour"] + i * cache["chunk"]) * scale
        places.append(x + cache["size"] * scale / 2)
        d.rect(x, y, cache["size"] * scale - 0.6, BAR,
               "used" if cell == "#" else "free cell")
    if header:
        d.rect(WIDTH - header * scale, y, header * scale, BAR, "header")
    return places


def zoom(d, y, x, width):
    """Lines from a part of a bar to the bar below, which shows it larger."""
    for above, below in ((x, 0), (x + width, WIDTH)):
        d.line(above, y, below, y + 18, "axis")
    return y + 18


def small(d, y, facts):
    cache, slab = facts.caches["small"], facts.slabs["small"][-1]
    header = slab["base"] + slab["bytes"] - slab["slab"]
    unused = cache["slab_left"] - slab["colour"]
    y = heading(d, y, "Small objects",
                f"A slab of {slab['bytes']:,} bytes, "
                f"{cache['slab_objects']} objects of {cache['size']} bytes",
                "with a constructor")
    bar(d, y, slab, cache, header)
    y += BAR
    scale = WIDTH / slab["bytes"]
    y = zoom(d, y, slab["colour"] * scale, cache["chunk"] * scale)
    part = WIDTH / cache["chunk"]
    d.rect(0, y, WIDTH, BAR, "tail")
    d.rect(0, y, cache["size"] * part, BAR, "used")
    d.rect(cache["size"] * part, y, 4 * part, BAR, "header")
    y = key(d, y + BAR + 20, [
        ("colour", f"colour: {slab['colour']} bytes"),
        ("used", f"object: {cache['size']} bytes, allocated"),
        ("free cell", "object, free"),
        ("header", f"link to the next free object: 4 bytes; kmem_slab: "
                   f"{header}"),
        ("tail", f"rounding: {cache['chunk'] - cache['size'] - 4} bytes in "
                 f"each of {cache['chunk']}; unused: {unused}")])
    return y + 24


def colours(d, y, facts):
    cache, slabs = facts.caches["small"], facts.slabs["small"]
    end = 2 * cache["chunk"]
    last = facts.caches["small"]["colour_max"]
    y = heading(d, y, "Colours",
                f"The first {end} bytes of {len(slabs)} slabs with objects of",
                f"{cache['size']} bytes with a constructor. The next slabs "
                "start", f"later, up to {last}, then at 0 again.")
    scale = (WIDTH - 40) / end
    for slab in sorted(slabs, key=lambda s: s["colour"]):
        d.text(30, y + 11, f"+{slab['colour']}", "small ink end")
        d.rect(40, y, slab["colour"] * scale, 14, "colour")
        at = slab["colour"]
        while at < end:
            d.rect(40 + at * scale, y,
                   (min(at + cache["size"], end) - at) * scale - 0.6, 14,
                   "used")
            at += cache["chunk"]
        y += 19
    return y + 30


def large(d, y, facts):
    cache, slab = facts.caches["large"], facts.slabs["large"][0]
    control = facts.caches["kmem_bufctl"]["size"]
    y = heading(d, y, "Large objects",
                f"A slab of {slab['bytes']:,} bytes, "
                f"{cache['slab_objects']} objects of {cache['size']} bytes:",
                "nothing of the allocator is in it")
    places = bar(d, y, slab, cache)
    y += BAR + 20
    box, free = 16, []
    for x, cell in zip(places, slab["cells"]):
        d.line(x, y - 20, x, y, "axis")
        d.rect(x - box / 2, y, box, 14,
               "header" if cell == "#" else "free cell")
        if cell == "#":
            d.line(x, y + 14, x, y + 34, "axis")
        else:
            free.append(x)
    for a, b in zip(free, free[1:]):
        d.line(a + box / 2, y + 7, b - box / 2, y + 7, "mark")
    y += 34
    d.rect(0, y, WIDTH, 18, "round")
    centred(d, 0, WIDTH, y + 13,
            f"hash table: {cache['hash_entries']} buckets, address to bufctl",
            "small ink")
    y = key(d, y + 40, [
        ("header", f"bufctl of an allocated object: {control} bytes"),
        ("free cell", "free object and its bufctl, linked to the next"),
        ("tail", f"unused: {cache['slab_left'] - slab['colour']} bytes")])
    return y + 24


def runs(data):
    """[(begin, end)] of the redzones in a slab's bytes."""
    found = []
    for at, byte in enumerate(data):
        if byte == GUARD and found and found[-1][1] == at:
            found[-1][1] = at + 1
        elif byte == GUARD:
            found.append([at, at + 1])
    return found


def guarded(d, y, facts):
    cache, slab = facts.caches["guarded"], facts.slabs["guarded"][0]
    zones = runs(facts.guarded)
    control = facts.caches["kmem_bufctl_debug"]["size"]
    y = heading(d, y, "With redzones",
                f"Debugging modes FPZU, objects of {cache['size']} bytes, "
                f"{cache['chunk']} apart")
    bar(d, y, slab, cache)
    shown = slab["colour"] + 2 * cache["chunk"]
    y = zoom(d, y + BAR, 0, shown * WIDTH / slab["bytes"])
    scale = WIDTH / shown
    d.rect(0, y, WIDTH, BAR, "tail")
    for i in range(2):
        x = (slab["colour"] + i * cache["chunk"]) * scale
        d.rect(x, y, cache["size"] * scale, BAR, "used",
               data_object=slab["colour"] + i * cache["chunk"])
    for begin, end in zones:
        if begin < shown:
            d.rect(begin * scale, y, (min(end, shown) - begin) * scale, BAR,
                   "bad", data_zone=f"{begin} {end}")
    between = next(end - begin for begin, end in zones if begin)
    y = key(d, y + BAR + 20, [
        ("used", "object, allocated"),
        ("bad", f"redzone: {zones[0][1] - zones[0][0]} bytes before the "
                f"first object,"),
        ("bg", f"{between} between two, each byte 0x{GUARD:02x}")])
    d.text(0, y, f"The bufctls, of {control} bytes with two stacks, are", "dim")
    d.text(0, y + 17, "elsewhere, as those of large objects.", "dim")
    return y + 17


PARTS = {"small": (small, "A slab of small objects"),
         "colours": (colours, "The colours of slabs"),
         "large": (large, "A slab of large objects"),
         "redzones": (guarded, "A slab with redzones")}


def layouts(facts):
    """{name: drawing}"""
    found = {}
    for name, (part, title) in PARTS.items():
        found[name] = Drawing(WIDTH, title, "To scale, with the figures of a "
                              "cache that was made for it")
        part(found[name], 12, facts)
    return found


# ---- the life of an object ---------------------------------------------------

def state(d, y, name, words, kind):
    d.rect(60, y, 220, 44, kind, data_state=name)
    d.rect(62, y + 2, 216, 40, "bg")
    centred(d, 60, 220, y + 19, name, "name ink")
    centred(d, 60, 220, y + 35, words)
    return y + 44


def arrow(d, x, y, end, *lines):
    """An arrow down or up, with text to its right."""
    tip = 5 if end > y else -5
    d.line(x, y, x, end, "axis")
    d.line(x - 4, end - tip, x, end, "axis")
    d.line(x + 4, end - tip, x, end, "axis")
    top = (y + end) / 2 + 4 - 7 * (len(lines) - 1)
    for i, line in enumerate(lines):
        d.text(x + 9, top + 15 * i, line, "small ink")


def life(facts):
    """The states of an object; the counts are those of the cache foo."""
    cache = facts.caches["foo"]
    d = Drawing(WIDTH, "The life of an object", "From the page supplier "
                "through the constructor to allocation and free, and back "
                "through the destructor")
    y = state(d, 4, "a page of buddy", "no object", "empty")
    arrow(d, 80, y, y + 62, "kmem_cache_grow, kmem_slab_create:",
          f"{cache['slab_creates']} slabs, then the constructor,",
          f"{cache['ctors']} times")
    y = state(d, y + 62, "free", "constructed, in a slab", "free")
    arrow(d, 80, y, y + 56, "kmem_cache_alloc:", f"{cache['allocs']} times")
    arrow(d, 190, y + 56, y, "kmem_cache_free:", f"{cache['frees']} times")
    y = state(d, y + 56, "allocated", "the client's, until it is freed",
              "used")
    d.text(0, y + 30, "When all objects of a slab are free, and memory", "dim")
    d.text(0, y + 47, "is needed:", "dim")
    y = state(d, y + 62, "free", "constructed, in a free slab", "free")
    arrow(d, 80, y, y + 62, "kmem_reap, kmem_slab_destroy:",
          f"the destructor, {cache['dtors']} times, then",
          f"{cache['slab_destroys']} slabs are given back")
    state(d, y + 62, "a page of buddy", "no object", "empty")
    return d
