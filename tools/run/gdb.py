"""GDB sessions, for tests and for the transcripts in the book.

`Session` boots Slate halted, in the deterministic mode, with GDB attached, and
continues from breakpoint to breakpoint. At each, GDB executes commands. The
session keeps their output and the kernel's output on the serial line. To
compare a command of GDB with the same command of the kernel shell, stop at the
function that runs the shell's.

`examine` runs commands on a core file.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from tools.run import corefile, debug, qemu, sandbox, watchdog

HERE = Path(__file__).resolve().parent
SETTINGS = HERE.parent / "gdb" / "slate.gdb"


class GdbError(Exception):
    """GDB or QEMU failed."""


def _boxed(argv, kernel, folder, limits):
    """The command line of a program that reads an untrusted kernel."""
    return sandbox.wrap(argv, write=[folder], read=[
        HERE.parent, Path(kernel).parent], **limits) if limits else argv


def _gdb(kernel, plan, folder, target, limits=None):
    """Runs GDB with Slate's commands; gdb_steps.py executes `plan` on the
    target. Returns the output of each step's commands."""
    plan_file, answers = f"{folder}/plan", f"{folder}/answers"
    Path(plan_file).write_text(json.dumps(plan), encoding="utf-8")
    argv = [debug.find_gdb(), "-nx", "-q", "--batch",
            "-iex", "set auto-load off", "-x", str(SETTINGS),
            str(kernel), *target, "-x", str(HERE / "gdb_steps.py")]
    done = watchdog.run(
        _boxed(argv, kernel, folder, limits), encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "SLATE_PLAN": plan_file, "SLATE_ANSWERS": answers,
             "LC_ALL": "C.UTF-8"})
    said = []
    if os.path.exists(answers):
        said = json.loads(Path(answers).read_text(encoding="utf-8"))
    if len(said) < len(plan["steps"]):
        raise GdbError(f"GDB stopped after step {len(said)} of "
                       f"{len(plan['steps'])}:\n{done.stdout[-4000:]}")
    return said


class Session:
    """A run of `commands` in the kernel shell under GDB. `steps` is a list of
    (function, [commands for GDB]); GDB continues to each function in turn.
    Afterwards `said` has a {command: output} for each step, and `serial` the
    text of the serial line. After step number `core_at` the machine's memory
    is written to `core_file`. `extra` are further arguments of QEMU. `limits`
    are those of sandbox.wrap for QEMU and for GDB, with a kernel that is not
    trusted."""

    def __init__(self, kernel, commands, steps, memory="32", append="",
                 core_at=None, core_file=None, extra=(), initrd=None,
                 limits=None):
        self.limits = limits
        with debug.socket_folder() as folder:
            self._run(folder, kernel, steps, qemu.command(
                qemu.boot_arguments(kernel, qemu.kernel_line(commands, append),
                                    initrd),
                memory, True, serial=f"file:{folder}/serial",
                extra=[*qemu.BARE, *extra]), core_at, core_file)

    def _run(self, folder, kernel, steps, argv, core_at, core_file):
        argv = _boxed(argv, kernel, folder, self.limits)
        stub = f"{folder}/stub"
        with debug.listen(stub) as server, \
                open(f"{folder}/qemu", "wb") as errors:
            machine = subprocess.Popen(
                argv + debug.stub_arguments(server), stdin=subprocess.DEVNULL,
                stdout=errors, stderr=errors, pass_fds=[server.fileno()])
        plan = {"steps": [{"at": at, "do": list(do),
                           "core": str(core_file) if i == core_at else None}
                          for i, (at, do) in enumerate(steps)], "live": stub}
        try:
            self.said = _gdb(kernel, plan, folder, [], self.limits)
            self.serial = qemu.plain(Path(f"{folder}/serial").read_text(
                encoding="latin-1"))
            if core_at is not None:
                corefile.narrow(core_file)
        except GdbError as e:
            qemu_said = Path(f"{folder}/qemu").read_text("utf-8", "replace")
            raise GdbError(f"{e}\n{qemu_said}") from e
        finally:
            machine.kill()
            machine.wait()


def examine(kernel, core_file, commands):
    """{command: output} of GDB on a core file."""
    plan = {"steps": [{"at": None, "do": list(commands), "core": None}],
            "live": None}
    with tempfile.TemporaryDirectory(prefix="slate-") as folder:
        return _gdb(kernel, plan, folder, [str(core_file)])[0]
