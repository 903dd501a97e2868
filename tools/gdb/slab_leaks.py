"""slab leaks: the objects that no pointer leads to, as mm/kmem_leak.c finds
them."""

import gdb

import slab_log
import system
import target
from command import Command
from heap import Heap
from slab_address import REGISTERS
from target import (PAGE_MASK, PAGE_SHIFT, UNREADABLE, WORD,
                    BadMemory, linker, read, register, words)

# The allocator's own records are no pointers to objects.
REMEMBERED = "kmem_last_error", "rings"


def roots(pages):
    """[(from, end)] of all memory where the search begins, but registers: the
    kernel's data, stacks, memory of kmem_alloc above the size classes."""
    boot = linker("boot_stack_bottom"), linker("boot_stack_top")
    found = [(linker("data_start"), linker("data_end")),
             (linker("bss_start"), boot[0]), (boot[1], linker("bss_end"))]
    pointer = register("esp") if gdb.selected_thread() else 0
    if boot[0] <= pointer < boot[1]:
        found.append((pointer, boot[1]))
    try:
        for bottom, top, saved, _ in system.stacks():
            if bottom != boot[0] or not boot[0] <= pointer < boot[1]:
                found.append((pointer if bottom <= pointer < top else saved,
                              top))
    except UNREADABLE as e:
        print(f"! tasks: {e}; the stacks of the others are not searched")
    found += pages.in_state("large")
    for name in REMEMBERED:
        value = target.variable(name)
        start = int(value.address) & target.WORD_MASK
        end = start + value.type.sizeof
        found = [part for a, b in found for part in
                 ([(a, start), (end, b)] if a <= start < b else [(a, b)])]
    return found


class Scan:
    """Marks what is reached from the roots, and from there on."""

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
        """Every aligned word; pages that are not there are left out."""
        at = -(-start // WORD) * WORD
        while at < end:
            stop = min((at | PAGE_MASK) + 1, end)
            try:
                for value in words(read(at, stop - at)):
                    if value:
                        self.reach(meaning(value))
            except BadMemory:
                pass
            at = stop

    def directory(self, value):
        """The address that a page directory's word leads to."""
        return self.heap.pages.virtual(value >> PAGE_SHIFT) if value & 1 else 0

    def run(self):
        for start, end in roots(self.heap.pages):
            self.bytes += end - start
            self.search(start, end)
        if gdb.selected_thread():
            for name in REGISTERS:
                self.reach(register(name))
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
        slab_log.print_suspects(
            found, f"; {len(scan.reached)} of {sum(s.refcnt for s in slabs)} "
            f"are reached from {scan.bytes >> 10} KiB of roots", "j" in args)
