"""slab kmastat, cache, hash, ws, colours, frag: figures of the caches; slab
layout: the layout of a cache before it exists (paper, sections 2 to 5)."""

from fnmatch import fnmatchcase as fnmatch

import target
from command import (Command, Table, ago, bar, count, evaluate, percent,
                     plural, waste)
from heap import KINDS, Heap
from target import PAGE_SIZE, WORD, WORD_MASK, Fail, constant

NAME = "CACHE:-17"


FIGURES = {"INUSE": "inuse", "TOTAL": "total", "SLABS": "slabs",
           "ALLOC": "allocs", "FREE": "frees", "FAIL": "fails"}


def cells(caches):
    """{column: value} of some caches, summed."""
    def total(figure):
        return sum(getattr(c, figure) for c in caches)
    return {**{column: total(figure) for column, figure in FIGURES.items()},
            "FULL/PART/FREE": "/".join(count(total(n), 4) for n in (
                "full_slabs", "partial", "free_slabs")),
            "MEM": total("mem") >> 10,
            "WASTE%": waste(total("used"), total("mem"))}


class Kmastat(Command):
    """slab kmastat [-j] [PATTERN]
    The slab caches: objects, slabs, memory, waste.
    A row per cache that has memory, or that PATTERN names; largest first. MEM
    is in KiB. PATTERN is a part of the name, or has * and ?. A row marked !
    contradicts itself, as it may in the middle of an allocation: `slab verify`.
    Example: slab kmastat kmem_alloc*"""

    def run(self, args):
        pattern = args.word() or "*"
        if not set("*?") & set(pattern):
            pattern = f"*{pattern}*"
        found = [c for c in Heap().ordered() if fnmatch(c.name, pattern)]
        if not found:
            raise Fail(f"no cache matches '{args.word()}'; `slab kmastat '*'` "
                       "lists them")
        # The columns are those of the kernel's own table.
        columns = [(row["head"].string(), int(row["narrow"])) for row in
                   target.elements("columns", "cmd_kmem_stat.c")]
        columns = [(name, width) for name, width in columns if width]
        table = Table("CACHE:-16 " + " ".join(
            f"{'MEM/K' if name == 'MEM' else name}:{width}"
            for name, width in columns), "j" in args)
        shown = [c for c in found if c.mem or c.bad
                 or args.words and c.kind_name == KINDS[0]]
        rows = [("!" * c.bad + c.name, {"SIZE": c.size, "CHUNK": c.chunk,
                                        **cells([c])}) for c in shown]
        for name, row in [*rows, ("TOTAL", cells(found))]:
            table.row(name, *(row.get(column, "") for column, _ in columns))


class WorkingSet(Command):
    """slab ws [-j] [NAME]
    The working set: free slabs that a reap keeps.
    T free slabs now, m the fewest since the last update, L the fewest of the
    interval before. A reap releases the smaller of L and m. FREED and KEPT
    are those of the last reap, LAST-REAP how long ago it was.
    Example: slab ws kmem_alloc_64"""

    def run(self, args):
        table = Table(f"{NAME} T:6 m:6 L:6 REAPABLE:8 LAST-REAP:9 FREED:6 "
                      "KEPT:6", "j" in args)
        for c in Heap().chosen(args.word(), lambda c: c.free_slabs or c.reaps):
            # The number of slabs that a reap would release now.
            interval = target.integer("kmem_ws_interval")
            reapable = {0: c.free_slabs, WORD_MASK: 0}.get(
                interval, min(c.ws_limit, c.ws_min))
            table.row(c.name, c.free_slabs, c.ws_min, c.ws_limit, reapable,
                      ago(c.last_reap_ms) if c.reaps else "never",
                      c.last_reap_freed, c.last_reap_kept)


