"""slate bt, enter: the callers of any task; and how GDB unwinds the kernel's
own assembly.

The stub of an interrupt or a system call leaves a trap frame on the stack, the
functions of copy.asm and switch.asm registers, the inline assembly of a lock
the flags; debug information describes none of them. A task that does not run
has its registers on its kernel stack: while it is `entered`, the caller of the
innermost frame is said to be that task.

The frames of a program are followed here, through its page tables, so that it
need not be the one that runs. Its functions have frames, except leaves and
stubs of system calls, whose caller is the first return address on the stack.
"""

import functools
import itertools
import re

import gdb
import gdb.unwinder

import programs
import system
import target
from command import Command
from target import WORD, WORD_MASK, BadMemory, Fail, constant, linker, \
    read, record, register, word

FRAMES_MAX = 64
KERNEL = constant("KERNEL_BASE")


def switch_frame(task):
    """The registers of a task that does not run. Fails if the task runs on
    another processor: the registers on its stack are old."""
    here = target.thread() - 1
    for cpu in system.cpus():
        if cpu.cpu_task == task.address and cpu.cpu_number != here:
            raise Fail(f"task {task.task_pid} runs on processor "
                       f"{cpu.cpu_number}: `thread {cpu.cpu_number + 1}`")
    f = record("switch_frame", task.task_esp)
    registers = {name: getattr(f, name) for name in
                 ("edi", "esi", "ebx", "ebp", "eip")}
    return {**registers, "esp": task.task_esp + f.layout.size & WORD_MASK}


def callers(frame, load, returns):
    """The return addresses beside saved frame pointers, upwards, as far as
    they are plausible; load(address) is the word there."""
    try:
        while frame % WORD == 0 and returns(load(frame + WORD)):
            yield load(frame + WORD)
            if load(frame) <= frame:
                return
            frame = load(frame)
    except BadMemory:
        pass


STUBS = "trap_common", "trap_syscall", "to_user", "first", "trap_return"
TRAP = "edi", "esi", "ebp", "ebx", "edx", "ecx", "eax", "eip"


def in_stub(pc):
    """Whether pc is after a call in a stub: ESP is at the trap frame. None is
    longer than 256 bytes."""
    if not any(0 <= pc - linker(stub) < 256 for stub in STUBS):
        return False
    found = target.symbol_at(pc)
    return found is not None and found[0] in STUBS and \
        (read(pc - 5, 1) == b"\xe8" or read(pc - 7, 2) == b"\xff\x14")


class _Id:
    """GDB's identity of a frame."""

    def __init__(self, sp, pc):
        self.sp, self.pc = gdb.Value(sp), gdb.Value(pc)


def unwound(frame, sp, registers):
    """GDB's description of a frame whose caller has these registers."""
    info = frame.create_unwind_info(_Id(sp, register("eip", frame)))
    for name, value in registers.items():
        kind = frame.read_register(name).type
        info.add_saved_register(name, gdb.Value(value & WORD_MASK).cast(kind))
    return info


# pushf; cli; pop or push; popf; with SMP=1 lock bts; jnc or movl $0 between.
PUSHED = re.compile(
    rb"(?s)..\x9d|.\x9c[\xfa\x8f\x58-\x5f]|\x9c\xfa[\x8f\x58-\x5f]|"
    rb"..\xf0\x0f\xba|..\x73.\x50\x8d|\xeb.\x8f|..\xc7.{1,6}\0{4}\x9d")


def flags_pushed(pc):
    """The bytes that the inline assembly of a lock, or of read_eflags, has on
    the stack at pc. In a function without a frame pointer they would be taken
    for its return address."""
    return WORD * bool(PUSHED.match(read(pc - 2, 14)))


def from_user(tf):
    """Whether a trap frame is that of a program, as trap_from_user says."""
    return bool(tf.cs & 3 or tf.eflags & 1 << 17)


def leave_stub(frame):
    esp = register("esp", frame)
    tf = record("trapframe", esp)
    registers = {name: getattr(tf, name) for name in TRAP}
    registers["esp"] = tf.esp if from_user(tf) else \
        tf.where("esp") + flags_pushed(tf.eip)
    return unwound(frame, esp, registers)


