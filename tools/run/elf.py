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

    def table(self, address, width):
        """Rows of `width` words at `address`, up to one that begins with 0."""
        while (row := self.words(address, width))[0] != 0:
            yield row
            address += 4 * width

    def string(self, address):
        """The NUL-terminated string at `address`."""
        return self.bytes(address).split(b"\0", 1)[0].decode()


def kernel_cases(path):
    """SUITE.CASE of every KTEST in a kernel: the linker section `ktests`
    (tools/workshop/ktest/ktest.h) holds suite, name and function of each."""
    elf = Elf(path)
    start, end = elf.symbols["__start_ktests"], elf.symbols["__stop_ktests"]
    words = elf.words(start, (end - start) // 4) if end > start else ()
    return [f"{elf.string(words[i])}.{elf.string(words[i + 1])}"
            for i in range(0, len(words), 3)]


def user_cases(path):
    """FAMILY.CASE of every case of the program usertests: the tables that its
    `families` lists (user/tests/usertests/test.h), each ended by a NULL."""
    elf = Elf(path)
    return [elf.string(case[0])
            for family in elf.table(elf.symbols["families"], 2)
            for case in elf.table(family[1], 3)]
