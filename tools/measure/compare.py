"""Compares Slate's allocator with those of mm/others/: `make compare`.

    python3 -m tools.measure.compare BUILD OUT [ALLOCATOR ...]

Boots one kernel for each allocator (BUILD/compare/NAME.elf), runs the same
commands in all of them, in QEMU's counted mode, and replays the reference trace
R1 (BUILD/replay/replay). OUT/compare.json has all figures, OUT/compare.txt the
tables, OUT/index.html both as a page with plots. Every figure is an exact count
of instructions, pages or bytes: it is the same on every host.

Beside a figure is the one that was published, where there is one. They come
from other machines, so that only orders and ratios can be the same: each
expectation says whether they are.
"""

import argparse
import json
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from html import escape
from pathlib import Path

from tools.measure import kernel_replay, page, scale, table
from tools.measure.svg import Drawing, swatches
from tools.run import qemu
from tools.watch import heap

BUDGET = 400_000  # millions of instructions
COLUMNS = 88      # of the text
# MiB in which the heap's fragmentation is measured. The paper's machine had 16;
# SLUB has not enough for 256 processes there, since its slabs are larger.
MEMORY = 20
STEPS = ["boot", "spike", "find", "kenbus"]
PROGRAMS = {"spike": "spike", "find": "walk", "kenbus": "kenbus"}
WORKLOADS = {"find": "walk", "kenbus": "kenbus", "hackbench": "hackbench",
             "fork 256": "spike"}
# Of the program bench: key, and what the table says.
OPERATIONS = {"task.fork_exit_wait": "fork, exit, wait",
              "task.fork_exec_exit_wait": "fork, exec, exit, wait",
              "pipe.create_close.cached": "pipe, close"}
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
OBJECTS = (64, 128, 256, 512, 1024)

NAMES = {"slab": "Slate's slab allocator", "sunos": "SunOS 4.1.3",
         "bsd": "4.4BSD", "svr4": "SVr4", "slob": "Linux SLOB",
         "slmb": "SLMB", "linux_slab": "Linux SLAB",
         "linux_slub": "Linux SLUB", "yours": "yours"}

# The slab paper, section 5.1: microseconds of an allocation and a free on a
# SPARCstation-2; "slab" is its cache, "untyped" is kmem_alloc. Section 5.2:
# total fragmentation, per cent.
PAPER_PAIR = {"slab": 3.8, "bsd": 4.1, "untyped": 4.7, "svr4": 9.4,
              "sunos": 25.0}
PAPER_WASTE = {"slab": (11, 13, 14, 14), "sunos": (7, 19, 19, 27),
               "bsd": (20, 43, 43, 45), "svr4": (23, 45, 45, 46)}
# C. Lameter, "Slab allocators in the Linux kernel: SLAB, SLOB, SLUB", 2014:
# processor cycles on a Haswell, the lowest over the sizes.
TALK = {"linux_slab": (66, 73, 102), "linux_slub": (45, 70, 52),
        "slob": (183, 173, 172)}
# An article of 2017: seconds of Linux's hackbench, means of three runs, by
# processors and groups.
ARTICLE = {"slob": {"1": {"1": 10.2, "10": 221.5},
                    "4": {"1": 9.6, "10": 120.7}},
           "slmb": {"1": {"1": 19.4, "10": 212.3},
                    "4": {"1": 8.6, "10": 96.7}},
           "linux_slub": {"4": {"1": 7.8, "10": 49.6}}}
PROCESSORS, GROUPS, LOOPS = (1, 4), (1, 10), 10


# ---- measurement -------------------------------------------------------------

class CompareError(Exception):
    """One line that says why there are no figures."""


def run(kernel, commands, memory, initrd, cpus=1):
    result = qemu.run(kernel, f"{commands}; poweroff", memory=str(memory),
                      budget=BUDGET, initrd=initrd, extra=["-smp", str(cpus)])
    ended = [e["exit"] or e["signal"] for e in result.named.get("run", [])]
    if result.problem or len(ended) != commands.count("run ") or any(ended) \
            or re.search("(compare|messages): ", result.text):
        raise CompareError(f"{kernel}: the run failed\n" + result.explain())
    return result


