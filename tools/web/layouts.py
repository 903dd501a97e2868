"""Writes what a reader of a machine's memory has to know of its kernel, from
the kernel's debug information, as JSON (docs/live.md).

    python3 -m tools.web.layouts KERNEL.elf OUT.json

    hash        of the bytes that are loaded: kernelHash in live/kernel.mjs
                computes the same of the kernel that the page boots
    structs     {name: {size, members: {name: {offset, type}}}}; unions, too
    enums       {name: {constant: value}}
    variables   {name: {address, type}}, of all files
    functions   [[address, size, name, file, line]], in order; the file of one
                in assembly is null
    calls       {return address: [file, line]} of the calls of kmem_cache_alloc
                and kmem_cache_free

A structure without a name has that of its typedef or of its variable; if it is
the type of a member, OUTER.MEMBER. The members of one that is a member without
a name belong to the outer one. Of things with the same name the first has it,
any other FILE:NAME. A structure that is only declared is in no list.
"""

import argparse
import bisect
import json
import sys
import zlib
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from tools.run import symbols

TRANSPARENT = ("DW_TAG_const_type", "DW_TAG_volatile_type",
               "DW_TAG_restrict_type", "DW_TAG_atomic_type")
STRUCTS = ("DW_TAG_structure_type", "DW_TAG_union_type")
TYPES = STRUCTS + ("DW_TAG_enumeration_type", "DW_TAG_typedef")
# Functions whose calls are listed.
ALLOCATOR = ("kmem_cache_alloc", "kmem_cache_free")
# DW_ATE_: signed, signed_char.
SIGNED = (0x05, 0x06)


class LayoutsError(Exception):
    """A file is no kernel with debug information."""


def value(die, name, otherwise=None):
    """An attribute of an entry of the debug information."""
    found = die.attributes.get(f"DW_AT_{name}")
    if found is None:
        return otherwise
    return found.value.decode() if isinstance(found.value, bytes) \
        else found.value


def typed(die, name="type"):
    """The entry that an entry refers to, or None."""
    return die.get_DIE_from_attribute(f"DW_AT_{name}") \
        if f"DW_AT_{name}" in die.attributes else None


def file_of(header, number):
    """The name of a file of a line program."""
    file = header["file_entry"][number]
    folder = header["include_directory"][file["dir_index"]].decode()
    name = file["name"].decode()
    if file["dir_index"]:
        name = f"{folder}/{name}"
    return name.removeprefix("./")


class Named:
    """Things by name. The first has its name for itself; another one of that
    name, defined at another place, has its file's name before it."""

    def __init__(self):
        self.things, self.places = {}, {}

    def name(self, name, place):
        """The name of what is defined at a place (file, line), and whether it
        is new."""
        file, line = place
        for found in name, f"{file}:{name}", f"{file}:{line}:{name}":
            if self.places.setdefault(found, place) == place:
                return found, found not in self.things
        raise LayoutsError(f"{file}:{line} defines {name} twice")


class Layouts:
    """The types and variables of the debug information."""

    def __init__(self, dwarf):
        self.structs, self.enums = Named(), Named()
        self.variables = Named()
        self.lines = {}  # function: (file, line)
        for unit in dwarf.iter_CUs():
            top = unit.get_top_DIE()
            self.address = DWARFExprParser(unit.structs)
            self.files = dwarf.line_program_for_CU(unit).header
            for die in top.iter_children():
                self.entry(die)

    def entry(self, die):
        """Takes down a definition of a file."""
        if die.tag in TYPES and "DW_AT_name" in die.attributes:
            self.type(die)
        elif die.tag == "DW_TAG_variable":
            self.variable(die)
        elif die.tag == "DW_TAG_subprogram" and \
                die.attributes.keys() & {"DW_AT_low_pc", "DW_AT_ranges"}:
            declared = typed(die, "abstract_origin") or die
            self.lines[value(declared, "name")] = self.place(declared)

    def place(self, die):
        """The file and the line of a definition."""
        number = value(die, "decl_file")
        if number is None:
            return None, 0
        return file_of(self.files, number), value(die, "decl_line", 0)

    def variable(self, die):
        place = die.attributes.get("DW_AT_location")
        if place is None:
            return
        expression = self.address.parse_expr(place.value)
        if [op.op_name for op in expression] != ["DW_OP_addr"]:
            return
        declared = typed(die, "specification") or die
        kind = typed(die) or typed(declared)
        called = value(declared, "name")
        name, _ = self.variables.name(called, self.place(die))
        self.variables.things[name] = {"address": expression[0].args[0],
                                       "type": self.type(kind, called)}

    def type(self, die, called=None):
        """A type as layouts.json describes it; `called` is its name if it has
        none of its own."""
        if die is None:
            return None
        if die.tag in TRANSPARENT:
            return self.type(typed(die), called)
        if die.tag == "DW_TAG_typedef":
            name = value(die, "name")
            found = self.type(typed(die), name)
            return {**found, "name": name} \
                if found and found["kind"] == "int" else found
        if die.tag == "DW_TAG_base_type":
            return {"kind": "int", "size": value(die, "byte_size"),
                    "signed": value(die, "encoding") in SIGNED,
                    "name": value(die, "name")}
        if die.tag == "DW_TAG_pointer_type":
            return {"kind": "pointer", "to": self.type(typed(die), called)}
        if die.tag == "DW_TAG_subroutine_type":
            return {"kind": "function"}
        if die.tag == "DW_TAG_array_type":
            return self.array(die, called)
        if die.tag == "DW_TAG_enumeration_type":
            return {"kind": "enum", "name": self.enum(die, called),
                    "size": value(die, "byte_size")}
        if die.tag in STRUCTS:
            return {"kind": "struct", "name": self.struct(die, called)}
        raise LayoutsError(f"{die.tag} is unknown here")

    def array(self, die, called):
        """An array, of arrays if it has several dimensions. One that has no
        end has the count 0."""
        of = self.type(typed(die), called)
        for part in reversed(list(die.iter_children())):
            count = value(part, "count", value(part, "upper_bound", -1) + 1)
            of = {"kind": "array", "count": count, "of": of}
        return of

    def enum(self, die, called):
        name, new = self.enums.name(value(die, "name", called),
                                    self.place(die))
        if new:
            self.enums.things[name] = {value(c, "name"): value(c, "const_value")
                                       for c in die.iter_children()}
        return name

    def struct(self, die, called):
        if "DW_AT_declaration" in die.attributes:
            return value(die, "name")
        name, new = self.structs.name(value(die, "name", called),
                                      self.place(die))
        if new:
            members = {}  # known before they are, as one may point to this
            self.structs.things[name] = {"size": value(die, "byte_size"),
                                         "members": members}
            members.update(self.members(die, name))
        return name

    def members(self, die, outer, base=0):
        """(name, {offset, type}) of each member."""
        for member in die.iter_children():
            if member.tag != "DW_TAG_member":
                continue
            name = value(member, "name")
            offset = base + value(member, "data_member_location", 0)
            if name is None:
                yield from self.members(typed(member), outer, offset)
            else:
                yield name, {"offset": offset, "type": self.type(
                    typed(member), f"{outer}.{name}")}


