"""How GDB prints Slate's structures, and functions for its expressions.
`print/r` shows a structure as C has it."""

import system
import target
from command import function, plural, register_printers
from heap import Cache, Heap
from target import UNREADABLE, WORD_MASK, Fail, record


def about_cache(address):
    c = Cache(Heap(), address)
    return f"cache {c.name}: {c.size} bytes, {c.inuse} of {c.total} in use, " \
        f"{plural(c.slabs, 'slab')} of {c.slab_chunks}" + \
        " ! counts contradict each other" * c.bad


def about_slab(address):
    slab = Heap().slab_of(address)
    return "head of a list of slabs" if slab is None else \
        f"slab of {slab.owner.name}: {slab.state}, {slab.refcnt} of " \
        f"{slab.chunks} used, colour {slab.colour}, page 0x{slab.base:08x}"


def about_list(address):
    head = record("list", address)
    links = f"next 0x{head.next:08x}, prev 0x{head.prev:08x}"
    if head.next in (0, address):
        return "empty" if head.next else links
    try:
        n = sum(1 for _ in target.walk_list(address, 1000))
        return f"{plural(n, 'other')}: {links}"
    except UNREADABLE as e:
        return f"! {e}: {links}"


def about_task(address):
    return system.about_task(record("task", address))


def about_inode(address):
    inode = record("inode", address)
    return f"{system.inode_text(inode)}, " \
        f"{plural(inode.inode_refs, 'reference')}"


def about_file(address):
    f = record("file", address)
    access = system.access_text(f.file_flags)
    if not f.file_inode:
        return f"{access}, of the pipe 0x{f.file_data:08x}"
    return f"{access} at {f.file_offset}, {about_inode(f.file_inode)}"


register_printers("slate", {
    "kmem_cache": about_cache, "kmem_slab": about_slab,
    "list": about_list, "task": about_task, "inode": about_inode,
    "file": about_file})


@function
def cache(name):
    """$cache("NAME"): the struct kmem_cache of that name.
Example: print $cache("inode")->cache_size"""
    return target.pointer(Heap().cache(name.string()).address, "kmem_cache")


@function
def slab_cache(address):
    """$slab_cache(ADDR): the cache whose slab holds the address, or NULL.
Example: print $slab_cache($cache("inode"))->cache_name"""
    slab = Heap().slab_at(int(address) & WORD_MASK)
    return target.pointer(slab.owner.address if slab else 0, "kmem_cache")


@function
def slab_base(address):
    """$slab_base(ADDR): the start of the object that the address is in, or
NULL.
Example: print $slab_base($cache("inode"))"""
    b = Heap().buffer_at(int(address) & WORD_MASK)
    return target.pointer(b.address if b else 0)


@function
def slab_state(address):
    """$slab_state(ADDR): "used" or "free" of an object, "none" elsewhere.
Example: print $slab_state($cache("inode"))"""
    b = Heap().buffer_at(int(address) & WORD_MASK)
    return "none" if b is None else "used" if b.used else "free"


@function
def task(pid):
    """$task(PID): a struct task *.
Example: print $task(1)->task_state"""
    return target.pointer(system.parse_task(str(int(pid))).address, "task")


@function
def pid():
    """$pid(): the number of the task that runs.
Example: print $pid()"""
    running = system.current()
    if running is None:
        raise Fail("no task runs yet")
    return running.task_pid
