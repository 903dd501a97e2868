"""slab mark and slab diff: remember the counts of all caches, and what has
changed since. Marks are the debugger's own; those that the kernel shell's
`mark` took are read from its memory and can be compared with, too. A snapshot
is a mark in a file: it outlives the session. slab timeline: one cache at all
marks.
"""

import json
import time
from pathlib import Path

import common
import slab_heap
import slab_log
import slab_users
from common import Command, Fail, age
from slab_heap import KINDS, Heap
from slab_stat import NAME, json_cache, name_cell

NOW = "now"
COUNTS = ("inuse", "slabs", "mem", "allocs", "frees")
PARTS = ("consumed", "requested", "internal", "free", "meta")


def frag_parts(heap):
    """Fragmentation of all slabs, in bytes: the first is the sum of the
    others. What the allocator's own caches take is all overhead."""
    total = dict.fromkeys(PARTS, 0)
    for c in heap.caches:
        own = c.kind == KINDS.index("internal")
        used = 0 if own else c.used
        free = 0 if own else (c.total - c.inuse) * c.chunk
        meta = c.mem if own else c.slabs * c.header + c.hash_bytes
        for name, n in zip(PARTS, (c.mem, used, c.mem - used - free - meta,
                                   free, meta)):
            total[name] += n
    return total


class Mark:
    """What a mark has: a label, the kernel's clock, counts by cache."""

    def __init__(self, label, ms, rows, frag, left_out=0, us=None):
        self.label, self.ms, self.rows = label, ms, rows
        self.frag, self.left_out = frag, left_out
        self.us = ms * 1000 if us is None else us  # as transactions have it

    @classmethod
    def take(cls, label):
        heap = Heap()
        rows = {c.name: {n: getattr(c, n) for n in COUNTS}
                for c in heap.caches}
        return cls(label, common.clock_ms(), rows, frag_parts(heap),
                   us=common.clock_us())

    @classmethod
    def of_kernel(cls, raw):
        """A struct mark of kernel/shell/cmd_kmem_mark.c."""
        rows = {r.row_name: {n: getattr(r, f"row_{n}") for n in COUNTS}
                for r in raw.mark_row[:raw.mark_rows]}
        frag = {n: getattr(raw.mark_frag, f"frag_{n}") for n in PARTS}
        return cls(raw.mark_label, raw.mark_ms, rows, frag,
                   raw.mark_left_out, raw.mark_us)

    def line(self, now):
        return f"{self.label:<12} {age(max(0, now - self.ms)):>6} " \
               f"{len(self.rows):6} {self.frag['requested']:10} " \
               f"{self.frag['consumed']:10}"

    def json(self):
        return {"mark": self.label, "ms": self.ms, "caches": len(self.rows),
                "requested": self.frag["requested"],
                "consumed": self.frag["consumed"]}


_own = {}  # the debugger's marks, by label, oldest first


def kernel_marks():
    """Those that the shell took, oldest first."""
    if not common.has_variable("marks", "cmd_kmem_mark.c"):
        return []
    value = common.variable("marks", "cmd_kmem_mark.c")
    low, high = value.type.range()
    records = (common.record_of(value[i]) for i in range(low, high + 1))
    return [Mark.of_kernel(r) for r in records if r.mark_label]


def all_marks():
    """[(mark, whose)], the oldest first."""
    marks = [(m, "kernel") for m in kernel_marks()] + \
            [(m, "gdb") for m in _own.values()]
    return sorted(marks, key=lambda pair: pair[0].ms)


def find_mark(label):
    """A mark by its label, a snapshot by its file name, or now."""
    if label == NOW:
        return Mark.take(NOW)
    if label in _own:
        return _own[label]
    for mark in kernel_marks():
        if mark.label == label:
            return mark
    if Path(label).is_file():
        return load(label)
    raise Fail(f"there is no mark '{label}'; `slab mark` lists them")


