"""slate servers, irqs: who may have what of the machine, and who has it.

Both are commands of the kernel shell. What `slate verify` checks of grants is
here too: it compares grants with tasks, and the processor's map of ports with
the grant whose ports it holds.
"""

import common
import objects_model as model

HOME = "grant_init"


def grants():
    """Every grant, in the manifest's order."""
    return model.members(common.address_of("grants", "task/grant.c"),
                         "struct grant", "grant_link", HOME)


def ranges(grant, member, count):
    """[(first, last)] of an array of struct manifest_range."""
    size = common.layout("struct manifest_range", HOME).size
    at = grant.grant_server.where(member)
    return [(common.word(at + i * size), common.word(at + i * size + 4))
            for i in range(count)]


def ports(grant):
    return ranges(grant, "server_port", grant.grant_server.server_ports)


def range_text(found, i):
    if i >= len(found):
        return ""
    first, last = found[i]
    return f"{first:x}" if first == last else f"{first:x}-{last:x}"


def dma_pages(task):
    return model.space_at(task.task_space).space_dma if task.task_space else 0


# ---- servers ---------------------------------------------------------------

COLUMNS = "{:<10} {:>5} {:<7} {:>9} {:>3} {:>17} {:>6} {}"
MORE = "{:24} {:>9} {:>3} {:>17}"


def state_of(grant):
    if not grant.grant_program:
        return "-"
    if not grant.grant_task:
        return "free"
    return "running" if grant.grant_in_force else "taken"


def print_grant(grant):
    server = grant.grant_server
    task = model.task_at(grant.grant_task) if grant.grant_task else None
    lines = [i for i in range(16) if server.server_irqs >> i & 1]
    memory = ranges(grant, "server_memory", server.server_memories)
    used = dma_pages(task) if task else 0
    columns = [(range_text(ports(grant), i), lines[i] if i < len(lines) else "",
                range_text(memory, i))
               for i in range(max(1, len(ports(grant)), len(lines),
                                  len(memory)))]
    print(COLUMNS.format(
        server.server_name, task.task_pid if task else "-", state_of(grant),
        *columns[0], f"{used}/{server.server_dma}" if server.server_dma else "",
        server.server_command.split(" ")[0] if grant.grant_program
        else "no program"))
    for row in columns[1:]:
        print(MORE.format("", *row))


class Servers(common.Command):
    name = "slate servers"
    summary = "Which server may use what of the machine"
    details = """
  PID STATE  the task that has the grant. running: its program runs; taken: it
             has yet to execute it; free: nobody has it
  PORTS      I/O ports (hexadecimal)
  IRQ        interrupt lines
  MEMORY     physical addresses (hexadecimal) that it may map
  DMA        contiguous pages: those it has and those it may have
  PROGRAM    what is sealed, and alone has these rights"""
    example = "slate servers"

    def run(self, args):
        print(COLUMNS.format("NAME", "PID", "STATE", "PORTS", "IRQ", "MEMORY",
                             "DMA", "PROGRAM"))
        found = list(grants())
        for grant in found:
            print(grant) if isinstance(grant, model.Bad) \
                else print_grant(grant)
        if not found:
            print("(/etc/servers grants nothing to anybody)")


Servers()


# ---- irqs ------------------------------------------------------------------

IRQ_COLUMNS = "{:>4} {:>10} {:<23} {:>6} {}"
CASCADE = 2


def owner_of(i, line, handler):
    """A bound line is its server's, one with a handler the kernel's."""
    if int(line["line_port"]):
        task = model.task_at(int(line["line_task"]) & common.WORD_MASK)
        return model.title(task)
    if handler:
        found = common.symbol_lookup(handler)
        return found[0] if found else "kernel"
    return "cascade" if i == CASCADE else "-"


class Irqs(common.Command):
    name = "slate irqs"
    summary = "Interrupt lines: whose they are, how often"
    details = """
  COUNT   interrupts on that line since boot
  OWNER   the kernel's own handler, or NAME(PID) of the server that has bound
          the line; cascade: the line that joins the two controllers
  PORT    where the interrupt becomes a notification: `slate ports`
  MASKED  it cannot interrupt: nobody has it, or its server has not acknowledged
          the last one yet"""
    example = "slate irqs"

    def run(self, args):
        handlers = common.variable("irq_handlers", "x86/trap.c")
        counts = common.variable("irq_counts", "x86/trap.c")
        lines = common.variable("lines", "ipc/irq.c")
        masked = int(common.variable("masked", "drivers/pic.c"))
        print(IRQ_COLUMNS.format("LINE", "COUNT", "OWNER", "PORT", "MASKED"))
        for i in range(counts.type.range()[1] + 1):
            port = int(lines[i]["line_port"]) & common.WORD_MASK
            handler = int(handlers[i]) & common.WORD_MASK
            print(IRQ_COLUMNS.format(
                i, int(counts[i]), owner_of(i, lines[i], handler),
                model.port_at(port).port_number if port else "-",
                "masked" if masked >> i & 1 else "-"))


Irqs()


# ---- checking --------------------------------------------------------------

def wrong_grant(grant):
    if not grant.grant_task:
        return "a grant is in force without a task" if grant.grant_in_force \
            else None
    if not grant.grant_program:
        return "a grant without a program has been taken"
    task = model.task_at(grant.grant_task)
    if task.task_grant != grant.address:
        return "a grant's task does not refer to it"
    if task.task_pid and model.find_task(task.task_pid) is None:
        return "a grant's task no longer exists"
    if model.is_state(task, "TASK_ZOMBIE"):
        return "a task that has ended has a grant"
    return None


def wrong_task(task, known):
    grant = known.get(task.task_grant)
    if task.task_grant and (grant is None or grant.grant_task != task.address):
        return "a task has a grant that is not its own"
    if task.task_ports and (task.task_ports != task.task_grant or
                            not grant.grant_in_force):
        return "a task may use ports that it has no grant for"
    return None


def wrong_map(known):
    """Whether the map allows what it should: the ports of one grant."""
    tss = common.variable("gdt_tss")
    mapped = int(common.variable("mapped", "task/grant.c")) & common.WORD_MASK
    at = int(tss["tss_ports"].address) & common.WORD_MASK
    bits = int.from_bytes(common.read(at, 65536 // 8), "little")
    is_on = int(tss["tss"]["iomap"]) == tss["tss"].type.sizeof
    current = model.current()
    own = current.task_ports if current else 0
    if is_on != bool(own) or (own and own != mapped):
        return "the map of ports is not that of the task that runs"
    granted = 0
    for first, last in ports(known[mapped]) if mapped in known else []:
        granted |= ((1 << (last - first + 1)) - 1) << first
    if ~bits & ((1 << 65536) - 1) != granted:
        return "the map allows other ports than the grant"
    return None


def check(count):
    known = {}
    for grant in grants():
        count()
        if isinstance(grant, model.Bad):
            yield "the list of grants", grant.why
            continue
        known[grant.address] = grant
        wrong = wrong_grant(grant)
        if wrong:
            yield grant.grant_server.server_name, wrong
    for task in model.good_tasks():
        wrong = wrong_task(task, known)
        if wrong:
            yield model.title(task), wrong
    wrong = wrong_map(known)
    if wrong:
        yield "the processor", wrong
