"""The heap as data, read from the target: what mm/kmem_stat.c, mm/page.c and
mm/segkmem.c are to the kernel shell.

    Heap    all caches in creation order, the pages, the sums
    Cache   a struct kmem_cache and the figures that follow from it
    Slab    a struct kmem_slab at its place in the list
    Pages   the page array: who has a frame

The target may have stopped in the middle of a change, and its data may be
broken: a walk raises common.Broken where it cannot go on, and whoever prints
marks the row.
"""

import functools

import common
from common import PAGE_MASK, PAGE_SHIFT, PAGE_SIZE, WORD, WORD_MASK

KINDS = ("named", "class", "internal")
STATES = ("full", "partial", "free")
FULL, PARTIAL, COMPLETE = range(3)


def impl(name):
    """A macro of mm/kmem_impl.h; 0 for a flag that it does not have."""
    return common.macros("mm/kmem_impl.h").get(name, 0)


def debug(name):
    """The same of mm/debug/debug.h."""
    return common.macros("mm/debug/debug.h").get(name, 0)


def mode_letters(modes):
    """The letters of debugging modes, "-" for none."""
    letters = common.text_macro("mm/debug/debug.h", "KMEM_DEBUG_LETTERS")
    return "".join(c for i, c in enumerate(letters) if modes >> i & 1) or "-"


def mode_bits(letters):
    """The debugging modes that the letters stand for."""
    order = common.text_macro("mm/debug/debug.h", "KMEM_DEBUG_LETTERS")
    return sum(1 << order.index(c) for c in letters)


def flag_letters(pairs):
    return "".join(letter for letter, on in pairs if on)


# ---- pages -----------------------------------------------------------------

class Pages:
    """The page array."""

    def __init__(self):
        self.base = int(common.variable("page_array")) & WORD_MASK
        if self.base == 0:
            raise common.Fail("the kernel has no heap yet; let it run past "
                              "kmem_init")
        self.count = int(common.variable("page_count"))
        self.layout = common.layout("struct page")
        self.state = common.enumerators("enum page_state")
        self.kernel_base = common.macros(
            "kernel/x86/paging.h")["KERNEL_BASE"]
        self.no_order = common.macros("mm/page.h")["PAGE_NO_ORDER"]
        self.orders = common.macros("mm/buddy.h")["BUDDY_ORDERS"]

    def page(self, i):
        """The struct page of frame `i`."""
        address = self.base + i * self.layout.size
        return common.Record(self.layout,
                             common.read(address, self.layout.size), address)

    def frame(self, address):
        """The frame that holds a kernel address, or None."""
        i = ((address - self.kernel_base) & WORD_MASK) >> PAGE_SHIFT
        return i if i < self.count else None

    def virtual(self, i):
        return ((i << PAGE_SHIFT) + self.kernel_base) & WORD_MASK

    def at(self, address):
        i = self.frame(address)
        return None if i is None else self.page(i)

    def is_state(self, page, *names):
        return page is not None and \
            page.page_state in [self.state[n] for n in names]

    def owned(self, address, use, owner):
        """Whether a page belongs to `owner` and is used for `use`."""
        page = self.at(address)
        return self.is_state(page, use) and page.page_owner == owner

    @functools.cached_property
    def columns(self):
        """(states, orders) of all frames, a byte each."""
        data = common.read_run(self.base, self.count * self.layout.size)
        size = self.layout.size
        return tuple(data[self.layout.members[name][0]::size]
                     for name in ("page_state", "page_order"))

    def block_head(self, i):
        """The first frame of the block that frame `i` is in, or `i`."""
        for order in range(self.orders):
            head = i & -(1 << order)
            size = self.page(head).page_order
            if size < self.orders and i - head < 1 << size:
                return head
        return i

    def state_names(self):
        """The kernel's words for states, by number."""
        names = [n[len("PAGE_"):].lower() for n, v in sorted(
            self.state.items(), key=lambda item: item[1])]
        return ["allocated" if n == "alloc" else n for n in names[:-1]]

    def state_name(self, number):
        names = self.state_names()
        return names[number] if number < len(names) else "?"


