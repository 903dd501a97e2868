"""slabtop: the traffic of the slab caches, live.

A Table has a row for each cache and one for requests that are too large for any
(`oversize`), so that the sum is what segkmem has handed out. Its figures are
those of the time between two Moments. The first screen's are since boot.
"""

import os
import re
import select
import shutil
import sys
import termios
import time
import tty
from dataclasses import dataclass

NAME, BAR, WIDTH = 20, 10, 79
HEAD = f"{'CACHE':<{NAME}} " + " ".join(
    f"{name:>{width}}" for name, width in
    (("ALLOC/s", 9), ("FREE/s", 9), ("GROW/s", 9), ("MEM/K", 9), ("HIT%", 6)))
ROWS = 18    # of caches, on a terminal of 24 lines
ORDERS = {"mem": "memory", "alloc": "allocs", "free": "frees",
          "grow": "grows", "hit": "hits", "name": "name"}
UP, DOWN = b"\x1b[A", b"\x1b[B"
KEYS = re.compile(rb"\x1b\[.|.", re.DOTALL)

# A second screen, empty and without a cursor; and back from it.
BEGIN, END = "\x1b[?1049h\x1b[H\x1b[2J\x1b[?25l", "\x1b[0m\x1b[?25h\x1b[?1049l"


@dataclass
class Row:
    """Memory in bytes; objects and slabs in the interval."""
    name: str
    mem: int = 0
    alloc: int = 0
    free: int = 0
    grow: int = 0
    idle: bool = False    # a size class without memory and traffic

    @property
    def hit(self):
        """The share of allocations that found a free buffer, in thousandths
        rounded down, so that 1000 means all; None if there were none."""
        missed = min(self.grow, self.alloc)
        return (self.alloc - missed) * 1000 // self.alloc if self.alloc \
            else None

    def text(self, ms):
        def rate(count):
            value = count * 1000 / ms if ms else 0
            return f"{value:.1f}" if value < 1000 else f"{value:.0f}"
        hit = "-" if self.hit is None else f"{self.hit / 10:.1f}"
        return (f"{self.name[:NAME]:<{NAME}} {rate(self.alloc):>9} "
                f"{rate(self.free):>9} {rate(self.grow):>9} "
                f"{self.mem // 1024:>9} {hit:>6}")


def _totals(moment):
    """{name: (memory, allocations, frees, slabs created)}. An oversize request
    takes pages of its own."""
    large = moment.statistics.totals["oversize"]
    return {"oversize": (large["mem"], large["allocs"], large["frees"],
                         large["allocs"]),
            **{name: (c.mem, c.allocs, c.frees, c.grows)
               for name, c in moment.caches.items()}}


def _since(now, before):
    """A count that has decreased is that of a new cache."""
    return now - before if before <= now else now


class Table:
    """The rows of the time between the Moments `before` (None: boot) and
    `now`."""

    def __init__(self, now, before=None):
        self.now, self.before = now, before
        self.ms = now.ms - (before.ms if before else 0)
        old = _totals(before) if before else {}
        self.rows = []
        for name, (mem, *counts) in _totals(now).items():
            row = Row(name, mem, *map(_since, counts,
                                      old.get(name, (0, 0, 0, 0))[1:]))
            of_kmem_alloc = name == "oversize" or \
                now.caches[name].kind == "class"
            row.idle = of_kmem_alloc and not mem and not row.alloc
            self.rows.append(row)
        self.sum = Row("TOTAL", *(sum(getattr(row, key) for row in self.rows)
                                  for key in ("mem", "alloc", "free", "grow")))

    def ordered(self, order):
        """The rows that are worth a line. Of hits the lowest first; a cache
        without allocations has no misses."""
        rows = [row for row in self.rows if not row.idle]
        if order == "name":
            return sorted(rows, key=lambda row: row.name)
        if order == "hit":
            return sorted(rows, key=lambda row: 1001 if row.hit is None
                          else row.hit)
        return sorted(rows, key=lambda row: -getattr(row, order))


# ---- a screen ----------------------------------------------------------------

