"""Draws the slab allocator's statistics: `make picture`.

    python3 -m tools.measure.picture build/slate.elf build/picture
    python3 -m tools.measure.picture --from statistics.jsonl build/picture

Boots Slate in QEMU in the deterministic mode, runs a workload while the kernel
takes samples (`sample`), then collects `kmastat -j`, `slabs -j`,
`buddyinfo -j` and `pages -j`, and writes into the folder

    statistics.jsonl   the kernel's output, a JSON object per line
    slabs.svg          every cache's slabs as rows of cells
    buddy.svg          physical memory by blocks and owners
    memory.svg         memory by cache over time
    index.html         all three on a page that needs nothing else

With --from a file of such lines is drawn instead. make passes on, in the
environment, CMD (the workload: commands of the kernel shell), STEP
(milliseconds between two samples, 10 at least), MEM (MiB) and APPEND (kernel
options).
"""

import argparse
import html
import json
import os
import re
import sys
from pathlib import Path

from tools.measure import page, pictures, statistics
from tools.run import qemu

# A spike and the reap after it, then users at work; the pictures show a moment
# in the middle of their work.
WORKLOAD = "run spike -n 6; reap -a; run -b kenbus -u 8 -i 100; run sleep 0.2"
STATISTICS = "kmastat -j; slabs -j; buddyinfo -j; pages -j; poweroff"
MARK = "-- statistics --"
BUDGET = 60_000    # millions of instructions: a minute of guest time


def commands_of(workload):
    """The commands of a line, divided as the kernel's shell does."""
    return [c.strip() for c in re.findall(
        r"""(?:[^;'"]|'[^']*'|"[^"]*"|['"])+""", workload) if c.strip()]


def began(commands, events):
    """An event for each command that began, with all its words."""
    rest = iter(commands)
    for event in events:
        whole = next((c for c in rest if c.split()[0] == event["name"]), None)
        if whole:
            yield {**event, "name": whole}


def gather(kernel, workload, step, memory, append=""):
    """Runs the workload; returns the lines of the statistics."""
    run = qemu.run(kernel, f"sample {step}; {workload}; sample off; "
                   f"echo {MARK}; {STATISTICS}", append, memory, budget=BUDGET)
    text = qemu.plain(run.text)
    if run.problem or f"\n{MARK}\n" not in text:
        said = "\n".join(text.splitlines()[-12:])
        raise qemu.QemuError(f"{run.problem or 'no statistics came'}; the last "
                             f"of what it said:\n{said}")
    lines = text.split(f"\n{MARK}\n", 1)[1].splitlines()
    marks = began(commands_of(workload), run.named["command"][1:])
    return [json.dumps(e) for e in [*run.named.get("sample", []), *marks]] + \
        [line for line in lines if line.startswith("{")]


def summary(stats):
    """A table of the caches that have memory, and its sum."""
    yield ("<table><tr><th>cache<th>object, bytes<th>allocated<th>objects"
           "<th>slabs<th>memory")
    for cache in stats.by_memory():
        name = html.escape(cache.name) + (" !" if cache.bad else "")
        yield (f"<tr><td>{name}<td>{cache.size:,}<td>{cache.inuse:,}"
               f"<td>{cache.total:,}<td>{cache.count:,}"
               f"<td>{pictures.size(cache.mem)}")
    caches = stats.caches.values()
    yield (f"<tr><th>{pictures.plural(len(stats.by_memory()), 'cache')}<th>"
           f"<th>{sum(c.inuse for c in caches):,}"
           f"<th>{sum(c.total for c in caches):,}"
           f"<th>{sum(c.count for c in caches):,}"
           f"<th>{pictures.size(sum(c.mem for c in caches))}</table>")


def memory_note(stats):
    if len(stats.samples) < 2:
        return "No samples were taken."
    first, last = stats.samples[0], stats.samples[-1]
    gap = min(b.ms - a.ms for a, b in zip(stats.samples, stats.samples[1:]))
    return (f"{pictures.plural(len(stats.samples), 'sample')} from "
            f"{first.ms:,} to {last.ms:,} ms of guest time, one each "
            f"{gap} ms. Each band is what a cache had from the page supplier: "
            "slabs and hash tables. Above them is what programs had mapped. "
            "A number on the axis is where a command began.")


