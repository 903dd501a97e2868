"""How GDB prints Slate's structures, and functions for its expressions.
`print/r` shows a structure as C has it."""

import gdb
import gdb.printing

import heap
import system
import target
from command import function
from target import WORD_MASK, BadMemory, Fail, links, record, string, word


def plural(n, what):
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def about_cache(address):
    c = record("kmem_cache", address)
    inuse = c.cache_allocs - c.cache_frees & WORD_MASK
    total = c.cache_slabs * c.cache_slab_chunks
    return f"cache {c.cache_name}: {c.cache_size} bytes, {inuse} of {total} " \
        f"in use, {plural(c.cache_slabs, 'slab')} of {c.cache_slab_chunks}" + \
        " ! counts contradict each other" * (inuse > total)


def about_slab(address):
    slab = record("kmem_slab", address)
    cache = record("kmem_cache", slab.slab_cache)
    if address == cache.where("cache_null"):
        return f"head of the slabs of {cache.cache_name}"
    state = "free" if not slab.slab_refcnt else \
        "partial" if slab.slab_head else "full"
    return f"slab of {cache.cache_name}: {state}, {slab.slab_refcnt} of " \
        f"{slab.slab_chunks} used, colour {slab.slab_colour}, page " \
        f"0x{slab.slab_base:08x}"


def about_list(address):
    head = record("list", address)
    if head.next in (0, address):
        return "empty" if head.next else "not linked"
    others = [*links(head.next, address)]
    broken = not others or word(others[-1]) != address
    return "! broken after " * broken + f"{plural(len(others), 'other')}: " \
        f"next 0x{head.next:08x}, prev 0x{head.prev:08x}"


def about_task(address):
    return system.about_task(record("task", address))


def about_inode(address):
    inode = record("inode", address)
    fs = string(record("fs", inode.inode_fs).fs_name, 16)
    return f"{fs} inode {inode.inode_number}, {inode.inode_size} bytes, " \
        f"{plural(inode.inode_refs, 'reference')}"


def about_file(address):
    file = record("file", address)
    return f"at {file.file_offset} of {about_inode(file.file_inode)}" \
        if file.file_inode else f"pipe 0x{file.file_data:08x}"


ABOUT = {
    "kmem_cache": about_cache, "kmem_slab": about_slab, "list": about_list,
    "task": about_task, "inode": about_inode, "file": about_file}


def members(value):
    """All members, those of anonymous structures and unions included."""
    for field in value.type.fields():
        if field.name:
            yield field.name, value[field]
        else:
            yield from members(value[field])


class Printer:
    """A line about a structure, and then its members; a list, which is in most
    structures, has the line only."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        if not self.value.address:
            return "not in memory"
        try:
            return ABOUT[self.value.type.tag](
                int(self.value.address) & WORD_MASK)
        except (Fail, BadMemory) as e:
            return f"! {e}"

    def children(self):
        return () if self.value.type.tag == "list" else members(self.value)


printers = gdb.printing.RegexpCollectionPrettyPrinter("slate")
for _tag in ABOUT:
    printers.add_printer(_tag, f"^{_tag}$", Printer)
gdb.printing.register_pretty_printer(None, printers, replace=True)


@function
def cache(name):
    """$cache("NAME"): the struct kmem_cache of that name.
Example: print $cache("inode")->cache_size"""
    found = next((c for c in system.caches() if c.cache_name == name.string()),
                 None)
    if found is None:
        raise Fail(f"no cache is called '{name.string()}'; `slate kmastat -z` "
                   "lists them")
    return target.pointer(found.address, "kmem_cache")


@function
def slab_cache(address):
    """$slab_cache(ADDR): the cache whose slab holds the address, or NULL.
Example: print $slab_cache($cache("inode"))->cache_name"""
    slab, _ = heap.find(int(address) & WORD_MASK)
    return target.pointer(slab.cache.address if slab else 0, "kmem_cache")


@function
def slab_base(address):
    """$slab_base(ADDR): the start of the object that the address is in, or
NULL.
Example: print $slab_base($cache("inode"))"""
    _, start = heap.find(int(address) & WORD_MASK)
    return target.pointer(start or 0)


@function
def slab_state(address):
    """$slab_state(ADDR): "used" or "free" of an object, "none" elsewhere.
With SMP=1 an object in a magazine is "used": it was taken from its slab.
Example: print $slab_state($cache("inode"))"""
    slab, start = heap.find(int(address) & WORD_MASK)
    return "none" if start is None else \
        "free" if start in slab.free else "used"


@function
def slab_owner(address):
    """$slab_owner(ADDR): the pid of the task that allocated the object last, if
its cache is in mode U; else -1.
Example: print $slab_owner($cache("inode"))"""
    slab, start = heap.find(int(address) & WORD_MASK)
    bufctl = slab and start is not None and \
        slab.cache.cache_flags & target.constant("KMF_AUDIT") and \
        slab.bufctl(start)
    if not bufctl:
        return -1
    last = record("kmem_bufctl_debug", bufctl).where("bufctl_alloc")
    return record("kmem_transaction", last).trans_task


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
