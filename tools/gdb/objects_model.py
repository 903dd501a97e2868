"""The kernel's objects as data, for the commands of `slate`.

Every structure comes as a common.Record. A list that is broken, or leads to
what is no memory, ends with a Bad that says so; who walks it prints that as a
row of its own. Types are looked up by a function of the file that knows them,
since a program whose symbols are loaded may have one of the same name.
"""

import common

PAGE_ENTRIES = 1024
PTE_PRESENT, PTE_WRITE, PTE_USER = 1, 2, 4
PTE_NOCACHE, PTE_KEPT = 1 << 4, 1 << 9


class Bad:
    """In place of an object that cannot be had."""

    def __init__(self, why):
        self.why = why

    def __str__(self):
        return f"! {self.why}"


def members(head, kind, link, home, offset=0):
    """The structures in the list with its head at `head`, by their member
    `link`, `offset` bytes into it."""
    at = common.layout(kind, home).members[link][0] + offset
    try:
        for address in common.walk_list(head):
            try:
                yield common.record(kind, address - at, home)
            except common.BadMemory as e:
                yield Bad(str(e))
    except (common.Broken, common.BadMemory) as e:
        yield Bad(str(e))


def name_of(number, names):
    """The name of an enumerator, as the shell writes it."""
    return names.get(number, f"?{number}")


# ---- tasks -----------------------------------------------------------------

TASK_HOME = "task_init"
STATES = {"TASK_READY": "ready", "TASK_RUNNING": "running",
          "TASK_BLOCKED": "blocked", "TASK_ZOMBIE": "ended"}


def task_at(address):
    return common.record("struct task", address, TASK_HOME)


def tasks():
    """Every task, by pid."""
    return members(common.address_of("all_tasks", "task/task.c"),
                   "struct task", "task_all_link", TASK_HOME)


def good_tasks():
    return [t for t in tasks() if not isinstance(t, Bad)]


def current():
    """The task that runs, or None before there are any."""
    address = common.record_of(common.variable("cpu_boot")).cpu_task
    return task_at(address) if address else None


def find_task(pid):
    """The task of that number, or None."""
    return next((t for t in tasks()
                 if not isinstance(t, Bad) and t.task_pid == pid), None)


def parse_task(word):
    """The task that an argument means: a pid. Fails."""
    if not word.isdigit():
        raise common.Fail(f"'{word}' is no pid; `slate tasks` lists them")
    task = find_task(int(word))
    if task is None:
        raise common.Fail(f"there is no task {word}; `slate tasks` lists them")
    return task


def task_states():
    """{number: name}"""
    return {number: STATES.get(name, name.removeprefix("TASK_").lower())
            for name, number in common.enumerators("enum task_state",
                                                   TASK_HOME).items()}


def is_state(task, name):
    return task.task_state == common.enumerators("enum task_state",
                                                 TASK_HOME)[name]


def reason(queue):
    """What the tasks in the wait queue at `queue` wait for."""
    q = common.record("struct wait_queue", queue, TASK_HOME)
    return common.string(q.wait_reason, 40)


def waits_for(task):
    """What a blocked task is to be woken by, or None."""
    if task.task_waiting:
        return reason(task.task_waiting)
    return "message" if is_state(task, "TASK_BLOCKED") else None


def title(task):
    return f"{task.task_name}({task.task_pid})"


def waiters(head):
    """The tasks in the wait queue whose list is at `head`."""
    return [t for t in members(head, "struct task", "task_link", TASK_HOME)
            if not isinstance(t, Bad)]


def trapframe(task):
    """The registers with which a program entered the kernel, or was."""
    size = common.layout("struct trapframe", "trap_init").size
    return common.record("struct trapframe", task.task_stack_top - size,
                         "trap_init")


# ---- handles and what they refer to ----------------------------------------

OBJECT_HOME = "file_init"


class Handle:
    """An open handle: number, flags, and the object's address and type."""

    def __init__(self, number, slot):
        self.number = number
        self.flags = slot.handle_flags
        self.object = slot.handle_object
        self.type = common.word(self.object)

    def is_file(self):
        return self.type == common.address_of("file_type")

    def is_port(self):
        return self.type == common.address_of("port_type")

    def type_name(self):
        kind = common.record("struct object_type", self.type, OBJECT_HOME)
        return common.string(kind.type_name, 16)


def table_of(task):
    return common.record("struct handle_table", task.task_handles,
                         "handle_init")


def slots(table):
    """Every slot of a handle table, open or not."""
    most = common.macros("kernel/abi/types.h")["HANDLES_MAX"]
    size = common.layout("struct handle", "handle_init").size
    return [common.record("struct handle", table.table_slot + i * size,
                          "handle_init")
            for i in range(min(table.table_size, most))]


