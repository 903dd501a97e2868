"""slate verify: the invariants of the kernel's objects, from outside.

The same statements as task_verify(), ipc_verify(), space_verify(),
handle_verify(), pipe_verify() and inode_verify() check, in the same words, by
reading alone: it works on a kernel that has crashed, and on a core. A machine
that was stopped in the middle of a change may be found broken where it is
merely not done.

Each check is a generator of (where, what) for all that it finds wrong, where
the kernel tells the first only.
"""

import common
import objects_model as model
import objects_servers

# ---- tasks -----------------------------------------------------------------


def readable(address):
    try:
        common.read(address, 1)
        return True
    except common.BadMemory:
        return False


def by_pid():
    """{pid: address} of the table that task_find() searches."""
    table = common.variable("by_pid", "task/task.c")
    low, high = table.type.range()
    found = {}
    for i in range(low, high + 1):
        head = int(table[i].address) & common.WORD_MASK
        for t in model.members(head, "struct task", "task_hash_link",
                               model.TASK_HOME):
            if not isinstance(t, model.Bad):
                found.setdefault(t.task_pid, t.address)
    return found


def wrong_task(task, table, current):
    if task.task_kstack and readable(task.task_kstack):
        return "a kernel stack has no guard page"
    if table.get(task.task_pid) != task.address:
        return "a task is not found by its pid"
    if task.task_waiting and not model.is_state(task, "TASK_BLOCKED"):
        return "a task in a wait queue is not blocked"
    if model.is_state(task, "TASK_RUNNING") and task.address != current:
        return "a task is marked running and is not on a processor"
    return None


def check_ready():
    heads = common.variable("ready", "task/sched.c")
    mask = int(common.variable("ready_mask", "task/sched.c"))
    low, high = heads.type.range()
    for priority in range(low, high + 1):
        head = int(heads[priority].address) & common.WORD_MASK
        n = 0
        for t in model.members(head, "struct task", "task_link",
                               model.TASK_HOME):
            n += 1
            if isinstance(t, model.Bad):
                yield "the scheduler", "a run queue does not end"
            elif not model.is_state(t, "TASK_READY") or \
                    t.task_priority != priority:
                yield model.title(t), "a task in a run queue is not ready, " \
                    "or in a wrong one"
        if (n != 0) != bool(mask >> priority & 1):
            yield "the scheduler", "ready_mask does not match the run queues"


def check_sleepers():
    last = 0
    for t in model.members(common.address_of("sleepers", "task/sched.c"),
                           "struct task", "task_timer_link", model.TASK_HOME):
        if isinstance(t, model.Bad):
            yield "the scheduler", "the list of sleepers does not end"
            return
        if not t.task_timed or not model.is_state(t, "TASK_BLOCKED"):
            yield model.title(t), "a sleeper is not waiting"
        if t.task_wake_ms < last:
            yield model.title(t), "the sleepers are not in order of time"
        last = t.task_wake_ms


def check_tasks(count):
    table, before = by_pid(), -1
    current = common.record_of(common.variable("cpu_boot")).cpu_task
    for t in model.tasks():
        count()
        if isinstance(t, model.Bad):
            yield "the list of tasks", t.why
            continue
        if t.task_pid <= before:
            yield t.task_name, "the tasks are not in order of pid"
        before = t.task_pid
        wrong = wrong_task(t, table, current)
        if wrong:
            yield t.task_name, wrong
    yield from check_ready()
    yield from check_sleepers()


# ---- ports -----------------------------------------------------------------

def check_members(head, state, member, owner):
    """Every task in a list says that it is in it."""
    states = model.ipc_states()
    for t in model.ipc_members(head):
        if isinstance(t, model.Bad):
            return "a list of waiting tasks is broken"
        ipc = t.task_ipc
        actual = states["ANSWER"] if ipc.ipc_state == states["TRANSFER"] \
            else ipc.ipc_state
        link = ipc.where("ipc_link")
        if common.word(ipc.ipc_link.next + common.WORD) != link:
            return "a list of waiting tasks is broken"
        if actual != states[state]:
            return "a task is in a list, but not in the state for it"
        if getattr(ipc, member) != owner:
            return "a task is in the list of another port or server"
    return None


