"""The target as data: what tools/gdb/common.py hands on to all commands.

    memory      reads of the target, by page and kept while it stands still;
                what cannot be read raises BadMemory, so that a command can
                mark the row with `!` and go on
    symbols     the kernel's variables, types, macros and functions; those of
                programs may be loaded too and are never meant
    structures  Record: a C structure read as a whole, its members by name,
                laid out as the kernel's debug information says
    walks       over lists that may be broken: bounded, no circle holds them

Nothing here calls a function in the target, and only write_word writes to it,
so it all works on a live stub, in a replay and on a memory dump, wherever the
kernel stands.
"""

import bisect
import functools
import re
from pathlib import Path

import gdb

ROOT = Path(__file__).resolve().parents[2]

PAGE_SHIFT = 12
PAGE_SIZE = 1 << PAGE_SHIFT
PAGE_MASK = PAGE_SIZE - 1
MIB4 = PAGE_SIZE * 1024  # what a page table maps
WORD = 4
WORD_MASK = 0xFFFFFFFF


class Fail(Exception):
    """A command's own error: one line for the user."""


class BadMemory(Exception):
    """The target has no memory there, or GDB cannot reach it."""

    def __init__(self, address):
        super().__init__(f"0x{address & WORD_MASK:08x} cannot be read")
        self.address = address & WORD_MASK


# ---- memory ----------------------------------------------------------------

_pages = {}


def forget(*_):
    """Drops what was read: the target has run, or memory was written."""
    _pages.clear()


for _event in (gdb.events.cont, gdb.events.exited, gdb.events.memory_changed,
               gdb.events.new_objfile):
    _event.connect(forget)


def _page(address):
    page = _pages.get(address)
    if page is None:
        try:
            page = bytes(gdb.selected_inferior().read_memory(address,
                                                             PAGE_SIZE))
        except (gdb.MemoryError, gdb.error) as e:
            raise BadMemory(address) from e
        _pages[address] = page
    return page


def read(address, size):
    """`size` bytes at `address`. Raises BadMemory."""
    address &= WORD_MASK
    parts = []
    while size > 0:
        offset = address & PAGE_MASK
        part = _page(address - offset)[offset:offset + size]
        parts.append(part)
        address = (address + len(part)) & WORD_MASK
        size -= len(part)
    return b"".join(parts)


def read_run(address, size):
    """The same for much memory at once, which is not kept."""
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except (gdb.MemoryError, gdb.error) as e:
        raise BadMemory(address) from e


def word(address):
    """The 32-bit word at `address`."""
    offset = address & PAGE_MASK
    page = _pages.get(address - offset)
    if page is not None and offset <= PAGE_SIZE - WORD:
        return int.from_bytes(page[offset:offset + WORD], "little")
    return int.from_bytes(read(address, WORD), "little")


def string(address, limit=256):
    """The characters at `address`, up to a NUL or `limit`."""
    text = bytearray()
    while len(text) < limit:
        byte = read(address + len(text), 1)[0]
        if byte == 0:
            break
        text.append(byte)
    return text.decode("latin-1")


def write_word(address, value):
    """Writes to the target: only what sets the kernel's own switches does."""
    gdb.selected_inferior().write_memory(
        address, (value & WORD_MASK).to_bytes(WORD, "little"))
    forget()


def need_target():
    """Ends the command with an error if there is nothing to look at."""
    if gdb.selected_inferior().connection is None:
        raise Fail("no target; `target remote STUB`, `core FILE` or "
                   "`make gdb`")


# ---- the kernel's symbols --------------------------------------------------

def kernel():
    """The kernel's symbol file, or an error."""
    name = gdb.current_progspace().filename
    for objfile in gdb.objfiles():
        if objfile.filename == name:
            return objfile
    raise Fail("no kernel is loaded; `file build/slate.elf`")


def symbol(name, file=None):
    """The kernel's variable or function, global or, in `file`, static."""
    return _symbol_of(kernel(), name, file)


@functools.lru_cache(maxsize=None)
def _symbol_of(objfile, name, file):
    if file is None:
        found = objfile.lookup_global_symbol(name)
        if found is not None:
            return found
    for found in gdb.lookup_static_symbols(name):
        if found.symtab.objfile.filename == objfile.filename and \
                (file is None or found.symtab.filename.endswith(file)):
            return found
    return None


def variable(name, file=None):
    """The gdb.Value of a variable of the kernel; `file` says which of several
    static ones. Fails if there is none: another kernel, most likely."""
    found = symbol(name, file)
    if found is None:
        raise Fail(f"this kernel has no `{name}`")
    return found.value()


@functools.lru_cache(maxsize=None)
def _place(_objfile, name, file):
    """(address, bytes) of a variable."""
    value = variable(name, file)
    return int(value.address) & WORD_MASK, value.type.sizeof


def integer(name, file=None):
    """An unsigned variable, or a pointer; what is asked for often."""
    address, size = _place(kernel(), name, file)
    return int.from_bytes(read(address, size), "little")


