"""Slate in Bochs, which shares no code with QEMU and is stricter: `run()` boots
an ISO image without a screen and waits for the end.

Bochs has a clock of its own: instructions, so a run does not depend on the
host's speed. Its port 0xE9 is its standard output, where the kernel's records
come between lines of its debugger.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tools.run import qemu, sandbox, watchdog

BOCHS = os.environ.get("BOCHS", "bochs")

# The screen is a VNC server, which needs no display. In the sandbox no other
# process uses its port.
CONFIG = """\
megs: 64
romimage: file=$BXSHARE/BIOS-bochs-latest
vgaromimage: file=$BXSHARE/VGABIOS-lgpl-latest
cpu: ips=50000000, reset_on_triple_fault=0
clock: sync=none, time0=1577836800
display_library: rfb, options="timeout=0"
ata0-master: type=cdrom, path={image}, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev={folder}/serial
port_e9_hack: enabled=1
log: {folder}/log
panic: action=fatal
"""


def run(image):
    """A Result, as of qemu.run."""
    folder = Path(tempfile.mkdtemp(prefix="slate-"))
    try:
        for name in ("serial", "log"):
            (folder / name).touch()
        (folder / "config").write_text(
            CONFIG.format(image=image, folder=folder), encoding="utf-8")
        argv = sandbox.wrap([BOCHS, "-q", "-f", str(folder / "config")],
                            seconds=watchdog.SECONDS, write=[folder],
                            read=[Path(image).parent])
        try:
            # "c" is for Bochs's debugger, if it was built with one.
            done = watchdog.run(argv, input=b"c\n", stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
        except FileNotFoundError as e:
            raise qemu.QemuError(f"{BOCHS} not found: run tools/setup") from e
        records = [line for line in done.stdout.splitlines(keepends=True)
                   if line.startswith(b"{")]
        (folder / "events").write_bytes(b"".join(records))
        return qemu.Result(
            argv, done.returncode,
            (folder / "serial").read_bytes().decode(errors="replace"),
            qemu.read_events(folder / "events"),
            (folder / "log").read_text("utf-8", "replace")[-3000:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
