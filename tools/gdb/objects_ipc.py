"""slate ports, ipc, locks: who waits for whom, and for what.

The first two are commands of the kernel shell. Locks are found where they can
be: mutexes have an owner in every build; of spin locks only a debug build
notes who has which.
"""

import common
import objects_model as model
from objects_stack import kernel_pcs, print_pcs

# ---- ports -----------------------------------------------------------------

PORT_COLUMNS = "{:>6} {:>5} {:>7} {:>7} {:>6} {:>7} {:>8} {:>8}"


def waiting(head):
    """How many tasks in a port's list still wait: who was killed is ready."""
    found = list(model.ipc_members(head))
    bad = [t for t in found if isinstance(t, model.Bad)]
    n = sum(model.is_state(t, "TASK_BLOCKED") for t in found
            if not isinstance(t, model.Bad))
    return n, bad


def print_port(port, name_server):
    queued, bad = waiting(port.where("port_callers"))
    receivers, worse = waiting(port.where("port_receivers"))
    irqs = model.irq_lines(port.address)
    line = PORT_COLUMNS.format(
        port.port_number, port.port_object.object_refs, port.port_holders,
        port.port_calls, queued, receivers, f"{port.port_bits:08x}",
        f"{irqs:x}")
    line += "  dead" if port.port_holders == 0 else ""
    line += "  the name server's" if port.address == name_server else ""
    for wrong in bad + worse:
        line += f"  {wrong}"
    print(line)


class Ports(common.Command):
    name = "slate ports"
    summary = "The ports where messages are exchanged"
    details = """
  REFS RECEIVE  handles to it; those that may receive there (without any the
                port is dead)
  CALLS         calls that were received so far
  QUEUED        callers that nobody has received yet
  WAITING       receivers that wait for a message
  BITS          notified and not received yet
  IRQS          interrupt lines bound to it, as bits"""
    example = "slate ports"

    def run(self, args):
        print(PORT_COLUMNS.format("NUMBER", "REFS", "RECEIVE", "CALLS",
                                  "QUEUED", "WAITING", "BITS", "IRQS"))
        name_server = int(common.variable("name_server_port"))
        name_server &= common.WORD_MASK
        found = list(model.ports())
        for port in found:
            if isinstance(port, model.Bad):
                print(port)
            else:
                print_port(port, name_server)
        if not found:
            print("(there are no ports)")


# ---- ipc -------------------------------------------------------------------

class Edge:
    """One arrow: a task that called, the port, and who owes the answer."""

    def __init__(self, task):
        self.task = task
        self.server = model.ipc_waits_for(task)
        self.port = model.port_at(task.task_ipc.ipc_port).port_number
        self.queued = task.task_ipc.ipc_state == model.ipc_states()["QUEUED"]


def edges():
    """{pid: the arrow that begins at that task}, in order of pid."""
    idle = {model.ipc_states()[s] for s in ("NONE", "RECEIVING")}
    found = {}
    for task in model.good_tasks():
        if task.task_ipc.ipc_state in idle:
            continue
        try:
            found[task.task_pid] = Edge(task)
        except common.BadMemory as e:
            print(f"! {model.title(task)}: {e}")
    return found


def chain(graph, edge):
    """The arrows from one on, up to the end or round a circle once."""
    found = []
    while edge is not None and edge not in found:
        found.append(edge)
        edge = graph.get(edge.server.task_pid) if edge.server else None
    return found


def print_chain(arrows, circle):
    text = model.title(arrows[0].task)
    for e in arrows + ([arrows[0]] if circle else []):
        text += f" -> port {e.port}{' (queued)' if e.queued else ''} -> "
        text += model.title(e.server) if e.server else "nobody"
    print(text)


def print_stack(task):
    print(f"  the stack of {model.title(task)}:")
    pcs = kernel_pcs(task)
    print_pcs(pcs)
    if not pcs:
        print("  (it runs)")


