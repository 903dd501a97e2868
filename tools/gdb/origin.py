"""Where a value comes from, in a recorded run: back from the register that an
instruction uses to the load that filled it, from the memory that was loaded to
the store before, and so on. `slab culprit` follows pointers so that nobody
ever set.

Only moves are followed: mov, pop, push and the like. Where something is
computed the way ends, and says so.
"""

import re

import gdb

import common
import travel

REGISTERS = ("eax", "ebx", "ecx", "edx", "esi", "edi", "ebp")

# An address is that far from the pointer that it was made of, at most.
NEAR = 4096

STEPS_MAX = 400  # instructions stepped back to find one load
HOPS_MAX = 8     # from memory to memory

# What the allocator fills memory with: there a value begins.
POISON = (0xDEADBEEF, 0xBADDCAFE)

# Instructions from a snapshot to where stepping back begins.
RUN_UP = 2000


def faulting_instruction():
    """The EIP of the fault that is being handled here."""
    frame = gdb.newest_frame()
    while frame is not None:
        try:
            tf = frame.read_var("tf")
            if not tf.is_optimized_out and int(tf) != 0:
                return int(tf["eip"]) & common.WORD_MASK
        except (ValueError, gdb.error):
            pass
        frame = frame.older()
    raise common.Fail("the frame of the fault is not found on the stack")


def register(name):
    value = gdb.newest_frame().read_register(name)
    return int(value) & common.WORD_MASK


def instruction():
    """The text of the instruction that is about to be executed."""
    pc = gdb.newest_frame().pc()
    text = gdb.newest_frame().architecture().disassemble(pc)[0]["asm"]
    return re.sub(r"<.*?>", "", text).strip()


def operand_address(text):
    """The address of a memory operand like [eax+ecx*4+0x10], or None."""
    inside = re.search(r"\[(.*?)\]", text)
    if not inside:
        return None
    total = 0
    for sign, term in re.findall(r"([+-]?)([^+-]+)", inside.group(1)):
        value = 1
        for factor in term.split("*"):
            value *= register(factor) if factor in (*REGISTERS, "esp") \
                else int(factor, 0)
        total += -value if sign == "-" else value
    return total & common.WORD_MASK


def base_register(text, address):
    """The register of a memory operand that holds a pointer near `address`."""
    near = [name for name in REGISTERS
            if re.search(rf"\[[^\]]*\b{name}\b", text)
            and (register(name) - address + NEAR) % 2**32 <= 2 * NEAR]
    return near[0] if near else None


def _step_back_to_load(name):
    """Back to the instruction that gave the register its value."""
    value = register(name)
    for _ in range(STEPS_MAX):
        travel.quietly("reverse-stepi")
        if register(name) != value:
            return value
        text = instruction()
        if re.match(rf"(mov|pop|lea)\S*\s+{name}\b", text) and \
                not re.match(rf"mov\s+{name},{name}\b", text):
            return value
    raise common.Fail(f"{name} had its value for more than {STEPS_MAX} "
                      "instructions; stepping back ends here")


def _source(name):
    """What the instruction takes the register's new value from: ("register",
    name), ("memory", address), or ("computed", text)."""
    text = instruction()
    if re.match(rf"pop\s+{name}\b", text):
        return "memory", register("esp")
    moved = re.match(rf"mov\s+{name},(\w+)$", text)
    if moved and moved.group(1) in REGISTERS:
        return "register", moved.group(1)
    if re.match(rf"mov\s+{name},.*\[", text):
        return "memory", operand_address(text.split(",", 1)[1])
    return "computed", text


def stored_register(value):
    """The register whose value the instruction stores, or None."""
    for name in REGISTERS:
        if re.search(rf"(push\s+|,\s*){name}$", instruction()) and \
                register(name) == value:
            return name
    return None


def _snapshot_before(number):
    """A snapshot a little before this moment makes single steps back quick."""
    here = travel.count()
    travel.start_again()
    travel.go(max(number - RUN_UP, travel.start()))
    gdb.execute("monitor savevm run-up", to_string=True)
    travel.go(here)


class Path:
    """The way back: in words, the latest first; the moment of the last load on
    it, and that of the store that the loaded value came from, None if the way
    ends before."""

    def __init__(self):
        self.lines = []
        self.load = None
        self.store = None

    def say(self, text):
        self.lines.append(text)
        return self


def trace(name, stores, moment):
    """From the instruction here, which uses register `name`, back to where its
    value comes from: a Path. stores(address, size) goes back from store to
    store; moment() is where the program stands."""
    path = Path()
    _snapshot_before(travel.count())
    for _ in range(HOPS_MAX):
        value = _step_back_to_load(name)
        kind, source = _source(name)
        at = moment()
        if kind == "computed":
            path.say(f"computed: {source}")
            return path.say(f"    by {at.blamed[0]}")
        if kind == "register":
            name = source
            continue
        path.load, path.store = at, next(stores(source, common.WORD), None)
        path.say(f"0x{value:08x} was read from 0x{source:08x}")
        path.say(f"    by {at.blamed[0]}")
        if path.store is None:
            return path.say("where nobody ever wrote in this recording")
        path.say(f"where it was written by {path.store.blamed[0]}")
        name = stored_register(value)
        if path.store.own and value in POISON or name is None:
            return path
    return path.say("and so on")
