"""slab verify: every invariant of the slab allocator and of the buddy
allocator, in the words of mm/kmem_verify.c and mm/buddy_verify.c.

A check returns None, or (where, why): the first invariant that is broken.
"""

import gdb

import target
from command import Command, Table
from heap import STATES, Heap, Slab, damage, hash_pages
from target import (PAGE_MASK, PAGE_SIZE, WORD, BadMemory, constant, record,
                    record_of, word)


def at(thing, why):
    """(where, why) of an error in a Cache, a Slab or a bufctl."""
    return why and (
        f"bufctl 0x{thing:08x}" if isinstance(thing, int) else
        f"slab 0x{thing.address:08x}" if isinstance(thing, Slab) else
        f"cache {thing.name} (0x{thing.address:08x})", why)


def first(*pairs):
    """The `why` of the first condition that holds."""
    return next((why for wrong, why in pairs if wrong), None)


# ---- one cache, one slab ---------------------------------------------------

def geometry_wrong(c):
    space = c.slab_bytes - c.header
    space += c.colour_min if c.in_mode("G") else 0  # begins before its buffer
    return first(
        (c.debugged and not c.hashed, "debug layout without a hash table"),
        (c.align < constant("KMEM_ALIGN_MIN") or c.align & (c.align - 1),
         "alignment is not a power of two"),
        (c.chunk < c.size, "chunk is smaller than the object"),
        (c.chunk % max(c.align, 1),
         "chunk is not a multiple of the alignment"),
        (c.slab_chunks == 0 or
         c.slab_chunks * c.chunk + c.colour_max > space,
         "chunks and colour do not fit the slab"),
        (c.colour not in c.colours, "next colour is out of range"))


def slab_wrong(slab):
    """None, or the first broken invariant of one slab of its cache."""
    c = slab.owner
    end = (slab.base | PAGE_MASK) + 1 - slab.layout.size
    return first(
        (slab.cache != c.address, "slab belongs to another cache"),
        (slab.base & PAGE_MASK, "slab base is not page aligned"),
        (not c.hashed and end != slab.address,
         "slab data is not at the end of its page"),
        (not c.own_supplier and not all(
            c.heap.pages.owned(slab.base + i * PAGE_SIZE, "slab", c.address)
            for i in range(c.slab_pages)),
         "slab pages are not marked as the cache's"),
        (slab.chunks != c.slab_chunks,
         "slab has another number of chunks"),
        (slab.colour not in c.colours, "slab colour is out of range"),
        (slab.refcnt > slab.chunks, "reference count exceeds the chunks")) \
        or first((len(slab.free_links) != slab.chunks - slab.refcnt or
                  len(slab.steps) != len(slab.free_links),
                  "freelist does not match the reference count"))


# ---- the slab list ---------------------------------------------------------

def list_wrong(c):
    last, state = c.sentinel, STATES[0]
    for slab in c.slab_list:
        link = slab.where("link")
        why = first((word(link + WORD) != last, "slab list links disagree")) \
            or slab_wrong(slab) or first(
                (STATES.index(slab.state) < STATES.index(state),
                 "slab list is out of order"))
        if why:
            return at(slab, why)
        last, state = link, slab.state
    end = word(last)
    return at(c, first(
        (end != c.sentinel and not c.slab_plausible(end),
         "slab list has an invalid link"),
        (end != c.sentinel and len(c.slab_list) == c.slabs,
         "slab list is longer than its count"),
        (end != c.sentinel or word(c.sentinel + WORD) != last,
         "slab list links disagree")))


def counts_wrong(c):
    found = c.slab_list
    states = [slab.state for slab in found]
    next_ = next((s.address for s in found if s.head), c.sentinel)
    return at(c, first(
        (len(found) != c.slabs, "slab list is shorter than its count"),
        (c.slab_creates - c.slab_destroys != len(found),
         "slabs are not those created less destroyed"),
        (c.max_slabs < len(found),
         "most slabs ever is less than those there are"),
        (sum(s.refcnt for s in found) != c.inuse,
         "objects in use are not allocations less frees"),
        (states.count("full") != c.full_slabs, "count of full slabs is wrong"),
        (states.count("free") != c.free_slabs,
         "count of free slabs (T) is wrong"),
        (c.ws_min > c.free_slabs, "working set: m exceeds T"),
        (c.freelist != next_,
         "freelist pointer is not the first free slab")))


