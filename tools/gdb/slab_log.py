"""slab log: the transactions on memory of caches in mode U (paper, section
6.1)."""

import itertools

import target
from command import Command, Table, parse_address, seconds
from heap import Heap, Transaction
from target import Record


class Entry(Record):
    """One transaction in the log."""

    def __init__(self, heap, address):
        super().__init__(*target.place("kmem_log_entry", address))
        self.trans = Transaction(self.log_trans)
        self.op = {0: "alloc", 1: "free"}.get(self.log_op, "?")
        cache = heap.cache_at(self.log_cache)
        known = cache is not None and cache.number == self.log_number
        self.cache = cache.name if known else "?"
        self.bytes = self.log_size or (cache.size if known else 1)

    def row(self, table):
        caller = self.trans.names[0].split("+")[0] if self.trans.names else "-"
        table.row(self.seq, seconds(self.trans.ago)[:10], self.op, self.cpu,
                  self.trans.task, self.cache, f"{self.slab:08x}",
                  f"{self.buf:08x}", caller)


def newest_first(heap, array):
    """The entries that the circular array of transactions has."""
    size = target.layout("kmem_log_entry").size
    for seq in range(array.last, max(0, array.last - array.length), -1):
        entry = Entry(heap, array.entries + seq % array.length * size)
        if entry.seq == seq:
            yield entry


class Log(Command):
    """slab log [-n N] [-c CACHE] [ADDR]
    The transaction log: allocations and frees, newest first.
    Of caches in mode U. T-AGE is seconds ago, CPU the processor. With ADDR only
    those of the buffer that holds it, with all callers.
      -n N      at most N rows, else 20
      -c CACHE  only those of this cache
    Example: slab log -n 5"""

    def run(self, args):
        heap, array = Heap(), target.record_of("transactions")
        name = args.get("c") and heap.cache(args.get("c")).name
        at = parse_address(args.word()) if args.words else None
        b = at and heap.buffer_at(at)
        table = Table("SEQ:6 T-AGE:10 OP:-5 CPU:3 TASK:4 CACHE:-15 SLAB:-8 "
                      "BUF:-8 CALLER:-1")
        found = (e for e in newest_first(heap, array)
                 if name in (None, e.cache) and (at is None or (
                     e.buf == b.address if b else
                     e.buf <= at < e.buf + e.bytes)))
        for entry in itertools.islice(found, args.number("n", 20, 1)):
            entry.row(table)
            if at is not None:
                entry.trans.print_stack(7)
        stopped = target.integer("kmem_log_stopped")
        print(f"{table.rows} shown; {min(array.last, array.length)} of "
              f"{array.last} transactions kept"
              f"{'; the log stopped at the first error' * stopped}")
