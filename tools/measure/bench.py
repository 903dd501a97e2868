"""Measures Slate: `make bench`.

    python3 -m tools.measure.bench KERNEL BIG build/bench.json

Runs the kernel's command `bench` in QEMU's counted mode, where the time-stamp
counter advances by one per guest instruction, and writes its figures: flat
keys, in instructions unless the key says otherwise. The same kernel gives the
same figures on every host. Only boot.host_ms depends on the host: the shortest
of several uncounted runs from QEMU's start to the prompt. INITRD_TOOL in the
environment is the command that makes an initrd.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.measure.table import percent, put_in
from tools.run import disk, qemu
from tools.watch import heap, reports

BOOTS = 7
BUDGET = 300_000  # millions of instructions


def measure(kernel):
    """The kernel's figures, and the run's text."""
    result = qemu.run(kernel, "bench; poweroff", budget=BUDGET)
    if result.problem or "bench-end" not in result.named:
        sys.exit("make bench: the run failed\n" + result.explain())
    figures = {e["key"]: e["value"] for e in result.named.get("bench", [])}
    prompt = result.named["prompt"][0]
    figures["boot.instructions"] = prompt["instructions"]
    return figures, result.text


# The workloads of the paper's section 5.2, in 16 MiB plus the archive of files,
# which the paper's machine had on a disk. After each, the heap rests for two
# working-set intervals and is reaped, as the next task short of memory would
# do; twice, because the freed slabs leave free slab headers, which must rest
# too.
REST = "run sleep 31; reap; run sleep 31; reap"
FRAG_STEPS = ["boot", "spike", "walk", "kenbus"]


def fragmentation(kernel, initrd, prefix, rest=REST, extra=()):
    """Total fragmentation after each step, per cent, and the lines of the last
    table by cache."""
    commands = ["kmastat -j"]
    for step in FRAG_STEPS[1:]:
        commands += [f"run {step}", rest, "kmastat -j"]
    archive = Path(initrd or qemu.initrd_of(kernel))
    result = qemu.run(kernel, "; ".join(commands + ["poweroff"]),
                      memory=str(16 + (archive.stat().st_size >> 20)),
                      budget=BUDGET, initrd=initrd, extra=extra)
    ended = [e["exit"] or e["signal"] for e in result.named.get("run", [])]
    if result.problem or any(ended):
        sys.exit("make bench: the workloads failed\n"
                 + result.explain())
    moments = list(heap.moments(qemu.plain(result.text)))
    parts = map(heap.fragmentation, moments)
    found = {f"frag.{prefix}{step}": float(percent(p.lost, p.consumed, 2))
             for step, p in zip(FRAG_STEPS, parts, strict=True)}
    return found, list(reports.frag_caches(moments[-1]))


# 5,000 files in folders of 50, and one file of 4 MiB.
DISK_FILES, DISK_FOLDERS, DISK_BIG = 5000, 100, 4 << 20


def fill_disk(folder):
    for i in range(DISK_FOLDERS):
        (folder / f"many/{i:03}").mkdir(parents=True)
        for j in range(DISK_FILES // DISK_FOLDERS):
            (folder / f"many/{i:03}/file{j:02}").touch()
    (folder / "big").write_bytes(bytes(range(256)) * (DISK_BIG // 256))


def file_servers(kernel):
    """Reads and finds files through the ext2 server, with a disk in RAM so that
    the run can be counted, and a small file in memfs, which shows the cost of a
    server."""
    with tempfile.TemporaryDirectory(prefix="slate-") as name:
        folder = Path(name)
        fill_disk(folder / "files")
        disk.make(folder / "disk.img", 24, folder=folder / "files",
                  inodes=8192)
        initrd = folder / "initrd.tar"
        tool = shlex.split(os.environ["INITRD_TOOL"])
        subprocess.run([*tool, "--file", f"disk.img={folder}/disk.img",
                        "--out", initrd], check=True)
        result = qemu.run(
            kernel, "run -p init diskbench -p ext2 /disk; "
            "run -p init sh -c 'mkdir /tmp/m; memfs /tmp/m & sleep 1; "
            "cp /bin/sh /tmp/m/big; diskbench -p memfs /tmp/m'; poweroff",
            append="start=ramext2", initrd=initrd, budget=BUDGET)
    if result.problem:
        sys.exit("make bench: the file servers failed\n"
                 + result.explain())
    return {e["key"]: e["value"] for e in result.named.get("bench", [])}


def boot_ms(kernel):
    """Host milliseconds from starting QEMU to the prompt."""
    start = time.monotonic()
    with qemu.Machine(kernel) as machine:
        machine.prompt()
        return (time.monotonic() - start) * 1000


def print_fragmentation(figures, why):
    """The table, with the paper's figures."""
    print("total fragmentation, per cent, 16 MiB")
    print(f"  {'':24}" + "".join(f"{step:>9}" for step in FRAG_STEPS))
    for name, prefix in (("resting heap over 1 MiB", "frag."),
                         ("the usual initrd", "frag.small.")):
        print(f"  {name:24}" + "".join(f"{figures[prefix + step]:9.2f}"
                                       for step in FRAG_STEPS))
    print(f"  {'the paper':24}" + "".join(f"{n:>9}" for n in (11, 13, 14, 14)))
    print("parts of the usual initrd's last figure:")
    print("\n".join("  " + line for line in why[:8]))


