"""slab whatis: what an address is. slab map: the slab around it, byte for
byte (paper, section 3.2). slab pages and slab buddyinfo: who has the frames.
As kernel/shell/cmd_kmem_whatis.c and cmd_kmem_pages.c.
"""

import common
from common import PAGE_MASK, PAGE_SHIFT, PAGE_SIZE, WORD, Command, Fail
from slab_heap import KINDS, Heap, Pages, bufctl
from slab_user import print_mappers, print_user
from slab_verify import note_broken, slab_wrong

KIB_PER_PAGE = PAGE_SIZE // 1024


class Place:
    """An address inside a slab, and all that there is to know of it."""

    def __init__(self, heap, address, cache, slab, index):
        self.heap, self.address = heap, address
        self.cache, self.slab, self.index = cache, slab, index
        self.used, self.sound = slab.bitmap(heap.pages)

    @classmethod
    def find(cls, heap, address):
        found = heap.whose(address)
        return cls(heap, address, *found) if found else None

    @property
    def start(self):
        """Where the object begins."""
        return self.slab.chunk(self.index)

    @property
    def in_use(self):
        return self.index is not None and self.used[self.index]

    def part(self):
        """Which part of its chunk the address is in."""
        offset = self.address - self.start
        if not self.cache.hashed and not self.in_use and \
                offset >= self.cache.chunk - WORD:
            return "the link to the next free object"
        return "in the object" if offset < self.cache.size else \
            "beyond the object, in the chunk's padding"

    def outside(self):
        """The same of an address in no chunk."""
        offset = self.address - self.slab.base
        if offset < self.slab.colour:
            return "the colour gap before the first object"
        if offset >= self.slab.bytes - self.cache.header:
            return "the kmem_slab at the end"
        return "the unused tail"

    def print_slab(self):
        c, slab = self.cache, self.slab
        if self.index is None:
            print(f"no object: {self.outside()} of a slab of cache {c.name}, "
                  f"base + {self.address - slab.base}")
        else:
            print(f"object {self.index} of cache {c.name}, "
                  f"{'in use' if self.in_use else 'free'}: "
                  f"0x{self.start:08x} + {self.address - self.start}, "
                  f"{self.part()}")
            if self.in_use and c.kind == KINDS.index("internal"):
                print_own(self.heap, c, self.start)
        bad = "! " if slab_wrong(self.heap, slab) else ""
        print(f"{bad}slab 0x{slab.address:08x}, base 0x{slab.base:08x}, number "
              f"{slab.number + 1} of {c.slabs}: {slab.state_name}, "
              f"{slab.refcnt} of {slab.chunks} used")


def print_symbol(address):
    """What of the kernel's image is there."""
    if common.symbol_lookup(address):
        print(f"code: {common.symbol_format(address)}")
    elif common.linker("rodata_start") <= address < \
            common.linker("rodata_end"):
        print("read-only data of the kernel")
    elif common.linker("rodata_end") <= address < common.linker("image_end"):
        name, offset = common.symbol_object(address) or ("?", 0)
        print(f"data: {name}+0x{offset:x}")


def owner_name(heap, address):
    """The name of a cache; "" of NULL, "! no cache" of anything else."""
    cache = heap.cache_at(address)
    return cache.name if cache else "! no cache" if address else ""


def print_own(heap, cache, start):
    """What an object in use of one of the allocator's own caches is for."""
    if cache.name == "kmem_bufctl":
        buf = bufctl(start).bufctl_addr
        place = heap.whose(buf)
        print(f"bufctl of object 0x{buf:08x} of cache {place[0].name}"
              if place else f"! bufctl of 0x{buf:08x}, which is no object")
    elif cache.name == "kmem_slab":
        raw = common.record("struct kmem_slab", start)
        print(f"slab data of cache {owner_name(heap, raw.slab_cache)}, slab "
              f"base 0x{raw.slab_base:08x}")
    elif cache.name == "kmem_hash":
        owner = next((c.name for c in heap.caches
                      if c.hashed and c.raw.cache_hash == start), None)
        print(f"hash table of cache {owner}" if owner else
              "! hash table of no cache")
    elif heap.cache_at(start):
        print(f"the cache {owner_name(heap, start)} itself")


