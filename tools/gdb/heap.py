"""The heap as data: the one walk over caches, slabs and buffers.

A cache and a slab have the kernel's members, by their names without cache_ and
slab_, and figures computed from them. The heap may be broken: walks end at the
first invalid link, and the commands print what was found before it.
"""

import functools
import itertools

import system
import target
from command import clock_us, evaluate, plural, seconds
from target import (PAGE_MASK, PAGE_SHIFT, PAGE_SIZE, UNREADABLE, WORD,
                    WORD_MASK, Fail, Record, constant, record, up_to_break,
                    word)


def signed(n):
    """The difference of two 32-bit counts."""
    return (n + (1 << 31) & WORD_MASK) - (1 << 31)


KINDS = "named", "class", "internal"
FULL, PARTIAL, FREE = "full", "partial", "free"


@functools.lru_cache(maxsize=None)
def mode_bits():
    """{letter of a debugging mode: its flag}"""
    modes = constant("KMF_MODES")
    return {c: (modes & -modes) << i for i, c in
            enumerate(target.macros()["KMEM_DEBUG_LETTERS"].strip('"'))}


# ---- page frames -----------------------------------------------------------

class Pages:
    """The array of struct page."""

    def __init__(self):
        self.base = target.integer("page_array")
        if self.base == 0:
            raise Fail("the kernel has no heap yet; let it run past kmem_init")
        self.count = target.integer("page_count")
        self.layout = target.layout("page")
        self.states = {n: "allocated" if name == "alloc" else name
                       for n, name in
                       target.enumerators("page_state", "PAGE_").items()
                       if name != "states"}
        self.kernel_base = constant("KERNEL_BASE")

    def page(self, i):
        """The struct page of frame `i`."""
        return record("page", self.base + i * self.layout.size)

    def state(self, i):
        """The state of frame `i`, by name; None if there is no such frame."""
        return None if i is None else self.states.get(self.page(i).state, "?")

    def owner(self, i):
        return self.page(i).owner

    def frame(self, address):
        """The frame that holds a kernel address, or None."""
        i = ((address - self.kernel_base) & WORD_MASK) >> PAGE_SHIFT
        return i if i < self.count else None

    def virtual(self, i):
        return ((i << PAGE_SHIFT) + self.kernel_base) & WORD_MASK

    def owned(self, address, state, owner):
        """Whether an address is on a page of this state and owner."""
        i = self.frame(address)
        return self.state(i) == state and self.owner(i) == owner

    def in_state(self, name):
        """(first address, end) of each frame in a state."""
        data = target.read_run(self.base, self.count * self.layout.size)
        states = data[self.layout.offset("page_state")::self.layout.size]
        return [(self.virtual(i), self.virtual(i + 1)) for i, state in
                enumerate(states) if self.states.get(state) == name]

    def head(self, i):
        """The first frame of the block that frame `i` is in."""
        while i and self.state(i) == "tail":
            i -= 1
        return i


# ---- caches ----------------------------------------------------------------

