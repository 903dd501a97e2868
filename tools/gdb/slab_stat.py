"""slab kmastat: a row per cache, subtotals, the check against the supplier
(kernel/shell/cmd_kmem_stat.c and cmd_kmem_sheet.c). slab ws: the working set,
and what a reap would take.
"""

import common
import slab_heap
from common import Command, Fail, age, count, json_line, percent, waste
from slab_heap import KINDS, Heap, match

NARROW_NAME = 16
NAME = 17

# head, width in the narrow table (0: not there), width in the wide one
COLUMNS = (("SIZE", 5, 5), ("CHUNK", 5, 5), ("INUSE", 5, 6), ("TOTAL", 5, 6),
           ("SLABS", 0, 5), ("FULL/PART/FREE", 14, 14), ("MEM", 5, 8),
           ("WASTE%", 6, 6), ("ALLOC", 5, 8), ("FREE", 0, 8), ("FAIL", 4, 4),
           ("FLAGS", 0, 5))
SIZE, CHUNK, INUSE, TOTAL, SLABS, STATES, MEM, WASTE, ALLOC, FREE, FAIL, \
    FLAGS = range(len(COLUMNS))


def name_cell(name, width=NAME):
    """A row's first cell; a name that is too long gets a line to itself."""
    return f"{name}\n{'':{width}}" if len(name) > width else f"{name:<{width}}"


# ---- kmastat ---------------------------------------------------------------

KIND_LABELS = ("named caches", "kmem_alloc classes", "the allocator's own")

ORDERS = {"mem": lambda c: c.mem, "rate": lambda c: c.allocs,
          "fail": lambda c: c.fails,
          "waste": lambda c: c.mem - min(c.mem, c.used)}

# key in the JSON rows, attribute of a Cache
JSON = (("size", "size"), ("align", "align"), ("chunk", "chunk"),
        ("slab_pages", "slab_pages"), ("slab_objects", "slab_objects"),
        ("slab_left", "slab_left"), ("colour_max", "colour_max"),
        ("colour_next", "colour_next"), ("inuse", "inuse"),
        ("total", "total"), ("slabs", "slabs"), ("full", "full"),
        ("partial", "partial"), ("free", "complete"), ("mem", "mem"),
        ("slab_mem", "slab_bytes"), ("hash_mem", "hash_bytes"),
        ("max_slabs", "max_slabs"), ("allocs", "allocs"), ("frees", "frees"),
        ("fails", "fails"), ("slab_creates", "creates"),
        ("slab_destroys", "destroys"), ("ctors", "ctors"), ("dtors", "dtors"),
        ("hash_entries", "hash_size"), ("hash_rescales", "rescales"),
        ("hash_depth", "depth"), ("ws_min", "ws_min"),
        ("ws_limit", "ws_limit"), ("reaps", "reaps"),
        ("reaped_slabs", "reaped"))


def json_cache(cache):
    """One cache as the shell's `kmastat -j` has it."""
    row = {"cache": cache.name, "kind": KINDS[min(cache.kind, 2)],
           "flags": cache.letters,
           "modes": cache.mode_text if cache.modes else "",
           "bad": cache.bad}
    row.update((key, getattr(cache, name)) for key, name in JSON)
    return row


def json_sum(total):
    return {"caches": total.caches, "inuse": total.inuse,
            "total": total.total, "slabs": total.slabs, "full": total.full,
            "partial": total.partial, "free": total.complete,
            "mem": total.mem, "used": total.used, "allocs": total.allocs,
            "frees": total.frees, "fails": total.fails}


def json_totals(heap):
    kinds, large, everything, own, supplier = heap.totals()
    row = {name: json_sum(kinds[i]) for i, name in enumerate(KINDS)}
    row.update(oversize=json_sum(large), total=json_sum(everything),
               own_suppliers=own, supplier=supplier,
               equal=everything.mem - own + heap.unmapped_bytes() == supplier)
    return row


