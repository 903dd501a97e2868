"""Random system calls: `make fuzz`.

    python3 -m tools.test.fuzz build/slate.elf [--seeds 10] [--calls 100000]

Each seed is a boot in the counted mode: the program syscallfuzz makes a few
calls, then all of them. After each, the kernel shell counts the allocated
objects and checks every invariant. Objects left over are leaks, except for
files that the calls have made.
"""

import argparse
import json
import re
import sys

from tools.run import qemu

WARM_UP = 2000         # calls that create every object that stays
BUDGET_CALL = 0.2      # millions of instructions for a call, at most
# Files and their inodes stay; the allocator's own objects go with slabs.
STAYS = ("inode", "hash_segment", "ramfs_node", "ramfs_entry", "ramfs_page")


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


def fuzz(kernel, seed, calls, memory=64):
    """Runs one seed. Returns (error or None, the program's summary, the
    run)."""
    run = qemu.run(kernel, f"run init syscallfuzz -s {seed} -n {WARM_UP}; "
                   "kmastat -j; "
                   f"run init syscallfuzz -s {seed} -n {calls}; "
                   "kmastat -j; verify; poweroff", memory=memory,
                   budget=10_000 + int((calls + WARM_UP) * BUDGET_CALL))
    said = re.findall(r"(?m)^syscallfuzz: seed \d+, .*$", run.text)
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
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=100_000)
    options = parser.parse_args()
    failures = 0
    for seed in range(options.first, options.first + options.seeds):
        wrong, said, run = fuzz(options.kernel, seed, options.calls)
        print(f"seed {seed}: {wrong or 'good'}. {said}", flush=True)
        if wrong:
            print(run.explain())
            failures += 1
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
