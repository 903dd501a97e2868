"""slate verify: the invariants of the kernel's objects, in the words of its
own task_verify, ipc_verify, space_verify, handle_verify, pipe_verify,
inode_verify and grant_verify."""

import gdb

import system
import target
from command import Command, Table
from heap import Pages
from slab_verify import first
from slate_messages import grants, port_ranges
from system import ipc_members, ipc_state, state_of, title
from target import (PAGE_SHIFT, PAGE_SIZE, UNREADABLE, WORD, WORD_MASK,
                    address_of, constant, good, integer, members, present, read,
                    record, record_of, walk_list, word)


class Report:
    """How many objects were checked, and [(where, why)] of what is broken."""

    def __init__(self, check):
        self.checked, self.found = 0, []
        try:
            check(self)
        except UNREADABLE as e:
            self.add("memory", str(e))

    def add(self, where, why):
        if why:
            self.found.append((where, why))

    def each(self, items, where):
        """Counts the items; yields those that can be read."""
        for item in items:
            self.checked += 1
            if isinstance(item, UNREADABLE):
                self.add(where, str(item))
            else:
                yield item


# ---- tasks -----------------------------------------------------------------

def lists(array, file, link):
    """The tasks on each of an array of lists."""
    return [list(members(int(head.address) & WORD_MASK, "task", link))
            for head in target.elements(array, file)]


def check_ready(report):
    if system.current() is None:
        return  # there is no scheduler yet
    mask = integer("ready_mask", "task/sched.c")
    for priority, queue in enumerate(lists("ready", "task/sched.c",
                                           "task_link")):
        report.add("the scheduler", first(
            (len(good(queue)) < len(queue), "a run queue does not end"),
            (bool(queue) != bool(mask >> priority & 1),
             "ready_mask does not match the run queues")))
        for t in good(queue):
            if state_of(t) != "ready" or t.task_priority != priority:
                report.add(title(t), "a task in a run queue is not ready, or "
                           "in a wrong one")


def check_timeouts(report):
    if system.current() is None:
        return  # likewise
    for head in target.elements("wheel", "task/timeout.c"):
        for t in members(int(head.address) & WORD_MASK, "timeout",
                         "timeout_link"):
            report.add("the time-outs", first(
                (isinstance(t, UNREADABLE),
                 "a list of time-outs does not end"),
                (good([t]) and not t.timeout_ms,
                 "a time-out in a list is not pending")))


def check_tasks(report):
    running = system.current()
    pids = target.variable("pids", "task/task.c")
    for t in report.each(system.tasks(), "the list of tasks"):
        report.add(t.task_name, first(
            (t.task_kstack and [*present(t.task_kstack, t.task_kstack + 1)],
             "a kernel stack has no guard page"),
            (pids[t.task_pid]["pid_task"] != t.address,
             "a task is not found by its pid"),
            (t.task_timeout.timeout_ms and state_of(t) != "blocked",
             "a sleeper is not waiting"),
            (t.task_waiting and state_of(t) != "blocked",
             "a task in a wait queue is not blocked"),
            (state_of(t) == "running" and t.address != running.address,
             "a task is marked running and is not on a processor")))
    check_ready(report)
    check_timeouts(report)


# ---- ports -----------------------------------------------------------------

def list_wrong(head, states, member, owner):
    """Whether every task in a list says that it is in it."""
    for t in ipc_members(head):
        ipc = None if isinstance(t, UNREADABLE) else t.task_ipc
        why = first(
            (ipc is None or word(ipc.ipc_link.next + WORD) !=
             ipc.where("ipc_link"), "a list of waiting tasks is broken"),
            (ipc and ipc_state(t) not in states,
             "a task is in a list, but not in the state for it"),
            (ipc and getattr(ipc, member) != owner,
             "a task is in the list of another port or server"))
        if why:
            return why
    return None


def port_wrong(port):
    callers, dead = port.where("port_callers"), port.port_holders == 0
    alarm = port.port_alarm_bits != 0
    return list_wrong(callers, ("queued",), "ipc_port", port.address) or \
        list_wrong(port.where("port_receivers"), ("receiving",), "ipc_port",
                   port.address) or first(
            (port.port_object.object_type != address_of("port_type") or
             port.port_object.object_refs < port.port_holders,
             "a port has fewer references than receivers"),
            (dead and (word(callers) != callers or port.port_bits
                       or port.address == integer("name_server_port")
                       or system.irq_lines(port.address) or alarm),
             "a dead port is still in use"),
            (alarm != bool(port.port_alarm.timeout_ms),
             "a port's alarm and its time-out do not match"))


