"""Runs a command that is not trusted: a compiler on a submission, or QEMU with
a submission's kernel.

    argv = sandbox.wrap(["make"], seconds=60, memory=2048, file=8192,
                        write=[folder], read=[sandbox.home("i686-elf-gcc")])

prlimit limits each process of the command: processor seconds, MiB of address
space, KiB of a file that it writes (0: no limit). A process that uses more
time is killed; more memory or a larger file is refused.

With `write`, the command also runs in a sandbox, if bubblewrap works here. It
sees the programs of the system and the folders of `read`, and can write those
of `write`: no home, no other tree, no file of another submission. It has no
network and sees no other process.
"""

import functools
import os
import shutil
import subprocess
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20

# Where systems have programs and their libraries, and nothing of a person.
SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
          "/opt", "/nix/store", "/gnu/store",
          "/etc/alternatives", "/etc/ld.so.cache"]

BWRAP = ["bwrap", "--die-with-parent", "--new-session", "--unshare-all",
         *(word for path in SYSTEM for word in ("--ro-bind-try", path, path)),
         "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]


@functools.lru_cache(maxsize=None)
def problem():
    """The tool that this system lacks, in one line, or None."""
    if not shutil.which("prlimit"):
        return "no prlimit here: no limits and no sandbox, only time-outs"
    if not shutil.which("bwrap"):
        return "no bwrap here: limits, but no sandbox"
    done = subprocess.run([*BWRAP, "true"], check=False, encoding="utf-8",
                          stderr=subprocess.PIPE)
    if done.returncode:
        return ("bwrap does not work here: limits, but no sandbox: "
                f"{done.stderr.strip()}")
    return None


def home(program):
    """The folder that a program is installed in, with its libraries: /usr for
    /usr/bin/gcc. One that is not found has none."""
    found = shutil.which(program)
    return Path(found).resolve().parent.parent if found else Path("/usr")


def wrap(argv, seconds, memory=0, file=0, write=(), read=()):
    """The command line that runs `argv` within these limits."""
    argv = list(map(str, argv))
    read = [home(argv[0]), *read]
    if shutil.which("prlimit"):
        limits = {"cpu": seconds, "as": memory * MIB, "fsize": file * KIB}
        argv = ["prlimit", "--core=0",
                *(f"--{name}={value}" for name, value in limits.items()
                  if value), *argv]
    if not write or problem():
        return argv
    box = list(BWRAP)
    for option, paths in (("--ro-bind", read), ("--bind", write)):
        for path in map(os.path.realpath, paths):
            if os.path.exists(path) and path != "/":
                box += [option, path, path]
    return [*box, "--", *argv]


def signal_of(status):
    """The signal that ended a command of wrap(), or None. (bwrap reports it as
    a shell does.)"""
    return -status if status < 0 else status - 128 if status > 128 else None