class MarkCommand(Command):
    name = "slab mark"
    usage = "[-j] [LABEL]"
    summary = "Remember the counts of all caches"
    details = """\
`slab diff LABEL` then says what has changed since, and `slab frag` shows how
fragmented memory was. Without a label lists the marks, those of the kernel
shell included. The mark is in the debugger: nothing is written to the target.
  -j  the list as JSON lines"""
    example = "slab mark before"
    options, most = "j", 1
    wants = "wants one label; `slab mark before`"

    def run(self, args):
        label = args.word()
        if label is None:
            self.list("j" in args)
            return
        if label == NOW or not label.isprintable() or '"' in label:
            raise Fail(f"'{label}' is no label; `slab mark before`")
        mark = Mark.take(label)
        if _own.pop(label, None):
            print(f"mark {label}, the one before, is forgotten")
        _own[label] = mark
        print(f"mark {label}: {len(mark.rows)} caches, "
              f"{mark.frag['consumed'] // 1024} KiB; `diff {label}` compares")

    def list(self, as_json):
        now = common.clock_ms()
        if not as_json:
            print(f"{'LABEL':<12} {'AGE':>6} {'CACHES':>6} "
                  f"{'REQUESTED':>10} {'CONSUMED':>10}")
        for mark, whose in all_marks():
            if as_json:
                common.json_line(mark.json())
            else:
                print(mark.line(now) +
                      ("  in gdb" if whose == "gdb" else ""))


class Diff(Command):
    name = "slab diff"
    usage = "[-j] A [B]"
    summary = "What has changed since a mark"
    details = """\
A row per cache that differs between the marks A and B, or between A and now;
the most memory gained first. A mark is one of `slab mark`, of the kernel
shell's `mark`, or the file of a `slab snapshot`. Compared with now: of caches
in mode U, the callers all of whose live objects are younger than the mark.
  -j  JSON lines"""
    example = "slab diff before"
    options, least, most = "j", 1, 2
    wants = "wants a mark, or two; `slab mark` lists them"

    def changes(self, a, b):
        names = [*b.rows, *(n for n in a.rows if n not in b.rows)]
        none = dict.fromkeys(COUNTS, 0)
        rows = []
        for name in names:
            x, y = a.rows.get(name), b.rows.get(name)
            delta = {n: (y or none)[n] - (x or none)[n] for n in COUNTS}
            note = " new" if x is None else " gone" if y is None else ""
            if any(delta.values()):
                rows.append((name, delta, note))
        return sorted(rows, key=lambda row: -row[1]["mem"])

    def row(self, name, delta, note=""):
        print(name_cell(name) + "".join(
            f" {delta[n]:+{w}}" for n, w in zip(COUNTS, (9, 8, 11, 12, 12)))
              + note)

    def run(self, args):
        a = find_mark(args.word())
        b = find_mark(args.word(1) or NOW)
        if a.ms > b.ms:
            raise Fail("the older mark comes first; `slab mark` lists them")
        changes = self.changes(a, b)
        if "j" in args:
            for name, delta, _ in changes:
                common.json_line({"cache": name, **delta})
            return
        print(f"{'CACHE':<{NAME}} {'dINUSE':>9} {'dSLABS':>8} "
              f"{'dMEM/B':>11} {'dALLOC':>12} {'dFREE':>12}")
        total = dict.fromkeys(COUNTS, 0)
        for name, delta, note in changes:
            self.row(name, delta, note)
            for n in COUNTS:
                total[n] += delta[n]
        self.row("TOTAL", total)
        print(f"from {a.label} to {b.label}: {age(b.ms - a.ms)}")
        if a.left_out or b.left_out:
            print(f"! not compared: {a.left_out} caches of the one, "
                  f"{b.left_out} of the other")
        if b.label == NOW:
            slab_users.print_new_callers(a.us)

    def complete(self, text, word):
        return [m.label for m, _ in all_marks() if m.label.startswith(word)]


# ---- snapshots -------------------------------------------------------------

def load(path):
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        return Mark(Path(path).name, data["ms"],
                    {r["cache"]: {n: r[n] for n in COUNTS}
                     for r in data["caches"]}, data["frag"])
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise Fail(f"{path} is no snapshot: {e}") from e