# ---- whatis ----------------------------------------------------------------

class Whatis(Command):
    name = "slab whatis"
    usage = "ADDR"
    summary = "What an address is: page, cache, object"
    details = """\
The frame that holds the address and its owner; in a slab also the cache, the
object's index, whether it is in use, and which part of it the address is in.
ADDR is a number, a symbol, a variable of this frame or an expression."""
    example = "slab whatis kmem_cache_alloc"
    least, joined = 1, True
    wants = "wants one address; `slab whatis 0xc0123456`"

    def run(self, args):
        address = common.parse_address(args.word())
        heap = Heap()
        if address < heap.pages.kernel_base:
            print_user(heap.pages, address)
        elif heap.pages.frame(address) is None:
            print(f"0x{address:08x}: no memory that the kernel manages")
        else:
            self.managed(heap, address)

    def managed(self, heap, address):
        pages = heap.pages
        frame = pages.frame(address)
        page = pages.page(frame)
        self.frame(pages, frame, address)
        print_symbol(address)
        place = Place.find(heap, address)
        if place:
            place.print_slab()
        elif pages.is_state(page, "PAGE_HASH"):
            print("hash table of cache "
                  f"{owner_name(heap, page.page_owner)}")
        elif pages.is_state(page, "PAGE_USER"):
            print_mappers(pages, frame)
        elif not pages.is_state(page, "PAGE_KERNEL"):
            print(f"in no slab; `pages 0x{address:x}` shows the frames "
                  "around it")

    def frame(self, pages, frame, address):
        head = pages.block_head(frame)
        page = pages.page(frame)
        first = pages.page(head) if pages.is_state(page, "PAGE_TAIL") else page
        order = ""
        if pages.is_state(first, "PAGE_FREE", "PAGE_ALLOC"):
            order = f" (order {first.page_order}, from frame {head})"
        physical = (frame << PAGE_SHIFT) + (address & PAGE_MASK)
        print(f"0x{address:08x}: frame {frame}, "
              f"{pages.state_name(first.page_state)}{order}, physical "
              f"0x{physical:08x}")


# ---- map -------------------------------------------------------------------

ROW_CHUNKS = 64
ROW_CELLS = 3


class Map(Command):
    name = "slab map"
    usage = "ADDR"
    summary = "One slab, a character per object"
    details = """\
The slab that holds the address: its colour gap, objects, tail and header,
then each object's offset from the slab's base, and of free ones LINK, the
next on the freelist; `>` marks the one that the address is in."""
    example = "slab map $cache(\"inode\")"
    least, joined = 1, True
    wants = "wants one address; `slab slabs NAME` prints those of a cache"

    def run(self, args):
        address = common.parse_address(args.word())
        heap = Heap()
        place = Place.find(heap, address) \
            if address >= heap.pages.kernel_base else None
        if place is None:
            raise Fail(f"no slab holds 0x{address:x}; `slab whatis` says "
                       "what is there")
        place.print_slab()
        self.cells = [self.cell(place, i) for i in range(place.slab.chunks)]
        self.strip(place)
        self.chunks(place)
        note_broken(heap, place.cache)

    def cell(self, place, i):
        """A free object that is on no list, or a large one in use that the
        hash table does not know, is bad."""
        used = place.used[i]
        if used and place.cache.hashed and \
                place.cache.bufctl_of(place.slab.chunk(i)) is None:
            return "!"
        return "#" if used else "."

    def links(self, place):
        """Of each free object, the next on the freelist, or "end"."""
        steps = list(place.slab.steps(place.heap.pages))
        text = {}
        for (_, _, index, why), (_, _, then, wrong) in zip(
                steps, steps[1:] + [(0, 0, "end", None)]):
            if why is None:
                text[index] = "!" if wrong else str(then)
        return text

    def strip(self, place):
        slab, c = place.slab, place.cache
        tail = c.slab_left - slab.colour
        print(f"colour {slab.colour} | {slab.chunks} objects of {c.chunk} | "
              f"tail {tail} | header {c.header}")
        lines = []
        for i in range(0, slab.chunks, ROW_CHUNKS):
            gap = ":" if i == 0 and slab.colour else " "
            lines.append(f" +{slab.chunk(i) - slab.base:05x} {gap}" + "".join(
                self.cells[i:i + ROW_CHUNKS]))
        print("\n".join(lines) + ("=" if tail else "") +
              ("H" if c.header else ""))
        print("# used  . free  ! bad  : colour gap  = tail  H kmem_slab\n")

    def chunks(self, place):
        n, links = place.slab.chunks, self.links(place)
        words = {"!": "!", "#": "used", ".": "free"}
        lines = ["  ".join([f" {'IDX':>3} {'OFFSET':>6} STATE LINK"] *
                           min(n, ROW_CELLS))]
        for i in range(0, n, ROW_CELLS):
            lines.append("  ".join(
                f"{'>' if k == place.index else ' '}{k:3} "
                f"0x{place.slab.chunk(k) - place.slab.base:04x} "
                f"{words[self.cells[k]]:<5} {links.get(k, '-'):>4}"
                for k in range(i, min(i + ROW_CELLS, n))))
        print("\n".join(lines))