def leave_pushed(frame, pushed):
    """Unwinds a function that has pushed these registers, the last first."""
    esp = register("esp", frame)
    saved = [word(esp + WORD * i) for i in range(len(pushed) + 1)]
    registers = {name: register(name, frame)
                 for name in ("ebp", "ebx", "esi", "edi")}
    registers.update(zip((*pushed, "eip"), saved))
    # GDB names a caller by the byte before its return address.
    registers["eip"] += registers["eip"] == linker("switch_begin")
    top = esp + WORD * len(saved)
    return unwound(frame, top, {**registers, "esp": top})


def pushed_by(pc):
    """The registers that a function of copy.asm, or switch_stack, has pushed at
    pc, by the instruction there; None for another function."""
    if linker("copy_begin") <= pc < linker("copy_end"):
        # push esi; push edi, pop esi; ret
        return ("edi", "esi")[{0x56: 2, 0x57: 1, 0x5E: 1, 0xC3: 2}.get(
            read(pc, 1)[0], 0):]
    n = pc - linker("switch_stack")
    # four pushes, two moves of two bytes, four pops
    if 0 <= n and pc < linker("switch_begin"):
        return ("edi", "esi", "ebx", "ebp")[4 - n if n < 4 else
                                            max(n - 8, 0):]
    return None


class Unwinder(gdb.unwinder.Unwinder):
    """See the head of this file."""

    def __init__(self):
        super().__init__("slate")
        self.entered = None  # registers of the task that is looked at
        self.esp = 0         # the processor's meanwhile

    def __call__(self, frame):
        try:
            if self.entered and register("esp", frame) == self.esp:
                # Below every stack: a caller's frame must be above it.
                return unwound(frame, 16, self.entered)
            pc = register("eip", frame)
            if in_stub(pc):
                return leave_stub(frame)
            pushed = pushed_by(pc)
            if pushed is not None:
                return leave_pushed(frame, pushed)
        except (Fail, gdb.error, BadMemory):
            pass
        return None


unwinder = Unwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


def physical(frame):
    """The function, not inlined, that a frame is in."""
    while frame.type() == gdb.INLINE_FRAME:
        frame = frame.older()
    return frame


def enter(registers):
    """From now on GDB shows the task that has these registers as the caller of
    the innermost function; None ends that. Returns the caller's level."""
    unwinder.esp, unwinder.entered = register("esp"), registers
    gdb.invalidate_cached_frames()
    return physical(gdb.newest_frame()).level() + 1


# When the target runs, GDB shows the running task again.
gdb.events.cont.connect(lambda _: unwinder.entered and enter(None))


def without_flags():
    """The processor's registers as they will be when it has popped the flags;
    None if no flags are pushed."""
    pushed = flags_pushed(register("eip"))
    return {**{name: register(name) for name in TRAP},
            "esp": register("esp") + pushed} if pushed else None


def depth():
    """The number of frames of the kernel, from the innermost one on."""
    frame, n = gdb.newest_frame(), 0
    while frame is not None and n < FRAMES_MAX:
        n += 1
        if in_stub(frame.pc()) and \
                from_user(record("trapframe", register("esp", frame))):
            break
        frame = frame.older()
    return n


def gdb_frames(task):
    """The lines of GDB's `bt` of a task's kernel stack, numbered from 0. `task`
    is None for the task that runs."""
    before, selected, text = unwinder.entered, gdb.selected_frame(), []
    try:
        registers = switch_frame(task) if task else without_flags()
        own = enter(registers) * bool(registers)
        for line in gdb.execute(f"bt -entry-values no {depth()}",
                                to_string=True).splitlines():
            number = re.match(r"#(\d+) +(.*)", line)
            if number and int(number[1]) >= own:
                text.append(f"#{int(number[1]) - own:<3} {number[2]}")
    finally:
        enter(before)
        if selected.is_valid():
            selected.select()
    return text


