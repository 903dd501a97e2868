"""slab explain: a cache and a slab in the words of the paper."""

import re
import textwrap

import gdb

import target
from command import Command, frame_variables, plural
from heap import Heap
from target import WORD_MASK, Fail


def say(*sentences):
    """A paragraph, 78 columns wide."""
    print(textwrap.fill(" ".join(filter(None, sentences)), 78,
                        break_long_words=False, break_on_hyphens=False))


MODES = {"F": "a freed address is verified before it is believed (6.2)",
         "P": "free memory is 0xdeadbeef and new memory 0xbaddcafe, so that "
              "objects are constructed with each allocation (6.3)",
         "Z": "there is a redzone before and after each object (6.4)",
         "U": "each object has its last two transactions, and the log has "
              "more (6.1)",
         "T": "each operation prints a line",
         "S": "a free slab is unmapped at once (6.5)",
         "G": "each object has pages of its own, mapped only while it is in "
              "use (6.6)"}


def explain_cache(c):
    say(f"{c.name} is an object cache (section 2): its clients get objects of "
        f"{c.size} bytes.",
        "A constructor has brought them into their initial state, and they "
        "come back in that state, so that the next client finds the work done."
        if c.ctor else "It has no constructor: the contents of an object are "
        "up to its client.")
    if c.hashed:
        say("The layout is that of large objects (3.2.3): a slab is "
            f"{plural(c.slab_pages, 'page')} of buffers; its kmem_slab and a "
            "kmem_bufctl per buffer come from caches of their own, and a hash "
            "table leads from a buffer back to its bufctl when it is freed "
            f"({c.inuse} in {c.hash_size} buckets).")
    else:
        say("The layout is that of small objects (3.2.2), less than 1/8 page: "
            "a slab is one page with its kmem_slab at the end, so that the "
            "slab's address is computed from a buffer's, and the last word of "
            "a free buffer is its link to the next.",
            "As free objects keep their constructed state, a word was added "
            "for that link." if c.extra_word else "")
    say(f"A slab holds {c.slab_chunks} objects, {c.chunk} bytes apart, and "
        f"leaves {c.slab_left} bytes unused: its buffers start at one of "
        f"{plural(len(c.colours), 'colour')} (section 4), so that objects of "
        "different slabs use different lines of the processor's cache.")
    if c.mode_text:
        said = "; ".join(MODES.get(m, m) for m in c.mode_text)
        say(f"It is in debugging modes {c.mode_text} (section 6): {said}.")
    first = f"slab 0x{c.freelist:08x}" if c.freelist != c.sentinel else \
        "none, so the next allocation calls kmem_cache_grow"
    say(f"Its {plural(c.slabs, 'slab')}: {c.full_slabs} full (the paper calls "
        "a slab that has nothing left to give \"empty\"), "
        f"{c.partial} partial, {c.free_slabs} free (\"complete\"). They are "
        "on the list in this order; the freelist pointer is at the first that "
        f"has a free buffer (3.3): {first}.")
    say("A reap (3.4) would leave the working set and take at most "
        f"{min(c.ws_limit, c.ws_min)} of the {c.free_slabs} free slabs.")


STATES = {"full": "all its buffers are in use, and no allocation looks here",
          "partial": "allocations take its free buffers before those of a "
                     "free slab",
          "free": "all its buffers have come back, and a reap may take it once "
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
    Without a cache: of the cache and slab that the selected frame works on:
    stop in kmem_cache_alloc and ask. Sections are those of the paper.
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
