"""Makes the pictures of the book: `make pictures`.

    python3 -m tools.book.pictures build/slate-workshop.elf docs/pictures

Each is made from the kernel's output in a counted run, and has no address and
no time in it, so that the same sources give the same files and a change of the
sources changes only the pictures that show it.

    slabs.svg      a part of the drawing of `make picture`
    cachesim.svg   the drawing of `make cachesim`
    small.svg colours.svg large.svg redzones.svg
                   the layouts of slabs
    life.svg       the life of an object
    slabtop.svg    a screen of slabtop; its figures are rates

tools/test/book/test_pictures.py compares them with those in the tree.
"""

import argparse
import sys
from pathlib import Path

from tools.book import layouts, screen
from tools.measure import cachesim, picture, pictures, statistics
from tools.run import qemu
from tools.watch import heap, slabtop

LOOK = "buddyinfo -j; kmastat -j"
WATCHED = (f"run -b kenbus -u 4 -i 1000; {LOOK}; run sleep 0.2; {LOOK}; "
           "poweroff")
PLAIN, REVERSE = 0x07, 0x70    # colours of a screen
DRAWN = ("kmem create box 200 8 ctor; kmem alloc box 90; "
         "kmem free box 41 random; run -b sleep 60; run -b sleep 60; "
         "run sleep 0.2; reap -a")
CACHES = ["box", "kmem_cache", "inode", "handle_table", "page_table"]
EACH = 4
LARGEST = 150 * 1024    # bytes of a file in the tree


def watched(kernel):
    run = qemu.run(kernel, WATCHED, memory="32")
    if run.problem:
        raise qemu.QemuError(run.explain())
    before, now = heap.moments(qemu.plain(run.text))
    before.ms, now.ms = (e["ms"] for e in run.named["command"]
                         if e["name"] == "kmastat")
    lines = slabtop.screen(slabtop.Table(now, before), "alloc",
                           most=slabtop.ROWS)
    cells = b""
    for line in lines + [[]] * (screen.ROWS - len(lines)):
        row = b"".join(bytes([ord(c), REVERSE if reverse else PLAIN])
                       for text, reverse in line for c in text)
        cells += row + bytes([ord(" "), PLAIN]) * (screen.COLUMNS
                                                   - len(row) // 2)
    return screen.draw(cells, "slabtop")


def slabs(kernel):
    stats = statistics.read(picture.gather(kernel, DRAWN, "50", "32"))
    return pictures.slabs(stats, only=CACHES, each=EACH, tips=False).file()


def simulated(kernel):
    drawing, _ = cachesim.draw(kernel, cachesim.wishes({}), "486", "64")
    return drawing.file()


def drawn(kernel):
    """{name: text} of all pictures."""
    facts = layouts.Facts(kernel)
    return {"slabs.svg": slabs(kernel), "cachesim.svg": simulated(kernel),
            **{f"{name}.svg": drawing.file()
               for name, drawing in layouts.layouts(facts).items()},
            "life.svg": layouts.life(facts).file(),
            "slabtop.svg": watched(kernel)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, text in drawn(args.kernel).items():
        (args.folder / name).write_text(text, encoding="utf-8")
        size = (args.folder / name).stat().st_size
        print(f"{args.folder / name}: {size:,} bytes")
        if size > LARGEST:
            sys.exit(f"pictures: {name} is larger than {LARGEST:,} bytes")


if __name__ == "__main__":
    try:
        main()
    except (OSError, qemu.QemuError, statistics.StatisticsError) as e:
        sys.exit(f"pictures: {e}")