class _Sheet:
    """One line of `-T`: a figure of each cache, gathered."""

    def __init__(self):
        self.low = self.high = self.sum = self.weight = 0

    def gather(self, value, weight=1):
        if self.weight == 0 or value < self.low:
            self.low = value
        self.high = max(self.high, value)
        self.sum += value * weight
        self.weight += weight

    def line(self, label, total):
        average = self.sum // self.weight if self.weight else 0
        cells = [average, self.low, self.high] + ([self.sum] if total else [])
        print(f"{label:<15}" + "".join(f" {c:>12}" for c in cells))


def print_sheet(caches):
    """-T: averages, extremes and totals."""
    active = [c for c in caches if c.mem]
    per_cache = {n: _Sheet() for n in ("objects in use", "slabs",
                                       "partial slabs", "memory", "used",
                                       "loss")}
    per_object = {n: _Sheet() for n in ("memory (chunk)", "user (size)",
                                        "loss")}
    for c in active:
        for sheet, value in zip(per_cache.values(), (
                c.inuse, c.slabs, c.partial, c.mem, c.used,
                c.mem - min(c.mem, c.used))):
            sheet.gather(value)
        if c.inuse:
            for sheet, value in zip(per_object.values(), (
                    c.chunk, c.size, c.chunk - c.size)):
                sheet.gather(value, c.inuse)
    print(f"{len(caches)} caches, {len(active)} of them with memory and "
          "counted here; memory in bytes\n")
    print(f"{'PER CACHE':<15} {'AVERAGE':>12} {'MIN':>12} {'MAX':>12} "
          f"{'TOTAL':>12}")
    for label, sheet in per_cache.items():
        sheet.line(label, True)
    print(f"\n{'PER OBJECT':<15} {'AVERAGE':>12} {'MIN':>12} {'MAX':>12}")
    for label, sheet in per_object.items():
        sheet.line(label, False)


