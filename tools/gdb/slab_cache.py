"""slab cache: all there is to know of one cache; its geometry line by line
(paper, section 3.2) and where each byte of its memory goes. slab hash: the
table from buffer to bufctl (3.2.3). As kernel/shell/cmd_kmem_cache.c.
"""

import common
import slab_heap
import slab_stat
from common import Command, Fail, age, json_line, percent, waste
from slab_heap import KINDS, Heap
from slab_stat import NAME, name_cell

KIND_TEXT = ("a named cache", "a size class of kmem_alloc",
             "the allocator's own")

# ---- cache -----------------------------------------------------------------


def print_kind(c):
    print(f"{c.name}: {KIND_TEXT[min(c.kind, len(KINDS) - 1)]}, "
          f"{'large' if c.large else 'small'} layout"
          f"{f', modes {c.mode_text}' if c.modes else ''}"
          f"{', an elder' if c.heir else ''}"
          f"{', pages from its own supplier' if c.own_supplier else ''}"
          f"{' ! counts contradict each other' if c.bad else ''}")


def colour_line(c):
    step, least = c.align, c.front
    text = f"colours   {c.colours:6} = {c.colour_max - least} / {step} + 1: " \
           f"{least}"
    if c.colour_max >= least + 2 * step:
        text += f", {least + step}"
    if c.colour_max >= least + 3 * step:
        text += ", ..."
    if c.colour_max > least:
        text += f", {c.colour_max}"
    return f"{text}; the next slab gets {c.colour_next}"


def print_geometry(c):
    slab, extra, tag = c.slab_bytes_each, c.extra_word, c.tag
    print(f"chunk     {c.own_chunk:6} = {c.size} asked for + {tag or extra} "
          f"{'debug tag' if tag else 'extra word'} + "
          f"{c.own_chunk - c.size - extra - tag} to the next multiple of "
          f"{c.align}")
    print(f"slab      {slab:6} = {common.plural(c.slab_pages, 'page')}")
    print(f"header    {c.header:6}   " +
          ("kmem_slab at the end of the page" if c.header else
           "kmem_slab and bufctls are outside the slab"))
    print(f"objects   {c.slab_objects:6} = ({slab} - {c.header}) / {c.chunk}")
    print(f"unused    {c.slab_left:6} = {slab} - {c.header} - "
          f"{c.slab_objects} * {c.chunk}, "
          f"{percent(waste(slab - c.slab_left, slab))}% of the slab")
    print(colour_line(c))
    for label, function in (("constructor", c.ctor), ("destructor", c.dtor)):
        print(f"{label:<12} "
              f"{common.symbol_format(function) if function else 'none'}")


# name, remark in the small layout, remark in the large one
LEDGER = (
    ("REQUESTED", "objects in use, as asked for",
     "objects in use, as asked for"),
    ("ROUNDING", "up to the alignment", "up to the alignment"),
    ("EXTRA-WORD", "keeps the link off the constructed state",
     "none: the link is in the bufctl"),
    ("DEBUG-TAG", "no debugging modes",
     "redzones (Z), a page that is never there (G)"),
    ("COLOUR", "before the first object of each slab",
     "before the first object of each slab"),
    ("TAIL", "unused after the last object of each slab",
     "unused after the last object of each slab"),
    ("HEADER", "a kmem_slab in each slab", "counted in cache kmem_slab"),
    ("BUFCTL", "none: a free buffer is its own",
     "counted in cache kmem_bufctl"),
    ("HASH", "none: the slab's address is computed",
     "whole pages; a small table is counted in kmem_hash"),
    ("FREE", "free objects", "free objects"))


def ledger(c):
    """The bytes of each entry of LEDGER."""
    try:
        colour = sum(slab.colour for slab in c.slab_list())
    except (common.Broken, common.BadMemory):
        colour = 0
    chunk, tail = c.own_chunk, c.slab_bytes_each - c.header - \
        c.slab_objects * c.own_chunk
    return [c.used, c.inuse * (chunk - c.size - c.extra_word - c.tag),
            c.inuse * c.extra_word, c.inuse * c.tag, colour,
            c.slabs * tail - colour, c.slabs * c.header, 0, c.hash_bytes,
            (c.total - c.inuse) * chunk]


def print_ledger(c):
    entries = ledger(c)
    print(f"\n{'LEDGER':<12} {'BYTES':>9}")
    for (name, small, large), size in zip(LEDGER, entries):
        more = "_debug" if name == "BUFCTL" and c.debugged else ""
        print(f"{name:<12} {size:9}  {large if c.large else small}{more}")
    total = sum(entries)
    print(f"{'MEM':<12} {c.mem:9}  " +
          ("= the sum" if total == c.mem else f"! the sum is {total}"))


def load(c):
    hundredths = c.inuse * 100 // c.hash_size if c.hash_size else 0
    return f"{hundredths // 100}.{hundredths % 100:02}"


def update_due():
    """Milliseconds to the next update of the working sets."""
    every = slab_stat.interval()
    if every in (0, slab_stat.INFINITE):
        every = common.macros("mm/kmem.h")["KMEM_WS_DEFAULT_MS"]
    last = int(common.variable("last_update_ms", "kmem_reap.c"))
    return max(0, every - (common.clock_ms() - last))


