"""Runs a command that nobody trusts, with limits on what it may use.

    argv = limited.wrap(["make", "kernel"], seconds=60, memory=2048, file=8192)

gives the command line that does so: processor seconds, MiB of address space,
KiB of a file that it writes; each for every process of the command. What goes
beyond the first is ended by a signal, beyond the others is refused. Where a
system does not know a limit (macOS knows no address space), that one is not
set.

As a program it is what wrap() calls, so that limits are set in the process
that becomes the command, and nothing runs between fork and exec.
"""

import os
import resource
import sys

KIB, MIB = 1 << 10, 1 << 20


def wrap(argv, seconds, memory=0, file=0):
    """`argv` under limits; 0 means none."""
    return [sys.executable, "-S", "-E", __file__, str(seconds), str(memory),
            str(file), *map(str, argv)]


def _limit(which, value):
    if value == 0:
        return
    try:
        hard = resource.getrlimit(which)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(which, (value, value))
    except (ValueError, OSError):
        pass


def main():
    seconds, memory, file = map(int, sys.argv[1:4])
    _limit(resource.RLIMIT_CPU, seconds)
    _limit(resource.RLIMIT_AS, memory * MIB)
    _limit(resource.RLIMIT_FSIZE, file * KIB)
    _limit(resource.RLIMIT_CORE, 0)
    try:
        os.execvp(sys.argv[4], sys.argv[4:])
    except FileNotFoundError:
        sys.exit(f"{sys.argv[4]} not found: run tools/setup")


if __name__ == "__main__":
    main()