class _Kmastat:
    """One table: its options and how cells are written."""

    def __init__(self, heap, args):
        self.heap = heap
        self.pattern = args.word()
        self.wide, self.zero = "w" in args, "z" in args
        self.rows = [c for c in heap.caches if match(c.name, self.pattern)]
        longest = max([NARROW_NAME, *(len(c.name) for c in self.rows)])
        self.name = longest if self.wide else NARROW_NAME
        self.shift = self._unit(args)
        self.hidden = 0

    def _unit(self, args):
        if "k" in args or "m" in args:
            return 10 if "k" in args else 20
        if self.wide:
            return 0
        return 20 if self.heap.totals()[2].mem >> 10 > 99999 else 10

    def width(self, col):
        return COLUMNS[col][2 if self.wide else 1]

    def count(self, col, n):
        return count(n, 20 if self.wide else max(self.width(col), 4))

    def memory(self, size):
        if self.shift != 20:
            return str(size >> self.shift)
        tenths = (size * 10 + (1 << 19)) >> 20
        return str(tenths // 10) if tenths >= 10000 else \
            f"{tenths // 10}.{tenths % 10}"

    def cells(self, s, slabs=True):
        row = [""] * len(COLUMNS)
        for col, n in ((INUSE, s.inuse), (ALLOC, s.allocs), (FREE, s.frees),
                       (FAIL, s.fails)):
            row[col] = self.count(col, n)
        row[MEM] = self.memory(s.mem)
        if slabs:
            row[TOTAL] = self.count(TOTAL, s.total)
            row[SLABS] = self.count(SLABS, s.slabs)
            row[STATES] = "/".join(count(n, 4) for n in
                                   (s.full, s.partial, s.complete))
            row[WASTE] = percent(waste(s.used, s.mem))
        return row

    def line(self, first, row, start):
        while row and row[-1] == "":
            row.pop()
        cells = [f" {row[col]:>{self.width(col)}}"
                 for col in range(start, len(row)) if self.width(col)]
        print(first + "".join(cells))

    def head(self):
        line = f"{'CACHE':<{self.name}}"
        for col, (name, *_) in enumerate(COLUMNS):
            if self.width(col):
                unit = {0: "B", 10: "K", 20: "M"}[self.shift]
                text = f"{name}/{unit}" if col == MEM else name
                line += f" {text:>{self.width(col)}}"
        print(line)

    def cache(self, cache):
        row = self.cells(cache)
        row[SIZE] = self.count(SIZE, cache.size)
        row[CHUNK] = self.count(CHUNK, cache.chunk)
        row[FLAGS] = cache.letters or ("" if cache.modes else "-")
        row[FLAGS] += f"/{cache.mode_text}" if cache.modes else ""
        name = ("!" if cache.bad else "") + cache.name
        self.first(name, row)

    def first(self, name, row):
        """A name that is one character too long takes the gap before a short
        SIZE."""
        width = self.width(SIZE)
        if len(name) == self.name + 1 and len(row[SIZE]) < width:
            self.line(f"{name}{row[SIZE]:>{width}}", row, CHUNK)
        else:
            self.line(name_cell(name, self.name), row, SIZE)

    def sum(self, label, total, slabs=True):
        width = self.name + self.width(SIZE) + self.width(CHUNK) + 2
        self.line(f"{label:<{width}}", self.cells(total, slabs), INUSE)

    def bytes(self, label, size, remark):
        width = self.name + sum(self.width(col) + 1 for col in range(MEM)
                                if self.width(col))
        print(f"{label:<{width}} {self.memory(size):>{self.width(MEM)}}  "
              f"{remark}")

    def totals(self):
        kinds, large, everything, own, supplier = self.heap.totals()
        for label, total in zip(KIND_LABELS, kinds):
            self.sum(f"{label} ({total.caches})", total, total.caches > 0)
        most = common.macros("mm/kmem.h")["KMEM_MAXBUF"]
        self.sum(f"oversize (above {most})", large, False)
        self.sum("TOTAL", everything)
        if own:
            self.bytes("own suppliers (flag S)", own, "not segkmem's")
        unmapped = self.heap.unmapped_bytes()
        if unmapped:
            self.bytes("unmapped (mode S)", unmapped, "of no cache")
        off = everything.mem - own + unmapped - supplier
        self.bytes("SUPPLIER (segkmem)", supplier,
                   f"! off by {off:+d}" if off else "= supplier")

    def legend(self):
        print('full: every object out (the paper\'s "empty"); free: none out '
              '("complete")')
        if self.wide:
            print("flags: L large layout, C constructor, D destructor, S "
                  "supplier of its own,\nE an elder; behind the /: debugging "
                  "modes (`debug`)")
        if self.hidden:
            print(f"{self.hidden} more without memory: kmastat -z")

    def show(self, key):
        self.head()
        for cache in self.heap.ordered(key):
            if cache not in self.rows:
                continue
            if self.zero or cache.kind == 0 or cache.mem or cache.bad:
                self.cache(cache)
            else:
                self.hidden += 1
        if self.pattern is None:
            self.totals()
        else:
            total = slab_heap.Sum()
            for cache in self.rows:
                total.add(cache)
            self.sum("TOTAL of these", total)
        for note in self.heap.notes:
            print(f"! {note}")
        self.legend()


class Kmastat(Command):
    name = "slab kmastat"
    usage = "[-k|-m] [-z] [-w] [-j] [-T] [-s ORDER] [PATTERN]"
    summary = "The slab caches: objects, slabs, memory, waste"
    details = """\
A row per named cache, and per other one that has memory; largest first.
  -k -m      memory in KiB or MiB; else whichever fits
  -z         also size classes without memory
  -w         all columns and exact numbers, 109 wide; memory in bytes
  -s ORDER   mem; waste (bytes not used); rate (allocations); fail
  -T         averages, extremes and totals over the caches
  -j         a JSON object per cache, then one with the totals
PATTERN is a part of the name, or has * and ?. A row marked ! contradicts
itself, which in the middle of an allocation it may: see `slab verify`."""
    example = "slab kmastat -s waste kmem_alloc*"
    options, valued, most = "kmzwjT", "s", 1
    wants = "wants one pattern at most; use * and ? in it"

    def run(self, args):
        heap, order = Heap(), args.get("s", "mem")
        if order not in ORDERS:
            raise Fail("-s wants mem, waste, rate or fail after it")
        rows = [c for c in heap.caches if match(c.name, args.word())]
        if not rows:
            raise Fail(f"no cache matches '{args.word()}'; `slab kmastat -z` "
                       "lists them all")
        if "j" in args:
            for cache in heap.ordered(ORDERS[order]):
                if cache in rows:
                    json_line(json_cache(cache))
            json_line(json_totals(heap))
        elif "T" in args:
            print_sheet(rows)
        else:
            _Kmastat(heap, args).show(ORDERS[order])

    def complete(self, text, word):
        return slab_heap.complete_cache(word)


# ---- ws --------------------------------------------------------------------

INFINITE = common.WORD_MASK


def interval():
    return int(common.variable("kmem_ws_interval"))


def reapable(cache):
    """How many slabs a reap would take now."""
    if interval() == 0:
        return cache.complete
    return 0 if interval() == INFINITE else min(cache.ws_limit, cache.ws_min)


def last_reap(cache):
    if cache.reaps == 0:
        return "never"
    return age(max(0, common.clock_ms() - cache.last_reap_ms))


class WorkingSet(Command):
    name = "slab ws"
    usage = "[-j] [NAME]"
    summary = "The working set: free slabs that a reap keeps"
    details = """\
T free slabs now, m the fewest since the last update, L the fewest of the
interval before. A reap gives back the smaller of L and m.
FREED and KEPT tell of the last reap, LAST-REAP how long ago.
  -j  JSON lines"""
    example = "slab ws kmem_alloc_64"
    options, most = "j", 1
    wants = "wants one cache at most"

    def row(self, c):
        print(f"{name_cell(c.name)} {c.complete:6} {c.ws_min:6} "
              f"{c.ws_limit:6} {reapable(c):8} {last_reap(c):>9} "
              f"{c.last_freed:6} {c.last_kept:6}")

    def json(self, c):
        json_line({"cache": c.name, "T": c.complete, "m": c.ws_min,
                   "L": c.ws_limit, "reapable": reapable(c),
                   "reaps": c.reaps, "last_reap_ms": c.last_reap_ms,
                   "freed": c.last_freed, "kept": c.last_kept})

    def run(self, args):
        heap = Heap()
        if args.words:
            rows = [heap.cache(args.word())]
        else:
            rows = [c for c in heap.ordered() if "j" in args or c.complete or
                    c.ws_min or c.ws_limit or c.reaps]
        if "j" in args:
            for cache in rows:
                self.json(cache)
            return
        print(f"{'CACHE':<{NAME}} {'T':>6} {'m':>6} {'L':>6} "
              f"{'REAPABLE':>8} {'LAST-REAP':>9} {'FREED':>6} {'KEPT':>6}")
        for cache in rows:
            self.row(cache)
        if not rows:
            print("(no cache has a free slab)")
        self.interval()

    def interval(self):
        ms = interval()
        if ms == INFINITE:
            print("interval: infinite; a reap keeps every free slab")
        elif ms == 0:
            print("interval: 0; a reap takes every free slab")
        else:
            print(f"interval: {ms // 1000}.{ms % 1000:03} s; at each update "
                  "L = m, m = T")

    def complete(self, text, word):
        return slab_heap.complete_cache(word)


for _command in (Kmastat, WorkingSet):
    _command()
