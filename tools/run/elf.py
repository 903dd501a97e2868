"""The little of ELF that the tests need: symbols, and words at an address."""

import struct
from pathlib import Path


class Elf32:
    """A linked 32-bit little-endian ELF file."""

    def __init__(self, path):
        self.data = Path(path).read_bytes()
        if self.data[:5] != b"\x7fELF\x01":
            raise ValueError(f"{path} is not a 32-bit ELF file")
        phoff, shoff = struct.unpack_from("<II", self.data, 28)
        _, phnum, _, shnum, _ = struct.unpack_from("<5H", self.data, 42)
        self.segments = [struct.unpack_from("<8I", self.data, phoff + 32 * i)
                         for i in range(phnum)]
        self.sections = [struct.unpack_from("<10I", self.data, shoff + 40 * i)
                         for i in range(shnum)]
        self.symbols = dict(self._symbols())

    def _symbols(self):
        for _, kind, _, _, offset, size, link, _, _, _ in self.sections:
            if kind != 2:  # SHT_SYMTAB
                continue
            strings = self.sections[link][4]
            for at in range(offset, offset + size, 16):
                name, value = struct.unpack_from("<II", self.data, at)
                yield self._text(strings + name), value

    def _text(self, offset):
        return self.data[offset:self.data.index(b"\0", offset)].decode()

    def _offset(self, address):
        for kind, offset, start, _, size, _, _, _ in self.segments:
            if kind == 1 and start <= address < start + size:  # PT_LOAD
                return offset + address - start
        raise ValueError(f"0x{address:x} is not in the file")

    def words(self, address, count):
        """`count` 32-bit words from `address` on."""
        return struct.unpack_from(f"<{count}I", self.data,
                                  self._offset(address))

    def table(self, address, width):
        """Rows of `width` words from `address` on, up to one that begins with
        0."""
        while True:
            row = self.words(address, width)
            if row[0] == 0:
                return
            yield row
            address += 4 * width

    def string(self, address):
        """The NUL-terminated string at `address`."""
        return self._text(self._offset(address))


def kernel_cases(path):
    """SUITE.CASE of every KTEST in a kernel: the linker section `ktests`
    (tools/workshop/ktest/ktest.h): suite, name and function of each."""
    elf = Elf32(path)
    start = elf.symbols["__start_ktests"]
    end = elf.symbols["__stop_ktests"]
    words = elf.words(start, (end - start) // 4) if end > start else ()
    return [f"{elf.string(words[i])}.{elf.string(words[i + 1])}"
            for i in range(0, len(words), 3)]


def user_cases(path):
    """FAMILY.CASE of every case of the program usertests: the tables that its
    `families` lists (user/bin/usertests/test.h), each ended by a NULL."""
    elf = Elf32(path)
    cases = []
    for family in elf.table(elf.symbols["families"], 2):
        cases += [elf.string(case[0]) for case in elf.table(family[1], 3)]
    return cases