def handles(task):
    """The open handles of a task; a Bad in the place of a broken one."""
    for number, slot in enumerate(slots(table_of(task))):
        if not slot.handle_object:
            continue
        try:
            yield Handle(number, slot)
        except common.BadMemory as e:
            yield Bad(f"handle {number}: {e}")


def file_at(address):
    return common.record("struct file", address, "file_init")


# ---- pipes, inodes, ports --------------------------------------------------

def pipes(all_of_them=False):
    """The pipes in use, by address; or all that are constructed, as they come
    in their list."""
    found = members(common.address_of("pipes", "fs/pipe.c"), "struct pipe",
                    "pipe_link", "pipe_init")
    if all_of_them:
        return list(found)
    return sorted((p for p in found if isinstance(p, Bad)
                   or p.pipe_readers | p.pipe_writers),
                  key=lambda p: 1 << 32 if isinstance(p, Bad) else p.address)


def inode_at(address):
    return common.record("struct inode", address, "inode_init")


def fs_at(address):
    return common.record("struct fs", address, "inode_init")


def mounts():
    """What is mounted, by number."""
    return list(members(common.address_of("mounts", "fs/fs.c"), "struct fs",
                        "fs_link", "inode_init"))


def userfs_of(fs):
    """The struct userfs of a file system that a program keeps, or None."""
    if fs.fs_ops != common.address_of("userfs_ops"):
        return None
    return common.record("struct userfs", fs.address, "userfs_init")


def ram_path(inode):
    """Where a directory of the RAM file system is; "?" of others."""
    names = []
    if fs_name(inode) != "ram":
        return "?"
    node = common.record("struct ramfs_node", inode.inode_data, "ramfs_init")
    while node.dir_entry and len(names) < 64:
        entry = common.record("struct ramfs_entry", node.dir_entry,
                              "ramfs_init")
        names.append(entry.entry_name)
        node = common.record("struct ramfs_node", node.dir_parent,
                             "ramfs_init")
    return "/" + "/".join(reversed(names))


def fs_name(inode):
    return common.string(fs_at(inode.inode_fs).fs_name, 16)


def inode_table():
    return common.record_of(common.variable("inode_table", "fs/inode.c"))


