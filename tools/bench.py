#!/usr/bin/env python3
"""Measures Slate: `make bench`.

    tools/bench.py build/slate.elf build/bench.json

Runs the kernel's own `bench` under QEMU's counted mode, in which the
time-stamp counter advances by one per guest instruction, and writes what it
reports: flat keys, in instructions unless the key says otherwise. The same
kernel gives the same figures on every host. Only boot.host_ms is of this host:
the shortest of several uncounted runs from QEMU's start to the prompt.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from slate import qemu  # noqa: E402

BOOTS = 7
BUDGET = 100_000  # millions of instructions


def measure(kernel):
    """The figures that the kernel reports, and the run's text."""
    result = qemu.run(kernel, "bench; poweroff", budget=BUDGET)
    if result.problem or "bench-end" not in result.named:
        sys.exit("make bench: the run did not end well\n" + result.explain())
    figures = {e["key"]: e["value"] for e in result.named.get("bench", [])}
    prompt = result.named["prompt"][0]
    figures["boot.instructions"] = prompt["instructions"]
    return figures, result.text


def boot_ms(kernel):
    """Host milliseconds from starting QEMU to the prompt."""
    start = time.monotonic()
    with qemu.Machine(kernel) as machine:
        machine.prompt()
        return (time.monotonic() - start) * 1000


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("out", type=Path, help="the JSON file to write")
    args = parser.parse_args()

    figures, text = measure(args.kernel)
    figures["boot.host_ms"] = round(min(boot_ms(args.kernel)
                                        for _ in range(BOOTS)), 1)
    shown = qemu.plain(text).split("bench; poweroff", 1)[-1]
    print(shown.rsplit(qemu.Machine.PROMPT, 1)[0].strip("\n"))
    print(f"boot to prompt: {figures['boot.instructions']:,} instructions, "
          f"{figures['boot.host_ms']} ms on this host")
    args.out.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n")
    print(f"{len(figures)} figures written to {args.out}")


if __name__ == "__main__":
    main()
