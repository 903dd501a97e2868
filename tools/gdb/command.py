"""The parts of all commands: numbers as the kernel shell prints them, tables,
addresses as arguments, and the class Command."""

import contextlib
import functools
import getopt
import inspect
import re

import gdb
import gdb.printing

import target
from target import UNREADABLE, WORD_MASK, Fail
from tools.measure import table
from tools.measure.table import percent

# ---- numbers, as the kernel shell prints them ------------------------------

class Hex(int):
    """An address."""

    def __str__(self):
        return f"0x{int(self):08x}"


def count(n, width):
    """`n` in at most `width` (4 or more) characters: 1234567, 123k, 1.2M."""
    if len(str(n)) <= width:
        return str(n)
    if n < 0:
        return "-" + count(-n, width - 1)
    unit = 0
    while n >= 1000000:
        n //= 1000
        unit += 1
    text = f"{n // 1000}.{n % 1000 // 100}{'kMGTPE'[unit]}"
    return text if len(text) <= width else f"{n // 1000}{'kMGTPE'[unit]}"


def waste(part, whole):
    """How much of `whole` is not `part`, in per cent."""
    return percent(max(whole - part, 0), whole)


def seconds(us):
    return f"{us // 1000000}.{us % 1000000:06}"


def plural(n, what):
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def clock_us():
    """The kernel's clock: the last value that the kernel asked for, or the last
    tick; a stopped target does not show its time-stamp counter."""
    now = target.variable("timer_now")
    ms = int(now["now_high"]) << 32 | int(now["now_low"])
    return max(ms * 1000, int(gdb.parse_and_eval("timer_us::last")))


# ---- tables ----------------------------------------------------------------

class Table:
    """Rows in columns. `spec` is "NAME:WIDTH …", a negative width for a column
    aligned to the left; the last column may have any length. `margin` columns
    before the first are for the marks of a row: `!` marks a row that
    contradicts itself."""

    def __init__(self, spec, margin=0):
        self.columns = table.columns_of(spec)
        self.margin, self.rows = margin, 0
        head = self._line([n for n, _ in self.columns])
        print((" " * margin + head).rstrip())

    def _line(self, cells):
        texts = [self._cell(c, w) for c, (_, w) in zip(cells, self.columns)]
        return table.line(texts, self.columns, self.margin)

    @staticmethod
    def _cell(cell, width):
        if type(cell) is int and width > 3:
            cell = count(cell, width)
        return "-" if cell is None else str(cell)

    def row(self, *cells, mark=""):
        self.rows += 1
        print((f"{mark:<{self.margin}}" + self._line(cells)).rstrip())

    def each(self, items):
        """The items that can be read; prints a row for each of the others."""
        for item in items:
            if isinstance(item, UNREADABLE):
                print(f"! {item}")
            else:
                yield item


def merged(runs):
    """(first, length, …) of runs; equal neighbours are joined."""
    found = []
    for first, length, *rest in runs:
        if found and found[-1][2:] == rest and sum(found[-1][:2]) == first:
            found[-1][1] += length
        else:
            found.append([first, length, *rest])
    return found


# ---- arguments -------------------------------------------------------------

def evaluate(text):
    """The number that an expression means: the value of a pointer or integer,
    the address of anything larger and of a function. None if the text is no
    expression."""
    try:
        value = gdb.parse_and_eval(text)
        if value.type.strip_typedefs().code in (
                gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_ARRAY,
                gdb.TYPE_CODE_FUNC):
            value = value.address
        return int(value) & WORD_MASK
    except (gdb.error, ValueError, RuntimeError):
        return None


def parse_address(text):
    """An address: any expression, or hexadecimal digits as the kernel prints
    them."""
    value = evaluate(text)
    if value is None and re.fullmatch(r"[0-9a-fA-F]{1,8}", text):
        value = int(text, 16)
    if value is None:
        raise Fail(f"'{text}' is no address; write one as 0xc0123456, a symbol "
                   "or an expression")
    return value


def parse_number(text, least, what):
    """A number of at least `least`, given by any expression."""
    value = evaluate(text)
    if value is None or value < least or value > WORD_MASK >> 1:
        raise Fail(f"{what} wants a number from {least} on, not '{text}'")
    return value


class Arguments:
    """The arguments of a command: `words`, and options by letter."""

    def __init__(self, words, options):
        self.words = words
        self.options = {name[1:]: value for name, value in options}
        self.get = self.options.get

    def __contains__(self, letter):
        return letter in self.options

    def number(self, letter, default, least=0):
        return parse_number(self.get(letter), least, f"-{letter}") \
            if letter in self else default

    def word(self, i=0):
        return self.words[i] if i < len(self.words) else None


@contextlib.contextmanager
def one_line(name):
    """Within it an error becomes one line. Drops cached memory first: GDB
    reports no event when the machine continues because a breakpoint's condition
    is false."""
    target.forget()
    try:
        yield
    except (Fail, gdb.MemoryError, *UNREADABLE) as e:
        raise gdb.GdbError(f"{name}: {e}") from e