class Cache(Record):
    """A cache and its figures, in bytes unless a comment says otherwise."""

    def __init__(self, heap, address):
        super().__init__(*target.place("kmem_cache", address))
        self.heap = heap
        self.sentinel = self.where("null")  # the list's head, without buffers
        self.kind_name = KINDS[min(self.kind, len(KINDS) - 1)]
        self.hashed = bool(self.flags & constant("KMF_HASH"))
        self.debugged = bool(self.flags & constant("KMF_MODES"))
        self.own_supplier = self.supplier.getpages != 0
        self.slab_bytes = min(self.slab_pages, heap.pages.count) * PAGE_SIZE
        self.header = 0 if self.hashed else target.layout("kmem_slab").size
        # The difference may be negative if the counts contradict each other.
        self.inuse = signed(self.cache_allocs - self.cache_frees)
        self.allocs, self.frees = (
            total + signed(now - total) for total, now in
            ((self.allocs_total, self.cache_allocs),
             (self.frees_total, self.cache_frees)))
        self.total = self.slabs * self.slab_chunks
        self.partial = signed(self.slabs - self.full_slabs - self.free_slabs)
        # Damage may leave any number here; a table shrinks before this size.
        most = min(4 * self.total + constant("KMEM_HASH_INITIAL"),
                   64 * heap.pages.count)
        self.hash_size = min(self.hash_mask + 1, most) if self.hashed else 0
        self.hash_bytes = hash_pages(self.hash_size) * PAGE_SIZE
        self.mem = self.slabs * self.slab_bytes + self.hash_bytes
        self.used = max(self.inuse, 0) * self.size

    def in_mode(self, text):
        """Whether one of the debugging modes is on."""
        return any(self.flags & mode_bits()[c] for c in text)

    @property
    def bad(self):
        """Whether its counts contradict each other."""
        return not 0 <= self.inuse <= self.total or self.partial < 0 or \
            self.allocs - self.frees != self.inuse

    @functools.cached_property
    def slab_list(self):
        """Its slabs in list order, up to where the list breaks."""
        links = itertools.takewhile(
            self.slab_plausible,
            target.walk_list(self.sentinel, limit=self.slabs))
        return [*up_to_break(Slab(self, link, number)
                             for number, link in enumerate(links))]

    def slab_plausible(self, link):
        """Whether a slab of this cache can be at the place that a link of its
        list points to."""
        pages = self.heap.pages
        if link == 0 or link % WORD:
            return False
        if self.hashed:
            return pages.owned(link, "slab", target.integer("kmem_slab_cache"))
        return self.own_supplier or pages.state(pages.frame(link)) not in (
            None, "reserved", "kernel", "tail", "free")

    def buffers(self):
        """All its buffers, slabs in list order."""
        return [b for slab in self.slab_list for b in slab.buffers]

    def _chain(self, bucket):
        """The bufctls of one bucket. Raises Broken."""
        yield from target.walk_chain(word(self.hash + bucket * WORD),
                                     lambda at: record("kmem_bufctl", at).next,
                                     max(self.inuse, 0) + 1)

    @functools.cached_property
    def bufctls(self):
        """{buffer in use: the address of its bufctl} of a hashed cache; of each
        chain up to where it breaks."""
        return {record("kmem_bufctl", at).addr: at
                for bucket in range(self.hash_size)
                for at in up_to_break(self._chain(bucket))}

    def bufctl_plausible(self, address):
        """Whether a bufctl of this cache can be there."""
        if address % WORD:
            return False
        if self.hashed:
            return self.heap.pages.owned(address, "slab", target.integer(
                "kmem_bufctl_debug_cache" if self.debugged else
                "kmem_bufctl_cache"))
        if self.own_supplier:  # its pages are not marked
            word(address)
            return True
        return self.heap.pages.owned(address, "slab", self.address)


def hash_pages(buckets):
    """Pages of a table; 0 if it is an object of kmem_hash."""
    size = buckets * WORD
    return 0 if size < constant("KMEM_HASH_SMALL") else \
        (size + PAGE_MASK) >> PAGE_SHIFT


# ---- slabs and buffers -----------------------------------------------------

class Slab(Record):
    """A slab; `number` is its place in the list."""

    def __init__(self, cache, link, number=None):
        super().__init__(*target.place("kmem_slab", link, "link"))
        self.owner, self.number = cache, number
        self.state = FREE if self.refcnt == 0 else \
            FULL if self.head == 0 else PARTIAL
        self.first = self.base + self.colour

    def address_of(self, i):
        """The address of buffer `i`."""
        return self.first + i * self.owner.chunk

    def index(self, address):
        """The index of the buffer that an address is in, or None."""
        i = (address - self.first) // max(self.owner.chunk, 1)
        return i if 0 <= i < self.chunks else None

    def buffer_of(self, link):
        """The buffer of a bufctl on the freelist."""
        return record("kmem_bufctl", link).addr if self.owner.hashed else \
            link - self.owner.bufctl

    def _step(self, at, seen):
        """(index of the free buffer whose link is at an address, the next link,
        why that is wrong or None)"""
        try:
            if not self.owner.bufctl_plausible(at):
                return None, 0, "is invalid"
            buf, following = self.buffer_of(at), word(at)
        except target.BadMemory:
            return None, 0, "cannot be read"
        index, rest = divmod(buf - self.first, max(self.owner.chunk, 1))
        why = "is no buffer of this slab" \
            if rest or not 0 <= index < self.chunks else \
            "is on the freelist already: a circle" if index in seen else \
            "is one more than the slab's count" \
            if len(seen) == self.chunks - self.refcnt else None
        return index, following, why

    @functools.cached_property
    def freelist(self):
        """({index of a free buffer: its link}, in the list's order; what is
        wrong with the list or None). Follows no invalid link."""
        links, at = {}, self.head
        while at:
            index, following, why = self._step(at, links)
            if why:
                return links, f"link 0x{at:08x} of the freelist {why}"
            links[index], at = at, following
        free = self.chunks - self.refcnt
        return links, None if len(links) == free else \
            f"{plural(len(links), 'link')} on the freelist, but {free} " \
            "free by the count"

    @property
    def free_links(self):
        return self.freelist[0]

    @property
    def wrong(self):
        return self.freelist[1]

    @functools.cached_property
    def buffers(self):
        """All its buffers, in the order of their addresses."""
        most = self.owner.slab_bytes // WORD  # the count may be damaged
        return [Buffer(self, i) for i in range(min(self.chunks, most))]

    @property
    def cells(self):
        return "".join(b.cell for b in self.buffers)


