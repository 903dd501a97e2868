"""The commands of `slab` in GDB, against the kernel shell's own.

The machine runs a workload and then the shell's commands one by one; GDB stops
where each begins and gives its own answer to the same question. Both texts
must be equal, line by line. At the last stop every command's example is tried.
"""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import ROOT
from tools.run import gdb

WORKLOAD = "stress 1 99;kmem create box 200;kmem alloc box 50;" \
           "kmem free box 17;mark a;run ls;"
LINE_MAX = 255  # of the kernel's shell

# What the shell is asked. `slab` gets the same line in front of it. No command
# comes twice in a row: where the compiler has split its function, GDB may stop
# in it twice.
LINES = ["kmastat -z", "frag", "kmastat -w", "cache inode", "kmastat -j",
         "ws", "kmastat -T", "cache kstack", "kmastat -s waste kmem_*",
         "hash", "slabs box", "hash kstack", "colours", "slabs -v kmem_slab",
         "colours box", "mark", "colours -j", "mark -j", "verify box",
         "diff a", "buddyinfo", "diff -j a", "pages", "whatis kmain+0x4",
         "pages -j", "whatis page_array", "pages -r", "whatis 3fff000",
         "pages kmain", "verify", "walk hash", "why box"]
PLACES = ["walk alloc box", "map {inode}", "walk -j free box",
          "whatis {inode}", "walk slab -n 9", "whatis {free}",
          "walk bufctl kstack", "map {free}", "walk -j bufctl box -n 5"]

# The same with debugging modes.
MODES = "kmem.debug=FPZU,box,inode,pipe"
DEBUGGED = ["debug", "log", "users box", "log -S -n 9", "why box", "log -j",
            "users", "users pipe", "log slab", "old 0", "log reap", "leaks",
            "users -j",
            "fail", "verify box", "kmastat -w", "cache box", "kmastat -j",
            "slabs box", "frag", "hash box", "diff a", "walk alloc box -n 9",
            "walk bufctl box -n 3", "walk -j alloc box -n 2"]
OF_OBJECT = ["map {0:x}", "whatis {0:x}", "history {0:x}", "log -a {0:x}",
             "whatis {1:x}", "slabs box", "whatis {2:x}"]
BEHIND = 200, 208  # where its redzone begins; and that of the next one

# What GDB does first: a processor's number that is not all rows' 0; and, when
# there are objects, one of them is found damaged (KMEM_BUF_BAD).
FIRST = [("cmd_kmem", ["set var cpu_boot.cpu_number = 3"]),
         ("cmd_run", ["slab walk bufctl box -n 1",
                      "set var ((struct kmem_bufctl_debug *)$obj)"
                      "->bufctl_state = 2"])]

# Modes that are switched while objects are out, with elders, pages of their own
# and pages that are taken away; and slabs that are gone.
SWITCH = "kmem create box 200;kmem alloc box 30;debug +FPZU box;" \
         "kmem alloc box 5;debug +SU file;debug +G pipe;run ls;"
SWITCHED = ["kmastat", "verify", "slabs box~1", "cache pipe", "log -c box",
            "leaks", "cache box~1", "pages -r", "hash"]
GO = "kmem create box 200;kmem alloc box 90;kmem free box all;" \
     "run sleep 20;kmem alloc box 30;kmem free box all;run sleep 12;" \
     "kmem alloc box 15;kmem free box all;reap box;kmem alloc box 15;" \
     "kmem free box all;"
WAITED = ["ws", "cache -j box", "slabs box", "cache box"]
GONE = ["whatis {}", "history {}", "log -a {} -n 1"]

# All commands, of which some are only the debugger's.
COMMANDS = """break buddyinfo cache colours debug diff explain fail frag
    freelist hash history kmastat layout leaks log map mark old pages refs
    selftest slabs snapshot timeline trace users verify walk whatis why
    ws""".split()


def function(line):
    """The shell's function that runs a command line."""
    return f"cmd_{line.split()[0]}"


