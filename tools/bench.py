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


# Figure, key in the JSON file, target, and Linux 6.1 on i386, counted alike.
HEADLINE = [
    ("hot pair `kmem_cache_alloc` + `kmem_cache_free`, 64 bytes",
     "kmem_cache.pair.64", "52", "103 / 106 / 257–1593"),
    ("the same, 512 bytes (hashed)", "kmem_cache.pair.512", "84", ""),
    ("alloc, mean of 10,000 objects of 64 bytes, populated cache",
     "kmem_cache.alloc.64", "30", "66 / 60 / 166"),
    ("free, likewise", "kmem_cache.free.64", "34", "117 / 125 / 111"),
    ("alloc, likewise, empty cache (slabs made on the way)",
     "kmem_cache.cold.64", "45", "79 / 80 / 909"),
    ("hot pair `kmem_alloc` + `kmem_free`, 64 bytes", "kmem.pair.64", "70",
     "156 / 156 / 1030"),
    ("512-byte object that its constructor fills, cached pair",
     "object.cached.512", "84", "103 / 106 / 791"),
    ("the same by `kmem_alloc`, construct, `kmem_free`",
     "object.uncached.512", "≥ 6 × cached", "618 / 618 / 852"),
    ("one page from buddy and back", "buddy.pair.0", "70",
     "399 (per-CPU list)"),
    ("one page through ten splits and ten merges", "buddy.chain.0", "330", ""),
    ("kernel entry to prompt, 128 MiB", "boot.instructions", "3,000,000", ""),
]


def headline(figures):
    yield "| figure | Slate | target | Linux SLAB / SLUB / SLOB |"
    yield "|---|---:|---:|---:|"
    for what, key, target, linux in HEADLINE:
        yield f"| {what} | {figures[key]:,.10g} | {target} | {linux} |"


def all_figures(figures):
    """A row per family of keys; a size, order or count in each cell."""
    families = {}
    for key, value in figures.items():
        name, _, last = key.rpartition(".")
        if last.isdigit():
            families.setdefault(name, []).append((int(last), value))
    yield "| key | figures |"
    yield "|---|---|"
    for name, cells in families.items():
        text = ", ".join(f"{n}: {v:.6g}" for n, v in sorted(cells))
        yield f"| `{name}.N` | {text} |"


def write_doc(path, figures):
    """Replaces what stands between the marks of the book's page."""
    text = path.read_text()
    for mark, rows in (("headline", headline), ("figures", all_figures)):
        before, rest = text.split(f"<!-- {mark} -->\n", 1)
        after = rest.split("<!-- end -->", 1)[1]
        table = "\n".join(rows(figures))
        text = f"{before}<!-- {mark} -->\n{table}\n<!-- end -->{after}"
    path.write_text(text)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("out", type=Path, help="the JSON file to write")
    parser.add_argument("--doc", type=Path, help="the page to bring up to date")
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
    if args.doc:
        write_doc(args.doc, figures)


if __name__ == "__main__":
    main()
