"""slate symbols: the symbols of programs.

All programs are linked to the same addresses, so those of one at a time can be
loaded. Files with debug information are in user/bin and user/sbin beside the
kernel; what the archive has, and the machine runs, is the same without it.

`slate symbols on` does it by itself: at each exec, by a breakpoint behind the
point of no return, and where the target stops in another program.
"""

import contextlib
import re
from pathlib import Path

import gdb

import common
import objects_model as model

_loaded = None  # the path of the program whose symbols GDB has


def folders():
    """Where programs with debug information are."""
    user = Path(common.kernel().filename).parent / "user"
    return user / "bin", user / "sbin"


def file_of(name):
    """The file of a program by its name, of which a task keeps the first 15
    letters; None if there is none, or one could mean several."""
    if not re.fullmatch(r"[\w.+-]+", name):
        return None
    for folder in folders():
        if (folder / name).is_file():
            return folder / name
    most = common.macros("kernel/task/task.h")["TASK_NAME_MAX"]
    found = [path for folder in folders()
             for path in folder.glob(name + "*")] if len(name) == most else []
    return found[0] if len(found) == 1 else None


def shown(path):
    """A path as it is printed: from the root of the tree, if it is there."""
    return str(path).removeprefix(f"{common.ROOT}/")


def _is_there(path):
    return any(o.filename and Path(o.filename) == Path(path)
               for o in gdb.objfiles())


def unload():
    """Forgets the symbols of the program."""
    global _loaded
    if _loaded is not None and _is_there(_loaded):
        gdb.execute(f'remove-symbol-file "{_loaded}"', to_string=True)
    _loaded = None


def load(path):
    """Makes GDB know the program in `path`, and no other."""
    global _loaded
    if _loaded == path and _is_there(path):
        return
    unload()
    gdb.execute(f'add-symbol-file "{path}"', to_string=True)
    _loaded = path


@contextlib.contextmanager
def loaded_for(task):
    """Within it the symbols of the task's program are loaded: the path, or
    None if there is no such file."""
    before, wanted = _loaded, file_of(task.task_name)
    if wanted is None or wanted == before:
        yield wanted
        return
    load(wanted)
    try:
        yield wanted
    finally:
        unload()
        if before is not None:
            load(before)


def function_start(address):
    """Where the function of a program that contains an address begins, if its
    symbols are loaded."""
    text = gdb.execute(f"info symbol 0x{address:x}", to_string=True)
    match = re.match(r"\S+(?: \+ (\d+))? in section", text)
    return address - int(match.group(1) or 0) if match else None


def describe(address, inside):
    """NAME () at FILE:LINE, of an address in a program and one that is
    certainly within the same call."""
    text = gdb.execute(f"info symbol 0x{inside:x}", to_string=True)
    match = re.match(r"(\S+)(?: \+ \d+)? in section", text)
    if not match:
        return "?? ()"
    line = common.source_line(inside)
    return f"{match.group(1)} ()" + (f" at {line}" if line else "")


# ---- by itself -------------------------------------------------------------

def follow(*_):
    """Loads the symbols of the program that runs, if it has a file."""
    try:
        task = model.current()
        path = file_of(task.task_name) if task and task.task_space else None
        if path is not None:
            load(path)
    except (common.BadMemory, common.Fail, gdb.error):
        pass  # the target is not where its kernel works


class Hook(gdb.Breakpoint):
    """Where the kernel takes the name of a program that it has loaded, for a
    task that becomes it or begins with it. Never stops."""

    def __init__(self):
        super().__init__("exec_name", gdb.BP_BREAKPOINT, internal=True)
        self.silent = True

    def stop(self):
        common.forget()
        try:
            path = gdb.newest_frame().read_var("path")
            name = common.string(int(path), 1024).rstrip("/")
            file = file_of(name.rsplit("/", 1)[-1])
            if file is not None:
                load(file)
        except (common.BadMemory, common.Fail, gdb.error, ValueError):
            pass
        return False


_hooks = []


def switch_on():
    """GDB shall also take breakpoints in programs that it does not know yet,
    without a question."""
    gdb.execute("set breakpoint pending on")
    if not _hooks:
        _hooks.append(Hook())
        gdb.events.stop.connect(follow)
    follow()


def switch_off():
    for hook in _hooks:
        hook.delete()
    if _hooks:
        gdb.events.stop.disconnect(follow)
    _hooks.clear()


class Symbols(common.Command):
    name = "slate symbols"
    usage = "[on|off|PID|PROGRAM]"
    summary = "The symbols of programs, by hand or at every exec"
    details = """
All programs lie at the same addresses, so GDB knows one at a time. PID or
PROGRAM loads that one's symbols, in place of those before; on does it by
itself whenever a program begins, or the target stops in one; off ends that
and forgets them. Without a word: what is loaded."""
    example = "slate symbols ping"
    most = 1
    wants = "wants one word: on, off, a pid or a program"
    target = False

    def run(self, args):
        word = args.word()
        if word == "on":
            common.need_target()
            if gdb.selected_inferior().connection.type == "core":
                raise common.Fail("nothing is executed in a core; load by "
                                  "hand: slate symbols PID")
            switch_on()
        elif word == "off":
            switch_off()
            unload()
        elif word is not None:
            self.by_hand(word)
        print(f"symbols of {shown(_loaded) if _loaded else 'no program'}"
              + (", replaced at every exec" if _hooks else ""))

    @staticmethod
    def by_hand(word):
        name = word
        if word.isdigit():
            common.need_target()
            name = model.parse_task(word).task_name
        path = file_of(name)
        if path is None:
            raise common.Fail(f"there is no program {name} in "
                              f"{shown(folders()[0])}")
        load(path)


Symbols()
