"""slab log: the transactions of audited caches (paper, section 6.1) and the
rings of rare events. slab history: all that the log knows of one buffer. As
kernel/shell/cmd_log.c, and also of a stopped machine that has panicked.
"""

import common
import slab_heap
from common import Command, Fail, json_line
from slab_buf import Transaction, buffer_at, seconds
from slab_heap import Heap

ROWS = 20


class Log:
    """The circular array of transactions."""

    def __init__(self, heap):
        self.heap = heap
        value = common.variable("transactions", "mm/debug/audit.c")
        self.entries = int(value["entries"]) & common.WORD_MASK
        self.length, self.last = int(value["length"]), int(value["last"])
        self.layout = common.layout("struct kmem_log_entry",
                                    home="kmem_log_enter")
        self.stopped = bool(common.variable("kmem_log_stopped"))

    @property
    def kept(self):
        return min(self.last, self.length)

    def get(self, seq):
        """Transaction number `seq`, or None if it is not kept."""
        if seq == 0 or self.length == 0:
            return None
        at = self.entries + seq % self.length * self.layout.size
        raw = common.Record(self.layout, common.read(at, self.layout.size),
                            at)
        return Entry(self.heap, raw) if raw.log_seq == seq else None

    def newest_first(self):
        for i in range(self.kept):
            entry = self.get(self.last - i)
            if entry:
                yield entry


NAME_WIDTH = 15
CALLER_WIDTH = 13  # what is left of 80 columns
AGO_WIDTH = 10  # the last decimals give way to days


def ago_cell(us):
    """Seconds ago, with as many decimals as have room."""
    return f"{seconds(us)[:AGO_WIDTH]:>{AGO_WIDTH}}"


def short(caller, name):
    """The caller that a row has room for, in full or without the offset,
    behind a name that may have been too long."""
    room = max(0, CALLER_WIDTH - max(0, len(name) - NAME_WIDTH))
    if len(caller) > room:
        caller = caller.split("+")[0]
    return caller[:room]


class Entry:
    """One transaction in the log."""

    OPS = ("alloc", "free")

    def __init__(self, heap, raw):
        self.raw, self.seq, self.prev = raw, raw.log_seq, raw.log_prev
        self.trans = Transaction(raw.log_trans)
        self.op = self.OPS[raw.log_op] if raw.log_op < 2 else "?"
        self.cpu = raw.log_cpu
        self.slab, self.buf = raw.log_slab, raw.log_buf
        cache = heap.cache_at(raw.log_cache)
        known = cache and cache.raw.cache_number == raw.log_number
        self.cache = cache.name if known else "?"

    def row(self, stack):
        text = f"{self.seq:6} {ago_cell(self.trans.ago)} {self.op:<5} " \
               f"{self.cpu:3} {self.trans.task:4} " \
               f"{self.cache:<{NAME_WIDTH}} {self.slab:08x} {self.buf:08x}"
        if stack:
            print(text)
            self.trans.print_stack(7)
        else:
            print(text, short(self.trans.caller, self.cache))

    def json(self):
        json_line({"seq": self.seq, "prev": self.prev, "us": self.trans.us,
                   "op": self.op, "cpu": self.cpu,
                   "task": self.trans.task,
                   "cache": self.cache, "slab": self.slab, "buf": self.buf,
                   "size": self.raw.log_size,
                   "stack": self.trans.callers()})


def print_head():
    print(f"{'SEQ':>6} {'T-AGE':>{AGO_WIDTH}} {'OP':<5} CPU {'TASK':>4} "
          f"{'CACHE':<{NAME_WIDTH}} {'SLAB':<8} {'BUF':<8} CALLER")


class Filter:
    """Whether a transaction was on the buffer that holds an address: now, or
    then, if no slab is there any more."""

    def __init__(self, heap, address):
        self.heap, self.address = heap, address
        self.buffer = buffer_at(heap, address)
        self.most = common.macros("mm/kmem.h")["KMEM_SIZE_MAX"]

    def fits(self, entry):
        offset = self.address - entry.buf
        if offset == 0:
            return True
        if not 0 < offset < self.most:
            return False
        if self.buffer:
            return self.buffer.address == entry.buf
        return offset < self.size(entry)

    def size(self, entry):
        """The bytes of its object, 0 if nobody knows."""
        cache = next((c for c in self.heap.caches if c.name == entry.cache),
                     None)
        return entry.raw.log_size or (cache.size if cache else 0)


def newest(heap, address):
    """The newest transaction on the object that is, or was, at an address, or
    None."""
    wanted = Filter(heap, address)
    return next((e for e in Log(heap).newest_first() if wanted.fits(e)), None)


# ---- the rings -------------------------------------------------------------

RINGS = {"fail": "bytes", "slab": "objects", "reap": "slabs"}
WHY = ("no memory", "on purpose", "grown", "reaped", "unmapped",
       "cache ended")