def costs(kernel, initrd):
    """{when: {what: {size: instructions}}}, after boot and after work."""
    result = run(kernel, "compare boot; run spike; run kenbus; run hackbench; "
                 "compare work", 128, initrd)
    found = {}
    for e in result.named["compare"]:
        found.setdefault(e["when"], {}).setdefault(
            e["what"], {})[str(e["size"])] = e["value"]
    return found


def samples(text):
    """{bytes that clients have requested, bytes held} of each `kmastat -j` in
    the output of a machine."""
    text = qemu.plain(text)
    others = [row for row in qemu.json_lines(text) if "allocator" in row]
    if others:
        return [{"requested": o["requested"], "held": o["held"]}
                for o in others]
    parts = map(heap.fragmentation, heap.moments(text))
    return [{"requested": p.requested, "held": p.consumed} for p in parts]


def waste(sample):
    return float(table.percent(sample["held"] - sample["requested"],
                               sample["held"], 1))


# The heap rests for two intervals of the working set, and is sampled before and
# after the allocator returns what it can, as under memory pressure.
REST = "run sleep 31; kmastat -j; reap -a; kmastat -j"


def fragmentation(kernel, big):
    """[{"raw": sample, "reclaimed": sample}] after each of STEPS, in as much
    memory plus the archive of files."""
    work = "".join(f"; run {PROGRAMS[step]}; {REST}" for step in STEPS[1:])
    megabytes = MEMORY + (big.stat().st_size >> 20)
    found = samples(run(kernel, REST + work, megabytes, str(big)).text)
    if len(found) != 2 * len(STEPS):
        raise CompareError(f"{kernel}: {len(found)} samples of the heap, not "
                           f"{2 * len(STEPS)}")
    return [{"raw": raw, "reclaimed": reclaimed}
            for raw, reclaimed in zip(found[::2], found[1::2])]


def workload(kernel, program, big):
    """Instructions of a program, and pages of the heap: before, at most."""
    result = run(kernel, f"compare; run {program}; compare", 64, big)
    before, after = result.named["compare-mark"]
    return {"instructions": after["instructions"], "before": before["held"],
            "most": after["most"]}


def operations(kernel, initrd):
    """{key: instructions} of what programs do often."""
    result = run(kernel, "run bench " + " ".join(OPERATIONS), 64, initrd)
    return {e["key"]: e["value"] for e in result.named["bench"]}


def hackbench(kernel, initrd):
    """{what: {processors: {groups: instructions of all processors}}}: for one
    of the messages that are allocated; and of the program."""
    found = {"messages": {}, "program": {}}
    for cpus in PROCESSORS:
        for groups in GROUPS:
            result = run(kernel, f"messages {groups} {LOOPS}; compare; "
                         f"run hackbench -g {groups} -l {LOOPS}; compare",
                         64, initrd, cpus)
            sent, = result.named["messages"]
            _, after = result.named["compare-mark"]
            for what, value in (
                    ("messages", sent["instructions"] / sent["messages"]),
                    ("program", after["instructions"])):
                found[what].setdefault(str(cpus), {})[str(groups)] = \
                    round(value, 1)
    return found


def lines_moved(build, name):
    """{processors: {phase: lines of memory that move for an operation}}."""
    return {str(cpus): {phase: figures["lines"] for phase, figures in
                        scale.count(build / "scale" / name / "mmscale",
                                    cpus).items() if phase in scale.PHASES}
            for cpus in scale.CPUS[1:]}


def trace_costs(kernel, initrd, module):
    """{"alloc": …, "free": …} of the trace, carried out for the second time:
    {"mean", "p99", "max"}."""
    result = kernel_replay.run(kernel, initrd, module)
    if result.problem or "status" in result.named:
        raise CompareError(f"{kernel}: the replay failed\n" + result.explain())
    return {e["op"]: {"mean": round(e["total"] / e["count"], 1),
                      "p99": e["p99"], "max": e["max"]}
            for e in result.named["replay"] if e["pass"] == "warm"}


def measure(build, name, module):
    kernel = build / "compare" / f"{name}.elf"
    initrd = str(build / "initrd-workshop.tar")
    big = build / "initrd-bench.tar"  # some thousand files
    return {"R1": trace_costs(kernel, initrd, module),
            "lines": lines_moved(build, name),
            "hackbench": hackbench(build / "smp/compare" / f"{name}.elf",
                                   initrd),
            "costs": costs(kernel, initrd),
            "fragmentation": fragmentation(kernel, big),
            "workloads": {title: workload(kernel, program, str(big))
                          for title, program in WORKLOADS.items()},
            "operations": operations(kernel, initrd)}