def has_variable(name, file=None):
    return symbol(name, file) is not None


def address_of(name, file=None):
    """Where a variable or function of the kernel is."""
    return int(variable(name, file).address) & WORD_MASK


@functools.lru_cache(maxsize=None)
def _ctype(objfile, name, home):
    found = objfile.lookup_global_symbol(home)
    block = found.symtab.static_block() if found is not None else None
    try:
        return gdb.lookup_type(name, block) if block else gdb.lookup_type(name)
    except gdb.error as e:
        raise Fail(f"this kernel has no `{name}`") from e


def ctype(name, home="kmem_cache_stat"):
    """A type of the kernel. `home` is a function in a file that knows it, as a
    program's file may have one of the same name."""
    return _ctype(kernel(), name, home)


def has_type(name, home="kmem_cache_stat"):
    try:
        ctype(name, home)
        return True
    except Fail:
        return False


def enumerators(name, home="kmem_cache_stat"):
    """{enumerator: number} of a C enumeration."""
    return {f.name: f.enumval for f in ctype(name, home).fields()}


_INTEGER = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b")


def _evaluate(text, known):
    """A C constant expression, or None if it is not a plain one."""
    text = _INTEGER.sub(r"\1", re.sub(r"/\*.*?(\*/|$)", "", text)).strip()
    names = set(re.findall(r"\b[A-Za-z_]\w*\b", re.sub(r"0[xX]\w+", "", text)))
    if not text or re.search(r"[^\w\s()+*/<>&|~-]", text) or \
            names - set(known):
        return None
    try:
        # Names of this header and integers: nothing else gets here.
        value = eval(text.replace("/", "//"), {"__builtins__": {}}, known)
        return int(value) & WORD_MASK
    except (SyntaxError, TypeError, ValueError, ArithmeticError):
        return None


def _collect(header, known, seen):
    """The macros of a header and of those that it includes."""
    path = ROOT / header
    if header in seen or not path.is_file():
        return
    seen.add(header)
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    for name in re.findall(r'^#include "([^"]+)"', text, re.M):
        _collect(name, known, seen)
    for name, value in re.findall(r"^#define (\w+)[ \t]+(.+)$", text, re.M):
        number = _evaluate(value, known)
        if number is not None:
            known.setdefault(name, number)


@functools.lru_cache(maxsize=None)
def macros(header):
    """{name: number} of the plain macros that a header of this tree gives:
    debug information does not have them. Where #if gives several, the first."""
    known = {"PAGE_SIZE": PAGE_SIZE, "PAGE_MASK": PAGE_MASK,
             "PAGE_SHIFT": PAGE_SHIFT,
             "MM_DEBUG": 1}  # kernel/mm_platform.h's
    _collect(header, known, set())
    return known


@functools.lru_cache(maxsize=None)
def text_macro(header, name):
    """A macro of a header that is a string; "" if there is none."""
    try:
        text = (ROOT / header).read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(rf'^#define {name}[ \t]+"([^"]*)"', text, re.M)
    return found[1] if found else ""


class _Symbols:
    """The kernel's own table of symbols, so that names and offsets are the
    same as in the shell: functions, then objects."""

    def __init__(self):
        functions = int(variable("symbol_functions"))
        count_ = int(variable("symbol_count"))
        table = read(address_of("symbol_table"), 8 * count_)
        pairs = [(int.from_bytes(table[i:i + 4], "little"),
                  int.from_bytes(table[i + 4:i + 8], "little"))
                 for i in range(0, len(table), 8)]
        self.functions = pairs[:functions]
        self.objects = sorted(pairs[functions:], key=lambda pair: pair[0])

    @staticmethod
    def below(table, address):
        """(name, offset) of the last entry at or below, or None."""
        i = bisect.bisect_right(table, address, key=lambda pair: pair[0]) - 1
        if i < 0 or table[i][1] == 0:
            return None
        return string(table[i][1], 80), address - table[i][0]


@functools.lru_cache(maxsize=1)
def _symbols(_objfile):
    return _Symbols()


def symbol_lookup(address):
    """(function, offset), or None if no function of the kernel is there."""
    try:
        table = _symbols(kernel())
        return table.below(table.functions, address)
    except BadMemory:
        return None


def symbol_object(address):
    """(variable, offset) of the kernel's data at or next below, or None."""
    table = _symbols(kernel())
    return table.below(table.objects, address)


def linker(name):
    """The address of a symbol that the linker script defines."""
    return int(gdb.parse_and_eval(f"(unsigned long)&'{name}'")) & WORD_MASK


def symbol_format(address):
    """name+0x1c, or the bare address."""
    found = symbol_lookup(address)
    return f"{found[0]}+0x{found[1]:x}" if found else f"0x{address:08x}"


def source_line(address):
    """file:line of an address in code, or "" if unknown."""
    at = gdb.find_pc_line(address)
    if at.symtab is None:
        return ""
    name = at.symtab.filename
    return f"{name.removeprefix(str(ROOT) + '/')}:{at.line}"


