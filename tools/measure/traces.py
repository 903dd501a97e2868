"""What is in a trace of requests to an allocator: sizes, lifetimes, live bytes.

A trace is a file that `replay` (mm/others/tests/replay/main.c) reads, checks
and lists; without one it is the reference trace R1. Prints tables, and draws
them in OUT. Lifetimes and the time axis are in allocations: in a made-up trace
the clock passes only while nothing happens, and between two recordings the
machine differs, but the order of requests is the trace.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tools.measure import kernel_replay, table
from tools.measure.pictures import plural, size, step_of
from tools.measure.svg import Drawing

SMALLEST, LARGEST = 16, 8192    # upper ends of the first and last size range
DECADES = 6                     # of lifetimes
POINTS = 600                    # of the curve of live bytes


@dataclass
class Summary:
    caches: dict = field(default_factory=dict)      # number: (name, size)
    requests: Counter = field(default_factory=Counter)    # by cache; 0: none
    sizes: Counter = field(default_factory=Counter)       # by range
    lifetimes: Counter = field(default_factory=Counter)   # None: still live
    live: list = field(default_factory=list)   # bytes after each event
    marks: list = field(default_factory=list)  # (number, events before)
    allocs: int = 0
    frees: int = 0
    failures: int = 0
    slots: int = 0
    seconds: float = 0


def size_range(count):
    """The upper end of a size's range, a power of two; beyond the last 0."""
    end = SMALLEST
    while end < count:
        end *= 2
    return end if end <= LARGEST else 0


def decade(allocations):
    """0: fewer than ten allocations later, 1: fewer than a hundred, …"""
    return min(len(str(allocations)) - 1, DECADES - 1)


def summarise(lines):
    """The Summary of what `replay -l` prints."""
    s = Summary()
    live, blocks, units, time = 0, {}, 1, 0
    for line in lines:
        what, *rest = line.split()
        if what == "cache":
            s.caches[int(rest[0])] = rest[2], int(rest[1])
            continue
        if what == "units":
            units = int(rest[0])
            continue
        time, operand, slot = map(int, rest)
        if what in ("alloc", "cache_alloc"):
            cache = operand if what == "cache_alloc" else 0
            count = s.caches[cache][1] if cache else operand
            s.requests[cache] += 1
            s.sizes[size_range(count)] += 1
            s.allocs += 1
            blocks[slot] = count, s.allocs
            live += count
            s.slots = max(s.slots, len(blocks))
        elif what == "free":
            count, born = blocks.pop(operand)
            s.lifetimes[decade(s.allocs - born)] += 1
            s.frees += 1
            live -= count
        elif what == "mark":
            s.marks.append((operand, len(s.live)))
        s.failures += what in ("fail", "cache_fail")
        s.live.append(live)
    s.lifetimes[None] = len(blocks)
    s.seconds = time / units
    return s


# ---- text -------------------------------------------------------------------

def size_rows(s):
    ends = [SMALLEST]
    while ends[-1] < LARGEST:
        ends.append(ends[-1] * 2)
    for end in [*ends, 0]:
        yield (f"to {end:,}" if end else f"above {LARGEST:,}"), s.sizes[end]


def lifetime_rows(s):
    for i in range(DECADES - 1):
        yield f"below {10 ** (i + 1):,}", s.lifetimes[i]
    yield f"{10 ** (DECADES - 1):,} and more", s.lifetimes[DECADES - 1]
    yield "never freed", s.lifetimes[None]


def cache_rows(s):
    for cache, count in s.requests.most_common():
        name, each = s.caches[cache] if cache else ("any size", "-")
        yield name, each, f"{count:,}", table.percent(count, s.allocs)