# Figure, key in the JSON file, target, and Linux 6.1 on i386, counted the same
# way.
HEADLINE = [
    ("hot pair `kmem_cache_alloc` + `kmem_cache_free`, 64 bytes",
     "kmem_cache.pair.64", "58", "103 / 106 / 257–1593"),
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

# Figure, key, target, and two teaching systems, counted the same way: xv6 for
# the x86, and Fiwix.
PROGRAMS = [
    ("null system call", "syscall.null", "90", "1,397", "104"),
    ("switch between two address spaces", "task.switch", "150", "", ""),
    ("pipe round trip, 1 byte, two processes", "pipe.roundtrip", "1,200",
     "27,244", "1,812"),
    ("short message, call and reply, two processes", "ipc.roundtrip", "600",
     "", ""),
    ("demand-zero page fault, zeroing included", "fault.zero", "1,500", "",
     ""),
    ("fork + exit + wait", "task.fork_exit_wait", "40,000", "1,987,048",
     "238,761"),
    ("fork + exec + exit + wait", "task.fork_exec_exit_wait", "100,000",
     "4,028,214", ""),
    ("pipe create + close of both ends, object caching",
     "pipe.create_close.cached", "700", "16,115", "2,825"),
    ("the same without the cache of pipes", "pipe.create_close.uncached", "",
     "", ""),
    ("interrupt to driver, machine idle", "irq.latency", "500", "", ""),
    ("the same, from a program that computes", "irq.latency.busy", "500", "",
     ""),
    ("the same, cause read, line open again", "irq.roundtrip", "600", "", ""),
]


# Figure, the end of its key, and the instructions in its unit.
FILES = [
    ("4 KiB read, in the server's memory, each", "read4k", 1),
    ("4 MiB read in pieces of 64 KiB", "read", 1000),
    ("the same again", "read.again", 1000),
    ("`find` over all files", "find", 1000),
    ("the same again", "find.again", 1000),
]


def file_rows(figures):
    """(figure, ext2's value, memfs's value). memfs has one small file."""
    for what, key, unit in FILES:
        memfs = f"{figures['memfs.read4k']:,}" if key == "read4k" else ""
        yield what, f"{figures[f'ext2.{key}'] * unit:,}", memfs


def files(figures):
    yield "| figure | ext2, a disk in RAM, 5,000 files | memfs |"
    yield "|---|---:|---:|"
    for what, ext2, memfs in file_rows(figures):
        yield f"| {what} | {ext2} | {memfs} |"


def print_files(figures):
    print("file servers, instructions: ext2 on a disk in RAM, and memfs")
    for what, ext2, memfs in file_rows(figures):
        print(f"  {what:44}{ext2:>14}{memfs:>14}")


def programs(figures):
    yield "| figure | Slate | target | xv6 | Fiwix |"
    yield "|---|---:|---:|---:|---:|"
    for what, key, target, xv6, fiwix in PROGRAMS:
        yield (f"| {what} | {figures[key]:,.10g} | {target} | {xv6} | "
               f"{fiwix} |")


def fragments(figures):
    yield "| total fragmentation, per cent | boot | spike | walk | kenbus |"
    yield "|---|---:|---:|---:|---:|"
    for what, prefix in (("Slate, resting heap over 1 MiB", "frag."),
                         ("Slate, the usual initrd", "frag.small.")):
        cells = " | ".join(f"{figures[prefix + s]:.2f}" for s in FRAG_STEPS)
        yield f"| {what} | {cells} |"
    yield "| the paper, SunOS 5.4 on 16 MB | 11 | 13 | 14 | 14 |"


def kinds(figures):
    """The table of object caching, the most expensive kind first, makepipe
    last."""
    prefix = "kinds.without."
    rows = sorted(((value, key[len(prefix):]) for key, value in figures.items()
                   if key.startswith(prefix)),
                  key=lambda row: (row[1] == "makepipe", -row[0], row[1]))
    yield "| kind of object | without caching | with caching | factor |"
    yield "|---|---:|---:|---:|"
    for without, kind in rows:
        cached = figures[f"kinds.with.{kind}"]
        yield (f"| `{kind}` | {int(without):,} | {int(cached):,} | "
               f"{without / cached:.1f} |")


# The states of a cache in which the hot pair is counted.
MODES = [("off", "none, having been in others"), ("F", "F, freed addresses"),
         ("P", "P, poison"), ("Z", "Z, redzones"), ("U", "U, audit"),
         ("S", "S, unmapping"), ("G", "G, a page per buffer"),
         ("FPZU", "FPZU")]


def debugging(figures):
    yield "| modes | 64 bytes | 512 bytes |"
    yield "|---|---:|---:|"
    for letters, what in MODES:
        cells = " | ".join(
            f"{figures[f'kmem_cache.pair.{size}.debug_{letters}']:,.6g}"
            for size in (64, 512))
        yield f"| {what} | {cells} |"


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
    for mark, rows in (("headline", headline), ("programs", programs),
                       ("kinds", kinds), ("files", files),
                       ("fragmentation", fragments), ("debugging", debugging),
                       ("figures", all_figures)):
        put_in(path, mark, "\n".join(rows(figures)) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("big", help="an initrd of some thousand files")
    parser.add_argument("out", type=Path, help="the JSON file to write")
    parser.add_argument("--doc", type=Path, help="the page to bring up to date")
    args = parser.parse_args()

    figures, text = measure(args.kernel)
    figures["boot.host_ms"] = round(min(boot_ms(args.kernel)
                                        for _ in range(BOOTS)), 1)
    small, why = fragmentation(args.kernel, None, "small.")
    figures.update(small)
    figures.update(fragmentation(args.kernel, args.big, "")[0])
    figures.update(file_servers(args.kernel))
    shown = qemu.plain(text).split("bench; poweroff", 1)[-1]
    print(shown.rsplit(qemu.Machine.PROMPT, 1)[0].strip("\n"))
    print_fragmentation(figures, why)
    print_files(figures)
    print(f"boot to prompt: {figures['boot.instructions']:,} instructions, "
          f"{figures['boot.host_ms']} ms on this host")
    args.out.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n",
                        encoding="utf-8")
    print(f"{len(figures)} figures written to {args.out}")
    if args.doc:
        write_doc(args.doc, figures)


if __name__ == "__main__":
    main()