# ---- caches ----------------------------------------------------------------

class Cache:
    """A cache and its figures; bytes where not said otherwise."""

    def __init__(self, address):
        raw = common.record("struct kmem_cache", address)
        self.raw, self.address = raw, address
        self.name = raw.cache_name
        self.kind = raw.cache_kind
        self.flags = raw.cache_flags
        self.hashed = bool(self.flags & impl("KMF_HASH"))
        self.large = self.hashed
        self.modes = self.flags >> impl("KMF_MODES_SHIFT") & 0x7F \
            if raw.has("cache_redzone_end") else 0
        self.debugged = bool(self.flags & impl("KMF_DEBUG"))
        self.heir = raw.cache_heir if raw.has("cache_heir") else 0
        self.front = raw.cache_colour_min if raw.has("cache_colour_min") else 0
        self.guard = raw.cache_redzone_end \
            if raw.has("cache_redzone_end") else 0
        self.busy = raw.cache_busy if raw.has("cache_busy") else 0
        self.lost = raw.cache_isolated if raw.has("cache_isolated") else 0
        self.ctor, self.dtor = raw.cache_ctor, raw.cache_dtor
        self.own_supplier = raw.cache_supplier.getpages != 0
        self._geometry(raw)
        self._now(raw)
        self._traffic(raw)

    def _geometry(self, raw):
        self.size, self.align = raw.cache_size, raw.cache_align
        self.chunk = raw.cache_chunk
        self.slab_pages = raw.cache_slab_pages
        self.slab_bytes_each = self.slab_pages * PAGE_SIZE
        self.slab_objects = raw.cache_slab_chunks
        self.header = 0 if self.hashed else \
            common.layout("struct kmem_slab").size
        self.slab_left = self.slab_bytes_each - self.header - \
            self.slab_objects * self.chunk
        self.colour_max = raw.cache_colour_max

    def _now(self, raw):
        self.colour_next = raw.cache_colour
        self.inuse = (raw.cache_allocs - raw.cache_frees) & WORD_MASK
        self.slabs = raw.cache_slabs
        self.total = self.slabs * self.slab_objects
        self.full, self.complete = raw.cache_full_slabs, raw.cache_free_slabs
        self.partial = (self.slabs - self.full - self.complete) & WORD_MASK
        self.max_slabs = raw.cache_max_slabs
        self.slab_bytes = self.slabs * self.slab_bytes_each
        self.hash_size = raw.cache_hash_mask + 1 if self.hashed else 0
        self.hash_bytes = hash_pages(self.hash_size) * PAGE_SIZE
        self.mem = self.slab_bytes + self.hash_bytes
        self.used = self.inuse * self.size
        self.ws_min, self.ws_limit = raw.cache_ws_min, raw.cache_ws_limit

    def _traffic(self, raw):
        self.allocs = raw.cache_allocs_total + \
            (raw.cache_allocs - raw.cache_allocs_seen & WORD_MASK)
        self.frees = raw.cache_frees_total + \
            (raw.cache_frees - raw.cache_frees_seen & WORD_MASK)
        self.fails = raw.cache_fails
        self.creates = raw.cache_slab_creates
        self.destroys = raw.cache_slab_destroys
        made, ended = self.creates, self.destroys
        self.ctors = self.allocs if self.per_alloc else \
            made * self.slab_objects
        self.dtors = self.frees if self.per_alloc else \
            ended * self.slab_objects
        self.ctors = self.ctors if self.ctor else 0
        self.dtors = self.dtors if self.dtor else 0
        self.rescales = raw.cache_hash_rescales
        self.depth = raw.cache_hash_depth
        self.reaps, self.reaped = raw.cache_reaps, raw.cache_reaped_slabs
        self.last_reap_ms = raw.cache_last_reap_ms
        self.last_freed = raw.cache_last_reap_freed
        self.last_kept = raw.cache_last_reap_kept

    def in_mode(self, letters):
        """Whether one of the debugging modes is on."""
        return self.modes & mode_bits(letters) != 0

    @property
    def per_alloc(self):
        """Whether objects are constructed with each allocation."""
        return self.debugged and self.in_mode("PG")

    @property
    def mode_text(self):
        return mode_letters(self.modes)

    @property
    def bad(self):
        """Whether its counts contradict each other."""
        return self.inuse > self.total or \
            self.allocs - self.frees != self.inuse or \
            self.full + self.partial + self.complete != self.slabs

    @property
    def letters(self):
        return flag_letters((("L", self.large), ("C", self.ctor),
                             ("D", self.dtor), ("S", self.own_supplier),
                             ("E", self.heir)))

    @property
    def colours(self):
        """How many its slabs go through."""
        return (self.colour_max - self.front) // self.align + 1

    @property
    def tag(self):
        """Bytes of a chunk that are there for a debugging mode: redzones; in
        mode G the page behind the object that never is."""
        front = common.macros("mm/debug/debug_impl.h")["KMEM_GUARD_FRONT"]
        return PAGE_SIZE if self.in_mode("G") else \
            2 * front if self.in_mode("Z") else 0

    @property
    def own_chunk(self):
        """In mode G a chunk is counted from the slab's start, and so is the
        colour: without that."""
        return self.chunk - self.front if self.in_mode("G") else self.chunk

    @property
    def extra_word(self):
        """The word for the link, where it would lie in a constructed
        object."""
        return WORD if not self.hashed and (self.ctor or self.dtor) else 0

    @property
    def null(self):
        """The address of the list's head, a slab without buffers."""
        return self.raw.where("cache_null")

    # -- slabs

    def slab_list(self):
        """Its slabs in list order. Raises Broken where the list is not one,
        having given those before."""
        links = common.walk_list(self.null, limit=self.slabs)
        for number, link in enumerate(links):
            yield Slab(self, link, number)

    def slab_holding(self, address):
        """The slab whose pages hold the address, or None."""
        try:
            for slab in self.slab_list():
                if slab.base <= address < slab.base + self.slab_bytes_each:
                    return slab
        except (common.Broken, common.BadMemory):
            pass
        return None

    # -- the hash table

    def bucket_of(self, buf):
        return (buf >> self.raw.cache_hash_shift) & self.raw.cache_hash_mask

    def chain(self, bucket):
        """The bufctls of one bucket. Raises Broken."""
        first = common.word(self.raw.cache_hash + bucket * WORD)
        yield from common.walk_chain(
            first, lambda at: bufctl(at).bufctl_next, self.inuse + 1)

    def chain_lengths(self):
        """How long each bucket's chain is; a circle counts as longest."""
        for bucket in range(self.hash_size):
            length = 0
            try:
                for _ in self.chain(bucket):
                    length += 1
            except common.Broken:
                pass
            yield length

    def hash_stat(self, bins):
        """(histogram of chain lengths, longest), the last bin for all
        longer ones."""
        histogram, longest = [0] * bins, 0
        for length in self.chain_lengths():
            longest = max(longest, length)
            histogram[min(length, bins - 1)] += 1
        return histogram, longest

    def bufctl_of(self, buf):
        """The bufctl of an allocated buffer of a hashed cache, or None."""
        try:
            for at in self.chain(self.bucket_of(buf)):
                found = bufctl(at)
                if found.bufctl_addr == buf:
                    return found
        except (common.Broken, common.BadMemory):
            pass
        return None


