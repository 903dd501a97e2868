"""Makes the pictures of the book: `make screenshots`.

    python3 -m tools.measure.screenshots build/slate.elf docs/pictures

slabtop.png is a screen dump by QEMU. The machine counts instructions and stops
when a certain screen is complete, so its figures depend on the kernel, and only
slightly on the speed at which the serial line is read.
slabs.svg is a part of what `make picture` draws, cachesim.svg of what `make
cachesim` does; the same kernel gives the same files.
"""

import argparse
import sys
from pathlib import Path

from tools.measure import cachesim, picture, pictures, statistics
from tools.run import qemu

WATCHED = "run -b kenbus -u 4 -i 1000; slabtop -d 0.2 -s alloc"
SCREENS = 2    # the first has averages since boot
DRAWN = ("kmem create box 200 8 ctor; kmem alloc box 90; "
         "kmem free box 41 random; " + picture.WORKLOAD)
CACHES = ["box", "kmem_cache", "inode", "handle_table", "page_table"]
EACH = 4
LARGEST = 150 * 1024    # bytes of a file in the tree


def slabtop(kernel, path):
    with qemu.Machine(kernel, f"run={WATCHED}", memory="32",
                      counted=True, screen=True) as machine:
        for _ in range(SCREENS):
            machine.expect(r"\x1b\[J")
        machine.qmp.execute("stop")
        machine.qmp.execute("screendump", filename=str(path.resolve()),
                            format="png")


def slabs(kernel, path):
    lines = picture.gather(kernel, DRAWN, "50", "32")
    stats = statistics.read(lines)
    path.write_text(pictures.slabs(stats, only=CACHES, each=EACH,
                                   tips=False).file())


def simulated(kernel, path):
    drawing, _ = cachesim.draw(kernel, cachesim.wishes({}), "486", "64")
    path.write_text(drawing.file())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for make, name in ((slabtop, "slabtop.png"), (slabs, "slabs.svg"),
                       (simulated, "cachesim.svg")):
        path = args.folder / name
        make(args.kernel, path)
        size = path.stat().st_size
        print(f"{path}: {size:,} bytes")
        if size > LARGEST:
            sys.exit(f"screenshots: {path} is larger than {LARGEST:,} bytes")


if __name__ == "__main__":
    try:
        main()
    except (OSError, qemu.QemuError, statistics.StatisticsError) as e:
        sys.exit(f"screenshots: {e}")
