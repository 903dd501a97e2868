"""What became of a lab's test, read from the memory of its machine after the
end.

The runner in the kernel notes it in lab_result (tools/workshop/labs/runner.c).
That counts if the kernel's code and constants are then as they were built, so
that the runner and the tests are the grader's. Nothing printed counts.
"""

import struct

from tools.run import elf

KERNEL_BASE = 0xc0000000

# What the kernel writes over the instructions stac and clac on a processor
# that has none (kernel/x86/protect.c), as that of these machines.
NOTHING = bytes([0x8d, 0x76, 0x00])


class Kernel:
    """A linked kernel with labs. `memory` is a machine's, from address 0."""

    def __init__(self, path):
        self.path = path
        file = elf.Elf(path)
        self._result = file.symbols["lab_result"] - KERNEL_BASE
        self._tests = {file.string(name): at for at, (name, *_) in
                       self._rows(file, "lab_tests", 4)}
        sites = [site for _, (site,) in self._rows(file, "smap_sites", 1)]
        self._constant = [self._as_booted(start, data, sites)
                          for start, data in file.constant]

    @staticmethod
    def _rows(file, section, width):
        """(address, words) of each row of a table that the linker made."""
        start, stop = (file.symbols[f"__{end}_{section}"]
                       for end in ("start", "stop"))
        for at in range(start, stop, 4 * width):
            yield at, file.words(at, width)

    @staticmethod
    def _as_booted(start, data, sites):
        data = bytearray(data)
        for site in sites:
            if start <= site < start + len(data):
                at = site - start
                data[at:at + len(NOTHING)] = NOTHING
        return start, bytes(data)

    def changed(self, memory):
        """The address of the first byte of code or constants that is not as
        built, or None."""
        for start, built in self._constant:
            at = start % KERNEL_BASE
            now = memory[at:at + len(built)]
            if now != built:
                return start + next(i for i, byte in enumerate(built)
                                    if now[i] != byte)
        return None

    def result(self, memory, test):
        """(expectations that failed, leaks) of the test of this name, or None
        if it is not over."""
        over, failures, leaks = struct.unpack_from("<3I", memory, self._result)
        return (failures, leaks) if over == self._tests.get(test) else None
