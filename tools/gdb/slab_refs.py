"""slab refs: who points here. A conservative scan, of all words that the kernel
can reach: its data, the registers, every object of every slab (the stacks of
tasks are objects, too) and the hash tables.
"""

import bisect

import gdb

import common
from common import PAGE_SHIFT, PAGE_SIZE, WORD, BadMemory, Broken, Command
from slab_heap import Heap

REGISTERS = ("eax", "ebx", "ecx", "edx", "esi", "edi", "ebp", "esp")


def words_of(data):
    """The 32-bit words of some memory."""
    return memoryview(data[:len(data) & ~(WORD - 1)]).cast("I")


def data_range():
    """Where the kernel's variables are: (first, end)."""
    return common.linker("data_start"), common.linker("bss_end")


class Index:
    """All slabs by their pages, to find what holds an address quickly."""

    def __init__(self, heap):
        self.heap, self.slabs, self.maps = heap, [], {}
        for cache in heap.caches:
            try:
                self.slabs.extend(cache.slab_list())
            except (Broken, BadMemory):
                pass
        self.slabs.sort(key=lambda s: s.base)
        self.bases = [s.base for s in self.slabs]

    def slab(self, address):
        i = bisect.bisect_right(self.bases, address) - 1
        if i < 0 or address >= self.bases[i] + self.slabs[i].bytes:
            return None
        return self.slabs[i]

    def used(self, slab, index):
        if slab.address not in self.maps:
            self.maps[slab.address] = slab.bitmap(self.heap.pages)[0]
        return self.maps[slab.address][index]

    def object(self, address):
        """(slab, index) of the buffer around an address, or None."""
        slab = self.slab(address)
        index = slab.index(address) if slab else None
        return None if index is None else (slab, index)


def regions(index):
    """(address, bytes) of all memory that may hold pointers: data, slabs and
    hash tables; page by page, as stacks have pages that are not mapped."""
    first, end = data_range()
    runs = [(first, end), *((s.base, s.base + s.bytes) for s in index.slabs)]
    for start, stop in runs:
        for base in range(start, stop, PAGE_SIZE):
            try:
                yield base, common.read_run(base, min(PAGE_SIZE, stop - base))
            except BadMemory:
                pass
    pages = index.heap.pages
    states = pages.columns[0]
    at = states.find(bytes([pages.state["PAGE_HASH"]]))
    while at >= 0:
        base = pages.virtual(at)
        yield base, common.read_run(base, PAGE_SIZE)
        at = states.find(bytes([pages.state["PAGE_HASH"]]), at + 1)


def variable_at(address):
    """name+offset of the variable there, static ones included."""
    text = gdb.execute(f"info symbol {address}", to_string=True)
    if " in section" not in text:
        return "no symbol"
    return text.split(" in section")[0].replace(" + ", "+")


def holder(index, address):
    """What a word in memory is part of."""
    slab = index.slab(address)
    if slab is None:
        page = index.heap.pages.at(address)
        if index.heap.pages.is_state(page, "PAGE_HASH"):
            owner = index.heap.cache_at(page.page_owner)
            return f"hash table of {owner.name if owner else '?'}"
        return variable_at(address)
    i = slab.index(address)
    if i is None:
        header = address >= slab.base + slab.bytes - slab.cache.header
        return f"{'kmem_slab' if header else 'rest of a slab'} of " \
               f"{slab.cache.name}"
    state = "" if index.used(slab, i) else ", free"
    return f"object 0x{slab.chunk(i):08x} of {slab.cache.name} + " \
           f"{address - slab.chunk(i)}{state}"


class Refs(Command):
    name = "slab refs"
    usage = "[-a] ADDR"
    summary = "Who points here"
    details = """\
Looks at the kernel's data, the registers, every object and the hash tables for
words that lead to ADDR; if that is in an object, into any part of the object.
  WHERE   the word, and what it is part of
  POINTS  where to, from the beginning of the object
What a free object points to is stale: such words come only with -a."""
    example = "slab refs $cache(\"inode\")"
    options, least, joined = "a", 1, True
    wants = "wants one address; `slab refs 0xc0123456`"

    def run(self, args):
        address = common.parse_address(args.word())
        index = Index(Heap())
        start, end, what = address, address + 1, "no object"
        found = index.object(address)
        if found:
            slab, i = found
            start, end = slab.chunk(i), slab.chunk(i) + slab.cache.size
            state = "in use" if index.used(slab, i) else "free"
            what = f"object {i} of {slab.cache.name}, {state}"
        print(f"0x{start:08x}: {what}")
        table = common.Table(("WHERE", -10), ("POINTS", 6), ("HOLDER", -1))
        table.head()
        n, stale = self.registers(table, start, end), 0
        for where, value in self.matches(index, start, end):
            if start <= where < end:
                continue
            text = holder(index, where)
            if text.endswith(", free") and "a" not in args:
                stale += 1
                continue
            table.row(f"0x{where:08x}", f"+{value - start}", text)
            n += 1
        print(common.plural(n, "reference") +
              (f"; {stale} more in free objects (-a)" if stale else ""))

    def matches(self, index, start, end):
        for base, data in regions(index):
            for i, value in enumerate(words_of(data)):
                if start <= value < end:
                    yield base + i * WORD, value

    def registers(self, table, start, end):
        n = 0
        try:
            frame = gdb.newest_frame()
        except gdb.error:
            return 0
        for name in REGISTERS:
            value = int(frame.read_register(name)) & common.WORD_MASK
            if start <= value < end:
                table.row(f"${name}", f"+{value - start}", "register")
                n += 1
        return n


Refs()
