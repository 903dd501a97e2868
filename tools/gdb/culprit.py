"""`slab culprit`: from the report of a heap error back to the store that is to
blame, in a recorded run (`make record`, `make replay`).

    the report    is found by a watchpoint on kmem_error_count: every error is
                  counted there, and described in kmem_last_error before
    the damage    is a byte: a watchpoint on it, and `reverse-continue`, stops
                  behind each store to it, the latest first
    the culprit   is the first of them that is not the allocator's own. When
                  the allocator is found to have written the right value, then
                  nobody has written a wrong one
    other errors  have other words that tell: a buffer that is freed twice has
                  a state, and who wrote "free" there freed it first; a pointer
                  out of memory that nobody set is followed from register to
                  memory to register until the allocator's fill is found
"""

import gdb

import common
import origin
import travel
from stores import (Store, damaging, frames, is_allocator, is_helper, skip,
                    stores, task, to_call)

# Bufctls of one hash chain that are looked at.
CHAIN_MAX = 4


# ---- the report -------------------------------------------------------------

class Report:
    """The error that the kernel found, and the moment when it said so."""

    def __init__(self):
        self.count = travel.count()
        self.error = common.record_of(common.variable("kmem_last_error"))
        self.stack = skip(frames(), is_allocator)
        self.task = task()
        names = common.enumerators("enum kmem_error", "kmem_error")
        self.kind = next((name.removeprefix("KMEM_ERROR_").lower()
                          for name, number in names.items()
                          if number == self.error.error_kind), "?")

    def title(self):
        table = common.variable("errors", "mm/debug/report.c")
        return table[self.error.error_kind]["title"].string()

    def cache(self):
        at = self.error.error_owner or self.error.error_cache
        if at == 0:
            return None
        return common.record("struct kmem_cache", at).cache_name

    def buffer(self):
        return self.error.error_base or self.error.error_buf

    def bufctl(self):
        """What the allocator remembers of the buffer, or None."""
        at = self.error.error_bufctl
        if at == 0:
            return None
        return common.record("struct kmem_bufctl_debug", at)


def _reports():
    return int(common.variable("kmem_error_count"))


def to_report():
    """To the latest report before this moment, or else the first after it."""
    if not common.has_variable("kmem_error_count"):
        raise common.Fail("this kernel reports no heap errors")
    travel.go(travel.start())
    backwards = _reports() != 0
    watch = gdb.Breakpoint("kmem_error_count", gdb.BP_WATCHPOINT, gdb.WP_WRITE,
                           internal=True)
    try:
        found = travel.back() if backwards else travel.run_to_end()
    finally:
        watch.delete()
    if not found or _reports() == 0:
        raise common.Fail("no heap error is reported in this recording; "
                          "kmem.debug=FPZU makes the kernel look for them")
    return Report()


# ---- from an error to its culprit -------------------------------------------

class Verdict:
    """Who is to blame: a stack whose first function it is, the instruction,
    the task; and in words what he did."""

    def __init__(self, what, stack, count, who):
        self.what = what
        self.stack = stack
        self.count = count
        self.task = who
        self.second = None  # of two, the other function
        self.path = []      # further lines

    @staticmethod
    def of(store, what):
        return Verdict(what, store.blamed, store.count, store.task)

    @staticmethod
    def caller(what):
        """Not the allocator, which is under way here, but who called it."""
        call = to_call()
        return Verdict(what, call.blamed, call.count, call.task)


def _written(report):
    """A byte that had to stay as it was was written to."""
    error = report.error
    at = error.error_at
    shift = 8 * ((at - report.buffer()) & 3) if report.kind == "modified" else 0
    expected = error.error_expected >> shift & 0xFF
    store = damaging(at, expected)
    if store is None:
        raise common.Fail(
            f"the byte at 0x{at:08x} is wrong when the error is reported, but "
            "nobody wrote to it after the allocator did; it was changed by "
            "another name of the same memory, or by a device")
    verdict = Verdict.of(store, f"wrote to 0x{at:08x}")
    if store.own:
        verdict.what += ": the allocator itself"
    return verdict


def _freed_before(report):
    """Freed twice: who freed it first, and who again."""
    bufctl = report.bufctl()
    if bufctl is None:
        raise common.Fail("nothing is remembered of this buffer: mode F or U "
                          "does, `kmem.debug=FU`")
    again = to_call()
    travel.go(report.count)
    for _ in stores(bufctl.where("bufctl_state"), common.WORD):
        verdict = Verdict.caller("freed it first")
        verdict.second = again.blamed[0]
        verdict.path = [f"freed again by {again.blamed[0]}",
                        f"instruction {again.count}, "
                        f"{_ago(again.count, report)}"]
        return verdict
    raise common.Fail("the buffer was never freed before in this recording")


def _called(report):
    """What was wrong is the call itself."""
    return Verdict.caller(f"called with 0x{report.error.error_buf:08x}")