def body(stats, drawings, workload):
    where = f"while <code>{html.escape(workload)}</code> ran" if workload \
        else "from a recorded file"
    yield f"<p>Slate\u2019s slab allocator {where}.</p>"
    for doubt in stats.doubts:
        yield f'<p class="doubt">! {html.escape(doubt)}</p>'
    yield "<h2>Memory by cache over time</h2>"
    yield f"<p>{memory_note(stats)}</p>"
    yield f"<figure>{drawings['memory'].inline()}</figure>"
    yield "<h2>Slabs</h2>"
    yield ("<p>The moment after the last sample. Each row is a slab, its bytes "
           "to scale from left to right, each cell an object. Slabs of one "
           "cache begin their objects at different offsets, their colours, so "
           "that equal parts of objects do not meet in the same lines of the "
           "processor\u2019s cache. Caches of one object per slab have many "
           "slabs in a row.</p>")
    yield f"<figure>{drawings['slabs'].inline()}</figure>"
    yield "\n".join(summary(stats))
    yield "<h2>Physical memory</h2>"
    yield ("<p>The buddy allocator\u2019s blocks at the same moment: a block "
           "of order <i>n</i> is 2<sup><i>n</i></sup> frames of 4 KiB, aligned "
           "to its own size, and so always a rectangle here.</p>")
    yield f"<figure>{drawings['buddy'].inline()}</figure>"
    yield ('<p class="note">Point at a shape to see what it is. Made by '
           "<code>make picture</code>.</p>")


def draw(stats, folder, workload="", only=None, each=pictures.EACH_STATE,
         tips=True):
    """Writes the pictures of a Statistics into a folder."""
    colours = pictures.palette(stats)
    drawings = {"slabs": pictures.slabs(stats, colours, only, each, tips),
                "buddy": pictures.buddy(stats, colours),
                "memory": pictures.memory(stats, colours)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawing in drawings.items():
        (folder / f"{name}.svg").write_text(drawing.file(), encoding="utf-8")
    (folder / "index.html").write_text(
        page.html("The heap in pictures", body(stats, drawings, workload)),
        encoding="utf-8")


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel", nargs="?", help="boot this")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--from", dest="source", type=Path,
                        help="draw recorded statistics instead")
    parser.add_argument("--only", metavar="CACHE,...",
                        help="of the slabs, those of these caches")
    parser.add_argument("--each", type=int, default=pictures.EACH_STATE,
                        metavar="N", help="slabs of a state that are drawn; "
                        "0 is all (%(default)s)")
    parser.add_argument("--no-tips", action="store_true",
                        help="smaller files without addresses")
    args = parser.parse_args()
    if (args.kernel is None) == (args.source is None):
        parser.error("give a kernel, or --from and a file")
    return args


def main():
    args = arguments()
    workload = os.environ.get("CMD") or WORKLOAD
    step, memory = os.environ.get("STEP") or "10", os.environ.get("MEM") or "32"
    if not step.isdigit() or int(step) < 10:
        raise statistics.StatisticsError(f"STEP={step}: a number of "
                                         "milliseconds from 10 on")
    if args.source:
        workload = ""
        lines = args.source.read_text("utf-8", "replace").splitlines()
    else:
        lines = gather(args.kernel, workload, step, memory,
                       os.environ.get("APPEND", ""))
    stats = statistics.read(lines, str(args.source or "statistics"))
    only = args.only.split(",") if args.only else None
    for name in only or ():
        if name not in stats.caches:
            raise statistics.StatisticsError(f"--only: no cache is called "
                                             f"{name}")
    draw(stats, args.folder, workload, only, args.each, not args.no_tips)
    if not args.source:
        (args.folder / "statistics.jsonl").write_text(
            "\n".join(lines) + "\n", encoding="utf-8")
    for doubt in stats.doubts:
        print(f"picture: ! {doubt}", file=sys.stderr)
    objects = sum(c.total for c in stats.caches.values())
    print(f"{args.folder}/index.html: "
          f"{pictures.plural(len(stats.by_memory()), 'cache')}, "
          f"{pictures.plural(objects, 'object')}, "
          f"{pictures.plural(len(stats.samples), 'sample')}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, qemu.QemuError, statistics.StatisticsError) as e:
        sys.exit(f"picture: {e}")