def wrong_port(port):
    callers = port.where("port_callers")
    wrong = check_members(callers, "QUEUED", "ipc_port", port.address) or \
        check_members(port.where("port_receivers"), "RECEIVING", "ipc_port",
                      port.address)
    if wrong:
        return wrong
    o = port.port_object
    if o.object_type != common.address_of("port_type") or \
            o.object_refs < port.port_holders:
        return "a port has fewer references than receivers"
    names = int(common.variable("name_server_port")) & common.WORD_MASK
    if port.port_holders == 0 and (
            common.word(callers) != callers or port.port_bits
            or port.address == names or model.irq_lines(port.address)):
        return "a dead port is still in use"
    return None


def alarms():
    """The ports that wait for their time, by time."""
    return list(model.members(common.address_of("alarms", "ipc/alarm.c"),
                              "struct port", "port_alarm_link", "port_init"))


def wrong_alarm(port, waiting):
    if (port.address in waiting) != bool(port.port_alarm_bits):
        return "a port's alarm and the list of alarms do not match"
    if port.address in waiting and port.port_holders == 0:
        return "a dead port has an alarm"
    return None


def list_of(ipc):
    """The head of the list that a task's state says it is in."""
    states = model.ipc_states()
    if ipc.ipc_state == states["QUEUED"]:
        return model.port_at(ipc.ipc_port).where("port_callers")
    if ipc.ipc_state == states["RECEIVING"]:
        return model.port_at(ipc.ipc_port).where("port_receivers")
    return model.task_at(ipc.ipc_server).task_ipc.where("ipc_clients")


def listed(head, link):
    return any(link == at for at in common.walk_list(head))


def wrong_ipc(task):
    ipc, states = task.task_ipc, model.ipc_states()
    clients = ipc.where("ipc_clients")
    wrong = check_members(clients, "ANSWER", "ipc_server", task.address)
    if wrong:
        return wrong
    if ipc.ipc_last:
        last = model.task_at(ipc.ipc_last).task_ipc.where("ipc_link")
        if not listed(clients, last):
            return "the caller received last does not wait for an answer"
    if ipc.ipc_state == states["NONE"]:
        return None
    if not listed(list_of(ipc), ipc.where("ipc_link")):
        return "a task is not in the list of its state"
    if task.task_waiting or (task.task_timed and not ipc.ipc_kernel):
        return "a task waits for a message and for something else"
    killed = common.macros("kernel/task/task.h")["PENDING_KILL"]
    blocked = model.is_state(task, "TASK_BLOCKED")
    if not blocked and not task.task_pending & killed:
        return "a task waits for a message, but is not blocked"
    if blocked and bool(task.task_interruptible) != \
            (ipc.ipc_state != states["TRANSFER"] and not ipc.ipc_patient):
        return "a task that waits for a message cannot be killed, or is " \
            "pinned and can"
    return None


def check_ports(count):
    before = 0
    waiting = alarms()
    if any(isinstance(p, model.Bad) for p in waiting):
        yield "the alarms", "the list of alarms does not end"
        waiting = [p for p in waiting if not isinstance(p, model.Bad)]
    times = [p.port_alarm_ms for p in waiting]
    if times != sorted(times):
        yield "the alarms", "the alarms are not in order of time"
    waiting = {p.address for p in waiting}
    for port in model.ports():
        count()
        if isinstance(port, model.Bad):
            yield "the list of ports", port.why
            continue
        if port.port_number <= before:
            yield f"port {port.port_number}", \
                "the ports are not in order of number"
        before = port.port_number
        wrong = wrong_port(port) or wrong_alarm(port, waiting)
        if wrong:
            yield f"port {port.port_number}", wrong
    for task in model.good_tasks():
        try:
            wrong = wrong_ipc(task)
        except (common.Broken, common.BadMemory) as e:
            wrong = f"a list of waiting tasks is broken: {e}"
        if wrong:
            yield f"task {task.task_pid} {task.task_name}", wrong


