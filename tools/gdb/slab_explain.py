"""slab explain: a cache and a slab in the words of the paper."""

import re
import textwrap
from pathlib import Path

import gdb

import target
from command import Command, frame_variables, plural
from heap import Heap
from target import WORD_MASK, Fail


def say(*sentences):
    """A paragraph, 78 columns wide."""
    print(textwrap.fill(" ".join(filter(None, sentences)), 78,
                        break_long_words=False, break_on_hyphens=False))


TEXT = Path(__file__).parents[2] / "kernel/shell/explain.txt"


def sections():
    """{name: its sentences}, those that the kernel's `explain` prints."""
    parts = re.split(r"^= (.*)$", TEXT.read_text("utf-8"), flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def explain_cache(c):
    text = sections()
    values = {
        "name": c.name, "size": c.size, "inuse": c.inuse,
        "pages": plural(c.slab_pages, "page"), "buckets": c.hash_size,
        "objects": plural(c.slab_chunks, "object"), "chunk": c.chunk,
        "unused": c.slab_left,
        "colours": plural(len(c.colours), "colour"), "modes": c.mode_text,
        "slabs": plural(c.slabs, "slab"), "full": c.full_slabs,
        "partial": c.partial, "free": c.free_slabs,
        "first": f"0x{c.freelist:08x}", "reapable": min(c.ws_limit,
                                                            c.ws_min)}

    def tell(*names):
        say(*(text[name].format(**values).replace("\n", " ").strip()
              for name in names if name))

    tell("cache", "constructor" if c.ctor else "no-constructor")
    tell("large" if c.hashed else "small",
         not c.hashed and c.extra_word and "extra-word")
    tell("slab")
    if c.mode_text:
        tell("modes", *(f"mode-{m}" for m in c.mode_text))
    tell("slabs", "first" if c.freelist != c.sentinel else "no-first")
    tell("reap")


STATES = {"full": "all its buffers are in use, and no allocation looks here",
          "partial": "allocations take its free buffers before those of a "
                     "free slab",
          "free": "all its buffers are free, and a reap may destroy it once "
                  "it is out of the working set"}


def explain_slab(slab):
    say(f"Slab 0x{slab.address:08x} has {slab.refcnt} of {slab.chunks} "
        f"buffers in use; {STATES[slab.state]}. Its colour is {slab.colour}: "
        f"so many bytes of page 0x{slab.base:08x} come before the first "
        "buffer.",
        "The freelist pointer is here: the next object comes from it."
        if slab.owner.freelist == slab.address else "")
    print()


def variables(frame):
    """{type: value} of a frame's variables that point to heap structures."""
    found = {}
    for symbol, block in frame_variables(frame):
        kind = str(symbol.type.unqualified().strip_typedefs())
        tag = re.search(r"struct (kmem_cache|kmem_slab) \*$", kind)
        if tag:
            try:
                value = int(frame.read_var(symbol, block)) & WORD_MASK
                found.setdefault(tag[1], value)
            except (gdb.error, ValueError):
                pass  # optimized out
    return found


class Explain(Command):
    """slab explain [NAME]
    A cache, or the present moment, in the words of the paper.
    Without NAME: the cache and slab that the selected frame works on, for
    example in kmem_cache_alloc. Sections are those of the paper.
    Example: slab explain kmem_alloc_64"""

    def run(self, args):
        heap, slab = Heap(), None
        cache = args.words and heap.cache(args.word())
        frame = None if cache else gdb.selected_frame()
        while frame is not None and not cache:
            cache, slab = self.works_on(heap, frame)
            if cache:
                print(f"{frame.name()} works on {cache.name}.\n")
            frame = frame.older()
        if not cache:
            raise Fail("no frame here works on a cache; name one: `slab "
                       "explain inode`")
        if slab:
            explain_slab(slab)
        explain_cache(cache)

    @staticmethod
    def works_on(heap, frame):
        """(cache, slab) of a frame's variables, or None for each."""
        found = variables(frame)
        cache, slab = heap.cache_at(found.get("kmem_cache")), None
        try:
            slab = heap.slab_of(found.get("kmem_slab", 0))
        except target.BadMemory:
            pass
        if slab and cache not in (None, slab.owner):
            slab = None
        return cache or (slab and slab.owner), slab
