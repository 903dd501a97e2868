"""The kernel's statistics as data.

`read()` takes the JSON lines of `kmastat -j`, `slabs -j`, `buddyinfo -j`,
`pages -j`, `sample` and the beginnings of commands (both on port 0xE9), in any
order, and returns a Statistics. A line that is not JSON, lacks a member or
cannot be drawn raises a StatisticsError that names it. A line that contradicts
others is kept and listed in `doubts`, because a damaged heap must be shown too.
"""

import json
from dataclasses import dataclass, field

PAGE = 4096
STATES = ("full", "partial", "free")


class StatisticsError(Exception):
    """The input is not statistics; the text says where and why."""


@dataclass
class Cache:
    """A line of `kmastat -j`, and the cache's slabs."""
    name: str
    kind: str        # "named", "class" (of kmem_alloc), "internal"
    size: int
    chunk: int
    slab_bytes: int
    slab_objects: int
    slab_left: int
    colour_max: int
    align: int
    inuse: int
    total: int
    count: int       # of slabs
    mem: int
    hash_mem: int
    allocs: int
    frees: int
    grows: int       # slabs created
    slabs: list = field(default_factory=list)
    bad: bool = False
    trapped: int = 0  # objects in magazines, with SMP=1

    @property
    def header(self):
        """Bytes of the kmem_slab inside each slab; 0 if it is elsewhere."""
        return max(self.slab_bytes - self.slab_objects * self.chunk
                   - self.slab_left, 0)


@dataclass
class Slab:
    """One line of `slabs -j`."""
    address: int     # of its kmem_slab
    base: int
    bytes: int
    colour: int
    used: int
    objects: int
    state: str
    freelist: bool
    cells: str       # "#" is an allocated object, "." a free one, "o" a free
                     # one in a magazine, "!" a damaged one
    bad: bool = False


@dataclass
class Run:
    """One line of `pages -j`: blocks of one order and owner in a row."""
    frame: int
    frames: int
    order: object    # None: frames that belong to no block
    state: str
    cache: object    # the cache's name, or None

    def blocks(self):
        """(first frame, frames) of each block."""
        size = self.frames if self.order is None else 1 << self.order
        for at in range(self.frame, self.frame + self.frames, size):
            yield at, min(size, self.frame + self.frames - at)


@dataclass
class Sample:
    """One sample of `sample`."""
    ms: int
    mem: dict        # bytes by name of cache
    free: int        # pages
    total: int
    supplier: int
    user: int


@dataclass
class Mark:
    """A command that began while samples were taken."""
    ms: int
    command: str


@dataclass
class Statistics:
    caches: dict = field(default_factory=dict)
    orders: dict = field(default_factory=dict)    # free blocks by order
    runs: list = field(default_factory=list)
    samples: list = field(default_factory=list)
    marks: list = field(default_factory=list)
    totals: dict = field(default_factory=dict)    # of kmastat -j
    buddy: dict = field(default_factory=dict)     # of buddyinfo -j
    doubts: list = field(default_factory=list)

    def by_memory(self):
        """The caches that have memory, the largest first."""
        return sorted((c for c in self.caches.values() if c.mem),
                      key=lambda c: -c.mem)


def _member(record, key, kind, where):
    value = record.get(key)
    if kind is int and isinstance(value, bool) or not isinstance(value, kind):
        raise StatisticsError(f"{where}: \"{key}\" is missing or no "
                              f"{'text' if kind is str else kind.__name__}")
    if kind is int and value < 0:
        raise StatisticsError(f"{where}: \"{key}\" is below zero")
    return value


def _members(record, keys, where, kind=int):
    return [_member(record, key, kind, where) for key in keys]