def ring_events(name):
    """The events of a ring, newest first, as Records."""
    rings = common.variable("rings", "mm/debug/audit.c")
    value = rings[list(RINGS).index(name)]
    ring = common.record_of(value)
    size = len(ring.events)
    for seq in range(ring.last, max(0, ring.last - size), -1):
        event = ring.events[seq % size]
        if event.event_seq != seq:
            return
        yield event


def why_text(number):
    return WHY[number] if number < len(WHY) else "?"


class LogCommand(Command):
    name = "slab log"
    usage = "[-S|-j] [-n N] [-c CACHE] [-t TASK] [[-a] ADDR] | " \
            "fail|slab|reap"
    summary = "What the allocator did: the transaction log"
    details = """\
Allocations and frees of caches in mode U, newest first; T-AGE is seconds ago,
CPU the processor.
  -n N      at most N rows, else 20
  -a ADDR   only those of the buffer that holds ADDR
  -c CACHE  only those of this cache
  -t TASK   only those of this task
  -S        with all callers
  -j        JSON lines
`slab log fail`, `slab log slab` and `slab log reap` show the last allocations
that failed, slabs that came and went, and reaps, with the reason."""
    example = "slab log -n 5 -S"
    options, valued, most = "Sj", "nact", 1
    wants = "wants fail, slab, reap or one address at most"

    def run(self, args):
        heap, rows = Heap(), args.number("n", ROWS)
        if rows == 0:
            raise Fail("-n wants a number from 1 on")
        if args.word() in RINGS:
            self.ring(args.word(), rows, args)
            return
        where = args.word() or args.get("a")
        address = common.parse_address(where) if where else None
        self.log(heap, rows, address, args)

    def log(self, heap, rows, address, args):
        log, shown = Log(heap), 0
        wanted = Filter(heap, address) if address is not None else None
        task = args.number("t", None)
        if args.get("c"):
            heap.cache(args.get("c"))
        if "j" not in args:
            print_head()
        for e in log.newest_first():
            if shown == rows:
                break
            if (wanted and not wanted.fits(e)) or \
                    args.get("c", e.cache) != e.cache or \
                    (task is not None and e.trans.task != task):
                continue
            shown += 1
            if "j" in args:
                e.json()
            else:
                e.row("S" in args)
        if "j" in args:
            return
        print(f"{shown} shown; {log.kept} transactions kept of {log.last}" +
              ("; the log stopped at the first error" if log.stopped else ""))
        if log.last == 0:
            print("caches in mode U are logged: `debug +U NAME`")

    def ring(self, name, rows, args):
        if "j" not in args:
            print(f"{'SEQ':>6} {'T-AGE':>{AGO_WIDTH}} TASK {'CACHE':<17} "
                  f"{'BASE':<10} {'COUNT':>8} {'OF':<7} WHY")
        n, now = 0, common.clock_us()
        for e in ring_events(name):
            n += 1
            if n > rows:
                break
            if args.get("c", e.event_name) != e.event_name:
                continue
            if "j" in args:
                json_line({"seq": e.event_seq, "us": e.event_us,
                           "task": e.event_task, "cache": e.event_name,
                           "base": e.event_slab, "count": e.event_count,
                           "why": why_text(e.event_why)})
                continue
            slab = f"0x{e.event_slab:08x}" if e.event_slab else f"{'-':>10}"
            print(f"{e.event_seq:6} {ago_cell(max(0, now - e.event_us))} "
                  f"{e.event_task:4} {e.event_name:<17} {slab} "
                  f"{e.event_count:8} {RINGS[name]:<7} "
                  f"{why_text(e.event_why)}")
        if n == 0 and "j" not in args:
            print("(nothing yet)")

    def complete(self, text, word):
        return [n for n in RINGS if n.startswith(word)] + \
            slab_heap.complete_cache(word)


class History(Command):
    name = "slab history"
    usage = "BUF"
    summary = "What happened to one buffer"
    details = """\
All transactions on the buffer that holds the address, newest first, with
callers; and why the list ends: with the buffer's first transaction, or where
the log has been overwritten. Of caches in mode U. $obj is the last object
that `slab walk alloc` showed."""
    example = "slab history $obj"
    least, joined = 1, True
    wants = "wants an address; `slab log` shows some"

    def run(self, args):
        address = common.parse_address(args.word())
        heap = Heap()
        log, entry = Log(heap), newest(heap, address)
        if entry is None:
            raise Fail(f"the log knows nothing of 0x{address:08x}; caches in "
                       "mode U are logged")
        print_head()
        while True:
            entry.row(True)
            older = log.get(entry.prev)
            if older is None:
                break
            entry = older
        if entry.prev == 0:
            print("nothing before that: the buffer's first transaction")
        else:
            print(f"the log is overwritten from there on: {entry.prev} is "
                  "not kept")


for _command in (LogCommand, History):
    _command()
