"""The commands of `slab` in GDB, against the kernel shell's own.

The machine runs a workload and then the shell's commands one by one; GDB stops
where each begins and answers the same question. All rows of the shell's table
must be rows of GDB's, with the same cells. At the last stop every command's
example is tried.
"""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import ROOT
from tools.run import gdb, watchdog

pytestmark = pytest.mark.workshop

BOX = "kmem create box 200;kmem alloc box 50;kmem free box 17;"
WORKLOAD = f"stress 1 99;{BOX}run ls;"
LINE_MAX = 255  # of the kernel's shell
MODES = "kmem.debug=FPZU,box,inode,pipe"

# Command: how a row of its table begins. No command comes twice in a row:
# where the compiler has split its function, GDB may stop in it twice.
TABLE = r"!?\w+ +[\d-]+ +[\d.-]+ "
LINES = {"kmastat": TABLE, "ws": TABLE, "kmastat kmem_*": TABLE,
         "hash": TABLE, "slabs box": r"[ >!]*0x", "hash kstack": TABLE,
         "colours": TABLE, "slabs -v kstack": r"[ >!]*0x",
         "verify box": TABLE,
         "buddyinfo": r" +\d+ +\d+ +\d+ ", "walk hash": " 0x",
         "walk alloc box": " 0x", "cache inode": r"\w+ +\d",
         "walk free box": " 0x", "cache kstack": r"\w+ +\d|hash",
         "explain box": r"\S", "walk slab -n 9": " 0x", "explain kstack": r"\S",
         "whatis {inode}": "0x|object|slab",
         "walk bufctl kstack": " 0x", "whatis {free}": "0x|object|slab"}
DEBUGGED = {"debug": r"\w+ +[A-Z]+ +\d", "log": r" +\d+ +T ",
            "users box": r" +\d+ +\d+ +\d+ ",
            "users": r" +\d+ +\d+ +\d+ ", "old 0": TABLE, "leaks": TABLE,
            "verify box": TABLE, "slabs box": r"[ >!]*0x", "hash box": TABLE,
            "walk alloc box -n 9": "[ !]0x", "walk bufctl box -n 3": "[ !]0x",
            "whatis {box:x}": "0x|object|slab|  ",
            "whatis {redzone:x}": "object|slab|  ",
            "explain box": r"\S", "history {box:x}": r" +\d+ +T "}

# GDB's first commands: they set a processor number other than every row's 0;
# and, when there are objects, mark one of them as damaged (KMEM_BUF_BAD).
FIRST = [("cmd_kmem", ["set var cpu_boot.cpu_number = 3"]),
         ("cmd_run", ["slab walk bufctl box -n 1",
                      "set var ((struct kmem_bufctl_debug *)$obj)"
                      "->bufctl_state = 2"])]

END = "try_acpi"  # where the machine has printed everything
# The shell refuses this line, which is typed between two commands.
MARK, MARKED = "@", r'^slate: no command "@".*\n'


def side_by_side(request, runs):
    """Does those of `runs` ({name: function and arguments}) that a test wants,
    two at a time: yields futures of their results."""
    wanted = {name for item in request.session.items
              for name in getattr(item, "fixturenames", ())}
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(*run) for name, run in runs.items()
               if name in wanted}


@pytest.fixture(scope="module")
def work(request, kernel, examples):
    yield from side_by_side(request, {
        "compared": (run_compared, kernel), "debugged": (run_debugged, kernel),
        "tried": (run_tried, kernel, examples), "lost": (run_lost, kernel)})


def result_of(name):
    """A fixture: the result of the run of this name."""
    @pytest.fixture(scope="module", name=name)
    def result(work):
        return work[name].result()
    return result


compared, debugged, tried, lost = map(
    result_of, ("compared", "debugged", "tried", "lost"))


def answers(kernel, lines, first=(), **options):
    """{line: (what the shell printed, what GDB did)}. A shell's line holds
    only so much: there are as many runs as are needed."""
    n, typed = 0, WORKLOAD + MARK
    while n < len(lines):
        more = f"{typed};{lines[n]};{MARK}"
        if len(more + ";poweroff") > LINE_MAX:
            break
        n, typed = n + 1, more
    here, rest = lines[:n], lines[n:]
    steps = [*first, *((f"cmd_{line.split()[0]}", [f"slab {line}"])
                       for line in here), (END, [])]
    session = gdb.Session(kernel, f"{typed};poweroff", steps, **options)
    shell = re.split(MARKED, session.serial, flags=re.M)[1:]
    own = [said[f"slab {line}"] for said, line in
           zip(session.said[len(first):], here)]
    pairs = dict(zip(here, zip(shell, own)))
    if rest:
        pairs.update(answers(kernel, rest, first, **options))
    return pairs