def bufctl(address):
    return common.record("struct kmem_bufctl", address)


def hash_pages(buckets):
    """Pages of a table; 0 if it is an object of kmem_hash."""
    size = buckets * WORD
    return 0 if size < impl("KMEM_HASH_SMALL") else \
        (size + PAGE_MASK) >> PAGE_SHIFT


# ---- slabs -----------------------------------------------------------------

class Slab:
    """A slab; `link` is where it is linked in."""

    def __init__(self, cache, link, number=None):
        raw = common.container("struct kmem_slab", "slab_link", link)
        self.cache, self.raw, self.address = cache, raw, raw.address
        self.number = number
        self.base, self.head = raw.slab_base, raw.slab_head
        self.bytes = cache.slab_bytes_each
        self.refcnt, self.chunks = raw.slab_refcnt, raw.slab_chunks
        self.colour = raw.slab_colour
        self.state = COMPLETE if self.refcnt == 0 else \
            FULL if self.head == 0 else PARTIAL
        self.freelist = cache.raw.cache_freelist == raw.address
        self.idle_ms = 0
        if self.refcnt == 0:
            now = common.integer("kmem_seconds")
            self.idle_ms = (now - raw.slab_since & 0xFFFF) * 1000

    @property
    def state_name(self):
        return STATES[self.state]

    def chunk(self, i):
        """The address of buffer `i`."""
        return self.base + self.colour + i * self.cache.chunk

    def index(self, address):
        """The buffer that an address is in, or None."""
        i = (address - self.chunk(0)) // self.cache.chunk
        return i if 0 <= i < self.chunks else None

    def buffer_of(self, link):
        """The buffer that a bufctl on the freelist stands for."""
        return bufctl(link).bufctl_addr if self.cache.hashed else \
            link - self.cache.raw.cache_bufctl

    def steps(self, pages):
        """The freelist: (link, buffer, index, why it is wrong or None), the
        wrong step last. Follows no link that leads astray."""
        seen, at, left = set(), self.head, self.chunks - self.refcnt
        first, chunk = self.chunk(0), self.cache.chunk
        while at != 0:
            why = index = buf = None
            try:
                if not bufctl_plausible(self.cache, at, pages):
                    why = "leads astray"
                else:
                    following = common.word(at)
                    buf = self.buffer_of(at)
                    index, rest = divmod(buf - first, chunk)
                    if rest or not 0 <= index < self.chunks:
                        why = "is no buffer of this slab"
                    elif index in seen:
                        why = "is there already: a circle"
                    elif len(seen) == left:
                        why = "is one too many for the count"
            except common.BadMemory:
                why = "cannot be read"
            yield at, buf, index, why
            if why:
                return
            seen.add(index)
            at = following

    def bitmap(self, pages):
        """(used, sound): whether each buffer is handed out, and whether the
        freelist is what it should be."""
        used, free, sound = [True] * self.chunks, 0, True
        for _, _, index, why in self.steps(pages):
            if why:
                sound = False
                break
            used[index] = False
            free += 1
        return used, sound and free == self.chunks - self.refcnt


