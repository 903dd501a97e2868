"""What all of Slate's GDB commands stand on.

    memory      reads of the target, by page and kept while it stands still;
                what cannot be read raises BadMemory, so that a command can
                mark the row with `!` and go on
    structures  Record: a C structure read as a whole, its members by name,
                laid out as the kernel's debug information says
    symbols     the kernel's variables, types, macros and functions; those of
                programs may be loaded too and are never meant
    walks       over lists that may be broken: bounded, no circle holds them
    numbers     in the formats of the kernel shell (kernel/shell/cmd_kmem.c)
    Command     a command with usage, help, example, options and errors

Nothing here calls a function in the target or writes to it, so it all works on
a live stub, in a replay and on a memory dump, wherever the kernel stands.
"""

import bisect
import functools
import json
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


def _symbol(name, file=None):
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
    found = _symbol(name, file)
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
    return _symbol(name, file) is not None


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
    debug information does not have them. Where #if gives several, the first,
    which is the kernel's."""
    known = {"PAGE_SIZE": PAGE_SIZE, "PAGE_MASK": PAGE_MASK,
             "PAGE_SHIFT": PAGE_SHIFT}
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


def walk_list(head, limit=1 << 20):
    """The addresses of the links of a struct list whose head is at `head`, in
    order. Raises Broken at a circle, at a link that is no memory, and beyond
    `limit`."""
    seen = set()
    previous, link = head, word(head)
    while link != head:
        if link in seen:
            raise Broken(f"the list comes back to 0x{link:08x} and not to its "
                         "head", previous)
        if len(seen) == limit:
            raise Broken(f"the list is longer than {limit}", previous)
        seen.add(link)
        try:
            following = word(link)
        except BadMemory as e:
            raise Broken(f"the list leads to 0x{link:08x}, which cannot be "
                         "read", previous) from e
        yield link
        previous, link = link, following


def walk_chain(first, follow, limit=1 << 20):
    """The addresses of a chain that ends with 0: `follow(address)` gives the
    next one. Raises Broken as above."""
    seen = set()
    previous, at = 0, first
    while at != 0:
        if at in seen:
            raise Broken(f"the chain comes back to 0x{at:08x}", previous)
        if len(seen) == limit:
            raise Broken(f"the chain is longer than {limit}", previous)
        seen.add(at)
        try:
            following = follow(at)
        except BadMemory as e:
            raise Broken(f"the chain leads to 0x{at:08x}, which cannot be "
                         "read", previous) from e
        yield at
        previous, at = at, following


# ---- numbers, as the kernel shell prints them ------------------------------

def count(n, width):
    """`n` in at most `width` (4 or more) characters: 1234567, 123k, 1.2M."""
    if len(str(n)) <= width:
        return str(n)
    unit = 0
    while n >= 1000000:
        n //= 1000
        unit += 1
    text = f"{n // 1000}.{n % 1000 // 100}{'kMGTPE'[unit]}"
    return text if len(text) <= width else f"{n // 1000}{'kMGTPE'[unit]}"


def waste(part, whole):
    """How much of `whole` is not `part`, in thousandths."""
    if whole == 0 or part >= whole:
        return 0
    return ((whole - part) * 1000 + whole // 2) // whole


def percent(permille):
    return f"{permille // 10}.{permille % 10}"


def age(ms):
    """A span of milliseconds in at most 6 characters."""
    s = ms // 1000
    if ms < 1000:
        return f"{ms}ms"
    if s < 600:
        return f"{s}.{ms % 1000 // 100}s"
    if s < 100 * 60:
        return f"{s // 60}m"
    if s < 100 * 3600:
        return f"{s // 3600}h"
    return f"{s // 86400}d"


def plural(n, what):
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def clock_ms():
    """The kernel's clock, in milliseconds."""
    return int(variable("now_ms", "pit.c"))


def clock_us():
    """The same in microseconds: the last that the kernel asked for, or the
    last step; a stopped target does not tell its time-stamp counter."""
    now = clock_ms() * 1000
    try:
        return max(now, int(gdb.parse_and_eval("timer_us::last")))
    except gdb.error:
        return now


def json_line(value):
    """One line of JSON as the shell writes it."""
    print(json.dumps(value, separators=(",", ":"), ensure_ascii=True))


class Table:
    """Columns of a table: ("CACHE", -17) is 17 wide and to the left. The last
    column may be of any length."""

    def __init__(self, *columns):
        self.columns = columns

    def _line(self, cells):
        return " ".join(f"{c:<{-w}}" if w < 0 else f"{c:>{w}}"
                        for c, (_, w) in zip(cells, self.columns)).rstrip()

    def head(self):
        print(self._line([name for name, _ in self.columns]))

    def row(self, *cells):
        print(self._line([str(c) for c in cells]))


# ---- arguments -------------------------------------------------------------

def _local(name):
    """A variable of the selected frame, or None."""
    try:
        frame = gdb.selected_frame()
        value = frame.read_var(name)
        symbol = frame.function()
        block = frame.block()
    except (gdb.error, ValueError, RuntimeError):
        return None
    while block is not None and not block.is_global and not block.is_static:
        if any(s.name == name for s in block):
            return value if symbol is not None else None
        block = block.superblock
    return None


def _number(value):
    """The address that a value stands for: pointers and integers are what
    they say, anything larger and functions are where they are."""
    kind = value.type.strip_typedefs()
    if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION,
                     gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_FUNC):
        value = value.address
    return int(value) & WORD_MASK


