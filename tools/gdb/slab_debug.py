"""slab debug: the debugging modes of each cache (paper, section 6). slab trace
and slab fail: what the kernel shell's commands of these names show
(kernel/shell/cmd_debug.c, tools/workshop/stress/cmd_fail.c); and as these two
only set variables (mm/debug/fail.c), they can switch a stopped machine, too.
"""

import common
import gdb
import slab_heap
from common import WORD_MASK, Command, Fail
from slab_heap import KINDS, Heap, debug, impl
from slab_log import Log
from slab_stat import NAME, name_cell

ERROR_NAMES = "mm/debug/report.c"


# ---- writing ---------------------------------------------------------------

def write_member(raw, name, value):
    """Sets a member of one word of a structure in the target."""
    try:
        common.write_word(raw.where(name), value)
    except (gdb.MemoryError, gdb.error) as e:
        raise Fail("this target cannot be written to: a memory dump?") from e


def write_variable(name, file, value, size=4):
    where = common.address_of(name, file)
    try:
        gdb.selected_inferior().write_memory(
            where, value.to_bytes(size, "little"))
    except (gdb.MemoryError, gdb.error) as e:
        raise Fail("this target cannot be written to: a memory dump?") from e
    common.forget()


def set_flags(cache, flags):
    """Changes flags that need no other layout, and with them the two slow
    paths, as kmem_slow_paths does."""
    if cache.raw.cache_lock.has("lock_taken") and \
            cache.raw.cache_lock.lock_taken:
        raise Fail(f"somebody is at work on {cache.name}: let it finish")
    write_member(cache.raw, "cache_flags", flags)
    for path, slow in (("alloc", "KMF_SLOW"), ("free", "KMF_SLOW_FREE")):
        bits = flags & impl(slow) & ~impl("KMF_HASH") & WORD_MASK
        kind = "debug" if bits else "large"
        write_member(cache.raw, f"cache_{path}_slow",
                     common.address_of(f"kmem_{path}_{kind}"))


# ---- debug -----------------------------------------------------------------

def error_title(kind):
    """The kernel's own sentence for an error."""
    row = common.variable("errors", ERROR_NAMES)[kind]
    return common.string(int(row["title"]) & WORD_MASK)


class Debug(Command):
    name = "slab debug"
    summary = "The debugging modes of the caches, and what was found"
    details = """\
A row for each cache in any mode:
  F  freed addresses are verified, sanity checks
  P  poison: free memory is deadbeef, new memory baddcafe
  Z  redzones around each object, checked when it is freed
  U  who used it: log, history, users, whatis
  T  a line for each operation: `slab trace`
  S  free slabs are unmapped at once: a late touch faults
  G  each object on pages of its own, unmapped while it is free
Then what is done about an error, the last one, and the log. Another mode is
another layout of the slabs, which only the kernel can make: its `debug`, or
kmem.debug= at boot."""
    example = "slab debug"

    def run(self, args):
        heap = Heap()
        print(f"{'CACHE':<{NAME}} {'MODES':<7} {'INUSE':>6} {'SLABS':>6} "
              f"{'CHUNK':>6}")
        none = empty = 0
        for cache in heap.caches:
            if not cache.modes and not cache.heir:
                none += 1
            elif cache.slabs == 0 and cache.kind == KINDS.index("class"):
                empty += 1
            else:
                self.row(heap, cache)
        if empty:
            print(f"{empty} size classes without slabs are in a mode, too")
        print(f"{common.plural(none, 'cache')} {'is' if none == 1 else 'are'}"
              " in none")
        self.settings(heap)

    def row(self, heap, cache):
        text = f"{name_cell(cache.name)} {cache.mode_text:<7} " \
               f"{cache.inuse:6} {cache.slabs:6} {cache.chunk:6}"
        if cache.heir:
            heir = heap.cache_at(cache.heir)
            text += f"  what was out of {heir.name if heir else '?'}"
        print(text)

    def settings(self, heap):
        count = int(common.variable("kmem_error_count"))
        panics = bool(common.variable("kmem_error_panics"))
        text = f"an error {'stops the machine' if panics else 'is reported'}" \
               f"; {count} so far"
        if count:
            kind = int(common.variable("kmem_last_error")["error_kind"])
            text += f", last: {error_title(kind)}"
        print(text)
        log = Log(heap)
        print(f"log: {log.kept} transactions kept of {log.last}"
              f"{', stopped' if log.stopped else ''}")
        every = int(common.variable("verify_interval", "mm/debug/modes.c"))
        if every:
            print(f"verified at every {every} operations")
        pages = int(common.variable("buried", "mm/debug/unmap.c")["pages"])
        if pages:
            print(f"{pages} pages are unmapped")


# ---- trace -----------------------------------------------------------------

