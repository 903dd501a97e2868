"""`slate culprit`: from the report of a heap error back to the store that
caused it, in a recorded run (`make record`, `make replay`).

A watchpoint on kmem_last_error finds the report, which names a wrong byte. A
watchpoint on the byte and `reverse-continue` stop after each store to it, the
latest first. The culprit is the first store that is not the allocator's own.
Other errors watch another word: the state of a buffer that is freed twice, or
the memory that a wild pointer came from. If a buffer was used after its free,
either the use or the free may be wrong: both are shown, and the steps of its
reference counts (references.py).

An error of a program's heap is one that its malloc notices and ends the program
by abort(): the search goes back from the fault of abort().
"""

import itertools
import re

import gdb

import heap
import pointer
import programs
import reverse
import system
import target
from command import Command, alone, parse_address
from references import life
from stores import (Moment, Party, damaging, print_place, print_stack, skip,
                    stores, to_call)
from target import WORD, BadMemory, Fail, constant, record, word

DEADBEEF, NEAR = 0xdeadbeef, 4096  # what a freed pointer's use is near to
CHAIN_MAX = 4  # bufctls of one hash chain that are looked at


def error_text(kind, member="title"):
    """The kernel's sentence for an error, or another member of its entry."""
    return target.elements("errors", "report.c")[kind][member].string()


class Report:
    """The error that the kernel found, and the moment when it reported it."""

    def __init__(self):
        self.moment = Moment()
        self.error = target.record_of("kmem_last_error")
        self.kind = error_text(self.error.error_kind, "name")
        self.title = error_text(self.error.error_kind)
        if self.kind == "fault":
            self.kind = "unmapped" if self.error.error_cache else \
                "stale" if abs(self.error.error_buf - DEADBEEF) <= NEAR \
                else "uninit"
        elif self.kind == "badslab" and "freelist" in gdb.parse_and_eval(
                "kmem_last_error.error_text").string():
            self.kind = "freelist"
        self.buffer = self.error.error_base or self.error.error_buf
        self.damage = self.error.error_at
        cache = self.error.error_owner or self.error.error_cache
        self.cache = cache and record("kmem_cache", cache).cache_name
        at = self.error.error_bufctl  # what is known of the buffer
        self.bufctl = record("kmem_bufctl_debug", at) if at else None

    def held_by(self, address):
        """Makes the free buffer that holds the address the report's buffer."""
        slab, start = heap.find(address)
        if slab and start in slab.free and \
                slab.cache.cache_flags & constant("KMF_MODES"):
            self.buffer, self.cache = start, slab.cache.cache_name
            self.bufctl = record("kmem_bufctl_debug", slab.free[start])

    @property
    def count(self):
        return self.moment.count

    def show(self):
        error = self.error
        print(f"Error: {self.title}")
        print(f"  buffer 0x{self.buffer:08x}, cache {self.cache}" +
              (f"; the damage is at 0x{error.error_at:08x}"
               if error.error_at else "") if self.cache else
              f"  address 0x{error.error_buf:08x}")
        stack = skip(self.moment.stack, lambda f: f.is_allocator)
        if stack and stack[0].file != "kernel/panic.c":
            print(f"  reported to {stack[0]}")
        print(f"  instruction {self.count}, {self.moment.task}")


class ProgramReport(Report):
    """An error that a program's malloc found, reported, and ended it for."""
    kind, cache, bufctl, buffer, damage = "program", None, None, 0, 0

    def __init__(self, message):
        self.moment, self.title = Moment(), message

    def show(self):
        print(f"Error: {self.title}\n  found by the malloc of a program\n"
              f"  instruction {self.count}, {self.moment.task}")


def program_report():
    """Goes to the latest error before now that a program's malloc found."""
    with reverse.stop_at("end_program"):
        while reverse.back() and reverse.count() > reverse.start():
            _to_fault()
            programs.load_for(system.current())
            frame = gdb.newest_frame()
            while frame and frame.name() != "mm_panic":
                frame = frame.older()
            if frame:
                return ProgramReport(frame.read_var("text").string())
    raise Fail("no heap error is reported in this recording; kmem.debug=FPZU "
               "makes the kernel look for them; of a leaked object: "
               "slate culprit ADDR")