def with_places(kernel, lines, places, find, first=(), **options):
    """The answers to lines with names of places in them, whose addresses GDB
    finds first."""
    said = gdb.Session(kernel, f"{WORKLOAD}poweroff",
                       [*first, (END, [*find.values()])], **options).said[-1]
    found = places(*(int(re.search(r"0x(\w+)", said[question])[1], 16)
                     for question in find.values()))
    asked = {line.format(**found): line for line in lines}
    pairs = answers(kernel, list(asked), first, **options)
    return {asked[line]: pair for line, pair in pairs.items()}


def run_compared(kernel):
    return with_places(
        kernel, LINES, lambda *at: {"inode": f"{at[0]:x}",
                                    "free": f"{at[1]:x}"},
        {"inode": 'print $cache("inode")', "free": "slab walk free box -n 1"})


def run_debugged(kernel):
    return with_places(
        kernel, DEBUGGED, lambda at: {"box": at, "redzone": at + 200},
        {"box": "slab walk alloc box -n 1"}, FIRST, append=MODES)


def rows(text, begin):
    """The cells of a table's rows. Not compared: ages, the ends of a log's
    callers, the 0x of GDB's addresses."""
    text = re.sub(r"^(\w+)\n +", r"\1 ", text, flags=re.M)
    text = re.sub(r"\b[\d.]+m?s\b|\b\d+\.\d{6}\b", "T", text)
    found = []
    for line in text.splitlines():
        line = re.sub(r"(\d+)/(\d+) ", r"\1/\2 ", line)
        if re.match(begin, line + " ") and not line.startswith("TOTAL"):
            found.append(re.sub(r"\b0x", "", line).replace(",", " ").split())
    return found


def agree(line, begin, shell, own):
    shell, own = rows(shell, begin), rows(own, begin)
    name = line.split()[0]
    if name in ("log", "history", "old"):  # names cut; one of equally old ones
        shell, own = ([row[:8] if name != "old" else row[:4] for row in found]
                      for found in (shell, own))
    if name in ("whatis", "cache"):  # sentences: their numbers
        shell, own = ([word for row in found for word in row
                       if re.fullmatch(r"[0-9a-f]*\d[0-9a-f]*", word)]
                      for found in (shell, own))
    assert own, line
    missing = [row for row in own if row not in shell]
    assert not missing, (missing, shell)
    if name not in ("kmastat", "whatis", "cache", "verify"):
        assert len(own) == len(shell), (own, shell)


@pytest.mark.parametrize("line", LINES)
def test_gdb_and_shell_say_the_same(compared, line):
    agree(line, LINES[line], *compared[line])


@pytest.mark.parametrize("line", DEBUGGED)
def test_gdb_and_shell_say_the_same_in_debugging_modes(debugged, line):
    if line == "leaks":
        assert "suspect: 0 objects" in debugged[line][1]
        return
    agree(line, DEBUGGED[line], *debugged[line])


def test_the_comparison_can_fail(compared):
    """The answers to two different commands are compared, and differ."""
    with pytest.raises(AssertionError):
        agree("ws", TABLE, compared["hash"][0], compared["ws"][1])


def test_a_damaged_object_is_marked(debugged):
    assert debugged["slabs box"][1].splitlines()[1].split()[-1].startswith("!")
    assert " 0 bad " in debugged["walk alloc box -n 9"][1].splitlines()[1]


def test_the_log_has_the_processor(debugged):
    found = rows(debugged["log"][1], DEBUGGED["log"])
    assert [row[3] for row in found] == ["3"] * 20


# ---- help, examples, errors ------------------------------------------------

def batch(kernel, *lines):
    """GDB's output for some lines, without a target."""
    argv = ["gdb", "-nx", "-q", "--batch", "-x", "tools/gdb/slate.gdb",
            str(kernel)]
    for line in lines:
        argv += ["-ex", f"echo @\\n{line}\\n", "-ex", line]
    done = watchdog.run(argv, cwd=ROOT,
                        encoding="utf-8", stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT)
    parts = re.split(r"^@\n", done.stdout, flags=re.M)[1:]
    return {line: part.split("\n", 1)[1] for line, part in zip(lines, parts)}


