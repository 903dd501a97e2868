"""Finds the origin of a pointer in a recorded run: goes back from the register
that an instruction uses to the load that filled it, from the loaded memory to
the store before, and so on. Only moves are followed: mov, pop, push and the
like. Where a value is computed, the search ends.
"""

import re

import gdb

import reverse
from stores import Moment, stores
from target import WORD, WORD_MASK, Fail, constant, register

REGISTERS = "eax", "ebx", "ecx", "edx", "esi", "edi", "ebp"

NEAR = 4096      # how far an address may be from its pointer
STEPS_MAX = 400  # instructions stepped back to find one load
HOPS_MAX = 8     # from memory to memory
RUN_UP = 2000    # instructions from a snapshot to where stepping begins


def faulting_instruction():
    """The EIP of the fault that is being handled here."""
    frame = gdb.newest_frame()
    while frame is not None:
        try:
            tf = frame.read_var("tf")
            if not tf.is_optimized_out and int(tf) != 0:
                return int(tf["eip"]) & WORD_MASK
        except (ValueError, gdb.error):
            pass
        frame = frame.older()
    raise Fail("the frame of the fault is not found on the stack")


def instruction():
    """The text of the instruction that is about to be executed."""
    frame = gdb.newest_frame()
    text = frame.architecture().disassemble(frame.pc())[0]["asm"]
    return re.sub(r"<.*?>", "", text).strip()


def operand_address(text):
    """The address of a memory operand like [eax+ecx*4+0x10], or None."""
    inside = re.search(r"\[(.*?)\]", text)
    if not inside:
        return None
    total = 0
    for sign, term in re.findall(r"([+-]?)([^+-]+)", inside[1]):
        value = 1
        for factor in term.split("*"):
            value *= register(factor) if factor in (*REGISTERS, "esp") \
                else int(factor, 0)
        total += -value if sign == "-" else value
    return total & WORD_MASK


def base_register(text, address):
    """The register of a memory operand that holds a pointer near `address`."""
    return next((name for name in REGISTERS
                 if re.search(rf"\[[^\]]*\b{name}\b", text) and
                 (register(name) - address + NEAR) % 2**32 <= 2 * NEAR), None)


def stored_register(value):
    """The register whose value the instruction stores, or None."""
    text = instruction()
    return next((name for name in REGISTERS
                 if re.search(rf"(push\s+|,\s*){name}$", text) and
                 register(name) == value), None)


def _back_to_load(name):
    """Goes back to the instruction that gave the register its value."""
    value = register(name)
    for _ in range(STEPS_MAX):
        reverse.quietly("reverse-stepi")
        text = instruction()
        if register(name) != value or \
                re.match(rf"(mov|pop|lea)\S*\s+{name}\b", text) and \
                not re.match(rf"mov\s+{name},{name}\b", text):
            return value
    raise Fail(f"{name} had its value for more than {STEPS_MAX} instructions; "
               "stepping back ends here")


def _source(name):
    """The operand that the instruction loads into the register: a register's
    name, an address, or None if the value is computed."""
    text = instruction()
    if re.match(rf"pop\s+{name}\b", text):
        return register("esp")
    moved = re.match(rf"mov\s+{name},(\w+)$", text)
    if moved and moved[1] in REGISTERS:
        return moved[1]
    if re.match(rf"mov\s+{name},.*\[", text):
        return operand_address(text.split(",", 1)[1])
    return None


def _snapshot_before(number):
    """Takes a snapshot shortly before `number`: makes steps back quick."""
    here = reverse.count()
    reverse.start_again()
    reverse.go(max(number - RUN_UP, reverse.start()))
    gdb.execute("monitor savevm run-up", to_string=True)
    reverse.go(here)


class Path:
    """The way back: `lines` of text, the latest first; the moment of the last
    load on it and its address; and the moment of the store that the loaded
    value came from, None if the way ends before."""

    def __init__(self):
        self.lines, self.load, self.source, self.store = [], None, 0, None


def trace(name):
    """Goes from the instruction here, which uses register `name`, back to the
    origin of its value. Returns a Path."""
    path = Path()
    poison = constant("KMEM_FREED"), constant("KMEM_UNINIT")
    _snapshot_before(reverse.count())
    for _ in range(HOPS_MAX):
        value = _back_to_load(name)
        source, at = _source(name), Moment()
        if source is None:
            path.lines += [f"computed: {instruction()}",
                           f"    by {at.blamed[0]}"]
            break
        if source in REGISTERS:
            name = source
            continue
        path.load, path.source = at, source
        path.store = next(stores(source, WORD), None)
        path.lines += [f"0x{value:08x} was read from 0x{source:08x}",
                       f"    by {at.blamed[0]}"]
        if path.store is None:
            path.lines.append("to which nothing was stored in this recording")
            break
        path.lines.append(f"where it was written by {path.store.blamed[0]}")
        name = stored_register(value)
        if path.store.own and value in poison or name is None:
            break
    return path
