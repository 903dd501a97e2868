"""slate tasks, files, space: the tasks, and what a program owns. slate pipes,
inodes, mounts: files from the kernel's side. slate dmesg: what the kernel has
printed."""

import system
import target
from command import Command, Hex, Table, merged, percent, plural
from heap import Pages
from target import (PAGE_MASK, PAGE_SHIFT, PAGE_SIZE, BadMemory, Fail,
                    constant, enumerators, escaped, record, record_of, string)


def number_in(kind, address, member):
    """That number of an object that a task refers to; 0 if it has none."""
    try:
        return getattr(record(kind, address), member) if address else 0
    except BadMemory:
        return "!"


class Tasks(Command):
    """slate tasks [-j]
    The tasks, programs and the kernel's own: the shell's ps.
    PPID is the parent, 0 if none lives; GRP the group. STATE `ended`: its
    parent has not waited for it yet. PRI: 0 idle, 1 programs, 2 servers, 3 the
    kernel's own. SES: its session, 0 outside of all, - the kernel's own.
    SWITCHES counts how often it got the processor."""

    def run(self, args):
        table = Table("PID:5 PPID:5 GRP:5 SES:4 STATE:-7 PRI:3 CPU(ms):7 "
                      "SWITCHES:8 WAITS-FOR:-13 NAME:-1", "j" in args)
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


def inode_row(address):
    """(type, text) of an open inode."""
    inode = record("inode", address)
    kind = system.file_type(inode)
    device = enumerators("device", "DEVICE_").get(inode.inode_device)
    return kind, device if kind == "device" and device else \
        system.inode_text(inode)


def handle_row(slot, kind):
    """(type, flags, offset, text)"""
    text, offset, flags = f"{kind} 0", 0, ""
    if kind == "port":
        receive = slot.handle_flags & constant("HANDLE_RECEIVE")
        flags = "receive " if receive else "call "
        text = f"port {record('port', slot.handle_object).port_number}"
    elif kind == "file":
        f = record("file", slot.handle_object)
        flags = system.access_text(f.file_flags) + \
            "a" * bool(f.file_flags & constant("O_APPEND"))
        offset, kind = f.file_offset, "pipe"
        if f.file_inode:
            kind, text = inode_row(f.file_inode)
        else:
            n = record("pipe", f.file_data).pipe_bytes
            text = f"pipe 0x{f.file_data:08x}, {n} bytes in it"
    flags += "c" * bool(slot.handle_flags & constant("HANDLE_CLOEXEC"))
    return kind, flags.strip() or "-", offset, text


def print_files(task):
    table = Table("HANDLE:6 TYPE:-6 FLAGS:-8 OFFSET:10 WHAT:-1")
    try:
        if task.task_cwd:
            kind, text = inode_row(task.task_cwd)
            table.row("cwd", kind, "-", 0, text)
        for number, slot, kind in table.each(system.handles(task)):
            try:
                table.row(number, *handle_row(slot, kind))
            except BadMemory as e:
                table.bad(f"handle {number}: {e}")
    except BadMemory as e:
        table.bad(e)


class Files(Command):
    """slate files [PID]
    The open handles of a program; of all programs without PID.
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
        pages, _ = system.mapped(space)
        print_regions(space, pages)
        print()
        print_runs(pages)
        print(f"{plural(len(pages), 'page')}, "
              f"{plural(space.space_tables, 'page table')}, directory at "
              f"0x{space.space_directory:08x}; the break is "
              f"0x{space.space_break:08x}")


class Pipes(Command):
    """slate pipes
    The pipes that are open.
    READERS and WRITERS are 0 where that end is closed. BYTES are in the pipe
    now, TOTAL were written since it was created."""

    def run(self, args):
        table = Table("PIPE:-10 READERS:7 WRITERS:7 BYTES:6 TOTAL:10")
        for p in table.each(system.pipes()):
            table.row(Hex(p.address), p.pipe_readers, p.pipe_writers,
                      p.pipe_bytes, p.pipe_total)
        if not table.rows:
            print("(no pipe is open)")


class Inodes(Command):
    """slate inodes [-a]
    The inode cache.
    The files in use, by file system and number: REFS counts open files, current
    directories and mounts. The last lines say how many files are cached though
    unused, and how often an inode that was looked up was cached.
      -a  unused ones too
    Example: slate inodes -a"""

    def run(self, args):
        table = Table("FS:-8 NUMBER:8 TYPE:-6 LINKS:5 SIZE:10 REFS:5 :-1")
        for inode in table.each(system.inodes()):
            if "a" in args or inode.inode_refs:
                table.row(system.fs_name(inode), inode.inode_number,
                          system.file_type(inode), inode.inode_nlink,
                          inode.inode_size, inode.inode_refs,
                          "" if inode.inode_refs else " unused")
        totals = record_of("totals", "fs/inode.c")
        looked = totals.total_hits + totals.total_misses
        print(f"{system.inode_table().hash_count} inodes in memory, "
              f"{totals.total_unused} of them unused; "
              f"{totals.total_reclaimed} reclaimed\n"
              f"looked up {looked} times, found {totals.total_hits} times: "
              f"{percent(totals.total_hits, looked)} %")


class Mounts(Command):
    """slate mounts
    File systems and their servers.
    ROOT is the number of the root directory, INODES how many of its inodes are
    in memory. STATE `dead`: the server has died, and no other has started."""

    def run(self, args):
        table = Table("PATH:-11 KIND:-5 ROOT:8 INODES:6 SERVER:-12 STATE:-1")
        for fs in table.each(system.mounts()):
            try:
                server, state = None, "ok"
                if fs.fs_ops == target.address_of("userfs_ops"):
                    port = record("port", record("userfs",
                                                 fs.address).userfs_port)
                    server = escaped(system.task_name(port.port_server)) + \
                        f"({port.port_server})"
                    state = "ok" if port.port_holders else "dead"
                table.row(escaped(string(fs.fs_path, 1024)),
                          string(fs.fs_name, 16), fs.fs_root, fs.fs_inodes,
                          server, state)
            except BadMemory as e:
                table.bad(e)


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
