"""The kernel's objects as data: tasks, caches, address spaces. Every structure
is a Record. A list that breaks ends there.
"""

import target
from command import evaluate
from target import (PAGE_MASK, PAGE_SHIFT, PAGE_SIZE, WORD, WORD_MASK, Fail,
                    address_of, constant, enumerators, members, read, record,
                    record_of, string, word)

# ---- tasks -----------------------------------------------------------------

def tasks():
    """Every task, in order of creation."""
    return members(address_of("all_tasks", "task/task.c"), "task",
                   "task_all_link")


def caches():
    """Every slab cache, in order of creation."""
    return members(address_of("kmem_caches"), "kmem_cache", "cache_link")


def cpus():
    """Data of each processor that runs kernel code."""
    at = address_of("cpu_online")
    for i in range(constant("CPUS_MAX")):
        if word(at + i * WORD):
            yield record("cpu", word(at + i * WORD))


def current():
    """The task that runs on the processor that GDB shows: its thread. None
    before there are any."""
    number = target.thread() - 1
    cpu = next((cpu for cpu in cpus() if cpu.cpu_number == number),
               record_of("cpu_boot"))
    return record("task", cpu.cpu_task) if cpu.cpu_task else None


def on_stack(address):
    """The task on whose kernel stack an address is, or None."""
    boot = target.linker("boot_stack_bottom")
    return next((t for t in tasks()
                 if (t.task_kstack or boot) <= address < t.task_stack_top),
                None)


def on_processor():
    """The task on whose kernel stack ESP is, at its end if it is empty, or that
    runs in ring 3; in the middle of a switch it is not the one that is marked
    as running."""
    return on_stack(target.register("esp") - 1) or current()


def runs(task):
    """Whether the task's registers are in the processor."""
    return task.address == getattr(on_processor(), "address", None)


def parse_task(text):
    """The task of an argument: a pid, or an expression whose value is a pid or
    the address of a task."""
    value = evaluate(text)
    if value is None:
        raise Fail(f"'{text}' is no pid; `slate ps` lists them")
    task = next((t for t in tasks() if value in (t.task_pid, t.address)),
                None)
    if task is None:
        raise Fail(f"there is no task {text}; `slate ps` lists them")
    return task


def state_of(task):
    """ready, running, blocked or ended."""
    name = enumerators("task_state", "TASK_").get(task.task_state,
                                                  f"?{task.task_state}")
    return "ended" if name == "zombie" else name


def waits_for(task):
    """The event that will wake a blocked task, or None."""
    if task.task_waiting:
        return string(record("wait_queue", task.task_waiting).wait_reason, 40)
    return "message" if state_of(task) == "blocked" else None


def about_task(task):
    """The task's title and state, and the event that it waits for."""
    waits = waits_for(task)
    return f"{task.task_name}({task.task_pid}), {state_of(task)}" + \
        (f", waits for: {waits}" if waits else "")


# ---- address spaces --------------------------------------------------------

def regions(space):
    return members(space.where("space_regions"), "region", "region_link")


def mapped(space):
    """{address: page table entry} of every mapped page of a program."""
    found, base = {}, constant("KERNEL_BASE")
    span = PAGE_SIZE // WORD << PAGE_SHIFT  # bytes that a page table maps
    directory = target.words(read(space.space_directory, PAGE_SIZE))
    for i, entry in enumerate(directory[:base // span]):
        if entry & 1:
            table = read((entry & ~PAGE_MASK) + base & WORD_MASK, PAGE_SIZE)
            found.update((i * span + j * PAGE_SIZE, page) for j, page in
                         enumerate(target.words(table)) if page)
    return found


def user_read(pages, address, size):
    """Bytes of a program's memory, by its `mapped` pages, so that it need not
    run; b"" if not all are mapped."""
    data = b""
    while len(data) < size:
        at = address + len(data) & WORD_MASK
        entry = pages.get(at & ~PAGE_MASK, 0)
        if not entry & 1:
            return b""
        offset = at & PAGE_MASK
        data += read((entry & ~PAGE_MASK) + constant("KERNEL_BASE") + offset
                     & WORD_MASK, min(size - len(data), PAGE_SIZE - offset))
    return data
