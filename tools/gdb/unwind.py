"""The callers of the functions in kernel/x86/copy.asm, for GDB.

These save two registers and keep no frame; nothing says so in the debug
information, and from the middle of a copy GDB cannot see who asked for it. All
of them push ESI, then EDI, so that the instruction tells how far they are.
"""

import gdb
from gdb.unwinder import Unwinder, register_unwinder

import common

PUSH_ESI, PUSH_EDI, POP_ESI, RETURN = 0x56, 0x57, 0x5E, 0xC3

# How many registers are on the stack at an instruction with this first byte;
# at all others it is two.
PUSHED = {PUSH_ESI: 0, PUSH_EDI: 1, POP_ESI: 1, RETURN: 0}


class _Id:
    """What GDB tells frames apart by."""

    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class CopyUnwinder(Unwinder):
    def __init__(self):
        super().__init__("slate-copy")
        self.range = None

    def _inside(self, pc):
        if self.range is None:
            try:
                self.range = [int(gdb.parse_and_eval(f"(unsigned long) &{n}"))
                              for n in ("copy_begin", "copy_end")]
            except gdb.error:
                self.range = [0, 0]  # another kernel
        return self.range[0] <= pc < self.range[1]

    def __call__(self, pending):
        pc = int(pending.read_register("eip")) & common.WORD_MASK
        if not self._inside(pc):
            return None
        esp = int(pending.read_register("esp")) & common.WORD_MASK
        try:
            pushed = PUSHED.get(common.read(pc, 1)[0], 2)
            saved = [common.word(esp + common.WORD * i) for i in range(3)]
        except common.BadMemory:
            return None
        top = esp + common.WORD * (pushed + 1)
        unwound = pending.create_unwind_info(
            _Id(gdb.Value(top), gdb.Value(pc)))
        kind = gdb.lookup_type("unsigned int")
        registers = {"eip": saved[pushed], "esp": top}
        if pushed == 2:
            registers["edi"], registers["esi"] = saved[0], saved[1]
        elif pushed == 1:
            registers["esi"] = saved[0]
        for name in ("ebp", "ebx"):
            registers[name] = int(pending.read_register(name))
        for name, value in registers.items():
            unwound.add_saved_register(
                name, gdb.Value(value & common.WORD_MASK).cast(kind))
        return unwound


register_unwinder(None, CopyUnwinder(), replace=True)