# All inodes are cached; some of each folder are used again, so that those that
# were used long ago are spread over the slabs.
SPREAD = "run walk; run sh -c 'ls -l /many/*/file07 >/dev/null'"
EVICTED = 4600
STATE = re.compile(r"^inode: (\d+) objects in (\d+) slabs: (\d+) full, (\d+) "
                   r"partial, (\d+) free", re.M)


def evictions(build):
    """{order: [slabs: full, partial, free]} after inodes were freed in it."""
    found = {}
    for order, option in (("least recently used", "-l"),
                          ("sparsest slab", "-n")):
        text = qemu.plain(run(build / "compare/slab.elf", f"{SPREAD}; "
                              f"defrag {option} {EVICTED} inode", 64,
                              str(build / "initrd-bench.tar")).text)
        before, after = (list(map(int, state))
                         for state in STATE.findall(text))
        if before[0] - after[0] != EVICTED:
            raise CompareError(f"{before[0] - after[0]} inodes were evicted, "
                               f"not {EVICTED}")
        found.setdefault("before", before[2:])
        found[order] = after[2:]
    return found


def orders(build):
    """{order: [slabs: full, partial, free]} of a cache that has shrunk."""
    text = qemu.plain(run(build / "compare/slab.elf", "defrag -e", 64,
                          str(build / "initrd-bench.tar")).text)
    return {name: list(map(int, states)) for name, *states in re.findall(
        r"^(own|sorted) +\d+ +(\d+) +(\d+) +(\d+)", text, re.M)}


def reference_trace(program, *options):
    """{row: figures} of R1 on every allocator, and variants of some."""
    done = subprocess.run([str(program), "-j", *options], check=False,
                          encoding="utf-8", capture_output=True)
    if done.returncode != 0:
        raise CompareError("the replay of R1 failed: " + done.stderr.strip())
    return {row["row"]: row for row in map(json.loads,
                                           done.stdout.splitlines())}


# What the allocators were when: rows of R1. SLUB's of 2014 is of another
# replay; the others are what they are by default.
PROFILES = {"1994": ("sunos", "bsd", "svr4"),
            "2014": ("linux_slab", "linux_slub", "slob, header 8"),
            "2017": ("slob, header 8", "slmb"),
            "late": ("linux_slab", "linux_slub")}


def profiles(rows, rows_2014):
    """[(profile, row of R1)] of PROFILES."""
    return [(when, rows_2014.get(name, rows[name]) if when == "2014"
             else rows[name]) for when, names in PROFILES.items()
            for name in names]


# ---- what the sources say ----------------------------------------------------

@dataclass
class Expectation:
    """Whether what a source says is so here."""
    text: str
    holds: bool
    found: str

    def line(self):
        return f"{'as published' if self.holds else 'NOT as published'}: " \
            f"{self.text} (here: {self.found})"


def trace_pair(figures):
    """An allocation and a free of R1."""
    return round(figures["R1"]["alloc"]["mean"] + figures["R1"]["free"]["mean"],
                 1)


def pair(figures, what="pair", size=64):
    return figures["costs"]["work"][what][str(size)]


def percent_after(figures, step, which="reclaimed"):
    return waste(figures["fragmentation"][STEPS.index(step)][which])


def order(values):
    """The names from the least value to the most, with them."""
    return ", ".join(f"{name} {value:g}" for name, value in
                     sorted(values.items(), key=lambda item: item[1]))


def ascending(text, names, values):
    """Expects these names in the order of their values."""
    known = {name: values[name] for name in names if name in values}
    figures = list(known.values())
    return Expectation(text, figures == sorted(figures), order(known))


