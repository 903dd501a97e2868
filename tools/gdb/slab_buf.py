"""What is known of one buffer (mm/debug/walk.c), and how transactions on it are
shown (kernel/shell/cmd_debug.c): callers, stacks, ages, tasks.
"""

import common
from common import WORD, BadMemory, Broken, age
from slab_heap import Slab

LINE_WIDTH = 80
FREE, USED, BAD = range(3)  # enum kmem_buf_state
STATE_TEXT = ("free", "in use", "damaged, put aside")
BUFCTL = "struct kmem_bufctl_debug"


class Transaction:
    """A struct kmem_transaction."""

    def __init__(self, raw=None):
        self.us = raw.trans_us if raw else 0
        self.task = raw.trans_task if raw else 0
        stack = raw.trans_stack if raw else []
        self.depth = min(raw.trans_depth, len(stack)) if raw else 0
        self.stack = tuple(stack[:self.depth])

    @property
    def ago(self):
        """How long ago it was, in microseconds."""
        return max(0, common.clock_us() - self.us)

    @property
    def age(self):
        return age(self.ago // 1000) if self.depth else "-"

    @property
    def caller(self):
        """The nearest; the allocator itself is in no stack."""
        return self.callers()[0] if self.stack else "-"

    def callers(self):
        return [common.symbol_format(pc)[:39] for pc in self.stack]

    def print_stack(self, indent):
        """The callers, nearest first, in lines of 80 columns."""
        line, column = "", LINE_WIDTH
        for i, text in enumerate(self.callers()):
            n = len(text) + 3
            if column + n > LINE_WIDTH:
                line += ("\n" if i else "") + " " * indent
                line += "< " if i else ""
                column = indent
            else:
                line += " < "
            line += text
            column += n
        if line:
            print(line)

    def show(self, what):
        if self.depth:
            print(f"{what} by task {self.task} ({task_name(self.task)}), "
                  f"{seconds(self.ago)} s ago")
            self.print_stack(4)


def seconds(us):
    return f"{us // 1000000}.{us % 1000000:06}"


def tasks():
    """{pid: name} of all tasks."""
    names = {}
    head = common.address_of("all_tasks", "task.c")
    try:
        for link in common.walk_list(head, limit=1 << 16):
            task = common.container("struct task", "task_all_link", link,
                                    home="task_create")
            names[task.task_pid] = task.task_name
    except (Broken, BadMemory):
        pass
    return names


def task_name(pid):
    return "boot" if pid == 0 else tasks().get(pid, "gone")


class Buffer:
    """One buffer of a slab, whether its cache is debugged or not."""

    def __init__(self, slab, index, bufctl, used):
        cache = slab.cache
        self.cache, self.slab, self.index = cache, slab, index
        self.address = slab.chunk(index)
        self.bufctl = bufctl
        self.size = cache.size
        self.state = USED if used else FREE
        self.audited = False
        self.alloc = self.free = Transaction()
        if cache.debugged and bufctl:
            self._debug(common.record(BUFCTL, bufctl))

    def _debug(self, raw):
        self.state = raw.bufctl_state
        if self.state != FREE:
            self.size = raw.bufctl_size
        self.audited = self.cache.in_mode("U")
        if self.audited:
            self.alloc = Transaction(raw.bufctl_alloc)
            self.free = Transaction(raw.bufctl_free)

    @property
    def state_text(self):
        return STATE_TEXT[min(self.state, BAD)]

    @property
    def known(self):
        """Whether somebody knows who allocated it."""
        return self.audited and self.alloc.depth != 0

    def print_life(self):
        """Its last two transactions, the newest first."""
        if not self.audited:
            return
        if self.state == FREE:
            self.free.show("freed")
        self.alloc.show("allocated")
        if self.state != FREE:
            self.free.show("before that freed")


def buffers(slab, pages):
    """All buffers of a slab, in the order of their addresses."""
    free = {index: link for link, _, index, why in slab.steps(pages)
            if why is None}
    for i in range(slab.chunks):
        bufctl, used = free.get(i, 0), i not in free
        if used and slab.cache.hashed:
            found = slab.cache.bufctl_of(slab.chunk(i))
            bufctl = found.address if found else 0
        yield Buffer(slab, i, bufctl, used)


def put_aside(slab):
    """The indexes of buffers that were found damaged and stay out for good."""
    found = set()
    for i in range(slab.chunks if slab.cache.debugged else 0):
        try:
            bufctl = slab.cache.bufctl_of(slab.chunk(i))
            if bufctl and common.record(
                    BUFCTL, bufctl.address).bufctl_state == BAD:
                found.add(i)
        except (Broken, BadMemory):
            pass  # the cache is broken: others say so
    return found


def buffer_at(heap, address):
    """The Buffer that an address is in, or None."""
    place = heap.whose(address)
    if place is None or place[2] is None:
        return None
    _, slab, index = place
    return next(b for b in buffers(slab, heap.pages) if b.index == index)


def walk(heap, cache):
    """All buffers of a cache, slabs in list order."""
    try:
        for slab in cache.slab_list():
            yield from buffers(slab, heap.pages)
    except (Broken, BadMemory) as e:
        print(f"! {cache.name}: {e}")


def unmapped(heap, address):
    """What was on a page that mode S took away: (cache, Buffer or None), or
    None if it took nothing."""
    page = heap.pages.at(address)
    if "PAGE_UNMAPPED" not in heap.pages.state or \
            not heap.pages.is_state(page, "PAGE_UNMAPPED"):
        return None
    raw = common.record("struct kmem_slab", page.page_owner)
    cache = heap.cache_at(raw.slab_cache)
    if cache is None:
        return None
    slab = Slab(cache, raw.address)
    index = slab.index(address)
    found = None
    if index is not None:
        link = next((link for link, _, i, why in slab.steps(heap.pages)
                     if i == index and why is None), 0)
        found = Buffer(slab, index, link, False)
    return cache, found


# ---- damage (mm/debug/check.c) ----------------------------------------------

def pattern(word, size):
    """What kmem_pattern_fill leaves: the word repeated, cut at the end."""
    return (word.to_bytes(WORD, "little") * (size // WORD + 1))[:size]


def filled_otherwise(address, size, word):
    """The first byte that is not as it was filled, or None."""
    data, want = common.read(address, size), pattern(word, size)
    if data == want:
        return None
    return address + next(i for i in range(size) if data[i] != want[i])


def damage(cache, raw):
    """(what is wrong, first wrong byte) of a buffer of the debug layout by its
    bufctl's Record, or None."""
    debug = common.macros("mm/debug/debug.h")
    front = common.macros("mm/debug/debug_impl.h").get("KMEM_GUARD_FRONT", 8)
    guard = debug["KMEM_GUARD"] * 0x01010101
    buf, free = raw.bufctl.bufctl_addr, raw.bufctl_state == FREE
    size = cache.size if free else raw.bufctl_size
    if cache.in_mode("Z"):
        at = filled_otherwise(buf + size, cache.guard - size, guard)
        if at is not None:
            return "redzone behind a buffer is damaged", at
        before = min(cache.front, front)
        at = filled_otherwise(buf - before, before, guard)
        if at is not None:
            return "redzone before a buffer is damaged", at
    if free and cache.in_mode("P"):
        at = filled_otherwise(buf, cache.size, debug["KMEM_FREED"])
        if at is not None:
            return "free buffer is not deadbeef throughout", at
    return None