def list_of(ipc, state):
    """The head of the list that a task is in by its state."""
    if state in ("queued", "receiving"):
        return record("port", ipc.ipc_port).where(
            "port_callers" if state == "queued" else "port_receivers")
    return record("task", ipc.ipc_server).task_ipc.where("ipc_clients")


def ipc_wrong(task):
    ipc, state = task.task_ipc, ipc_state(task)
    clients, blocked = ipc.where("ipc_clients"), state_of(task) == "blocked"
    last = record("task", ipc.ipc_last).task_ipc.where("ipc_link") \
        if ipc.ipc_last else None
    why = list_wrong(clients, ("reply", "transfer"), "ipc_server",
                     task.address) or first(
        (last and last not in walk_list(clients),
         "the caller received last does not wait for a reply"))
    if why or state == "none":
        return why
    return first(
        (ipc.where("ipc_link") not in walk_list(list_of(ipc, state)),
         "a task is not in the list of its state"),
        (task.task_waiting or
         (task.task_timeout.timeout_ms and not ipc.ipc_kernel),
         "a task waits for a message and for something else"),
        (not blocked and
         not task.task_pending & constant("PENDING_KILL"),
         "a task waits for a message, but is not blocked"),
        (blocked and bool(task.task_interruptible) != (state != "transfer"),
         "a task that waits for a message cannot be killed, or is pinned and "
         "can"))


def check_ports(report):
    before = 0
    for port in report.each(system.ports(), "the list of ports"):
        report.add(f"port {port.port_number}", first(
            (port.port_number <= before,
             "the ports are not in order of number"))
            or port_wrong(port))
        before = port.port_number
    for task in good(system.tasks()):
        try:
            why = ipc_wrong(task)
        except UNREADABLE as e:
            why = f"a list of waiting tasks is broken: {e}"
        report.add(f"task {task.task_pid} {task.task_name}", why)


# ---- programs --------------------------------------------------------------