# The shell complains of this between two commands.
END = "try_acpi"  # where the machine has printed everything
MARK = "@"
MARKED = r'^slate: no command "@".*\n'


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
    runs = {"compared": (run_compared, kernel),
            "debugged": (run_debugged, kernel),
            "changed": (run_changed, kernel),
            "tried": (run_tried, kernel, examples)}
    yield from side_by_side(request, runs)


def result_of(name):
    """A fixture: what the run of this name has found."""
    @pytest.fixture(scope="module", name=name)
    def result(work):
        return work[name].result()
    return result


compared, debugged, changed, tried = map(
    result_of, ("compared", "debugged", "changed", "tried"))


def answers(kernel, lines, last=(), workload=WORKLOAD, first=(), **options):
    """{line: (what the shell printed, what GDB did)}, and what GDB answered to
    `last` behind them all; `first` are steps before. A shell's line holds only
    so much: there are as many runs as are needed."""
    n, typed = 0, workload + MARK
    while n < len(lines):
        more = f"{typed};{lines[n]};{MARK}"
        if len(more + ";poweroff") > LINE_MAX:
            break
        n, typed = n + 1, more
    assert n, typed
    here, rest = lines[:n], lines[n:]
    steps = [*first, *((function(line), [f"slab {line}"]) for line in here)]
    steps.append((END, list(last)))
    session = gdb.Session(kernel, f"{typed};poweroff", steps, **options)
    shell = [text.splitlines() for text in
             re.split(MARKED, session.serial, flags=re.M)[1:]]
    own = [said[f"slab {line}"].splitlines()
           for said, line in zip(session.said[len(first):], here)]
    pairs, said = dict(zip(here, zip(shell, own))), session.said[-1]
    if rest:
        more, said = answers(kernel, rest, last, workload, first, **options)
        pairs.update(more)
    return pairs, said


def run_compared(kernel):
    """All pairs of answers. Two addresses in slabs, of an object in use and of
    a free one, are found first."""
    inode, free = 'print $cache("inode")', "slab walk free box -n 1"
    pairs, said = answers(kernel, LINES, [inode, free])
    addresses = {"inode": re.search(r"0x(\w+)", said[inode])[1],
                 "free": re.search(r"0x(\w+)", said[free])[1]}
    lines = {line.format(**addresses): line for line in PLACES}
    for line, pair in answers(kernel, list(lines))[0].items():
        pairs[lines[line]] = pair
    return pairs


def run_debugged(kernel):
    """All pairs of answers with debugging modes."""
    pairs, said = answers(kernel, DEBUGGED, ["slab walk alloc box -n 1"],
                          first=FIRST, append=MODES)
    address = int(re.search(r"0x(\w+)",
                            said["slab walk alloc box -n 1"])[1], 16)
    places = [address, *(address + n for n in BEHIND)]
    lines = {line.format(*places): line for line in OF_OBJECT}
    for line, pair in answers(kernel, list(lines), first=FIRST,
                              append=MODES)[0].items():
        pairs[lines[line]] = pair
    return pairs


def run_changed(kernel):
    """The same when modes were switched, and slabs given back."""
    pairs, _ = answers(kernel, SWITCHED, workload=SWITCH)
    find = "slab log slab -c box -n 1"
    more, said = answers(kernel, WAITED, [find], GO, append="kmem.debug=U,box")
    pairs.update(more)
    address = re.search(r"0x(\w+)000\b", said[find])[1] + "200"
    lines = {line.format(address): line for line in GONE}
    for line, pair in answers(kernel, list(lines), workload=GO,
                              append="kmem.debug=U,box")[0].items():
        pairs[lines[line]] = pair
    return pairs


def bare(lines):
    """Columns at the end of a line may be empty."""
    return [line.rstrip() for line in lines]


def timeless(lines):
    """Without ages: GDB sees the clock of the kernel's last step."""
    for line in bare(lines):
        line = re.sub(r"\d+\.\d{6}\b", "T", line)
        line = re.sub(r" *\b[\d.]+m?s\b", " AGE", line)
        line = re.sub(r'_us":\d+', '_us":0', line)
        yield re.sub(r" +T\b|AGE +", " T ", line).rstrip()