# ---- buddyinfo -------------------------------------------------------------

class Buddyinfo(Command):
    name = "slab buddyinfo"
    usage = "[-j]"
    summary = "Free blocks of physical memory by order"
    details = """\
A block of order n is 2^n pages of 4 KiB, aligned to its size. FREE counts
blocks on the free lists now, ALLOCATED and RETURNED those handed out and taken
back since boot.
  -j  JSON lines: one per order, then the totals"""
    example = "slab buddyinfo"
    options = "j"

    def run(self, args):
        zone = common.record_of(common.variable("buddy_zone"))
        orders = Pages().orders
        free, notes = [], []
        for order in range(orders):
            head = zone.zone_list[order].address
            n = 0
            try:
                for _ in common.walk_list(head):
                    n += 1
            except (common.Broken, common.BadMemory) as e:
                notes.append(f"! order {order}: {e}")
            free.append(n)
        pages = zone.zone_total_pages + zone.zone_tails + sum(
            (zone.zone_frees[k] - zone.zone_allocs[k]) << k
            for k in range(orders))
        if "j" in args:
            self.json(zone, free, pages)
        else:
            self.table(zone, free, pages)
        for note in notes:
            print(note)

    @staticmethod
    def largest(free):
        return max((k for k, n in enumerate(free) if n), default=-1)

    def json(self, zone, free, pages):
        for order, n in enumerate(free):
            common.json_line({"order": order, "free": n,
                              "allocs": zone.zone_allocs[order],
                              "frees": zone.zone_frees[order]})
        common.json_line({
            "free_pages": pages, "total_pages": zone.zone_total_pages,
            "largest": self.largest(free), "splits": zone.zone_splits,
            "merges": zone.zone_merges, "failures": zone.zone_failures,
            "pressures": zone.zone_pressures})

    def table(self, zone, free, pages):
        print(f"{'ORDER':>5} {'BLOCK/K':>9} {'FREE':>8} {'FREE/K':>10} "
              f"{'ALLOCATED':>12} {'RETURNED':>12}")
        for k, n in enumerate(free):
            print(f"{k:5} {KIB_PER_PAGE << k:9} {n:8} "
                  f"{(n << k) * KIB_PER_PAGE:10} {zone.zone_allocs[k]:12} "
                  f"{zone.zone_frees[k]:12}")
        total = zone.zone_total_pages
        listed = sum(n << k for k, n in enumerate(free))
        share = common.percent(common.waste(total - pages, total))
        equal = "equal" if listed == pages else \
            f"! off by {listed - pages:+d}"
        print(f"{pages} of {total} pages free ({share}%), "
              f"{pages * KIB_PER_PAGE} KiB; on the lists {listed}: {equal}")
        k = self.largest(free)
        block = "no free block" if k < 0 else \
            f"largest free block {KIB_PER_PAGE << k} KiB (order {k})"
        print(f"{block}; {zone.zone_splits} splits, {zone.zone_merges} merges")
        print(f"ran dry and asked for memory back {zone.zone_pressures} "
              f"times; {zone.zone_failures} requests failed")


