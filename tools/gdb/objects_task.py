"""slate tasks, files, space: the tasks, and what a program owns.

The first two are `ps` and `files` of the kernel shell, column by column. A
task that is being changed just now, because the machine was stopped in the
middle, is shown as it is.
"""

import common
import objects_model as model

# ---- tasks -----------------------------------------------------------------

TASK_COLUMNS = ("{:>5} {:>5} {:>5} {:<7} {:>3} {:<6} {:>7} {:>8} {:<13.13} {}")


def ms_per_tick():
    return 1000 // common.macros("drivers/pit.h")["TIMER_HZ"]


def parent_pid(task):
    if not task.task_parent:
        return 0
    try:
        return model.task_at(task.task_parent).task_pid
    except common.BadMemory:
        return "!"


def task_row(task):
    """What `ps` shows of a task; and what is wrong with it, or None."""
    states = model.task_states()
    wrong = None
    try:
        waits = model.waits_for(task) or "-"
    except common.BadMemory as e:
        waits, wrong = "!", f"its wait queue: {e}"
    if task.task_state not in states:
        wrong = f"there is no state {task.task_state}"
    return {"pid": task.task_pid, "ppid": parent_pid(task),
            "group": task.task_group,
            "state": model.name_of(task.task_state, states),
            "priority": task.task_priority, "user": bool(task.task_space),
            "cpu_ms": task.task_ticks * ms_per_tick(),
            "switches": task.task_switches, "waits_for": waits,
            "name": task.task_name}, wrong


class Tasks(common.Command):
    name = "slate tasks"
    usage = "[-j]"
    summary = "The tasks, programs and the kernel's own: the shell's ps"
    details = """
  PPID GRP   the parent (0: none that lives) and the group
  STATE      ready, running, blocked; ended: its parent has not asked yet
  PRI        0 idle, 1 programs, 2 servers, 3 the kernel's own
  KIND       user: has an address space
  CPU        time it ran, in steps of 10 ms
  SWITCHES   how often it got the processor
  WAITS-FOR  what a blocked task is to be woken by
  -j         JSON lines"""
    example = "slate tasks"
    options = "j"

    def run(self, args):
        if "j" not in args:
            print(TASK_COLUMNS.format("PID", "PPID", "GRP", "STATE", "PRI",
                                      "KIND", "CPU(ms)", "SWITCHES",
                                      "WAITS-FOR", "NAME"))
        for task in model.tasks():
            if isinstance(task, model.Bad):
                print(task)
                continue
            row, wrong = task_row(task)
            if "j" in args:
                common.json_line(row)
                continue
            row["user"] = "user" if row["user"] else "kernel"
            row["switches"] = common.count(row["switches"], 8)
            print(TASK_COLUMNS.format(*row.values())
                  + (f"  ! {wrong}" if wrong else ""))


# ---- files -----------------------------------------------------------------

FILE_COLUMNS = "{:>6} {:<6} {:<8} {:>10} {}"


def device_name(number):
    for name, value in common.enumerators("enum device",
                                          "device_open").items():
        if value == number:
            return name.removeprefix("DEVICE_").lower()
    return None


def what_inode(inode):
    """(type, what) of an open inode."""
    kind = model.name_of(inode.inode_type, model.file_types())
    if kind == "device" and device_name(inode.inode_device):
        return kind, device_name(inode.inode_device)
    number = inode.inode_device if kind == "device" else inode.inode_number
    return kind, (f"{model.fs_name(inode)} {kind} {number}, "
                  f"{inode.inode_size} bytes")


def what_pipe(address):
    for pipe in model.pipes():
        if not isinstance(pipe, model.Bad) and pipe.address == address:
            return f"pipe 0x{address:08x}, {pipe.pipe_bytes} bytes in it"
    return f"pipe 0x{address:08x}"


def file_row(handle):
    """(type, flags, offset, what) of a handle to an open file."""
    numbers = common.macros("kernel/abi/types.h")
    f = model.file_at(handle.object)
    flags = {0: "r", 1: "w", 2: "rw"}.get(f.file_flags & numbers["O_ACCMODE"],
                                          "?")
    if f.file_flags & numbers["O_APPEND"]:
        flags += "a"
    if f.file_inode:
        kind, what = what_inode(model.inode_at(f.file_inode))
    else:
        kind, what = "pipe", what_pipe(f.file_data)
    return kind, flags, f.file_offset, what


def handle_row(handle):
    numbers = common.macros("kernel/task/handle.h")
    kind, flags, offset, what = handle.type_name(), "", 0, None
    if handle.is_file():
        kind, flags, offset, what = file_row(handle)
    elif handle.is_port():
        flags = "receive " if handle.flags & numbers["HANDLE_RECEIVE"] \
            else "call "
        what = f"{kind} {model.port_at(handle.object).port_number}"
    if handle.flags & numbers["HANDLE_CLOEXEC"]:
        flags += "c"
    return [kind, flags or "-", offset, what or f"{kind} 0"]


