"""The stopped machine as data, for all commands: memory, the kernel's symbols,
structures by the kernel's debug information, and lists, which may be broken.

Nothing here calls a function of the kernel or changes memory, so everything
works at a breakpoint, in a replay and on a core.
"""

import functools
import re
from pathlib import Path

import gdb

ROOT = Path(__file__).resolve().parents[2]

PAGE_SHIFT = 12
PAGE_SIZE = 1 << PAGE_SHIFT
PAGE_MASK = PAGE_SIZE - 1
WORD = 4
WORD_MASK = 0xFFFFFFFF


class Fail(Exception):
    """An error of a command, in one line."""


class BadMemory(Exception):
    """The target has no memory there, or GDB cannot reach it."""

    def __init__(self, address):
        super().__init__(f"0x{address & WORD_MASK:08x} cannot be read")


# ---- memory ----------------------------------------------------------------

_pages = {}


def forget(*_):
    """Drops what was read: the target has run, or memory was written."""
    _pages.clear()


for _event in (gdb.events.cont, gdb.events.exited, gdb.events.memory_changed,
               gdb.events.new_objfile):
    _event.connect(forget)


def read_run(address, size):
    """`size` bytes at `address`, read at once and not kept."""
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except gdb.error as e:
        raise BadMemory(address) from e


def read(address, size):
    """`size` bytes at `address`."""
    parts = []
    while size > 0:
        offset = address & PAGE_MASK
        base = (address - offset) & WORD_MASK
        if base not in _pages:
            _pages[base] = read_run(base, PAGE_SIZE)
        parts.append(_pages[base][offset:offset + size])
        address += len(parts[-1])
        size -= len(parts[-1])
    return b"".join(parts)


def present(start, end):
    """(address, contents) of that memory, page by page; pages that are not
    there are left out."""
    while start < end:
        stop = min((start | PAGE_MASK) + 1, end)
        try:
            yield start, read_run(start, stop - start)
        except BadMemory:
            pass
        start = stop


def word(address):
    return int.from_bytes(read(address, WORD), "little")


def words(data):
    """The 32-bit words of some memory."""
    return memoryview(data[:len(data) & -WORD]).cast("I")


def string(address, limit=256):
    """The characters at `address`, up to a NUL or `limit`."""
    text = b""
    while len(text) < limit:
        byte = read(address + len(text), 1)
        if byte == b"\0":
            break
        text += byte
    return text.decode("latin-1")


def need_target():
    if gdb.selected_inferior().connection is None:
        raise Fail("no target; `target remote STUB`, `core FILE` or "
                   "`make gdb`")


def register(name, frame=None):
    value = (frame or gdb.newest_frame()).read_register(name)
    return int(value) & WORD_MASK


def thread():
    """The number of GDB's thread: one more than that of the processor."""
    selected = gdb.selected_thread()
    return selected.num if selected else 1


# ---- the kernel's symbols --------------------------------------------------

def kernel():
    """The kernel's symbol file."""
    name = gdb.current_progspace().filename
    for objfile in gdb.objfiles():
        if objfile.filename == name:
            return objfile
    raise Fail("no kernel is loaded; `file build/slate.elf`")


@functools.lru_cache(maxsize=None)
def _symbol(objfile, name, file):
    found = None if file else objfile.lookup_global_symbol(name)
    if found is not None:
        return found
    return next((s for s in gdb.lookup_static_symbols(name)
                 if s.symtab.objfile.filename == objfile.filename
                 and s.symtab.filename.endswith(file or "")), None)


def symbol(name, file=None):
    """The kernel's variable or function; `file` names one of several static
    ones. None if there is none."""
    return _symbol(kernel(), name, file)


def variable(name, file=None):
    """The gdb.Value of a variable of the kernel."""
    found = symbol(name, file)
    if found is None:
        raise Fail(f"this kernel has no `{name}`")
    return found.value()


def address_of(name, file=None):
    """The address of a variable or function of the kernel."""
    return int(variable(name, file).address) & WORD_MASK


def integer(name, file=None):
    """An unsigned variable, or a pointer."""
    value = variable(name, file)
    return int.from_bytes(read(int(value.address), value.type.sizeof),
                          "little")


def elements(name, file):
    """The elements of an array of the kernel."""
    value = variable(name, file)
    return [value[i] for i in range(value.type.range()[1] + 1)]


@functools.lru_cache(maxsize=None)
def _ctype(objfile, name):
    found = objfile.lookup_static_symbol(name, gdb.SYMBOL_STRUCT_DOMAIN)
    if found is None:
        raise Fail(f"this kernel has no structure `{name}`")
    return found.type


def ctype(name):
    """A structure, union or enumeration of the kernel, by its tag."""
    return _ctype(kernel(), name)


def pointer(address, tag=None):
    """A gdb.Value that points to a structure of the kernel, or to void."""
    kind = ctype(tag) if tag else gdb.lookup_type("void")
    return gdb.Value(address).cast(kind.pointer())


def enumerators(tag, prefix=""):
    """{number: name in lower case, without the prefix} of an enumeration."""
    return {f.enumval: f.name.removeprefix(prefix).lower()
            for f in ctype(tag).fields()}