# ---- programs --------------------------------------------------------------

def stands_still(task):
    return task.task_space and model.is_state(task, "TASK_BLOCKED") and \
        task.task_ipc.ipc_state != model.ipc_states()["TRANSFER"]


def wrong_regions(space, regions):
    heap = common.enumerators("enum region_kind", "space_init")["REGION_HEAP"]
    last = common.macros("kernel/vm/user.h")["USER_BASE"]
    for r in regions:
        if isinstance(r, model.Bad):
            return r.why
        if r.region_start < last or r.region_end < r.region_start:
            return "the regions overlap or are not in order"
        end = -(-space.space_break // common.PAGE_SIZE) * common.PAGE_SIZE
        if r.region_kind == heap and r.region_end != end:
            return "the heap does not end at the break"
        last = r.region_end
    return None


def wrong_fixed(entry, frames, device):
    """A page of a device, or one for DMA."""
    frame = entry >> common.PAGE_SHIFT
    state = frames.state(frame) if frame < frames.count else "reserved"
    if not entry & model.PTE_KEPT or device != bool(entry & model.PTE_NOCACHE):
        return "a page of a device or for DMA is mapped like others"
    if device and state != "reserved":
        return "a device's page is memory"
    if not device and state not in ("user", "tail"):
        return "a frame for DMA is not a program's"
    return None


def wrong_page(entry, address, regions, frames):
    region = next((r for r in regions
                   if r.region_start <= address < r.region_end), None)
    if region is None:
        return "a page is mapped outside the regions"
    frame = entry >> common.PAGE_SHIFT
    kinds = common.enumerators("enum region_kind", "space_init")
    if region.region_kind in (kinds["REGION_DEVICE"], kinds["REGION_DMA"]):
        return wrong_fixed(entry, frames,
                           region.region_kind == kinds["REGION_DEVICE"])
    if entry & model.PTE_KEPT:
        return "a page of a program's own is not counted"
    if frame >= frames.count:
        return "a page table entry leads outside memory"
    if frames.state(frame) != "user" or frames.refs(frame) == 0:
        return "a mapped frame is not a program's"
    writable = region.region_prot & \
        common.macros("kernel/abi/types.h")["PROT_WRITE"]
    if entry & model.PTE_WRITE and (not writable or frames.refs(frame) != 1):
        return "a page may be written that is shared or read-only"
    return None


def wrong_space(space, frames):
    regions = list(model.regions(space))
    wrong = wrong_regions(space, regions)
    tables = pages = 0
    if wrong:
        return wrong
    for base, entries in model.page_tables(space):
        tables += 1
        for i, entry in enumerate(entries):
            if not entry:
                continue
            pages += 1
            wrong = wrong_page(entry, base + i * common.PAGE_SIZE, regions,
                               frames)
            if wrong:
                return wrong
    if (tables, pages) != (space.space_tables, space.space_pages):
        return "a space has other pages or tables than it counts"
    return None


def wrong_handles(table):
    inline = common.macros("kernel/task/handle.h")["HANDLES_INLINE"]
    most = common.macros("kernel/abi/types.h")["HANDLES_MAX"]
    if not inline <= table.table_size <= most:
        return "the size of a handle table is out of bounds"
    if (table.table_slot == table.where("table_first")) != \
            (table.table_size == inline):
        return "a handle table's slots do not match its size"
    used = 0
    for number, slot in enumerate(model.slots(table)):
        used += slot.handle_object != 0
        if not slot.handle_object and number < table.table_lowest:
            return "a handle below the lowest free one is free"
        if slot.handle_object:
            o = common.record("struct object", slot.handle_object,
                              model.OBJECT_HOME)
            if o.object_refs == 0:
                return "a handle refers to an object without references"
    return None if used == table.table_used \
        else "a handle table's count is wrong"


def check_programs(count):
    frames = model.Frames()
    for task in model.good_tasks():
        if not stands_still(task):
            continue
        count()
        try:
            wrong = wrong_space(model.space_at(task.task_space), frames)
            if not wrong and task.task_handles:
                wrong = wrong_handles(model.table_of(task))
        except common.BadMemory as e:
            wrong = str(e)
        if wrong:
            yield model.title(task), wrong


# ---- pipes -----------------------------------------------------------------

def nobody_waits(queue):
    """Whether the wait queue at `queue`, or the lock that begins with one, has
    no task in it."""
    return common.word(queue) == queue


def queues(pipe):
    """{member: the list of those who wait there}"""
    found = {name: pipe.where(name) for name in
             ("pipe_readable", "pipe_writable", "pipe_turn")}
    found["pipe_mutex"] = common.record(
        "struct mutex", pipe.where("pipe_mutex"),
        "mutex_init").where("mutex_waiters")
    return found


def wrong_pipe(pipe):
    size = common.macros("kernel/abi/types.h")["PIPE_SIZE"]
    if pipe.pipe_readers > 1 or pipe.pipe_writers > 1:
        return "a pipe has several readers or writers"
    if pipe.pipe_bytes > pipe.pipe_limit or pipe.pipe_first >= size:
        return "a pipe's bytes are outside its buffer"
    if pipe.pipe_need > size:
        return "a pipe's writer waits for more room than a pipe has"
    wait = queues(pipe)
    if pipe.pipe_need == 0 and not nobody_waits(wait["pipe_writable"]):
        return "a writer waits for room and pipe_need is 0"
    unused = not (pipe.pipe_bytes or pipe.pipe_first or pipe.pipe_limit
                  or pipe.pipe_need or pipe.pipe_buffer) and \
        all(nobody_waits(q) for q in wait.values())
    if not (pipe.pipe_readers or pipe.pipe_writers) and not unused:
        return "a pipe without ends is not in its constructed state"
    return None


def check_pipes(count):
    found = model.pipes(True)
    for pipe in found:
        if isinstance(pipe, model.Bad):
            yield "the list of pipes", pipe.why
            continue
        count()
        wrong = None if pipe.pipe_mutex.mutex_owner else wrong_pipe(pipe)
        if wrong:
            yield f"pipe 0x{pipe.address:08x}", wrong
    if len(found) != int(common.variable("pipe_count", "fs/pipe.c")):
        yield "the list of pipes", "the number of pipes is wrong"


# ---- inodes ----------------------------------------------------------------

def wrong_inode(inode):
    fs = model.fs_at(inode.inode_fs)
    mixed = (inode.inode_number ^ fs.fs_id << 24) * 0x9e3779b1 \
        & common.WORD_MASK
    failed = common.enumerators("enum inode_state",
                                "inode_init")["INODE_FAILED"]
    lru = inode.where("inode_lru_link")
    is_listed = common.word(lru) != lru
    if inode.inode_hash_link.link_hash != mixed ^ mixed >> 16:
        return "inode: hash does not match the number"
    if inode.inode_state >= failed:
        return "inode: a failed or dropped inode is in the table"
    if is_listed != (inode.inode_refs == 0):
        return "inode: the LRU list does not match the references"
    if is_listed and inode.inode_nlink == 0:
        return "inode: kept although its file has no link"
    if inode.inode_mounted and \
            model.fs_at(inode.inode_mounted).fs_covers != inode.address:
        return "inode: covered by a file system that covers another"
    return None


def check_hash(table):
    """What hash_verify() checks, but for the memory of buckets."""
    if not 1 <= table.hash_buckets <= table.hash_mask or \
            table.hash_buckets <= table.hash_mask >> 1:
        yield "hash: mask does not match the number of buckets"
        return
    n = 0
    for i, chain in enumerate(model.hash_chains(table)):
        for link in chain:
            if isinstance(link, model.Bad):
                yield f"hash: {link.why}"
                continue
            n += 1
            hash_ = common.word(link + common.WORD)
            bucket = hash_ & table.hash_mask
            if bucket >= table.hash_buckets:
                bucket &= table.hash_mask >> 1
            if bucket != i:
                yield "hash: entry in the wrong bucket"
    if n != table.hash_count:
        yield f"hash: {n} entries, but {table.hash_count} counted"


def check_inodes(count):
    for wrong in check_hash(model.inode_table()):
        yield "the table of inodes", wrong
    unused = 0
    for inode in model.inodes():
        if isinstance(inode, model.Bad):
            continue  # the table has been told of
        count()
        unused += inode.inode_refs == 0
        wrong = wrong_inode(inode)
        if wrong:
            yield (f"inode {inode.inode_number} of {model.fs_name(inode)} at "
                   f"0x{inode.address:08x}"), wrong
    totals = common.record_of(common.variable("totals", "fs/inode.c"))
    try:
        n = len(list(common.walk_list(common.address_of("inode_lru",
                                                        "fs/inode.c"))))
    except common.Broken:
        n = -1
    if n != unused or n != totals.total_unused:
        yield "the LRU list", \
            "inode: the LRU list does not hold all unused inodes"


# ---- all of it -------------------------------------------------------------

CHECKS = {"tasks": check_tasks, "ports": check_ports,
          "programs": check_programs, "pipes": check_pipes,
          "inodes": check_inodes, "servers": objects_servers.check}
COLUMNS = "{:<9} {:>8} {:>4}  {}"


def run_check(check):
    """(how many were looked at, [(where, what)])"""
    counted = [0]

    def count():
        counted[0] += 1
    found = []
    try:
        for item in check(count):
            found.append(item)
    except (common.BadMemory, common.Broken) as e:
        found.append(("memory", str(e)))
    return counted[0], found


class Verify(common.Command):
    name = "slate verify"
    usage = "[-j] [KIND]"
    summary = "Check every invariant of tasks, ports, programs and the like"
    details = """
KIND is one of tasks, ports, programs, pipes, inodes, servers. Programs are
checked (address space, handles) while they wait, as the shell's verify does.
All that is broken is listed. A machine that was stopped in the middle of a
change may be found broken where it is merely not done. The heap is checked by
`slab verify`. $_exitcode is the number of things that are broken.
  -j  one JSON object: how many are broken, and of each kind the first"""
    example = "slate verify"
    options = "j"
    most = 1
    wants = "wants one kind at most: " + " ".join(CHECKS)

    def run(self, args):
        kinds = [args.words[0]] if args.words else list(CHECKS)
        if kinds[0] not in CHECKS:
            raise common.Fail(f"there is no kind '{kinds[0]}'; "
                              f"{' '.join(CHECKS)} are")
        results = {kind: run_check(CHECKS[kind]) for kind in kinds}
        bad = sum(len(found) for _, found in results.values())
        common.gdb.set_convenience_variable("_exitcode", bad)
        if "j" in args:
            common.json_line({"bad": bad, **{
                kind: found[0][1] if found else ""
                for kind, (_, found) in results.items()}})
            return
        print(COLUMNS.format("KIND", "CHECKED", "BAD", "WHAT").rstrip())
        for kind, (checked, found) in results.items():
            print(COLUMNS.format(kind, checked, len(found), "").rstrip())
            for where, what in found:
                print(f"! {where}: {what}")
        if not bad:
            print("every invariant holds")


Verify()
