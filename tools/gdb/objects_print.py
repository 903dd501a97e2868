"""How GDB prints Slate's structures, and functions for its expressions.

`p *$task(3)` prints a line about the task, then its members as always; so do
inodes, pipes, ports, open files and address spaces.
"""

import gdb
import gdb.printing

import common
import objects_model as model

# ---- pretty-printers -------------------------------------------------------


def about_task(address):
    task = model.task_at(address)
    state = model.name_of(task.task_state, model.task_states())
    waits = model.waits_for(task)
    return f"{model.title(task)} {state}" + \
        (f", waits for: {waits}" if waits else "")


def about_inode(address):
    inode = model.inode_at(address)
    kind = model.file_types().get(inode.inode_type, "new")
    return (f"{model.fs_name(inode)} {kind} {inode.inode_number}, "
            f"{common.plural(inode.inode_size, 'byte')}, "
            f"{common.plural(inode.inode_refs, 'reference')}")


def about_pipe(address):
    pipe = common.record("struct pipe", address, "pipe_init")
    return (f"{common.plural(pipe.pipe_bytes, 'byte')} in it, "
            f"{common.plural(pipe.pipe_readers, 'reader')}, "
            f"{common.plural(pipe.pipe_writers, 'writer')}")


def about_port(address):
    port = model.port_at(address)
    return f"port {port.port_number}, {port.port_calls} calls" + \
        (", dead" if port.port_holders == 0 else "")


def about_file(address):
    f = model.file_at(address)
    numbers = common.macros("kernel/abi/types.h")
    access = {0: "r", 1: "w", 2: "rw"}.get(f.file_flags
                                           & numbers["O_ACCMODE"], "?")
    if not f.file_inode:
        return f"{access}, of the pipe 0x{f.file_data:08x}"
    return f"{access} at {f.file_offset}, {about_inode(f.file_inode)}"


def about_space(address):
    space = model.space_at(address)
    return (f"{common.plural(space.space_pages, 'page')}, "
            f"{common.plural(space.space_tables, 'page table')}, break "
            f"0x{space.space_break:08x}")


class Printer:
    """A line about the structure, then its members."""

    def __init__(self, value, about):
        self.value = value
        self.about = about

    def to_string(self):
        try:
            return self.about(int(self.value.address) & common.WORD_MASK)
        except (common.BadMemory, common.Fail) as e:
            return f"! {e}"
        except (gdb.error, TypeError):  # a value that is in no memory
            return ""

    def children(self):
        for field in self.value.type.fields():
            yield field.name, self.value[field]


def printers():
    found = gdb.printing.RegexpCollectionPrettyPrinter("slate-objects")
    for kind, about in (("task", about_task), ("inode", about_inode),
                        ("pipe", about_pipe), ("port", about_port),
                        ("file", about_file), ("space", about_space)):
        found.add_printer(kind, f"^{kind}$",
                          lambda value, about=about: Printer(value, about))
    return found


gdb.printing.register_pretty_printer(None, printers(), replace=True)


# ---- convenience functions -------------------------------------------------

class Function(gdb.Function):
    """A function whose errors are those of the commands. GDB tells nobody that
    the machine goes on when a breakpoint's condition is false, so what was read
    for the last answer may not hold for this one."""

    def invoke(self, *args):
        common.forget()
        try:
            common.need_target()
            return self.value(*args)
        except (common.Fail, common.BadMemory) as e:
            raise gdb.GdbError(str(e)) from e


class TaskFunction(Function):
    """The task of a number: a struct task *.
Example: print $task(1)->task_state"""

    def __init__(self):
        super().__init__("task")

    def value(self, pid):
        task = model.parse_task(str(int(pid)))
        kind = common.ctype("struct task", model.TASK_HOME).pointer()
        return gdb.Value(task.address).cast(kind)


class TaskName(Function):
    """The name of a task, of which the argument is the address.
Example: print $task_name(cpu_boot.cpu_task)"""

    def __init__(self):
        super().__init__("task_name")

    def value(self, pointer):
        address = int(pointer) & common.WORD_MASK
        if not address:
            raise common.Fail("there is no task at 0")
        return model.task_at(address).task_name


class Pid(Function):
    """The number of the task that runs.
Example: print $pid()"""

    def __init__(self):
        super().__init__("pid")

    def value(self):
        task = model.current()
        if task is None:
            raise common.Fail("no task runs yet")
        return task.task_pid


TaskFunction()
TaskName()
Pid()