def _fault(report):
    """An instruction touched what it must not: back to it."""
    eip = origin.faulting_instruction()
    stop = gdb.Breakpoint(f"*0x{eip:x}", gdb.BP_HARDWARE_BREAKPOINT,
                          internal=True)
    try:
        found = travel.back()
    finally:
        stop.delete()
    if found and gdb.newest_frame().pc() != eip:
        # A fault does not count as an instruction, so that QEMU may stand
        # behind it: from the instruction before, one step leads to it.
        travel.quietly("reverse-stepi")
        travel.quietly("stepi")
    if not found or gdb.newest_frame().pc() != eip:
        raise common.Fail(f"the instruction at 0x{eip:08x} that faulted is "
                          "not found in the recording")


def _touched(report):
    _fault(report)
    store = Store(b"")
    return Verdict.of(store, f"touched 0x{report.error.error_buf:08x}")


def _followed(report):
    """A pointer from memory that nobody set, or that was freed: who read it
    from there is to blame."""
    _fault(report)
    user = Store(b"")
    name = origin.base_register(origin.instruction(), report.error.error_buf)
    if name is None:
        return Verdict.of(user, f"used 0x{report.error.error_buf:08x}")
    path = origin.trace(name, stores, lambda: Store(b""))
    blamed = path.load or user
    travel.go(blamed.count)
    verdict = Verdict.of(blamed, "read the pointer")
    verdict.path = [f"used by {user.blamed[0]}", *path.lines]
    if path.store is not None and path.store.own:
        callers = skip(path.store.stack, is_helper, is_allocator)
        verdict.path += [f"    for {callers[0]}"] if callers else []
    return verdict


def _led_astray(report):
    """A freelist's head is wrong: somebody wrote there, or the allocator took
    it from a link that somebody wrote to."""
    slab = common.record("struct kmem_slab", report.error.error_at)
    for store in stores(slab.where("slab_head"), common.WORD):
        value = int.from_bytes(store.after, "little")
        if not store.own:
            return Verdict.of(store, "wrote to the head of the freelist")
        name = origin.stored_register(value)
        if value != 0 and name is not None:
            break
    else:
        raise common.Fail("nobody has written to the head of the freelist at "
                          f"0x{slab.where('slab_head'):08x}")
    path = origin.trace(name, stores, lambda: Store(b""))
    if path.store is None or path.store.own:
        raise common.Fail("the freelist leads astray by the allocator's own "
                          f"doing: {'; '.join(path.lines)}")
    verdict = Verdict.of(path.store, "wrote to a link of the freelist")
    verdict.path = path.lines
    return verdict


def _own_data(error, kind):
    """Where data of the allocator may be damaged: [(address, type)]."""
    slab = common.ctype("struct kmem_slab")
    bufctl = common.ctype("struct kmem_bufctl")
    if kind == "slab":
        return [(error.error_at, slab)]
    at = error.error_bufctl or error.error_at
    if common.record("struct kmem_bufctl", at).bufctl_addr == error.error_buf:
        return [(at, bufctl)]
    # Else the bucket of the hash table, and what is on its chain.
    found = [(error.error_at, bufctl.pointer())]
    try:
        for at in common.walk_chain(common.word(error.error_at), common.word,
                                    limit=CHAIN_MAX):
            found.append((at, bufctl))
    except (common.BadMemory, common.Broken):
        pass  # no wonder
    return found


def _damaged_data(report):
    """The allocator's own data; which word of it, the error does not say."""
    if report.error.error_at == 0 and report.error.error_bufctl == 0:
        _unknown(report)
    places = _own_data(report.error, report.kind)
    for at, kind in places:
        travel.go(report.count)
        for store in stores(at, kind.sizeof):
            if not store.own:
                return Verdict.of(store, f"wrote to the {kind} at 0x{at:08x}")
    raise common.Fail("nobody but the allocator has written to its data at "
                      f"0x{places[0][0]:08x} lately")


def _unknown(report):
    raise common.Fail(f"the report ({report.title()}) does not say which word "
                      "is damaged; `slab culprit ADDR` finds who wrote to an "
                      "address")


WAYS = {
    "modified": _written, "end": _written, "start": _written,
    "double": _freed_before, "not_allocated": _called,
    "interior": _called, "foreign": _called, "stack": _called,
    "size": _called, "destroyed": _called, "unmapped": _touched,
    "uninit": _followed, "stale": _followed,
    "bufctl": _damaged_data, "freelist": _led_astray, "slab": _damaged_data,
}


# ---- in words ---------------------------------------------------------------

def print_stack(stack):
    for i, frame in enumerate(stack):
        print(f"  #{i:<2} {frame}")


def print_place(stack):
    """The source line, with its number."""
    if stack and stack[0].source():
        print(f"  {stack[0].line:>5}  {stack[0].source().rstrip()}")


def _ago(count, report):
    return f"{report.count - count} before the report"


def _place(pc):
    """A caller in words: pc is where it goes on, behind the call."""
    found = common.symbol_lookup(pc - 1)
    name = found[0].split(".")[0] if found else f"0x{pc:08x}"
    line = common.source_line(pc - 1)
    return f"{name} at {line.removeprefix('./')}" if line else name


