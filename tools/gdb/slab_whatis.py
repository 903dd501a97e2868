"""slab whatis: what an address is. slab map: the slab around it, byte for
byte (paper, section 3.2). As kernel/shell/cmd_kmem_whatis.c.
"""

import common
import slab_log
from common import (PAGE_MASK, PAGE_SHIFT, WORD, BadMemory, Broken, Command,
                    Fail)
from slab_heap import KINDS, Heap, bufctl
from slab_buf import BAD, FREE, USED, buffers, unmapped
from slab_user import print_mappers, print_user
from slab_verify import note_broken, slab_wrong


class Place:
    """An address inside a slab, and all that there is to know of it."""

    def __init__(self, heap, address, cache, slab, index):
        self.heap, self.address = heap, address
        self.cache, self.slab, self.index = cache, slab, index
        self.used, self.sound = slab.bitmap(heap.pages)
        self.buffers = list(buffers(slab, heap.pages))
        self.buffer = self.buffers[index] if index is not None else None

    @classmethod
    def find(cls, heap, address):
        found = heap.whose(address)
        return cls(heap, address, *found) if found else None

    @property
    def start(self):
        """Where the object begins."""
        return self.slab.chunk(self.index)

    def part(self):
        """Which part of its chunk the address is in."""
        offset, b, c = self.address - self.start, self.buffer, self.cache
        if not c.hashed and b.state == FREE and offset >= c.chunk - WORD:
            return "the link to the next free object"
        if offset < b.size:
            return "in the object"
        if not c.in_mode("Z"):
            return "beyond the object, in the chunk's padding"
        if offset >= c.guard:
            return "in the redzone before the next object"
        return "in the redzone behind what was asked for" \
            if offset < c.size and b.state == USED else \
            "in the redzone behind the object"

    def outside(self):
        """The same of an address in no chunk."""
        offset = self.address - self.slab.base
        front = common.macros("mm/debug/debug_impl.h")["KMEM_GUARD_FRONT"]
        if offset < self.slab.colour:
            if self.cache.in_mode("Z") and offset + front >= self.slab.colour:
                return "the redzone before the first object"
            return "the colour gap before the first object"
        if offset >= self.slab.bytes - self.cache.header:
            return "the kmem_slab at the end"
        return "the unused tail"

    def print_slab(self):
        c, slab = self.cache, self.slab
        if self.index is None:
            print(f"no object: {self.outside()} of a slab of cache {c.name}, "
                  f"base + {self.address - slab.base}")
        else:
            print(f"object {self.index} of cache {c.name}, "
                  f"{self.buffer.state_text}: "
                  f"0x{self.start:08x} + {self.address - self.start}, "
                  f"{self.part()}")
            if self.buffer.size != c.size:
                print(f"{self.buffer.size} bytes were asked for")
            if self.buffer.state == USED and c.kind == KINDS.index("internal"):
                print_own(self.heap, c, self.start)
            self.buffer.print_life()
        bad = "! " if slab_wrong(self.heap, slab) else ""
        print(f"{bad}slab 0x{slab.address:08x}, base 0x{slab.base:08x}, number "
              f"{slab.number + 1} of {c.slabs}: {slab.state_name}, "
              f"{slab.refcnt} of {slab.chunks} used")


def print_symbol(address):
    """What of the kernel's image is there."""
    if common.symbol_lookup(address):
        print(f"code: {common.symbol_format(address)}")
    elif common.linker("rodata_start") <= address < \
            common.linker("rodata_end"):
        print("read-only data of the kernel")
    elif common.linker("rodata_end") <= address < common.linker("image_end"):
        name, offset = common.symbol_object(address) or ("?", 0)
        print(f"data: {name}+0x{offset:x}")


def print_stack(address):
    """Whose stack is there."""
    bottom = common.linker("boot_stack_bottom")
    head = common.address_of("all_tasks", "task.c")
    try:
        for link in common.walk_list(head, limit=1 << 16):
            task = common.container("struct task", "task_all_link", link,
                                    home="task_create")
            if (task.task_kstack or bottom) <= address < task.task_stack_top:
                print(f"on the stack of task {task.task_pid} "
                      f"({task.task_name})")
                return
    except (Broken, BadMemory) as e:
        print(f"! tasks: {e}")
    if bottom <= address < common.linker("boot_stack_top"):
        print("on the stack of task 1 (kernel)")


