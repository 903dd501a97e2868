"""slate pages, syms, dmesg: the machine's memory by owner, addresses by name,
and what the kernel has printed."""

import re

import gdb

import common
import objects_model as model

# ---- pages -----------------------------------------------------------------

PAGE_COLUMNS = "{:>7} {:>7} {:>8} {:<10} {:<9} {}"


def cache_names():
    """{address of a cache: its name}"""
    found = model.members(common.address_of("kmem_caches"),
                          "struct kmem_cache", "cache_link",
                          "kmem_cache_stat") \
        if common.has_variable("kmem_caches") else []
    return {c.address: c.cache_name for c in found
            if not isinstance(c, model.Bad)}


def mappers():
    """{frame: the titles of the tasks that map it}"""
    found = {}
    for task in model.good_tasks():
        if not task.task_space:
            continue
        try:
            space = model.space_at(task.task_space)
            for _, entries in model.page_tables(space):
                for entry in filter(None, entries):
                    found.setdefault(entry >> common.PAGE_SHIFT,
                                     {})[model.title(task)] = True
        except common.BadMemory as e:
            print(f"! the space of {model.title(task)}: {e}")
    return found


def owner_text(frames, i, caches, users):
    """Who has the block that begins at frame i, in words."""
    state = frames.state(i)
    if state in ("slab", "hash"):
        owner = frames.owner(i)
        return caches.get(owner, f"! no cache at 0x{owner:08x}")
    if state == "user":
        return " ".join(users.get(i, {})) or "! no task maps it"
    return ""


def page_runs(only=None):
    """[first frame, frames, state, owner] of neighbours that have one owner.
    Frames of a block say as its first one does; programs have single ones."""
    frames = model.Frames()
    caches, users = cache_names(), mappers()
    found = []
    for i, size in frames.blocks():
        state = frames.state(i)
        owner = owner_text(frames, i, caches, users)
        if only and only not in (state, *owner.split()):
            continue
        last = found[-1] if found else None
        if last and last[0] + last[1] == i and last[2:] == [state, owner]:
            last[1] += size
        else:
            found.append([i, size, state, owner])
    return found


class Pages(common.Command):
    name = "slate pages"
    usage = "[-j] [STATE|OWNER]"
    summary = "Page frames, a row per run that has one owner"
    details = """
  STATE  reserved, kernel, free, allocated, slab, hash, large or user: as
         `pages` of the shell has them
  OWNER  of slabs and hash tables: the cache; of programs' pages: the tasks
         that map them, several after a fork
With a state, a cache or a task as `slate tasks` names it, only those. The sums
are below.
  -j     the sums as one JSON object"""
    example = "slate pages page_table"
    options = "j"
    most = 1
    wants = "wants a state or an owner at most; `help slate pages`"

    def run(self, args):
        found = page_runs(args.word())
        sums = {}
        for _, count, state, _ in found:
            sums[state] = sums.get(state, 0) + count
        sums = dict(sorted(sums.items()))  # wherever they lie
        if "j" in args:
            common.json_line({"frames": sum(sums.values()), **sums})
            return
        print(PAGE_COLUMNS.format("FRAME", "FRAMES", "KIB", "PHYSICAL",
                                  "STATE", "OWNER"))
        for first, count, state, owner in found:
            print(PAGE_COLUMNS.format(
                first, count, count * common.PAGE_SIZE // 1024,
                f"0x{first << common.PAGE_SHIFT:08x}", state, owner).rstrip())
        print("\n" + ", ".join(f"{n} {state}" for state, n in sums.items())
              if found else "(no such frames)")


# ---- syms ------------------------------------------------------------------

def describe(address):
    """An address as "ADDR name+offset file:line"."""
    if common.symbol_lookup(address):
        text = common.symbol_format(address)
        return f"{text}  {common.source_line(address)}".rstrip()
    text = gdb.execute(f"info symbol 0x{address:x}", to_string=True).strip()
    match = re.match(r"(\S+)(?: \+ (\d+))? in section", text)
    if match:
        return f"{match.group(1)}+0x{int(match.group(2) or 0):x}"
    raise common.Fail(f"no symbol is at 0x{address:08x}; `slab whatis` says "
                      "what is")


class Syms(common.Command):
    name = "slate syms"
    usage = "[ADDR|NAME ...]"
    summary = "From addresses to functions and source lines, and back"
    details = """
For an address: the function or object that contains it, how far in, and the
line. For a name: its address. Without any: how large the kernel's own table
is. Addresses in a program are known when its symbols are (`slate symbols`)."""
    example = "slate syms kmain 0xc0101a02"
    most = 16
    wants = "wants 16 addresses or names at most"

    def run(self, args):
        if not args.words:
            functions = int(common.variable("symbol_functions"))
            count = int(common.variable("symbol_count"))
            print(f"{functions} functions and {count - functions} objects are "
                  "in the kernel's own table")
        for word in args.words:
            address = common.parse_address(word)
            print(f"0x{address:08x} {describe(address)}")


# ---- dmesg -----------------------------------------------------------------

def history():
    """The ring of what was printed, oldest first."""
    console = common.record_of(common.variable("console", "console.c"))
    low = console.layout.members["history"][0]
    size = common.variable("console", "console.c")["history"].type.sizeof
    ring = console.data[low:low + size]
    end = console.history_end
    if end <= size:
        return ring[:end].decode("latin-1")
    return (ring[end % size:] + ring[:end % size]).decode("latin-1")


class Dmesg(common.Command):
    name = "slate dmesg"
    usage = "[-n LINES]"
    summary = "What the kernel has printed, out of its memory"
    details = """
The last 16 KiB of output, oldest first; also of a kernel whose serial line
says nothing any more.
  -n  only the last lines"""
    example = "slate dmesg -n 5"
    valued = "n"

    def run(self, args):
        text = history()
        if "n" in args:
            n = args.number("n", 0)
            text = "".join(text.splitlines(True)[-n:]) if n else ""
        print(text, end="" if text.endswith("\n") or not text else "\n")


Pages()
Syms()
Dmesg()