# ---- structures ------------------------------------------------------------

def _decode_integer(size, signed):
    def decode(data, offset, _address):
        return int.from_bytes(data[offset:offset + size], "little",
                              signed=signed)
    return decode


def _decode_text(size):
    def decode(data, offset, _address):
        text = data[offset:offset + size].split(b"\0", 1)[0]
        return text.decode("latin-1")
    return decode


def _decode_array(count, stride, element):
    def decode(data, offset, address):
        return [element(data, offset + i * stride, address + i * stride)
                for i in range(count)]
    return decode


def _decode_record(layout):
    def decode(data, offset, address):
        return Record(layout, data[offset:offset + layout.size], address)
    return decode


_SIGNED = {"signed char", "char", "short", "int", "long", "long long",
           "short int", "long int", "long long int"}


def _decoder(kind):
    """How to make a Python value of a member of this C type."""
    kind = kind.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_ARRAY:
        element = kind.target().strip_typedefs()
        low, high = kind.range()
        count = high - low + 1
        if element.sizeof == 1 and "char" in str(element) and \
                "unsigned" not in str(element):
            return _decode_text(count)
        return _decode_array(count, element.sizeof, _decoder(element))
    if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        return _decode_record(_layout(kind))
    return _decode_integer(kind.sizeof, kind.unqualified().name in _SIGNED)


class Layout:
    """Where the members of a C structure are, those of anonymous structures
    and unions in it included."""

    def __init__(self, kind):
        self.kind = kind
        self.size = kind.sizeof
        self.members = {}
        self._add(kind, 0)

    def _add(self, kind, base):
        for field in kind.fields():
            offset = base + field.bitpos // 8
            if field.name:
                self.members[field.name] = (offset, _decoder(field.type))
            else:
                self._add(field.type.strip_typedefs(), offset)


_layouts = {}


def _layout(kind):
    key = (kind.name or str(kind), kind.sizeof)
    if key not in _layouts:
        _layouts[key] = Layout(kind)
    return _layouts[key]


@functools.lru_cache(maxsize=None)
def _named_layout(_objfile, name, home):
    return Layout(ctype(name, home).strip_typedefs())


def layout(name, home="kmem_cache_stat"):
    return _named_layout(kernel(), name, home)


class Record:
    """A C structure as it was when it was read: pointers and integers are
    Python integers, arrays of char strings, structures within it Records.
    `address` says where it is in the target."""

    __slots__ = ("layout", "data", "address")

    def __init__(self, what, data, address):
        self.layout = what
        self.data = data
        self.address = address

    def __getattr__(self, name):
        try:
            offset, decode = self.layout.members[name]
        except KeyError:
            raise AttributeError(name) from None
        return decode(self.data, offset, self.address + offset)

    def has(self, name):
        return name in self.layout.members

    def where(self, name):
        """The address of a member."""
        return self.address + self.layout.members[name][0]


def record(name, address, home="kmem_cache_stat"):
    """The structure `name` ("struct kmem_slab") at `address`."""
    what = layout(name, home)
    return Record(what, read(address, what.size), address & WORD_MASK)


def record_of(value):
    """A structure that a gdb.Value is, for instance a variable()."""
    what = _layout(value.type.strip_typedefs())
    address = int(value.address) & WORD_MASK
    return Record(what, read(address, what.size), address)


def container(name, member, address, home="kmem_cache_stat"):
    """The structure whose `member` is at `address`."""
    offset = layout(name, home).members[member][0]
    return record(name, address - offset, home)


# ---- walks -----------------------------------------------------------------

class Broken(Exception):
    """A list is not a list: `address` is the link that is wrong."""

    def __init__(self, why, address):
        super().__init__(why)
        self.address = address


def _walk(what, first, follow, end, limit):
    """From `first` to `end`, which belongs to it no more."""
    seen = set()
    previous, at = end, first
    while at != end:
        if at in seen:
            back = " and not to its head" if end else ""
            raise Broken(f"the {what} comes back to 0x{at:08x}{back}", previous)
        if len(seen) == limit:
            raise Broken(f"the {what} is longer than {limit}", previous)
        seen.add(at)
        try:
            following = follow(at)
        except BadMemory as e:
            raise Broken(f"the {what} leads to 0x{at:08x}, which cannot be "
                         "read", previous) from e
        yield at
        previous, at = at, following


def walk_list(head, limit=1 << 20):
    """The addresses of the links of a struct list whose head is at `head`, in
    order. Raises Broken at a circle, at a link that is no memory, and beyond
    `limit`."""
    yield from _walk("list", word(head), word, head, limit)


def walk_chain(first, follow, limit=1 << 20):
    """The addresses of a chain that ends with 0: `follow(address)` gives the
    next one. Raises Broken as above."""
    yield from _walk("chain", first, follow, 0, limit)