def print_former(heap, address):
    """The slab that was last on a frame that buddy has back, if it is still
    known, and the object."""
    for event in slab_log.ring_events("slab"):
        if event.event_slab >> PAGE_SHIFT == address >> PAGE_SHIFT:
            print("the last slab that began here was of cache "
                  f"{event.event_name}: {slab_log.why_text(event.event_why)}")
            break
    entry = slab_log.newest(heap, address)
    if entry:
        print(f"the last object here was 0x{entry.buf:08x} of cache "
              f"{entry.cache}")
        entry.trans.show("freed" if entry.op == "free" else "allocated")


def print_unmapped(heap, address):
    """What debugging mode S took away."""
    found = unmapped(heap, address)
    if found is None:
        return
    cache, buffer = found
    text = f"unmapped: a slab of cache {cache.name} was here"
    if buffer:
        text += f", and object {buffer.index}: 0x{buffer.address:08x} + " \
                f"{address - buffer.address}"
    print(text)
    if buffer:
        buffer.print_life()


def owner_name(heap, address):
    """The name of a cache; "" of NULL, "! no cache" of anything else."""
    cache = heap.cache_at(address)
    return cache.name if cache else "! no cache" if address else ""


def print_own(heap, cache, start):
    """What an object in use of one of the allocator's own caches is for."""
    if cache.name.startswith("kmem_bufctl"):
        buf = bufctl(start).bufctl_addr
        place = heap.whose(buf)
        print(f"bufctl of object 0x{buf:08x} of cache {place[0].name}"
              if place else f"! bufctl of 0x{buf:08x}, which is no object")
    elif cache.name == "kmem_slab":
        raw = common.record("struct kmem_slab", start)
        print(f"slab data of cache {owner_name(heap, raw.slab_cache)}, slab "
              f"base 0x{raw.slab_base:08x}")
    elif cache.name == "kmem_hash":
        owner = next((c.name for c in heap.caches
                      if c.hashed and c.raw.cache_hash == start), None)
        print(f"hash table of cache {owner}" if owner else
              "! hash table of no cache")
    elif heap.cache_at(start):
        print(f"the cache {owner_name(heap, start)} itself")


# ---- whatis ----------------------------------------------------------------

class Whatis(Command):
    name = "slab whatis"
    usage = "ADDR"
    summary = "What an address is: page, cache, object"
    details = """\
The frame that holds the address and its owner; in a slab also the cache, the
object's index, whether it is in use, which part of it the address is in, and
of caches in mode U who had it last; of memory that mode S took away, what it
was. Of the allocator's own objects what they are for, of a program's page who
has it mapped.
ADDR is a number, a symbol, a variable of this frame or an expression."""
    example = "slab whatis kmem_cache_alloc"
    least, joined = 1, True
    wants = "wants one address; `slab whatis 0xc0123456`"

    def run(self, args):
        address = common.parse_address(args.word())
        heap = Heap()
        if address < heap.pages.kernel_base:
            print_user(heap.pages, address)
        elif heap.pages.frame(address) is None:
            print(f"0x{address:08x}: no memory that the kernel manages")
        else:
            self.managed(heap, address)

    def managed(self, heap, address):
        pages = heap.pages
        frame = pages.frame(address)
        page = pages.page(frame)
        self.frame(pages, frame, address)
        print_symbol(address)
        print_stack(address)
        place = Place.find(heap, address)
        if place:
            place.print_slab()
        elif pages.is_state(page, "PAGE_UNMAPPED"):
            print_unmapped(heap, address)
        elif pages.is_state(page, "PAGE_HASH"):
            print("hash table of cache "
                  f"{owner_name(heap, page.page_owner)}")
        elif pages.is_state(page, "PAGE_USER"):
            print_mappers(pages, frame)
        elif not pages.is_state(page, "PAGE_KERNEL"):
            print(f"in no slab; `pages 0x{address:x}` shows the frames "
                  "around it")
            print_former(heap, address)

    def frame(self, pages, frame, address):
        head = pages.block_head(frame)
        page = pages.page(frame)
        first = pages.page(head) if pages.is_state(page, "PAGE_TAIL") else page
        order = ""
        if pages.is_state(first, "PAGE_FREE", "PAGE_ALLOC"):
            order = f" (order {first.page_order}, from frame {head})"
        physical = (frame << PAGE_SHIFT) + (address & PAGE_MASK)
        print(f"0x{address:08x}: frame {frame}, "
              f"{pages.state_name(first.page_state)}{order}, physical "
              f"0x{physical:08x}")


