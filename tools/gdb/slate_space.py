"""slate space: the memory of a program."""

import itertools

import system
from command import Command
from target import PAGE_MASK, PAGE_SHIFT, PAGE_SIZE, Fail, constant, \
    enumerators, integer, layout, record
from tools.measure import table


def flags_text(value, flags):
    return "".join(c if value & constant(name) else "-"
                   for c, name in flags)


def print_table(spec, rows):
    print("\n".join(table.lines(spec, rows)))


def print_regions(space, pages):
    kinds = enumerators("region_kind", "REGION_")
    print_table("START:-10 END:-10 KIB:7 THERE:7 PROT:-4 KIND:-1", (
        [f"0x{r.region_start:08x}", f"0x{r.region_end:08x}",
         (r.region_end - r.region_start) // 1024,
         sum(r.region_start <= a < r.region_end for a in pages),
         flags_text(r.region_prot, (("r", "PROT_READ"), ("w", "PROT_WRITE"))),
         kinds.get(r.region_kind, "?")]
        for r in system.regions(space)))


def references(frame):
    """The number of address spaces that have a page frame."""
    return record("page", integer("page_array") +
                  frame * layout("page").size).page_refs \
        if frame < integer("page_count") else "!"


def print_runs(mapped):
    """Neighbouring pages in neighbouring frames, with like rights and as many
    references, are one row."""
    def alike(numbered):
        i, (address, entry) = numbered
        return address - i * PAGE_SIZE, entry - address, \
            references(entry >> PAGE_SHIFT)

    rows = []
    for (_, _, refs), run in itertools.groupby(
            enumerate(sorted(mapped.items())), alike):
        pages = [page for _, page in run]
        address, entry = pages[0]
        rows.append([f"0x{address:08x}", f"0x{entry & ~PAGE_MASK:08x}",
                     len(pages), flags_text(entry, (
                         ("u", "PTE_USER"), ("r", "PTE_PRESENT"),
                         ("w", "PTE_WRITE"))), refs])
    print_table("VIRTUAL:-10 PHYSICAL:-10 PAGES:7 RIGHTS:-6 REFS:5", rows)


class Space(Command):
    """slate space PID
    A program's address space: its regions and its page tables.
    First the regions, which the program may access; THERE counts the pages of
    each that are mapped. Then the page tables, a row per run of pages that are
    in neighbouring frames. RIGHTS: u in ring 3, r, w without a fault; REFS:
    address spaces that have the frame, more than 1 after fork.
    Example: slate space 4"""

    def run(self, argument):
        task = system.parse_task(argument)
        if not task.task_space:
            raise Fail(f"task {task.task_pid} has no address space; programs "
                       "have")
        space = record("space", task.task_space)
        pages = system.mapped(space)
        print_regions(space, pages)
        print()
        print_runs(pages)
        print(f"pages {len(pages)}, page tables {space.space_tables}, "
              f"directory 0x{space.space_directory:08x}, break "
              f"0x{space.space_break:08x}")