def to_report():
    """Goes to the latest report before this moment, or else the first after it,
    or else to a program's report."""
    def reports():
        return int(target.variable("kmem_last_error")["error_kind"])
    reverse.go(reverse.start())
    backwards = reports() != 0
    with reverse.stop_at("kmem_last_error.error_task", reverse.WATCH):
        found = reverse.back() if backwards else reverse.run_to_end()
    return Report() if found and reports() else program_report()


# Each function returns the parties of one kind of error, the culprit first.

def _written(report):
    """A byte that had to stay unchanged was written to."""
    at = report.error.error_at
    shift = 8 * ((at - report.buffer) & 3) if report.kind == "modified" else 0
    store = damaging(at, report.error.error_expected >> shift & 0xFF)
    if store is None:
        raise Fail(f"the byte at 0x{at:08x} is wrong when the error is "
                   "reported, but the allocator stored to it last; it was "
                   "changed by another name of the same memory, or by a "
                   "device")
    return [Party("Culprit", store, store.blamed, f"wrote to 0x{at:08x}"
                  + ": the allocator itself" * store.own)]


def _freed_before(report):
    """Freed twice: the first free, and the second."""
    if report.bufctl is None:
        raise Fail("the state of this buffer was not recorded; boot with "
                   "kmem.debug=FU")
    again = to_call()
    reverse.go(report.count)
    for _ in stores(report.bufctl.where("bufctl_state"), WORD):
        before = to_call()
        return [Party("Freed by", before, before.blamed),
                Party("Freed again by", again, again.client)]
    raise Fail("the buffer was never freed before in this recording")


def _called(report):
    """The call itself was wrong."""
    call = to_call()
    return [Party("Freed by", call, call.blamed,
                  f"called with 0x{report.error.error_buf:08x}")]


def _to_fault():
    """Goes back to the instruction that made the forbidden access."""
    eip = pointer.faulting_instruction()
    with reverse.stop_at(f"*0x{eip:x}"):
        found = reverse.back()
    if found and gdb.newest_frame().pc() != eip:
        # A fault does not count as an instruction, so that QEMU may be after
        # it: from the instruction before, one step leads to it.
        reverse.quietly("reverse-stepi")
        reverse.quietly("stepi")
    if not found or gdb.newest_frame().pc() != eip:
        raise Fail(f"the instruction at 0x{eip:08x} that faulted is not found "
                   "in the recording")
    return Moment()


def _touched(report):
    user = _to_fault()
    return [Party("Used by", user, user.blamed,
                  f"touched 0x{report.error.error_buf:08x}")]


def _followed(report):
    """A pointer from memory that was never set, or that was freed: the culprit
    is the load of the pointer."""
    user, address = _to_fault(), report.error.error_buf
    name = pointer.base_register(pointer.instruction(), address)
    if name is None:
        return [Party("Used by", user, user.blamed, f"used 0x{address:08x}")]
    path = pointer.trace(name)
    blamed, store = path.load or user, path.store
    reverse.return_to(blamed.count)
    report.held_by(path.source)
    used = Party("Used by", blamed, blamed.blamed, "read the pointer",
                 [f"followed by {user.blamed[0]}", *path.lines])
    return [used] if store is None or not store.own else [used, Party(
        "Freed by" if report.kind == "stale" else "Allocated by", store,
        store.client)]


def _wrong_head(report):
    """A freelist's head is wrong: a client wrote there, or the allocator took
    it from a link that a client wrote to."""
    head = record("kmem_slab", report.error.error_at).where("slab_head")
    for store in stores(head, WORD):
        if not store.own:
            return [Party("Culprit", store, store.blamed,
                          "wrote to the head of the freelist")]
        value = int.from_bytes(store.after, "little")
        name = pointer.stored_register(value)
        if value and name is not None:
            break
    else:
        raise Fail("nothing was stored to the head of the freelist at "
                   f"0x{head:08x}")
    path = pointer.trace(name)
    if path.store is None or path.store.own:
        raise Fail("the allocator itself wrote the wrong head of the freelist: "
                   + "; ".join(path.lines))
    return [Party("Culprit", path.store, path.store.blamed,
                  "wrote to a link of the freelist", path.lines)]


