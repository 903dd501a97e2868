"""slab log, history, users, old: the users of memory, of caches in mode U
(paper, section 6.1). slab leaks: the objects that no pointer leads to."""

import system
import target
from command import (Command, Hex, Table, age, parse_address, parse_number,
                     plural, seconds)
from heap import Heap, Transaction, show_age, show_caller
from slab_caches import NAME
from slab_address import registers
from target import (PAGE_SHIFT, UNREADABLE, WORD, WORD_MASK, Fail, Record,
                    constant, linker, words)


class Log:
    """The circular array of transactions."""

    def __init__(self, heap):
        self.heap, self.array = heap, target.record_of("transactions")
        self.last = self.array.last
        self.kept = min(self.last, self.array.length)

    def get(self, seq):
        """Transaction number `seq`, or None if it is not kept."""
        if seq == 0 or self.array.length == 0:
            return None
        at = self.array.entries + seq % self.array.length * \
            target.layout("kmem_log_entry").size
        entry = Entry(self.heap, at)
        return entry if entry.seq == seq else None

    def newest_first(self):
        return filter(None, (self.get(self.last - i)
                             for i in range(self.kept)))


class Entry(Record):
    """One transaction in the log."""

    def __init__(self, heap, address):
        super().__init__(*target.place("kmem_log_entry", address))
        self.trans = Transaction(self.log_trans)
        self.op = {0: "alloc", 1: "free"}.get(self.log_op, "?")
        cache = heap.cache_at(self.log_cache)
        known = cache is not None and cache.number == self.log_number
        self.cache = cache.name if known else "?"
        self.end = self.buf + min(  # the end of the transaction's bytes
            self.log_size or (cache.size if known else 1),
            constant("KMEM_SIZE_MAX"))

    def row(self, table):
        table.row(self.seq, seconds(self.trans.ago)[:10], self.op, self.cpu,
                  self.trans.task, self.cache, f"{self.slab:08x}",
                  f"{self.buf:08x}", show_caller(self.trans).split("+")[0])


def log_table(as_json=False):
    return Table("SEQ:6 T-AGE:10 OP:-5 CPU:3 TASK:4 CACHE:-15 SLAB:-8 "
                 "BUF:-8 CALLER:-1", as_json)


class LogCommand(Command):
    """slab log [-j] [-n N] [-c CACHE]
    The transaction log: allocations and frees, newest first.
    Of caches in mode U. T-AGE is seconds ago, CPU the processor.
      -n N      at most N rows, else 20
      -c CACHE  only those of this cache
    Example: slab log -n 5"""

    def run(self, args):
        heap, most = Heap(), args.number("n", 20, 1)
        name = args.get("c") and heap.cache(args.get("c")).name
        log, table = Log(heap), log_table("j" in args)
        for entry in log.newest_first():
            if name in (None, entry.cache):
                if table.rows == most:
                    break
                entry.row(table)
        stopped = target.integer("kmem_log_stopped")
        table.say(f"{table.rows} shown; {log.kept} of "
                  f"{log.last} transactions kept"
                  f"{'; the log stopped at the first error' * stopped}")


class History(Command):
    """slab history BUF
    The transactions of one buffer.
    All transactions on the buffer that holds the address, newest first, with
    callers, up to the buffer's first one or to where the log is overwritten. Of
    caches in mode U. $obj is the last object that `slab walk alloc` showed.
    Example: slab history $obj"""

    def run(self, args):
        address, heap = parse_address(args.word()), Heap()
        b, log = heap.buffer_at(address), Log(heap)
        entry = next((e for e in log.newest_first() if (
            e.buf == b.address if b else e.buf <= address < e.end)), None)
        if entry is None:
            raise Fail(f"the log has no transaction of 0x{address:08x}; "
                       "caches in mode U are logged")
        table = log_table()
        while entry:
            entry.row(table)
            entry.trans.print_stack(7)
            last, entry = entry, log.get(entry.prev)
        print("nothing before that: the buffer's first transaction"
              if last.prev == 0 else
              f"the log is overwritten from there on: {last.prev} is not kept")