# ---- pages -----------------------------------------------------------------

CELLS, ROWS, AROUND = 64, 16, 5
LETTERS = {"RESERVED": "-", "KERNEL": "K", "TAIL": "?", "FREE": ".",
           "ALLOC": "A", "SLAB": "S", "HASH": "H", "LARGE": "L", "USER": "U"}
WHAT = {"RESERVED": "holes, BIOS, devices",
        "KERNEL": "the kernel's image and page array",
        "TAIL": "blocks without a first frame",
        "FREE": "free, in buddy's lists", "ALLOC": "handed out by buddy",
        "SLAB": "slabs", "HASH": "hash tables of caches",
        "LARGE": "kmem_alloc above the size classes",
        "USER": "mapped by programs"}


class _Frames:
    """The state of every frame; one that is not the first of its block has
    that of the first."""

    def __init__(self, pages):
        self.pages = pages
        states, orders = pages.columns
        tail = pages.state["PAGE_TAIL"]
        self.last = pages.state["PAGE_STATES"] - 1
        self.states = bytearray(min(s, self.last) for s in states)
        end, head = 0, tail
        for i, (state, order) in enumerate(zip(states, orders)):
            if order < pages.orders:
                head, end = state, i + (1 << order)
            if state == tail and i < end:
                self.states[i] = min(head, self.last)

    def counts(self):
        return [self.states.count(s) for s in range(self.last + 1)]


