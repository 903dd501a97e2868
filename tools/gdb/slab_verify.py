"""slab verify: every invariant of the slab allocator and of the buddy
allocator, as mm/kmem_verify.c and mm/buddy_verify.c have them, in their words;
but a debugger may be broken off no walk, so all caches are looked at.

A check returns None, or (where, why): the first thing that is wrong.
"""

import common
import slab_buf
import slab_heap
from common import PAGE_MASK, WORD, WORD_MASK, BadMemory, Command, json_line
from slab_heap import Heap, Slab, bufctl, bufctl_plausible, hash_pages
from slab_stat import NAME


def at_cache(cache, why):
    return f"cache {cache.name} (0x{cache.address:08x})", why


def at_slab(slab, why):
    return f"slab 0x{slab.address:08x}", why


def at_bufctl(address, why):
    return f"bufctl 0x{address:08x}", why


def _first(pairs):
    """The `why` of the first condition that holds."""
    return next((why for wrong, why in pairs if wrong), None)


# ---- a cache's geometry ----------------------------------------------------

def geometry_wrong(c):
    space = c.slab_bytes_each - c.header
    space += c.front if c.in_mode("G") else 0  # begins before its buffer
    least = common.macros("mm/kmem.h")["KMEM_ALIGN_MIN"]
    if c.align < least or c.align & (c.align - 1):
        return "alignment is not a power of two"
    return _first((
        (c.chunk < c.size, "chunk is smaller than the object"),
        (c.chunk % c.align, "chunk is not a multiple of the alignment"),
        (c.slab_objects == 0 or
         c.slab_objects * c.chunk + c.colour_max > space,
         "chunks and colour do not fit the slab"),
        (c.colour_next > c.colour_max or c.colour_next < c.front or
         c.colour_next % c.align,
         "next colour is out of range")))


# ---- one slab --------------------------------------------------------------

def pages_marked(heap, c, slab):
    if c.own_supplier:
        return True
    first = heap.pages.frame(slab.base)
    if first is None or first + c.slab_pages > heap.pages.count:
        return False
    return all(heap.pages.owned(slab.base + i * common.PAGE_SIZE,
                                "PAGE_SLAB", c.address)
               for i in range(c.slab_pages))


def slab_wrong(heap, slab):
    """None, or what is wrong with one slab of its cache."""
    c, raw = slab.cache, slab.raw
    end = (slab.base | PAGE_MASK) + 1 - raw.layout.size
    why = _first((
        (raw.slab_cache != c.address, "slab belongs to another cache"),
        (slab.base & PAGE_MASK, "slab base is not page aligned"),
        (not c.hashed and end != slab.address,
         "slab data is not at the end of its page")))
    if why is None and not pages_marked(heap, c, slab):
        why = "slab pages are not marked as the cache's"
    return why or _first((
        (slab.chunks != c.slab_objects, "slab has another number of chunks"),
        (slab.colour > c.colour_max or slab.colour < c.front or
         slab.colour % c.align,
         "slab colour is out of range"),
        (slab.refcnt > slab.chunks,
         "reference count exceeds the chunks"))) or \
        (None if slab.bitmap(heap.pages)[1] else
         "freelist does not match the reference count")


# ---- the slab list ---------------------------------------------------------

def link_plausible(heap, c, link):
    """Whether a link of the slab list may be followed."""
    page = heap.pages.at(link)
    if link == c.null:
        return True
    if link == 0 or link % WORD:
        return False
    if not c.hashed:
        return c.own_supplier or (
            page is not None and
            page.page_state >= heap.pages.state["PAGE_ALLOC"])
    owner = common.integer("kmem_slab_cache")
    return heap.pages.owned(link, "PAGE_SLAB", owner)


def rank(slab):
    """0 full, 1 partial, 2 complete: ascending along the list."""
    if slab.head == 0:
        return 0
    return 1 if slab.refcnt else 2


class _Tally:
    def __init__(self):
        self.slabs = self.inuse = self.last = 0
        self.ranks = [0, 0, 0]
        self.first = None

    def add(self, slab):
        self.slabs += 1
        self.inuse += slab.refcnt
        self.last = rank(slab)
        self.ranks[self.last] += 1
        if self.first is None and slab.head:
            self.first = slab.address


