"""slab slabs, walk: slabs and the objects in them, in the order of the cache's
list (paper, sections 3.2 and 3.3)."""

import itertools

import gdb

import target
from command import Command, Hex, Table, plural
from heap import Buffer, Heap
from target import WORD, BadMemory, read, words

SHOWN = 8  # slabs of each state


class Slabs(Command):
    """slab slabs [-v] [NAME]
    A picture of a cache's slabs, a cell per object.
    Of one cache, or of each that has memory: a row per slab, in the order of
    the cache's list: first those whose objects are all in use, then partial
    ones, then free ones. `>` is the freelist pointer: the next object comes
    from there. A slab marked ! is broken.
    BASE is its first page, IDLE the working-set updates (one every 15 s) since
    its last object was freed.
    CELLS: # in use, . free, ! damaged or not in the hash table.
      -v  every slab; else the first 8 of each state
    Example: slab slabs kmem_alloc_224"""

    def run(self, args):
        heap = Heap()
        for cache in heap.chosen(args.word()):
            table = Table("SLAB:-10 BASE:-10 COLOUR:6 USED/N:7 STATE:-7 "
                          "IDLE:6 CELLS:-1", 2)
            self.slabs(heap, table, cache, "v" in args)
            if not table.rows:
                print(f"{cache.name} has no slabs: the first allocation "
                      f"creates one of {cache.slab_chunks} objects")
            for slab in cache.slab_list:
                if slab.wrong:
                    print(f"! slab 0x{slab.address:08x}: {slab.wrong}")

    def slabs(self, heap, table, cache, everything):
        seen = {}
        for slab in cache.slab_list:
            seen[slab.state] = n = seen.get(slab.state, 0) + 1
            if not everything and n > SHOWN:
                continue
            idle = target.integer("kmem_updates") - slab.since & 0xFFFFFFFF
            table.row(Hex(slab.address), Hex(slab.base), slab.colour,
                      f"{slab.refcnt}/{slab.chunks}", slab.state,
                      "-" if slab.refcnt else idle, slab.cells,
                      mark=(">" if cache.freelist == slab.address else " ")
                      + "!" * bool(slab.wrong))
        for state, n in seen.items():
            if n > SHOWN and not everything:
                print(f"  and {n - SHOWN} more {state} slabs (-v shows them)")


def objects(cache, used):
    """The objects in use, or the free ones in the order of the freelists."""
    for slab in cache.slab_list:
        if used:
            yield from (b for b in slab.buffers if b.used)
        else:
            yield from (Buffer(slab, i) for i in slab.free_links)


class Walk(Command):
    """slab walk [-n N] [-e EXPR] alloc|free [NAME]
    Every object in use, or every free one.
    A row for each, of one cache or of all, largest cache first. Free objects
    are in the order in which they will be allocated. FIRST-WORDS are the words
    at ADDR. A row marked ! is inconsistent.
      -n N     at most N rows
      -e EXPR  print EXPR for each; $obj is the address in it, and stays that
               of the last row
    Example: slab walk alloc inode -n 2 -e '((struct inode *)$obj)->inode_refs'
    """

    def run(self, args):
        what, limit = args.word(), args.number("n", 1 << 32, 1)
        if what not in ("alloc", "free"):
            raise self.misuse
        table = Table("ADDR:-10 CACHE:-16 SLAB:-10 IDX:4 STATE:-7 "
                      "FIRST-WORDS:-1", 1)
        for cache in Heap().chosen(args.word(1), lambda c: True):
            for b in itertools.islice(objects(cache, what == "alloc"),
                                      limit - table.rows):
                self.put(table, b, args.get("e"))
            if table.rows == limit:
                break
        print(plural(table.rows, "row"))

    @staticmethod
    def put(table, b, expression):
        table.row(Hex(b.address), b.cache.name, Hex(b.slab.address), b.index,
                  "used" if b.used else "free", first_words(b.address),
                  mark="!" * (b.slab.wrong is not None or b.cell == "!"))
        gdb.set_convenience_variable("obj", target.pointer(b.address))
        if expression is None:
            return
        try:
            text = gdb.parse_and_eval(expression).format_string()
        except gdb.error as e:
            text = f"! {e}"
        for line in text.splitlines():
            print(f"    {line}")


def first_words(address):
    try:
        return " ".join(f"{w:08x}" for w in words(read(address, 3 * WORD)))
    except BadMemory:
        return "unmapped"