def _print_transaction(what, trans, report):
    ago = report.error.error_us - trans.trans_us
    print(f"  {what} by task {trans.trans_task}"
          + (f", {ago} us before the report" if ago > 0 else ""))
    for i, pc in enumerate(trans.trans_stack[:trans.trans_depth]):
        print(f"  #{i:<2} {_place(pc)}")


def print_history(bufctl, report):
    """What was done to the buffer last, the newest first. In the same
    microsecond the free came last if the buffer was free."""
    if bufctl is None:
        return
    states = common.enumerators("enum kmem_buf_state", "kmem_error")
    free = bufctl.bufctl_state == states["KMEM_BUF_FREE"]
    both = [("freed", bufctl.bufctl_free), ("allocated", bufctl.bufctl_alloc)]
    both.sort(key=lambda item: (-item[1].trans_us,
                                free != (item[0] == "freed")))
    both = [(what, trans) for what, trans in both if trans.trans_us != 0]
    print("The buffer before, the latest first:" if both else
          "The buffer's history was not kept (mode U keeps it).")
    for what, trans in both:
        _print_transaction(what, trans, report)


def print_report(report):
    print(f"Error: {report.title()}")
    error = report.error
    if report.cache() is None:
        print(f"  address 0x{error.error_buf:08x}")
    else:
        print(f"  buffer 0x{report.buffer():08x}, cache {report.cache()}"
              + (f"; the damage is at 0x{error.error_at:08x}"
                 if error.error_at else ""))
    if report.stack and report.stack[0].file != "kernel/panic.c":
        print(f"  reported to {report.stack[0]}")
    print(f"  instruction {report.count}, {report.task}")


def print_verdict(verdict, report):
    if not verdict.stack:
        raise common.Fail("the stack of the guilty one cannot be read")
    print(f"Culprit: {verdict.stack[0]}")
    print_place(verdict.stack)
    print(f"  {verdict.what}\n"
          f"  instruction {verdict.count}, {_ago(verdict.count, report)}, "
          f"{verdict.task}")
    for line in verdict.path:
        print(f"  {line}")
    print_stack(verdict.stack)


def _place_of(frame):
    """For JSON."""
    return frame and {"function": frame.name, "file": frame.file,
                      "line": frame.line}


# ---- the command ------------------------------------------------------------

class Culprit(common.Command):
    name = "slab culprit"
    usage = "[-j] [ADDR]"
    summary = "Who damaged the heap, in a recorded run"
    details = """
Goes to the report of a heap error, the latest before this moment or else the
first after it, and from there back to the instruction that is to blame: the
store that changed what had to stay, the first of two frees, the use of a
pointer that was never set. Prints it with its source line and its callers, and
what is known of the buffer; GDB then stands at that instruction, so that `bt`,
`info locals` and `reverse-step` go on from there. $damage is the address of the
first wrong byte, $buffer that of the buffer.
With an address: who wrote the word there last, before this moment.
-j prints one line of JSON. Needs a recording: `make record`, `make replay`."""
    example = "slab culprit"
    options = "j"
    most = 1
    wants = "wants one address at most; `slab culprit 0xc0123456`"

    def run(self, args):
        travel.end()
        address = args.word() and common.parse_address(args.word())
        before = travel.count()
        with travel.alone():
            try:
                if address is None:
                    self.whole(args)
                else:
                    self.last_writer(address, "j" in args)
            except (common.Fail, common.BadMemory):
                if travel.alive():
                    travel.return_to(before)
                raise

    def whole(self, args):
        report = to_report()
        bufctl = report.bufctl()
        gdb.set_convenience_variable("damage", report.error.error_at)
        gdb.set_convenience_variable("buffer", report.buffer())
        if "j" not in args:
            print_report(report)
        verdict = WAYS.get(report.kind, _unknown)(report)
        if "j" in args:
            common.json_line({
                "kind": report.kind, "cache": report.cache(),
                **_place_of(verdict.stack[0]), "at": verdict.count,
                "report": report.count, "task": verdict.task,
                "second": _place_of(verdict.second)})
            return
        print_verdict(verdict, report)
        print_history(bufctl, report)

    def last_writer(self, address, as_json):
        try:
            common.read(address, common.WORD)
        except common.BadMemory as e:
            raise common.Fail(f"{e}: nothing is mapped there now") from e
        for store in stores(address, common.WORD):
            break
        else:
            raise common.Fail(f"0x{address:08x} was not written in this "
                              "recording before this moment")
        top = store.blamed[0]
        value = int.from_bytes(store.after, "little")
        if as_json:
            common.json_line({**_place_of(top), "at": store.count,
                              "value": value, "task": store.task})
            return
        print(f"0x{address:08x} became 0x{value:08x} by {top}")
        print_place(store.blamed)
        print(f"  at instruction {store.count}, {store.task}")
        print_stack(store.stack)


Culprit()