def list_wrong(heap, c, tally):
    previous, link = c.null, common.word(c.null)
    while True:
        if not link_plausible(heap, c, link):
            return at_cache(c, "slab list leads astray")
        if link == c.null:
            break
        slab = Slab(c, link, tally.slabs)
        why = None
        if common.word(link + WORD) != previous:
            why = "slab list links disagree"
        elif tally.slabs == c.slabs:
            return at_cache(c, "slab list is longer than its count")
        why = why or slab_wrong(heap, slab)
        if why is None and rank(slab) < tally.last:
            why = "slab list is out of order"
        if why:
            return at_slab(slab, why)
        tally.add(slab)
        previous, link = link, common.word(link)
    if common.word(c.null + WORD) != previous:
        return at_cache(c, "slab list links disagree")
    return None


def counts_wrong(c, tally):
    first = tally.first or c.null
    why = _first((
        (tally.slabs != c.slabs, "slab list is shorter than its count"),
        (c.creates - c.destroys != tally.slabs,
         "slabs are not those created less destroyed"),
        (c.max_slabs < tally.slabs,
         "most slabs ever is less than those there are"),
        (tally.inuse != c.inuse,
         "objects in use are not allocations less frees"),
        (tally.ranks[0] != c.full, "count of full slabs is wrong"),
        (tally.ranks[2] != c.complete,
         "count of complete slabs (T) is wrong"),
        (c.ws_min > c.complete, "working set: m exceeds T"),
        (c.raw.cache_freelist != first,
         "freelist pointer is not the first free slab")))
    return why and at_cache(c, why)


# ---- the hash table --------------------------------------------------------

def entry_wrong(heap, c, at, bucket):
    if not bufctl_plausible(c, at, heap.pages):
        return at_bufctl(at, "hash chain leads astray")
    entry = bufctl(at)
    if c.bucket_of(entry.bufctl_addr) != bucket:
        return at_bufctl(at, "bufctl is in the wrong hash bucket")
    sp = entry.bufctl_slab
    if sp == 0 or not link_plausible(heap, c, sp) or \
            common.record("struct kmem_slab", sp).slab_cache != c.address:
        return at_bufctl(at, "bufctl points to a slab of another cache")
    slab = Slab(c, sp)
    index, rest = divmod(entry.bufctl_addr - slab.chunk(0), c.chunk)
    if rest or not 0 <= index < slab.chunks:
        return at_bufctl(at, "bufctl's address is no chunk of its slab")
    return None


def hash_wrong(heap, c):
    entries = 0
    for bucket in range(c.hash_size):
        at = common.word(c.raw.cache_hash + bucket * WORD)
        while at:
            wrong = entry_wrong(heap, c, at, bucket)
            if wrong:
                return wrong
            entries += 1
            if entries > c.inuse:
                return at_cache(c, "hash holds more than the objects in use")
            at = bufctl(at).bufctl_next
    if entries + c.busy + c.lost < c.inuse:
        return at_cache(c, "hash holds less than the objects in use")
    return None


def flags_wrong(c):
    """The flag word, and what follows from it."""
    layout = slab_heap.mode_bits("FPZUSG")
    slow = bool(c.flags & slab_heap.impl("KMF_SLOW") &
                ~slab_heap.impl("KMF_HASH"))
    paths = [getattr(c.raw, f"cache_{p}_slow") ==
             common.address_of(f"kmem_{p}_debug") for p in ("alloc", "free")]
    return _first((
        (bool(c.modes & layout) != c.debugged,
         "layout is not that of the debugging modes"),
        (c.modes & layout and not c.hashed,
         "debug layout without a hash table"),
        (paths != [slow, slow], "slow paths are not those of the flags")))


# ---- the debugging modes (section 6) --------------------------------------

def buffer_wrong(c, at, free):
    """A buffer's state, redzone and poison. Those set aside are known."""
    raw = common.record(slab_buf.BUFCTL, at)
    if raw.bufctl_state == slab_buf.BAD and not free:
        return None
    if raw.bufctl_state != (slab_buf.FREE if free else slab_buf.USED):
        return at_bufctl(at, "buffer's state is not that of its list")
    try:
        found = slab_buf.damage(c, raw)
    except BadMemory:
        return None  # its page was taken away
    return found and (f"buffer 0x{raw.bufctl.bufctl_addr:08x} of {c.name}, at "
                      f"0x{found[1]:08x}", found[0])