@pytest.mark.parametrize("line", LINES + PLACES)
def test_gdb_and_shell_say_the_same(compared, line):
    shell, own = compared[line]
    assert shell and own and not own[0].startswith("error"), own
    if line.startswith("verify") and "box" not in line:
        # The shell goes on to what is no heap.
        shell, own = shell[:len(own) - 1], own[:-1]
    if line == "diff a":
        own, shell = list(timeless(own)), list(timeless(shell))
    assert bare(own) == bare(shell)


@pytest.mark.parametrize("line", DEBUGGED + OF_OBJECT)
def test_gdb_and_shell_say_the_same_in_debugging_modes(debugged, line):
    same_but_for_ages(line, *debugged[line])


def test_a_damaged_object_is_marked(debugged):
    assert debugged["slabs box"][1][1].split()[-1].startswith("!#")
    assert " 0 bad " in debugged["walk alloc box -n 9"][1][1]


def test_switching_leaves_slow_paths_as_the_kernel_has_them(kernel):
    """Of a cache that is in no mode, but has an elder."""
    show = "output $cache(\"box\")->cache_{}_slow # {}"
    looks = [show.format(path, i) for i in range(4)
             for path in ("alloc", "free")]
    said = gdb.Session(
        kernel, "kmem create box 200;kmem alloc box 3;debug +F box;"
        "kmem alloc box 3;debug -F box;poweroff",
        [(END, [*looks[:2], "slab trace box on", *looks[2:4],
                "slab trace box off", *looks[4:6], "slab fail slab 1",
                *looks[6:]])]).said[0]
    paths = [re.search(r"<(\w+)>", said[look])[1] for look in looks]
    large, debug = "kmem_alloc_large", "kmem_alloc_debug"
    assert paths == [large, "kmem_free_debug", debug, "kmem_free_debug",
                     large, "kmem_free_debug", debug, "kmem_free_debug"]


def test_the_log_has_the_processor(debugged):
    rows = [line.split() for line in debugged["log"][1]]
    assert rows[0][:4] == ["SEQ", "T-AGE", "OP", "CPU"]
    assert [row[3] for row in rows[1:-1]] == ["3"] * 20
    assert all('"cpu":3,' in line for line in debugged["log -j"][1])


@pytest.mark.parametrize("line", SWITCHED + WAITED + GONE)
def test_gdb_and_shell_say_the_same_after_changes(changed, line):
    same_but_for_ages(line, *changed[line])


def same_but_for_ages(line, shell, own):
    shell, own = list(timeless(shell)), list(timeless(own))
    assert shell and own and not own[0].startswith("error"), own
    if line == "leaks":  # the shell's own stack is another one
        shell, own = ([re.sub(r"\d+ KiB of roots", "", text)
                       for text in lines] for lines in (shell, own))
    if line == "verify":  # the shell goes on to what is no heap
        shell, own = shell[:len(own) - 1], own[:-1]
    assert own == shell


def test_the_comparison_can_fail(compared):
    """Two different answers, taken for the same question."""
    assert bare(compared["kmastat -z"][0]) != bare(compared["kmastat -w"][1])


# ---- help, examples, errors ------------------------------------------------