def costs_as_published(found):
    pairs = {name: trace_pair(figures) for name, figures in found.items()}
    yield ascending("an allocation and a free cost least on slabs, more in "
                    "SVr4, and most in SunOS", ["slab", "svr4", "sunos"], pairs)
    pairs["untyped"] = pair(found["slab"])
    yield Expectation("4.4BSD costs less than kmem_alloc on slabs",
                      pairs["bsd"] < pairs["untyped"],
                      order({n: pairs[n] for n in ("bsd", "untyped")}))
    spread = {name: figures["R1"]["free"]["max"]
              for name, figures in found.items() if name in PAPER_PAIR}
    yield Expectation("SunOS has the largest spread",
                      max(spread, key=spread.get) == "sunos", order(spread))
    without = {name: pair(figures, "constructed", 512) -
               pair(figures, "cache", 512) for name, figures in found.items()}
    yield Expectation("an object that stays constructed costs no construction",
                      without["slab"] == 0 < without["bsd"],
                      order(without))


def memory_as_published(found):
    def after(step):
        return {name: percent_after(figures, step)
                for name, figures in found.items()}
    boot, spike, end = after("boot"), after("spike"), after("kenbus")
    yield ascending("after boot SunOS wastes least, then slabs, 4.4BSD, SVr4",
                    ["sunos", "slab", "bsd", "svr4"], boot)
    rise = {name: round(spike[name] - boot[name], 1) for name in found}
    yield Expectation("256 processes raise the waste of 4.4BSD and SVr4 by 10 "
                      "points or more, and that of slabs by at most 5",
                      min(rise["bsd"], rise["svr4"]) >= 10 and
                      rise["slab"] <= 5, order(rise))
    yield Expectation("in the end slabs waste least, then SunOS, and 4.4BSD "
                      "and SVr4 most",
                      end["slab"] < end["sunos"] < min(end["bsd"],
                                                       end["svr4"]), order(end))
    yield Expectation("slabs waste at most 10 % after every step",
                      max(percent_after(found["slab"], step)
                          for step in STEPS) <= 10,
                      ", ".join(f"{percent_after(found['slab'], step):g}"
                                for step in STEPS))


def linux_as_published(found):
    """What the talk says of the three that Linux had."""
    pairs = {name: trace_pair(figures) for name, figures in found.items()}
    yield Expectation("of Linux's three SLOB is by far the slowest",
                      pairs["slob"] > 2 * max(pairs["linux_slab"],
                                              pairs["linux_slub"]),
                      order(pairs))
    yield ascending("SLUB costs less than SLAB", ["linux_slub", "linux_slab"],
                    pairs)
    for phase, text in (("alloc", "allocations"), ("free", "frees")):
        lines = {name: figures["lines"]["8"][phase]
                 for name, figures in found.items()}
        yield Expectation(f"on 8 processors {text} of SLUB and SLAB move far "
                          "fewer lines than SLOB's",
                          lines["slob"] > 3 * max(lines["linux_slab"],
                                                  lines["linux_slub"]),
                          order(lines))
    held = {name: figures["fragmentation"][0]["raw"]["held"] >> 10
            for name, figures in found.items()}
    yield ascending("after boot SLOB holds least, then SLUB, then SLAB",
                    ["slob", "linux_slub", "linux_slab"], held)


def slmb_as_published(found):
    """What the article says of it."""
    def messages(cpus, groups):
        return {name: found[name]["hackbench"]["messages"][cpus][groups]
                for name in ARTICLE}
    for groups, text in (("10", "10 groups"), ("1", "one group")):
        yield ascending(f"hackbench on 4 processors with {text} costs least on "
                        "SLUB, more on SLMB, most on SLOB",
                        ["linux_slub", "slmb", "slob"], messages("4", groups))
    yield ascending("on one processor with 10 groups SLMB costs less than SLOB",
                    ["slmb", "slob"], messages("1", "10"))
    one = messages("1", "1")
    yield Expectation("on one processor with one group SLMB costs almost twice "
                      "as much as SLOB", one["slmb"] > 1.5 * one["slob"],
                      order({name: one[name] for name in ("slmb", "slob")}))


def expectations(found):
    """Of the allocators that all these sources compare."""
    if {"slab", "sunos", "bsd", "svr4"} <= found.keys():
        yield from costs_as_published(found)
        yield from memory_as_published(found)
    if ARTICLE.keys() <= found.keys():
        yield from slmb_as_published(found)
    if {"slob", "linux_slab", "linux_slub"} <= found.keys():
        yield from linux_as_published(
            {name: figures for name, figures in found.items()
             if name in ("slob", "linux_slab", "linux_slub")})


# ---- tables ------------------------------------------------------------------

