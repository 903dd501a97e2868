"""slate locks: the locks that are held."""

import system
import target
from command import Command, Hex, Table
from heap import Heap
from target import BadMemory, address_of, good, record, string


def objects(name):
    """The objects in use of a cache, each a structure of the same name."""
    cache = Heap().find(name)
    return [record(name, b.address) for b in cache.buffers() if b.used] \
        if cache else []


def mutexes():
    """[(address of a mutex, name of the data it guards)]"""
    if target.symbol("line_mutex", "fs/tty.c"):
        mutex = record("mutex", address_of("line_mutex", "fs/tty.c"))
        yield mutex.address, system.reason(mutex.where("mutex_waiters"))
    for fs in good(system.mounts()):
        yield fs.where("fs_rename"), f"renames in {string(fs.fs_name, 16)}"
    for inode in objects("inode"):
        yield inode.where("inode_mutex"), \
            f"inode {system.fs_name(inode)} {inode.inode_number}"
    for pipe in objects("pipe"):
        yield pipe.where("pipe_mutex"), f"pipe 0x{pipe.address:08x}"


def spin_locks(cpu):
    """The spin locks that a processor holds, in the order of taking."""
    return [record("spinlock", at) for at in cpu.cpu_lock[:cpu.cpu_locks]]


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
        table = Table("SPIN-LOCK:-10 OF:-22 RANK:4 CPU:3")
        for cpu in system.cpus():
            for l in spin_locks(cpu):
                table.row(Hex(l.address), string(l.lock_name), l.lock_rank,
                          cpu.cpu_number)
        if not table.rows:
            print("(no spin lock is held)")
