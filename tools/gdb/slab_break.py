"""slab break: stop at an event of the heap, of one cache, one address, the n-th
time. A breakpoint of GDB's own kind: `info breakpoints`, `delete`, `disable`.
"""

import gdb

import common
import slab_heap
from common import WORD_MASK, Command, Fail
from slab_heap import Cache, Heap, Slab

# Arguments come in these registers (-mregparm=3).
REGISTERS = ("eax", "edx", "ecx")

# event: function, which argument is the cache, which the buffer
EVENTS = {"alloc": ("kmem_cache_alloc", 0, None),
          "free": ("kmem_cache_free", 0, 1),
          "grow": ("kmem_cache_grow", 0, None),
          "reap": ("kmem_cache_reap", 0, None),
          "error": ("kmem_error", None, None)}


def argument(i):
    """Argument `i` at a function's first instruction."""
    value = gdb.selected_frame().read_register(REGISTERS[i])
    return int(value) & WORD_MASK


def next_buffer(cache):
    """What an allocation would hand out now, or None if it must grow."""
    head = cache.raw.cache_freelist
    if head == cache.null:
        return None
    slab = Slab(cache, head)
    return slab.buffer_of(slab.head)


class HeapBreakpoint(gdb.Breakpoint):
    """Stops if the event is the one that was asked for."""

    def __init__(self, event, cache, address, nth):
        function, self.cache_at, self.buffer_at = EVENTS[event]
        self.event, self.cache_name, self.buffer = event, cache, address
        self.nth, self.seen = nth, 0
        super().__init__(f"*{function}")

    def stop(self):
        try:
            return self.wanted()
        except (common.BadMemory, common.Fail, gdb.error) as e:
            print(f"slab break {self.event}: {e}")
            return True

    def wanted(self):
        common.forget()
        text = f"slab break {self.event}:"
        if self.event == "error":
            kind, address, buffer = self.error()
            text += f" {kind}"
        else:
            address = argument(self.cache_at)
            buffer = self.which(Cache(address))
        name = Cache(address).name if address else "none"
        if self.cache_name not in (None, name) or \
                self.buffer not in (None, buffer):
            return False
        text += f", cache {name}" if self.event == "error" else \
            f" cache {name}"
        if buffer is not None:
            text += f", object 0x{buffer:08x}"
        self.seen += 1
        if self.seen < self.nth:
            return False
        text += f", number {self.seen}" if self.nth > 1 else ""
        print(text)
        return True

    @staticmethod
    def error():
        """(kind, cache, buffer) that kmem_error is about to report."""
        e = common.record("struct kmem_error_record", argument(0))
        row = common.variable("errors", "mm/debug/report.c")[e.error_kind]
        return common.string(int(row["name"]) & WORD_MASK), e.error_cache, \
            e.error_base or e.error_buf

    def which(self, cache):
        """The buffer that this is about; of an allocation, the one that it
        will hand out."""
        if self.buffer_at is not None:
            return argument(self.buffer_at)
        return next_buffer(cache) if self.event == "alloc" else None


class Break(Command):
    name = "slab break"
    usage = "alloc|free|grow|reap|error [-c CACHE] [-a ADDR] [-n NTH]"
    summary = "Stop at an event of the heap"
    details = """\
  alloc free  an object is about to be handed out, or comes back
  grow reap   a cache gets a slab; is asked to give some back
  error       the allocator has found something wrong, before it reports it
  -c CACHE    only of this cache
  -a ADDR     only of the object at this address
  -n NTH      the n-th time from now, and from then on
It is a breakpoint like others: `info breakpoints`, `delete N`."""
    example = "slab break alloc -c inode -n 3"
    valued, least, most = "can", 1, 1
    wants = "wants alloc, free, grow, reap or error"

    def run(self, args):
        event = args.word()
        if event not in EVENTS:
            raise Fail(self.wants)
        cache, address = args.get("c"), args.get("a")
        if cache is not None:
            Heap().cache(cache)
        if address is not None:
            if event in ("grow", "reap"):
                raise Fail("-a goes with alloc, free and error")
            address = common.parse_address(address)
        nth = args.number("n", 1)
        if nth < 1:
            raise Fail("-n wants a number from 1 on")
        HeapBreakpoint(event, cache, address, nth)

    def complete(self, text, word):
        return [e for e in EVENTS if e.startswith(word)] + \
            slab_heap.complete_cache(word)


Break()