@dataclass
class Table:
    title: str
    note: str
    spec: str  # of table.columns_of
    rows: list

    def text(self):
        return "\n".join([self.title, *("  " + line for line in
                                        table.lines(self.spec, self.rows)),
                          textwrap.fill(self.note, COLUMNS), ""])

    def html(self):
        names = [name for name, _ in table.columns_of(self.spec)]
        head = "".join(f"<th>{escape(name.lower())}</th>" for name in names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row)
            + "</tr>" for row in self.rows)
        return (f"<table><tr>{head}</tr>{rows}</table>\n"
                f'<p class="note">{escape(self.note)}</p>')


def rounded(value):
    return f"{value:,.0f}"


def cost_table(found):
    slab = trace_pair(found["slab"])

    def row(name, key, value, cells):
        published = PAPER_PAIR.get(key)
        return [name, rounded(value), f"{value / slab:.1f}",
                f"{published / PAPER_PAIR['slab']:.1f}" if published else "-",
                *cells]
    rows = []
    for name, figures in found.items():
        rows.append(row(name, name, trace_pair(figures),
                        [rounded(figures["R1"][op][figure])
                         for op in ("alloc", "free")
                         for figure in ("mean", "p99", "max")]))
        if name == "slab":
            rows.append(row("slab, kmem_alloc", "untyped", pair(figures),
                            ["-"] * 6))
    return Table("An allocation and a free, instructions (paper, 5.1)",
                 "Means of R1 in the kernel, the second time it is carried "
                 "out. RATIO: to slab; PAPER: the same of its microseconds. "
                 "Then of allocations and of frees: the mean, what 99 of 100 "
                 "do not exceed, the most. kmem_alloc: 64 bytes again and "
                 "again.",
                 "ALLOCATOR:-18 PAIR:7 RATIO:6 PAPER:6 ALLOC:7 99%:7 MOST:8 "
                 "FREE:7 99%:7 MOST:7", rows)


def size_table(found, what, title, note):
    return Table(title, note, "ALLOCATOR:-12 " +
                 " ".join(f"{size}:6" for size in SIZES) + " TALK:6",
                 [[name, *(rounded(pair(figures, what, size))
                           for size in SIZES),
                   TALK[name][("alloc", "free", "pair").index(what)]
                   if name in TALK else "-"]
                  for name, figures in found.items()])


def size_tables(found):
    common = " Instructions, by bytes, after kenbus and hackbench. TALK: " \
        "cycles of the talk of 2014, the least over all sizes."
    yield size_table(found, "alloc", "Each of 2,000 allocations",
                     "From the heap as it is; no block is freed between." +
                     common)
    yield size_table(found, "free", "Each of their frees",
                     "In the order of the allocations." + common)
    yield size_table(found, "pair", "Pairs: allocated and freed at once",
                     "SunOS, SLOB and SLMB search for this block, or get a "
                     "page and return it; the others find it at once." + common)


def object_table(found):
    return Table("A constructed object, instructions (paper, 5.1)",
                 "A pair of kmem_cache_alloc and kmem_cache_free of a cache "
                 "whose constructor fills the object, and of one without a "
                 "constructor (plain). Slabs keep free objects constructed; "
                 "the others construct one for each allocation.",
                 "ALLOCATOR:-12 " + " ".join(f"{size}:7" for size in OBJECTS) +
                 " PLAIN-512:9",
                 [[name, *(rounded(pair(figures, "constructed", size))
                           for size in OBJECTS),
                   rounded(pair(figures, "cache", 512))]
                  for name, figures in found.items()])


def waste_table(found):
    rows = []
    for name, figures in found.items():
        cells = [f"{percent_after(figures, step, which):.1f}"
                 for which in ("raw", "reclaimed") for step in STEPS]
        paper = PAPER_WASTE.get(name, ("-",) * len(STEPS))
        rows.append([name, *cells, *paper])
    return Table("Total fragmentation of booted kernels, per cent (paper, 5.2)",
                 "What of the held bytes nobody asked for, after boot (B), "
                 f"spike (S), find (F) and kenbus (K), in {MEMORY} MiB. Then "
                 "reclaimed (R): after `reap -a`. Last, the paper's (P). On "
                 "slabs a block of kmem_alloc counts with the size of its "
                 "class, since the requested one is not kept.",
                 "ALLOCATOR:-12 " + " ".join(
                     f"{step[0].upper()}{mark}:5" for mark in ("", "-R", "-P")
                     for step in STEPS), rows)