def _head(table):
    """Time and memory."""
    stats = table.now.statistics
    seconds = table.now.ms // 1000
    caches = stats.caches.values()
    large = stats.totals["oversize"]
    slabs = sum(c.mem - c.hash_mem for c in caches)
    yield (f"up {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}   "
           f"{len(caches)} caches   rates since "
           + (f"{table.ms / 1000:.2f} s ago" if table.before else "boot"))
    if stats.buddy:
        free, total = (stats.buddy[key] for key in ("free_pages",
                                                    "total_pages"))
        yield (f"pages: {free} free of {total} ({free / 256:.1f} of "
               f"{total / 256:.1f} MiB)")
    yield (f"slabs: {slabs // 4096} pages ({slabs / 2 ** 20:.1f} MiB), hash "
           f"{sum(c.hash_mem for c in caches) // 4096}, oversize "
           f"{large['mem'] // 4096}; {sum(c.inuse for c in caches)} objects in "
           f"{sum(c.count for c in caches)} slabs")


def _bar(table, row, order):
    """The row's share of the column that orders the rows, in blanks."""
    key = order if order in ("alloc", "free", "grow") else "mem"
    whole = getattr(table.sum, key)
    return " " * (round(getattr(row, key) * BAR / whole) if whole else 0)


def screen(table, order, first=0, most=None, keys=True):
    """The lines of a screen: lists of (text, whether in reverse). With `most`,
    so many rows from number `first` on."""
    rows = table.ordered(order)
    end = None if most is None else first + most
    lines = [[(line, False)] for line in _head(table)]
    if keys:
        line = []
        for word, name in ORDERS.items():
            line += [(f"{word[0]} {name}", word == order), (" ", False)]
        lines.append([*line, ("  up down   space now   q quit", False)])
        lines.append([(f"{HEAD}  SHARE".ljust(WIDTH + 1), True)])
    else:
        lines.append([(HEAD, False)])
    lines.append([(table.sum.text(table.ms), False)])
    for row in rows[first:end]:
        line = [(row.text(table.ms), False)]
        if keys:
            line += [("  ", False), (_bar(table, row, order), True)]
        lines.append(line)
    return lines


def plain(lines):
    return "\n".join("".join(text for text, _ in line).rstrip()
                     for line in lines) + "\n"


def ansi(lines):
    """Written over the last screen, each line erased after its end, so that
    nothing flickers."""
    return "\x1b[H" + "".join(
        "".join(f"\x1b[7m{text}\x1b[0m" if reverse and text else text
                for text, reverse in line) + "\x1b[K\n"
        for line in lines) + "\x1b[J"


# ---- the loop ----------------------------------------------------------------

class Display:
    """A terminal that shows screens and delivers single keys. ^C raises
    KeyboardInterrupt as ever."""

    def __init__(self, order):
        self.order, self.first, self.table = order, 0, None

    def __enter__(self):
        self.before = termios.tcgetattr(0)
        tty.setcbreak(0)
        sys.stdout.write(BEGIN)
        return self

    def __exit__(self, *_):
        sys.stdout.write(END)
        sys.stdout.flush()
        termios.tcsetattr(0, termios.TCSADRAIN, self.before)

    def show(self, table=None):
        self.table = table or self.table
        lines = shutil.get_terminal_size().lines
        most = max(ROWS + lines - 24, 1)
        rows = len(self.table.ordered(self.order))
        self.first = max(min(self.first, rows - most), 0)
        sys.stdout.write(ansi(screen(self.table, self.order, self.first,
                                     most)))
        sys.stdout.flush()

    def _act(self, key):
        """Acts on a key; returns what is to be done: "now", "quit", None."""
        if key in (UP, DOWN):
            self.first = max(self.first + (1 if key == DOWN else -1), 0)
        elif key == b" ":
            return "now"
        elif key in (b"q", b""):
            return "quit"
        for order in ORDERS:
            if key == order[0].encode():
                self.order, self.first = order, 0
        self.show()
        return None

    def pause(self, seconds):
        """Waits until the next look is due. False: the user leaves."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([0], [], [], left)[0]:
                # Several may have come while a screen was read.
                for key in KEYS.findall(os.read(0, 64)) or [b""]:
                    done = self._act(key)
                    if done == "quit":
                        return False
                    if done == "now":
                        end = 0
        return True


class Printer:
    """Screens as plain text, one below the other."""

    def __init__(self, order):
        self.order = order

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def show(self, table):
        print(plain(screen(table, self.order, keys=False)), flush=True)

    @staticmethod
    def pause(seconds):
        time.sleep(seconds)
        return True


def run(look, order, seconds, most, batch):
    """Shows Tables of the Moments that look() returns, `most` of them (0: no
    end). Raises what look() raises."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with (Display if terminal and not batch else Printer)(order) as output:
        before, shown = None, 0
        while True:
            now = look()
            if before is None or now.ms > before.ms:
                output.show(Table(now, before))
                before, shown = now, shown + 1
            if shown == most or not output.pause(seconds):
                return
