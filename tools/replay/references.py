"""The reference counts of an object, in a recorded run: every change of each
from the object's allocation to its free, with the function that made it, and
the change that is not balanced (balance.py)."""

import itertools
import re

import gdb

import heap
import reverse
import system
import target
from balance import unbalanced
from stores import Party, outer, print_stack, skip, stores
from target import WORD, Fail, constant, linker, register, word

COUNT_MAX = 1 << 16  # a larger value is not a count


def counts_in(kind, name="", at=0):
    """[(name, offset of the object that is counted, offset of the count)]: all
    members that end with _refs."""
    found = []
    for field in kind.fields():
        inner = field.type.strip_typedefs()
        path = f"{name}.{field.name}" if name else field.name
        offset = at + field.bitpos // 8
        if inner.code == gdb.TYPE_CODE_STRUCT:
            found += counts_in(inner, path, offset)
        elif (field.name or "").endswith("_refs"):  # a union has no name
            found.append((path, at, offset))
    return found


def pointing(address, start, end):
    """The words of that memory that point to an address."""
    wanted = address.to_bytes(WORD, "little")
    return [base + found.start() for base, data in target.present(start, end)
            for found in re.finditer(re.escape(wanted), data)
            if found.start() % WORD == 0]


def places_of(address, cache):
    """The words in use that point to `address` and may be references: not those
    on stacks, of the allocator and its report, of hash tables, and of other
    objects of the cache, which are links of lists."""
    error = target.record_of("kmem_last_error")
    forgotten = [
        range(linker("boot_stack_bottom"), linker("boot_stack_top")),
        *(range(r.address, r.address + r.layout.size) for r in
          (error, target.record_of("inode_table"),
           target.record_of("nodes", "fs/ramfs.c"),
           target.record_of("entries", "fs/ramfs.c")))]
    found = {at for at in pointing(address, linker("data_start"),
                                   linker("bss_end"))
             if not any(at in part for part in forgotten)}
    for owner in system.caches():
        if owner.cache_kind == constant("KMEM_KIND_INTERNAL") or \
                owner.cache_name in ("kstack", cache):
            continue
        for slab in heap.slabs_of(owner):
            found |= {at for at in pointing(address, slab.base, slab.end)
                      if slab.buffer(at) not in (None, *slab.free)}
    return frozenset(found)


def counts_itself(frame):
    """Whether a function does nothing but take or drop a reference."""
    return re.search(r"(^|_)(get|put|ref|take)$", frame.name) is not None


def to_operation():
    """Goes back to the beginning of the function that called this one."""
    frame = outer(gdb.newest_frame())
    start = frame.pc() - target.symbol_at(frame.pc())[1]
    esp = register("esp", outer(frame)) - WORD
    with reverse.stop_at(f"*0x{start:x}"):
        while reverse.back() and register("esp") != esp:
            pass


class Count:
    """One count: its steps up to this moment (the free), the oldest first, as
    (moment, delta, places); `last` is the places at the use after the free."""

    def __init__(self, cache, name, base, address, last):
        self.name, self.base, self.steps = name, base, []
        self.role = f"References, by {name}"
        self.last = last & places_of(base, cache)  # not copied since
        self.freed, self.rest, found = reverse.count(), word(address), []
        for store in stores(address, WORD):
            before = word(address)
            after = int.from_bytes(store.after, "little")
            if store.own or after > COUNT_MAX:
                break
            fresh = before > COUNT_MAX  # poison: not a count yet
            if after != before * (not fresh):
                found.append((store, after - before * (not fresh)))
            if fresh:
                break
        done = 0
        for moment, delta in reversed(found):
            reverse.return_to(moment.count)
            if delta < 0:
                to_operation()
                reverse.go(done)
            self.steps.append((moment, delta, places_of(base, cache)))
            done = moment.count + 1

    def unbalanced(self, freed):
        """[the party that is not balanced], or []."""
        moment, what = self.wrong_step(freed)
        return [Party("Unbalanced", moment, skip(moment.client, counts_itself),
                      what)] if moment else []

    def wrong_step(self, freed):
        """(the moment that is not balanced, what was done then)"""
        if self.rest:
            return freed, f"freed it while {self.name} was {self.rest}"
        found = unbalanced([(delta, moment.task, places) for
                            moment, delta, places in self.steps], self.last)
        if found is None:
            return None, None
        step, places = found
        if not places:
            return self.steps[step][0], f"subtracted 1 from {self.name} " \
                "for a reference that still exists, or never existed"
        after = self.steps[step + 1:step + 2]
        filled = []
        for place in places:
            reverse.return_to(after[0][0].count if after else self.freed)
            filled += [*itertools.islice(
                (store for store in stores(place, WORD)
                 if store.after == self.base.to_bytes(WORD, "little")), 1)]
        return max(filled, key=lambda moment: moment.count), \
            f"stored the address and did not add 1 to {self.name}"

    def show(self, _report):
        print(f"{self.role}:")
        value = self.rest - sum(delta for _, delta, _ in self.steps)
        for moment, delta, _ in self.steps:
            value += delta
            print(f"  {delta:+d} = {value} at instruction {moment.count}, "
                  f"{moment.task}")
            print_stack(skip(moment.blamed, counts_itself))


def life(report, used):
    """The parties and counts to show of a report's buffer: its last allocation,
    and if it was free by then, its free, its counts and the unbalanced change.
    `used` is the moment of the use after the free, or None."""
    names = target.enumerators("kmem_buf_state", "KMEM_BUF_")
    freed, free = None, False
    reverse.return_to(report.count)
    for store in stores(report.bufctl.where("bufctl_state"), WORD):
        state = names.get(int.from_bytes(store.after, "little"))
        free |= state == "free"  # by the end of the free; busy before
        if state == "busy" and used and free and not freed:
            freed = store
            yield Party("Freed by", freed, freed.client)
        elif state == "used" and bool(freed) == bool(used):
            yield Party("Allocated by", store, store.client)
            break
    try:
        # The counts are known if a structure has the cache's name.
        kind = target.ctype(report.cache)
    except Fail:
        return
    if freed:
        yield from references(report, counts_in(kind), used, freed)


def references(report, counts, used, freed):
    """The counts that have steps, and the first party that is not balanced."""
    reverse.return_to(used.count)
    to_operation()
    reverse.go(freed.count + 1)
    places = [places_of(report.buffer + at, report.cache)
              for _, at, _ in counts]
    parties = []
    for (name, at, offset), last in zip(counts, places):
        reverse.return_to(freed.count)
        count = Count(report.cache, name, report.buffer + at,
                      report.buffer + offset, last)
        if count.steps:
            yield count
        parties += count.unbalanced(freed) if not parties else []
    yield from parties