class Snapshot(Command):
    name = "slab snapshot"
    usage = "FILE"
    summary = "Write the counts of all caches to a file"
    details = """\
JSON, with each cache as `kmastat -j` has it. `slab diff FILE` compares it with
now, `slab diff FILE FILE` two of them: of another session, another run,
another kernel."""
    example = "slab snapshot /tmp/slate-heap.json"
    least = most = 1
    wants = "wants the name of a file to write"

    def run(self, args):
        heap = Heap()
        data = {"ms": common.clock_ms(), "taken": time.strftime("%F %T"),
                "kernel": common.kernel().filename,
                "frag": frag_parts(heap),
                "caches": [json_cache(c) for c in heap.caches]}
        try:
            Path(args.word()).write_text(json.dumps(data, indent=1) + "\n",
                                         encoding="utf-8")
        except OSError as e:
            raise Fail(f"{args.word()}: {e.strerror}") from e
        print(f"{args.word()}: {len(heap.caches)} caches, "
              f"{data['frag']['consumed'] // 1024} KiB")


class Timeline(Command):
    name = "slab timeline"
    usage = "NAME"
    summary = "One cache at each mark and now, and its last events"
    details = """\
AGE is how long ago the mark was taken. The bar is the cache's memory, `#` what
is in use of it and `.` what is not. Marks are those of `slab mark`, of the
kernel shell's `mark`, and now: take some while the workload runs. Below, when
slabs came and went, allocations failed and reaps were (the rings of
`slab log`), and of a cache in mode U how many objects were out before each of
its last transactions."""
    example = "slab timeline inode"
    least = most = 1
    wants = "wants one cache; `slab timeline inode`"
    BAR, ROWS = 36, 10

    def run(self, args):
        cache = Heap().cache(args.word())
        steps = [m for m, _ in all_marks()] + [Mark.take(NOW)]
        table = common.Table(("STEP", -12), ("AGE", 6), ("INUSE", 7),
                             ("SLABS", 6), ("MEM/K", 6), ("", -self.BAR))
        table.head()
        rows = [(m, m.rows.get(cache.name)) for m in steps]
        most = max([1, *(r["mem"] for _, r in rows if r)])
        for mark, row in rows:
            if row is None:
                table.row(mark.label, age(steps[-1].ms - mark.ms), "-", "-",
                          "-", "not there yet")
                continue
            width = -(-row["mem"] * self.BAR // most)
            full = min(width, row["inuse"] * cache.size * self.BAR // most)
            table.row(mark.label, age(steps[-1].ms - mark.ms), row["inuse"],
                      row["slabs"], row["mem"] // 1024,
                      "#" * full + "." * (width - full))
        self.events(cache)
        if cache.in_mode("U"):
            self.transactions(cache)

    def events(self, cache):
        """Of the three rings, in order of time, the newest first."""
        rows = [(e.event_us, ring, e) for ring in slab_log.RINGS
                for e in slab_log.ring_events(ring)
                if e.event_name == cache.name]
        rows.sort(key=lambda row: -row[0])
        if rows:
            print(f"\n{'AGE':>19} {'RING':<5} {'COUNT':>7} WHY")
        now = common.clock_us()
        for us, ring, e in rows[:self.ROWS]:
            print(f"{age(max(0, now - us) // 1000):>19} {ring:<5} "
                  f"{e.event_count:7} {slab_log.why_text(e.event_why)}")

    def transactions(self, cache):
        """The number of objects out, reckoned back from now."""
        out, shown = cache.inuse, 0
        print(f"\n{'AGE':>19} {'OP':<5} {'INUSE':>7} BUF")
        for e in slab_log.Log(Heap()).newest_first():
            if e.cache != cache.name:
                continue
            if shown == self.ROWS:
                break
            out += -1 if e.op == "alloc" else 1
            shown += 1
            print(f"{e.trans.age:>19} {e.op:<5} {out:7} {e.buf:08x} "
                  f"{e.trans.caller}")

    def complete(self, text, word):
        return slab_heap.complete_cache(word)


for _command in (MarkCommand, Diff, Snapshot, Timeline):
    _command()
