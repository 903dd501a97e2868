"""slate tasks, space: the tasks, and the memory of programs. slate dmesg: what
the kernel has printed."""

import system
from command import Command, Hex, Table, merged, plural
from heap import Pages
from target import (PAGE_MASK, PAGE_SHIFT, PAGE_SIZE, BadMemory, Fail,
                    constant, enumerators, record, record_of)


def number_in(kind, address, member):
    """That number of an object that a task refers to; 0 if it has none."""
    try:
        return getattr(record(kind, address), member) if address else 0
    except BadMemory:
        return "!"


class Tasks(Command):
    """slate tasks
    The tasks, programs and the kernel's own: the shell's ps.
    PPID is the parent, 0 if none lives; GRP the group. STATE `ended`: its
    parent has not waited for it yet. PRI: 0 idle, 1 programs, 2 servers, 3 the
    kernel's own. SES: its session, 0 outside of all, - the kernel's own.
    SWITCHES counts how often it got the processor."""

    def run(self, args):
        table = Table("PID:5 PPID:5 GRP:5 SES:4 STATE:-7 PRI:3 CPU(ms):7 "
                      "SWITCHES:8 WAITS-FOR:-13 NAME:-1")
        for task in table.each(system.tasks()):
            wrong, state = "", system.state_of(task)
            try:
                waits = system.waits_for(task)
            except BadMemory as e:
                waits, wrong = "!", f"  ! its wait queue: {e}"
            if state.startswith("?"):
                wrong = f"  ! there is no state {task.task_state}"
            session = number_in("session", task.task_session, "session_number")
            table.row(task.task_pid,
                      number_in("task", task.task_parent, "task_pid"),
                      task.task_group, session if task.task_program else "-",
                      state, task.task_priority,
                      task.task_ticks * (1000 // constant("TIMER_HZ")),
                      task.task_switches, waits and waits[:13],
                      task.task_name + wrong)


def flags_text(value, flags):
    return "".join(c if value & constant(name) else "-"
                   for c, name in flags)


def print_regions(space, pages):
    kinds = enumerators("region_kind", "REGION_")
    table = Table("START:-10 END:-10 KIB:7 THERE:7 PROT:-4 KIND:-1")
    for r in table.each(system.regions(space)):
        there = sum(r.region_start <= a < r.region_end for a in pages)
        table.row(Hex(r.region_start), Hex(r.region_end),
                  (r.region_end - r.region_start) // 1024, there,
                  flags_text(r.region_prot, (("r", "PROT_READ"),
                                             ("w", "PROT_WRITE"))),
                  kinds.get(r.region_kind, "?"))


def print_runs(mapped):
    """Neighbouring pages in neighbouring frames, with like rights and as many
    references, are one row."""
    pages, rows = Pages(), []
    for address, entry in sorted(mapped.items()):
        frame = entry >> PAGE_SHIFT
        refs = pages.page(frame).refs if frame < pages.count else "!"
        rows.append((address, PAGE_SIZE, entry - address, refs))
    table = Table("VIRTUAL:-10 PHYSICAL:-10 PAGES:7 RIGHTS:-6 REFS:5")
    for address, size, offset, refs in merged(rows):
        entry, n = address + offset, size >> PAGE_SHIFT
        rights = flags_text(entry, (("u", "PTE_USER"), ("r", "PTE_PRESENT"),
                                    ("w", "PTE_WRITE")))
        table.row(Hex(address), Hex(entry & ~PAGE_MASK), n, rights, refs)


class Space(Command):
    """slate space PID
    A program's address space: its regions and its page tables.
    First the regions, which the program may access; THERE counts the pages of
    each that are mapped. Then the page tables, a row per run of pages that are
    in neighbouring frames. RIGHTS: u in ring 3, r, w without a fault; REFS:
    address spaces that have the frame, more than 1 after fork.
    Example: slate space 4"""

    def run(self, args):
        task = system.parse_task(args.word())
        if not task.task_space:
            raise Fail(f"task {task.task_pid} has no address space; programs "
                       "have")
        space = record("space", task.task_space)
        pages = system.mapped(space)
        print_regions(space, pages)
        print()
        print_runs(pages)
        print(f"{plural(len(pages), 'page')}, "
              f"{plural(space.space_tables, 'page table')}, directory at "
              f"0x{space.space_directory:08x}; the break is "
              f"0x{space.space_break:08x}")


class Dmesg(Command):
    """slate dmesg [-n LINES]
    The kernel's last output, read from its memory.
    The last 16 KiB of output, oldest first; also of a kernel whose serial line
    is silent.
      -n  only the last lines
    Example: slate dmesg -n 5"""

    def run(self, args):
        console = record_of("console", "console.c")
        offset, kind = console.layout.members["history"]
        ring = console.data[offset:offset + kind.sizeof]
        at = console.history_end % kind.sizeof
        if console.history_end <= kind.sizeof:
            ring, at = ring[:console.history_end], 0
        lines = (ring[at:] + ring[:at]).decode("latin-1").splitlines()
        print("\n".join(lines[-args.number("n", len(lines), 1):]))