def kernel_hash(elf):
    """The CRC-32 of the bytes that are loaded, as eight digits: no debug
    information is, so a kernel without it has the same."""
    crc = 0
    for segment in elf.iter_segments("PT_LOAD"):
        crc = zlib.crc32(segment.data(), crc)
    return f"{crc:08x}"


def functions(elf, lines):
    """All functions, those in assembly too, from the symbol table. Only those
    in C have a type and a size there, and so no edge of a section."""
    code = [index for index, section in enumerate(elf.iter_sections())
            if section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR]
    known = list(elf.get_section_by_name(".symtab").iter_symbols())
    sizes = {s["st_value"]: s["st_size"] for s in known
             if s["st_info"]["type"] == "STT_FUNC"}
    table = symbols.functions(sorted(
        (s["st_value"], "t" if s["st_shndx"] in code else "d", s.name)
        for s in known
        if isinstance(s["st_shndx"], int) and s.name and
        (s["st_size"] or s["st_value"] not in sizes)))
    ends = [address for address, _ in table[1:]] + [table[-1][0]]
    return [[address, sizes.get(address, end - address), name,
             *lines.get(symbols.VARIANT.sub("", name), (None, 0))]
            for (address, name), end in zip(table, ends) if name]


CALL, CALL_SIZE = 0xE8, 5


def calls(elf, dwarf, table, names):
    """{return address: [file, line]} of each call of some functions by code in
    C, whose files are numbered as in DWARF 5."""
    targets = {address for address, _, name, *_ in table if name in names}
    places = sorted((
        (entry.state.address, file_of(program.header, entry.state.file),
         entry.state.line)
        for program in map(dwarf.line_program_for_CU, dwarf.iter_CUs())
        for entry in program.get_entries()
        if program.header.version >= 5 and entry.state and
        not entry.state.end_sequence), key=lambda place: place[0])
    starts = [address for address, *_ in places]
    found = {}
    for section in elf.iter_sections():
        if not section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR:
            continue
        code, start = section.data(), section["sh_addr"]
        at = code.find(CALL)
        while 0 <= at <= len(code) - CALL_SIZE:
            back = start + at + CALL_SIZE
            offset = int.from_bytes(code[at + 1:at + CALL_SIZE], "little")
            if (back + offset) & 0xffffffff in targets:
                _, *place = places[bisect.bisect(starts, start + at) - 1]
                found[back] = place
            at = code.find(CALL, at + 1)
    return found


def layouts(path):
    """What OUT.json holds."""
    with open(path, "rb") as file:
        try:
            elf = ELFFile(file)
        except ELFError as e:
            raise LayoutsError(f"{path} is not an ELF file: {e}") from e
        if not elf.has_dwarf_info():
            raise LayoutsError(f"{path} has no debug information: build it "
                               "without DWARF=0")
        dwarf = elf.get_dwarf_info()
        known = Layouts(dwarf)
        table = functions(elf, known.lines)
        return {"hash": kernel_hash(elf), "structs": known.structs.things,
                "enums": known.enums.things,
                "variables": known.variables.things, "functions": table,
                "calls": calls(elf, dwarf, table, ALLOCATOR)}


def main():
    parser = argparse.ArgumentParser(
        description="Writes the layouts of a kernel's structures as JSON.")
    parser.add_argument("kernel", help="an ELF file with debug information")
    parser.add_argument("out", help="the file to write")
    args = parser.parse_args()
    try:
        text = json.dumps(layouts(args.kernel), separators=(",", ":"))
        Path(args.out).write_text(text + "\n", encoding="utf-8")
    except (LayoutsError, OSError) as e:
        sys.exit(f"layouts: {e}")


if __name__ == "__main__":
    main()
