"""Carries out a trace in a kernel, and prints what its allocations and frees
take, in instructions: `make replay-kernel`.

    python3 -m tools.measure.kernel_replay KERNEL INITRD REPLAY [FILE.ktr]

The program REPLAY (mm/others/tests/replay/main.c) reads and checks the trace,
without a file the reference trace R1. The kernel gets it as a boot module,
events of fixed size that the command `replay` (tools/workshop/compare/
cmd_replay.c) only has to follow; the run is counted, so it repeats.
"""

import argparse
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.run import qemu

# Of mm/others/tests/trace.h: what the kernel carries out.
OPS = {"cache_alloc": 1, "alloc": 2, "free": 3, "pressure": 7}
MAGIC = b"KTRI"
BUDGET = 40_000     # millions of instructions
MEMORY = 128        # MiB, besides the module


def image(lines):
    """The boot module of a trace that `replay -l` has listed."""
    caches, events, slots = [], [], 0
    for line in lines:
        what, *rest = line.split()
        if what == "cache":
            _, size, _, align, flags = rest
            caches.append(struct.pack("<3I", int(size), int(align),
                                      int(flags)))
        elif what in OPS:
            _, operand, slot = map(int, rest)
            if what == "free":
                operand, slot = 0, operand
            slots = max(slots, slot + 1)
            events.append(struct.pack("<3I", OPS[what], operand, slot))
    return b"".join([struct.pack("<4s3I", MAGIC, len(caches), slots,
                                 len(events)), *caches, *events])


def run(kernel, initrd, module, commands="replay"):
    """The qemu.Result of a kernel with that module."""
    with tempfile.NamedTemporaryFile(prefix="slate-") as file:
        file.write(module)
        file.flush()
        return qemu.run(
            kernel, f"{commands}; poweroff", budget=BUDGET, initrd="",
            memory=MEMORY + (len(module) >> 20),
            extra=["-initrd", f"{qemu.option(Path(initrd).resolve())},"
                              f"{file.name}"])


def listed(replay, trace=None):
    """The lines of a trace, or of R1; None after an error line."""
    done = subprocess.run([replay, "-l", *filter(None, [trace])],
                          stdout=subprocess.PIPE, encoding="utf-8",
                          errors="replace", check=False)
    return done.stdout.splitlines() if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel", type=Path)
    parser.add_argument("initrd", type=Path)
    parser.add_argument("replay", type=Path)
    parser.add_argument("trace", type=Path, nargs="?")
    args = parser.parse_args()
    lines = listed(args.replay, args.trace)
    if lines is None:
        return 1
    result = run(args.kernel, args.initrd, image(lines))
    if result.problem:
        print(result.explain(), file=sys.stderr)
        return 1
    text = qemu.plain(result.text)
    print(text[text.index("slate> replay"):].split("\n", 1)[1].rstrip())
    return int("status" in result.named)


if __name__ == "__main__":
    sys.exit(main())