class _Reader:
    def __init__(self):
        self.result = Statistics()
        self.pending = {}    # memory by cache of the sample being read

    def cache(self, record, where):
        name, kind = _members(record, ("cache", "kind"), where, str)
        (size, chunk, pages, objects, left, colour, align, inuse, total, slabs,
         mem, hash_mem, allocs, frees, grows) = _members(
             record, ("size", "chunk", "slab_pages", "slab_objects",
                      "slab_left", "colour_max", "align", "inuse", "total",
                      "slabs", "mem", "hash_mem", "allocs", "frees",
                      "slab_creates"), where)
        if not pages or not objects or objects * chunk + left > pages * PAGE:
            raise StatisticsError(f"{where}: {name}: {objects} objects of "
                                  f"{chunk} bytes are no slab of {pages} pages")
        if name in self.result.caches:
            raise StatisticsError(f"{where}: a second cache called {name}")
        self.result.caches[name] = Cache(
            name, kind, size, chunk, pages * PAGE, objects, left, colour, align,
            inuse, total, slabs, mem, hash_mem, allocs, frees, grows,
            bad=bool(record.get("bad")), trapped=record.get("trapped", 0))

    def slab(self, record, where):
        name, state, cells = _members(record, ("cache", "state", "cells"),
                                      where, str)
        numbers = _members(record, ("slab", "base", "bytes", "colour", "used",
                                    "objects"), where)
        slab = Slab(*numbers, state, bool(record.get("freelist")), cells,
                    bool(record.get("bad")))
        if name not in self.result.caches:
            raise StatisticsError(f"{where}: a slab of {name}, a cache without "
                                  "a line; kmastat -j comes before slabs -j")
        if state not in STATES or set(cells) - set("#.o!"):
            raise StatisticsError(f"{where}: {name}: state \"{state}\", cells "
                                  f"\"{cells[:16]}\" are not a slab's")
        self.result.caches[name].slabs.append(slab)

    def run(self, record, where):
        frame, frames = _members(record, ("frame", "frames"), where)
        order = record.get("order")
        if order is not None and (not isinstance(order, int)
                                  or not 0 <= order <= 10):
            raise StatisticsError(f"{where}: there is no order {order!r}")
        runs = self.result.runs
        if runs and frame != runs[-1].frame + runs[-1].frames:
            raise StatisticsError(f"{where}: frame {frame} does not follow "
                                  "the run before")
        runs.append(Run(frame, frames, order,
                        _member(record, "state", str, where),
                        record.get("cache")))

    def order(self, record, where):
        order, free = _members(record, ("order", "free"), where)
        self.result.orders[order] = free

    def sample(self, record, where):
        ms = _member(record, "ms", int, where)
        if "cache" in record:
            name = _member(record, "cache", str, where)
            self.pending[name] = _member(record, "mem", int, where)
            return
        sample = Sample(ms, self.pending, *_members(
            record, ("free_pages", "total_pages", "supplier_pages",
                     "user_pages"), where))
        self.pending = {}
        samples = self.result.samples
        if samples and samples[-1].ms == ms:
            samples.pop()    # the last one may be taken within a step
        if samples and samples[-1].ms > ms:
            raise StatisticsError(f"{where}: time goes back to {ms} ms")
        samples.append(sample)

    def record(self, record, where):
        """Reads one line; ignores lines of other commands."""
        if record.get("event") == "sample":
            self.sample(record, where)
        elif record.get("event") == "command":
            self.result.marks.append(
                Mark(_member(record, "ms", int, where),
                     _member(record, "name", str, where)))
        elif "event" in record:
            return
        elif "cells" in record or "base" in record:
            self.slab(record, where)
        elif "cache" in record and "chunk" in record:
            self.cache(record, where)
        elif "frame" in record:
            self.run(record, where)
        elif "order" in record and "free" in record:
            self.order(record, where)
        elif "supplier" in record and "total" in record:
            self.result.totals = record
        elif "total_pages" in record and "largest" in record:
            self.result.buddy = record


def _check_cache(cache, doubt):
    slabs = cache.slabs
    if cache.bad:
        doubt(cache, "its row contradicts itself")
    if len(slabs) != cache.count:
        doubt(cache, f"{len(slabs)} slabs on the list, {cache.count} counted")
    taken, counted = sum(s.used for s in slabs), cache.inuse + cache.trapped
    if taken != counted:
        doubt(cache, f"{taken} objects allocated by slabs, {counted} counted")
    for slab in slabs:
        where = f"slab 0x{slab.base:08x}: "
        if slab.bad:
            doubt(cache, where + "its freelist is broken")
        used = len(slab.cells) - slab.cells.count(".")
        if used != slab.used or len(slab.cells) != slab.objects:
            doubt(cache, where + f"{used} cells of {len(slab.cells)} used, "
                  f"{slab.used} of {slab.objects} counted")
        if slab.colour + slab.objects * cache.chunk + cache.header \
                > slab.bytes:
            doubt(cache, where + "its objects reach beyond its end")


def _check(statistics):
    def doubt(cache, text):
        if cache:
            cache.bad = True
        statistics.doubts.append(f"{cache.name}: {text}" if cache else text)

    for cache in statistics.caches.values():
        _check_cache(cache, doubt)
    totals = statistics.totals
    if totals and not totals.get("equal", True):
        doubt(None, "the caches' memory is not what the supplier gave")
    if statistics.runs and statistics.orders:
        found = dict.fromkeys(statistics.orders, 0)
        for run in statistics.runs:
            if run.state == "free" and run.order is not None:
                found[run.order] = found.get(run.order, 0) \
                    + len(list(run.blocks()))
        if found != statistics.orders:
            doubt(None, f"free blocks by order are {found} in the map, "
                  f"{statistics.orders} on the lists")
    for sample in statistics.samples:
        if sum(sample.mem.values()) != sample.supplier * PAGE:
            doubt(None, f"at {sample.ms} ms the caches hold "
                  f"{sum(sample.mem.values())} bytes, the supplier gave "
                  f"{sample.supplier * PAGE}")


def records(lines, name):
    """(where, record) of each line that is not blank."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            record = json.loads(line)
        except ValueError as e:
            raise StatisticsError(f"{where}: no JSON: {e}") from e
        if not isinstance(record, dict):
            raise StatisticsError(f"{where}: no JSON object")
        yield where, record


def read(lines, name="statistics"):
    """A Statistics from an iterable of lines."""
    reader = _Reader()
    for where, record in records(lines, name):
        reader.record(record, where)
    result = reader.result
    if not result.caches:
        raise StatisticsError(f"{name}: no line of `kmastat -j` in it")
    _check(result)
    return result