def parse_address(text):
    """An address: a number; the name of a variable of the selected frame (its
    value); the name of a function or variable of the kernel (its address, as
    in the shell); any other expression (its value); hexadecimal digits."""
    try:
        if re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", text):
            return int(text, 16 if text[1:2] in ("x", "X") else 10) & WORD_MASK
        if re.fullmatch(r"[A-Za-z_]\w*", text):
            value = _local(text)
            if value is not None:
                return _number(value)
            found = _symbol(text)
            if found is not None and not found.type.code == \
                    gdb.TYPE_CODE_TYPEDEF:
                return int(found.value().address) & WORD_MASK
        return _number(gdb.parse_and_eval(text))
    except (gdb.error, ValueError) as e:
        if re.fullmatch(r"[0-9a-fA-F]{1,8}", text):
            return int(text, 16)
        raise Fail(f"'{text}' is no address ({str(e).rstrip('.')}); write one "
                   "as 0xc0123456, a symbol or an expression") from e


def parse_count(text, what):
    """A number of things, from an option."""
    if not re.fullmatch(r"\d+", text or ""):
        raise Fail(f"{what} wants a number after it, not '{text}'")
    return int(text)


class Arguments:
    """What stood behind a command: `words`, and options by letter: True, or
    their value."""

    def __init__(self, words, options):
        self.words = words
        self.options = options

    def __contains__(self, letter):
        return letter in self.options

    def get(self, letter, default=None):
        return self.options.get(letter, default)

    def number(self, letter, default):
        if letter not in self.options:
            return default
        return parse_count(self.options[letter], f"-{letter}")

    def word(self, i=0):
        return self.words[i] if i < len(self.words) else None


class Command(gdb.Command):
    """A command, made of class attributes:

    name      with its prefix: "slab cache"
    usage     what follows the name: "[-j] NAME"
    summary   a line for the list of commands
    details   more lines of help
    example   a command line that works; tests run it
    options   letters without a value, `valued` those with one
    least     how many words it wants, and `most`
    wants     says so in an error
    joined    what follows its options is one expression, blanks and all

    run(args) does it. What it raises as Fail is an error of one line.
    """

    name = usage = summary = details = example = ""
    options = valued = ""
    least = most = 0
    wants = "takes no further words"
    joined = False
    target = True
    instances = []

    def __init__(self):
        line = f"{self.name} {self.usage}".strip()
        parts = [f"{self.summary}.", f"Usage: {line}", self.details.strip("\n"),
                 f"Example: {self.example}"]
        self.__doc__ = "\n".join(part for part in parts if part)
        super().__init__(self.name, gdb.COMMAND_DATA)
        Command.instances.append(self)

    def run(self, args):
        raise NotImplementedError

    # -- arguments

    def _letters(self):
        letters = [f"-{c}" for c in self.options] + \
                  [f"-{c} VALUE" for c in self.valued]
        return " ".join(letters) or "none"

    def _option(self, letters, rest, found):
        """The letters of one word; the value of one may be the rest of it, or
        the next word."""
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in self.options:
                found[letter] = True
            elif letter in self.valued:
                if not letters and not rest:
                    raise Fail(f"-{letter} wants a value after it")
                found[letter] = letters or rest.pop(0)
                return
            else:
                raise Fail(f"'-{letter}' is no option; options: "
                           f"{self._letters()}")

    def expression(self, text):
        """Options, then an expression as it stands, quotes and all."""
        found = {}
        while (item := re.match(r"\s*(-[A-Za-z]\S*)(?:\s+|$)", text)):
            text = text[item.end():]
            rest = gdb.string_to_argv(text)[:1]
            wanted = len(rest)
            self._option(item[1][1:], rest, found)
            if len(rest) < wanted:
                text = re.sub(r"^\s*\S+\s*", "", text)
        words = [text.strip()] if text.strip() else []
        if len(words) < self.least:
            raise Fail(self.wants)
        return Arguments(words, found)

    def parse(self, text):
        if self.joined:
            return self.expression(text)
        rest = gdb.string_to_argv(text)
        words, found, looking = [], {}, True
        while rest:
            item = rest.pop(0)
            if looking and item == "--":
                looking = False
            elif looking and re.fullmatch(r"-[A-Za-z].*", item):
                self._option(item[1:], rest, found)
            else:
                words.append(item)
        if not self.least <= len(words) <= self.most:
            raise Fail(self.wants)
        return Arguments(words, found)

    def invoke(self, argument, from_tty):
        forget()
        try:
            args = self.parse(argument)
            if self.target:
                need_target()
            self.run(args)
        except (Fail, BadMemory, Broken) as e:
            raise gdb.GdbError(f"{self.name}: {e}") from e
        except gdb.MemoryError as e:
            raise gdb.GdbError(f"{self.name}: {e}") from e
        except KeyboardInterrupt:
            print("(interrupted)")


def join_addresses(items):
    """Hexadecimal addresses in a row."""
    return " ".join(f"0x{i:08x}" for i in items)