def print_files(task):
    print(FILE_COLUMNS.format("HANDLE", "TYPE", "FLAGS", "OFFSET", "WHAT"))
    try:
        if task.task_cwd:
            kind, what = what_inode(model.inode_at(task.task_cwd))
            print(FILE_COLUMNS.format("cwd", kind, "-", 0, what))
        for handle in model.handles(task):
            if isinstance(handle, model.Bad):
                print(handle)
                continue
            try:
                print(FILE_COLUMNS.format(handle.number, *handle_row(handle)))
            except common.BadMemory as e:
                print(f"! handle {handle.number}: {e}")
    except common.BadMemory as e:
        print(f"! {e}")


class Files(common.Command):
    name = "slate files"
    usage = "[PID]"
    summary = "What a program has open; all programs without PID"
    details = """
A row per handle, after one for the current directory.
  TYPE   file, dir, device, pipe or port
  FLAGS  r w: opened for that; a: appends; c: closed by exec;
         receive, call: what may be done with a port
  WHAT   file system, number and size of its inode (`slate inodes`),
         name of the device, address of the pipe (`slate pipes`),
         number of the port (`slate ports`)"""
    example = "slate files 4"
    most = 1
    wants = "wants one pid at most; `slate tasks` lists them"

    def run(self, args):
        if args.words:
            task = model.parse_task(args.words[0])
            if not task.task_handles:
                raise common.Fail(f"task {task.task_pid} has no handles; "
                                  "programs have")
            print_files(task)
            return
        owners = [t for t in model.good_tasks() if t.task_handles]
        for task in owners:
            print(f"{model.title(task)}:")
            print_files(task)
        if not owners:
            print("(no task has handles)")


# ---- space -----------------------------------------------------------------

REGION_COLUMNS = "{:<10} {:<10} {:>7} {:>7} {:<4} {}"
RUN_COLUMNS = "{:<10} {:<10} {:>7} {:<4} {:>5}"


def prot_text(prot):
    numbers = common.macros("kernel/abi/types.h")
    return ("r" if prot & numbers["PROT_READ"] else "-") + \
        ("w" if prot & numbers["PROT_WRITE"] else "-")


def mapped(space):
    """{address: entry} of every page of a program that is there."""
    return {base + i * common.PAGE_SIZE: entry
            for base, entries in model.page_tables(space)
            for i, entry in enumerate(entries) if entry}


def runs(pages, frames):
    """Neighbouring pages in neighbouring frames, with like rights and as many
    references: [address, entry, pages, references]."""
    found = []
    for address, entry in sorted(pages.items()):
        frame = entry >> common.PAGE_SHIFT
        refs = frames.refs(frame) if frame < frames.count else "!"
        last = found[-1] if found else None
        if last and address == last[0] + last[2] * common.PAGE_SIZE and \
                entry == last[1] + last[2] * common.PAGE_SIZE and \
                refs == last[3]:
            last[2] += 1
        else:
            found.append([address, entry, 1, refs])
    return found


def entry_text(entry):
    """As `info mem` would have it: user, writable."""
    return ("u" if entry & model.PTE_USER else "-") + "r" + \
        ("w" if entry & model.PTE_WRITE else "-")


def print_regions(space, pages):
    kinds = {number: name.removeprefix("REGION_").lower() for name, number in
             common.enumerators("enum region_kind", "space_init").items()}
    print(REGION_COLUMNS.format("START", "END", "KIB", "THERE", "PROT",
                                "KIND"))
    for r in model.regions(space):
        if isinstance(r, model.Bad):
            print(r)
            continue
        there = sum(r.region_start <= a < r.region_end for a in pages)
        kib = (r.region_end - r.region_start) // 1024
        print(REGION_COLUMNS.format(
            f"0x{r.region_start:08x}", f"0x{r.region_end:08x}", kib, there,
            prot_text(r.region_prot), model.name_of(r.region_kind, kinds)))


class Space(common.Command):
    name = "slate space"
    usage = "PID"
    summary = "A program's address space: its regions and its page tables"
    details = """
First the regions, what the program may touch:
  KIB THERE  its size, and how many of its pages are there
  PROT       r w: may be read, written
  KIND       image, heap, mmap or stack
Then the page tables, what is there, a row per run of pages that lie in
neighbouring frames:
  RIGHTS     u: in ring 3; r; w: can be written without a fault
  REFS       address spaces that have the frame; more than 1 after fork"""
    example = "slate space 4"
    least = most = 1
    wants = "wants a pid; `slate tasks` lists them"

    def run(self, args):
        task = model.parse_task(args.words[0])
        if not task.task_space:
            raise common.Fail(f"task {task.task_pid} has no address space; "
                              "programs have")
        space = model.space_at(task.task_space)
        pages = mapped(space)
        print_regions(space, pages)
        print()
        print(RUN_COLUMNS.format("VIRTUAL", "PHYSICAL", "PAGES", "RIGHTS",
                                 "REFS"))
        for address, entry, count, refs in runs(pages, model.Frames()):
            print(RUN_COLUMNS.format(
                f"0x{address:08x}", f"0x{entry & ~common.PAGE_MASK:08x}",
                count, entry_text(entry), refs))
        print(f"{common.plural(len(pages), 'page')}, "
              f"{common.plural(space.space_tables, 'page table')}, directory "
              f"at 0x{space.space_directory:08x}; the break is "
              f"0x{space.space_break:08x}")


Tasks()
Files()
Space()
