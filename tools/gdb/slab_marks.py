"""slab mark, diff, snapshot, timeline: the counts of all caches at one moment,
and what has changed since. Marks are the debugger's own; those that the kernel
shell's `mark` took are read from its memory. A snapshot is a mark in a file.
"""

import json
from pathlib import Path

import target
from command import Command, Table, age, ago, bar, clock_ms, clock_us
from heap import Heap
from slab_caches import NAME
from slab_log import RINGS, ring_events, why_text
from target import Fail, record_at

NOW = "now"
COUNTS = "inuse", "slabs", "mem", "allocs", "frees"
_own = {}  # the debugger's marks by label, oldest first


class Mark:
    """A label, the kernel's clock, {cache: {count: number}}."""

    def __init__(self, label, ms, rows):
        self.label, self.ms, self.rows = label, ms, rows

    @classmethod
    def take(cls, label):
        return cls(label, clock_ms(),
                   {c.name: {n: getattr(c, n) for n in COUNTS}
                    for c in Heap().caches})

    @property
    def mem(self):
        return sum(row["mem"] for row in self.rows.values())


def kernel_marks():
    """The marks that the kernel shell took."""
    if target.symbol("marks", "cmd_mark.c") is None:
        return
    for value in target.elements("marks", "cmd_mark.c"):
        raw = record_at(value)
        if raw.mark_label:
            yield Mark(raw.mark_label, raw.mark_ms,
                       {r.row_name: {n: getattr(r, f"row_{n}") for n in COUNTS}
                        for r in raw.mark_row[:raw.mark_rows]})


def all_marks():
    """All marks, the oldest first."""
    return sorted([*kernel_marks(), *_own.values()], key=lambda m: m.ms)


def find_mark(label):
    """A mark by its label, a snapshot by its file name, or now."""
    if label == NOW:
        return Mark.take(NOW)
    found = next((m for m in all_marks() if m.label == label), None)
    if found:
        return found
    if not Path(label).is_file():
        raise Fail(f"there is no mark '{label}'; `slab mark` lists them")
    try:
        return Mark(**json.loads(Path(label).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as e:
        raise Fail(f"{label} is no snapshot: {e}") from e


class MarkCommand(Command):
    """slab mark [-j] [LABEL]
    Remember the counts of all caches.
    `slab diff LABEL` then shows the changes since. Without a label lists the
    marks, those of the kernel shell included. The mark is in the debugger:
    nothing is written to the target.
    Example: slab mark before"""

    def run(self, args):
        label = args.word()
        if label is None:
            table = Table("LABEL:-12 AGE:6 CACHES:6 MEM:10", "j" in args)
            for m in all_marks():
                table.row(m.label, ago(m.ms), len(m.rows),
                          m.mem)
            return
        if label == NOW:
            raise Fail(f"'{NOW}' is always the present")
        _own[label] = mark = Mark.take(label)
        print(f"mark {label}: {len(mark.rows)} caches, {mark.mem // 1024} KiB;"
              f" `slab diff {label}` compares")


class Diff(Command):
    """slab diff [-j] A [B]
    The changes since a mark.
    A row per cache that differs between the marks A and B, or between A and
    now; the most memory gained first. A mark is one of `slab mark`, of the
    kernel shell's `mark`, or the file of a `slab snapshot`.
    Example: slab diff before"""

    def run(self, args):
        a, b = find_mark(args.word()), find_mark(args.word(1) or NOW)
        if a.ms > b.ms:
            raise Fail("the older mark comes first; `slab mark` lists them")
        none, rows = dict.fromkeys(COUNTS, 0), []
        for name in {**b.rows, **a.rows}:
            x, y = a.rows.get(name, none), b.rows.get(name, none)
            if x != y:
                rows.append((name, [y[n] - x[n] for n in COUNTS]))
        rows.sort(key=lambda row: -row[1][COUNTS.index("mem")])
        rows.append(("TOTAL", [sum(n) for n in zip(*(r for _, r in rows))]
                     or [0] * len(COUNTS)))
        table = Table(f"{NAME} dINUSE:9 dSLABS:8 dMEM/B:11 dALLOC:12 dFREE:12",
                      "j" in args)
        for name, delta in rows:
            table.row(name, *(n if table.as_json else f"{n:+}"
                              for n in delta))
        table.say(f"from {a.label} to {b.label}: {age(b.ms - a.ms)}")


class Snapshot(Command):
    """slab snapshot FILE
    Write the counts of all caches to a file.
    As JSON. `slab diff FILE` compares it with now, `slab diff FILE FILE` two of
    them: of another session, another run, another kernel.
    Example: slab snapshot /tmp/slate-heap.json"""

    def run(self, args):
        path = Path(args.word())
        mark = Mark.take(path.name)
        try:
            path.write_text(json.dumps(vars(mark), indent=1) + "\n",
                            encoding="utf-8")
        except OSError as e:
            raise Fail(f"{path}: {e.strerror}") from e
        print(f"{path}: {len(mark.rows)} caches, {mark.mem // 1024} KiB")


class Timeline(Command):
    """slab timeline [-j] NAME
    One cache at each mark and now, and its last events.
    AGE is the time since the mark was taken. The bar is the cache's memory: `#`
    is in use, `.` is not. Below it are the cache's events, the newest first:
    slabs created and destroyed, failed allocations, reaps.
    Example: slab timeline inode"""
    BAR, ROWS = 36, 10

    def run(self, args):
        cache = Heap().cache(args.word())
        steps = [(m, m.rows.get(cache.name))
                 for m in [*all_marks(), Mark.take(NOW)]]
        most = max([1, *(row["mem"] for _, row in steps if row)])
        table = Table("STEP:-12 AGE:6 INUSE:7 SLABS:6 MEM/K:6 BAR:-36",
                      "j" in args)
        for m, row in steps:
            if row is None:
                table.row(m.label, ago(m.ms), None, None, None, "not created")
                continue
            full = bar(row["inuse"] * cache.size, most, self.BAR)
            table.row(m.label, ago(m.ms), row["inuse"], row["slabs"],
                      row["mem"] // 1024, full + "." * (
                          len(bar(row["mem"], most, self.BAR)) - len(full)))
        events = [(e.event_us, ring, e) for ring in RINGS
                  for e in ring_events(ring) if e.event_name == cache.name]
        events.sort(key=lambda row: -row[0])
        table.say("")
        table = Table("AGE:19 RING:-5 COUNT:7 WHY:-1", table.as_json)
        for us, ring, e in events[:self.ROWS]:
            table.row(age(max(0, clock_us() - us) // 1000), ring,
                      e.event_count, why_text(e.event_why))
