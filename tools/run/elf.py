"""Symbols and data of a linked ELF file, read with pyelftools."""

import struct

from elftools.elf.constants import P_FLAGS
from elftools.elf.elffile import ELFFile

SYMBOL = struct.Struct("<III4x")  # its name's offset, value and size


class Elf:
    """A linked 32-bit little-endian ELF file."""

    def __init__(self, path):
        with open(path, "rb") as f:
            elf = ELFFile(f)
            table = elf.get_section_by_name(".symtab")
            names = elf.get_section(table["sh_link"]).data()
            # pyelftools takes a quarter of a second for a kernel's 5,000.
            self.symbols = {
                names[at:names.find(b"\0", at)].decode(errors="replace"): value
                for at, value, _ in SYMBOL.iter_unpack(table.data())}
            self.segments = [(s["p_vaddr"], s.data())
                             for s in elf.iter_segments("PT_LOAD")]
            self.constant = [(s["p_vaddr"], s.data())
                             for s in elf.iter_segments("PT_LOAD")
                             if not s["p_flags"] & P_FLAGS.PF_W]

    def bytes(self, address):
        """The segment's bytes from `address` on."""
        for start, data in self.segments:
            if start <= address < start + len(data):
                return data[address - start:]
        raise ValueError(f"0x{address:x} is not in the file")

    def words(self, address, count):
        """`count` 32-bit words at `address`."""
        return struct.unpack_from(f"<{count}I", self.bytes(address))

    def string(self, address):
        """The NUL-terminated string at `address`."""
        return self.bytes(address).split(b"\0", 1)[0].decode()


def _section(elf, name, width):
    """Rows of `width` words of the linker section `name`."""
    start, end = elf.symbols[f"__start_{name}"], elf.symbols[f"__stop_{name}"]
    words = elf.words(start, (end - start) // 4) if end > start else ()
    return zip(*[iter(words)] * width, strict=True)


def kernel_cases(path):
    """SUITE.CASE of every KTEST in a kernel: the linker section `ktests`
    (tools/workshop/ktest/ktest.h) holds suite, name and function of each."""
    elf = Elf(path)
    return [f"{elf.string(suite)}.{elf.string(name)}"
            for suite, name, _ in _section(elf, "ktests", 3)]


def user_cases(path):
    """FAMILY.CASE of every case of the program usertests: the linker section
    `tests` (user/tests/usertests/test.h) holds family, name, function and
    signal of each."""
    elf = Elf(path)
    return [elf.string(name) for _, name, _, _ in _section(elf, "tests", 4)]
