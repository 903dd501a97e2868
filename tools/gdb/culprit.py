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

# Stores to one word that are looked at before giving up.
STORES_MAX = 64

FRAMES_MAX = 24


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
    return frame.file.startswith("mm/") and \
        not frame.file.startswith("mm/tests/")


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
    """The stores to these bytes, the latest first, from this moment back. GDB
    stands before each when it is given."""
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
    raise common.Fail(f"0x{address:08x} was written {STORES_MAX} times, each "
                      "time by the allocator; that is as far as this goes")


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
        table = common.variable("errors", "kmem_report.c")
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
        self.path = []  # further lines

    @staticmethod
    def of(store, what):
        return Verdict(what, store.blamed, store.count, store.task)

    @staticmethod
    def caller(store, what):
        """Not the allocator, but who called it."""
        stack = skip(store.stack, is_helper, is_allocator)
        return Verdict(what, stack, store.count, store.task)


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
    """Freed twice: who freed it first."""
    bufctl = report.bufctl()
    if bufctl is None:
        raise common.Fail("nothing is remembered of this buffer: mode F or U "
                          "does, `kmem.debug=FU`")
    for store in stores(bufctl.where("bufctl_state"), common.WORD):
        verdict = Verdict.caller(store, "freed it first")
        if report.stack:
            verdict.path = [f"freed again by {report.stack[0]}"]
        return verdict
    raise common.Fail("the buffer was never freed before in this recording")


def _called(report):
    """What was wrong is the call itself."""
    return Verdict("called", skip(report.stack, is_helper), report.count,
                   report.task)


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
    """A pointer from memory that nobody set, or that was freed."""
    _fault(report)
    user = Store(b"")
    path = origin.trace(report.error.error_buf, stores)
    travel.go(report.count)
    _fault(report)
    verdict = Verdict.of(user, "used it")
    verdict.path = path
    return verdict


def _damaged_slab(report):
    """The allocator's own data; which word of it, the error does not say."""
    error = report.error
    at, name = error.error_at, "struct kmem_slab"
    if report.kind == "bufctl":
        at, name = error.error_bufctl, "struct kmem_bufctl"
    if at == 0:
        raise common.Fail(f"the report ({report.title()}) does not say where; "
                          "`slab culprit ADDR` finds who wrote to an address")
    size = common.layout(name).size
    for store in stores(at, size):
        if not store.own:
            return Verdict.of(store, f"wrote to the {name} at 0x{at:08x}")
    raise common.Fail(f"nobody but the allocator has written to the {name} at "
                      f"0x{at:08x} in this recording")


def _unknown(report):
    raise common.Fail(f"the report ({report.title()}) does not say which word "
                      "is damaged; `slab culprit ADDR` finds who wrote to an "
                      "address")


WAYS = {
    "modified": _written, "end": _written, "start": _written,
    "double": _freed_before, "never": _called, "interior": _called,
    "foreign": _called, "stack": _called, "size": _called, "gone": _called,
    "touched": _touched, "uninit": _followed, "stale": _followed,
    "bufctl": _damaged_slab, "freelist": _damaged_slab, "slab": _damaged_slab,
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
    return f"{common.plural(report.count - count, 'instruction')} before the " \
        "report"


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
    both.sort(key=lambda item: (-item[1].trans_us, free != (item[0] == "freed")))
    both = [(what, trans) for what, trans in both if trans.trans_us != 0]
    print("The buffer before, the latest first:" if both else
          "The buffer's history was not kept (mode U keeps it).")
    for what, trans in both:
        _print_transaction(what, trans, report)


def print_report(report):
    print(f"Error: {report.title()}")
    error = report.error
    print(f"  buffer 0x{report.buffer():08x}, cache {report.cache() or 'none'}"
          + (f"; the damage is at 0x{error.error_at:08x}"
             if error.error_at else ""))
    where = f" for {report.stack[0]}" if report.stack else ""
    print(f"  reported at instruction {report.count}{where}, {report.task}")


def print_verdict(verdict, report):
    if not verdict.stack:
        raise common.Fail("the stack of the guilty one cannot be read")
    print(f"Culprit: {verdict.stack[0]}")
    print_place(verdict.stack)
    ago = "" if verdict.count == report.count else \
        f", {_ago(verdict.count, report)}"
    print(f"  {verdict.what}, at instruction {verdict.count}{ago}, "
          f"{verdict.task}")
    for line in verdict.path:
        print(f"  {line}")
    print_stack(verdict.stack)


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
`info locals` and `reverse-step` go on from there.
With an address: who wrote the word there last, before this moment.
-j prints one line of JSON. Needs a recording: `make record`, `make replay`."""
    example = "slab culprit"
    options = "j"
    most = 1
    wants = "wants one address at most; `slab culprit 0xc0123456`"

    def run(self, args):
        travel.end()
        with travel.alone():
            if args.word() is not None:
                address = common.parse_address(args.word())
                self.last_writer(address, "j" in args)
            else:
                self.whole(args)

    def whole(self, args):
        report = to_report()
        bufctl = report.bufctl()
        if "j" not in args:
            print_report(report)
        verdict = WAYS.get(report.kind, _unknown)(report)
        if "j" in args:
            top = verdict.stack[0]
            common.json_line({
                "kind": report.kind, "cache": report.cache(),
                "function": top.name, "file": top.file, "line": top.line,
                "at": verdict.count, "report": report.count,
                "task": verdict.task})
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
            common.json_line({
                "function": top.name, "file": top.file, "line": top.line,
                "at": store.count, "value": value, "task": store.task})
            return
        print(f"0x{address:08x} became 0x{value:08x} by {top}")
        print_place(store.blamed)
        print(f"  at instruction {store.count}, {store.task}")
        print_stack(store.stack)


Culprit()
