"""The commands of `slab` in GDB, against the kernel shell's own.

The machine runs a workload and then the shell's commands one by one; GDB stops
where each begins and gives its own answer to the same question. Both texts
must be equal, line by line. At the last stop every command's example is tried,
and then the heap is broken, one invariant at a time.
"""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import ROOT
from slate import gdb

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
         "diff a", "buddyinfo", "diff -j a", "pages", "whatis kmain",
         "pages -j", "whatis page_array", "pages -r", "whatis 3fff000",
         "pages kmain", "verify", "walk hash", "why box"]
PLACES = ["walk alloc box", "map {inode}", "walk -j free box",
          "whatis {inode}", "walk slab -n 9", "whatis {free}",
          "walk bufctl kstack", "map {free}", "walk -j bufctl box -n 5"]

# The same with debugging modes.
MODES = "kmem.debug=FPZU,box,inode,pipe"
DEBUGGED = ["debug", "log", "users box", "log -S -n 9", "why box", "log -j",
            "users", "log slab", "old 0", "log reap", "leaks", "users -j",
            "fail", "verify box", "kmastat -w", "cache box", "kmastat -j",
            "slabs box", "frag", "hash box"]
OF_OBJECT = ["map {}", "whatis {}", "history {}", "log -a {}"]

# Modes that are switched while objects are out, with elders, pages of their own
# and pages that are taken away; and slabs that are gone.
SWITCH = "kmem create box 200;kmem alloc box 30;debug +FPZU box;" \
         "kmem alloc box 5;debug +SU file;debug +G pipe;run ls;"
SWITCHED = ["kmastat", "verify", "slabs box~1", "cache pipe", "log -c box",
            "leaks", "cache box~1", "pages -r", "hash"]
GO = "kmem create box 200;kmem alloc box 30;kmem free box all;reap -a;"
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


@pytest.fixture(scope="module")
def work(request, kernel, examples, tmp_path_factory):
    """All runs that the tests want, two at a time: futures of their
    results."""
    core = tmp_path_factory.mktemp("core") / "core"
    runs = {"compared": (run_compared, kernel),
            "debugged": (run_debugged, kernel),
            "changed": (run_changed, kernel),
            "tried": (run_tried, kernel, examples),
            "broken": (run_broken, kernel), "stopped": (run_stopped, kernel),
            "dead": (run_dead, kernel, core)}
    wanted = {name for item in request.session.items
              for name in getattr(item, "fixturenames", ())}
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(*run) for name, run in runs.items()
               if name in wanted}


def result_of(name):
    """A fixture: what the run of this name has found."""
    @pytest.fixture(scope="module", name=name)
    def result(work):
        return work[name].result()
    return result


compared, debugged, changed, tried, broken, stopped, dead = map(
    result_of, ("compared", "debugged", "changed", "tried", "broken",
                "stopped", "dead"))


def answers(kernel, lines, last=(), workload=WORKLOAD, **options):
    """{line: (what the shell printed, what GDB did)}, and what GDB answered to
    `last` behind them all. A shell's line holds only so much: there are as
    many runs as are needed."""
    n, typed = 0, workload + MARK
    while n < len(lines):
        more = f"{typed};{lines[n]};{MARK}"
        if len(more + ";poweroff") > LINE_MAX:
            break
        n, typed = n + 1, more
    assert n, typed
    here, rest = lines[:n], lines[n:]
    steps = [(function(line), [f"slab {line}"]) for line in here]
    steps.append((END, list(last)))
    session = gdb.Session(kernel, f"{typed};poweroff", steps, **options)
    shell = [text.splitlines() for text in
             re.split(MARKED, session.serial, flags=re.M)[1:]]
    own = [said[f"slab {line}"].splitlines()
           for said, line in zip(session.said, here)]
    pairs, said = dict(zip(here, zip(shell, own))), session.said[-1]
    if rest:
        more, said = answers(kernel, rest, last, workload, **options)
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
                          append=MODES)
    address = re.search(r"0x(\w+)", said["slab walk alloc box -n 1"])[1]
    lines = {line.format(address): line for line in OF_OBJECT}
    for line, pair in answers(kernel, list(lines), append=MODES)[0].items():
        pairs[lines[line]] = pair
    return pairs


def run_changed(kernel):
    """The same when modes were switched, and slabs given back."""
    pairs, _ = answers(kernel, SWITCHED, workload=SWITCH)
    find = "slab log -c box -n 1"
    _, said = answers(kernel, ["ws"], [find], GO, append=MODES)
    address = re.findall(r"\b[0-9a-f]{8}\b", said[find])[1]
    lines = {line.format(address): line for line in GONE}
    for line, pair in answers(kernel, list(lines), workload=GO,
                              append=MODES)[0].items():
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


