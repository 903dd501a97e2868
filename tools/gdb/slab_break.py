"""slab break: stops at an event of the heap."""

import gdb

import target
from command import Command, parse_address
from heap import Cache, Heap
from target import Fail, record, register


def error_text(kind, member="title"):
    """The kernel's sentence for an error, or another member of its entry."""
    return target.elements("errors", "report.c")[kind][member].string()


# The functions of the events. Their first argument, the cache or the error,
# comes in EAX, the second, the buffer, in EDX (-mregparm=3).
EVENTS = {"alloc": "kmem_cache_alloc", "free": "kmem_cache_free",
          "grow": "kmem_cache_grow", "reap": "kmem_cache_reap",
          "error": "kmem_error"}


class HeapBreakpoint(gdb.Breakpoint):
    """Stops if the event is the one that was asked for."""

    def __init__(self, event, cache, address, nth):
        self.event, self.name, self.buffer = event, cache, address
        self.nth, self.seen = nth, 0
        super().__init__(f"*{EVENTS[event]}")

    def stop(self):
        target.forget()
        try:
            return self.wanted()
        except (Fail, gdb.error, *target.UNREADABLE) as e:
            print(f"slab break {self.event}: {e}")
            return True

    def wanted(self):
        what, cache, buffer = self.happened()
        name = cache.name if cache else "none"
        if self.name not in (None, name) or self.buffer not in (None, buffer):
            return False
        self.seen += 1
        if self.seen < self.nth:
            return False
        print(f"slab break {self.event}: {what}cache {name}"
              + (f", object 0x{buffer:08x}" if buffer else "")
              + (f", number {self.seen}" if self.nth > 1 else ""))
        return True

    def happened(self):
        """(further text to print, cache, buffer)"""
        first = register("eax")
        if self.event == "error":
            e = record("kmem_error_record", first)
            return f"{error_text(e.error_kind, 'name')}, ", \
                e.error_cache and record("kmem_cache", e.error_cache), \
                e.error_base or e.error_buf
        heap, buffer = Heap(), None
        cache = Cache(heap, first)
        if self.event == "alloc":
            # An allocation will hand out the first of the freelist.
            slab = heap.slab_of(cache.freelist)
            buffer = slab and slab.buffer_of(slab.head)
        elif self.event == "free":
            buffer = register("edx")
        return "", cache, buffer


class Break(Command):
    """slab break [-c CACHE] [-a ADDR] [-n NTH] alloc|free|grow|reap|error
    Stop at an event of the heap.
    Before it happens: an object is allocated, or freed; a cache gets a slab, or
    is asked to release some; the allocator reports an error.
      -c CACHE    only of this cache
      -a ADDR     only of the object at this address
      -n NTH      the n-th time from now, and from then on
    It is a breakpoint like others: `info breakpoints`, `delete N`.
    Example: slab break alloc -c inode -n 3"""

    def run(self, args):
        event, address, name = args.word(), args.get("a"), args.get("c")
        if event not in EVENTS:
            raise self.misuse
        if address and event in ("grow", "reap"):
            raise Fail("-a goes with alloc, free and error")
        HeapBreakpoint(event, name and Heap().cache(name).name,
                       address and parse_address(address),
                       args.number("n", 1, 1))
