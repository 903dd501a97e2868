"""The symbols of programs.

All programs are linked to the same addresses, so GDB should have the symbols of
one at a time. Files with debug information are in user/bin and user/sbin beside
the kernel; `add-symbol-file` loads one by hand.
"""

import contextlib
import re
from pathlib import Path

import gdb

import target


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


def loaded():
    """The programs that GDB has the symbols of."""
    return [path for path in (Path(o.filename or "") for o in gdb.objfiles())
            if path.parent in folders()]


def load(paths):
    """Loads the symbols of these programs, and unloads all others."""
    before = loaded()
    for path in before:
        if path not in paths:
            gdb.execute(f'remove-symbol-file "{path}"', to_string=True)
    for path in paths:
        if path not in before:
            gdb.execute(f'add-symbol-file "{path}"', to_string=True)


def load_for(task):
    """Loads the symbols of the task's program and of no other. Returns its
    path; None, with no symbols, if there is no such file."""
    path = file_of(task.task_name)
    load([path] if path else [])
    return path


@contextlib.contextmanager
def loaded_for(task):
    """Within it GDB knows what load_for() loads."""
    before = loaded()
    try:
        yield load_for(task)
    finally:
        load(before)