class Transaction(Record):
    """One allocation or free of a buffer: task, time, callers."""

    def __init__(self, raw):
        super().__init__(raw.layout, raw.data, raw.address)
        self.callers = tuple(self.stack[:min(self.depth, len(self.stack))])
        self.ago = max(0, clock_us() - self.us)  # microseconds

    @property
    def names(self):
        return [target.symbol_text(pc)[:39] for pc in self.callers]

    def print_stack(self, indent):
        """The callers, nearest first, in lines of 80 columns."""
        line = ""
        for i, name in enumerate(self.names):
            if i and len(line) + len(name) + 3 <= 80:
                line += f" < {name}"
                continue
            if line:
                print(line)
            line = " " * indent + ("< " if i else "") + name
        if line:
            print(line)

    def show(self, what):
        print(f"{what} by task {self.task} ({system.task_name(self.task)}), "
              f"{seconds(self.ago)} s ago")
        self.print_stack(4)


class Buffer:
    """One buffer of a slab. Of caches in mode U `alloc` and `freed` are its
    last transactions, else None."""

    def __init__(self, slab, index):
        cache = slab.owner
        self.slab, self.index, self.cache = slab, index, cache
        self.address = slab.address_of(index)
        self.used = index not in slab.free_links
        self.bufctl = cache.bufctls.get(self.address) \
            if self.used and cache.hashed else slab.free_links.get(index)
        self.state = "in use" if self.used else "free"
        self.size, self.alloc, self.freed = cache.size, None, None
        if cache.debugged and self.bufctl:
            self._debug(record("kmem_bufctl_debug", self.bufctl))

    def _debug(self, raw):
        known = target.enumerators("kmem_buf_state", "KMEM_BUF_")
        if known.get(raw.state) != "free":
            self.size = raw.size
        if self.cache.in_mode("U"):
            self.alloc, self.freed = (
                Transaction(t) if t.depth else None
                for t in (raw.alloc, raw.free))

    @property
    def cell(self):
        """`!` also for a buffer in use that is missing in the hash table."""
        unknown = self.used and self.cache.hashed and not self.bufctl
        return "!" if unknown else "#" if self.used else "."

    @property
    def last(self):
        """Its last transaction, or None."""
        return self.freed if self.state == "free" else self.alloc

    def print_life(self):
        """Its last two transactions, the newest first."""
        life = [(self.freed, "freed"), (self.alloc, "allocated")]
        if self.state != "free":
            life = [life[1], (self.freed, "before that freed")]
        for transaction, what in life:
            if transaction:
                transaction.show(what)


# ---- all of it -------------------------------------------------------------

class Heap:
    """All caches, in creation order. `notes` says what could not be read."""

    def __init__(self):
        self.pages = Pages()
        self.caches, self.notes = [], []
        for found in target.members(target.address_of("kmem_caches"),
                                    "kmem_cache", "cache_link"):
            if isinstance(found, UNREADABLE):
                self.notes.append(found)
            else:
                self.caches.append(Cache(self, found.address))

    def find(self, name):
        return next((c for c in self.caches if c.name == name), None)

    def cache(self, name):
        """The cache of that name, or whose address an expression gives."""
        found = self.find(name) or self.cache_at(evaluate(name))
        if found is None:
            raise Fail(f"no cache is called '{name}'; `slab kmastat` lists "
                       "them")
        return found

    def cache_at(self, address):
        return next((c for c in self.caches if c.address == address), None)

    def name_at(self, address):
        """The name of the cache at an address."""
        found = self.cache_at(address)
        return found.name if found else f"! no cache at 0x{address:08x}"

    def ordered(self):
        """The caches, largest first, equal ones in creation order."""
        return sorted(self.caches, key=lambda c: c.mem, reverse=True)

    def chosen(self, name, wanted=lambda c: c.mem):
        """The cache of that name; without one, those wanted, largest first."""
        return [self.cache(name)] if name else \
            [c for c in self.ordered() if wanted(c)]

    @functools.cached_property
    def slabs_by_page(self):
        """{page number: slab} of all slabs that are found."""
        return {(slab.base >> PAGE_SHIFT) + i: slab for c in self.caches
                for slab in c.slab_list
                for i in range(c.slab_bytes >> PAGE_SHIFT)}

    def slab_at(self, address):
        """The slab whose pages hold an address, or None."""
        return self.slabs_by_page.get(address >> PAGE_SHIFT)

    def buffer_at(self, address):
        """The Buffer that an address is in, or None."""
        slab = self.slab_at(address)
        index = slab.index(address) if slab else None
        return None if index is None else slab.buffers[index]

    def slab_of(self, address):
        """The Slab whose kmem_slab is at an address, or None."""
        raw = record("kmem_slab", address)
        owner = self.cache_at(raw.cache)
        link = raw.where("link")
        return Slab(owner, link) if owner and link != owner.sentinel else None
