"""slab buddyinfo, slab pages, slate pages: the owners of page frames."""

import system
import target
from command import (Command, Hex, Table, json_line, merged, percent, plural,
                     waste)
from heap import Heap, Pages
from slab_verify import free_pages
from target import PAGE_SHIFT, PAGE_SIZE, UNREADABLE

KIB_PER_PAGE = PAGE_SIZE // 1024


class Buddyinfo(Command):
    """slab buddyinfo [-j]
    Free blocks of physical memory by order.
    A block of order n is 2^n pages of 4 KiB, aligned to its size. FREE counts
    blocks on the free lists now, ALLOCATED and RETURNED those allocated and
    freed since boot. UNUSABLE% is the part of the free memory that is in
    blocks too small for a request of that order: external fragmentation."""

    def run(self, args):
        zone = target.record_of("buddy_zone")
        table = Table("ORDER:5 BLOCK/K:9 FREE:8 FREE/K:10 UNUSABLE%:9 "
                      "ALLOCATED:12 RETURNED:12", "j" in args)
        free = []
        for head in zone.zone_list[:len(zone.zone_allocs)]:
            free.append(0)
            try:
                for _ in target.walk_list(head.address):
                    free[-1] += 1
            except UNREADABLE as e:
                table.bad(f"order {len(free) - 1}: {e}")
        listed = sum(n << k for k, n in enumerate(free))
        for k, n in enumerate(free):
            usable = sum(m << i for i, m in enumerate(free) if i >= k)
            table.row(k, KIB_PER_PAGE << k, n, (n << k) * KIB_PER_PAGE,
                      waste(usable, listed), zone.zone_allocs[k],
                      zone.zone_frees[k])
        pages, all_ = free_pages(zone), zone.zone_total_pages
        table.say(f"{pages} of {all_} pages free "
                  f"({percent(pages, all_)}%); on the lists "
                  f"{listed}: " + ("equal" if listed == pages else
                                   f"! off by {listed - pages:+d}"))
        table.say(f"{zone.zone_splits} splits, {zone.zone_merges} merges")
        table.say("no page was free, and caches were reaped, "
                  f"{zone.zone_pressures} times; {zone.zone_failures} "
                  "requests failed")


CELLS, ROWS = 64, 16
OTHER_LETTERS = {"reserved": "-", "tail": "?", "free": ".", "unmapped": "X"}


def letter(state):
    return OTHER_LETTERS.get(state, state[0].upper())


class Picture(Command):
    """slab pages [-j]
    A picture of physical memory and its owners.
    All page frames, 64 cells in a row, a letter per owner; in lower case where
    a cell has several, the most common that is not free. Then the number of
    frames in each state. `slate pages` names the owners."""

    def run(self, args):
        pages, states = Pages(), []
        for _, size, state in pages.blocks():
            states += [state] * size
        each = 1
        while each * CELLS * ROWS < pages.count:
            each *= 2
        if "j" not in args:
            print(f"each cell is {plural(each, 'frame')}, "
                  f"{each * KIB_PER_PAGE} KiB; a row is "
                  f"{each * CELLS * KIB_PER_PAGE} KiB")
            for row in range(0, pages.count, each * CELLS):
                line = states[row:row + each * CELLS]
                print(f"0x{row << PAGE_SHIFT:08x} " + "".join(
                    self.cell(line[i:i + each])
                    for i in range(0, len(line), each)))
            print()
        table = Table("FRAMES:8 KIB:9 STATE:-12", "j" in args)
        for state in pages.states.values():
            n = states.count(state)
            table.row(n, n * KIB_PER_PAGE, f"{letter(state)} {state}")

    @staticmethod
    def cell(states):
        busy = [s for s in sorted(set(states)) if s != "free"] or ["free"]
        most = max(busy, key=states.count)
        return letter(most) if states.count(most) == len(states) \
            else letter(most).lower()


def page_runs(heap, only):
    """(first frame, frames, state, owner) of neighbours that have one owner.
    Frames of a block are like its first one; programs have single ones."""
    users, found = {}, []
    for task, _, entry in system.program_pages():
        users.setdefault(entry >> PAGE_SHIFT, {})[system.title(task)] = 1
    for i, size, state in heap.pages.blocks():
        owner = heap.name_at(heap.pages.owner(i)) \
            if state in ("slab", "hash") else \
            " ".join(users.get(i, ["! no task maps it"])) \
            if state == "user" else ""
        if not only or only in (state, *owner.split()):
            found.append((i, size, state, owner))
    return merged(found)


class Owners(Command):
    """slate pages [-j] [STATE|OWNER]
    Page frames, a row per run that has one owner.
    OWNER is the cache of slabs and hash tables, or the tasks that map a page of
    programs, several after a fork. With a state, a cache or a task as `slate
    tasks` names it, only those.
      -j  the sums as one JSON object
    Example: slate pages page_table"""

    def run(self, args):
        found, sums = page_runs(Heap(), args.word()), {}
        for _, count, state, _ in found:
            sums[state] = sums.get(state, 0) + count
        sums = dict(sorted(sums.items()))
        if "j" in args:
            json_line({"frames": sum(sums.values()), **sums})
            return
        table = Table("FRAME:7 FRAMES:7 KIB:8 PHYSICAL:-10 STATE:-9 OWNER:-1")
        for first, count, state, owner in found:
            table.row(first, count, count * KIB_PER_PAGE,
                      Hex(first << PAGE_SHIFT), state, owner)
        print("\n" + ", ".join(f"{n} {state}" for state, n in sums.items())
              if found else "(no such frames)")
