"""slab frag: total fragmentation as the paper's section 5.2 defines it, at each
mark and now, and by cache (kernel/shell/cmd_kmem_frag.c).
"""

from common import Command
from slab_heap import KINDS, Heap
from slab_marks import all_marks, frag_parts
from slab_stat import NAME, name_cell


def share(part, whole):
    """In hundredths of a per cent, rounded."""
    return (part * 10000 + whole // 2) // whole if whole else 0


def print_step(label, f):
    consumed = f["consumed"]
    parts = (consumed - f["requested"], f["internal"], f["free"], f["meta"])
    line = f"{label:<12} {f['requested']:10} {consumed:10}"
    for part in parts:
        hundredths = share(part, consumed)
        line += f" {hundredths // 100:6}.{hundredths % 100:02}"
    print(line)


def print_steps(heap):
    """A row per mark, and one for now."""
    print(f"{'STEP':<12} {'REQUESTED':>10} {'CONSUMED':>10} {'FRAG%':>9} "
          f"{'INTERNAL%':>9} {'FREE-BUF%':>9} {'META%':>9}")
    for mark, _ in all_marks():
        print_step(mark.label, mark.frag)
    print_step("now", frag_parts(heap))
    print()


class _Frag:
    """Where the memory of a cache, or of all, is; in bytes."""

    def __init__(self, mem=0, used=0, free=0):
        self.mem, self.used, self.free = mem, used, free

    @classmethod
    def of(cls, cache):
        if cache.kind == KINDS.index("internal"):
            return cls(cache.mem)
        return cls(cache.mem, cache.used,
                   (cache.total - cache.inuse) * cache.chunk)

    @property
    def lost(self):
        return self.mem - self.used

    def share(self, whole):
        """LOST of `whole`."""
        return share(self.lost, whole)

    def row(self, name, whole):
        own, points = self.share(self.mem), self.share(whole)
        print(f"{name_cell(name)} {self.mem:8} {self.used:8} {self.free:8} "
              f"{self.lost - self.free:8} {self.lost:8} "
              f"{own // 100:4}.{own % 100:02} "
              f"{points // 100:4}.{points % 100:02}")

    def json(self, key, name):
        own = self.share(self.mem)
        print(f'{{"{key}":"{name}","mem":{self.mem},"used":{self.used},'
              f'"free":{self.free},"lost":{self.lost},'
              f'"percent":{own // 100}.{own % 100:02}}}')


class Frag(Command):
    name = "slab frag"
    usage = "[-j]"
    summary = "Slab memory that nobody asked for"
    details = """\
Total fragmentation as the paper's section 5.2 defines it: a row for each
`slab mark` and one for now; in per cent of CONSUMED
  FRAG%      what is not REQUESTED, of which
  INTERNAL%  rounding, colours and rests of slabs
  FREE-BUF%  free buffers
  META%      headers, hash tables, the allocator's own caches
Then by cache, the one that loses most first, in bytes:
  MEM       its slabs and the pages of its hash table
  USED      objects in use, at the size that was asked for
  FREE      free buffers: external fragmentation
  OVERHEAD  rounding, rests of slabs, headers, hash tables
  LOST%     of MEM;  POINTS: its part of the total's LOST%"""
    example = "slab frag"
    options = "j"

    def run(self, args):
        heap, total = Heap(), _Frag()
        rows = [(c, _Frag.of(c)) for c in
                heap.ordered(lambda c: _Frag.of(c).lost)]
        for _, frag in rows:
            total.mem += frag.mem
            total.used += frag.used
            total.free += frag.free
        if "j" in args:
            for cache, frag in rows:
                frag.json("cache", cache.name)
            total.json("key", "frag.total")
            return
        print_steps(heap)
        print(f"{'CACHE':<{NAME}} {'MEM':>8} {'USED':>8} {'FREE':>8} "
              f"{'OVERHEAD':>8} {'LOST':>8} {'LOST%':>7} {'POINTS':>7}")
        for cache, frag in rows:
            if frag.mem:
                frag.row(cache.name, total.mem)
        total.row("TOTAL", total.mem)
        print("the paper's own: boot 11 %, spike 13 %, find 14 %, "
              "kenbus 14 %")


Frag()