@contextlib.contextmanager
def alone():
    """Within it the user's breakpoints are off: only a command's own stop."""
    others = [b for b in gdb.breakpoints() if b.enabled]
    for stop in others:
        stop.enabled = False
    try:
        yield
    finally:
        for stop in others:
            if stop.is_valid():
                stop.enabled = True


class Command(gdb.Command):
    """A command. Its docstring has the usage, with options in brackets of
    their own, then a summary in one line, then more, and last an example, if
    the name alone is not one:

        slab slabs [-v] [NAME]
        A picture of a cache's slabs, a cell per object.
        Example: slab slabs kmem_alloc_224

    A single word that is an ADDR or a PID may be any expression with blanks in
    it. run(args) executes the command; a Fail that it raises is printed as one
    line. Defining the class makes the command.
    """

    offline = False  # it needs no target
    instances = []

    def __init_subclass__(cls):
        cls()

    def __init__(self):
        self.usage, summary, *more = inspect.cleandoc(
            type(self).__doc__).split("\n")
        self.name = " ".join(self.usage.split()[:2])
        self.summary = summary.rstrip(".")
        if not more or not more[-1].startswith("Example: "):
            more.append(f"Example: {self.name}")
        self.__doc__ = "\n".join([summary, f"Usage: {self.usage}", *more])
        found = re.findall(r" \[-(\w)( \w+)?\]", self.usage)
        self.options = "".join(c + ":" * bool(value) for c, value in found)
        words = re.sub(r" \[-[^]]*\]", "", self.usage).split()[2:]
        plain = re.sub(r"\[.*\]", "", " ".join(words)).split()
        self.least, self.most = len(plain), len(words)
        self.joined = self.most == 1 and not self.options and \
            re.search("ADDR|PID", words[0]) is not None
        super().__init__(self.name, gdb.COMMAND_DATA)
        Command.instances.append(self)

    @property
    def misuse(self):
        return Fail(f"usage: {self.usage}")

    def parse(self, text):
        # A word ends at a blank outside quotes and parentheses.
        argv = [re.sub(r"""^(["'])(.*)\1$""", r"\2", word) for word in
                re.findall(r"""(?:"[^"]*"|'[^']*'|"""
                           r"""\((?:[^()]|\([^()]*\))*\)|\S)+""", text)]
        if self.joined and argv:
            argv = [text.strip()]
        try:
            found, words = getopt.gnu_getopt(argv, self.options)
        except getopt.GetoptError as e:
            raise Fail(f"{e.msg}; usage: {self.usage}") from e
        if not self.least <= len(words) <= self.most:
            raise self.misuse
        return Arguments(words, found)

    def invoke(self, argument, from_tty):
        try:
            with one_line(self.name):
                args = self.parse(argument)
                if not self.offline:
                    target.need_target()
                self.run(args)
        except KeyboardInterrupt:
            print("(interrupted)")


class Group(gdb.Command):
    """A prefix of commands. Typed alone, it lists them; otherwise(line) gets
    a line that begins with none of them."""

    named = {}
    otherwise = None

    def __init__(self, name, about):
        self.name = name
        self.named[name] = self
        self.__doc__ = f"{about}.\nUsage: {name} COMMAND\n`{name}` alone " \
            f"lists the commands, `help {name} COMMAND` explains one."
        super().__init__(name, gdb.COMMAND_DATA, prefix=True)

    def invoke(self, argument, from_tty):
        if argument and self.otherwise:
            with one_line(self.name):
                self.otherwise(argument)
            return
        if argument:
            raise gdb.GdbError(f"{self.name}: there is no "
                               f"'{argument.split()[0]}'; `{self.name}` lists "
                               "the commands")
        if self.otherwise:
            print(f"{self.name} COMMAND ...\n        {self.otherwise.__doc__}")
        for command in sorted(Command.instances, key=lambda c: c.name):
            if command.name.startswith(f"{self.name} "):
                print(f"{command.usage}\n        {command.summary}")


def function(value):
    """Makes a Python function one for GDB's expressions: $name()."""
    class Function(gdb.Function):
        __doc__ = value.__doc__

        def invoke(self, *args):
            with one_line(f"${value.__name__}"):
                target.need_target()
                return value(*args)

    Function(value.__name__)
    return value


class Printer:
    """How GDB prints a structure: a line about it, by about(address), and then
    its `members`."""

    def __init__(self, value, about, members):
        self.value, self.about, self.members = value, about, members

    def to_string(self):
        if not self.value.address:
            return "not in memory"
        try:
            return self.about(int(self.value.address) & WORD_MASK)
        except (Fail, gdb.error, *UNREADABLE) as e:
            return f"! {e}"

    def children(self):
        return _members(self.value) if self.members else ()


def _members(value):
    """All members, those of anonymous structures and unions included."""
    for field in value.type.fields():
        if field.name:
            yield field.name, value[field]
        else:
            yield from _members(value[field])


def register_printers(collection, tags):
    """Printers for {tag: about}. A list, which is in most structures, is
    printed as one line."""
    found = gdb.printing.RegexpCollectionPrettyPrinter(collection)
    for tag, about in tags.items():
        found.add_printer(tag, f"^{tag}$", functools.partial(
            Printer, about=about, members=tag != "list"))
    gdb.printing.register_pretty_printer(None, found, replace=True)
