"""slab whatis, refs: what is at an address, and the words that point there."""

import gdb

import system
import target
from command import Command, Hex, Table, parse_address, plural
from heap import Heap
from target import (PAGE_MASK, PAGE_SHIFT, WORD, constant, linker, register,
                    words)

REGISTERS = "eax", "ebx", "ecx", "edx", "esi", "edi", "ebp", "esp"


def registers():
    """{name: value} of the processor's registers; {} of a core without them."""
    return {name: register(name) for name in REGISTERS} \
        if gdb.selected_thread() else {}


def part_of_object(b, offset):
    """The name of the part of its chunk that an offset is in."""
    c = b.cache
    if not c.hashed and not b.used and offset >= c.chunk - WORD:
        return "the link to the next free object"
    if offset < b.size:
        return "in the object"
    if not c.in_mode("Z"):
        return "beyond the object, in the chunk's padding"
    if offset >= c.redzone_end:
        return "in the redzone before the next object"
    return "in the redzone after the " + \
        ("requested size" if offset < c.size else "object")


def part_of_slab(slab, address):
    """The name of the part of a slab outside of chunks that has the address."""
    c, offset = slab.owner, address - slab.base
    if offset < slab.colour:
        redzone = c.in_mode("Z") and \
            offset + constant("KMEM_GUARD_FRONT") >= slab.colour
        return "the redzone before the first object" if redzone else \
            "the colour gap before the first object"
    return "the kmem_slab at the end" \
        if offset >= c.slab_bytes - c.header else "the unused tail"


def print_place(slab, address):
    """Prints all that is known of an address in a slab."""
    c, index = slab.owner, slab.index(address)
    if index is None:
        print(f"no object: {part_of_slab(slab, address)} of a slab of cache "
              f"{c.name}, base + {address - slab.base}")
    else:
        b = slab.buffers[index]
        offset = address - b.address
        print(f"object {index} of cache {c.name}, {b.state}: "
              f"0x{b.address:08x} + {offset}, {part_of_object(b, offset)}")
        if b.size != c.size:
            print(f"size of the request: {b.size}")
        b.print_life()
    if slab.number is None:
        print("its page is unmapped (mode S)")
        return
    print(f"{'! ' if slab.wrong else ''}slab 0x{slab.address:08x}, base "
          f"0x{slab.base:08x}, number {slab.number + 1} of {c.slabs}: "
          f"{slab.state}, {slab.refcnt} of {slab.chunks} used")


def print_use(address):
    """Prints the part of the kernel's image there, and the stack's task."""
    if target.is_code(address):
        print(f"code: {target.symbol_text(address)}")
    elif linker("rodata_start") <= address < linker("rodata_end"):
        print("read-only data of the kernel")
    elif linker("rodata_end") <= address < linker("image_end"):
        print(f"data: {target.symbol_text(address)}")
    task = system.on_stack(address)
    if task:
        print(f"on the stack of task {task.task_pid} ({task.task_name})")


class Whatis(Command):
    """slab whatis ADDR
    The page, cache and object at an address.
    The frame that holds the address and its owner; in a slab also the cache,
    the object's index, whether it is in use, which part of it the address is
    in, and of caches in mode U its last transactions; of memory that mode S
    unmapped, its last use. ADDR is any expression.
    Example: slab whatis kmem_cache_alloc"""

    def run(self, args):
        address, heap = parse_address(args.word()), Heap()
        if address < heap.pages.kernel_base:
            print(f"0x{address:08x}: an address of programs; `slate space` "
                  "shows the pages of one")
        elif heap.pages.frame(address) is None:
            print(f"0x{address:08x}: no memory that the kernel manages")
        else:
            self.managed(heap, address, heap.pages.frame(address))

    def managed(self, heap, address, frame):
        pages = heap.pages
        state, head = pages.state(frame), pages.head(frame)
        order = "" if pages.state(head) not in ("free", "allocated") else \
            f" (order {pages.page(head).order}, from frame {head})"
        print(f"0x{address:08x}: frame {frame}, {pages.state(head)}{order}, "
              f"physical 0x{(frame << PAGE_SHIFT) + (address & PAGE_MASK):08x}")
        print_use(address)
        slab = heap.slab_of(pages.owner(frame)) if state == "unmapped" \
            else heap.slab_at(address)
        if slab:
            print_place(slab, address)
        elif state == "hash":
            print(f"hash table of cache {heap.name_at(pages.owner(frame))}")
        elif state not in ("kernel", "user"):
            print("in no slab")


def memory(heap):
    """(address, contents) of all memory that may hold pointers: data, slabs
    and hash tables; page by page."""
    runs = [(linker("data_start"), linker("bss_end"))]
    runs += [(i << PAGE_SHIFT, (i + 1) << PAGE_SHIFT)
             for i in sorted(heap.slabs_by_page)]
    for start, end in runs + heap.pages.in_state("hash"):
        yield from target.present(start, end)


def holder(heap, address):
    """(name of the thing that holds a word, whether that is in use)"""
    slab, pages = heap.slabs_by_page.get(address >> PAGE_SHIFT), heap.pages
    if slab is None:
        frame = pages.frame(address)
        return (f"hash table of {heap.name_at(pages.owner(frame))}"
                if pages.state(frame) == "hash" else
                target.symbol_text(address)), True
    index = slab.index(address)
    if index is None:
        return f"{part_of_slab(slab, address)} of {slab.owner.name}", True
    start = slab.address_of(index)
    return f"object 0x{start:08x} of {slab.owner.name} + {address - start}", \
        index not in slab.free_links


class Refs(Command):
    """slab refs ADDR
    The words that point here.
    Looks at the kernel's data, the registers, every object in use and the hash
    tables for words that lead to ADDR; if that is in an object, into any part
    of the object.
      WHERE   the word, and what it is part of
      POINTS  where to, from the beginning of the object
    Example: slab refs $cache("inode")"""

    def run(self, args):
        heap, start = Heap(), parse_address(args.word())
        b, end, text = heap.buffer_at(start), start + 1, "no object"
        if b:
            start, end = b.address, b.address + b.cache.size
            text = f"object {b.index} of {b.cache.name}, {b.state}"
        print(f"0x{start:08x}: {text}")
        table, stale = Table("WHERE:-10 POINTS:6 HOLDER:-1"), 0
        for name, value in registers().items():
            if start <= value < end:
                table.row(f"${name}", f"+{value - start}", "register")
        for base, data in memory(heap):
            for at, value in enumerate(words(data)):
                at = base + at * WORD
                if start <= value < end and not start <= at < end:
                    text, used = holder(heap, at)
                    if used:
                        table.row(Hex(at), f"+{value - start}", text)
                    stale += not used
        print(plural(table.rows, "reference") +
              (f"; {stale} more in free objects" if stale else ""))
