"""slab users: live memory summed by the stack that allocated it. slab old:
what has been live for long, the paper's way to find leaks (section 6.7). slab
leaks: what nothing points to. As kernel/shell/cmd_users.c and mm/debug/leak.c.
slab why: the objects that keep nearly free slabs alive.
"""

import common
import gdb
import slab_buf
import slab_heap
from common import (PAGE_MASK, PAGE_SHIFT, PAGE_SIZE, WORD, WORD_MASK,
                    BadMemory, Command, Fail, age, json_line, plural)
from slab_heap import KINDS, Heap
from slab_refs import REGISTERS, words_of
from slab_slabs import find_slab
from slab_stat import NAME, name_cell
from slab_verify import slab_wrong

TASKS_KEPT = 4


class Group:
    """Buffers of one cache, one size and one stack. Times in microseconds."""

    def __init__(self, buffer):
        self.cache, self.size = buffer.cache.name, buffer.size
        self.trans = buffer.alloc
        self.count = self.waste = self.ages = self.oldest = 0
        self.youngest, self.sample, self.tasks = None, 0, []

    def add(self, buffer, old):
        self.count += 1
        self.waste += max(0, buffer.cache.chunk - buffer.size)
        self.ages += old
        self.youngest = old if self.youngest is None else \
            min(self.youngest, old)
        if old >= self.oldest:
            self.oldest, self.sample = old, buffer.address
        if buffer.known and buffer.alloc.task not in self.tasks:
            self.tasks.append(buffer.alloc.task)

    @property
    def bytes(self):
        return self.count * self.size

    def row(self):
        tasks = ",".join(map(str, self.tasks[:TASKS_KEPT])) or "-"
        tasks += ",.." if len(self.tasks) > TASKS_KEPT else ""
        ages = "-" if not self.trans.depth else "/".join(
            age(us // 1000) for us in
            (self.youngest, self.ages // self.count, self.oldest))
        print(f"{self.bytes:9} {self.count:6} {self.size:6} {self.waste:7} "
              f"{ages:<20} {tasks:<9} {self.cache}")
        self.trans.print_stack(10)

    def suspect(self):
        oldest = age(self.oldest // 1000) if self.trans.depth else "-"
        print(f"{name_cell(self.cache)} {self.count:6} {self.bytes:9} "
              f"{oldest:>7} 0x{self.sample:08x} {self.trans.caller}")

    def json(self):
        json_line({"cache": self.cache, "bytes": self.bytes,
                   "count": self.count, "size": self.size,
                   "waste": self.waste,
                   "youngest_us": self.youngest if self.trans.depth else 0,
                   "oldest_us": self.oldest, "sample": self.sample,
                   "stack": self.trans.callers()})


class Groups:
    """All groups; `unaudited` counts buffers without a stack."""

    def __init__(self, min_age=0, audited_only=False):
        self.table, self.unaudited = {}, 0
        self.min_age, self.audited_only = min_age, audited_only

    def add(self, buffer):
        if buffer.state != slab_buf.USED:
            return
        old = buffer.alloc.ago if buffer.known else 0
        self.unaudited += not buffer.known
        if old < self.min_age or (self.audited_only and not buffer.known):
            return
        key = (buffer.cache.address, buffer.size, buffer.alloc.stack)
        self.table.setdefault(key, Group(buffer)).add(buffer, old)

    def add_cache(self, heap, cache):
        if cache.kind != KINDS.index("internal"):
            for buffer in slab_buf.walk(heap, cache):
                self.add(buffer)

    def sorted(self):
        return sorted(self.table.values(), key=lambda g: -g.bytes)

    def suspects(self, as_json):
        if not as_json:
            print(f"{'CACHE':<{NAME}} {'COUNT':>6} {'BYTES':>9} "
                  f"{'OLDEST':>7} {'SAMPLE':<10} CALLER")
        for group in self.sorted():
            group.json() if as_json else group.suspect()


def print_new_callers(since):
    """The groups of audited buffers that are all younger than a moment."""
    heap, groups = Heap(), Groups(0, True)
    for cache in heap.caches:
        groups.add_cache(heap, cache)
    if not groups.table:
        return
    now = common.clock_us()
    groups.table = {key: g for key, g in groups.table.items()
                    if now - g.oldest > since}
    print("\ncallers that are new:" + ("" if groups.table else " none"))
    if groups.table:
        groups.suspects(False)


class Users(Command):
    name = "slab users"
    usage = "[-j] [CACHE]"
    summary = "Live memory by the stack that allocated it"
    details = """\
Objects in use of one cache or of all, in groups of one cache, one size and one
chain of callers, which is below each row, nearest first. Most bytes first.
  BYTES COUNT SIZE  what was asked for; objects; of each
  WASTE             bytes of their chunks beyond that
  TASKS             who asked
Callers are known of caches in mode U.
  -j  JSON lines"""
    example = "slab users inode"
    options, most = "j", 1
    wants = "wants one cache at most; `slab users` shows all"

    def run(self, args):
        heap, groups = Heap(), Groups()
        one = heap.cache(args.word()) if args.words else None
        for cache in [one] if one else heap.caches:
            groups.add_cache(heap, cache)
        if "j" not in args and not groups.table:
            print(f"no object of {one.name if one else 'any cache'} is in use")
            return
        if "j" not in args:
            print(f"{'BYTES':>9} {'COUNT':>6} {'SIZE':>6} {'WASTE':>7} "
                  f"{'AGE-MIN/AVG/MAX':<20} {'TASKS':<9} CACHE")
        for group in groups.sorted():
            group.json() if "j" in args else group.row()
        if groups.unaudited and "j" not in args:
            print(f"{groups.unaudited} objects are of caches that are not in "
                  "mode U (`debug +U`)")

    def complete(self, text, word):
        return slab_heap.complete_cache(word)


class Old(Command):
    name = "slab old"
    usage = "[-j] SECONDS"
    summary = "Objects that have been out for long: suspects of a leak"
    details = """\
The paper's section 6.7: whatever was allocated so long ago and has not been
freed may have been forgotten. Of caches in mode U, in groups of one chain of
callers; SAMPLE is the oldest of each: `slab whatis SAMPLE`.
  -j  JSON lines"""
    example = "slab old 10"
    options, least, most = "j", 1, 1
    wants = "wants seconds; `slab old 3600` shows what has been out for an " \
            "hour"

    def run(self, args):
        old = common.parse_count(args.word(), "`slab old`")
        heap, groups = Heap(), Groups(old * 1000000, True)
        for cache in heap.caches:
            groups.add_cache(heap, cache)
        groups.suspects("j" in args)
        if "j" in args:
            return
        all_ = groups.table.values()
        print(f"suspect: {plural(sum(g.count for g in all_), 'object')}, "
              f"{sum(g.bytes for g in all_)} bytes, out for {old} s or more")
        if groups.unaudited:
            print(f"of {groups.unaudited} objects nobody knows the age: their "
                  "caches are not in mode U")


# ---- leaks -----------------------------------------------------------------

def roots(heap):
    """(from, end, what) of all memory where the search begins, the registers
    apart."""
    boot = common.linker("boot_stack_bottom"), common.linker("boot_stack_top")
    yield common.linker("data_start"), common.linker("data_end"), ".data"
    yield common.linker("bss_start"), boot[0], ".bss"
    yield boot[1], common.linker("bss_end"), ".bss"
    yield from stacks(boot)


def stacks(boot):
    """Those of all tasks, from where each stands."""
    pointer = int(gdb.newest_frame().read_register("esp")) & WORD_MASK \
        if gdb.selected_thread() else 0
    running = False
    head = common.address_of("all_tasks", "task.c")
    try:
        for link in common.walk_list(head, limit=1 << 16):
            task = common.container("struct task", "task_all_link", link,
                                    home="task_create")
            bottom = task.task_kstack or boot[0]
            here = bottom <= pointer < task.task_stack_top
            running = running or here
            start = pointer if here else task.task_esp
            yield start, task.task_stack_top, task.task_name
    except (common.Broken, BadMemory) as e:
        print(f"! tasks: {e}; the stacks of the others are not searched")
    if not running and boot[0] <= pointer < boot[1]:
        yield pointer, boot[1], "boot"


def is_of(heap, cache, name):
    """Whether a cache is the one of this name, or has what was out of it."""
    named = [c.address for c in heap.caches if c.name == name]
    return cache.address in named or cache.heir in named


class Scan:
    """A mark phase: what is reached from the roots, and from what is reached
    so."""

    def __init__(self, heap):
        self.heap, self.slabs = heap, {}  # by page: (slab, used, reached)
        self.all, self.todo, self.bytes = [], [], 0
        for cache in heap.caches:
            if cache.kind != KINDS.index("internal") and \
                    not cache.own_supplier:
                self.enter(cache, is_of(heap, cache, "kstack"))

    def enter(self, cache, is_root):
        try:
            for slab in cache.slab_list():
                used = slab.bitmap(self.heap.pages)[0]
                entry = (slab, used, set(), is_root)
                self.all.append(entry)
                for base in range(slab.base, slab.base + slab.bytes,
                                  PAGE_SIZE):
                    self.slabs[base >> PAGE_SHIFT] = entry
        except (common.Broken, BadMemory) as e:
            print(f"! {cache.name}: {e}")

    def reach(self, word):
        entry = self.slabs.get(word >> PAGE_SHIFT)
        if entry is None:
            return
        slab, used, reached, is_root = entry
        i = slab.index(word)
        if i is None or not used[i] or i in reached or \
                word - slab.chunk(i) >= slab.cache.size:
            return
        reached.add(i)
        if not is_root:
            self.todo.append((slab.chunk(i), slab.cache))

    def from_directory(self, word):
        """The address that a page directory's word stands for."""
        return self.heap.pages.virtual(word >> PAGE_SHIFT) if word & 1 else 0

    def read(self, start, end, pointer=lambda word: word):
        """Every aligned word; pages that are not there are left out."""
        at = -(-start // WORD) * WORD
        while at < end:
            stop = min((at | PAGE_MASK) + 1, end)
            try:
                for word in map(pointer,
                                words_of(common.read(at, stop - at))):
                    if word >> PAGE_SHIFT in self.slabs:
                        self.reach(word)
            except BadMemory:
                pass
            at = stop

    def read_root(self, start, end):
        self.bytes += end - start
        # What the allocator remembers is nobody's pointer.
        for skip in sorted((common.variable("kmem_last_error"),
                            common.variable("rings", "mm/debug/audit.c")),
                           key=lambda v: int(v.address) & WORD_MASK):
            at = int(skip.address) & WORD_MASK
            if start <= at < end:
                self.read(start, at)
                start = at + skip.type.sizeof
        self.read(start, end)

    def run(self):
        for start, end, _ in roots(self.heap):
            self.read_root(start, end)
        for name in REGISTERS:
            self.reach(int(gdb.newest_frame().read_register(name))
                       & WORD_MASK)
        pages = self.heap.pages
        for i, state in enumerate(pages.columns[0]):
            if state == pages.state["PAGE_LARGE"]:
                self.read_root(pages.virtual(i), pages.virtual(i) + PAGE_SIZE)
        while self.todo:
            start, cache = self.todo.pop()
            if is_of(self.heap, cache, "page_directory"):
                self.read(start, start + cache.size, self.from_directory)
            else:
                self.read(start, start + cache.size)

    def suspects(self):
        """Buffers in use that were not reached."""
        for slab, used, reached, _ in self.all:
            if any(u and i not in reached for i, u in enumerate(used)):
                for b in slab_buf.buffers(slab, self.heap.pages):
                    if b.state == slab_buf.USED and used[b.index] and \
                            b.index not in reached:
                        yield b


class Leaks(Command):
    name = "slab leaks"
    usage = "[-j] [-r] [-m AGE]"
    summary = "Objects that nothing points to: suspects of a leak"
    details = """\
Looks for pointers in the kernel's data, in stacks, in registers and in all
objects that are reached from there; what no address leads to is suspect. A
number that looks like an address hides a leak; a pointer that is kept in
another form makes a false suspect.
  -m AGE  only those that have been out for AGE seconds, which is known of
          caches in mode U
  -r      also the roots: where the search began
  -j      JSON lines"""
    example = "slab leaks"
    options, valued = "jr", "m"

    def run(self, args):
        heap, as_json = Heap(), "j" in args
        scan = Scan(heap)
        scan.run()
        groups = Groups(args.number("m", 0) * 1000000, "m" in args)
        found = list(scan.suspects())
        for buffer in found:
            groups.add(buffer)
        groups.suspects(as_json)
        if as_json:
            return
        reached = sum(len(r) for _, _, r, _ in scan.all)
        total = sum(slab.refcnt for slab, *_ in scan.all)
        print(f"suspect: {plural(len(found), 'object')}, "
              f"{sum(b.size for b in found)} bytes; {reached} of {total} are "
              f"reached from {scan.bytes >> 10} KiB of roots")
        if "r" in args:
            self.roots(heap)

    def roots(self, heap):
        print(f"\n{'ROOT':<10} {'END':<10} {'BYTES':>9}  WHAT")
        for start, end, what in roots(heap):
            print(f"0x{start:08x} 0x{end:08x} {end - start:9}  {what}")


# ---- why -------------------------------------------------------------------

SHOWN = 8  # slabs, and objects of each


class Why(Command):
    name = "slab why"
    usage = "[-j] SLAB|CACHE"
    summary = "The objects that keep nearly free slabs alive"
    details = """\
Of a cache: the partial slabs with the fewest objects in use, and these
objects: once they are freed, the slabs can go. Of a slab, by any address in it
or by SLAB: all its objects in use.
AGE and CALLER are known of caches in mode U.
  -j  JSON lines"""
    example = "slab why inode"
    options, least, joined = "j", 1, True
    wants = "wants a cache or a slab's address; `slab why inode`"

    def run(self, args):
        heap, self.json = Heap(), "j" in args
        cache = next((c for c in heap.caches if c.name == args.word()), None)
        slab = None if cache else \
            find_slab(heap, common.parse_address(args.word()))
        if not self.json:
            print(f" {'SLAB':<10} {'USED/N':>7} {'OBJ':<10} {'AGE':>6}  "
                  "CALLER")
        if cache:
            self.cache(heap, cache)
        elif self.slab(heap, slab, slab.chunks) == 0 and not self.json:
            print("(nothing: all its objects are free)")

    def cache(self, heap, cache):
        partial = []
        try:
            partial.extend(s for s in cache.slab_list()
                           if s.state == slab_heap.PARTIAL)
        except (common.Broken, BadMemory) as e:
            print(f"! {cache.name}: {e}")
        near = sorted(partial, key=lambda s: s.refcnt)[:SHOWN]
        objects = sum(self.slab(heap, slab, SHOWN) for slab in near)
        if self.json:
            return
        if not near:
            print(f"(no slab of {cache.name} is partial)")
        else:
            print(f"{len(near)} of {len(partial)} partial slabs; {objects} "
                  "frees would let "
                  f"{plural(len(near) * cache.slab_pages, 'page')} go")

    def slab(self, heap, slab, most):
        """Shows the objects in use; returns their number."""
        used = slab.bitmap(heap.pages)[0]
        out = [b for b in slab_buf.buffers(slab, heap.pages)
               if used[b.index]]
        bad = "!" if slab_wrong(heap, slab) else " "
        for n, b in enumerate(out[:most]):
            if self.json:
                json_line({"slab": slab.address, "used": slab.refcnt,
                           "objects": slab.chunks, "obj": b.address,
                           "age_us": b.alloc.ago if b.audited else 0,
                           "task": b.alloc.task, "caller": b.alloc.caller})
                continue
            first = f"{bad}0x{slab.address:08x} {slab.refcnt:3}/" \
                    f"{slab.chunks:<3}" if n == 0 else " " * 19
            print(f"{first} 0x{b.address:08x} {b.alloc.age:>6}  "
                  f"{b.alloc.caller}")
        if len(out) > most and not self.json:
            print(f"{'':19} and {len(out) - most} more")
        return len(out)

    def complete(self, text, word):
        return slab_heap.complete_cache(word)


for _command in (Users, Old, Leaks, Why):
    _command()