def bufctl_plausible(cache, address, pages):
    """Whether this can be a bufctl of the cache at all."""
    if address % WORD:
        return False
    if not cache.hashed:
        if cache.own_supplier:  # its pages are not marked
            common.word(address)
            return True
        return pages.owned(address, "PAGE_SLAB", cache.address)
    name = "kmem_bufctl_debug_cache" if cache.debugged else \
        "kmem_bufctl_cache"
    owner = common.integer(name)
    return pages.owned(address, "PAGE_SLAB", owner)


# ---- all of it -------------------------------------------------------------

class Sum:
    """Columns summed over some caches."""

    NAMES = ("inuse", "total", "slabs", "full", "partial", "complete", "mem",
             "used", "allocs", "frees", "fails")

    def __init__(self):
        self.caches = 0
        for name in self.NAMES:
            setattr(self, name, 0)

    def add(self, other):
        self.caches += 1
        for name in self.NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


class Heap:
    """All caches, in creation order. `notes` says what could not be read."""

    def __init__(self):
        self.pages = Pages()
        self.notes = []
        self.caches = list(self._caches())
        state = common.integer("kmem_state")
        names = {v: n for n, v in
                 common.enumerators("enum kmem_state").items()}
        if names.get(state) != "KMEM_UP":
            self.notes.append("the allocator is not up yet: "
                              f"{names.get(state, state)}")

    def _caches(self):
        head = common.address_of("kmem_caches")
        offset = common.layout("struct kmem_cache").members["cache_link"][0]
        try:
            for link in common.walk_list(head, limit=4096):
                try:
                    yield Cache(link - offset)
                except common.BadMemory as e:
                    self.notes.append(f"cache 0x{link - offset:08x}: {e}")
        except (common.Broken, common.BadMemory) as e:
            self.notes.append(f"list of caches: {e}")

    def cache(self, name):
        for cache in self.caches:
            if cache.name == name:
                return cache
        raise common.Fail(f"no cache is called '{name}'; `slab kmastat -z` "
                          "lists them all")

    def cache_at(self, address):
        return next((c for c in self.caches if c.address == address), None)

    def ordered(self, key=lambda c: c.mem):
        """By descending key, equal ones in creation order."""
        return sorted(self.caches, key=key, reverse=True)

    def selected(self, names):
        """The cache named, or all that have slabs, largest first."""
        if names:
            return [self.cache(names[0])]
        return [c for c in self.ordered() if c.slabs]

    def whose(self, address):
        """(cache, slab, index or None) of an address in a slab, or None."""
        page = self.pages.at(address)
        if not self.pages.is_state(page, "PAGE_SLAB"):
            return None
        cache = self.cache_at(page.page_owner)
        slab = cache and cache.slab_holding(address)
        return (cache, slab, slab.index(address)) if slab else None

    # -- sums

    def large(self):
        """kmem_alloc above the last class: a Record of the kernel's own
        counts."""
        stat = common.variable("large", "kmem_alloc.c")["stat"]
        return common.record_of(stat)

    def large_sum(self):
        raw, total = self.large(), Sum()
        total.inuse = raw.stat_inuse
        total.mem = total.used = raw.stat_pages * PAGE_SIZE
        total.allocs, total.frees = raw.stat_allocs, raw.stat_frees
        total.fails = raw.stat_fails
        return total

    def supplier_pages(self):
        """What segkmem says it has handed out: slab, hash, large pages, and
        those that mode S took away."""
        pages = common.record_of(
            common.variable("segkmem", "segkmem.c")).stat.stat_use
        return tuple(pages[self.pages.state[n]] for n in
                     ("PAGE_SLAB", "PAGE_HASH", "PAGE_LARGE", "PAGE_UNMAPPED"))

    def unmapped_bytes(self):
        """What mode S took away: handed out, but of no cache."""
        return self.supplier_pages()[3] * PAGE_SIZE

    def totals(self):
        """(sum by kind, of large ones, of all, own suppliers, segkmem), the
        last two in bytes."""
        kinds, everything, own = [Sum() for _ in KINDS], Sum(), 0
        for cache in self.caches:
            kinds[min(cache.kind, len(KINDS) - 1)].add(cache)
            everything.add(cache)
            own += cache.slab_bytes if cache.own_supplier else 0
        large = self.large_sum()
        everything.add(large)
        everything.caches -= 1
        supplier = sum(self.supplier_pages()) * PAGE_SIZE
        return kinds, large, everything, own, supplier


def match(name, pattern):
    """As the shell: a part of the name, or a whole pattern with * and ?."""
    if pattern is None:
        return True
    if not set("*?") & set(pattern):
        return pattern in name
    import re
    rule = "".join(".*" if c == "*" else "." if c == "?" else re.escape(c)
                   for c in pattern)
    return re.fullmatch(rule, name) is not None


def complete_cache(text):
    """Names of caches that begin so."""
    try:
        return [c.name for c in Heap().caches if c.name.startswith(text)]
    except (common.Fail, common.BadMemory):
        return []