def debug_wrong(heap, c):
    """The lists have been found right."""
    for slab in c.slab_list():
        for link, _, _, _ in slab.steps(heap.pages):
            wrong = buffer_wrong(c, link, True)
            if wrong:
                return wrong
    for bucket in range(c.hash_size):
        for at in c.chain(bucket):
            wrong = buffer_wrong(c, at, False)
            if wrong:
                return wrong
    return None


# ---- all of it -------------------------------------------------------------

def cache_wrong(heap, c):
    """None, or the first broken invariant of a cache."""
    tally = _Tally()
    try:
        why = flags_wrong(c) or geometry_wrong(c)
        return (why and at_cache(c, why)) or list_wrong(heap, c, tally) or \
            counts_wrong(c, tally) or \
            (hash_wrong(heap, c) if c.hashed else None) or \
            (debug_wrong(heap, c) if c.debugged and not c.busy else None)
    except BadMemory as e:
        return at_cache(c, str(e))


def note_broken(heap, cache):
    """The line behind a table of a broken cache."""
    wrong = cache_wrong(heap, cache)
    if wrong:
        print(f"! {wrong[0]}: {wrong[1]}")


def elders_wrong(heap):
    """Heirs and elders know each other."""
    elders, chained = sum(1 for c in heap.caches if c.heir), 0
    for c in heap.caches:
        at = 0 if c.heir else c.raw.cache_elders
        if not c.heir and bool(at) != \
                bool(c.flags & slab_heap.impl("KMF_ELDERS")):
            return at_cache(c, "flags do not say whether there are elders")
        while at and chained <= elders:
            elder = slab_heap.Cache(at)
            if elder.heir != c.address:
                return at_cache(c, "elder has another heir")
            chained += 1
            at = elder.raw.cache_elders
    if chained != elders:
        return "", "elders are not those that their heirs know"
    return None


def sums_wrong(heap):
    if common.has_variable("kmem_transfers") and \
            int(common.variable("kmem_transfers")):
        return None  # pages are just changing hands
    slab = sum(c.slabs * c.slab_pages for c in heap.caches
               if not c.own_supplier)
    table = sum(hash_pages(c.hash_size) for c in heap.caches if c.hashed)
    had = heap.supplier_pages()
    where = f"segkmem: {had[0]} slab, {had[1]} hash, {had[2]} large pages"
    away = int(common.variable("buried", "mm/debug/unmap.c")["pages"])
    for n, have, what in zip(
            (slab, table, heap.large().stat_pages, away), had,
            ("slab pages of all caches", "hash pages of all caches",
             "large pages", "unmapped pages")):
        if n != have:
            return where, f"{what} are not segkmem's"
    return None


class _Buddy:
    """mm/buddy_verify.c."""

    def __init__(self, pages):
        self.pages = pages
        self.zone = common.record_of(common.variable("buddy_zone"))
        self.states, self.orders = pages.columns
        self.blocks = self.free = 0

    def wrong(self):
        for order in range(self.pages.orders):
            wrong = self._list(order)
            if wrong:
                return wrong
        managed, tagged, wrong = self._tiles()
        return wrong or self._sums(managed, tagged)

    def _list(self, order):
        head = self.zone.zone_list[order].address
        previous, link = head, common.word(head)
        size = self.pages.layout.size
        while link != head:
            i, rest = divmod(link - self.pages.base, size)
            if rest or not 0 <= i < self.pages.count:
                return f"order {order}", \
                    "free list leads outside the page array"
            why = self._free(i, order)
            if common.word(link + WORD) != previous:
                why = "free list links disagree"
            if why:
                return f"frame {i}", why
            self.blocks += 1
            self.free += 1 << order
            previous, link = link, common.word(link)
        if common.word(head + WORD) != previous:
            return f"order {order}", "free list links disagree"
        return None

    def _is_free(self, i, order):
        return self.states[i] == self.pages.state["PAGE_FREE"] and \
            self.orders[i] == order

    def _free(self, i, order):
        if not self._is_free(i, order):
            return "page on a free list is not free at that order"
        if i & ((1 << order) - 1):
            return "free block is not aligned to its size"
        buddy = i ^ (1 << order)
        if order < self.pages.orders - 1 and buddy < self.pages.count and \
                self._is_free(buddy, order):
            return "two free buddies are not joined"
        return None

    def _tiles(self):
        state, i, managed, tagged = self.pages.state, 0, 0, 0
        while i < self.pages.count:
            s, n = self.states[i], 1
            if s == state["PAGE_TAIL"]:
                return 0, 0, (f"frame {i}", "frame belongs to no block")
            if s >= state["PAGE_STATES"]:
                return 0, 0, (f"frame {i}", "page state is not a state")
            if s >= state["PAGE_FREE"]:
                if self.orders[i] >= self.pages.orders:
                    return 0, 0, (f"frame {i}", "block has no order")
                n = 1 << self.orders[i]
                managed += n
                tagged += s == state["PAGE_FREE"]
            for j in range(i + 1, i + n):
                if j >= self.pages.count or \
                        self.orders[j] != self.pages.no_order or \
                        self.states[j] not in (state["PAGE_TAIL"], s):
                    return 0, 0, (f"frame {j}", "block overlaps another")
            i += n
        return managed, tagged, None

    def _sums(self, managed, tagged):
        zone = self.zone
        free = zone.zone_total_pages + zone.zone_tails + sum(
            (f - a) << k for k, (a, f) in
            enumerate(zip(zone.zone_allocs, zone.zone_frees)))
        why = _first((
            (self.blocks != tagged, "a free block is on no free list"),
            (managed != zone.zone_total_pages,
             "blocks do not add up to all managed pages"),
            (self.free != free,
             "free pages are not what has come and gone")))
        return why and ("frame -1", why)