class PagesCommand(Command):
    name = "slab pages"
    usage = "[-j|-r] [ADDR]"
    summary = "A picture of physical memory and who owns it"
    details = """\
All page frames, 64 cells in a row, a letter per owner; with an address the
frames around it, one by one. Addresses from the kernel's base on are virtual,
lower ones physical.
  -r  a row per run of frames of one kind and cache
  -j  the counts as one JSON object"""
    example = "slab pages kmain"
    options, joined = "jr", True

    def run(self, args):
        heap = Heap()
        if args.words:
            self.around(heap, common.parse_address(args.word()))
            return
        self.frames = _Frames(heap.pages)
        self.state = heap.pages.state
        if "r" in args:
            self.runs(heap)
        elif "j" in args:
            self.json(heap.pages)
        else:
            self.picture(heap.pages)
            self.legend(heap.pages)

    def runs(self, heap):
        """Neighbours in the same state, of the same cache."""
        pages, states = heap.pages, self.frames.states
        owned = (self.state["PAGE_SLAB"], self.state["PAGE_HASH"])
        data = common.read_run(pages.base, pages.count * pages.layout.size)
        at = pages.layout.members["page_owner"][0]

        def key(i):
            offset = i * pages.layout.size + at
            owner = int.from_bytes(data[offset:offset + WORD], "little")
            return states[i], owner if states[i] in owned else 0

        print(f"{'FRAME':>8} {'FRAMES':>8} {'KIB':>9}  {'VIRTUAL':<10} "
              f"{'STATE':<9} OWNER")
        first = 0
        for i in range(1, pages.count + 1):
            if i < pages.count and key(i) == key(first):
                continue
            state, owner = key(first)
            print(f"{first:8} {i - first:8} {(i - first) * KIB_PER_PAGE:9}  "
                  f"0x{pages.virtual(first):08x} "
                  f"{pages.state_name(state):<9} {owner_name(heap, owner)}"
                  .rstrip())
            first = i

    def letters(self):
        table = {v: LETTERS.get(n[len("PAGE_"):], "?")
                 for n, v in self.state.items()}
        return table

    def cell(self, states, letters, free):
        seen = {s: states.count(s) for s in set(states)}
        busy = [s for s in sorted(seen) if s != free]
        most = max(busy, key=lambda s: seen[s]) if busy else free
        if seen.get(most) == len(states) or letters[most] < "A":
            return letters[most]
        return letters[most].lower()

    def picture(self, pages):
        k = 1
        while k * CELLS * ROWS < pages.count:
            k *= 2
        letters, free = self.letters(), self.state["PAGE_FREE"]
        print(f"each cell is {common.plural(k, 'frame')}, "
              f"{k * KIB_PER_PAGE} KiB; a row is "
              f"{k * CELLS * KIB_PER_PAGE} KiB")
        for row in range(0, pages.count, k * CELLS):
            line = "".join(
                self.cell(self.frames.states[i:i + k], letters, free)
                for i in range(row, min(row + k * CELLS, pages.count), k))
            print(f"0x{row << PAGE_SHIFT:08x} {line}")

    def totals(self):
        return common.record_of(common.variable("totals", "mm/page.c"))

    def buddy_free(self):
        zone = common.record_of(common.variable("buddy_zone"))
        return zone.zone_total_pages + zone.zone_tails + sum(
            (f - a) << k for k, (a, f) in
            enumerate(zip(zone.zone_allocs, zone.zone_frees)))

    def legend(self, pages):
        counts, letters = self.frames.counts(), self.letters()
        names = {v: n[len("PAGE_"):] for n, v in self.state.items()}
        print(f"\n{'FRAMES':>8} {'KIB':>9}")
        for s, n in enumerate(counts):
            if n or s != self.state["PAGE_TAIL"]:
                print(f"{n:8} {n * KIB_PER_PAGE:9}  {letters[s]} "
                      f"{WHAT.get(names[s], names[s].lower())}")
        free = self.buddy_free()
        if counts[self.state["PAGE_FREE"]] != free:
            print(f"! buddy counts {free} free pages")
        print("lower case: a cell of mixed frames; the letter is the "
              "commonest not free")
        unused = self.totals().total_unused
        if unused:
            print(f"{unused >> 20} MiB of RAM lie above the direct map, "
                  "unused")

    def json(self, pages):
        row = {"frames": pages.count}
        row.update(zip(pages.state_names(), self.frames.counts()))
        row.update(buddy_free=self.buddy_free(),
                   unused_bytes=self.totals().total_unused)
        common.json_line(row)

    def around(self, heap, address):
        pages = heap.pages
        base = pages.kernel_base
        frame = (address - base if address >= base else address) >> PAGE_SHIFT
        if frame >= pages.count:
            raise Fail(f"no frame is managed at 0x{address:x}; they end at "
                       f"0x{pages.count << PAGE_SHIFT:x}")
        print(f"  {'FRAME':>7} {'PHYSICAL':<10} {'VIRTUAL':<10} "
              f"{'STATE':<9} {'ORDER':>5}  OWNER")
        for i in range(max(0, frame - AROUND),
                       min(frame + AROUND + 1, pages.count)):
            print(frame_line(heap, i, i == frame))


def frame_line(heap, i, marked):
    pages = heap.pages
    page = pages.page(i)
    order = "-" if page.page_order == pages.no_order else page.page_order
    owner = ""
    if pages.is_state(page, "PAGE_TAIL"):
        head = pages.block_head(i)
        state = pages.state_name(pages.page(head).page_state)
        owner = f"of the {state} block at frame {head}"
    elif pages.is_state(page, "PAGE_SLAB", "PAGE_HASH"):
        owner = owner_name(heap, page.page_owner)
    return f"{'>' if marked else ' '} {i:7} 0x{i << PAGE_SHIFT:08x} " \
           f"0x{pages.virtual(i):08x} {pages.state_name(page.page_state):<9}" \
           f" {order:>5}  {owner}".rstrip()


for _command in (Whatis, Map, Buddyinfo, PagesCommand):
    _command()
