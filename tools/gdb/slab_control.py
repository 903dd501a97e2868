"""slab debug: the debugging modes and the last error (paper, section 6). slab
trace and slab fail set the kernel's own variables, so they can switch a
stopped machine, too. slab break stops at an event of the heap."""

import gdb

import target
from command import Command, Table, parse_address, parse_number, plural
from heap import Cache, Heap, mode_bits
from slab_caches import NAME
from slab_log import Log
from target import Fail, constant, record, register


def error_text(kind, member="title"):
    """The kernel's sentence for an error, or another member of its entry."""
    return target.elements("errors", "report.c")[kind][member].string()


class Debug(Command):
    """slab debug [-j]
    The debugging modes of the caches, and the last error.
    A row for each cache in any mode; then the action after an error, the last
    error, and the log."""

    def run(self, args):
        heap = Heap()
        table = Table(f"{NAME} MODES:-7 INUSE:6 SLABS:6 CHUNK:6", "j" in args)
        for c in heap.caches:
            if c.mode_text and (c.slabs or c.kind_name != "class"):
                table.row(c.name, c.mode_text, c.inuse, c.slabs, c.chunk)
        none = sum(not c.mode_text for c in heap.caches)
        table.say(f"{plural(none, 'cache')} in no mode")
        count = target.integer("kmem_error_count")
        kind = int(target.variable("kmem_last_error")["error_kind"])
        table.say("an error " + ("stops the machine" if target.integer(
            "kmem_error_panics") else "is reported") + f"; {count} so far" +
            (f", last: {error_text(kind)}" if count else ""))
        log = Log(heap)
        table.say(f"log: {log.kept} of {log.last} transactions kept")


def set_flags(cache, flags):
    """Changes flags that need no other layout."""
    if flags == cache.flags:
        return
    if getattr(cache.lock, "lock_taken", 0):
        raise Fail(f"the lock of {cache.name} is taken: let its holder finish")
    target.write(cache.where("flags"), flags)


class Trace(Command):
    """slab trace [NAME on|off]
    A line for each allocation and free of a cache.
    Without arguments the caches that are traced. With them sets mode T of a
    cache in the target's memory, as the shell's `trace` does; the lines appear
    on its console when it continues.
    Example: slab trace inode on"""

    def run(self, args):
        heap = Heap()
        if not args.words:
            print("\n".join(c.name for c in heap.caches if c.in_mode("T"))
                  or "(no cache is traced)")
            return
        if args.word(1) not in ("on", "off"):
            raise self.misuse
        cache, bit = heap.cache(args.word()), mode_bits()["T"]
        set_flags(cache, cache.flags | bit if args.word(1) == "on" else
                  cache.flags & ~bit)
        now = Cache(heap, cache.address)
        print(f"{cache.name}: {now.mode_text or '-'}, was "
              f"{cache.mode_text or '-'}")


FILE = "fail.c"


def failure(heap):
    """A description of the failure that is set."""
    f = target.record_of("set", FILE)
    kind = target.enumerators("kmem_fail_kind", "KMEM_FAIL_").get(f.fail_kind)
    if kind == "none":
        return "no failure is set"
    return (f"request {f.fail_nth}" if f.fail_nth else
            f"one request in {f.fail_rate}") + \
        f" for {'a page' if kind == 'page' else 'an object'}" + \
        (f" of {heap.name_at(f.fail_cache)}" if f.fail_cache else "") + \
        (f" by task {f.fail_task}" if f.fail_task else "") + \
        f": {target.integer('fitted', FILE)} so far, " \
        f"{target.integer('failed', FILE)} failed"


class FailCommand(Command):
    """slab fail [-c CACHE] [off|slab|page [N]]
    Failing allocations on purpose.
    Without arguments prints the setting. `slab fail slab 3` makes the third
    request for an object from now on fail, of those that may (KM_NOSLEEP);
    `page` counts requests for pages. It sets the workshop kernel's own
    variables, as its `fail` does.
      -c CACHE  only of this cache (slab)
    Example: slab fail slab 1 -c inode"""

    def run(self, args):
        if target.symbol("kmem_fail_set") is None:
            raise Fail("only the workshop kernel makes allocations fail: "
                       "`make gdb WORKSHOP=1`")
        heap, kind, name = Heap(), args.word(), args.get("c")
        if kind == "page" and name:
            raise Fail("pages are of no cache; -c goes with slab")
        if kind in ("slab", "page") and args.word(1):
            self.set(heap, kind, parse_number(args.word(1), 1, "N"),
                     name and heap.cache(name))
        elif kind not in (None, "off"):
            raise self.misuse
        print(failure(heap))
        if kind == "off":
            self.set(heap, "none", 0, None)

    @staticmethod
    def set(heap, kind, nth, only):
        for c in heap.caches:
            failing = kind == "slab" and (not only or c is only)
            set_flags(c, c.flags & ~constant("KMF_FAIL")
                      | constant("KMF_FAIL") * failing)
        for name in ("set", "fitted", "failed"):
            value = target.variable(name, FILE)
            target.write(int(value.address), 0, value.type.sizeof)
        f = target.record_of("set", FILE)
        target.write(f.where("fail_kind"),
                     constant(f"KMEM_FAIL_{kind.upper()}"))
        target.write(f.where("fail_nth"), nth)
        target.write(f.where("fail_cache"), only.address if only else 0)
        target.write(target.address_of("kmem_fail_hook"), kind != "none" and
                     target.address_of("request_fails", FILE))


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