# All commands, of which some are only the debugger's.
COMMANDS = """break buddyinfo cache colours debug diff explain fail frag
    freelist hash history kmastat layout leaks log map mark old pages refs
    slabs snapshot timeline trace users verify walk whatis why ws""".split()


@pytest.fixture(scope="module")
def helps(kernel):
    return batch(kernel, *(f"help slab {name}" for name in COMMANDS), "slab",
                 "slab kmastat", "slab layout 200", "slab layout 9000",
                 "slab layout 2552", "slab layout 1504",
                 "slab nonsense")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_usage_and_example(helps, name):
    text = helps[f"help slab {name}"]
    assert f"Usage: slab {name}" in text, text
    assert f"\nExample: slab {name}" in text, text
    assert all(len(line) <= 80 for line in text.splitlines()), text
    assert re.search(rf"^slab {name}\b", helps["slab"], re.M)


def test_slab_lists_what_there_is(helps):
    listed = re.findall(r"^slab (\w+)", helps["slab"], re.M)
    assert sorted(set(listed) - {"culprit"}) == sorted(COMMANDS)


def test_without_a_target(helps):
    assert helps["slab kmastat"] == \
        "slab kmastat: no target; `target remote STUB`, `core FILE` or " \
        "`make gdb`\n"
    assert "there is no 'nonsense'" in helps["slab nonsense"]


def test_layout_needs_none(helps):
    """The worked examples of statements S-21 and S-31."""
    assert "objects       20 = (4096 - 32) / 200" in helps["slab layout 200"]
    assert re.search(r"colours +9 = 64 / 8 \+ 1", helps["slab layout 200"])
    assert "slab       28672 = 7 pages" in helps["slab layout 9000"]
    assert "slab       12288 = 3 pages" in helps["slab layout 1504"]
    assert "slab       20480 = 5 pages" in helps["slab layout 2552"]


ERRORS = {
    "slab cache": "usage: slab cache NAME",
    "slab cache nosuch": "no cache is called 'nosuch'",
    "slab kmastat -q": "option -q not recognized",
    "slab kmastat nosuch*": "no cache matches",
    "slab walk fish": "usage: slab walk",
    "slab walk alloc -n x": "wants a number from 1 on",
    "slab map 0": "no slab holds 0x0",
    "slab map nosuch": "'nosuch' is no address",
    "slab whatis": "usage: slab whatis ADDR",
    "slab hash box": "is of small objects",
    "slab freelist 0xc0100000": "no slab holds",
    "slab diff nosuch": "there is no mark 'nosuch'",
    "slab break fish": "usage: slab break",
    "slab break alloc -c nosuch": "no cache is called",
    "slab layout 0": "wants a size from 1",
    "slab layout 8 3": "power of two",
    "slab snapshot /nosuch/file": "No such file",
    "slab trace inode maybe": "usage: slab trace",
    "slab history 0": "the log has no transaction",
    "slab old soon": "SECONDS wants a number from 0 on",
    "print $cache(\"nosuch\")": "no cache is called",
}
INTERRUPT = "python import slab_slabs; slab_slabs.note_broken = " \
            "lambda *_: (_ for _ in ()).throw(KeyboardInterrupt())"
PREDICT = """python
import heap, slab_caches
n = 0
for c in heap.Heap().caches:
    if c.mode_text or c.own_supplier:
        continue
    g = slab_caches.Geometry(c.size, c.align, bool(c.ctor or c.dtor))
    for name in ("chunk", "slab_pages", "slab_chunks", "slab_left",
                 "colour_max", "large"):
        assert getattr(g, name) == getattr(c, name), (c.name, name)
    n += 1
print(n, "caches")"""
# The only pointer to an object is overwritten.
LOSE = ["slab walk alloc box -n 2", "slab refs $obj",
        "set var $lost = $obj", "slab leaks # before",
        "python import re, gdb; gdb.execute('set var *(int *)' + re.search("
        "r'(0x\\w+) .* of kmem_play', gdb.execute('slab refs $lost', False, "
        "True))[1] + ' = 0')", "slab leaks # after"]


@pytest.fixture(scope="module")
def examples(helps, shared_path):
    """{command: its example}, with a file of ours."""
    found = {name: re.search(r"^Example: (.*)$", helps[f"help slab {name}"],
                             re.M)[1] for name in COMMANDS}
    found["snapshot"] = f"slab snapshot {shared_path / 'heap.json'}"
    return found