def scale_table(found, magazines):
    def row(name, lines):
        return [name, *(f"{lines[str(cpus)][phase]:.1f}"
                        for phase in scale.PHASES for cpus in scale.CPUS[1:])]
    rows = []
    for name, figures in found.items():
        rows.append(row(name, figures["lines"]))
        if name == "slab":
            rows.append(row("slab, magazines", magazines))
    heads = {"pair": "P", "alloc": "A", "free": "F", "stream": "S"}
    return Table("Lines of memory that move between processors, for one "
                 "operation (talk)",
                 "On 2, 4 and 8 processors, for 60 bytes: pairs (P), 2,000 "
                 "allocations of each (A), their frees (F), and what the first "
                 "allocates and the last one frees (S, both together). A model "
                 "of caches counts them, as `make scale` does: a lock that "
                 "processors share is such a line, and a queue of each moves "
                 "none. (On SLMB a pair gets a page and returns it, since "
                 "the processor's lists are empty.) The talk's cycles on 8 "
                 "processors: pairs SLAB 102, "
                 "SLUB 52, SLOB 172; A 232, 90, 3,008; F 984, 119, 3,037; S "
                 "761, 498, 2,013.",
                 "ALLOCATOR:-16 " + " ".join(
                     f"{heads[phase]}{cpus}:5" for phase in scale.PHASES
                     for cpus in scale.CPUS[1:]), rows)


def hackbench_table(found):
    cases = [(str(cpus), str(groups)) for cpus in PROCESSORS
             for groups in GROUPS]
    rows = []
    for name, figures in found.items():
        of = figures["hackbench"]
        rows.append([
            name, *(f"{of['messages'][cpus][groups]:.0f}"
                    for cpus, groups in cases),
            *(f"{of['program'][cpus][groups] / 1e6:.1f}"
              for cpus, groups in cases),
            *(ARTICLE.get(name, {}).get(cpus, {}).get(groups, "-")
              for cpus, groups in cases)])
    return Table("Hackbench on 1 and 4 processors, with 1 and 10 groups "
                 "(article)",
                 f"Each of 20 senders of a group sends {LOOPS} messages to "
                 "each of 20 receivers, in a kernel for several processors; "
                 "1-10: 1 processor, 10 groups. M: instructions for a message "
                 "that is two blocks, allocated by the sender and freed by the "
                 "receiver, as in Linux (the command messages). H: million "
                 "instructions of the program hackbench, whose pipes are rings "
                 "here, so that only processes and pipes are allocated. What "
                 "all processors execute counts, also while they wait for "
                 "locks; lines that move do not. A: seconds of the article.",
                 "ALLOCATOR:-12 " + " ".join(
                     f"{kind}{cpus}-{groups}:5" for kind in "MHA"
                     for cpus, groups in cases), rows)


def workload_table(found):
    rows = []
    for name, figures in found.items():
        cells = []
        for figure in figures["workloads"].values():
            cells += [f"{figure['instructions'] / 1e6:.1f}", figure["most"]]
        rows.append([name, *cells])
    return Table("Programs: million instructions, and most pages of the heap "
                 "(paper, 5.3)",
                 "Each from its start to its end, in a kernel that has just "
                 "booted, with all that the kernel and the programs do. The "
                 "paper's machine ran 233 scripts of kenbus a minute on slabs, "
                 "210 on SunOS' allocator, 205 on 4.4BSD's, 199 on SVr4's.",
                 "ALLOCATOR:-12 " + " ".join(
                     f"{name.upper().replace(' ', '-')}:10 PAGES:6"
                     for name in WORKLOADS), rows)


def operation_table(found):
    return Table("What programs do often, instructions",
                 "Means of the program bench.",
                 "ALLOCATOR:-12 " + " ".join(
                     f"{what.replace(', ', '+').upper()}:20"
                     for what in OPERATIONS.values()),
                 [[name, *(rounded(figures["operations"][key])
                           for key in OPERATIONS)]
                  for name, figures in found.items()])


