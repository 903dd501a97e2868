"""slate tasks, files, space: the tasks, and what a program owns."""

import system
import target
from command import Command, Hex, Table, plural
from heap import Pages
from target import (PAGE_MASK, PAGE_SHIFT, PAGE_SIZE, BadMemory, Fail,
                    constant, enumerators, record)


def parent_pid(task):
    try:
        return record("task", task.task_parent).task_pid \
            if task.task_parent else 0
    except BadMemory:
        return "!"


class Tasks(Command):
    """slate tasks [-j]
    The tasks, programs and the kernel's own: the shell's ps.
    PPID is the parent, 0 if none lives; GRP the group. STATE `ended`: its
    parent has not asked yet. PRI: 0 idle, 1 programs, 2 servers, 3 the
    kernel's own. KIND `user`: it has an address space. SWITCHES counts how
    often it got the processor."""

    def run(self, args):
        table = Table("PID:5 PPID:5 GRP:5 STATE:-7 PRI:3 KIND:-6 CPU(ms):7 "
                      "SWITCHES:8 WAITS-FOR:-13 NAME:-1", "j" in args)
        for task in table.each(system.tasks()):
            wrong, state = "", system.state_of(task)
            try:
                waits = system.waits_for(task)
            except BadMemory as e:
                waits, wrong = "!", f"  ! its wait queue: {e}"
            if state.startswith("?"):
                wrong = f"  ! there is no state {task.task_state}"
            table.row(task.task_pid, parent_pid(task), task.task_group, state,
                      task.task_priority,
                      "user" if task.task_space else "kernel",
                      task.task_ticks * (1000 // constant("TIMER_HZ")),
                      task.task_switches, waits and waits[:13],
                      task.task_name + wrong)


def inode_text(inode):
    """(type, text) of an open inode."""
    kind, number = system.file_type(inode), inode.inode_number
    if kind == "device":
        number = inode.inode_device
        name = enumerators("device", "DEVICE_").get(number)
        if name:
            return kind, name
    return kind, f"{system.fs_name(inode)} {kind} {number}, " \
        f"{inode.inode_size} bytes"


def file_row(address):
    """[type, flags, offset, text] of an open file."""
    f = record("file", address)
    flags = system.access_text(f.file_flags) + \
        "a" * bool(f.file_flags & constant("O_APPEND"))
    if f.file_inode:
        kind, text = inode_text(record("inode", f.file_inode))
    else:
        pipe = record("pipe", f.file_data)
        kind, text = "pipe", f"pipe 0x{pipe.address:08x}, " \
            f"{pipe.pipe_bytes} bytes in it"
    return [kind, flags, f.file_offset, text]


def handle_row(handle):
    row = [handle.kind, "", 0, f"{handle.kind} 0"]
    if handle.is_a("file"):
        row = file_row(handle.object)
    elif handle.is_a("port"):
        port = record("port", handle.object)
        receive = handle.flags & constant("HANDLE_RECEIVE")
        row = ["port", "receive " if receive else "call ", 0,
               f"port {port.port_number}"]
    row[1] += "c" * bool(handle.flags & constant("HANDLE_CLOEXEC"))
    return [row[0], row[1].strip() or "-", *row[2:]]


def print_files(task):
    table = Table("HANDLE:6 TYPE:-6 FLAGS:-8 OFFSET:10 WHAT:-1")
    try:
        if task.task_cwd:
            kind, text = inode_text(record("inode", task.task_cwd))
            table.row("cwd", kind, "-", 0, text)
        for handle in table.each(system.handles(task)):
            try:
                table.row(handle.number, *handle_row(handle))
            except BadMemory as e:
                table.bad(f"handle {handle.number}: {e}")
    except BadMemory as e:
        table.bad(e)


class Files(Command):
    """slate files [PID]
    What a program has open; all programs without PID.
    A row per handle, after one for the current directory.
    FLAGS: r w opened for that, a appends, c closed by exec; receive, call: the
    rights to a port. WHAT: file system, number and size of its inode, name of
    the device, address of the pipe, or number of the port.
    Example: slate files 4"""

    def run(self, args):
        if args.words:
            task = system.parse_task(args.word())
            if not task.task_handles:
                raise Fail(f"task {task.task_pid} has no handles; programs "
                           "have")
            print_files(task)
            return
        owners = [t for t in target.good(system.tasks()) if t.task_handles]
        for task in owners:
            print(f"{system.title(task)}:")
            print_files(task)
        if not owners:
            print("(no task has handles)")


def flags_text(value, flags):
    return "".join(c if value & constant(name) else "-"
                   for c, name in flags)


def print_regions(space, pages):
    table = Table("START:-10 END:-10 KIB:7 THERE:7 PROT:-4 KIND:-1")
    for r in table.each(system.regions(space)):
        there = sum(r.region_start <= a < r.region_end for a in pages)
        table.row(Hex(r.region_start), Hex(r.region_end),
                  (r.region_end - r.region_start) // 1024, there,
                  flags_text(r.region_prot, (("r", "PROT_READ"),
                                             ("w", "PROT_WRITE"))),
                  system.region_kinds().get(r.region_kind, "?"))


def print_runs(mapped):
    """Neighbouring pages in neighbouring frames, with like rights and as many
    references, are one row."""
    runs, pages = [], Pages()
    for address, entry in sorted(mapped.items()):
        frame = entry >> PAGE_SHIFT
        refs = pages.refs(frame) if frame < pages.count else "!"
        if runs:
            first, rights, n, last = runs[-1]
            if (first + n * PAGE_SIZE, rights + n * PAGE_SIZE, last) == \
                    (address, entry, refs):
                runs[-1][2] += 1
                continue
        runs.append([address, entry, 1, refs])
    table = Table("VIRTUAL:-10 PHYSICAL:-10 PAGES:7 RIGHTS:-6 REFS:5")
    for address, entry, n, refs in runs:
        rights = flags_text(entry, (("u", "PTE_USER"), ("r", "PTE_PRESENT"),
                                    ("w", "PTE_WRITE")))
        table.row(Hex(address), Hex(entry & ~PAGE_MASK), n, rights, refs)


class Space(Command):
    """slate space PID
    A program's address space: its regions and its page tables.
    First the regions, what the program may touch; THERE are the pages of each
    that are there. Then the page tables, a row per run of pages that are in
    neighbouring frames. RIGHTS: u in ring 3, r, w without a fault; REFS:
    address spaces that have the frame, more than 1 after fork.
    Example: slate space 4"""

    def run(self, args):
        task = system.parse_task(args.word())
        if not task.task_space:
            raise Fail(f"task {task.task_pid} has no address space; programs "
                       "have")
        space = record("space", task.task_space)
        pages, _ = system.mapped(space)
        print_regions(space, pages)
        print()
        print_runs(pages)
        print(f"{plural(len(pages), 'page')}, "
              f"{plural(space.space_tables, 'page table')}, directory at "
              f"0x{space.space_directory:08x}; the break is "
              f"0x{space.space_break:08x}")