# ---- the hash table --------------------------------------------------------

def entry_wrong(c, link, bucket):
    if not c.bufctl_plausible(link):
        return "hash chain has an invalid link"
    entry = record("kmem_bufctl", link)
    if entry.addr >> c.hash_shift & c.hash_mask != bucket:
        return "bufctl is in the wrong hash bucket"
    if not entry.slab or not c.slab_plausible(entry.slab) or \
            record("kmem_slab", entry.slab).cache != c.address:
        return "bufctl points to a slab of another cache"
    slab = c.heap.slab_of(entry.slab)
    index, rest = divmod(entry.addr - slab.first, c.chunk)
    return first((rest or not 0 <= index < slab.chunks,
                  "bufctl's address is no chunk of its slab"))


def hash_wrong(c):
    entries = 0
    for bucket in range(c.hash_size):
        link = word(c.hash + bucket * WORD)
        while link:
            why = entry_wrong(c, link, bucket)
            if why:
                return at(link, why)
            entries += 1
            if entries > c.inuse:
                return at(c, "hash holds more than the objects in use")
            link = record("kmem_bufctl", link).next
    return at(c, first(
        (c.hashed and entries + c.holds + c.isolated < c.inuse,
         "hash holds less than the objects in use")))


# ---- the debugging modes (section 6) ---------------------------------------

def buffer_wrong(c, b):
    """Checks a buffer's state, redzone and poison; not of isolated buffers."""
    if not c.debugged or not b.bufctl or \
            b.used and b.state.startswith("damaged"):
        return None
    if (b.state == "in use") != b.used:
        return at(b.bufctl, "buffer's state is not that of its list")
    try:
        found = damage(b)
    except BadMemory:
        return None  # its page is unmapped
    return found and (f"buffer 0x{b.address:08x} of {c.name}, at "
                      f"0x{found[1]:08x}", found[0])


# ---- all of it -------------------------------------------------------------

def cache_wrong(c):
    """None, or the first broken invariant of a cache."""
    try:
        return at(c, geometry_wrong(c)) or list_wrong(c) or counts_wrong(c) \
            or hash_wrong(c) or next(filter(None, (
                buffer_wrong(c, b) for b in c.buffers())), None)
    except BadMemory as e:
        return at(c, str(e))


def note_broken(cache):
    """A line after the table of a broken cache."""
    wrong = cache_wrong(cache)
    if wrong:
        print(f"! {wrong[0]}: {wrong[1]}")


def sums_wrong(heap):
    if target.symbol("kmem_transfers") and target.integer("kmem_transfers"):
        return None  # pages are changing owner at this moment
    have = {"slab": sum(c.slabs * c.slab_pages for c in heap.caches
                        if not c.own_supplier),
            "hash": sum(hash_pages(c.hash_size) for c in heap.caches),
            "oversize": record_of("oversize", "kmem_alloc.c").stat.stat_pages}
    why = {"slab": "slab pages of all caches", "hash":
           "hash pages of all caches", "oversize": "oversize pages"}
    use = record_of("segkmem", "segkmem.c").stat.stat_use
    supplied = {name: use[n] for n, name in heap.pages.states.items()}
    where = "segkmem: " + ", ".join(f"{supplied[n]} {n}" for n in have) + \
        " pages"
    return next(((where, f"{why[n]} are not segkmem's") for n in have
                 if have[n] != supplied[n]), None)


