"""slate bt, enter: who called whom, of any task.

A task that does not run has its registers on its kernel stack, where
switch_stack left them. Two things make GDB itself unwind from there, with
arguments, inlined functions and source lines. Both are in one unwinder:

    entering    while `entered` is set, the frame that called the innermost one
                is said to be that task's: GDB goes on from its registers
    traps       the stubs of trap.asm, which debug information does not speak
                of, leave a struct trapframe: what was interrupted is in it

Where the task came from ring 3 the kernel's frames end. The program's own are
followed here, through its page tables, so that it need not be the one that
runs: functions of Slate's programs have frames, but for leaves and the stubs
of system calls, whose caller is found as the kernel's backtrace does it.
"""

import functools
import re

import gdb
import gdb.unwinder

import common
import objects_model as model
import objects_symbols as symbols

FRAMES_MAX = 64
SAVED = ("edi", "esi", "ebx", "ebp", "eip")  # struct switch_frame
STUBS = ("trap_common", "trap_syscall", "to_user", "first", "trap_return")
STUB_MAX = 256
LEAF_WORDS = 16


# ---- the kernel's own walk -------------------------------------------------

def switch_frame(task):
    """The registers of a task that does not run, and its stack pointer."""
    f = common.record("struct switch_frame", task.task_esp, "sched_begin")
    registers = {name: getattr(f, name) for name in SAVED}
    registers["esp"] = (task.task_esp + f.layout.size) & common.WORD_MASK
    return registers


def kernel_pcs(task):
    """The return addresses on the kernel stack of a task that does not run,
    as the shell's `bt` finds them; none of one that does."""
    if model.is_state(task, "TASK_RUNNING"):
        return []
    registers = switch_frame(task)
    found, frame = [registers["eip"]], registers["ebp"]
    while len(found) < 24 and frame % common.WORD == 0:
        try:
            following, ret = common.word(frame), common.word(frame + 4)
        except common.BadMemory:
            break
        if common.symbol_lookup(ret) is None:
            break
        found.append(ret)
        if following <= frame:
            break
        frame = following
    return found


def print_pcs(pcs):
    for i, pc in enumerate(pcs):
        print(f"  {i:2}  0x{pc:08x}  {common.symbol_format(pc)}")


# ---- GDB's walk ------------------------------------------------------------

@functools.lru_cache(maxsize=1)
def stub_ranges(_objfile):
    """[start, end) of each stub. No stub is longer than STUB_MAX."""
    found = []
    for name in STUBS:
        start = int(gdb.parse_and_eval(f"(unsigned)&{name}"))
        found.append((start, start + STUB_MAX))
    return found


def in_stub(pc):
    """Whether pc is behind a call in a stub: ESP is at the trap frame. It is
    asked for every frame that GDB unwinds, hence the quick first look."""
    if not any(start <= pc < end for start, end in
               stub_ranges(common.kernel())):
        return False
    found = common.symbol_lookup(pc)
    return found is not None and found[0] in STUBS and \
        (common.read(pc - 5, 1) == b"\xe8"
         or common.read(pc - 7, 2) == b"\xff\x14")


def trapframe_at(address):
    return common.record("struct trapframe", address, "trap_init")


class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class Unwinder(gdb.unwinder.Unwinder):
    """See the head of this file."""

    def __init__(self):
        super().__init__("slate")
        self.entered = None  # registers of the task that is looked at

    def __call__(self, frame):
        try:
            if frame.level() == 0 and self.entered:
                return self._enter(frame)
            pc = int(frame.read_register("eip")) & common.WORD_MASK
            if in_stub(pc):
                return self._trap(frame, pc)
        except (common.BadMemory, common.Fail, gdb.error):
            pass
        return None

    @staticmethod
    def _info(frame, frame_id, registers):
        info = frame.create_unwind_info(frame_id)
        for name, value in registers.items():
            kind = frame.read_register(name).type
            info.add_saved_register(name, gdb.Value(value).cast(kind))
        return info

    def _enter(self, frame):
        pc = int(frame.read_register("eip")) & common.WORD_MASK
        # Below every stack: a caller's frame must lie above it.
        return self._info(frame, FrameId(gdb.Value(16), gdb.Value(pc)),
                          self.entered)

    def _trap(self, frame, pc):
        esp = int(frame.read_register("esp")) & common.WORD_MASK
        tf = trapframe_at(esp)
        frame_id = FrameId(gdb.Value(esp), gdb.Value(pc))
        registers = {name: getattr(tf, name) for name in
                     ("edi", "esi", "ebp", "ebx", "edx", "ecx", "eax", "eip")}
        registers["esp"] = tf.esp if tf.cs & 3 else tf.where("esp")
        return self._info(frame, frame_id, registers)