def trace_table(rows):
    return Table("The reference trace R1: KiB held and waste in per cent",
                 "At the marks after boot, spike, find and kenbus; PEAK: the "
                 "most; FREED: what is held when all was freed and reclaimed. "
                 "The figures are exact and the same on every machine.",
                 "ROW:-29 " + " ".join(f"{step.upper()}:7 %:3"
                                       for step in STEPS) + " PEAK:6 FREED:6",
                 [[name, *(cell for mark in row["marks"] for cell in
                           (mark["held"] >> 10, mark["waste"])),
                   row["peak"] >> 10, row["residue"] >> 10]
                  for name, row in rows.items()])


def profile_table(found):
    return Table("R1 under historical profiles: waste in per cent, and the "
                 "most KiB",
                 "1994: what the paper compares. 2014: what the talk compares; "
                 "in SLUB a processor keeps fewer objects, and an object "
                 "begins with its link. 2017: what the article compares. Late: "
                 "as of Linux 6.1.",
                 "PROFILE:-8 ALLOCATOR:-12 " +
                 " ".join(f"{step.upper()}:7" for step in STEPS) + " PEAK:6",
                 [[when, row["allocator"],
                   *(mark["waste"] for mark in row["marks"]),
                   row["peak"] >> 10] for when, row in found])


def eviction_table(found):
    return Table(f"Slabs of inodes, after {EVICTED:,} unused ones were freed",
                 "Slate's own allocator, after walk, which leaves 7,850 inodes "
                 "in the cache, and some that are used again. The pages of "
                 "free slabs come back at the next reap. Freed in the order of "
                 "last use, as under memory pressure; or those of the sparsest "
                 "slab first, by the command defrag.",
                 "ORDER:-20 FULL:6 PARTIAL:8 FREE:6",
                 [[order, *slabs] for order, slabs in found.items()])


def order_table(found):
    return Table("Slabs of a cache that has shrunk, by the order of its slabs",
                 "Slate's own allocator. Of 4,000 objects 200 are freed at "
                 "random and 120 allocated, 40 times, which leaves 800; own: "
                 "in the order of the allocator; sorted: after each of the 40 "
                 "the partial slabs are sorted, the fullest first.",
                 "ORDER:-20 FULL:6 PARTIAL:8 FREE:6",
                 [[order, *slabs] for order, slabs in found.items()])


def all_tables(found, trace, evicted, order, magazines, profiled):
    yield cost_table(found)
    yield object_table(found)
    yield from size_tables(found)
    yield scale_table(found, magazines)
    yield hackbench_table(found)
    yield waste_table(found)
    yield workload_table(found)
    yield operation_table(found)
    yield eviction_table(evicted)
    yield order_table(order)
    yield profile_table(profiled)
    yield trace_table(trace)


# ---- plots -------------------------------------------------------------------

WIDTH, LEFT, BAR, ROOM = 912, 190, 15, 60


def bars(title, description, groups, unit, marks):
    """Horizontal bars: groups are (name, [(kind, label, value, published)]).
    A stroke marks what was published."""
    d = Drawing(WIDTH, title, description)
    d.text(0, 16, title, "title")
    y = swatches(d, 0, 40, marks, WIDTH) + 6
    most = max(max(value, published or 0)
               for _, rows in groups for _, _, value, published in rows)
    scale = (WIDTH - LEFT - ROOM) / most
    for name, rows in groups:
        d.text(0, y + BAR - 3, name, "ink")
        for kind, label, value, published in rows:
            d.rect(LEFT, y, max(value * scale, 1), BAR - 3, kind,
                   f"{name}, {label}: {value:,g} {unit}")
            d.text(LEFT + value * scale + 6, y + BAR - 5, f"{value:,g}",
                   "small dim")
            if published is not None:
                at = LEFT + published * scale
                d.line(at, y - 2, at, y + BAR - 1, "mark")
            y += BAR
        y += 7
    return d


def cost_plot(found):
    groups = [(NAMES.get(name, name), [
        (kind, what, round(figures["R1"][op]["mean"]), None)
        for kind, what, op in (("used", "an allocation", "alloc"),
                               ("round", "a free", "free"))])
        for name, figures in found.items()]
    return bars("Instructions of an allocation and of a free",
                "Means of the reference trace R1, carried out in the kernel",
                groups, "instructions",
                [("used", "allocation"), ("round", "free")])