def run_tried(kernel, examples):
    """GDB's output for all examples, and for wrong arguments."""
    first = ["mark", "walk"]
    order = first + [n for n in COMMANDS if n not in first]
    snapshot = examples["snapshot"].split()[-1]
    asked = [*ERRORS, PREDICT, *(examples[name] for name in order),
             f"slab diff {snapshot}", INTERRUPT, "slab slabs box",
             "slab kmastat -j box", "print *$cache(\"box\")",
             "print kmem_caches",
             "print $slab_state($cache(\"box\"))",
             "print $slab_cache($cache(\"box\"))->cache_name",
             "print $slab_base((char *)$cache(\"box\") + 9) == "
             "$cache(\"box\")", "slab walk alloc inode -n 1 # owner",
             "print $slab_owner($obj)", "print *$cache(\"box\")->"
             "cache_freelist"]
    return gdb.Session(kernel, WORKLOAD + "poweroff", [(END, asked)],
                       append="kmem.debug=U,inode").said[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_work(tried, examples, name):
    text = tried[examples[name]]
    assert not text.startswith("error") and "Traceback" not in text, text
    assert "Error" not in text, text
    assert text.strip(), name


@pytest.mark.parametrize("line", ERRORS)
def test_mistakes_get_one_line(tried, line):
    text = tried[line]
    assert text.startswith("error: ") and ERRORS[line] in text, text
    assert text.count("\n") == 1 and len(text) < 160, text


def test_layout_predicts_every_cache(tried):
    n = re.match(r"(\d+) caches\n$", tried[PREDICT])
    assert n and int(n[1]) > 40, tried[PREDICT]


def test_rows_as_json(tried):
    row, total = map(json.loads, tried["slab kmastat -j box"].splitlines())
    assert row.pop("cache") == "box" and total.pop("cache") == "TOTAL"
    assert row["inuse"] == 33 and row["total"] == 60 and row["alloc"] == 50
    assert row["waste%"] == "46.3"
    assert row.keys() == total.keys() and row["mem/k"] == total["mem/k"] == 12


def run_lost(kernel):
    """Its objects are filled with baddcafe: no stale pointers are in them."""
    return gdb.Session(kernel, "kmem create box 200;kmem alloc box 3;poweroff",
                       [(END, LOSE)], append="kmem.debug=PU,box").said[0]


def test_a_lost_object_is_a_suspect(lost):
    refs = lost["slab refs $obj"]
    assert sorted(re.findall(r"of (\w+ \+ \d+)$", refs, re.M)) == \
        ["kmem_bufctl_debug + 4", "kmem_play + 8"], refs
    assert "\n2 references" in refs
    assert "suspect: 0 objects" in lost["slab leaks # before"]
    address = re.findall(r"^ (0x\w+)", lost[LOSE[0]], re.M)[-1]
    assert re.search(rf"^box +1 +200 +\d+ms {address} play_alloc\+",
                     lost["slab leaks # after"], re.M), lost[LOSE[-1]]


def test_a_snapshot_is_a_mark(tried, examples):
    text = tried[f"slab diff {examples['snapshot'].split()[-1]}"]
    assert re.search(r"^TOTAL +\+0 +\+0 +\+0 +\+0 +\+0$", text, re.M), text


def test_control_c_ends_a_command(tried):
    text = tried["slab slabs box"]
    assert text.endswith("(interrupted)\n") and "partial" in text, text


def test_values_are_explained(tried):
    assert "= cache box: 200 bytes, 33 of 60 in use, 3 slabs of 20 = {" in \
        tried["print *$cache(\"box\")"]
    assert re.search(r"= \d+ others: next 0x", tried["print kmem_caches"])
    assert "= slab of box: partial, 13 of 20 used, colour 8, page 0x" in \
        tried["print *$cache(\"box\")->cache_freelist"]


def test_functions(tried):
    assert tried["print $slab_state($cache(\"box\"))"].endswith('"used"\n')
    assert '"kmem_cache"' in \
        tried["print $slab_cache($cache(\"box\"))->cache_name"]
    assert tried["print $slab_base((char *)$cache(\"box\") + 9) == "
                 "$cache(\"box\")"].endswith("= 1\n")
    assert re.search(r'"1 kernel \w+\+0x', tried["print $slab_owner($obj)"])