def regions_wrong(space, regions):
    last = constant("USER_BASE")
    end = -(-space.space_break // PAGE_SIZE) * PAGE_SIZE
    for r in regions:
        if isinstance(r, UNREADABLE):
            return str(r)
        why = first(
            (r.region_start < last or r.region_end < r.region_start,
             "the regions overlap or are not in order"),
            (system.region_kinds().get(r.region_kind) == "heap" and
             r.region_end != end, "the heap does not end at the break"))
        if why:
            return why
        last = r.region_end
    return None


def page_wrong(entry, address, regions, frames):
    region = next((r for r in regions
                   if r.region_start <= address < r.region_end), None)
    if region is None:
        return "a page is mapped outside the regions"
    frame = entry >> PAGE_SHIFT
    inside = frame < frames.count
    state = frames.state(frame) if inside else "reserved"
    kind = system.region_kinds().get(region.region_kind)
    kept = entry & constant("PTE_UNCOUNTED")
    if kind in ("device", "dma"):
        return first(
            (not kept or (kind == "device") !=
             bool(entry & constant("PTE_NOCACHE")),
             "a page of a device or for DMA has wrong attributes"),
            (kind == "device" and state != "reserved",
             "a device's page is memory"),
            (kind == "dma" and state not in ("user", "tail"),
             "a frame for DMA is not a program's"))
    refs = frames.page(frame).refs if inside else 0
    return first(
        (kept, "a program's page is not reference-counted"),
        (not inside, "a page table entry maps a frame outside memory"),
        (state != "user" or refs == 0, "a mapped frame is not a program's"),
        (entry & constant("PTE_WRITE") and (
            not region.region_prot & constant("PROT_WRITE") or refs != 1),
         "a shared or read-only page is writable"))


def space_wrong(space, frames):
    regions = list(system.regions(space))
    why = regions_wrong(space, regions)
    if why:
        return why
    pages, tables = system.mapped(space)
    return next(filter(None, (page_wrong(entry, at, regions, frames)
                              for at, entry in pages.items())), None) or \
        first(((tables, len(pages)) != (space.space_tables, space.space_pages),
               "a space's count of pages or tables is wrong"))


def handles_wrong(table):
    inline = constant("HANDLES_INLINE")
    if not inline <= table.table_size <= constant("HANDLES_MAX"):
        return "the size of a handle table is out of bounds"
    slots = [slot.handle_object for slot in system.slots(table)]
    return first(
        ((table.table_slot == table.where("table_first")) !=
         (table.table_size == inline),
         "a handle table's slots do not match its size"),
        (not all(slots[:table.table_lowest]),
         "a handle below the lowest free one is free"),
        (any(at and record("object", at).object_refs == 0 for at in slots),
         "a handle refers to an object without references"),
        (sum(at != 0 for at in slots) != table.table_used,
         "a handle table's count is wrong"))


def check_programs(report):
    """Checks programs that wait: the memory of one that runs may change."""
    frames = Pages()
    for task in report.each(
            (t for t in good(system.tasks()) if t.task_space and
             state_of(t) == "blocked" and ipc_state(t) != "transfer"), ""):
        try:
            why = space_wrong(record("space", task.task_space), frames)
            if not why and task.task_handles:
                why = handles_wrong(record("handle_table", task.task_handles))
        except UNREADABLE as e:
            why = str(e)
        report.add(title(task), why)


# ---- pipes -----------------------------------------------------------------

def pipe_wrong(pipe):
    def waits(at):
        """Whether a task is in the wait queue that begins there."""
        return word(at) != at
    mutex = record("mutex", pipe.where("pipe_mutex"))
    size, used = constant("PIPE_SIZE"), pipe.pipe_readers or pipe.pipe_writers
    busy = pipe.pipe_bytes or pipe.pipe_first or pipe.pipe_limit or \
        pipe.pipe_need or pipe.pipe_buffer or \
        waits(mutex.where("mutex_waiters")) or any(
            waits(pipe.where(n)) for n in ("pipe_readable", "pipe_writable",
                                           "pipe_turn"))
    return None if mutex.mutex_owner else first(
        (pipe.pipe_readers > 1 or pipe.pipe_writers > 1,
         "a pipe has several readers or writers"),
        (pipe.pipe_bytes > pipe.pipe_limit or pipe.pipe_first >= size,
         "a pipe's bytes are outside its buffer"),
        (pipe.pipe_need > size,
         "a pipe's writer waits for more room than a pipe has"),
        (pipe.pipe_need == 0 and waits(pipe.where("pipe_writable")),
         "a writer waits for room and pipe_need is 0"),
        (not used and busy,
         "a pipe without ends is not in its constructed state"))


def check_pipes(report):
    found = list(system.all_pipes())
    for pipe in report.each(found, "the list of pipes"):
        report.add(f"pipe 0x{pipe.address:08x}", pipe_wrong(pipe))
    if len(found) != integer("pipe_count", "fs/pipe.c"):
        report.add("the list of pipes", "the number of pipes is wrong")


# ---- inodes ----------------------------------------------------------------

def hash_of(*words):
    key = integer("hash_key")
    mixed = key
    for each in words:
        product = (mixed ^ each) * key
        mixed = (product ^ product >> 32) & WORD_MASK
    return mixed


def inode_wrong(inode):
    fs = record("fs", inode.inode_fs)
    lru = inode.where("inode_lru_link")
    listed = word(lru) != lru
    return first(
        (inode.inode_hash_link.link_hash !=
         hash_of(fs.fs_id, inode.inode_number),
         "inode: hash does not match the number"),
        (inode.inode_state >= constant("INODE_FAILED"),
         "inode: a failed or dropped inode is in the table"),
        (listed != (inode.inode_refs == 0),
         "inode: the LRU list does not match the references"),
        (listed and inode.inode_nlink == 0,
         "inode: kept although its file has no link"),
        (inode.inode_mounted and
         record("fs", inode.inode_mounted).fs_covers != inode.address,
         "inode: covered by a file system that covers another"),
        (inode.inode_mounted and inode.inode_nlink == 0,
         "inode: a file system is mounted on a removed directory"))


def hash_wrong(table):
    """Each broken invariant of a struct hash."""
    if not table.hash_mask >> 1 < table.hash_buckets <= table.hash_mask:
        yield "hash: mask does not match the number of buckets"
        return
    n = 0
    for i, chain in enumerate(system.hash_chains(table)):
        for link in chain:
            if isinstance(link, UNREADABLE):
                yield f"hash: {link}"
                continue
            n += 1
            bucket = word(link + WORD) & table.hash_mask
            if bucket >= table.hash_buckets:
                bucket &= table.hash_mask >> 1
            if bucket != i:
                yield "hash: entry in the wrong bucket"
    if n != table.hash_count:
        yield f"hash: {n} entries, but {table.hash_count} counted"


def check_inodes(report):
    table = system.inode_table()
    if not any(table.data):
        return  # there are no file systems yet
    for why in hash_wrong(table):
        report.add("the table of inodes", why)
    unused = 0
    for inode in report.each(good(system.inodes()), ""):
        unused += inode.inode_refs == 0
        report.add(f"inode {inode.inode_number} of {system.fs_name(inode)} "
                   f"at 0x{inode.address:08x}", inode_wrong(inode))
    listed = len(list(walk_list(address_of("inode_lru", "fs/inode.c"))))
    if not listed == unused == record_of("totals", "fs/inode.c").total_unused:
        report.add("the LRU list",
                   "inode: the LRU list does not hold all unused inodes")


# ---- servers ---------------------------------------------------------------

def grant_wrong(grant):
    if not grant.grant_task:
        return first((grant.grant_in_force,
                      "a grant is in force without a task"))
    task = record("task", grant.grant_task)
    return first(
        (not grant.grant_program,
         "a grant without a program has been taken"),
        (task.task_grant != grant.address,
         "a grant's task does not refer to it"),
        (task.task_pid and system.find_task(task.task_pid) is None,
         "a grant's task no longer exists"),
        (state_of(task) == "ended", "a task that has ended has a grant"))


def map_wrong(known):
    """Whether the map allows exactly the ports of one grant."""
    tss = target.variable("gdt_tss")
    grant = integer("mapped", "task/grant.c")
    bits = ~int.from_bytes(read(int(tss["tss_ports"].address), 65536 // 8),
                           "little") & ((1 << 65536) - 1)
    current = system.current()
    own = current.task_ports if current else 0
    granted = 0
    for ports in port_ranges(known[grant]) if grant in known else []:
        granted |= ((1 << len(ports)) - 1) << ports.start
    is_on = int(tss["tss"]["iomap"]) == tss["tss"].type.sizeof
    return first(
        (is_on != bool(own) or (own and own != grant),
         "the map of ports is not that of the task that runs"),
        (bits != granted, "the map allows other ports than the grant"))


def check_servers(report):
    known = {}
    for grant in report.each(grants(), "the list of grants"):
        known[grant.address] = grant
        report.add(grant.grant_server.server_name, grant_wrong(grant))
    for task in good(system.tasks()):
        grant = known.get(task.task_grant)
        report.add(title(task), first(
            (task.task_grant and
             (grant is None or grant.grant_task != task.address),
             "a task has a grant that is not its own"),
            (task.task_ports and (task.task_ports != task.task_grant or
                                  not grant.grant_in_force),
             "a task may use ports that it has no grant for")))
    report.add("the processor", map_wrong(known))


# ---- all of it -------------------------------------------------------------

CHECKS = {"tasks": check_tasks, "ports": check_ports,
          "programs": check_programs, "pipes": check_pipes,
          "inodes": check_inodes, "servers": check_servers}


class Verify(Command):
    """slate verify [-j] [KIND]
    Check every invariant of tasks, ports, programs and the like.
    KIND is one of tasks, ports, programs, pipes, inodes, servers. Programs are
    checked while they wait. A machine that was stopped in the middle of a
    change may look broken. $_exitcode is the number of broken things."""

    def run(self, args):
        if args.words and args.word() not in CHECKS:
            raise target.Fail(f"there is no kind '{args.word()}'; "
                              f"{' '.join(CHECKS)} are")
        table, bad = Table("KIND:-9 CHECKED:8 BAD:4", "j" in args), 0
        for kind in args.words or CHECKS:
            report = Report(CHECKS[kind])
            table.row(kind, report.checked, len(report.found))
            for where, why in report.found:
                table.bad(f"{where}: {why}")
            bad += len(report.found)
        gdb.set_convenience_variable("_exitcode", bad)
        if not bad:
            table.say("every invariant holds")
