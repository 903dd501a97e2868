"""Random system calls, random code and hostile file servers: `make fuzz`.

    python3 -m tools.test.fuzz build/slate.elf [--program codefuzz]
        [--seeds 10] [--steps 100000]

Each seed is a boot in the counted mode: the program syscallfuzz makes a few
calls (codefuzz runs a few streams of code, stormfuzz a few rounds), then all of
them. After each, the kernel shell counts the allocated objects and checks every
invariant. Objects left over are leaks, except for files that the calls have
made.
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass

from tools.run import qemu


@dataclass
class Program:
    warm_up: int   # steps that create every object that stays
    budget: float  # millions of nanoseconds of the guest for a step, at most
    shift: int     # an instruction takes 2^shift of them


# Every second batch of calls of syscallfuzz waits until its parent ends it, so
# a call takes 0.4 ms. A stream of codefuzz that loops runs for some ticks of
# the clock, so an instruction takes longer. A round of stormfuzz may sleep for
# seconds, until requests no longer wait for the successor of a dead server.
PROGRAMS = {"syscallfuzz": Program(2000, 1, 0),
            "codefuzz": Program(50, 40, 8),
            "stormfuzz": Program(5, 60_000, 0)}

# Files and their inodes stay; the allocator's own objects go with slabs.
STAYS = ("inode", "ramfs_node", "ramfs_entry", "ramfs_page")


def in_use(rows):
    return {row["cache"]: row["inuse"] for row in rows
            if row["kind"] != "internal" and row["cache"] not in STAYS}


def tables(text):
    """The outputs of `kmastat -j` in a run's text."""
    rows, found = [], []
    for line in text.splitlines():
        if line.startswith('{"cache":') and '"inuse":' in line:
            rows.append(json.loads(line))
        elif rows:
            found.append(in_use(rows))
            rows = []
    return found


def fuzz(kernel, seed, steps, program="syscallfuzz", memory=64, **options):
    """Runs one seed. Returns (error or None, the program's summary, the
    run)."""
    how = PROGRAMS[program]
    run = qemu.run(kernel, f"run -p init {program} -s {seed} "
                   f"-n {how.warm_up}; kmastat -j; "
                   f"run -p init {program} -s {seed} -n {steps}; "
                   "kmastat -j; verify; poweroff", memory=memory,
                   budget=(10_000 << how.shift) +
                   int((steps + how.warm_up) * how.budget),
                   shift=how.shift, **options)
    said = re.findall(rf"(?m)^{program}: seed \d+, .*$", run.text)
    if run.problem or "panic" in run.named:
        return run.problem or "panic", "", run
    if len(said) != 2:
        return "the program did not come to its end", "", run
    if "every invariant holds" not in run.text:
        return "an invariant is broken", said[1], run
    before, after = tables(run.text)
    left = {cache: after[cache] - before[cache] for cache in after
            if after[cache] != before.get(cache, 0)}
    if left:
        return f"leaked: {left}", said[1], run
    return None, said[1], run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("kernel")
    parser.add_argument("--program", choices=PROGRAMS, default="syscallfuzz")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args()
    failures = 0
    for seed in range(options.first, options.first + options.seeds):
        wrong, said, run = fuzz(options.kernel, seed, options.steps,
                                options.program)
        print(f"seed {seed}: {wrong or 'good'}. {said}", flush=True)
        if wrong:
            print(run.explain())
            failures += 1
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
