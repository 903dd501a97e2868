"""Pretty-printers for the heap's structures, and the convenience functions that
lead from an address to its cache, slab and object. `print/r` shows a structure
as C has it.
"""

import gdb
import gdb.printing

import common
import slab_buf
import slab_heap
from common import WORD_MASK, BadMemory, Broken
from slab_heap import Heap


def _safely(text):
    """What `text()` gives, or why it cannot be had."""
    try:
        return text()
    except (BadMemory, Broken, common.Fail, gdb.error) as e:
        return f"! {e}"


def _members(value):
    """Those of anonymous structures and unions included."""
    for field in value.type.fields():
        if field.name:
            yield field.name, value[field]
        else:
            yield from _members(value[field])


class _Printer:
    """A line that says what it is; the members below it as they are."""

    def __init__(self, value):
        self.value = value
        self.address = int(value.address) & WORD_MASK if value.address else 0

    def to_string(self):
        if not self.address:
            return "not in memory"
        return _safely(self.summary)

    def children(self):
        yield from _members(self.value)


class CachePrinter(_Printer):
    def summary(self):
        c = slab_heap.Cache(self.address)
        return f"cache {c.name}: {c.size} bytes, {c.inuse} of {c.total} in " \
               f"use, {common.plural(c.slabs, 'slab')} of {c.slab_objects}" \
               f"{' ! counts contradict each other' if c.bad else ''}"


class SlabPrinter(_Printer):
    def summary(self):
        raw = common.record("struct kmem_slab", self.address)
        cache = slab_heap.Cache(raw.slab_cache)
        if self.address == cache.null:
            return f"head of the slabs of {cache.name}"
        slab = slab_heap.Slab(cache, self.address)
        return f"slab of {cache.name}: {slab.state_name}, {slab.refcnt} of " \
               f"{slab.chunks} used, colour {slab.colour}, page " \
               f"0x{slab.base:08x}"


class BufctlPrinter(_Printer):
    def summary(self):
        heap = Heap()
        place = heap.whose(self.address)
        if place is None or not place[0].name.startswith("kmem_bufctl"):
            # A free small buffer is its own: only the link is there.
            return "link in a free buffer"
        raw = slab_heap.bufctl(self.address)
        return f"bufctl of 0x{raw.bufctl_addr:08x}, slab " \
               f"0x{raw.bufctl_slab:08x}"

    def children(self):
        if self.address and \
                _safely(self.summary) == "link in a free buffer":
            yield "bufctl_next", self.value["bufctl_next"]
        else:
            yield from super().children()


class PagePrinter(_Printer):
    def summary(self):
        pages = slab_heap.Pages()
        i, rest = divmod(self.address - pages.base, pages.layout.size)
        page = common.record("struct page", self.address)
        text = pages.state_name(page.page_state)
        if rest or not 0 <= i < pages.count:
            return f"! no entry of the page array, {text}"
        if pages.is_state(page, "PAGE_SLAB", "PAGE_HASH") and page.page_owner:
            text += f" of {slab_heap.Cache(page.page_owner).name}"
        return f"frame {i}, {text}"


class ListPrinter:
    """Shown in one line: links are in everything."""

    LIMIT = 1000

    def __init__(self, value):
        self.value = value
        self.address = int(value.address) & WORD_MASK if value.address else 0

    def to_string(self):
        following = int(self.value["next"]) & WORD_MASK
        previous = int(self.value["prev"]) & WORD_MASK
        links = f"next 0x{following:08x}, prev 0x{previous:08x}"
        if not self.address or following == 0:
            return links
        if following == self.address:
            return "empty"
        return f"{_safely(self.length)}: {links}"

    def length(self):
        try:
            n = sum(1 for _ in common.walk_list(self.address, self.LIMIT))
        except Broken as e:
            if "longer than" in str(e):
                return f"more than {self.LIMIT} others"
            raise
        return f"{common.plural(n, 'other')}"


def _register():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("slate-heap")
    for name, printer in (("kmem_cache", CachePrinter),
                          ("kmem_slab", SlabPrinter),
                          ("kmem_bufctl", BufctlPrinter),
                          ("page", PagePrinter), ("list", ListPrinter)):
        printers.add_printer(name, f"^{name}$", printer)
    gdb.printing.register_pretty_printer(None, printers, replace=True)


# ---- convenience functions -------------------------------------------------

def _pointer(name, address):
    kind = common.ctype(f"struct {name}") if name else \
        gdb.lookup_type("void")
    return gdb.Value(address).cast(kind.pointer())


class _Function(gdb.Function):
    """A function whose errors are one line each. It reads anew, as those of
    objects_print.py do."""

    def __init__(self):
        super().__init__(self.name)

    def invoke(self, argument):
        common.forget()
        try:
            common.need_target()
            return self.call(argument)
        except (common.Fail, BadMemory, Broken) as e:
            raise gdb.GdbError(f"${self.name}: {e}") from e


class CacheByName(_Function):
    """$cache("NAME"): the struct kmem_cache of that name.
Example: print $cache("inode")->cache_size"""

    name = "cache"

    def call(self, argument):
        return _pointer("kmem_cache",
                        Heap().cache(argument.string()).address)


class _OfAddress(_Function):
    def call(self, argument):
        heap = Heap()
        address = int(argument) & WORD_MASK
        return self.of(heap, address, heap.whose(address))


class SlabCache(_OfAddress):
    """$slab_cache(ADDR): the cache whose slab holds the address, or NULL.
Example: print $slab_cache($cache("inode"))->cache_name"""

    name = "slab_cache"

    def of(self, heap, address, place):
        return _pointer("kmem_cache", place[0].address if place else 0)


class SlabBase(_OfAddress):
    """$slab_base(ADDR): where the object begins that the address is in, or
NULL.
Example: print $slab_base($cache("inode"))"""

    name = "slab_base"

    def of(self, heap, address, place):
        inside = place and place[2] is not None
        return _pointer("", place[1].chunk(place[2]) if inside else 0)


class SlabState(_OfAddress):
    """$slab_state(ADDR): "used" or "free" of an object, "none" elsewhere.
Example: print $slab_state($cache("inode"))"""

    name = "slab_state"

    def of(self, heap, address, place):
        if place is None or place[2] is None:
            return "none"
        used = place[1].bitmap(heap.pages)[0][place[2]]
        return "used" if used else "free"


class SlabOwner(_Function):
    """$slab_owner(ADDR): who had the object last that the address is in:
"TASK NAME CALLER" of a cache in mode U, else why nobody knows.
Example: print $slab_owner($cache("inode"))"""

    name = "slab_owner"

    def call(self, argument):
        buffer = slab_buf.buffer_at(Heap(), int(argument) & WORD_MASK)
        if buffer is None:
            return "no object"
        trans = buffer.free if buffer.state == slab_buf.FREE else buffer.alloc
        if not buffer.audited:
            return f"not recorded: {buffer.cache.name} is not in mode U"
        if not trans.depth:
            return "nobody yet"
        return f"{trans.task} {slab_buf.task_name(trans.task)} {trans.caller}"


_register()
for _function in (CacheByName, SlabCache, SlabBase, SlabState, SlabOwner):
    _function()
