"""For slab whatis: pages of programs. Their page tables are read through the
kernel's direct map, whatever program runs (kernel/shell/cmd_kmem_where.c).
"""

import common
from common import MIB4, PAGE_MASK, PAGE_SHIFT, PAGE_SIZE, WORD, BadMemory

ENTRIES = PAGE_SIZE // WORD
PRESENT = 1
HOME = "task_create"  # in a file that knows struct task


def programs():
    """(pid, name, page directory) of each task that has a space."""
    head = common.address_of("all_tasks", "task.c")
    try:
        for link in common.walk_list(head, limit=1 << 16):
            task = common.container("struct task", "task_all_link", link,
                                    home=HOME)
            if task.task_space:
                yield task.task_pid, task.task_name, task.task_cr3
    except (common.Broken, BadMemory) as e:
        print(f"! list of tasks: {e}")


class Tables:
    """The page tables of one program."""

    def __init__(self, pages, directory):
        self.pages = pages
        self.directory = directory & ~PAGE_MASK

    def physical(self, address):
        return common.word(address + self.pages.kernel_base)

    def table(self, i):
        """The page table that entry `i` of the directory leads to."""
        entry = self.physical(self.directory + i * WORD)
        return entry & ~PAGE_MASK if entry & PRESENT else None

    def frame(self, address):
        """The frame that is mapped at an address, or None."""
        table = self.table(address // MIB4)
        if table is None:
            return None
        i = address // PAGE_SIZE % ENTRIES
        entry = self.physical(table + i * WORD)
        frame = entry >> PAGE_SHIFT
        return frame if entry and frame < self.pages.count else None

    def address(self, frame):
        """Where a frame is mapped, or None."""
        top = common.macros("kernel/vm/space.h")["USER_TOP"]
        for k in range(top // MIB4):
            table = self.table(k)
            for i in range(ENTRIES if table is not None else 0):
                entry = self.physical(table + i * WORD)
                if entry and entry >> PAGE_SHIFT == frame:
                    return k * MIB4 + i * PAGE_SIZE
        return None


def part_name(address):
    sizes = common.macros("kernel/vm/space.h")
    if address < sizes["SPACE_STACK_TOP"]:
        return "stack"
    return "image or heap" if address < sizes["SPACE_MMAP_BASE"] else "mmap"


def print_mappings(pages, address=None, frame=None):
    """A line for each program that has the address, or the frame, mapped;
    their number."""
    n = 0
    for pid, name, directory in programs():
        try:
            tables = Tables(pages, directory)
            where = address if frame is None else tables.address(frame)
            what = tables.frame(address) if frame is None else frame
        except BadMemory as e:
            print(f"! task {pid} ({name}): {e}")
            continue
        if where is None or what is None:
            continue
        print(f"  page 0x{where & ~PAGE_MASK:08x} of task {pid} ({name}), "
              f"{part_name(where)}: frame {what}")
        n += 1
    return n


def print_user(pages, address):
    print(f"0x{address:08x}: an address of programs")
    base = common.macros("kernel/vm/space.h")["USER_BASE"]
    if address < base or print_mappings(pages, address=address) == 0:
        print("  no task has a page there now")


def print_mappers(pages, frame):
    if print_mappings(pages, frame=frame) == 0:
        print("! no task has it mapped")
