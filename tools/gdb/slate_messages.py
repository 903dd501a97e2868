"""slate ports, ipc, cpus, locks, servers, irqs: messages, processors, locks and
the rights of servers to the machine."""

import itertools

import system
import target
from command import Command, Hex, Table
from slate_stack import kernel_pcs, print_pcs
from target import (UNREADABLE, WORD_MASK, BadMemory, address_of, good,
                    integer, members, record, string)


def waiting(head):
    """(how many tasks in a port's list still wait, those not readable)"""
    found = list(system.ipc_members(head))
    return sum(system.state_of(t) == "blocked" for t in good(found)), \
        "".join(f"  ! {t}" for t in found if isinstance(t, UNREADABLE))


class Ports(Command):
    """slate ports
    The ports where messages are exchanged.
    REFS are handles to it, RECEIVE those that may receive there, QUEUED callers
    that were not received yet, WAITING receivers, BITS notified and not
    received yet, IRQS the interrupt lines bound to it, as bits."""

    def run(self, args):
        table = Table("NUMBER:6 REFS:5 RECEIVE:7 CALLS:7 QUEUED:6 WAITING:7 "
                      "BITS:8 IRQS:8 :-1")
        for port in table.each(system.ports()):
            queued, wrong = waiting(port.where("port_callers"))
            receivers, worse = waiting(port.where("port_receivers"))
            names = port.address == integer("name_server_port")
            table.row(port.port_number, port.port_object.object_refs,
                      port.port_holders, port.port_calls, queued, receivers,
                      f"{port.port_bits:08x}",
                      f"{system.irq_lines(port.address):x}",
                      " dead" * (port.port_holders == 0) +
                      " the name server's" * names + wrong + worse)
        if not table.rows:
            print("(there are no ports)")


def call_of(task):
    """(task, the task that owes it a reply or None, the text between
    them)"""
    server = system.ipc_waits_for(task)
    port = record("port", task.task_ipc.ipc_port).port_number
    queued = " (queued)" * (system.ipc_state(task) == "queued")
    return task, server, f" -> port {port}{queued} -> " + \
        (system.title(server) if server else "nobody")


def calls():
    """{pid: the call of that task}, in order of pid."""
    found = {}
    for task in good(system.tasks()):
        if system.ipc_state(task) not in ("none", "receiving"):
            try:
                found[task.task_pid] = call_of(task)
            except BadMemory as e:
                print(f"! {system.title(task)}: {e}")
    return found


class Ipc(Command):
    """slate ipc [-s]
    Tasks that wait for a reply, and the tasks that owe it.
    A line for each chain: a task that called, the port, the task that owes the
    reply, and the call of that task if it waits as well. (queued): the call was
    not received yet; the task after it received there last. Below it the kernel
    stacks of its tasks.
      -s  without the stacks"""

    def run(self, args):
        found, shown, stacks = calls(), set(), set()
        servers = {s.task_pid for _, s, _ in found.values() if s}
        # First the chains whose first task owes no reply itself; the calls
        # that are left then are in circles.
        for pid in [*(p for p in found if p not in servers), *found]:
            if pid in shown:
                continue
            line, chain, at = system.title(found[pid][0]), {}, pid
            while at in found and at not in chain:
                chain[at], server, text = found[at]
                line += text
                at = server.task_pid if server else None
            print(line)
            shown.update(chain)
            tasks = [*chain.values(), *filter(None, (server,))]
            for task in [] if "s" in args else tasks:
                if task.task_pid not in stacks:
                    stacks.add(task.task_pid)
                    print(f"  the stack of {system.title(task)}:")
                    print_pcs(kernel_pcs(task))
        if not found:
            print("(no task waits for a reply)")


def mutexes():
    """[(address of a mutex, name of the data it guards)]"""
    if target.symbol("line_mutex", "fs/tty.c"):
        mutex = record("mutex", address_of("line_mutex", "fs/tty.c"))
        yield mutex.address, system.reason(mutex.where("mutex_waiters"))
    for fs in good(system.mounts()):
        yield fs.where("fs_rename"), f"renames in {string(fs.fs_name, 16)}"
    for inode in good(system.inodes()):
        yield inode.where("inode_mutex"), \
            f"inode {system.fs_name(inode)} {inode.inode_number}"
    for pipe in good(system.all_pipes()):
        yield pipe.where("pipe_mutex"), f"pipe 0x{pipe.address:08x}"


def spin_locks(cpu):
    """The spin locks that a processor holds, in the order of taking."""
    return [record("spinlock", at) for at in cpu.cpu_lock[:cpu.cpu_locks]]


class Cpus(Command):
    """slate cpus
    The processors, their tasks and, with DEBUG=1, their spin locks. `thread N`
    shows number N - 1."""

    def run(self, args):
        table = Table("CPU:3 TASK:-22 HOLDS:-1")
        for cpu in system.cpus():
            task = system.task_of(cpu)
            table.row(cpu.cpu_number, system.title(task) if task else "-",
                      ", ".join(string(l.lock_name) for l in spin_locks(cpu)))