def hash_chains(table):
    """[addresses of the links] of each bucket of a struct hash; a chain that
    is broken ends with a Bad."""
    per_segment = common.macros("kernel/fs/hash.h")["HASH_SEGMENT_BUCKETS"]
    for i in range(min(table.hash_buckets, per_segment * 512)):
        segment = table.hash_segment[i // per_segment]
        chain = []
        try:
            first = common.word(segment + i % per_segment * common.WORD)
            chain.extend(common.walk_chain(first, common.word))
        except (common.Broken, common.BadMemory) as e:
            chain.append(Bad(f"bucket {i}: {e}"))
        yield chain


def inodes():
    """The inodes in memory, by file system and number."""
    found, bad = [], []
    offset = common.layout("struct inode",
                           "inode_init").members["inode_hash_link"][0]
    for chain in hash_chains(inode_table()):
        for link in chain:
            try:
                found.append(link if isinstance(link, Bad)
                             else inode_at(link - offset))
            except common.BadMemory as e:
                bad.append(Bad(str(e)))
    bad += [i for i in found if isinstance(i, Bad)]
    good = [i for i in found if not isinstance(i, Bad)]

    def key(inode):
        try:
            return fs_at(inode.inode_fs).fs_id, inode.inode_number
        except common.BadMemory:
            return 1 << 32, inode.inode_number
    return sorted(good, key=key) + bad


FILE_TYPES = {"FILE_REGULAR": "file", "FILE_DIRECTORY": "dir"}


def file_types():
    """{number: name}"""
    return {number: FILE_TYPES.get(name,
                                   name.removeprefix("FILE_").lower())
            for name, number in common.enumerators("enum file_type",
                                                   "inode_init").items()}


def port_at(address):
    return common.record("struct port", address, "port_init")


def ports():
    """Every port, by number."""
    return members(common.address_of("port_all"), "struct port",
                   "port_all_link", "port_init")


def irq_lines(port):
    """The interrupt lines bound to the port at that address, as bits."""
    lines = common.variable("lines", "ipc/irq.c")
    low, high = lines.type.range()
    return sum(1 << i for i in range(low, high + 1)
               if int(lines[i]["line_port"]) & common.WORD_MASK == port)


# ---- messages --------------------------------------------------------------

def ipc_states():
    """{enumerator without its IPC_: number}"""
    return {name.removeprefix("IPC_"): number for name, number in
            common.enumerators("enum ipc_state", "port_init").items()}


def ipc_members(head):
    """The tasks in the list of callers, receivers or clients at `head`."""
    offset = common.layout("struct task_ipc",
                           TASK_HOME).members["ipc_link"][0]
    return members(head, "struct task", "task_ipc", TASK_HOME, offset)


def ipc_waits_for(task):
    """Whom a task waits for: ("task", or None), as ipc_waits_for() does."""
    state = ipc_states()
    ipc = task.task_ipc
    if is_state(task, "TASK_READY"):
        return None
    if ipc.ipc_state == state["QUEUED"]:
        return find_task(port_at(ipc.ipc_port).port_server)
    if ipc.ipc_state in (state["ANSWER"], state["TRANSFER"]):
        return task_at(ipc.ipc_server)
    return None


# ---- address spaces --------------------------------------------------------

def space_at(address):
    return common.record("struct space", address, "space_init")


def to_virtual(physical):
    """Where the kernel sees physical memory."""
    base = common.macros("kernel/x86/paging.h")["KERNEL_BASE"]
    return (physical + base) & common.WORD_MASK


def regions(space):
    return members(space.where("space_regions"), "struct region",
                   "region_link", "space_init")


def page_tables(space):
    """(first address, [entries]) of each page table for a program's part."""
    directory = common.read(space.space_directory, common.PAGE_SIZE)
    for i in range(0xC0000000 >> 22):
        entry = int.from_bytes(directory[4 * i:4 * i + 4], "little")
        if not entry & PTE_PRESENT:
            continue
        table = common.read(to_virtual(entry & ~common.PAGE_MASK),
                            common.PAGE_SIZE)
        yield i << 22, [int.from_bytes(table[4 * j:4 * j + 4], "little")
                        for j in range(PAGE_ENTRIES)]


def user_address(space, address):
    """Where the kernel sees the byte at `address` of a program, or None if no
    page is there."""
    entry = common.word(space.space_directory + (address >> 22) * common.WORD)
    if not entry & PTE_PRESENT:
        return None
    table = to_virtual(entry & ~common.PAGE_MASK)
    entry = common.word(table + (address >> 12) % PAGE_ENTRIES * common.WORD)
    if not entry & PTE_PRESENT:
        return None
    return to_virtual(entry & ~common.PAGE_MASK) + (address
                                                    & common.PAGE_MASK)


def user_read(space, address, size):
    """Bytes of a program, whichever runs. Raises BadMemory."""
    parts = []
    while size > 0:
        part = min(size, common.PAGE_SIZE - (address & common.PAGE_MASK))
        at = user_address(space, address)
        if at is None:
            raise common.BadMemory(address)
        parts.append(common.read(at, part))
        address += part
        size -= part
    return b"".join(parts)


def user_word(space, address):
    return int.from_bytes(user_read(space, address, common.WORD), "little")


# ---- page frames -----------------------------------------------------------

PAGE_STATES = {"PAGE_ALLOC": "allocated"}


class Frames:
    """The array of struct page, read at once: state, order, references and
    owner of each frame."""

    def __init__(self):
        self.count = int(common.variable("page_count"))
        self.array = int(common.variable("page_array")) & common.WORD_MASK
        self.layout = common.layout("struct page", "page_init")
        self.data = common.read_run(self.array, self.count * self.layout.size)
        self.names = {number: PAGE_STATES.get(
            name, name.removeprefix("PAGE_").lower()) for name, number in
                      common.enumerators("enum page_state",
                                         "page_init").items()}
        self.at = {name: self.layout.members[name][0]
                   for name in ("page_state", "page_order", "page_owner",
                                "page_refs")}

    def _byte(self, i, name):
        return self.data[i * self.layout.size + self.at[name]]

    def _word(self, i, name):
        at = i * self.layout.size + self.at[name]
        return int.from_bytes(self.data[at:at + common.WORD], "little")

    def state(self, i):
        number = self._byte(i, "page_state")
        return self.names.get(number, f"?{number}")

    def order(self, i):
        """Of the block that begins here, or None."""
        order = self._byte(i, "page_order")
        return None if order == 0xff else order

    def owner(self, i):
        return self._word(i, "page_owner")

    def refs(self, i):
        return self._word(i, "page_refs")

    def blocks(self):
        """(first frame, frames) of each block; a frame that no block has is
        one of itself."""
        i = 0
        while i < self.count:
            order = self.order(i)
            size = 1 << order if order is not None and order < 32 else 1
            size = min(size, self.count - i)
            yield i, size
            i += size
