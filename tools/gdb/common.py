"""What all of Slate's GDB commands stand on.

    the target  memory, symbols, structures and walks: tools/gdb/target.py,
                whose names are to be had here
    numbers     in the formats of the kernel shell (kernel/shell/cmd_kmem.c)
    arguments   addresses, counts
    Command     a command with usage, help, example, options and errors
"""

import json
import re

import gdb

from target import (  # noqa: F401
    BadMemory, Broken, Fail, Layout, MIB4, PAGE_MASK, PAGE_SHIFT, PAGE_SIZE,
    ROOT, Record, WORD, WORD_MASK, address_of, container, ctype, enumerators,
    forget, has_type, has_variable, integer, kernel, layout, linker, macros,
    need_target, read, read_run, record, record_of, source_line, string,
    symbol, symbol_format, symbol_lookup, symbol_object, text_macro, variable,
    walk_chain, walk_list, word, write_word)


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
            found = symbol(text)
            if found is not None and \
                    found.addr_class != gdb.SYMBOL_LOC_TYPEDEF:
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