@pytest.mark.parametrize("line", SWITCHED + GONE)
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


# ---- a broken heap ---------------------------------------------------------

# What is set to what, in a word of memory, and what `slab verify` says of it.
BROKEN = [
    ("$box->cache_slabs", "9", "slab list is shorter than its count"),
    ("$box->cache_slabs", "1", "slab list is longer than its count"),
    ("$box->cache_full", "9", "count of full slabs is wrong"),
    ("$box->cache_complete", "9", "count of complete slabs (T) is wrong"),
    ("$box->cache_ws_min", "99", "working set: m exceeds T"),
    ("$box->cache_max_slabs", "1",
     "most slabs ever is less than those there are"),
    ("$box->cache_allocs", "99",
     "objects in use are not allocations less frees"),
    ("$box->cache_align", "24", "alignment is not a power of two"),
    ("$box->cache_chunk", "100", "chunk is smaller than the object"),
    ("$box->cache_slab_chunks", "99", "chunks and colour do not fit the slab"),
    ("$box->cache_colour", "4", "next colour is out of range"),
    ("$box->cache_freelist", "&$box->cache_null",
     "freelist pointer is not the first free slab"),
    ("$slab->slab_link.next", "&$slab->slab_link",
     "slab list links disagree"),
    ("$slab->slab_link.next", "(void *)0x12345678", "slab list leads astray"),
    ("$slab->slab_link.prev", "0", "slab list links disagree"),
    ("$slab->slab_cache", "0", "slab belongs to another cache"),
    ("$slab->slab_base", "$slab->slab_base + 8",
     "slab base is not page aligned"),
    ("$slab->slab_chunks", "5", "slab has another number of chunks"),
    ("$slab->slab_colour", "4", "slab colour is out of range"),
    ("$slab->slab_refcnt", "99", "reference count exceeds the chunks"),
    ("$slab->slab_refcnt", "14",
     "freelist does not match the reference count"),
    ("$slab->slab_head", "(void *)0x12345678",
     "freelist does not match the reference count"),
    ("$slab->slab_head->bufctl_next", "$slab->slab_head",
     "freelist does not match the reference count"),
    ("page_array[((unsigned)$slab->slab_base - 0xc0000000) >> 12].page_owner",
     "0", "slab pages are not marked as the cache's"),
    ("$entry->bufctl_addr", "$entry->bufctl_addr + 8",
     "bufctl's address is no chunk of its slab"),
    ("$entry->bufctl_slab", "$slab",
     "bufctl points to a slab of another cache"),
    ("$entry->bufctl_next", "$entry",
     "hash holds more than the objects in use"),
    ("$entry->bufctl_next", "(void *)0x1234", "hash chain leads astray"),
    ("*(char *)$file", "0x12", "free buffer is not deadbeef throughout"),
    ("*((char *)$file + $files->cache_size)", "0x12",
     "redzone behind a buffer is damaged"),
    ("*((char *)$file - 1)", "0x12", "redzone before a buffer is damaged"),
    ("buddy_zone.zone_list[0].next", "(void *)0xc0000000",
     "free list leads outside the page array"),
    ("buddy_zone.zone_total_pages", "1",
     "blocks do not add up to all managed pages"),
    ("page_array[300].page_state", "77", "page state is not a state"),
    ("segkmem.pages[5]", "1",
     "slab pages of all caches are not segkmem's"),
]
SETTINGS = [
    'set var $box = $cache("box")', 'set var $slab = $box->cache_freelist',
    'set var $files = $cache("file")',
    'set var $file = $files->cache_freelist->slab_head->bufctl_addr',
    "slab walk hash kstack -n 1",
    "set var $entry = (struct kmem_bufctl *)$obj"]
LOOKS = ("slab slabs box", "slab slabs -j box", "slab kmastat", "slab hash",
         "slab map $slab", "slab freelist $slab", "slab walk free box",
         "slab walk hash kstack", "slab whatis $slab", "slab frag",
         "slab colours box", "slab cache box", "slab leaks", "slab pages -r")


def cache_of(place):
    """The cache that is broken, "" if none alone is."""
    names = {"$box": "box", "$slab": "box", "page_array[((": "box",
             "$entry": "kstack", "*": "file"}
    return next((cache for start, cache in names.items()
                 if place.startswith(start)), "")


def run_broken(kernel):
    """{number: what `slab verify` and the other commands said}."""
    asked = list(SETTINGS)
    for n, (place, value, _) in enumerate(BROKEN):
        asked += [f"set var $was = {place} # {n}",
                  f"set var {place} = {value} # {n}",
                  f"slab verify {cache_of(place)} # {n}",
                  *(f"{look} # {n}" for look in LOOKS if n % 5 == 0),
                  f"set var {place} = $was # {n}"]
    said = gdb.Session(kernel, WORKLOAD + "poweroff",
                       [(END, asked + ["slab verify # end"])],
                       append="kmem.debug=PZ,file").said[0]
    assert said["slab verify # end"].endswith("every invariant holds\n"), said
    return said