def print_counters(c):
    print(f"\nobjects      {c.inuse} in use of {c.total}, {c.allocs} allocs, "
          f"{c.frees} frees, {c.fails} failed")
    print(f"slabs        {c.slabs}: {c.full} full, {c.partial} partial, "
          f"{c.complete} free; at most {c.max_slabs}; {c.creates} made, "
          f"{c.destroys} ended")
    print(f"constructed  {c.ctors}, destructed {c.dtors}")
    if c.large:
        print(f"hash         ENTRIES {c.hash_size} LOAD {load(c)} "
              f"MAXCHAIN {c.hash_stat(2)[1]} RESCALES {c.rescales}")
    print(f"working set  T {c.complete} (free slabs now) m {c.ws_min} "
          f"(fewest lately) L {c.ws_limit} (may go)")
    tail = {slab_stat.INFINITE: "; but a reap keeps everything (`ws`)",
            0: "; but a reap takes every free slab (`ws`)"}
    print("             next update, L = m and m = T, in "
          f"{age(update_due())}{tail.get(slab_stat.interval(), '')}")


class Cache(Command):
    name = "slab cache"
    usage = "[-j] NAME"
    summary = "One cache: layout, ledger, counters"
    details = """\
How an object's chunk and its slab are computed, where each byte of the
cache's memory goes, and all counters.
  -j  the same numbers as one JSON object"""
    example = "slab cache kmem_alloc_224"
    options, least, most = "j", 1, 1
    wants = "wants one cache; `slab cache kmem_alloc_64`, or " \
            "`slab kmastat` for all"

    def run(self, args):
        cache = Heap().cache(args.word())
        if "j" in args:
            json_line(slab_stat.json_cache(cache))
            return
        print_kind(cache)
        print_geometry(cache)
        print_ledger(cache)
        print_counters(cache)

    def complete(self, text, word):
        return slab_heap.complete_cache(word)


# ---- hash ------------------------------------------------------------------

CHAINS = 9
BAR = 40


def hash_grow(entries):
    return (8 * entries - 4 + 2) // 3


def hash_shrink(entries):
    return (entries - 5) // 3 if entries >= 128 else 0


class Hash(Command):
    name = "slab hash"
    usage = "[-j] [NAME]"
    summary = "Hash tables from buffer to bufctl, of large objects"
    details = """\
A row per cache of large objects that has memory; of one cache also how many
buckets have chains of each length.
  ENTRIES USED  buckets; objects in them (those handed out)
  GROW-AT       with so many objects, free or not, it grows
  SHRINK-AT     with so many or fewer it shrinks; 0: never
  -j            JSON lines"""
    example = "slab hash kmem_alloc_1024"
    options, most = "j", 1
    wants = "wants one cache at most; `slab hash` shows all"

    def row(self, c):
        print(f"{name_cell(c.name)} {c.hash_size:7} {c.inuse:7} "
              f"{c.hash_stat(2)[1]:8}   {load(c)} {c.rescales:8} "
              f"{hash_grow(c.hash_size):7} {hash_shrink(c.hash_size):9}")

    def json(self, c):
        chains, longest = c.hash_stat(CHAINS)
        json_line({"cache": c.name, "entries": c.hash_size, "used": c.inuse,
                   "max_chain": longest, "rescales": c.rescales,
                   "total": c.total, "grow_at": hash_grow(c.hash_size),
                   "shrink_at": hash_shrink(c.hash_size), "chains": chains})

    def chains(self, c):
        print("\nCHAIN  BUCKETS")
        for i, n in enumerate(c.hash_stat(CHAINS)[0]):
            bar = "#" * -(-n * BAR // c.hash_size)
            print(f"{i:4}{'+' if i == CHAINS - 1 else ' '} {n:8}"
                  f"{'  ' if bar else ''}{bar}")
        grow, shrink = hash_grow(c.hash_size), hash_shrink(c.hash_size)
        print(f"Looked at whenever a slab comes or goes. With {grow} objects "
              "or more it grows" +
              (f",\nwith {shrink} or fewer it shrinks" if shrink else "") +
              f".\nThe cache has {c.total}, free ones included.")

    def run(self, args):
        heap = Heap()
        one = heap.cache(args.word()) if args.words else None
        if one and not one.hashed:
            raise Fail(f"'{one.name}' is of small objects, without a hash "
                       "table; `slab hash` shows which have one")
        rows = [one] if one else [c for c in heap.ordered() if c.hashed]
        if "j" in args:
            for cache in rows:
                self.json(cache)
            return
        print(f"{'CACHE':<{NAME}} {'ENTRIES':>7} {'USED':>7} {'MAXCHAIN':>8} "
              f"{'LOAD':>6} {'RESCALES':>8} {'GROW-AT':>7} {'SHRINK-AT':>9}")
        for cache in rows:
            if one or cache.mem:
                self.row(cache)
        if one:
            self.chains(one)

    def complete(self, text, word):
        return slab_heap.complete_cache(word)


for _command in (Cache, Hash):
    _command()