@functools.lru_cache(maxsize=None)
def macros():
    """{name: text} of the constants that the tree's headers define. Where #if
    chooses between several, the first."""
    found = {}
    for folder in ("kernel", "mm", "drivers"):
        for path in sorted((ROOT / folder).rglob("*.h")):
            text = path.read_text(encoding="utf-8").replace("\\\n", " ")
            for name, value in re.findall(
                    r"^#define (\w+)[ \t]+(.*?)(?:/\*.*)?$", text, re.M):
                found.setdefault(name, value.strip())
    return found


@functools.lru_cache(maxsize=None)
def constant(name):
    """An enumerator, or a macro of the tree's headers, which debug information
    does not have."""
    def expand(match):
        text = macros().get(match[0])
        return match[0] if text is None else \
            "(" + re.sub(r"\b[A-Za-z_]\w*", expand, text) + ")"
    try:
        return int(gdb.parse_and_eval(
            re.sub(r"\b[A-Za-z_]\w*", expand, name))) & WORD_MASK
    except gdb.error as e:
        raise Fail(f"this kernel has no constant `{name}`") from e


def symbol_at(address):
    """(name, offset, section) of the symbol at or below an address, or
    None."""
    text = gdb.execute(f"info symbol {address}", to_string=True)
    found = re.match(r"(\S+)(?: \+ (\d+))? in section (\S+)", text)
    if not found:
        return None
    name = found[1].split("[")[0]  # without a label in a function
    offset = int(found[2] or 0) if name == found[1] else \
        address - linker(name)
    return name, offset, found[3]


def symbol_text(address):
    """name+0x1c, or the bare address."""
    found = symbol_at(address)
    return f"{found[0]}+0x{found[1]:x}" if found else f"0x{address:08x}"


@functools.lru_cache(maxsize=None)
def linker(name):
    """The address of a symbol that the linker script defines."""
    return int(gdb.parse_and_eval(f"(unsigned long)&'{name}'")) & WORD_MASK


def _forget_symbols(event):
    linker.cache_clear()
    if event.new_objfile.filename == gdb.current_progspace().filename:
        _layouts.clear()
        constant.cache_clear()
        macros.cache_clear()


gdb.events.new_objfile.connect(_forget_symbols)


def source_line(address):
    """file:line of an address in code, or ""."""
    at = gdb.find_pc_line(address)
    return f"{relative(at.symtab.filename)}:{at.line}" if at.symtab else ""


def relative(path):
    """A path from the root of the tree on."""
    return str(path).removeprefix(f"{ROOT}/").removeprefix("./")


# ---- structures ------------------------------------------------------------

class Layout:
    """The members of a structure: {name: (offset, type)}, those of anonymous
    structures and unions included."""

    def __init__(self, kind):
        self.size, self.members = kind.sizeof, {}
        self._add(kind, 0)

    def _add(self, kind, base):
        for field in kind.fields():
            offset, inner = base + field.bitpos // 8, \
                field.type.strip_typedefs()
            if field.name:
                self.members[field.name] = offset, inner
            else:
                self._add(inner, offset)

    def offset(self, name):
        return self.members[name][0]


_layouts = {}


def layout_of(kind):
    key = kind.tag, kind.sizeof
    if kind.tag is None or key not in _layouts:
        _layouts[key] = Layout(kind)
    return _layouts[key]


def layout(tag):
    return layout_of(ctype(tag))


def _decode(kind, data, address):
    """A C value in Python: integers and pointers are integers, arrays of char
    strings, structures Records."""
    if kind.code == gdb.TYPE_CODE_ARRAY:
        element = kind.target().strip_typedefs()
        if element.sizeof == 1 and str(element.unqualified()) == "char":
            return data.split(b"\0", 1)[0].decode("latin-1")
        return [_decode(element, data[i:i + element.sizeof], address + i)
                for i in range(0, kind.sizeof, element.sizeof)]
    if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        return Record(layout_of(kind), data, address)
    return int.from_bytes(data, "little",
                          signed=kind.code == gdb.TYPE_CODE_INT
                          and kind.is_signed)


class Record:
    """A C structure as it was when it was read; its members are attributes.
    `address` says where it is."""

    def __init__(self, what, data, address):
        self.layout, self.data, self.address = what, data, address

    def __getattr__(self, name):
        try:
            offset, kind = self.layout.members[name]
        except KeyError:
            raise AttributeError(name) from None
        value = self.__dict__[name] = _decode(
            kind, self.data[offset:offset + kind.sizeof],
            self.address + offset)
        return value

    def where(self, name):
        """The address of a member."""
        return self.address + self.layout.offset(name)


def record(tag, address):
    """The structure at an address."""
    what, address = layout(tag), address & WORD_MASK
    return Record(what, read(address, what.size), address)


def record_of(name, file=None):
    """The structure in a variable of the kernel, as a Record."""
    value = variable(name, file)
    what = layout_of(value.type.strip_typedefs())
    address = int(value.address) & WORD_MASK
    return Record(what, read(address, what.size), address)


# ---- lists -----------------------------------------------------------------

def links(at, end):
    """The addresses of a list's links from `at` on, up to `end`, or to where
    the list is broken: comes back to itself, or cannot be read."""
    seen = set()
    try:
        while at != end and at not in seen:
            following = word(at)
            seen.add(at)
            yield at
            at = following
    except BadMemory:
        pass


def members(head, tag, link):
    """The structures on the struct list at `head`, linked by member `link`."""
    at = layout(tag).offset(link)
    try:
        for address in links(word(head), head):
            yield record(tag, address - at)
    except BadMemory:
        pass