class _Buddy:
    """The checks of mm/buddy_verify.c."""

    def __init__(self, pages):
        self.pages, self.zone = pages, record_of("buddy_zone")
        self.states = [pages.states.get(s, "?") for s in pages.columns[0]]
        self.orders = pages.columns[1]
        self.listed = self.free = 0

    def wrong(self):
        for order in range(self.pages.orders):
            wrong = self.list_wrong(order)
            if wrong:
                return wrong
        return self.blocks_wrong()

    def list_wrong(self, order):
        head, pages = self.zone.zone_list[order].address, self.pages
        link_at = pages.layout.offset("page_link")
        previous, link = head, word(head)
        while link != head:
            i, rest = divmod(link - link_at - pages.base, pages.layout.size)
            if rest or not 0 <= i < pages.count:
                return f"order {order}", \
                    "free list leads outside the page array"
            why = first(
                (word(link + WORD) != previous, "free list links disagree"),
                (self.listed == pages.count, "free list is a circle")) or \
                self.free_wrong(i, order)
            if why:
                return f"frame {i}", why
            self.listed += 1
            self.free += 1 << order
            previous, link = link, word(link)
        return (f"order {order}", "free list links disagree") \
            if word(head + WORD) != previous else None

    def is_free(self, i, order):
        return i < self.pages.count and self.states[i] == "free" and \
            self.orders[i] == order

    def free_wrong(self, i, order):
        return first(
            (not self.is_free(i, order),
             "page on a free list is not free at that order"),
            (i & ((1 << order) - 1),
             "free block is not aligned to its size"),
            (order < self.pages.orders - 1 and
             self.is_free(i ^ (1 << order), order),
             "two free buddies are not joined"))

    def blocks_wrong(self):
        managed = tagged = 0
        for i, n, state in self.pages.blocks():
            outside = state in ("reserved", "kernel")
            why = first(
                (state == "tail", "frame belongs to no block"),
                (state == "?", "page state is not a state"),
                (not outside and self.orders[i] >= self.pages.orders,
                 "block has no order"))
            if why:
                return f"frame {i}", why
            if not outside:
                managed += 1 << self.orders[i]
                tagged += state == "free"
            for j in range(i + 1, i + n):
                if self.orders[j] < self.pages.orders or \
                        self.states[j] not in ("tail", state):
                    return f"frame {j}", "block overlaps another"
        why = first(
            (self.listed != tagged, "a free block is on no free list"),
            (managed != self.zone.zone_total_pages,
             "blocks do not add up to all managed pages"),
            (self.free != free_pages(self.zone),
             "free pages disagree with the counts of allocations and "
             "frees"))
        return why and ("all frames", why)


def free_pages(zone):
    """The free pages by the counts of the buddy allocator."""
    return zone.zone_total_pages + zone.zone_tails + sum(
        (f - a) << k for k, (a, f) in
        enumerate(zip(zone.zone_allocs, zone.zone_frees)))


class Verify(Command):
    """slab verify [-j] [NAME]
    Check every invariant of the heap.
    Walks each cache's slabs, freelists and hash chains, the page owners and
    the buddy allocator's lists. CHECKED counts objects. Of each cache only the
    first broken invariant is named. A machine that was stopped in the middle
    of a change may look broken. $_exitcode is the number of broken things.
    Example: slab verify kmem_alloc_64"""

    def run(self, args):
        heap, bad = Heap(), 0
        table = Table("CACHE:-17 CHECKED:8 BAD:3 FIRST-BAD:-16 KIND:-1",
                      "j" in args)
        for c in heap.chosen(args.word(), lambda c: True):
            wrong = cache_wrong(c)
            bad += wrong is not None
            if wrong or c.mem or args.words:
                table.row(f"{'!' * (wrong is not None)}{c.name}", c.total,
                          int(wrong is not None), *(wrong or (None, None)))
        if not args.words:
            found = [("", note) for note in heap.notes]
            found += filter(None, (sums_wrong(heap), self.buddy(heap)))
            bad += len(found)
            for where, why in found:
                table.bad(f"{where}: {why}" if where else why)
            if not bad:
                table.say(f"caches, supplier, {heap.pages.count} page frames: "
                          "every invariant holds")
        gdb.set_convenience_variable("_exitcode", bad)

    @staticmethod
    def buddy(heap):
        try:
            return _Buddy(heap.pages).wrong()
        except BadMemory as e:
            return "the page array", str(e)
