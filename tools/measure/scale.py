"""Measures what several processors cost each other: `make scale`.

    python3 -m tools.measure.scale KERNEL INITRD BIG PROGRAMS OUT [--doc PAGE]

Three tables for 1, 2, 4 and 8 processors, of the slab layer alone and of
magazines before it: an object that is freed at once (a pair); many allocated,
then all freed; and a stream from one processor to another. A figure is for one
operation, in the pair and the stream an allocation and a free.

Instructions are counted by the kernel's command `scale` in QEMU, where no
processor waits for another. Atomic instructions, and lines of memory that move
from one processor's cache to another's, are counted on the host by
PROGRAMS/slab/mmscale and PROGRAMS/magazines/mmscale (mm/tests/scale/). Both
give the same figures on every machine. OUT.json and OUT.svg are written, and
the tables in the page between their marks.

What magazines cost in memory, on 4 processors: the heap after two workloads,
without them and with them, and the fragmentation of the paper's four steps, in
a machine with the archive BIG of many files.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from tools.measure import bench, table
from tools.measure.svg import Drawing, swatches
from tools.run import qemu

CPUS = (1, 2, 4, 8)
LAYERS = {"slab": "slab layer", "magazines": "magazines"}
PHASES = {"pair": "a pair: allocated and freed at once",
          "alloc": "each of 2,000 allocated, from an empty cache",
          "free": "each of these freed",
          "stream": "allocated by the first processor, freed by the last"}
FIGURES = {"instructions": "instructions", "atomics": "atomic instructions",
           "lines": "lines moved"}
BUDGET = 100_000  # millions of instructions

# Linux 6.1 on one processor: instructions for objects of 64 bytes, from an
# empty cache, counted in the same way. And processor cycles of the talk (C.
# Lameter, "Slab allocators in the Linux kernel: SLAB, SLOB, SLUB", 2014), on 8
# processors of a Haswell, the lowest over the sizes.
LINUX = {"pair": ("103", "106", "257 and more"), "alloc": ("79", "80", "909"),
         "free": ("121", "129", "114")}
TALK = {"pair": ("102", "52", "172"), "alloc": ("232", "90", "3,008"),
        "free": ("984", "119", "3,037"), "stream": ("761", "498", "2,013")}


def count(program, cpus):
    """{phase: {"atomics": …, "lines": …}} of one of the host's programs."""
    return json.loads(subprocess.run(
        [str(program), str(cpus)], check=True, encoding="utf-8",
        stdout=subprocess.PIPE).stdout)


def figures_of_kernel(kernel, cpus):
    """{key: instructions} of `scale` and of hot pairs."""
    done = qemu.run(kernel, "scale; bench kmem_cache; bench kmem; poweroff",
                    memory="128", budget=BUDGET, extra=["-smp", str(cpus)],
                    initrd="")
    if done.problem:
        sys.exit("make scale: the run failed\n" + done.explain())
    return {e["key"]: e["value"] for e in done.named["bench"]}


def measure(kernel, programs):
    """{key: value}: scale.LAYER.PHASE.FIGURE.CPUS, and smp.KEY.CPUS of the hot
    pairs."""
    found = {}
    for cpus in CPUS:
        kernels = figures_of_kernel(kernel, cpus)
        for key in kernels:
            if key.startswith(("kmem_cache.pair.", "kmem.pair.")):
                found[f"smp.{key}.{cpus}"] = kernels[key]
        for layer in LAYERS:
            counted = count(programs / layer / "mmscale", cpus)
            for phase in PHASES:
                at = f"scale.{layer}.{phase}"
                found[f"{at}.instructions.{cpus}"] = \
                    kernels[f"scale.{layer}.{phase}"]
                for figure in ("atomics", "lines"):
                    found[f"{at}.{figure}.{cpus}"] = counted[phase][figure]
    return found


FOUR = ["-smp", "4"]


def heap(kernel, initrd):
    """{key: KiB} of the heap after kenbus and hackbench, with magazines `off`
    and `on`; `reaped`: after `reap -a`."""
    found = {}
    for magazines in ("off", "on"):
        done = qemu.run(kernel, "run kenbus; run hackbench; reap -a; poweroff",
                        memory="64", budget=BUDGET, extra=FOUR,
                        initrd=initrd, append=f"magazines={magazines}")
        now = re.search(r"slab memory (\d+) -> (\d+) KiB",
                        qemu.plain(done.text))
        ended = [e["exit"] or e["signal"] for e in done.named.get("run", [])]
        if done.problem or not now or any(ended):
            sys.exit("make scale: the workloads failed\n" + done.explain())
        found[f"smp.heap.{magazines}.4"] = int(now[1])
        found[f"smp.heap.{magazines}.reaped.4"] = int(now[2])
    return found


def fragmentation(kernel, big):
    """{key: per cent}."""
    found, _ = bench.fragmentation(kernel, str(big), "", "reap -a", FOUR)
    return {f"smp.{key}.4": value for key, value in found.items()}


# ---- text -------------------------------------------------------------------


def cells(found, layer, phase, figure):
    for cpus in CPUS:
        value = found[f"scale.{layer}.{phase}.{figure}.{cpus}"]
        yield f"{value:.1f}" if figure == "instructions" else f"{value:.2f}"


