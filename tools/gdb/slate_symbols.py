"""slate symbols: the symbols of programs.

All programs are linked to the same addresses, so those of one at a time can be
loaded. Files with debug information are in user/bin and user/sbin beside the
kernel. `slate symbols on` loads them at each exec, by a breakpoint after the
point of no return, and where the target stops in another program.
"""

import contextlib
import re
from pathlib import Path

import gdb

import system
import target
from command import Command, evaluate
from target import UNREADABLE, Fail, relative

_loaded = None  # the path of the program whose symbols GDB has
_hook = None    # the breakpoint, while the symbols follow exec


def folders():
    """The folders with programs that have debug information."""
    user = Path(target.kernel().filename).parent / "user"
    return user / "bin", user / "sbin"


def file_of(name):
    """The file of a program by its name, of which a task keeps the first 15
    letters; None if there is none, or one could mean several."""
    if not re.fullmatch(r"[\w.+-]+", name):
        return None
    exact = [f / name for f in folders() if (f / name).is_file()]
    found = exact or [
        path for folder in folders() for path in folder.glob(name + "*")
        if len(name) == target.constant("TASK_NAME_MAX")]
    return found[0] if exact or len(found) == 1 else None


def load(path):
    """Makes GDB know only the program in `path`, or no program for None."""
    global _loaded
    there = any(o.filename and Path(o.filename) == _loaded
                for o in gdb.objfiles())
    if path == _loaded and there:
        return
    if there:
        gdb.execute(f'remove-symbol-file "{_loaded}"', to_string=True)
    if path:
        gdb.execute(f'add-symbol-file "{path}"', to_string=True)
    _loaded = path


@contextlib.contextmanager
def loaded_for(task):
    """Within it the symbols of the task's program are loaded: the path, or
    None if there is no such file."""
    before, wanted = _loaded, file_of(task.task_name)
    load(wanted or before)
    try:
        yield wanted
    finally:
        load(before)


def follow(_event=None):
    """Loads the symbols of the program that runs, if it has a file."""
    try:
        task = system.current()
        if task and task.task_space:
            load(file_of(task.task_name) or _loaded)
    except (Fail, gdb.error, *UNREADABLE):
        pass  # the target is not where its kernel works


class Hook(gdb.Breakpoint):
    """A breakpoint at the place where the kernel sets the name of a program
    that it has loaded. Never stops."""

    def __init__(self):
        super().__init__("exec_name", gdb.BP_BREAKPOINT, internal=True)
        self.silent = True

    def stop(self):
        target.forget()
        try:
            path = gdb.newest_frame().read_var("path")
            name = target.string(int(path), 1024).rstrip("/")
            load(file_of(name.rsplit("/", 1)[-1]) or _loaded)
        except (Fail, gdb.error, ValueError, *UNREADABLE):
            pass
        return False


def switch(on):
    global _hook
    if on and _hook is None:
        # GDB takes breakpoints in programs that it does not know yet.
        gdb.execute("set breakpoint pending on")
        _hook = Hook()
        gdb.events.stop.connect(follow)
    elif not on and _hook is not None:
        _hook.delete()
        _hook = None
        gdb.events.stop.disconnect(follow)


class Symbols(Command):
    """slate symbols [on|off|PID|PROGRAM]
    The symbols of programs, by hand or at every exec.
    GDB knows one program at a time. PID or PROGRAM loads that one's symbols; on
    does so whenever a program begins, or the target stops in one; off ends
    that and removes them. Without an argument prints the program loaded.
    Example: slate symbols ping"""

    offline = True

    def run(self, args):
        word = args.word()
        if word == "on":
            target.need_target()
            if gdb.selected_inferior().connection.type == "core":
                raise Fail("nothing is executed in a core; load by hand: "
                           "slate symbols PID")
            switch(True)
            follow()
        elif word == "off":
            switch(False)
            load(None)
        elif word is not None:
            self.by_hand(word)
        print(f"symbols of {relative(_loaded) if _loaded else 'no program'}"
              + (", replaced at every exec" if _hook else ""))

    @staticmethod
    def by_hand(word):
        path = file_of(word)
        if path is None and evaluate(word) is not None:
            target.need_target()
            path = file_of(system.parse_task(word).task_name)
        if path is None:
            raise Fail(f"there is no program {word} in "
                       f"{relative(folders()[0])}; the kernel's symbols are "
                       "always known: `info symbol`, `info address`")
        load(path)
