"""`make watch`: what its commands say is what the kernel's statistics say, on a
running machine and on a stopped one; and the terminal: keys, ^C, wrong input,
machines that end."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys

import pexpect
import pytest

from conftest import ROOT
from tools.book import book
from tools.measure import statistics, table
from tools.run import qemu, watchdog
from tools.test.heap import rows
from tools.watch import heap, reports, slabtop, watch

BOX = ("kmem create box 200; kmem alloc box 30",
       "kmem free box all; kmem destroy box")
SPY = ("kmem create spy 100; debug +FPZU spy; kmem alloc spy 10; "
       "kmem free spy 4", "kmem free spy all; kmem destroy spy")


# ---- figures -----------------------------------------------------------------

def cache_line(name, **members):
    """A line of `kmastat -j`: ten objects of 100 bytes in chunks of 104, four
    of them in use."""
    return json.dumps({
        "cache": name, "kind": "named", "size": 100, "chunk": 104,
        "slab_pages": 1, "slab_objects": 39, "slab_left": 8, "colour_max": 8,
        "align": 8, "inuse": 4, "total": 39, "slabs": 1, "mem": 4096,
        "hash_mem": 0, "allocs": 10, "frees": 6, "slab_creates": 1, **members})


def moment(*lines, ms=1000, label="now", **large):
    totals = {"supplier": 1, "total": {}, "oversize":
              {"mem": 0, "allocs": 0, "frees": 0, **large}}
    return heap.Moment.read([*lines, json.dumps(totals)], label, ms)


def test_statistics_without_their_end_are_refused():
    with pytest.raises(statistics.StatisticsError, match="last line"):
        heap.Moment.read([cache_line("box")])
    with pytest.raises(statistics.StatisticsError, match='"allocs"'):
        moment(cache_line("box", allocs=None))


def test_changes_are_sorted_and_named():
    a = moment(cache_line("idle"), cache_line("old"), cache_line("box"))
    b = moment(cache_line("idle"), cache_line("box", inuse=2, frees=8),
               cache_line("big", mem=8192))
    found = heap.changes(a, b)
    assert [(c.name, c.note) for c in found] == [
        ("big", "new"), ("box", ""), ("old", "destroyed")]
    assert found[1].counts == [-2, 0, 0, 0, 2]
    assert heap.sums(found) == [-2, 0, 4096, 0, 2]
    assert heap.sums([]) == [0] * 5


def test_the_parts_of_memory_add_up():
    at = moment(cache_line("box", hash_mem=512, mem=4608),
                cache_line("own", kind="internal"))
    assert heap.parts(at.caches["box"]) == heap.Parts(400, 536, 35 * 104, 32)\
        + heap.Parts(meta=0, internal=-536 + 4608 - 400 - 35 * 104 - 32 - 512,
                     requested=0) + heap.Parts(meta=512)
    assert heap.parts(at.caches["own"]) == heap.Parts(meta=4096)
    assert heap.fragmentation(at).consumed == 4608 + 4096
    assert [name for name, _ in heap.by_loss(at)] == ["box", "own"]


def test_callers_are_new_if_all_they_have_is_young():
    def group(cache, us, stack):
        return {"cache": cache, "count": 2, "bytes": 48, "oldest_us": us,
                "sample": 0xC0001000, "stack": stack}
    groups = [group("young", 4999, ["f+0x1"]), group("old", 5000, ["g+0x2"]),
              group("silent", 0, [])]
    text = "\n".join(reports.new_callers(groups, 15))
    assert re.search(r"^young +2 +48 +4ms 0xc0001000 f\+0x1$", text, re.M)
    assert "old" not in text.split("CALLER")[1] and "silent" not in text
    assert list(reports.new_callers(groups[1:], 15))[1].endswith(": none")
    assert not list(reports.new_callers(groups[2:], 15))


def test_cells_of_a_table():
    said = list(table.lines("NAME:-4 N:3", [["a", 1], ["longer", 22, "!"]]))
    assert said == ["NAME   N", "a      1", "longer\n      22 !"]
    assert [table.age(ms) for ms in (0, 999, 12_345, 60_000, 10 ** 8, 10 ** 9)
            ] == ["0ms", "999ms", "12.3s", "1m", "27h", "11d"]
    assert [table.percent(*pair, 2) for pair in ((1, 32), (2, 3), (5, 0))] == \
        ["3.13", "66.67", "0.00"]


# ---- slabtop's figures -------------------------------------------------------

def test_hits_are_allocations_without_a_new_slab():
    def hit(alloc, grow):
        return slabtop.Row("box", alloc=alloc, grow=grow).hit
    assert hit(0, 0) is None and hit(10, 0) == 1000 and hit(10, 1) == 900
    assert hit(10, 12) == 0             # more slabs than allocations
    assert hit(1_000_000, 1) == 999     # 100.0 % is all


def test_rates_are_those_of_the_interval():
    before = moment(cache_line("box", allocs=100, frees=50, slab_creates=5),
                    cache_line("again", allocs=131), ms=1000, allocs=3)
    now = moment(cache_line("box", allocs=130, frees=50, slab_creates=6),
                 cache_line("again", allocs=130), cache_line("new"), ms=1500,
                 allocs=5, mem=8192)
    shown = slabtop.Table(now, before)
    by_name = {row.name: row for row in shown.rows}
    assert [(by_name[n].alloc, by_name[n].free, by_name[n].grow)
            for n in ("box", "again", "new", "oversize")] == \
        [(30, 0, 1), (130, 0, 0), (10, 6, 1), (2, 0, 2)]
    assert shown.sum.alloc == 172 and shown.sum.mem == 8192 + 3 * 4096
    assert by_name["box"].text(shown.ms).split() == \
        ["box", "60.0", "0.0", "2.0", "4", "96.6"]
    assert by_name["box"].text(0).split()[1] == "0.0"
    assert slabtop.Table(now).ms == 1500    # since boot


def test_orders():
    at = slabtop.Table(moment(
        cache_line("c", mem=1, allocs=9, frees=1, slab_creates=0),
        cache_line("a", mem=3, allocs=0, frees=2, slab_creates=0),
        cache_line("b", mem=2, allocs=4, frees=3, slab_creates=2),
        cache_line("idle", kind="class", mem=0, allocs=0)))
    names = {order: "".join(row.name for row in at.ordered(order))
             for order in slabtop.ORDERS}
    assert names == {"mem": "abc", "alloc": "cba", "free": "bac", "grow": "bca",
                     "hit": "bca", "name": "abc"}


def test_a_screen_fits_a_terminal():
    lines = [cache_line(f"cache_with_a_long_name_{n}", allocs=10 ** n)
             for n in range(13)] + [cache_line(f"c{n}") for n in range(17)]
    at = slabtop.Table(moment(*lines, ms=3_600_000))
    for order in slabtop.ORDERS:
        shown = slabtop.screen(at, order, 4, 18)
        text = slabtop.plain(shown).splitlines()
        assert len(text) <= 24 and max(map(len, text)) <= 80
        assert {len(line[0][0]) for line in shown[5:]} == {len(slabtop.HEAD)}
        assert text[0].startswith("up 1:00:00   30 caches   rates since boot")
    assert len(slabtop.screen(at, "mem", keys=False)) == 4 + 30
    assert slabtop.ansi(shown).count("\x1b[K\n") == len(shown)


def test_keys_that_arrive_together(monkeypatch):
    typed = ["n ", "m\x1b[B \x1b[Bq"]
    display = slabtop.Display("alloc")
    monkeypatch.setattr(display, "show", lambda: None)
    monkeypatch.setattr(slabtop.select, "select", lambda *_: [[0], [], []])
    monkeypatch.setattr(slabtop.os, "read", lambda *_: typed.pop(0).encode())
    assert display.pause(1) and display.order == "name"
    assert not display.pause(1)
    assert display.order == "mem" and display.first == 2


# ---- on a machine ------------------------------------------------------------

class Watched(watch.Watch):
    """A Watch whose output is kept."""

    def __init__(self, machine):
        self.said = ""
        super().__init__(machine, self.keep)
        self.settle()

    def keep(self, text):
        self.said += text

    def __call__(self, line):
        """Runs a line; returns the output."""
        self.said = ""
        self.line(line)
        return self.said


@pytest.fixture(scope="module")
def watched(kernel):
    with qemu.Machine(kernel) as machine:
        yield Watched(machine)


@pytest.fixture
def box(watched):
    watched(BOX[0])
    yield "box"
    watched(BOX[1])


@pytest.fixture
def spy(watched):
    watched(SPY[0])
    yield "spy"
    watched(SPY[1])


def test_the_kernel_s_commands_are_the_kernel_s(watched):
    assert watched("echo one; echo 'two; three'") == "one\ntwo; three\n"
    assert "  slabtop     the traffic" not in watched("help slabtop")
    assert "usage: slabtop" in watched("help slabtop")
    assert watched("").strip() == ""


def test_diff_counts_what_happened(watched, box):
    watched("mark t1; kmem alloc box 40; kmem free box 5")
    text = watched("mark t2; diff t1 t2")
    assert rows(text, rf"^{box} +(?P<line>.*)$")[0]["line"].split() == \
        ["+35", "+2", "+8192", "+40", "+5"]
    assert "from t1 to t2" in text
    assert rows(watched("diff t2"), r"^(?P<name>\w+) ")[1:] == \
        [{"name": "TOTAL"}, {"name": "from"}]
    table = watched("mark").splitlines()
    assert [line.split()[0] for line in table] == ["LABEL", "t1", "t2"]
    watched("mark t1")
    assert "the older mark comes first" in watched("diff t1 t2")


def test_diff_names_new_callers(watched, spy):
    watched("mark t1")
    assert "callers that are new: none" in watched("diff t1")
    watched("run sleep 0.1")  # more than a tick
    watched("kmem create spy_b 24; debug +U spy_b; kmem alloc spy_b 2; "
            "kmem alloc spy 2")
    new = watched("diff t1").split("callers that are new:")[1]
    watched("kmem free spy_b all; kmem destroy spy_b")
    assert re.search(r"^spy_b +2 +48 +\S+ 0x\w+ \w+\+0x", new, re.M), new
    assert not re.search(r"^spy ", new, re.M)  # its caller had objects before


def test_frag_adds_up(watched, box):
    watched("mark steady; kmem alloc box 100; kmem free box 99")
    steps, caches = watched("frag").split("\n\n")
    by_step = {line.split()[0]: [float(cell) for cell in line.split()[1:]]
               for line in steps.splitlines()[1:]}
    assert list(by_step)[-2:] == ["steady", "now"]
    for requested, consumed, frag, internal, free, meta in by_step.values():
        assert frag == pytest.approx(100 * (1 - requested / consumed), abs=.01)
        assert internal + free + meta == pytest.approx(frag, abs=.02)
    assert by_step["now"][4] > by_step["steady"][4]  # free buffers
    stats = [json.loads(line) for line in watched.ask("kmastat -j")]
    large = stats[-1]["oversize"]["mem"]
    assert by_step["now"][1] == stats[-1]["total"]["mem"] - large
    meta = sum(s["mem"] if s["kind"] == "internal" else s["hash_mem"]
               + s["slabs"] * (s["slab_pages"] * 4096 - s["slab_left"]
                               - s["slab_objects"] * s["chunk"])
               for s in stats[:-1])
    assert by_step["now"][5] == pytest.approx(100 * meta / by_step["now"][1],
                                              abs=.006)
    cells = {line.split()[0]: [float(cell) for cell in line.split()[1:]]
             for line in caches.splitlines()[1:-1]}
    total = cells.pop("TOTAL")
    for column in range(5):
        assert sum(row[column] for row in cells.values()) == total[column]
    lost = [row[4] for row in cells.values()]
    assert lost == sorted(lost, reverse=True)
    assert "boot 11 %, spike 13 %, find 14 %, kenbus 14 %" in caches


def test_why_names_what_keeps_slabs(watched, spy):
    used = [json.loads(line) for line in
            watched.ask(f"cache -o alloc -j {spy}")]
    text = watched(f"why {spy}")
    listed = rows(text, r" 0x(?P<obj>\w+) +\S+s +(?P<caller>\w+\+0x\w+)$")
    assert [int(row["obj"], 16) for row in listed] == \
        [row["addr"] for row in used]
    assert "1 of 1 partial slabs; 6 frees would release 1 page\n" in text
    by_slab = watched(f"why {used[0]['slab']:x}")
    by_addr = watched(f"why {used[3]['addr'] + 1:x}")
    for found in (by_slab, by_addr):
        assert rows(found, r" 0x(?P<obj>\w+) +\S+s +(?P<caller>\w+\+0x\w+)$") \
            == listed


def test_why_begins_with_the_emptiest_slabs(watched):
    watched("kmem create big 1000; kmem alloc big 40; kmem free big 22 random")
    slabs = [json.loads(line) for line in watched.ask("slabs -j big")]
    listed = rows(watched("why big"), r"^ 0x\w+ +(?P<used>\d+)/4")
    assert [int(row["used"]) for row in listed] == \
        sorted(s["used"] for s in slabs if s["state"] == "partial")[:8]
    watched("kmem free big all")
    assert "(no slab of big is partial)" in watched("why big")
    watched("kmem destroy big")


def test_slabtop_adds_up(watched):
    tables = iter(watched.moment(further="; buddyinfo -j") for _ in range(9))
    first = next(tables)
    watched("kmem create top 100; kmem alloc top 50; kmem free top 9")
    shown = slabtop.Table(next(tables), first)
    row = next(row for row in shown.rows if row.name == "top")
    assert (row.alloc, row.free, row.grow, row.mem) == (50, 9, 2, 8192)
    totals = shown.now.statistics.totals
    assert shown.sum.mem == totals["total"]["mem"]
    assert slabtop.Table(shown.now).sum.alloc == totals["total"]["allocs"]
    pages = re.search(r"pages: (\d+) free", slabtop.plain(
        slabtop.screen(shown, "mem")))
    assert int(pages[1]) == shown.now.statistics.buddy["free_pages"]
    watched("kmem free top all; kmem destroy top")


WRONG = ["why", "why zz_q", "why 0x1000", "mark now", "mark much_too_long_one",
         "mark a b", "diff", "diff no_mark", "diff now", "frag now",
         "slabtop -d 0", "slabtop -d 1e9", "slabtop -d 1.5s", "slabtop -n 0",
         "slabtop -s best", "slabtop all", "slabtop -x"]


@pytest.mark.parametrize("line", WRONG)
def test_wrong_input_is_refused(watched, line):
    said = watched(line)
    assert re.fullmatch(rf"{line.split()[0]}: \S.*\n", said), said
    assert not watched.run(line)


def test_output_amid_the_lines_is_read_again(watched, monkeypatch):
    """A program's output cuts a line: the next answer is whole. If none is, an
    error says so."""
    whole = watched.ask("kmastat -j")
    cut = [whole[0][:40] + "hello", *whole[1:]]
    answers = iter([cut, whole])
    monkeypatch.setattr(watched, "ask", lambda _: next(answers))
    assert "inode" in watched.moment().caches
    monkeypatch.setattr(watched, "ask", lambda _: cut)
    assert re.match(r"frag: kmastat -j:1: no JSON", watched("frag"))


def test_a_program_that_reads_keys_gets_all_lines(watched):
    assert watched("run cat") == ""
    assert watched("mark a; x") == "mark a; x\n"
    with pytest.raises(watch.WatchError, match="a program reads"):
        watched.ask("kmastat -j")
    watched.machine.send("\x04")
    watched.settle()
    assert watched.reader == "shell"


def test_it_works_after_a_panic(boot):
    watched = Watched(boot(wait=False))
    watched("mark before; run ls")
    assert "panic: on purpose" in watched("panic on purpose")
    assert watched.prompt == "slate!> "
    assert "from before to now" in watched("diff before")
    assert "TOTAL" in watched("frag") and "partial" in watched("why inode")
    assert "mark after" in watched("mark after")


def test_the_book_s_commands_exist():
    """Those after the prompt, and the examples of help."""
    lines = [line for page in book.pages() for line in
             re.findall(r"^    watch> (.*)$", page.read_text("utf-8"), re.M)]
    lines += [line for parser in watch.COMMANDS.values() for line in
              re.findall(r"^Example: (.*)$", parser.format_help(), re.M)]
    seen = set()
    for name, *words in map(str.split, itertools.chain.from_iterable(
            map(watch.commands_of, lines))):
        if name in watch.COMMANDS:
            watch.COMMANDS[name].parse_args(words)
        else:
            assert name == "run", name
        seen.add(name)
    assert seen == {*watch.COMMANDS, "run"}


# ---- the program -------------------------------------------------------------

def run(kernel, commands, typed="", **settings):
    done = watchdog.run(
        [sys.executable, "-m", "tools.watch.watch", str(kernel)], cwd=ROOT,
        encoding="utf-8", input=typed, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "CMD": commands, **settings})
    assert "Traceback" not in done.stdout, done.stdout
    return done.returncode, done.stdout


def test_commands_and_lines_without_a_terminal(kernel):
    status, said = run(kernel, "mark a; run ls", "diff a\nslabtop -n 2 -d .1\n")
    assert status == 0
    assert re.search(r"^watch> mark a\nmark a: \d+ caches", said, re.M)
    assert re.search(r"^watch> diff a\nCACHE +dINUSE", said, re.M)
    screens = said.split("\nup ")[1:]
    assert len(screens) == 2 and "rates since boot" in screens[0]
    assert re.search(r"rates since \d+\.\d\d s ago", screens[1])
    assert "\x1b" not in said
    for text in screens:
        memory = [int(row["mem"]) for row in
                  rows(text, r"^\w+( +\S+){3} +(?P<mem>\d+) +(-|[\d.]+)$")]
        assert memory[1:] == sorted(memory[1:], reverse=True)


@pytest.mark.parametrize("commands,settings,status,wanted", [
    ("poweroff", {}, 0, ""),
    ("diff a", {}, 1, "diff: there is no mark 'a'"),
    ("diff a; poweroff", {}, 1, "diff: there is no mark 'a'"),
    ("panic now", {}, 1, "make watch: the machine ended: panic: now"),
    ("mark a; reboot; frag", {}, 0, "reboot"),
    ("", {"MEM": "much"}, 1, "make watch: MEM=much is not a number"),
    ("", {"DISK": "/none"}, 1, "make watch: DISK: /none is not a file"),
    ("", {"DISK": "x", "ICOUNT": "1"}, 1, "ICOUNT=1 or DISK")])
def test_how_it_ends(kernel, commands, settings, status, wanted):
    done = run(kernel, commands, **settings)
    assert done[0] == status and wanted in done[1], done


def test_what_is_no_kernel_is_refused():
    status, said = run("Makefile", "")
    assert status == 1 and "make watch: " in said


class Terminal:
    """`make watch` on a terminal of 24 lines."""

    def __init__(self, kernel):
        self.child = pexpect.spawn(
            sys.executable, ["-m", "tools.watch.watch", str(kernel)],
            cwd=ROOT, env={**os.environ, "TERM": "xterm"}, encoding="utf-8",
            dimensions=(24, 80), timeout=watchdog.SECONDS)
        self.child.expect("watch> ")

    def line(self, text):
        self.child.send(text + "\r")

    def screen(self):
        """The rows of the next whole screen, without escapes."""
        self.child.expect("\x1b\\[H")
        self.child.expect("\x1b\\[J")
        self.escaped = self.child.before
        return qemu.plain(self.escaped).split("\n")

    def end(self):
        self.child.expect(pexpect.EOF)
        self.child.close()
        assert "Traceback" not in self.child.before
        return self.child.exitstatus


@pytest.fixture
def terminal(kernel):
    found = Terminal(kernel)
    yield found
    found.child.close(force=True)


def names(screen):
    """The caches of a screen from the top, without the sum."""
    found = [line.split()[0] for line in screen
             if re.search(r" (-|\d+\.\d) *$", line)]
    assert found[0] == "TOTAL", screen
    return found[1:]


def test_slabtop_on_a_terminal(terminal):
    terminal.line("run -b kenbus -i 100000; slabtop -d 0.1")
    terminal.child.expect("\x1b\\[\\?1049h.*\x1b\\[\\?25l")
    screen = terminal.screen()
    assert max(map(len, screen)) <= 80 and len(screen) <= 25
    assert re.match(r"CACHE +ALLOC/s.* SHARE", screen[4])
    assert "\x1b[7mm memory\x1b[0m" in terminal.escaped
    for _ in range(200):  # programs run while it waits
        screen = terminal.screen()
        if float(screen[5].split()[1]) > 0:
            break
    else:
        pytest.fail("kenbus does nothing:\n" + "\n".join(screen))
    for key, word in (("a", "a allocs"), ("h", "h hits"), ("n", "n name")):
        terminal.child.send(key)
        while f"\x1b[7m{word}\x1b[0m" not in terminal.escaped:
            screen = terminal.screen()
    assert names(screen) == sorted(names(screen))
    first = names(screen)[0]
    terminal.child.send("\x1b[B")
    while names(screen)[0] == first:
        screen = terminal.screen()
    terminal.child.send("q")
    terminal.child.expect("\x1b\\[\\?25h\x1b\\[\\?1049l")
    terminal.child.expect("watch> ")
    terminal.line("poweroff")
    assert terminal.end() == 0


def test_interrupts(terminal):
    child = terminal.child
    terminal.line("slabtop -d 60; echo never\x20said")
    terminal.screen()
    child.send("\x03")
    child.expect("\x1b\\[\\?1049l")
    child.expect("watch> ")
    assert "said" not in child.before
    terminal.line("run sh -c 'echo up; sleep 100000'; echo never\x20said")
    child.expect("\nup\r\n")
    child.send("\x03")  # goes to the machine, and ends the program
    child.expect(r"watch> ")
    assert "said" not in child.before
    child.send("\x03\r")  # readline may see the signal only at the next key
    child.expect(r"\^C\r\nwatch> ")
    terminal.line("echo $still; echo here")
    child.expect("here\r\nwatch> ")
    child.send("\x04")
    assert terminal.end() == 0


def test_a_machine_that_is_killed(terminal):
    """While slabtop shows it."""
    terminal.line("slabtop -d 0.1")
    terminal.screen()
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(terminal.child.pid)], check=True,
        encoding="utf-8", capture_output=True).stdout.split()
    assert len(children) == 1
    os.kill(int(children[0]), signal.SIGKILL)
    terminal.child.expect("\x1b\\[\\?1049l")
    terminal.child.expect("make watch: the machine ended: ")
    assert terminal.end() == 1
