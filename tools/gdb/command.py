"""The parts of all commands: addresses as arguments, errors of one line, and
the class Command."""

import contextlib
import inspect
import re

import gdb

import target
from target import WORD_MASK, BadMemory, Fail

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


# ---- commands --------------------------------------------------------------

@contextlib.contextmanager
def one_line(name):
    """Within it an error, or ^C, becomes one line. Drops cached memory first:
    GDB reports no event when the machine continues because a breakpoint's
    condition is false."""
    target.forget()
    try:
        yield
    except KeyboardInterrupt as e:
        raise gdb.GdbError(f"{name}: interrupted") from e
    except (Fail, gdb.MemoryError, BadMemory) as e:
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


class Slate(gdb.Command):
    """Reports of the kernel's own shell, and GDB's own commands.
Usage: slate COMMAND
`slate help` lists the reports, `slate` alone GDB's commands; `help slate
COMMAND` explains one of those."""

    report = None  # slate_report.py has it

    def __init__(self):
        super().__init__("slate", gdb.COMMAND_DATA, prefix=True)

    def invoke(self, argument, from_tty):
        if argument:
            with one_line("slate"):
                self.report(argument)
            return
        print(f"slate COMMAND ...\n        {self.report.__doc__}")
        for command in sorted(Command.instances, key=lambda c: c.usage):
            print(f"{command.usage}\n        {command.summary}")


slate = Slate()


class Command(gdb.Command):
    """A command. Its docstring has the usage, then a summary in one line, then
    more, and last an example, if the name alone is not one:

        slate bt [PID]
        The callers of any task, in the kernel and in its program.
        Example: slate bt 2

    It has one argument at most, which may be any expression with blanks in it.
    run(argument) executes the command, with None for no argument; a Fail that
    it raises is printed as one line. Defining the class makes the command.
    """

    instances = []

    def __init_subclass__(cls):
        cls()

    def __init__(self):
        self.usage, summary, *more = inspect.cleandoc(
            type(self).__doc__).split("\n")
        words = self.usage.split()
        self.name, self.summary = " ".join(words[:2]), summary.rstrip(".")
        self.most = len(words) - 2  # arguments
        self.least = 0 if "[" in self.usage else self.most
        if not more or not more[-1].startswith("Example: "):
            more.append(f"Example: {self.name}")
        self.__doc__ = "\n".join([summary, f"Usage: {self.usage}", *more])
        super().__init__(self.name, gdb.COMMAND_DATA)
        Command.instances.append(self)

    def invoke(self, argument, from_tty):
        argument = argument.strip() or None
        with one_line(self.name):
            if not self.least <= (argument is not None) <= self.most:
                raise Fail(f"usage: {self.usage}")
            target.need_target()
            self.run(argument)


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