def report(s):
    most = max(s.live, default=0)
    yield (f"{plural(len(s.live), 'event')}: "
           f"{plural(s.allocs, 'allocation')}, {plural(s.frees, 'free')}, "
           f"{plural(s.failures, 'failure')}; {s.seconds:,.0f} s")
    yield f"live at most: {plural(s.slots, 'block')}; {most:,} bytes"
    yield ""
    yield from table.lines("CACHE:-24 BYTES:7 ALLOCATIONS:12 %:6",
                           cache_rows(s))
    for title, rows in (("BYTES", size_rows(s)),
                        ("LIFETIME", lifetime_rows(s))):
        yield ""
        yield from table.lines(
            f"{title}:-24 BLOCKS:20 %:6",
            [(name, f"{count:,}", table.percent(count, s.allocs))
             for name, count in rows])
    yield "(lifetime: later allocations before the free)"
    yield ""
    yield from table.lines("MARK:-24 EVENTS:20 BYTES:14",
                           [(number, f"{at:,}", f"{s.live[at]:,}")
                            for number, at in s.marks])


# ---- picture ----------------------------------------------------------------

LEFT, WIDTH, HIGH, GAP = 70, 860, 200, 60


def curve(d, s, top):
    """Live bytes, event by event: the most in each of POINTS parts."""
    most, count = max(s.live), len(s.live)
    floor = top + HIGH
    step = 1024 * step_of(most / 1024, 6)
    for value in range(0, most + 1, step):
        y = floor - value / most * HIGH
        d.line(LEFT, y, LEFT + WIDTH, y)
        d.text(LEFT - 8, y + 4, size(value), "small dim end")
    part = max(1, count // POINTS)
    points = [(LEFT + at / count * WIDTH,
               floor - max(s.live[at:at + part]) / most * HIGH)
              for at in range(0, count, part)]
    d.area([(LEFT, floor), *points, (LEFT + WIDTH, floor)], "used",
           f"at most {most:,} bytes")
    for number, at in s.marks:
        x = LEFT + at / count * WIDTH
        d.line(x, top, x, floor, "mark")
        d.text(x, top - 4, str(number), "small ink mid")
    d.line(LEFT, floor, LEFT + WIDTH, floor, "axis")
    d.text(LEFT, floor + 16, "first event", "small dim")
    d.text(LEFT + WIDTH / 2, floor + 16, "dotted: the marks", "small dim mid")
    d.text(LEFT + WIDTH, floor + 16, f"event {count:,}", "small dim end")


def bars(d, x, top, title, rows):
    """Horizontal bars, with how many blocks and what part."""
    d.text(x, top, title, "name")
    total = sum(count for _, count in rows)
    most = max(count for _, count in rows)
    for i, (name, count) in enumerate(rows):
        y = top + 14 + i * 20
        width = count / most * 180
        d.text(x + 110, y + 11, name, "small ink end")
        d.rect(x + 118, y, max(width, 0.5), 14, "k0", f"{count:,}")
        d.text(x + 124 + width, y + 11,
               f"{count:,}, {table.percent(count, total)} %", "small dim")


def draw(s, name):
    d = Drawing(LEFT + WIDTH, f"Trace {name}",
                "Live bytes over the events of a trace; how many blocks there "
                "are of each size and of each lifetime")
    d.text(0, 16, f"{name}: live bytes, event by event", "title")
    curve(d, s, 50)
    top = 50 + HIGH + GAP
    bars(d, 0, top, "Bytes requested", list(size_rows(s)))
    bars(d, (LEFT + WIDTH) / 2, top, "Lifetime: later allocations before the "
         "free", list(lifetime_rows(s)))
    return d


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("replay", type=Path, help="the program that lists it")
    parser.add_argument("trace", type=Path, nargs="?",
                        help="without one: R1")
    parser.add_argument("--out", type=Path, help="where the picture goes: .svg")
    args = parser.parse_args()
    lines = kernel_replay.listed(args.replay, args.trace)
    if lines is None:
        return 1
    s = summarise(lines)
    if not s.allocs:
        print("traces: the trace has no allocation", file=sys.stderr)
        return 1
    print("\n".join(report(s)))
    if args.out:
        name = args.trace.stem if args.trace else "R1"
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(draw(s, name).file(), encoding="utf-8")
        print(f"\ndrawn in {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