class Ipc(common.Command):
    name = "slate ipc"
    usage = "[-s]"
    summary = "Who waits for whom for the answer to a message"
    details = """
A line for each chain: a task that called, the port, the task that owes the
answer, and on if that waits itself. (queued): nobody has received the call
yet; the task behind it received there last. Below it the kernel stacks of its
tasks.
  -s  without the stacks"""
    example = "slate ipc"
    options = "s"

    def run(self, args):
        graph = edges()
        servers = {e.server.task_pid for e in graph.values() if e.server}
        shown, stacks = set(), set()
        # Chains begin where nobody waits for the first; what is left then
        # are circles.
        for circles in (False, True):
            for pid, edge in graph.items():
                if pid in shown or (not circles and pid in servers):
                    continue
                arrows = chain(graph, edge)
                end = arrows[-1].server
                print_chain(arrows, end is not None and end.task_pid == pid)
                for e in arrows:
                    if e.task.task_pid in shown:
                        break
                    shown.add(e.task.task_pid)
                    for task in (e.task, e.server):
                        if task and task.task_pid not in stacks and \
                                "s" not in args:
                            print_stack(task)
                        stacks.add(task.task_pid if task else 0)
        if not graph:
            print("(nobody waits for an answer)")


# ---- locks -----------------------------------------------------------------

LOCK_COLUMNS = "{:<10} {:<22} {:<18} {}"


def mutex_at(address):
    return common.record("struct mutex", address, "mutex_init")


def mutexes():
    """(struct mutex, what it guards) of all that can be found."""
    if common.has_variable("line_mutex", "fs/tty.c"):
        mutex = mutex_at(common.address_of("line_mutex", "fs/tty.c"))
        yield mutex, model.reason(mutex.where("mutex_waiters"))
    for fs in model.mounts():
        if not isinstance(fs, model.Bad):
            yield mutex_at(fs.where("fs_rename")), \
                f"renames in {common.string(fs.fs_name, 16)}"
    for inode in model.inodes():
        if not isinstance(inode, model.Bad):
            yield mutex_at(inode.where("inode_mutex")), \
                f"inode {model.fs_name(inode)} {inode.inode_number}"
    for pipe in model.pipes(True):
        if not isinstance(pipe, model.Bad):
            yield mutex_at(pipe.where("pipe_mutex")), \
                f"pipe 0x{pipe.address:08x}"


def title_at(address):
    try:
        return model.title(model.task_at(address))
    except common.BadMemory:
        return f"! 0x{address:08x}"


def print_mutexes():
    shown = 0
    print(LOCK_COLUMNS.format("MUTEX", "OF", "HELD-BY", "WAITING"))
    for mutex, what in mutexes():
        if not mutex.mutex_owner:
            continue
        shown += 1
        queue = mutex.where("mutex_waiters")
        names = " ".join(model.title(t) for t in model.waiters(queue))
        print(LOCK_COLUMNS.format(f"0x{mutex.address:08x}", what,
                                  title_at(mutex.mutex_owner), names or "-"))
    if not shown:
        print("(no mutex is held)")


def print_spin_locks():
    if not common.layout("struct spinlock", "task_init").members.get(
            "lock_name"):
        print("Which spin locks are held only a kernel built with DEBUG=1 "
              "notes.")
        return
    cpu = common.record_of(common.variable("cpu_boot"))
    print(f"{'SPIN LOCK':<10} {'OF':<22} RANK")
    for address in cpu.cpu_lock[:cpu.cpu_locks]:
        lock = common.record("struct spinlock", address, "task_init")
        print(f"0x{address:08x} {common.string(lock.lock_name):<22} "
              f"{lock.lock_rank}")
    if cpu.cpu_locks == 0:
        print("(no spin lock is held)")


class Locks(common.Command):
    name = "slate locks"
    summary = "The locks that are held, by whom, and who waits"
    details = """
Mutexes of inodes, pipes, the console and renaming. A kernel built with DEBUG=1
notes the spin locks as well, in the order in which they were taken."""
    example = "slate locks"

    def run(self, args):
        print_mutexes()
        print_spin_locks()


Ports()
Ipc()
Locks()