class Trace(Command):
    name = "slab trace"
    usage = "[NAME on|off]"
    summary = "A line for each allocation and free of a cache"
    details = """\
Without arguments the caches that are traced. With them sets mode T of a cache
in the target's memory, as the shell's `trace` does; the lines come on its
console as soon as it runs on."""
    example = "slab trace inode on"
    most = 2
    wants = "wants a cache and on or off; `slab trace inode on`"

    def run(self, args):
        heap = Heap()
        bit = debug("KMF_TRACE") << impl("KMF_MODES_SHIFT")
        if not args.words:
            traced = [c.name for c in heap.caches if c.flags & bit]
            print("\n".join(traced) or "(no cache is traced)")
            return
        if args.word(1) not in ("on", "off"):
            raise Fail(self.wants)
        cache = heap.cache(args.word())
        was = cache.mode_text
        flags = cache.flags | bit if args.word(1) == "on" else \
            cache.flags & ~bit
        if flags != cache.flags:
            set_flags(cache, flags)
        now = slab_heap.Cache(cache.address).mode_text
        print(f"{cache.name}: {now}, was {was}")

    def complete(self, text, word):
        return slab_heap.complete_cache(word)


# ---- fail ------------------------------------------------------------------

FILE = "mm/debug/fail.c"


def failure():
    """The struct kmem_fail that is set."""
    return common.record_of(common.variable("set", FILE))


def print_failure(heap):
    f, kinds = failure(), common.enumerators("enum kmem_fail_kind",
                                             home="kmem_fail")
    if f.fail_kind == kinds["KMEM_FAIL_NONE"]:
        print("no failure is set")
        return
    text = f"request {f.fail_nth} for " if f.fail_nth else \
        f"one request in {f.fail_rate} for "
    text += "a page" if f.fail_kind == kinds["KMEM_FAIL_PAGE"] else "an object"
    if f.fail_cache:
        cache = heap.cache_at(f.fail_cache)
        text += f" of {cache.name if cache else '! no cache'}"
    if f.fail_task:
        text += f" by task {f.fail_task}"
    if f.fail_behind:
        found = common.symbol_lookup(f.fail_from)
        text += f" from {found[0] if found else '?'}"
    fitted = int(common.variable("fitted", FILE))
    failed = int(common.variable("failed", FILE))
    print(f"{text}: {fitted} so far, {failed} failed")


class FailCommand(Command):
    name = "slab fail"
    usage = "[off | slab|page N [-c CACHE] [-t TASK]]"
    summary = "Failing allocations on purpose"
    details = """\
Without arguments what is set. `slab fail slab 3` makes the third request for
an object from now on fail, of those that may (KM_NOSLEEP); `page` one for a
page. It sets the kernel's own variables, as its `fail` does.
  -c CACHE  only of this cache (slab)
  -t TASK   only by this task"""
    example = "slab fail slab 1 -c inode"
    valued, most = "ct", 2
    wants = "wants off, or slab or page and a number; `slab fail slab 3`"

    def run(self, args):
        heap = Heap()
        if not args.words:
            print_failure(heap)
        elif args.words == ["off"]:
            self.end(heap)
        else:
            self.start(heap, args)

    def end(self, heap):
        kinds = common.enumerators("enum kmem_fail_kind", home="kmem_fail")
        if failure().fail_kind == kinds["KMEM_FAIL_NONE"]:
            print("no failure was set")
        else:
            fired = int(common.variable("failed", FILE)) != 0
            print(f"a failure has {'' if fired else 'not '}happened")
        self.set(heap, "NONE")

    def start(self, heap, args):
        kind, nth = args.word(), args.word(1)
        if kind not in ("slab", "page") or not (nth or "").isdigit() or \
                int(nth) == 0:
            raise Fail(self.wants)
        cache = args.get("c")
        if cache and kind == "page":
            raise Fail("pages are of no cache; -c goes with slab")
        self.set(heap, kind.upper(), int(nth),
                 heap.cache(cache) if cache else None, args.number("t", 0))
        print_failure(Heap())

    def set(self, heap, kind, nth=0, cache=None, task=0):
        kinds = common.enumerators("enum kmem_fail_kind", home="kmem_fail")
        self.mark(heap, kind == "SLAB", cache)
        f = failure()
        for name in ("fail_rate", "fail_seed", "fail_from", "fail_behind"):
            write_member(f, name, 0)
        write_member(f, "fail_kind", kinds[f"KMEM_FAIL_{kind}"])
        write_member(f, "fail_nth", nth)
        write_member(f, "fail_cache", cache.address if cache else 0)
        write_member(f, "fail_task", task)
        write_variable("fitted", FILE, 0)
        write_variable("failed", FILE, 0)
        write_variable("kmem_fail_pages", None, int(kind == "PAGE"), 1)

    def mark(self, heap, on, only):
        bit = impl("KMF_FAIL")
        for cache in heap.caches:
            wanted = on and (only is None or only.name == cache.name)
            flags = cache.flags | bit if wanted else cache.flags & ~bit
            if flags != cache.flags:
                set_flags(cache, flags)


for _command in (Debug, Trace, FailCommand):
    _command()