class Locks(Command):
    """slate locks
    The locks that are held, their holders and waiters.
    Mutexes of inodes, pipes, the console and renaming. A kernel built with
    DEBUG=1 records the spin locks as well, in the order in which they were
    taken."""

    def run(self, args):
        table = Table("MUTEX:-10 OF:-22 HELD-BY:-18 WAITING:-1")
        for address, guarded in mutexes():
            mutex = record("mutex", address)
            if mutex.mutex_owner:
                names = " ".join(map(system.title, system.waiters(
                    mutex.where("mutex_waiters"))))
                try:
                    holder = system.title(record("task", mutex.mutex_owner))
                except BadMemory:
                    holder = f"! 0x{mutex.mutex_owner:08x}"
                table.row(Hex(address), guarded, holder, names or "-")
        if not table.rows:
            print("(no mutex is held)")
        if "lock_name" not in target.layout("spinlock").members:
            print("Only a kernel built with DEBUG=1 records which spin locks "
                  "are held.")
            return
        table = Table("SPIN-LOCK:-10 OF:-22 RANK:4")
        for l in itertools.chain(*map(spin_locks, system.cpus())):
            table.row(Hex(l.address), string(l.lock_name), l.lock_rank)
        if not table.rows:
            print("(no spin lock is held)")


def grants():
    """Every grant, in the manifest's order."""
    return members(address_of("grants", "task/grant.c"), "grant",
                   "grant_link")


def port_ranges(grant):
    """The port numbers of each range that a grant has."""
    server = grant.grant_server
    return [range(r.first, r.last + 1)
            for r in server.server_port[:server.server_ports]]


def range_text(r):
    return f"{r.start:x}" + f"-{r.stop - 1:x}" * (len(r) != 1)


def grant_state(grant):
    if not grant.grant_program:
        return "-"
    return "free" if not grant.grant_task else \
        "running" if grant.grant_in_force else "taken"


def print_grant(table, grant):
    server = grant.grant_server
    task = record("task", grant.grant_task) if grant.grant_task else None
    memory = [range(r.first, r.last + 1)
              for r in server.server_memory[:server.server_memories]]
    used = record("space", task.task_space).space_dma \
        if task and task.task_space else 0
    row, *more = [*itertools.zip_longest(
        map(range_text, port_ranges(grant)),
        [i for i in range(16) if server.server_irqs >> i & 1],
        map(range_text, memory), fillvalue="-")] or [("-", "-", "-")]
    table.row(server.server_name, task.task_pid if task else None,
              grant_state(grant), *row,
              f"{used}/{server.server_dma}" if server.server_dma else "-",
              server.server_command.split(" ")[0] if grant.grant_program
              else "no program")
    for row in more:
        table.row("", "", "", *row)


class Servers(Command):
    """slate servers
    The hardware that each server may use: its grant.
    PID and STATE are those of the task that has the grant. running: its program
    runs; taken: it has yet to execute it; free: no task has it. PORTS and
    physical MEMORY are in hexadecimal; DMA are contiguous pages, those it has
    and those it may have. Only PROGRAM has these rights."""

    def run(self, args):
        table = Table("NAME:-10 PID:5 STATE:-7 PORTS:9 IRQ:3 MEMORY:17 DMA:6 "
                      "PROGRAM:-1")
        for grant in table.each(grants()):
            print_grant(table, grant)
        if not table.rows:
            print("(/etc/servers grants nothing)")


def line_owner(i, port, handler):
    """A bound line belongs to its server, one with a handler to the kernel."""
    if port:
        task = target.elements("line_task", "ipc/irq.c")[i]
        return system.title(record("task", int(task)))
    found = target.symbol_at(handler) if handler else None
    return found[0] if found else "cascade" if i == 2 else "-"


class Irqs(Command):
    """slate irqs
    Interrupt lines: owners and counts.
    OWNER is the kernel's own handler, or NAME(PID) of the server that has bound
    the line; cascade: the line that joins the two controllers. PORT is where
    the interrupt becomes a notification. MASKED: it has no owner, or its
    server has not acknowledged the last one yet."""

    def run(self, args):
        table = Table("LINE:4 COUNT:10 OWNER:-23 PORT:6 MASKED:-1")
        masked = integer("masked", "drivers/pic.c")
        for i, (line, handler, count) in enumerate(zip(
                target.elements("lines", "ipc/irq.c"),
                target.elements("irq_handlers", "x86/trap.c"),
                target.elements("irq_counts", "x86/trap.c"))):
            port = int(line["line_port"]) & WORD_MASK
            table.row(i, int(count),
                      line_owner(i, port, int(handler) & WORD_MASK),
                      record("port", port).port_number if port else None,
                      "masked" if masked >> i & 1 else "-")