def others(phase):
    """(what, SLAB, SLUB, SLOB) of Linux's allocators."""
    if phase in LINUX:
        yield "instructions, 1 processor", *LINUX[phase]
    yield "the talk's cycles", *TALK[phase]


def print_tables(found):
    for phase, title in PHASES.items():
        head = "".join(f"{cpus:>8}" for cpus in CPUS)
        print(f"{title}\n  {'':33}{head}  processors")
        for layer, name in LAYERS.items():
            for figure, what in FIGURES.items():
                row = "".join(f"{cell:>8}"
                              for cell in cells(found, layer, phase, figure))
                print(f"  {name:12} {what:20}{row}")
        for what, slab, slub, slob in others(phase):
            print(f"  Linux, {what}: SLAB {slab}, SLUB {slub}, SLOB {slob}")
        print()


def tables(found):
    """The same as Markdown."""
    for phase, title in PHASES.items():
        yield f"| {title} | 1 | 2 | 4 | 8 |"
        yield "|---|---:|---:|---:|---:|"
        for layer, name in LAYERS.items():
            for figure, what in FIGURES.items():
                row = " | ".join(cells(found, layer, phase, figure))
                yield f"| {name}, {what} | {row} |"
        yield ""
        for what, slab, slub, slob in others(phase):
            yield f"Linux, {what}: SLAB {slab}, SLUB {slub}, SLOB {slob}."
        yield ""


def write_heap(path, on, off, reaped):
    """The page's sentences on what magazines cost in memory, in KiB."""
    text = re.sub(
        r"(the heap\s+has\s+)[\d,]+( KiB, with `magazines=off` )[\d,]+",
        rf"\g<1>{on:,}\g<2>{off:,}", path.read_text(encoding="utf-8"))
    path.write_text(re.sub(r"(it\s+has\s+)[\d,]+( KiB\s+in\s+both)",
                           rf"\g<1>{reaped:,}\g<2>", text), encoding="utf-8")


# ---- picture ----------------------------------------------------------------

WIDE, HIGH, GAP = 190, 130, 48     # of a panel, and between two
KINDS = {"slab": "bad", "magazines": "used"}


def panel(d, x, y, found, phase, most):
    """Bars of the lines that move, for each number of processors."""
    d.text(x, y, phase, "name")
    floor = y + 20 + HIGH
    step = WIDE / len(CPUS)
    for i, cpus in enumerate(CPUS):
        for k, layer in enumerate(LAYERS):
            value = found[f"scale.{layer}.{phase}.lines.{cpus}"]
            left = x + i * step + k * step * 0.42
            height = value / most * HIGH
            d.rect(left, floor - height, step * 0.36, height, KINDS[layer],
                   f"{LAYERS[layer]}, {cpus} processors: {value:.2f}")
            d.text(left + step * 0.18, floor - height - 4, f"{value:.1f}",
                   "small dim mid")
        d.text(x + (i + 0.4) * step, floor + 16, str(cpus), "small dim mid")
    d.line(x, floor, x + WIDE, floor, "axis")


def draw(found):
    width = len(PHASES) * (WIDE + GAP) - GAP
    d = Drawing(width, "What processors cost each other",
                "Lines of memory that move from one processor's cache to "
                "another's, for one operation, on 1, 2, 4 and 8 processors")
    d.text(0, 16, "Lines of memory that move between processors, for one "
           "operation", "title")
    swatches(d, 0, 42, [(kind, LAYERS[layer])
                        for layer, kind in KINDS.items()], width)
    most = max(value for key, value in found.items() if ".lines." in key)
    for i, phase in enumerate(PHASES):
        panel(d, i * (WIDE + GAP), 78, found, phase, most)
    d.text(0, 78 + HIGH + 58, "1, 2, 4 and 8 processors. alloc and free: 2,000 "
           "objects each. stream: from the first processor to the last.",
           "small dim")
    return d


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel", type=Path, help="for several processors")
    parser.add_argument("initrd", type=Path)
    parser.add_argument("big", type=Path, help="one of some thousand files")
    parser.add_argument("programs", type=Path)
    parser.add_argument("out", type=Path, help="without .json and .svg")
    parser.add_argument("--doc", type=Path, help="the page to bring up to date")
    args = parser.parse_args()
    found = measure(args.kernel, args.programs)
    print_tables(found)
    memory = {**heap(args.kernel, args.initrd),
              **fragmentation(args.kernel, args.big)}
    print("memory on 4 processors: the heap in KiB, fragmentation in per cent")
    for key, value in memory.items():
        print(f"  {key:32}{value:>10}")
    found.update(memory)
    args.out.with_suffix(".json").write_text(
        json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    args.out.with_suffix(".svg").write_text(draw(found).file(), "utf-8")
    print(f"{len(found)} figures written to {args.out}.json, "
          f"drawn in {args.out}.svg")
    if args.doc:
        table.put_in(args.doc, "scale", "\n".join(tables(found)))
        write_heap(args.doc, *(found[f"smp.heap.{state}.4"] for state in
                               ("on", "off", "on.reaped")))


if __name__ == "__main__":
    main()
