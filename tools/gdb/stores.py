"""Who wrote to memory, in a recorded run: a watchpoint and `reverse-continue`
stop behind each store, the latest first, and one step back is before it.

    Frame, frames()   where a program stands, by name and line
    Store, stores()   the stores to some bytes, one by one
    damaging()        the one of them that is not the allocator's own
    to_call()         back to the instruction that called the allocator

A store belongs to the function that is not a mere helper: memcpy and the like
do what they are told.
"""

import re

import gdb

import common
import origin
import travel
import unwind  # noqa: F401  (registers itself)

# Who stores on behalf of his caller.
HELPERS = ("kernel/lib/", "kernel/x86/copy.asm", "kernel/vm/user.")

# The allocator, and where its functions are led through under the sanitizers.
ALLOCATOR = ("mm/", "tools/workshop/sanitize/kasan_mm.c")

# Stores to one place that are looked at before giving up.
STORES_MAX = 64

FRAMES_MAX = 24

# Functions of the allocator that jump to one another.
DEPTH_MAX = 8


# ---- where a program stands -------------------------------------------------

class Frame:
    """A function under way: its name, and the line that it is at."""

    def __init__(self, frame):
        self.pc = frame.pc()
        name = frame.name() or f"0x{self.pc:08x}"
        self.name = re.split(r"[.[]", name)[0]
        sal = frame.find_sal()
        self.line = sal.line
        self.file = ""
        if sal.symtab is not None:
            self.file = sal.symtab.filename.removeprefix(f"{common.ROOT}/")
            self.file = self.file.removeprefix("./")

    def __str__(self):
        if self.pc < _kernel_base():
            return f"a program, at 0x{self.pc:08x}"
        return f"{self.name} at {self.file}:{self.line}" if self.file \
            else self.name

    def source(self):
        """The line's text, or "" if there is none to be had."""
        try:
            text = (common.ROOT / self.file).read_text(encoding="utf-8")
            return text.splitlines()[self.line - 1]
        except (OSError, IndexError):
            return ""


def _kernel_base():
    return common.macros("kernel/x86/paging.h")["KERNEL_BASE"]


def frames():
    """All functions under way, the innermost first."""
    found, frame = [], gdb.newest_frame()
    while frame is not None and len(found) < FRAMES_MAX:
        # What is left out is no code, but a word on the stack.
        if frame.name() or frame.pc() < _kernel_base():
            found.append(Frame(frame))
        try:
            frame = frame.older()
        except gdb.error:
            break
    return found


def task():
    """Who runs, in words."""
    at = int(common.variable("cpu_boot")["cpu_task"])
    if at == 0:
        return "before there are tasks"
    try:
        it = common.record("struct task", at, "task_init")
        return f"task {it.task_pid} ({it.task_name})"
    except common.BadMemory:
        return f"a task at 0x{at:08x}, which cannot be read"


def is_helper(frame):
    return frame.file.startswith(HELPERS)


def is_allocator(frame):
    return frame.file.startswith(ALLOCATOR) and \
        "/tests/" not in frame.file


def skip(stack, *unwanted):
    """The stack from the first frame on that is none of the unwanted."""
    for i, frame in enumerate(stack):
        if not any(test(frame) for test in unwanted):
            return stack[i:]
    return []


# ---- stores -----------------------------------------------------------------

class Store:
    """A moment: an instruction that is about to write, and who executes it."""

    def __init__(self, after):
        self.count = travel.count()
        self.after = after
        self.stack = frames()
        self.task = task()

    @property
    def blamed(self):
        """The stack from the function on that the store belongs to."""
        return skip(self.stack, is_helper) or self.stack

    @property
    def own(self):
        """Whether it is the allocator's."""
        return bool(self.blamed) and is_allocator(self.blamed[0])


def stores(address, size):
    """The stores to these bytes, the latest first, from this moment back; not
    more than STORES_MAX. GDB stands before each when it is given."""
    watch = gdb.Breakpoint(f"*(char (*)[{size}]) 0x{address:x}",
                           gdb.BP_WATCHPOINT, gdb.WP_WRITE, internal=True)
    try:
        for _ in range(STORES_MAX):
            if not travel.back():
                return
            after = common.read(address, size)
            travel.quietly("reverse-stepi")
            yield Store(after)
    finally:
        watch.delete()


def damaging(address, expected):
    """The store that put a wrong byte at `address`, where `expected` was to
    stay; None if there is none but the allocator's own. GDB stands before it.
    """
    own = None
    for store in stores(address, 1):
        if not store.own:
            return store
        if store.after[0] == expected:
            break  # before this, the byte was not yet in the allocator's care
        own = own or store
    if own is not None:
        travel.go(own.count)
    return own


def _allocator_entry():
    """The outermost function of the allocator that is under way: (where it
    begins, the stack pointer there), or None."""
    found, frame = None, gdb.newest_frame()
    while frame is not None:
        it = Frame(frame)
        if frame.type() != gdb.INLINE_FRAME:
            if is_allocator(it) and frame.function() is not None:
                found = (frame, frame.function())
            elif found is not None:
                break
        frame = frame.older()
    if found is None:
        return None
    frame, function = found
    caller = frame.older()
    sp = int(caller.read_register("esp")) & common.WORD_MASK
    begin = int(function.value().address) & common.WORD_MASK
    return begin, sp - common.WORD


def to_call():
    """Back to the instruction that called the allocator: its caller may have
    left the stack by then, as a call at a function's very end is a jump. A
    Store, though it is none."""
    for _ in range(DEPTH_MAX):
        entry = _allocator_entry()
        if entry is None:
            break
        stop = gdb.Breakpoint(f"*0x{entry[0]:x}",
                              gdb.BP_HARDWARE_BREAKPOINT, internal=True)
        try:
            while travel.back():
                if origin.register("esp") == entry[1]:
                    break
        finally:
            stop.delete()
        travel.quietly("reverse-stepi")
    return Store(b"")