unwinder = Unwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


def enter(registers):
    """From now on GDB's frame 1 is where a task goes on that has these; None
    ends it."""
    unwinder.entered = registers
    gdb.invalidate_cached_frames()


def leave(*_):
    """When the target runs, the task that runs is the one that is meant."""
    if unwinder.entered:
        enter(None)


gdb.events.cont.connect(leave)


def depth():
    """How many frames from the innermost one on are the kernel's."""
    frame, n = gdb.newest_frame(), 0
    while frame is not None and n < FRAMES_MAX:
        n += 1
        if in_stub(frame.pc()):
            esp = int(frame.read_register("esp")) & common.WORD_MASK
            if trapframe_at(esp).cs & 3:
                break
        frame = frame.older()
    return n


def gdb_frames(task):
    """What GDB's `bt` prints of a task's kernel stack, numbered from 0."""
    entered = task is not None
    before = unwinder.entered
    selected = gdb.selected_frame()
    text = []
    try:
        enter(switch_frame(task) if entered else None)
        gdb.newest_frame().select()
        lines = gdb.execute(f"bt -entry-values no {depth()}",
                            to_string=True).splitlines()
        for line in lines:
            number = re.match(r"#(\d+)( +)(.*)", line)
            if number and entered and number.group(1) == "0":
                continue
            if number:
                n = int(number.group(1)) - entered
                line = f"#{n:<3} {number.group(3)}"
            elif line.startswith(("Backtrace stopped", "(More stack")):
                continue
            text.append(line)
    finally:
        enter(before)
        if selected.is_valid():
            selected.select()
    return text


# ---- programs --------------------------------------------------------------

def is_call(code):
    """Whether the seven bytes end with a call (E8, or FF /2)."""
    if code[2] == 0xe8:
        return True
    for length in range(2, 8):
        op, modrm = code[7 - length], code[8 - length]
        if op == 0xff and modrm >> 3 & 7 == 2:
            mod, rm = modrm >> 6, modrm & 7
            size = 2 + (mod != 3 and rm == 4) + {0: 0, 1: 1, 2: 4, 3: 0}[mod]
            size += 4 if mod == 0 and rm == 5 else 0
            if size == length:
                return True
    return False


class UserStack:
    """The frames of a program, from its registers at the moment when it was
    interrupted or called the kernel."""

    def __init__(self, space, eip, esp, ebp):
        self.space = space
        self.eip, self.esp, self.ebp = eip, esp, ebp
        self.top = common.macros("kernel/vm/user.h")["USER_BASE"] + (1 << 20)

    def word(self, address):
        try:
            return model.user_word(self.space, address)
        except common.BadMemory:
            return 0

    def code(self, address, size):
        try:
            return model.user_read(self.space, address, size)
        except common.BadMemory:
            return b""

    def returns_here(self, address):
        """Whether a call stands in front of an address."""
        code = self.code(address - 7, 7)
        return len(code) == 7 and is_call(code)

    def has_frame(self):
        """Whether the innermost function has set up its frame: no stub of a
        system call has one."""
        if self.code(self.eip - 2, 2) == b"\xcd\x80":
            return False
        start = symbols.function_start(self.eip)
        if start is None or self.eip - start > 4096:
            return True
        return b"\x89\xe5" in self.code(start, self.eip - start)

    def leaf(self):
        """(return address, frame) of a function without a frame, or None. A
        stub that needs EBP for something else has saved it right below its
        return address."""
        for i in range(LEAF_WORDS):
            at = self.esp + i * common.WORD
            ret = self.word(at)
            if not self.returns_here(ret):
                continue
            for frame in (self.ebp, self.word(at - common.WORD)):
                if at < frame < self.top and \
                        self.returns_here(self.word(frame + common.WORD)):
                    return ret, frame
            return ret, 0
        return None

    def pcs(self):
        found, frame = [self.eip], self.ebp
        if not self.has_frame():
            caller = self.leaf()
            if caller:
                found.append(caller[0])
                frame = caller[1]
        while self.esp <= frame < self.top and len(found) < FRAMES_MAX:
            ret = self.word(frame + common.WORD)
            if not self.returns_here(ret):
                break
            found.append(ret)
            if self.word(frame) <= frame:
                break
            frame = self.word(frame)
        return found