def batch(kernel, *lines):
    """What GDB prints for some lines, without a target."""
    argv = ["gdb", "-nx", "-q", "--batch", "-x", "tools/gdb/slate.gdb",
            str(kernel)]
    for line in lines:
        argv += ["-ex", f"echo @\\n{line}\\n", "-ex", line]
    done = subprocess.run(argv, cwd=ROOT, text=True, check=False, timeout=100,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    parts = re.split(r"^@\n", done.stdout, flags=re.M)[1:]
    return {line: part.split("\n", 1)[1] for line, part in zip(lines, parts)}


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
    "slab cache": "wants one cache",
    "slab cache nosuch": "no cache is called 'nosuch'",
    "slab kmastat -q": "'-q' is no option",
    "slab kmastat -s foo": "-s wants mem, waste, rate or fail",
    "slab kmastat nosuch*": "no cache matches",
    "slab walk fish": "wants alloc, free, slab, bufctl or hash",
    "slab walk alloc -n x": "wants a number",
    "slab map 0": "no slab holds 0x0",
    "slab map nosuch": "'nosuch' is no address",
    "slab whatis": "wants one address",
    "slab hash box": "is of small objects",
    "slab freelist 0xc0100000": "no slab holds",
    "slab diff nosuch": "there is no mark 'nosuch'",
    "slab break fish": "wants alloc, free, grow, reap or error",
    "slab break alloc -c nosuch": "no cache is called",
    "slab layout 0": "wants a size from 1",
    "slab layout 8 3": "power of two",
    "slab selftest /nosuch": "No such file",
    "slab snapshot /nosuch/file": "No such file",
    "slab trace inode maybe": "wants a cache and on or off",
    "slab history 0": "the log knows nothing",
    "slab old soon": "wants a number",
    "print $cache(\"nosuch\")": "no cache is called",
}
SELF = "python __import__('gdb').execute('slab selftest ' + " \
       "__import__('os').environ['SLATE_PLAN'].replace('plan', 'serial'))"
SPOIL = "set var $cache(\"box\")->cache_fails = 3"
INTERRUPT = "python import slab_slabs; slab_slabs.note_broken = " \
            "lambda *_: (_ for _ in ()).throw(KeyboardInterrupt())"
PREDICT = """python
import slab_heap, slab_layout
n = 0
for c in slab_heap.Heap().caches:
    if c.modes or c.own_supplier:
        continue
    g = slab_layout.Geometry(c.size, c.align, bool(c.ctor or c.dtor))
    assert (g.chunk, g.pages, g.objects, g.left, g.colour_max, g.large) == \
        (c.chunk, c.slab_pages, c.slab_objects, c.slab_left, c.colour_max,
         c.large), c.name
    n += 1
print(n, "caches")"""


@pytest.fixture(scope="module")
def examples(helps, tmp_path_factory):
    """{command: its example}, with files of ours."""
    found = {name: re.search(r"^Example: (.*)$", helps[f"help slab {name}"],
                             re.M)[1] for name in COMMANDS}
    file = tmp_path_factory.mktemp("slab") / "heap.json"
    found["snapshot"] = f"slab snapshot {file}"
    found["selftest"] = SELF
    return found


def run_tried(kernel, examples):
    """What GDB said to all examples, and to what cannot be."""
    first = ["mark", "walk"]
    order = first + [n for n in COMMANDS if n not in first]
    snapshot = examples["snapshot"].split()[-1]
    asked = [*ERRORS, PREDICT, SELF + " # 2",
             *(examples[name] for name in order), f"slab diff {snapshot}",
             SPOIL, SELF + " # 3", INTERRUPT, "slab slabs box",
             "print *$cache(\"box\")", "print kmem_caches",
             "print $slab_state($cache(\"box\"))",
             "print $slab_cache($cache(\"box\"))->cache_name",
             "print $slab_base((char *)$cache(\"box\") + 9) == "
             "$cache(\"box\")", "print $slab_owner($obj)",
             "print *$cache(\"box\")->cache_freelist"]
    return gdb.Session(
        kernel, WORKLOAD + "kmastat -j;hash -j;ws -j;slabs -j;verify -j;"
        "buddyinfo -j;walk -j alloc box;frag -j;poweroff", [(END, asked)],
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


def test_selftest(tried):
    good, bad = tried[SELF + " # 2"], tried[SELF + " # 3"]
    assert good.endswith("every field is the same\n"), good
    rows = dict(re.findall(r"^(\w+) +(\d+) +\d+ +0$", good, re.M))
    assert len(rows) == 8 and int(rows["kmastat"]) > 40, good
    assert "! kmastat box: fails: shell 0, gdb 3\n" in bad, bad
    assert "modes: shell U, gdb UT" in bad  # by the example of trace
    assert bad.endswith("4 differences\n"), bad


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
