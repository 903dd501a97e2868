"""The stores to memory in a recorded run: a watchpoint and `reverse-continue`
stop after each, the latest first; one step back leads to before it.

A store belongs to the first function that is not a mere helper such as
memcpy.
"""

import re

import gdb

import reverse
import system
from slate_stack import physical
from target import (ROOT, BadMemory, Fail, constant, read, register,
                    relative)

# Functions that store on behalf of their callers.
HELPERS = ("kernel/lib/", "kernel/x86/copy.asm", "kernel/vm/user.")

# The allocator, that of programs, too, and the sanitizers' wrappers of its
# functions.
ALLOCATOR = ("mm/", "tools/workshop/sanitize/kasan_mm.c",
             "tools/workshop/stress/watch.c", "user/lib/malloc.c",
             "user/lib/mm_", "user/lib/stdlib.c")

STORES_MAX = 64  # stores to one place before giving up
FRAMES_MAX = 24
CALL_SIZE = 5    # bytes of a direct call


class Frame:
    """A function under way: its name, and the line that it is at."""

    def __init__(self, frame):
        self.pc, sal = frame.pc(), frame.find_sal()
        self.name = re.split(r"[.[]", frame.name() or f"0x{self.pc:08x}")[0]
        self.line = sal.line
        self.file = relative(sal.symtab.filename) if sal.symtab else ""

    def __str__(self):
        if self.pc < constant("KERNEL_BASE") and not self.file:
            return f"a program, at 0x{self.pc:08x}"
        return f"{self.name} at {self.file}:{self.line}" if self.file \
            else self.name

    @property
    def is_helper(self):
        return self.file.startswith(HELPERS)

    @property
    def is_allocator(self):
        return self.file.startswith(ALLOCATOR) and "/tests/" not in self.file

    def source(self):
        """The line's text, or "" if it cannot be read."""
        try:
            text = (ROOT / self.file).read_text(encoding="utf-8")
            return text.splitlines()[self.line - 1]
        except (OSError, IndexError):
            return ""


def frames():
    """All functions under way, the innermost first."""
    found, frame = [], gdb.newest_frame()
    while frame is not None and len(found) < FRAMES_MAX:
        # A frame without a name is not code but a word on the stack.
        if frame.name() or frame.pc() < constant("KERNEL_BASE"):
            found.append(Frame(frame))
        try:
            frame = frame.older()
        except gdb.error:
            break
    return found


def skip(stack, unwanted):
    """The stack from the first frame on that is not unwanted."""
    for i, frame in enumerate(stack):
        if not unwanted(frame):
            return stack[i:]
    return []


class Moment:
    """An instruction that is about to be executed; of a store, `after` is the
    contents of the memory after it."""

    def __init__(self, after=b""):
        self.count, self.after, self.stack = reverse.count(), after, frames()
        try:
            task = system.current()
            self.task = f"task {task.task_pid} ({task.task_name})" if task \
                else "before there are tasks"
        except BadMemory:
            self.task = "a task that cannot be read"

    @property
    def blamed(self):
        """The stack from the function on that the instruction belongs to."""
        return skip(self.stack, lambda f: f.is_helper) or self.stack

    @property
    def client(self):
        """The stack from the function on that called the allocator."""
        return skip(self.stack, lambda f: f.is_helper or f.is_allocator) or \
            self.stack

    @property
    def own(self):
        """Whether the instruction is the allocator's."""
        return bool(self.blamed) and self.blamed[0].is_allocator


def stores(address, size):
    """Yields the stores to these bytes, the latest first, from this moment
    back; at most STORES_MAX. GDB is then before the store."""
    with reverse.stop_at(f"*(char (*)[{size}]) 0x{address:x}", reverse.WATCH):
        for _ in range(STORES_MAX):
            if not reverse.back():
                return
            after = read(address, size)
            reverse.quietly("reverse-stepi")
            yield Moment(after)


def damaging(address, expected):
    """The store that wrote a wrong byte at `address`, where `expected` had to
    stay; the allocator's own if no other did; or None. GDB is before it."""
    own = None
    for store in stores(address, 1):
        if not store.own:
            return store
        if store.after[0] == expected:
            break  # before this, the allocator did not guard the byte yet
        own = own or store
    if own is not None:
        reverse.go(own.count)
    return own


def print_stack(stack):
    for i, frame in enumerate(stack):
        print(f"  #{i:<2} {frame}")


def outer(frame):
    """The function, not inlined, that called the one of a frame."""
    return physical(physical(frame).older())


def to_call():
    """Goes back to the instruction that called the allocator."""
    frame = gdb.newest_frame()
    while frame.type() == gdb.INLINE_FRAME or Frame(frame).is_allocator:
        frame = frame.older()
    call, esp = frame.pc() - CALL_SIZE, register("esp", frame)
    with reverse.stop_at(f"*0x{call:x}"):
        while reverse.back() and register("esp") != esp:
            pass
    return Moment()


def print_place(stack):
    """The source line, with its number."""
    if stack and stack[0].source():
        print(f"  {stack[0].line:>5}  {stack[0].source().rstrip()}")


class Party:
    """A moment that had a part in an error: a word for the part, the stack of
    the function that it belongs to, the action, and further lines."""

    def __init__(self, role, moment, stack, what=None, lines=()):
        self.role, self.moment, self.stack = role, moment, stack
        self.what, self.lines = what, lines
        if not stack:
            raise Fail("the stack of the culprit cannot be read")

    def show(self, report):
        print(f"{self.role}: {self.stack[0]}")
        print_place(self.stack)
        count = self.moment.count
        print("".join(f"  {line}\n" for line in (
            *filter(None, [self.what]), f"instruction {count}, "
            f"{report.count - count} before the report, {self.moment.task}",
            *self.lines)), end="")
        print_stack(self.stack)
