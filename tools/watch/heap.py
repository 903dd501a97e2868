"""Figures of the slab caches, from the lines of `kmastat -j`: changes between
two moments, and fragmentation as the paper's section 5.2 defines it.

Fragmentation is the part of the slabs' memory that no client has requested. It
has three causes. Internal: a buffer is larger than the object in it, a slab
than its buffers. Free buffers: the external part. Meta: slab headers, hash
tables and the allocator's own caches. An object in use counts with the size
that its cache was created for; a buffer of kmem_alloc, whose requested size is
not kept, with the size of its class.
"""

import re
from dataclasses import dataclass, fields

from tools.measure import statistics

COUNTS = ("inuse", "count", "mem", "allocs", "frees")
PAPER = "the paper's own: boot 11 %, spike 13 %, find 14 %, kenbus 14 %"


@dataclass
class Moment:
    """What `kmastat -j` said at one moment; `ms` is the kernel's clock."""
    label: str
    ms: int
    statistics: statistics.Statistics

    @property
    def caches(self):
        return self.statistics.caches

    @classmethod
    def read(cls, lines, label="now", ms=0):
        found = statistics.read(lines, "kmastat -j")
        if not found.totals:
            raise statistics.StatisticsError("kmastat -j: its last line is "
                                             "missing")
        return cls(label, ms, found)


def moments(text):
    """A Moment for each `kmastat -j` in the output of a machine."""
    lines = []
    for line in text.splitlines():
        if line.startswith("{"):
            lines.append(line)
        if line.startswith("{") and '"supplier":' in line:
            yield Moment.read(lines)
            lines = []


# ---- changes -----------------------------------------------------------------

@dataclass
class Change:
    """Of one cache, between two moments."""
    name: str
    counts: list     # of COUNTS
    note: str        # "new", "destroyed" or ""


def changes(a, b):
    """A Change for each cache that differs, the most memory gained first."""
    found = []
    for name in [*b.caches, *(n for n in a.caches if n not in b.caches)]:
        before, after = ([getattr(m.caches[name], count) for count in COUNTS]
                         if name in m.caches else [0] * len(COUNTS)
                         for m in (a, b))
        counts = [y - x for x, y in zip(before, after)]
        note = "new" if name not in a.caches else \
            "destroyed" if name not in b.caches else ""
        if any(counts):
            found.append(Change(name, counts, note))
    return sorted(found, key=lambda c: -c.counts[COUNTS.index("mem")])


def sums(found):
    """The sum of Changes, count by count."""
    return [sum(column) for column in zip(*(c.counts for c in found))] or \
        [0] * len(COUNTS)


# ---- fragmentation -----------------------------------------------------------

@dataclass
class Parts:
    """Where the bytes of slabs and hash tables are."""
    requested: int = 0
    internal: int = 0
    free: int = 0
    meta: int = 0

    @property
    def lost(self):
        return self.internal + self.free + self.meta

    @property
    def consumed(self):
        return self.requested + self.lost

    def __add__(self, other):
        return Parts(*(getattr(self, f.name) + getattr(other, f.name)
                       for f in fields(self)))


def parts(cache):
    """The allocator's own caches have no client: all of them is meta."""
    if cache.kind == "internal":
        return Parts(meta=cache.mem)
    requested = cache.inuse * cache.size
    free = (cache.total - cache.inuse) * cache.chunk
    meta = cache.count * cache.header + cache.hash_mem
    return Parts(requested, cache.mem - requested - free - meta, free, meta)


def fragmentation(moment):
    """The Parts of all caches together."""
    return sum(map(parts, moment.caches.values()), Parts())


def by_loss(moment):
    """(name, Parts) of the caches that have memory, most lost bytes first."""
    found = [(name, parts(cache)) for name, cache in moment.caches.items()
             if cache.mem]
    return sorted(found, key=lambda pair: -pair[1].lost)


# ---- slabs -------------------------------------------------------------------

def slab_at(caches, word):
    """(cache, slab) whose kmem_slab is at the hexadecimal address, or else
    whose memory it is in; None without one."""
    if not re.fullmatch("(0x)?[0-9a-f]{1,8}", word):
        return None
    address = int(word, 16)
    slabs = [(cache, slab) for cache in caches.values() for slab in cache.slabs]
    return next((pair for pair in slabs if pair[1].address == address), None) \
        or next((pair for pair in slabs
                 if 0 <= address - pair[1].base < pair[1].bytes), None)