def waste_plot(found):
    kinds = ("k0", "k1", "k2", "k3")
    groups = []
    for name, figures in found.items():
        paper = PAPER_WASTE.get(name, (None,) * len(STEPS))
        groups.append((NAMES.get(name, name), [
            (kind, step, percent_after(figures, step), published)
            for kind, step, published in zip(kinds, STEPS, paper)]))
    return bars("Waste after each step, per cent, reclaimed (strokes: the slab "
                "paper)", "Total fragmentation after each of four steps; "
                "strokes mark the slab paper's figures", groups, "per cent",
                [(kind, "after " + step) for kind, step in zip(kinds, STEPS)])


def work_plot(found):
    groups = []
    for workload_name in WORKLOADS:
        groups.append((workload_name, [
            (f"k{i}", NAMES.get(name, name), round(
                figures["workloads"][workload_name]["instructions"] / 1e6, 1),
             None) for i, (name, figures) in enumerate(found.items())]))
    return bars("Million instructions of four programs, on each allocator",
                "From its start to its end, all that kernel and programs do",
                groups, "million instructions",
                [(f"k{i}", NAMES.get(name, name))
                 for i, name in enumerate(found)])


def write_page(path, found, tables, expected):
    plots = [cost_plot(found), waste_plot(found), work_plot(found)]
    body = ["<p>The same kernel on each allocator, the same commands, exact "
            "counts.</p>"]
    body += [f"<figure>{d.inline()}</figure>" for d in plots]
    body += ["<h2>What the sources say</h2>", "<ul>"]
    body += [f'<li>{"" if e.holds else "<strong>"}{escape(e.line())}'
             f'{"" if e.holds else "</strong>"}</li>' for e in expected]
    body.append("</ul>")
    for t in tables:
        body += [f"<h2>{escape(t.title)}</h2>", t.html()]
    path.write_text(page.html("Allocators compared", body), encoding="utf-8")


def text_of(tables, expected):
    said = [textwrap.fill(e.line(), COLUMNS, initial_indent="  ",
                          subsequent_indent="      ") for e in expected]
    return "\n".join([*(t.text() for t in tables), "What the sources say",
                      *said, ""])


def write_doc(path, text):
    """All tables but that of R1, which has a section of its own."""
    table.put_in(path, "compare", "".join(
        f"    {line}\n" if line else "\n" for line in text.splitlines()))


# ---- the program -------------------------------------------------------------

def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("out", type=Path, help="the folder for the results")
    parser.add_argument("allocators", nargs="+")
    parser.add_argument("--doc", type=Path, help="the page to bring up to date")
    args = parser.parse_args()
    known = list(NAMES)
    names = sorted(args.allocators, key=lambda name: known.index(name)
                   if name in known else len(known))
    found = dict.fromkeys(names)
    try:
        replay = args.build / "replay/replay"
        events = kernel_replay.listed(replay)
        if events is None:
            raise CompareError("the replay program does not list R1")
        module = kernel_replay.image(events)
        for name in sorted(names, key=lambda name: name != "yours"):
            print(f"  {NAMES.get(name, name)} ...", file=sys.stderr)
            found[name] = measure(args.build, name, module)
        evicted = evictions(args.build)
        order = orders(args.build)
        magazines = lines_moved(args.build, "magazines")
        trace = reference_trace(replay)
        if "yours" in names:
            trace |= reference_trace(replay, "-a", "yours")
        profiled = profiles(trace, reference_trace(
            replay, "-o", "-a", "linux_slub"))
    except (CompareError, qemu.QemuError) as e:
        sys.exit(f"make compare: {e}")
    tables = list(all_tables(found, trace, evicted, order, magazines,
                             profiled))
    expected = list(expectations(found))
    text = text_of(tables, expected)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "compare.json").write_text(
        json.dumps({"allocators": found, "R1": trace, "profiles": profiled,
                    "evictions": evicted, "orders": order,
                    "magazines": magazines,
                    "expectations": [vars(e) for e in expected]}, indent=1)
        + "\n", encoding="utf-8")
    (args.out / "compare.txt").write_text(text, encoding="utf-8")
    write_page(args.out / "index.html", found, tables, expected)
    print(text)
    if args.doc:
        write_doc(args.doc, text_of(tables[:-1], expected))
    print(f"written: {args.out}/compare.json, compare.txt, index.html")


if __name__ == "__main__":
    main()