RINGS = "fail", "slab", "reap"  # the kernel's rings, in their order
WHY = ("no memory", "on purpose", "size 0", "grown", "reaped", "unmapped",
       "cache ended")


def ring_events(name):
    """The events of a ring, newest first."""
    value = target.variable("rings")[RINGS.index(name)]
    ring = target.record_at(value)
    size = len(ring.events)
    for seq in range(ring.last, max(0, ring.last - size), -1):
        event = ring.events[seq % size]
        if event.event_seq != seq:
            return
        yield event


def why_text(number):
    return WHY[number] if number < len(WHY) else "?"


def groups(buffers):
    """Buffers in use, by cache, size and stack: lists, most bytes first."""
    found = {}
    for b in buffers:
        key = b.cache.address, b.size, b.alloc and b.alloc.callers
        found.setdefault(key, []).append(b)
    return sorted(found.values(), key=lambda g: -len(g) * g[0].size)


def in_use(caches):
    """The caches' buffers in use, except those of the allocator's own."""
    return [b for c in caches if c.kind_name != "internal"
            for b in c.buffers() if b.state == "in use"]


def print_suspects(buffers, remark, as_json):
    table = Table(f"{NAME} COUNT:6 BYTES:9 OLDEST:7 SAMPLE:-10 CALLER:-1",
                  as_json)
    for group in groups(buffers):
        b = max(group, key=lambda b: b.alloc.ago if b.alloc else 0)
        table.row(b.cache.name, len(group), len(group) * b.size,
                  show_age(b.alloc), Hex(b.address), show_caller(b.alloc))
    table.say(f"suspect: {plural(len(buffers), 'object')}, "
              f"{sum(b.size for b in buffers)} bytes{remark}")