def buddy_wrong(pages):
    try:
        return _Buddy(pages).wrong()
    except BadMemory as e:
        return "the page array", str(e)


class Verify(Command):
    name = "slab verify"
    usage = "[-j] [NAME]"
    summary = "Check every invariant of the heap"
    details = """\
Walks each cache's slabs, freelists and hash chains, the page owners and the
buddy allocator's lists. CHECKED counts objects. A broken invariant is named,
with the place where it was seen; of each cache the first one only. What was
stopped in the middle of a change may look broken: `bt` tells.
$_exitcode is the number of things that are broken.
  -j  JSON lines"""
    example = "slab verify kmem_alloc_64"
    options, most = "j", 1
    wants = "wants one cache at most; `slab verify` checks all"

    def row(self, heap, cache, as_json, good):
        wrong = cache_wrong(heap, cache)
        where, why = wrong or ("", "")
        if as_json:
            json_line({"cache": cache.name, "checked": cache.total,
                       "bad": int(wrong is not None), "kind": why,
                       "first_bad": where})
        elif wrong or good:
            name = f"!{cache.name}" if wrong else cache.name
            first = f"{name}\n{'':{NAME}}" if len(name) > NAME else \
                f"{name:<{NAME}}"
            print(f"{first} {cache.total:8} {int(wrong is not None):3}  "
                  f"{where or '-':<16} {why or '-'}")
        return wrong is not None

    def run(self, args):
        heap, as_json = Heap(), "j" in args
        one = heap.cache(args.word()) if args.words else None
        if not as_json:
            print(f"{'CACHE':<{NAME}} {'CHECKED':>8} {'BAD':>3}  "
                  f"{'FIRST-BAD':<16} KIND")
        bad = 0
        for cache in [one] if one else heap.ordered():
            bad += self.row(heap, cache, as_json, one or cache.mem)
        for note in heap.notes:
            bad += 1
            print(f"! {note}")
        if one is None:
            bad += self.rest(heap, bad, as_json)
        common.gdb.set_convenience_variable("_exitcode", bad)

    def rest(self, heap, bad, as_json):
        """What lies between the caches."""
        checks = {"heap": elders_wrong(heap) or sums_wrong(heap),
                  "buddy": buddy_wrong(heap.pages)}
        more = sum(1 for wrong in checks.values() if wrong)
        if as_json:
            row = {"bad": bad + more}
            row.update((n, w[1] if w else "") for n, w in checks.items())
            json_line(row)
            return more
        for name, wrong in checks.items():
            if wrong:
                print(f"! {name}: {wrong[0]}: {wrong[1]}")
        if bad + more == 0:
            print(f"caches, supplier, {heap.pages.count} page frames: every "
                  "invariant holds")
        return more

    def complete(self, text, word):
        return slab_heap.complete_cache(word)


Verify()