class Geometry:
    """Chunk, pages, objects and colours from size, alignment and whether the
    objects are constructed, by the rules of section 3.2 alone."""

    tag_bytes = 0

    def __init__(self, size, align=0, constructed=False):
        self.size, self.align = size, max(align, constant("KMEM_ALIGN_MIN"))
        small = self.round_up(size + (WORD if constructed else 0))
        self.large = small >= constant("KMEM_LARGE_MIN")
        self.header = 0 if self.large else target.layout("kmem_slab").size
        self.chunk = self.own_chunk = self.round_up(size) if self.large else \
            small
        self.extra_word = WORD if constructed and not self.large else 0
        self.slab_pages = self.large_pages() if self.large else 1
        self.slab_bytes = self.slab_pages * PAGE_SIZE
        self.slab_chunks, self.slab_left = divmod(
            self.slab_bytes - self.header, self.chunk)
        self.colour_max = self.slab_left & -self.align

    def round_up(self, n):
        return -(-n // self.align) * self.align

    def fits(self, pages, part):
        """Whether at most 1/part of such a slab would be unused."""
        size = pages * PAGE_SIZE
        return size >= self.chunk and size % self.chunk * part <= size

    def large_pages(self):
        few = range(1, constant("KMEM_SLAB_PAGES_TRY") + 1)
        return next((pages for pages in few if self.fits(pages, 16)), None) \
            or next(pages for pages in range(1, 1 << 20)
                    if self.fits(pages, 8))


def print_geometry(g):
    """The same lines for a cache and for a prediction."""
    extra = g.tag_bytes or g.extra_word
    print(f"chunk     {g.own_chunk:6} = {g.size} asked for + {extra} "
          f"{'debug tag' if g.tag_bytes else 'extra word'} + "
          f"{g.own_chunk - g.size - extra} to a multiple of {g.align}")
    print(f"slab      {g.slab_bytes:6} = {plural(g.slab_pages, 'page')}")
    print(f"header    {g.header:6}   kmem_slab " +
          ("at the end of the page" if g.header else
           "and bufctls are outside the slab"))
    print(f"objects   {g.slab_chunks:6} = ({g.slab_bytes} - {g.header}) / "
          f"{g.chunk}")
    print(f"unused    {g.slab_left:6} = {g.slab_bytes} - {g.header} - "
          f"{g.slab_chunks} * {g.chunk}, "
          f"{percent(g.slab_left, g.slab_bytes)}% of "
          "the slab")


def ledger(c):
    """{entry: bytes} of a cache's memory."""
    colour = sum(slab.colour for slab in c.slab_list)
    chunk = c.own_chunk
    tail = c.slab_bytes - c.header - c.slab_chunks * chunk
    parts = {"REQUESTED": c.used,
             "ROUNDING": c.inuse * (chunk - c.size - c.extra_word
                                    - c.tag_bytes),
             "EXTRA-WORD": c.inuse * c.extra_word,
             "DEBUG-TAG": c.inuse * c.tag_bytes, "COLOUR": colour,
             "TAIL": c.slabs * tail - colour, "HEADER": c.slabs * c.header,
             "HASH": c.hash_bytes, "FREE": (c.total - c.inuse) * chunk}
    total = sum(parts.values())
    return {**parts, "MEM": c.mem}, "= the sum" if total == c.mem else \
        f"! the sum is {total}"


def print_counters(c):
    print(f"\nobjects      {c.inuse} in use of {c.total}, {c.allocs} allocs, "
          f"{c.frees} frees, {c.fails} failed\n"
          f"slabs        {c.slabs}: {c.full_slabs} full, {c.partial} partial, "
          f"{c.free_slabs} free; at most {c.max_slabs}; "
          f"{c.slab_creates} created, {c.slab_destroys} destroyed")
    if c.hashed:
        print(f"hash         {c.hash_size} buckets, longest chain "
              f"{max(map(len, c.chains))}, {c.hash_rescales} rescales")
    print(f"working set  T {c.free_slabs} (free slabs now) m {c.ws_min} "
          f"(fewest lately) L {c.ws_limit} (before); "
          f"reapable {min(c.ws_limit, c.ws_min)}")


class CacheInFull(Command):
    """slab cache NAME
    One cache: layout, ledger, counters.
    How an object's chunk and its slab are computed, where each byte of the
    cache's memory goes, and all counters.
    Example: slab cache kmem_alloc_224"""

    def run(self, args):
        c = Heap().cache(args.word())
        kind = {"named": "a named cache", "class": "a size class of "
                "kmem_alloc"}.get(c.kind_name, "the allocator's own")
        print(f"{c.name}: {kind}, {'large' if c.large else 'small'} layout" +
              f", modes {c.mode_text}" * (c.mode_text != "") +
              ", pages from its own supplier" * c.own_supplier +
              " ! counts contradict each other" * c.bad)
        print_geometry(c)
        print(f"colours   {len(c.colours):6} = "
              f"{c.colour_max - c.colour_min} / {c.align} + 1: up to "
              f"{c.colour_max}; the next slab gets {c.colour}")
        for label, function in (("constructor", c.ctor),
                                ("destructor", c.dtor)):
            print(f"{label:<12} "
                  f"{target.symbol_text(function) if function else 'none'}")
        print()
        parts, remark = ledger(c)
        table = Table("LEDGER:-12 BYTES:9 :-1")
        for name, size in parts.items():
            table.row(name, str(size), remark if name == "MEM" else "")
        print_counters(c)


class Layout(Command):
    """slab layout SIZE [ALIGN] [ctor]
    The layout that a cache of such objects would have.
    Predicted from the rules alone: chunk, pages of a slab, objects, colours,
    and what part of the memory is lost. `ctor`: the objects are constructed,
    so that a small one gets an extra word for the link. ALIGN is a power of
    two up to a page, else 8. Needs no target.
    Example: slab layout 200 64 ctor"""

    offline = True

    def run(self, args):
        numbers = [w for w in args.words if w != "ctor"]
        size, align = ([evaluate(w) for w in numbers] + [0, 0])[:2]
        most = constant("KMEM_SIZE_MAX")
        if len(numbers) > 2 or size is None or not 1 <= size <= most:
            raise Fail(f"wants a size from 1 to {most}")
        if align is None or align & (align - 1) or align > PAGE_SIZE:
            raise Fail("the alignment is a power of two up to a page")
        g = Geometry(size, align, len(numbers) != len(args.words))
        print(f"{'large' if g.large else 'small'} layout: the chunk is "
              f"{'not ' if g.large else ''}smaller than 1/8 page, "
              f"{constant('KMEM_LARGE_MIN')} bytes")
        print_geometry(g)
        print(f"colours   {g.colour_max // g.align + 1:6} = {g.slab_left} / "
              f"{g.align} + 1: up to {g.colour_max}")
        used = g.slab_chunks * size
        print(f"lost      {g.slab_bytes - used:6} = "
              f"{waste(used, g.slab_bytes)}% of a slab whose objects "
              "are all in use")


class Hash(Command):
    """slab hash [-j] [NAME]
    Hash tables from buffer to bufctl, of large objects.
    A row per cache of large objects that has memory; of one cache also how many
    buckets have chains of each length.
    USED are objects in use, which are in the table. With GROW-AT objects, free
    or not, it grows, with SHRINK-AT or fewer it shrinks; 0: never.
    Example: slab hash kmem_alloc_1024"""

    def run(self, args):
        found = Heap().chosen(args.word(), lambda c: c.hashed and c.mem)
        if args.words and not found[0].hashed:
            raise Fail(f"'{found[0].name}' is of small objects, without a "
                       "hash table; `slab hash` shows which have one")
        table = Table(f"{NAME} ENTRIES:7 USED:7 MAXCHAIN:8 LOAD:6 RESCALES:8 "
                      "GROW-AT:7 SHRINK-AT:9", "j" in args)
        for c in found:
            load, n = c.inuse * 100 // c.hash_size, c.hash_size
            table.row(c.name, n, c.inuse, max(map(len, c.chains)),
                      f"{load // 100}.{load % 100:02}", c.hash_rescales,
                      (8 * n - 2) // 3, (n - 5) // 3 if n >= 128 else 0)
        if args.words:
            table.say("\nCHAIN  BUCKETS")
            lengths = [len(chain) for chain in found[0].chains]
            for i in sorted(set(lengths)):
                n = lengths.count(i)
                table.say(f"{i:4} {n:9}  " + bar(n, len(lengths), 40))


SETS, LINE_BYTES, HOT_BYTES = 64, 64, 48


def heat(cache, coloured):
    """How many objects touch each set of a processor's cache with their first
    bytes."""
    sets = [0] * SETS
    for slab in cache.slab_list:
        first = slab.base + (slab.colour if coloured else 0)
        for i in range(len(slab.buffers)):
            at = first + i * cache.chunk
            for line in range(at // LINE_BYTES,
                              (at + HOT_BYTES - 1) // LINE_BYTES + 1):
                sets[line % SETS] += 1
    return sets


class Colours(Command):
    """slab colours [-j] [NAME]
    Slab colours and the cache sets that objects touch.
    Slabs of one cache begin their objects at different offsets, so that
    objects spread over the processor's cache. SETS of 64 are touched by the
    first 48 bytes of the objects, UNCOLOURED if all slabs had colour 0. Of one
    cache also how many slabs have each colour, and both maps: a digit is
    tenths of the fullest set, a dot a set never touched.
    Example: slab colours kmem_alloc_224"""

    def run(self, args):
        table = Table(f"{NAME} COLOURS:7 STEP:5 NEXT:5 SLABS:6 SETS:5 "
                      "UNCOLOURED:10", "j" in args)
        for c in Heap().chosen(args.word(), lambda c: c.slabs):
            maps = {"coloured": heat(c, True), "all at 0": heat(c, False)}
            table.row(c.name, len(c.colours), c.align, c.colour, c.slabs,
                      *(SETS - sets.count(0) for sets in maps.values()))
            if not args.words:
                continue
            have = [slab.colour for slab in c.slab_list]
            table.say("\nCOLOUR  SLABS")
            for colour in c.colours:
                table.say(f"{colour:6} {have.count(colour):6}")
            for label, sets in maps.items():
                table.say(f"\n{label:<9}" + "".join(
                    str(n * 9 // max(sets)) if n else "." for n in sets))


def frag_parts(c):
    """Bytes of a cache's memory: all, requested, free, and of headers and hash
    tables. All memory of the allocator's own caches is overhead."""
    return (c.mem, 0, 0, c.mem) if c.kind_name == "internal" else (
        c.mem, c.used, (c.total - c.inuse) * c.chunk,
        c.slabs * c.header + c.hash_bytes)


class Frag(Command):
    """slab frag [-j]
    Slab memory that no client asked for.
    Total fragmentation as the paper's section 5.2 defines it, then by cache,
    the one that loses most first:
      MEM USED   bytes of its slabs and hash table; of objects in use
      FREE%      free buffers, in per cent of MEM
      INTERNAL%  rounding, colours and rests of slabs
      META%      headers, hash tables, the allocator's own caches
      FRAG%      the sum: memory that no client asked for"""

    def run(self, args):
        caches = [c for c in Heap().ordered(lambda c: c.mem - c.used) if c.mem]
        table = Table(f"{NAME} MEM:9 USED:9 FREE%:7 INTERNAL%:9 META%:7 "
                      "FRAG%:7", "j" in args)
        parts = {c.name: frag_parts(c) for c in caches}
        total = [sum(column) for column in zip(*parts.values())]
        for name, (mem, used, free, meta) in {"TOTAL": total, **parts}.items():
            table.row(name, mem, used, *(percent(n, mem, 2) for n in (
                free, mem - used - free - meta, meta, mem - used)))
