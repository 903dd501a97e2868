"""The texts of the commands that watch the heap: lines of their tables."""

from tools.measure import table
from tools.watch import heap


def marks(found, now):
    """A row for each Moment of `mark`."""
    def row(moment):
        parts = heap.fragmentation(moment)
        return [moment.label, table.age(now - moment.ms), len(moment.caches),
                parts.requested, parts.consumed]
    return table.lines("LABEL:-12 AGE:6 CACHES:6 REQUESTED:10 CONSUMED:10",
                       map(row, found))


def diff(a, b):
    found = heap.changes(a, b)
    total = heap.Change("TOTAL", heap.sums(found), "")
    yield from table.lines(
        "CACHE:-17 dINUSE:9 dSLABS:8 dMEM/B:11 dALLOC:10 dFREE:10",
        [[c.name, *(f"{count:+}" for count in c.counts), c.note]
         for c in [*found, total]])
    yield f"from {a.label} to {b.label}: {table.age(b.ms - a.ms)}"


# A mark has the time of the last tick (drivers/pit.h), an object a finer one,
# which may seem to be after the mark.
TICK_MS = 10


def new_callers(groups, ms):
    """The rows of `cache -u -j` all of whose objects are younger than a mark,
    which is `ms` old. Nothing if no cache is audited."""
    audited = [g for g in groups if g["stack"]]
    new = [g for g in audited if g["oldest_us"] < (ms - TICK_MS) * 1000]
    if not audited:
        return
    yield ""
    yield f"callers that are new:{'' if new else ' none'}"
    if new:
        yield from table.lines(
            "CACHE:-17 COUNT:6 BYTES:9 OLDEST:7 SAMPLE:-10 CALLER:-1",
            [[g["cache"], g["count"], g["bytes"],
              table.age(g["oldest_us"] // 1000), f"0x{g['sample']:08x}",
              g["stack"][0]] for g in new])


def frag_steps(moments):
    """Fragmentation at each moment; in per cent of CONSUMED."""
    def row(moment):
        p = heap.fragmentation(moment)
        return [moment.label, p.requested, p.consumed,
                *(table.percent(n, p.consumed, 2)
                  for n in (p.lost, p.internal, p.free, p.meta))]
    return table.lines("STEP:-12 REQUESTED:10 CONSUMED:10 FRAG%:9 INTERNAL%:9 "
                       "FREE-BUF%:9 META%:9", map(row, moments))


def frag_caches(moment):
    """Fragmentation by cache, the one that loses most first, in bytes."""
    total = heap.fragmentation(moment)
    rows = [[name, p.consumed, p.requested, p.free, p.internal + p.meta, p.lost,
             table.percent(p.lost, p.consumed, 2),
             table.percent(p.lost, total.consumed, 2)]
            for name, p in [*heap.by_loss(moment), ("TOTAL", total)]]
    return table.lines("CACHE:-17 MEM:8 USED:8 FREE:8 OVERHEAD:8 LOST:8 "
                       "LOST%:7 POINTS:7", rows)


WHY_SLABS, WHY_OBJECTS = 8, 8


def why(slabs, objects, most=WHY_OBJECTS):
    """The objects in use of these slabs. `objects` are rows of `cache
    -o alloc -j`; AGE and CALLER are known of caches in mode U."""
    rows = []
    for slab in slabs:
        kept = [o for o in objects if o["slab"] == slab.address]
        for n, o in enumerate(kept[:most]):
            rows.append([*(["", ""] if n else
                           [f"{'!' if slab.bad else ' '}0x{slab.address:08x}",
                            f"{slab.used:3}/{slab.objects:<3}"]),
                         f"0x{o['addr']:08x}",
                         table.age(o["age_us"] // 1000)
                         if "age_us" in o else "-", o.get("caller", "-")])
        if len(kept) > most:
            rows.append(["", "", f"and {len(kept) - most} more"])
    return table.lines("SLAB:-11 USED/N:7 OBJ:-10 AGE:6 CALLER:-1", rows)


def why_cache(cache, objects):
    """Of the partial slabs those with the fewest objects in use: once these
    are freed, the slabs can be reaped."""
    partial = sorted((s for s in cache.slabs if s.state == "partial"),
                     key=lambda slab: slab.used)
    shown = partial[:WHY_SLABS]
    yield from why(shown, objects)
    if not shown:
        yield f"(no slab of {cache.name} is partial)"
        return
    frees = sum(slab.used for slab in shown)
    pages = sum(slab.bytes for slab in shown) // 4096
    yield (f"{len(shown)} of {len(partial)} partial slabs; {frees} frees would "
           f"release {pages} page{'s' if pages != 1 else ''}")
