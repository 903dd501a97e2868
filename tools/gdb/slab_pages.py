"""slab pages and slab buddyinfo: who has the page frames (mm/page.c,
mm/buddy.c). As kernel/shell/cmd_kmem_pages.c.
"""

import common
from common import PAGE_SHIFT, PAGE_SIZE, WORD, Command, Fail
from slab_heap import Heap, Pages
from slab_whatis import owner_name

KIB_PER_PAGE = PAGE_SIZE // 1024


# ---- buddyinfo -------------------------------------------------------------

class Buddyinfo(Command):
    name = "slab buddyinfo"
    usage = "[-j]"
    summary = "Free blocks of physical memory by order"
    details = """\
A block of order n is 2^n pages of 4 KiB, aligned to its size. FREE counts
blocks on the free lists now, ALLOCATED and RETURNED those handed out and taken
back since boot. UNUSABLE% is the part of the free memory that lies in blocks
too small for a request of that order: external fragmentation.
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

    @staticmethod
    def unusable(free, order):
        """As mm/buddy_stat.c: thousandths of the free memory."""
        pages = sum(n << k for k, n in enumerate(free))
        large = sum(n << k for k, n in enumerate(free) if k >= order)
        return common.waste(large, pages)

    def json(self, zone, free, pages):
        for order, n in enumerate(free):
            common.json_line({"order": order, "free": n,
                              "unusable_percent":
                              self.unusable(free, order) / 10,
                              "allocs": zone.zone_allocs[order],
                              "frees": zone.zone_frees[order]})
        common.json_line({
            "free_pages": pages, "total_pages": zone.zone_total_pages,
            "largest": self.largest(free), "splits": zone.zone_splits,
            "merges": zone.zone_merges, "failures": zone.zone_failures,
            "pressures": zone.zone_pressures})

    def table(self, zone, free, pages):
        print(f"{'ORDER':>5} {'BLOCK/K':>9} {'FREE':>8} {'FREE/K':>10} "
              f"{'UNUSABLE%':>9} {'ALLOCATED':>12} {'RETURNED':>12}")
        for k, n in enumerate(free):
            unusable = common.percent(self.unusable(free, k))
            print(f"{k:5} {KIB_PER_PAGE << k:9} {n:8} "
                  f"{(n << k) * KIB_PER_PAGE:10} {unusable:>9} "
                  f"{zone.zone_allocs[k]:12} {zone.zone_frees[k]:12}")
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
           "ALLOC": "A", "SLAB": "S", "HASH": "H", "LARGE": "L",
           "UNMAPPED": "X", "USER": "U"}
WHAT = {"RESERVED": "holes, BIOS, devices",
        "KERNEL": "the kernel's image and page array",
        "TAIL": "blocks without a first frame",
        "FREE": "free, in buddy's lists", "ALLOC": "handed out by buddy",
        "SLAB": "slabs", "HASH": "hash tables of caches",
        "LARGE": "kmem_alloc above the size classes",
        "UNMAPPED": "taken away by debugging mode S",
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
  -j  JSON lines: runs of like blocks, one after the other; then the counts"""
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
            self.json(heap)
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
        return common.record_of(common.variable("totals", "mm/page_stat.c"))

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

    def json_runs(self, heap):
        """Blocks of one kind, one after the other."""
        pages, run, i = heap.pages, None, 0
        owned = (self.state["PAGE_SLAB"], self.state["PAGE_HASH"])
        while i < pages.count:
            page = pages.page(i)
            order, state = page.page_order, page.page_state
            owner = page.page_owner if state in owned else 0
            n = min(1 << order if order < pages.orders else 1,
                    pages.count - i)
            if run and run[2:] == [order, state, owner]:
                run[1] += n
            else:
                self.json_run(heap, run)
                run = [i, n, order, state, owner]
            i += n
        self.json_run(heap, run)

    def json_run(self, heap, run):
        if run is None:
            return
        first, n, order, state, owner = run
        row = {"frame": first, "frames": n,
               "state": heap.pages.state_name(state)}
        if order < heap.pages.orders:
            row["order"] = order
        if owner:
            row["cache"] = owner_name(heap, owner)
        common.json_line(row)

    def json(self, heap):
        pages = heap.pages
        self.json_runs(heap)
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


for _command in (Buddyinfo, PagesCommand):
    _command()