def registers_now():
    frame = gdb.newest_frame()
    return [int(frame.read_register(r)) & common.WORD_MASK
            for r in ("eip", "esp", "ebp")]


def user_registers(task):
    """EIP, ESP and EBP of a program, in ring 3."""
    if model.is_state(task, "TASK_RUNNING"):
        now = registers_now()
        if now[0] < 0xC0000000:
            return now
    tf = model.trapframe(task)
    return [tf.eip, tf.esp, tf.ebp]


def print_user(task, number):
    """The frames of the program from `number` on."""
    eip, esp, ebp = user_registers(task)
    with symbols.loaded_for(task) as file:
        print(f"-- ring 3, {task.task_name}: "
              f"{symbols.shown(file) if file else 'no symbols are known'}")
        space = model.space_at(task.task_space)
        for i, pc in enumerate(UserStack(space, eip, esp, ebp).pcs()):
            # A return address may be the first of the next line.
            print(f"#{number + i:<3} 0x{pc:08x} in "
                  f"{symbols.describe(pc, pc - (i > 0))}")


# ---- bt --------------------------------------------------------------------

def head_line(task):
    state = model.name_of(task.task_state, model.task_states())
    waits = model.waits_for(task)
    return f"{model.title(task)}, {state}" + \
        (f", waits for: {waits}" if waits else "")


def kernel_part(task):
    """Lines for the frames in the kernel."""
    if model.is_state(task, "TASK_RUNNING"):
        return gdb_frames(None) if registers_now()[0] >= 0xC0000000 else []
    registers = switch_frame(task)
    start = common.symbol_lookup(registers["eip"])
    if start == ("switch_begin", 0):
        return [f"#0   has not run yet; it begins with "
                f"{common.symbol_format(registers['ebx'])}"]
    return gdb_frames(task)


class Bt(common.Command):
    name = "slate bt"
    usage = "[-k] [PID]"
    summary = "Who called whom, of any task, in the kernel and in its program"
    details = """
Of a task that does not run: from where it was switched away on. Without PID:
of the one that runs. Programs follow below a line of their own; names and
lines are known if build/user/bin has the program.
  -k  as the kernel shell's bt prints it: by frame pointers, without lines;
      of tasks that do not run"""
    example = "slate bt 2"
    options = "k"
    most = 1
    wants = "wants one pid at most; `slate tasks` lists them"

    def run(self, args):
        task = model.parse_task(args.words[0]) if args.words \
            else model.current()
        if task is None:
            print("\n".join(gdb_frames(None)))
            return
        if "k" in args:
            pcs = kernel_pcs(task)
            if not pcs:
                raise common.Fail(f"task {task.task_pid} runs")
            print_pcs(pcs)
            return
        print(head_line(task))
        if model.is_state(task, "TASK_ZOMBIE"):
            return
        lines = kernel_part(task)
        for line in lines:
            print(line)
        if task.task_space:
            print_user(task, sum(line.startswith("#") for line in lines))


class Enter(common.Command):
    name = "slate enter"
    usage = "[PID]"
    summary = "GDB's own bt, frame, up, info locals speak of another task"
    details = """
From frame 1 on they show the kernel stack of that task, which does not run;
frame 0 stays what the processor does. Without PID, and when the target runs
on, they are about the task that runs again."""
    example = "slate enter 2"
    most = 1
    wants = "wants one pid at most; `slate tasks` lists them"

    def run(self, args):
        task = model.parse_task(args.words[0]) if args.words else None
        if task and (model.is_state(task, "TASK_RUNNING")
                     or model.is_state(task, "TASK_ZOMBIE")):
            raise common.Fail(f"task {task.task_pid} has no stack to enter: "
                              "it runs, or has ended")
        enter(switch_frame(task) if task else None)
        gdb.newest_frame().select()
        print(f"frame 1 and up: {head_line(task)}" if task
              else "the frames are those of the task that runs")


Bt()
Enter()