# ---- map -------------------------------------------------------------------

ROW_CHUNKS = 64
ROW_CELLS = 3


class Map(Command):
    name = "slab map"
    usage = "ADDR"
    summary = "One slab, a character per object"
    details = """\
The slab that holds the address: its colour gap, objects, tail and header,
then each object's offset from the slab's base, and of free ones LINK, the
next on the freelist; `>` marks the one that the address is in. Of caches in
mode U also who had the object last, when, and the caller."""
    example = "slab map $cache(\"inode\")"
    least, joined = 1, True
    wants = "wants one address; `slab slabs NAME` prints those of a cache"

    def run(self, args):
        address = common.parse_address(args.word())
        heap = Heap()
        place = Place.find(heap, address) \
            if address >= heap.pages.kernel_base else None
        if place is None:
            raise Fail(f"no slab holds 0x{address:x}; `slab whatis` says "
                       "what is there")
        place.print_slab()
        self.cells = [self.cell(place, i) for i in range(place.slab.chunks)]
        self.strip(place)
        self.chunks(place)
        note_broken(heap, place.cache)

    def cell(self, place, i):
        """A free object that is on no list, or a large one in use that the
        hash table does not know, is bad."""
        b, used = place.buffers[i], place.used[i]
        if (used and place.cache.hashed and not b.bufctl) or b.state == BAD:
            return "!"
        return "#" if used else "."

    def links(self, place):
        """Of each free object, the next on the freelist, or "end"."""
        steps = list(place.slab.steps(place.heap.pages))
        text = {}
        for (_, _, index, why), (_, _, then, wrong) in zip(
                steps, steps[1:] + [(0, 0, "end", None)]):
            if why is None:
                text[index] = "!" if wrong else str(then)
        return text

    def strip(self, place):
        slab, c = place.slab, place.cache
        tail = c.slab_left - slab.colour
        print(f"colour {slab.colour} | {slab.chunks} objects of {c.chunk} | "
              f"tail {tail} | header {c.header}")
        lines = []
        for i in range(0, slab.chunks, ROW_CHUNKS):
            gap = ":" if i == 0 and slab.colour else " "
            lines.append(f" +{slab.chunk(i) - slab.base:05x} {gap}" + "".join(
                self.cells[i:i + ROW_CHUNKS]))
        print("\n".join(lines) + ("=" if tail else "") +
              ("H" if c.header else ""))
        print("# used  . free  ! bad  : colour gap  = tail  H kmem_slab\n")

    def chunks(self, place):
        n, links = place.slab.chunks, self.links(place)
        audited = place.cache.in_mode("U")
        columns = 1 if audited else min(n, ROW_CELLS)
        head = "  ".join([f" {'IDX':>3} {'OFFSET':>6} STATE LINK"] * columns)
        if audited:
            head += f" {'OWNER':>5} {'AGE':>6}  CALLER"
        lines = [head]
        for i in range(0, n, columns):
            lines.append("  ".join(self.chunk(place, links, k) for k in
                                   range(i, min(i + columns, n))))
            if audited:
                lines[-1] += self.owner(place.buffers[i])
        print("\n".join(lines))

    def chunk(self, place, links, i):
        words = {"!": "!", "#": "used", ".": "free"}
        return f"{'>' if i == place.index else ' '}{i:3} " \
               f"0x{place.slab.chunk(i) - place.slab.base:04x} " \
               f"{words[self.cells[i]]:<5} {links.get(i, '-'):>4}"

    def owner(self, buffer):
        """The last transaction on it."""
        trans = buffer.free if buffer.state == FREE else buffer.alloc
        if not trans.depth:
            return f" {'-':>5} {'-':>6}  -"
        return f" {trans.task:5} {trans.age:>6}  {trans.caller}"


for _command in (Whatis, Map):
    _command()
