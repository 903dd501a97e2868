"""slab slabs, freelist, walk: slabs and the buffers in them, in the order of
the cache's list (paper, sections 3.2 and 3.3)."""

import itertools

import gdb

import target
from command import Command, Hex, Table, parse_address, plural
from heap import Heap
from target import UNREADABLE, WORD, BadMemory, read, record, words

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


class Freelist(Command):
    """slab freelist SLAB
    Follow a slab's freelist, link by link.
    SLAB is any address in the slab: its kmem_slab, its page, an object.
    IDX is the object that the link belongs to; allocations take them in this
    order. LINK is the last word of a free small object, or the bufctl of a
    large one, NEXT its contents. An invalid link is marked `!`.
    Example: slab freelist $cache("inode")->cache_freelist"""

    def run(self, args):
        slab = Heap().find_slab(parse_address(args.word()))
        free = slab.chunks - slab.refcnt
        print(f"slab 0x{slab.address:08x} of {slab.owner.name}, {slab.state}: "
              f"{free} of {slab.chunks} free; slab_head 0x{slab.head:08x}")
        table, why, n = Table("STEP:6 IDX:3 LINK:-10 BUFFER:-10 NEXT:-10"), \
            None, 0
        for n, (link, buf, index, following, why) in enumerate(slab.steps, 1):
            table.row(f"!{n - 1}" if why else n - 1, index, Hex(link),
                      None if buf is None else Hex(buf),
                      None if why else Hex(following))
        if why:
            print(f"! the last link {why}")
        else:
            print(f"{'! ' if n != free else ''}{plural(n, 'link')}, then "
                  f"NULL; {plural(free, 'object')} free by the count")


def walk(what, cache):
    """(address, slab, index, state, whether it is bad) of each thing."""
    for bucket in range(cache.hash_size if what == "hash" else 0):
        try:
            for at in cache.chain(bucket):
                if not cache.bufctl_plausible(at):
                    raise BadMemory(at)
                yield at, record("kmem_bufctl", at).slab, bucket, "used", False
        except UNREADABLE:
            yield 0, 0, bucket, "invalid", True
    for slab in cache.slab_list if what != "hash" else ():
        bad = slab.wrong is not None
        if what == "slab":
            yield slab.address, slab.address, slab.number, slab.state, bad
            continue
        for b in slab.buffers:
            state = "free" if not b.used else \
                "used" if b.state == "in use" else "bad"
            if what == "bufctl" and b.bufctl:
                yield b.bufctl, slab.address, b.index, state, bad
            elif what == ("alloc" if b.used else "free"):
                yield b.address, slab.address, b.index, state, \
                    bad or b.cell == "!"


class Walk(Command):
    """slab walk [-n N] [-e EXPR] alloc|free|slab|bufctl|hash [NAME]
    Every object, slab, bufctl or hash entry.
    A row for each, of one cache or of all, largest cache first:
      alloc free  objects in use, free objects
      slab        slabs in list order; IDX is the place in the list
      bufctl      control blocks; of small objects, where a free one is its
                  own, the link word
      hash        the chains of the hash table; IDX is the bucket
    FIRST-WORDS are the words at ADDR. A row marked ! is inconsistent.
      -n N     at most N rows
      -e EXPR  print EXPR for each; $obj is the address in it, and stays that
               of the last row
    Example: slab walk alloc inode -n 2 -e '((struct inode *)$obj)->inode_refs'
    """

    def run(self, args):
        what, limit = args.word(), args.number("n", 1 << 32, 1)
        if what not in self.choices:
            raise self.misuse
        table = Table("ADDR:-10 CACHE:-16 SLAB:-10 IDX:4 STATE:-7 "
                      "FIRST-WORDS:-1", 1)
        for cache in Heap().chosen(args.word(1), lambda c: True):
            # Of a free small object print only the link.
            n = 1 if what == "bufctl" and not cache.hashed else 3
            for row in itertools.islice(walk(what, cache), limit - table.rows):
                self.put(table, cache, row, n, args.get("e"))
            if table.rows == limit:
                break
        print(plural(table.rows, "row"))

    @staticmethod
    def put(table, cache, row, n, expression):
        address, slab, index, state, bad = row
        table.row(Hex(address), cache.name, Hex(slab), index, state,
                  first_words(address, n), mark="!" * bad)
        gdb.set_convenience_variable("obj", target.pointer(address))
        if expression is None:
            return
        try:
            text = gdb.parse_and_eval(expression).format_string()
        except gdb.error as e:
            text = f"! {e}"
        for line in text.splitlines():
            print(f"    {line}")


def first_words(address, n):
    try:
        return " ".join(f"{w:08x}" for w in words(read(address, n * WORD)))
    except BadMemory:
        return "unmapped"
