"""slab log, history, users, old: the users of memory, of caches in mode U
(paper, section 6.1)."""

import target
from command import (Command, Hex, Table, age, parse_address, parse_number,
                     plural, seconds)
from heap import Heap, Transaction, show_age, show_caller
from slab_caches import NAME
from target import PAGE_SHIFT, Fail, constant


class Log:
    """The circular array of transactions."""

    def __init__(self, heap):
        self.heap = heap
        value = target.record_of("transactions")
        self.entries, self.length, self.last = \
            value.entries, value.length, value.last
        self.kept = min(self.last, self.length)

    def get(self, seq):
        """Transaction number `seq`, or None if it is not kept."""
        if seq == 0 or self.length == 0:
            return None
        size = target.layout("kmem_log_entry").size
        raw = target.record("kmem_log_entry",
                            self.entries + seq % self.length * size)
        return Entry(self.heap, raw) if raw.log_seq == seq else None

    def newest_first(self):
        return filter(None, (self.get(self.last - i)
                             for i in range(self.kept)))


class Entry:
    """One transaction in the log."""

    def __init__(self, heap, raw):
        self.raw, self.seq, self.prev = raw, raw.log_seq, raw.log_prev
        self.trans = Transaction(raw.log_trans)
        self.op = {0: "alloc", 1: "free"}.get(raw.log_op, "?")
        self.buffer = raw.log_buf
        cache = heap.cache_at(raw.log_cache)
        known = cache is not None and cache.number == raw.log_number
        self.cache = cache.name if known else "?"
        # How many bytes of the buffer it was about.
        self.size = raw.log_size or (cache.size if known else 1)

    def row(self, table):
        table.row(self.seq, seconds(self.trans.ago)[:10], self.op,
                  self.raw.log_cpu, self.trans.task, self.cache,
                  f"{self.raw.log_slab:08x}", f"{self.buffer:08x}",
                  show_caller(self.trans).split("+")[0])


def log_table(as_json=False):
    return Table("SEQ:6 T-AGE:10 OP:-5 CPU:3 TASK:4 CACHE:-15 SLAB:-8 "
                 "BUF:-8 CALLER:-1", as_json)


def newest(heap, address):
    """The newest transaction on the object that is, or was, at an address, or
    None."""
    b = heap.buffer_at(address)
    most = constant("KMEM_SIZE_MAX")
    return next((e for e in Log(heap).newest_first()
                 if (b and e.buffer == b.address)
                 or not b and 0 <= address - e.buffer < min(e.size, most)),
                None)


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
        table.say(f"{table.rows} shown; {log.kept} transactions kept of "
                  f"{log.last}"
                  f"{'; the log stopped at the first error' * stopped}")


class History(Command):
    """slab history BUF
    What happened to one buffer.
    All transactions on the buffer that holds the address, newest first, with
    callers, up to the buffer's first one or to where the log is overwritten. Of
    caches in mode U. $obj is the last object that `slab walk alloc` showed.
    Example: slab history $obj"""

    def run(self, args):
        address, heap = parse_address(args.word()), Heap()
        entry = newest(heap, address)
        if entry is None:
            raise Fail(f"the log has nothing about 0x{address:08x}; caches in "
                       "mode U are logged")
        table = log_table()
        while entry:
            entry.row(table)
            entry.trans.print_stack(7)
            last, entry = entry, Log(heap).get(entry.prev)
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


def print_former(heap, address):
    """The last slab, and the last object, at an address that is in none."""
    for event in ring_events("slab"):
        if event.event_slab >> PAGE_SHIFT == address >> PAGE_SHIFT:
            print(f"the last slab that began here was of cache "
                  f"{event.event_name}: {why_text(event.event_why)}")
            break
    entry = newest(heap, address)
    if entry:
        print(f"the last object here was 0x{entry.buffer:08x} of cache "
              f"{entry.cache}")
        entry.trans.show("freed" if entry.op == "free" else "allocated")


def groups(buffers):
    """Buffers in use, by cache, size and stack: lists, most bytes first."""
    found = {}
    for b in buffers:
        key = b.cache.address, b.size, b.alloc and b.alloc.callers
        found.setdefault(key, []).append(b)
    return sorted(found.values(), key=lambda g: -len(g) * g[0].size)


def in_use(caches):
    """Their buffers in use, those of the allocator's own caches apart."""
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
    first. BYTES and SIZE are what was asked for, WASTE is what their chunks
    have beyond that.
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
            table.say(f"{unknown} objects are of caches that are not in mode "
                      "U (`debug +U`)")


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