class UserStack:
    """The frames of a program, from its registers at the moment when it was
    interrupted or called the kernel."""

    def __init__(self, space, eip, esp, ebp):
        self.read = functools.partial(system.user_read, system.mapped(space))
        self.eip, self.esp, self.ebp = eip, esp, ebp

    def word(self, address):
        return int.from_bytes(self.read(address, WORD), "little")

    def returns_here(self, address):
        """Whether a call (E8, or FF /2) ends at an address."""
        code = self.read(address - 7, 7)
        return len(code) == 7 and (code[2] == 0xe8 or any(
            code[-n] == 0xff and code[1 - n] >> 3 & 7 == 2
            for n in (2, 3, 4, 6, 7)))

    def has_frame(self):
        """Whether the innermost function has set up its frame: no stub of a
        system call has one."""
        if self.read(self.eip - 2, 2) == b"\xcd\x80":
            return False
        found = target.symbol_at(self.eip)
        if found is None or found[1] > 4096:
            return True
        return b"\x89\xe5" in self.read(self.eip - found[1], found[1])

    def leaf(self):
        """(return address, frame) of a function without a frame, or None. A
        stub that uses EBP for another purpose has saved it right below its
        return address."""
        for at in range(self.esp, self.esp + 16 * WORD, WORD):
            ret = self.word(at)
            if self.returns_here(ret):
                return ret, next(
                    (frame for frame in (self.ebp, self.word(at - WORD))
                     if at < frame and
                     self.returns_here(self.word(frame + WORD))), 0)
        return None

    def pcs(self):
        found, frame = [self.eip], self.ebp
        caller = None if self.has_frame() else self.leaf()
        if caller:
            found.append(caller[0])
            frame = caller[1]
        older = callers(frame, self.word, self.returns_here)
        return [*found, *itertools.islice(older, FRAMES_MAX)] \
            if self.esp <= frame else found


def user_registers(task):
    """EIP, ESP and EBP of a program, in ring 3."""
    names = "eip", "esp", "ebp"
    if system.runs(task) and register("eip") < KERNEL:
        return [register(name) for name in names]
    size = target.layout("trapframe").size
    tf = record("trapframe", task.task_stack_top - size)
    return [getattr(tf, name) for name in names]


def print_user(task, number):
    """Prints the frames of the program, numbered from `number` on."""
    with programs.loaded_for(task) as file:
        print(f"-- ring 3, {task.task_name}: "
              f"{target.relative(file) if file else 'no symbols are known'}")
        stack = UserStack(record("space", task.task_space),
                          *user_registers(task))
        for i, pc in enumerate(stack.pcs()):
            # A return address may be the first of the next line.
            inside = pc - (i > 0)
            found, line = target.symbol_at(inside), target.source_line(inside)
            print(f"#{number + i:<3} 0x{pc:08x} in "
                  f"{found[0] if found else '??'} ()" +
                  (f" at {line}" if found and line else ""))


def kernel_part(task):
    """The lines for the frames in the kernel."""
    if system.runs(task):
        return gdb_frames(None) if register("eip") >= KERNEL else []
    registers = switch_frame(task)
    if (target.symbol_at(registers["eip"]) or "")[:2] == ("switch_begin", 0):
        return ["#0   has not run yet; it begins with "
                f"{target.symbol_text(registers['ebx'])}"]
    return gdb_frames(task)


class Bt(Command):
    """slate bt [PID]
    The callers of any task, in the kernel and in its program.
    For a task that does not run, from the switch to another task on. Without
    PID: the task that runs. Programs follow below a line of their own; names
    and lines are known if build/user/bin has the program.
    Example: slate bt 2"""

    def run(self, argument):
        task = system.parse_task(argument) if argument \
            else system.on_processor()
        if task is None:
            print("\n".join(gdb_frames(None)))
        else:
            print(system.about_task(task))
            if system.state_of(task) == "ended" and not system.runs(task):
                return
            lines = kernel_part(task)
            print("".join(f"{line}\n" for line in lines), end="")
            if task.task_space:
                print_user(task, sum(ln.startswith("#") for ln in lines))


class Enter(Command):
    """slate enter [PID]
    GDB's own bt, frame, up, info locals show another task.
    From the frame that is printed on they show the kernel stack of that task,
    which does not run; those before stay the processor's. Without PID, and when
    the target continues, they show the running task again.
    Example: slate enter 2"""

    def run(self, argument):
        task = system.parse_task(argument) if argument else None
        if task and (system.state_of(task) == "ended" or system.runs(task)):
            raise Fail(f"task {task.task_pid} has no stack to enter: it runs, "
                       "or has ended")
        level = enter(switch_frame(task) if task else None)
        gdb.newest_frame().select()
        print(f"frame {level} and up: {system.about_task(task)}" if task
              else "the frames are those of the task that runs")