@pytest.mark.parametrize("n", range(len(BROKEN)),
                         ids=lambda n: f"{n}: {BROKEN[n][2]}")
def test_verify_finds(broken, n):
    place, value, kind = BROKEN[n]
    for line in (f"set var $was = {place} # {n}",
                 f"set var {place} = {value} # {n}"):
        assert broken[line] == "", broken[line]
    text = broken[f"slab verify {cache_of(place)} # {n}"]
    rows = [row for row in text.splitlines() if row.startswith("!")]
    assert any(row.endswith(kind) for row in rows), text
    if place.startswith("$box") or place.startswith("$slab"):
        assert rows[0].startswith("!box "), text


@pytest.mark.parametrize("look", LOOKS)
def test_commands_get_over_it(broken, look):
    """Every one of them ends, in a table or in one line of error."""
    for n in range(0, len(BROKEN), 5):
        text = broken[f"{look} # {n}"]
        assert "Traceback" not in text and text, (BROKEN[n], text)
        assert "Error" not in text, (BROKEN[n], text)
        if text.startswith("error: "):
            assert text.count("\n") == 1, (BROKEN[n], text)


# ---- stopping at events ----------------------------------------------------

# Each at the place where the one before has stopped.
STOPS = ["slab break alloc -c box -n 3", "continue # alloc",
         "slab explain # alloc", "delete # alloc",
         "slab break free -c box", "continue # free",
         "print $slab_state($edx)", "delete # free",
         "slab break grow -c box", "continue # grow", "slab explain # grow",
         "delete # grow",
         "set var $c = $cache(\"pipe\")",
         "slab break alloc -c pipe", "continue # pipe", "delete # pipe",
         "slab break grow -c pipe", "continue # pipe grow", "finish",
         "set var $f = (char *)$c->cache_freelist->slab_head->bufctl_addr",
         "set var $f[25] = 0x34", "delete # pipe grow",
         "slab break error -c pipe", "continue # error",
         "print (char *)((struct kmem_error_record *)$eax)->error_at - $f"]


def run_stopped(kernel):
    return gdb.Session(
        kernel, "kmem create box 200;kmem alloc box 20;kmem free box 1;"
        "kmem alloc box 2;run sh -c 'ls|wc';poweroff", [("play_alloc", STOPS)],
        append="kmem.debug=PU,pipe").said[0]


def test_break_at_the_third_allocation(stopped):
    text = stopped["continue # alloc"]
    assert re.search(r"^slab break alloc: cache box, object 0x\w+190, "
                     r"number 3$", text, re.M), text
    assert "works on box" in stopped["slab explain # alloc"]


def test_break_at_a_free(stopped):
    text = stopped["continue # free"]
    assert re.search(r"^slab break free: cache box, object 0x\w+$", text,
                     re.M), text
    assert stopped["print $slab_state($edx)"].endswith('"used"\n')


def test_break_at_growing(stopped):
    assert "slab break grow: cache box\n" in stopped["continue # grow"]
    assert "kmem_cache_grow works on box" in stopped["slab explain # grow"]
    assert "1 full" in stopped["slab explain # grow"]


def test_break_at_an_error(stopped):
    text = stopped["continue # error"]
    assert re.search(r"^slab break error: modified, cache pipe, object 0x",
                     text, re.M), (text, stopped)
    answer = [v for k, v in stopped.items() if "error_at" in k][0]
    assert answer.endswith(" = 25\n"), answer


# ---- a core ----------------------------------------------------------------

OF_CORE = ["slab kmastat -j", "slab verify", "slab slabs -j", "slab leaks",
           "slab log -n 5", "slab users inode", "slab hash -j",
           "slab explain box", "slab pages", "slab refs $cache(\"box\")"]


def run_dead(kernel, file):
    """What GDB says of a machine, and then of its core."""
    live = gdb.Session(kernel, WORKLOAD + "poweroff", [(END, OF_CORE)],
                       append="kmem.debug=U,inode", core_at=0,
                       core_file=file).said[0]
    return live, gdb.examine(kernel, file,
                             [*OF_CORE, "slab trace box on"])


@pytest.mark.parametrize("line", OF_CORE)
def test_a_core_answers_as_the_machine_did(dead, line):
    live, core = dead
    assert live[line] and not live[line].startswith("error")
    assert core[line] == live[line]


def test_a_core_cannot_be_changed(dead):
    assert dead[1]["slab trace box on"] == \
        "error: slab trace: this target cannot be written to: a memory " \
        "dump?\n"