def _damaged_data(report):
    """The allocator's own data: the slab, or a bufctl, the hash table's bucket
    and the bufctls on its chain. The error does not name the wrong word."""
    error, bufctl = report.error, target.ctype("kmem_bufctl")
    at = error.error_bufctl or error.error_at
    if not at:
        _unknown(report)
    places = [(at, bufctl)]
    if report.kind == "badslab":
        places = [(error.error_at, target.ctype("kmem_slab"))]
    elif record("kmem_bufctl", at).bufctl_addr != error.error_buf:
        places = [(error.error_at, bufctl.pointer())]
        places += [(link, bufctl) for link in itertools.islice(
            target.links(word(error.error_at), 0), CHAIN_MAX)]
    for at, kind in places:
        reverse.go(report.count)
        for store in stores(at, kind.sizeof):
            if not store.own:
                return [Party("Culprit", store, store.blamed,
                              f"wrote to the {kind} at 0x{at:08x}")]
    raise Fail("only the allocator has written to its data at "
               f"0x{places[0][0]:08x} lately")


def _in_program(report):
    """A wrong free; if the block was free already, its first free, too: the
    allocator's latest store to it."""
    free = re.search(r"(0x\w+), a block of (\d+) bytes, is free already",
                     report.title)
    now = report.moment
    for store in stores(int(free[1], 16), int(free[2])) if free else ():
        if store.task == now.task and \
                any(frame.name == "free" for frame in store.stack):
            return [Party("Freed by", store, store.client),
                    Party("Freed again by", now, now.client)]
    return [Party("Freed by", now, now.client, "passed it to malloc.c")]


def _unknown(report):
    raise Fail(f"the report ({report.title}) does not say which word is "
               "damaged; `slate culprit ADDR` finds the last store to an "
               "address")


WAYS = {
    _written: "modified redzone", _freed_before: "dupfree",
    _called: "badaddr badbase badcache badsize",
    _touched: "unmapped", _followed: "uninit stale",
    _in_program: "program", _wrong_head: "freelist",
    _damaged_data: "badbufctl badslab",
}

# Errors in which the free may be wrong.
AFTER_FREE = "modified", "dupfree", "unmapped", "stale"


class Culprit(Command):
    """slate culprit [ADDR]
    The code that damaged the heap, in a recorded run.
    Goes to the report of a heap error, the latest before this moment or else
    the first after it, and from there back to the instruction that caused it.
    Culprit: the store that changed memory that had to stay unchanged. Used by,
    Freed by: the use, or the free, was wrong. Unbalanced: a reference was not
    counted, or dropped twice. Each has its source line and its callers. GDB is
    then at the first of them: `bt`, `info locals`, `reverse-step` start there.
    $damage is the address of the first wrong byte, $buffer that of the buffer.
    With an address: the last store to the word there, before this moment.
    Needs a recording: `make record`, `make replay`."""

    def run(self, argument):
        reverse.end()
        address = argument and parse_address(argument)
        before = reverse.count()
        with alone():
            try:
                if address is None:
                    self.whole()
                else:
                    self.last_store(address)
            except (Fail, BadMemory):
                reverse.return_to(before)
                raise

    @staticmethod
    def whole():
        report = to_report()
        gdb.set_convenience_variable("damage", report.damage)
        report.show()
        way = next((way for way, kinds in WAYS.items()
                    if report.kind in kinds.split()), _unknown)
        parties = way(report)
        gdb.set_convenience_variable("buffer", report.buffer)
        shown = {party.role: party for party in parties}
        used = max((party.moment for party in parties), key=lambda m: m.count)
        for part in life(report, report.kind in AFTER_FREE and used) \
                if report.bufctl else ():
            shown.setdefault(part.role, part)
        for part in shown.values():
            part.show(report)
        reverse.return_to(parties[0].moment.count)

    @staticmethod
    def last_store(address):
        try:
            target.read(address, WORD)
        except BadMemory as e:
            raise Fail(f"{e}: nothing is mapped there now") from e
        store = next(stores(address, WORD), None)
        if store is None:
            raise Fail(f"0x{address:08x} was not written in this recording "
                       "before this moment; `continue` to its end first")
        value = int.from_bytes(store.after, "little")
        print(f"0x{address:08x} became 0x{value:08x} by {store.blamed[0]}")
        print_place(store.blamed)
        print(f"  at instruction {store.count}, {store.task}")
        print_stack(store.stack)
