"""slab kmastat: figures of the caches."""

from fnmatch import fnmatchcase as fnmatch

import target
from command import Command, Table, count, waste
from heap import KINDS, Heap
from target import Fail

FIGURES = {"INUSE": "inuse", "TOTAL": "total", "ALLOC": "allocs",
           "FAIL": "fails"}


def cells(caches):
    """{column: value} of some caches, summed."""
    def total(figure):
        return sum(getattr(c, figure) for c in caches)
    return {**{column: total(figure) for column, figure in FIGURES.items()},
            "FULL/PART/FREE": "/".join(count(total(n), 4) for n in (
                "full_slabs", "partial", "free_slabs")),
            "MEM/K": total("mem") >> 10,
            "WASTE%": waste(total("used"), total("mem"))}


class Kmastat(Command):
    """slab kmastat [PATTERN]
    The slab caches: objects, slabs, memory, waste.
    A row per cache that has memory, or that PATTERN names; largest first. MEM
    is in KiB. PATTERN is a part of the name, or has * and ?. A row marked !
    contradicts itself, as it may in the middle of an allocation.
    Example: slab kmastat kmem_alloc*"""

    def run(self, args):
        pattern = args.word() or "*"
        if not set("*?") & set(pattern):
            pattern = f"*{pattern}*"
        heap = Heap()
        for note in heap.notes:
            print(f"! {note}")
        found = [c for c in heap.ordered() if fnmatch(c.name, pattern)]
        if not found:
            raise Fail(f"no cache matches '{args.word()}'; `slab kmastat '*'` "
                       "lists them")
        # The columns are those of the kernel's own table.
        columns = [(column["col_head"].string(), int(column["col_width"]))
                   for column in
                   target.elements("kmastat_columns", "cmd_kmem_stat.c")
                   if column["col_head"]]
        table = Table(" ".join(f"{name}:{width}" for name, width in columns))
        shown = [c for c in found if c.mem or c.bad
                 or args.words and c.kind_name == KINDS[0]]
        rows = [("!" * c.bad + c.name, {"SIZE": c.size, "CHUNK": c.chunk,
                                        **cells([c])}) for c in shown]
        for name, row in [*rows, ("TOTAL", cells(found))]:
            table.row(name, *(row.get(column, "") for column, _ in columns[1:]))