class Users(Command):
    """slab users [-j] [CACHE]
    Live memory by the stack that allocated it.
    Objects in use of one cache or of all, in groups of one cache, one size and
    one chain of callers, which is below each row, nearest first. Most bytes
    first. BYTES and SIZE are as requested, WASTE is the rest of their
    chunks.
    Example: slab users inode"""

    def run(self, args):
        found = in_use(Heap().chosen(args.word(), lambda c: True))
        table = Table("BYTES:9 COUNT:6 SIZE:6 WASTE:7 AGE-MIN/AVG/MAX:-20 "
                      "TASKS:-9 CACHE:-1", "j" in args)
        for group in groups(found):
            b, n = group[0], len(group)
            ages = [b.alloc.ago // 1000 for b in group if b.alloc]
            tasks = list(dict.fromkeys(b.alloc.task for b in group if b.alloc))
            table.row(n * b.size, n, b.size, max(0, b.cache.chunk - b.size) * n,
                      "/".join(map(age, (min(ages), sum(ages) // n, max(ages))
                                   if ages else ())) or "-",
                      ",".join(map(str, tasks[:4])) + ",.." * (len(tasks) > 4)
                      or "-", b.cache.name)
            if b.alloc and not table.as_json:
                b.alloc.print_stack(10)
        unknown = sum(not b.alloc for b in found)
        if unknown:
            table.say("of caches that are not in mode U (`debug +U`): "
                      f"{unknown} object{'s' * (unknown != 1)}")


class Old(Command):
    """slab old [-j] SECONDS
    Objects that have been in use for long: suspects of a leak.
    The paper's section 6.7: an object that was allocated so long ago may have
    been forgotten. Of caches in mode U, in groups of one chain of callers;
    SAMPLE is the oldest of each: `slab whatis SAMPLE`.
    Example: slab old 10"""

    def run(self, args):
        limit = parse_number(args.word(), 0, "SECONDS")
        found = [b for b in in_use(Heap().caches)
                 if b.alloc and b.alloc.ago >= limit * 1000000]
        print_suspects(found, f", in use for {limit} s or more",
                       "j" in args)


# ---- leaks (paper, section 6.7), as mm/debug/leak.c finds them -------------

def remembered():
    """The addresses of the allocator's own records, which are not pointers to
    objects."""
    for value in map(target.variable, ("kmem_last_error", "rings")):
        start = int(value.address) & WORD_MASK
        yield range(start, start + value.type.sizeof)


def roots(pages):
    """[(begin, end)] of all memory where the search begins, but registers: the
    kernel's data, stacks, memory of kmem_alloc above the size classes."""
    boot = linker("boot_stack_bottom"), linker("boot_stack_top")
    found = [(linker("data_start"), linker("data_end")),
             (linker("bss_start"), boot[0]), (boot[1], linker("bss_end"))]
    esp = registers().get("esp", 0)
    stacks = {boot[0]: (boot[1], boot[1])}  # before there are tasks
    try:
        for bottom, top, saved, _ in system.stacks():
            stacks[bottom] = top, saved
    except UNREADABLE as e:
        print(f"! tasks: {e}; the stacks of the others are not searched")
    found += [(esp if bottom <= esp < top else saved, top)
              for bottom, (top, saved) in stacks.items()]
    found += pages.in_state("oversize")
    for part in remembered():
        found = [piece for a, b in found for piece in (
            [(a, part.start), (part.stop, b)] if a <= part.start < b
            else [(a, b)])]
    return found


class Scan:
    """Marks the objects that are reached from the roots, directly or not."""

    def __init__(self, heap):
        self.heap, self.reached, self.todo, self.bytes = heap, set(), [], 0
        self.slabs = {page: slab for page, slab in heap.slabs_by_page.items()
                      if slab.owner.kind_name != "internal"
                      and not slab.owner.own_supplier}

    def reach(self, value):
        slab = self.slabs.get(value >> PAGE_SHIFT)
        index = slab.index(value) if slab else None
        if index is None or index in slab.free_links:
            return
        start, key = slab.address_of(index), (slab.address, index)
        if key not in self.reached and value - start < slab.owner.size:
            self.reached.add(key)
            self.todo.append((slab.owner, start))

    def search(self, start, end, meaning=lambda value: value):
        """Follows every aligned word."""
        for _, data in target.present(-(-start // WORD) * WORD, end):
            for value in filter(None, words(data)):
                self.reach(meaning(value))

    def directory(self, value):
        """The address that a page directory's word leads to."""
        return self.heap.pages.virtual(value >> PAGE_SHIFT) if value & 1 else 0

    def run(self):
        for start, end in roots(self.heap.pages):
            self.bytes += end - start
            self.search(start, end)
        for value in registers().values():
            self.reach(value)
        while self.todo:
            cache, start = self.todo.pop()
            if cache.name != "kstack":  # its used part is a root
                self.search(start, start + cache.size, *(
                    [self.directory] * (cache.name == "page_directory")))


class Leaks(Command):
    """slab leaks [-j]
    Objects that nothing points to: suspects of a leak.
    Looks for pointers in the kernel's data, in stacks, in registers and in all
    objects that are reached from there; an object that no address leads to is
    suspect. A number that looks like an address hides a leak; a pointer that is
    kept in another form makes a false suspect."""

    def run(self, args):
        heap = Heap()
        scan = Scan(heap)
        scan.run()
        slabs = dict.fromkeys(scan.slabs.values())
        found = [b for slab in slabs for b in slab.buffers
                 if b.state == "in use"
                 and (slab.address, b.index) not in scan.reached]
        print_suspects(
            found, f"; {len(scan.reached)} of {sum(s.refcnt for s in slabs)} "
            f"are reached from {scan.bytes >> 10} KiB of roots", "j" in args)
