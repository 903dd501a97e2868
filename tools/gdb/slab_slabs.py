"""slab slabs, map, freelist, walk, why: slabs and the buffers in them, in the
order of the cache's list (paper, sections 3.2 and 3.3)."""

import itertools
import re

import gdb

import target
from command import (Command, Hex, Table, bar, evaluate, parse_address,
                     plural)
from heap import PARTIAL, Heap, show_age, show_caller
from slab_address import print_place
from slab_verify import note_broken, slab_wrong
from target import UNREADABLE, WORD, BadMemory, Fail, read, record, words

SHOWN = 8  # slabs of each state; objects of a slab


def mark(slab):
    return "!" if slab_wrong(slab) else " "


class Slabs(Command):
    """slab slabs [-j] [-v] [NAME]
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
                          "IDLE:6 CELLS:-1", "j" in args, 2)
            self.slabs(heap, table, cache, "v" in args)
            if not table.rows:
                table.say(f"{cache.name} has no slabs: the first allocation "
                          f"creates one of {cache.slab_chunks} objects")
            elif not table.as_json:
                histogram(cache)
            if not table.as_json:
                note_broken(cache)

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
                      + mark(slab))
        for state, n in seen.items():
            if n > SHOWN and not everything:
                table.say(f"  and {n - SHOWN} more {state} slabs (-v shows "
                          "them)")


def histogram(cache):
    """The number of slabs by objects in use, in at most 11 bins: the first bin
    is 0 objects only, the last all of them."""
    n, bins = cache.slab_chunks, {}
    for slab in cache.slab_list:
        used = min(slab.refcnt, n)
        key = 0 if not used else 10 if used == n else \
            1 + (used - 1) * 9 // max(n - 1, 1)
        bins.setdefault(key, []).append(used)
    print(f"\n{'USED':>7} {'SLABS':>7}   of {n} objects")
    for _, values in sorted(bins.items()):
        text = "-".join(map(str, sorted({min(values), max(values)})))
        print(f"{text:>7} {len(values):7}  {bar(len(values), cache.slabs, 40)}")


class Map(Command):
    """slab map ADDR
    One slab, a row per object.
    The slab that holds the address: a character per object, then each object's
    offset from the slab's base, and of free ones LINK, the next on the
    freelist; `>` marks the one that the address is in. Of caches in mode U
    also the last transaction.
    Example: slab map $cache("inode")"""

    def run(self, args):
        heap, address = Heap(), parse_address(args.word())
        slab = heap.slab_at(address)
        if slab is None:
            raise Fail(f"no slab holds 0x{address:x}; `slab whatis` says what "
                       "is there")
        print_place(slab, address)
        cache = slab.owner
        print(f"colour {slab.colour} | {slab.chunks} objects of "
              f"{cache.chunk} | tail {cache.slab_left - slab.colour} | header "
              f"{cache.header}")
        print("\n".join(re.findall(".{1,64}", slab.cells)))
        audited = cache.in_mode("U")
        table = Table("IDX:4 OFFSET:6 STATE:-6 LINK:4" +
                      " OWNER:5 AGE:6 CALLER:-1" * audited, margin=1)
        links = self.links(slab)
        for b in slab.buffers:
            last = b.last
            table.row(b.index, f"0x{b.address - slab.base:04x}",
                      {"#": "in use", ".": "free"}.get(b.cell, "!"),
                      links.get(b.index, "-"),
                      *(last and last.task, show_age(last),
                        show_caller(last)) * audited,
                      mark=">" if b.index == slab.index(address) else "")
        note_broken(cache)

    @staticmethod
    def links(slab):
        """{index of a free object: that of the next one, "!" or "end"}"""
        nexts = [("!" if why else index) for *_, index, _, why in
                 slab.steps[1:]] + ["end"]
        return {index: following for (_, _, index, _, why), following in
                zip(slab.steps, nexts) if not why}


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
        bad = slab_wrong(slab) is not None
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
    """slab walk [-j] [-n N] [-e EXPR] alloc|free|slab|bufctl|hash [NAME]
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
                      "FIRST-WORDS:-1", "j" in args, 1)
        for cache in Heap().chosen(args.word(1), lambda c: True):
            # Of a free small object print only the link.
            n = 1 if what == "bufctl" and not cache.hashed else 3
            for row in itertools.islice(walk(what, cache), limit - table.rows):
                self.put(table, cache, row, n, args.get("e"))
            if not table.as_json:
                note_broken(cache)
            if table.rows == limit:
                break
        table.say(plural(table.rows, "row"))

    @staticmethod
    def put(table, cache, row, n, expression):
        address, slab, index, state, bad = row
        table.row(Hex(address), cache.name, Hex(slab), index, state,
                  first_words(address, n), mark="!" * bad)
        gdb.set_convenience_variable("obj", target.pointer(address))
        if expression is None or table.as_json:
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


class Why(Command):
    """slab why [-j] SLAB|CACHE
    The objects that keep nearly free slabs alive.
    Of a cache: the partial slabs with the fewest objects in use, and these
    objects: when they are freed, the slabs can be released. Of a slab, by any
    address in it or by SLAB: all its objects in use. AGE and CALLER are known
    for caches in mode U.
    Example: slab why inode"""

    def run(self, args):
        heap, what = Heap(), args.word()
        cache = heap.find(what) or heap.cache_at(evaluate(what))
        slabs = [heap.find_slab(parse_address(what))] if not cache \
            else [s for s in cache.slab_list if s.state == PARTIAL]
        near = sorted(slabs, key=lambda s: s.refcnt)[:SHOWN]
        table = Table("SLAB:-10 USED/N:7 OBJ:-10 AGE:6 CALLER:-1",
                      "j" in args, 1)
        for slab in near:
            self.slab(heap, table, slab, SHOWN if cache else slab.chunks)
        if cache:
            pages = plural(len(near) * cache.slab_pages, "page")
            table.say(f"{len(near)} of {len(slabs)} partial slabs; "
                      f"{sum(s.refcnt for s in near)} frees would release "
                      f"{pages}")

    def slab(self, heap, table, slab, most):
        used = [b for b in slab.buffers if b.used]
        for n, b in enumerate(used[:most]):
            first = (Hex(slab.address), f"{slab.refcnt}/{slab.chunks}") \
                if n == 0 or table.as_json else ("", "")
            table.row(*first, Hex(b.address), show_age(b.alloc),
                      show_caller(b.alloc),
                      mark=mark(slab) if n == 0 else "")
        if len(used) > most:
            table.say(f"{'':20}and {len(used) - most} more")
