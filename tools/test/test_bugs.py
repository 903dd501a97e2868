"""The planted bugs (tools/workshop/bugs). Every bug in every debugging mode is
found as and when the table in docs/heap-bugs.md says; the report agrees with
the damage; workloads without a bug report nothing; the book's
transcripts are true. The table is the only list of expectations: the
kernel's own, after EXPECTED, is compared with it.

A kernel under the sanitizers must pass all this as well: with kmem.panic=0 they
report, and the bug continues. There the column SANITIZE is checked, too."""
# Tests: kernel/mm_debug.c

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import ROOT, long, sanitized
from tools.run import qemu
from tools.test import planted
from tools.test.planted import MODES, PAGE, TABLE, WHAT

pytestmark = pytest.mark.workshop

# The names of a table's cells in events; a fault comes at once.
CELL = {"at once": "once", "at free": "free",
        "at the next allocation": "alloc", "when its slab is destroyed": "reap",
        "by a scan": "scan", "by a scan for leaks": "leaks", "never": "·"}
ENDS = ("fault", "stop")  # the machine does

BUDGET = 8000


def options(mode):
    """The options of the commands and of the kernel for a column."""
    if mode == "V":
        return "-", "kmem.panic=0 kmem.verify=1"
    return mode, "kmem.panic=0"


def visit(kernel, mode, name):
    letters, append = options(mode)
    return qemu.run(kernel, f"bug -m {letters} {name}; verify; poweroff",
                    append=append, memory="64", budget=BUDGET)


def loud(mode):
    """Bugs that stop the machine in a mode, and those of them that do so in
    this mode alone: {name: whether it is one of these}."""
    return {name: (mode == "-" or cells[mode] != cells["-"])
            and mode != "FPZU"
            for name, cells in TABLE.items() if cells[mode] in ENDS}


def visit_all(kernel, todo):
    """{(mode, bug or "all"): result}, two machines at a time."""
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda which: visit(kernel, *which), todo)
        return dict(zip(todo, done))


@pytest.fixture(scope="module")
def visits(kernel):
    """All bugs in each mode, and alone those that stop the machine there as
    they do in no other."""
    return visit_all(kernel, [
        (mode, name) for mode in MODES for name in
        ["all", *(bug for bug, own in loud(mode).items() if own)]])


@pytest.fixture(scope="module")
def repeated(kernel):
    """The bugs that stop the machine in each mode as they do in others."""
    return visit_all(kernel, [
        (mode, bug) for mode in MODES
        for bug, own in loud(mode).items() if not own])


def test_the_table_names_every_bug(kernel):
    result = qemu.run(kernel, "bug list -j; bug list; poweroff", memory="64",
                      budget=BUDGET)
    lines = result.text.replace("\r", "").splitlines()
    bugs = [json.loads(line) for line in lines if line.startswith("{")]
    assert len(bugs) >= 16
    assert {b["name"]: b["what"] for b in bugs} == WHAT
    assert not [line for line in lines if len(line) > 80 and
                not line.startswith("{")]
    for name in WHAT:
        assert any(line.startswith(name + " ") for line in lines), name


def test_every_bug_has_a_culprit():
    folder = ROOT / "tools/workshop/bugs"
    text = "".join(p.read_text(encoding="utf-8") for p in folder.glob("*.c"))
    for name in TABLE:
        assert len(re.findall(rf"\S.*/\* culprit: {name} \*/$", text,
                              re.M)) == 1, name


@pytest.mark.parametrize("mode", MODES)
def test_found_when_the_table_says(visits, mode):
    result = visits[mode, "all"]
    assert result.problem is None, result.explain()
    assert "every invariant holds" in result.text, result.explain()
    found = {e["name"]: CELL[e["when"]] for e in result.named["bug"]}
    assert found == {name: cells[mode] for name, cells in TABLE.items()
                     if cells[mode] not in ENDS}


@pytest.mark.parametrize("mode", MODES)
def test_expected_is_what_is_reported(visits, mode):
    """The reports agree with the kernel's own list, without kmem.verify."""
    text = visits[mode, "all"].text.replace("\r", "")
    pairs = re.findall(r"^EXPECTED  (.*)$(?:.|\n)*?^REPORTED  (.*)$", text,
                       re.M)
    assert len(pairs) > 15
    for expected, reported in pairs:
        if mode != "V":
            assert expected.split(":")[0] == reported.split(":")[0]


def check_sanitizers(visits):
    for (mode, name), result in visits.items():
        bugs = {e["name"] for e in result.named["bug-step"]}
        assert len(bugs) > 15 if name == "all" else bugs == {name}
        wrong = planted.differences(result, bugs, mode) if sanitized() else \
            planted.reports(result)
        assert not wrong, f"{name} in {mode}: {wrong}\n{result.explain()}"


def test_found_by_a_sanitizer_as_the_table_says(visits):
    """In a kernel without sanitizers, none reports."""
    check_sanitizers(visits)


def written(result, name):
    """The address and the record of what the bug wrote, or None."""
    for event in result.named.get("bug-write", ()):
        if event["name"] == name:
            return event["buf"] + event["offset"], event
    return None


def check_stops(visits):
    for (mode, name), result in visits.items():
        if name == "all":
            continue
        where = f"{name} in {mode}\n{result.explain()}"
        error = [e["kind"] for e in result.named.get("kmem_error", ())]
        panic = result.named["panic"][0]["text"]
        assert result.named["bug-step"][-1] == {
            "event": "bug-step", "name": name, "when": "at once"}, where
        if TABLE[name][mode] == "stop":
            assert error == ["destroyed"] and "destroyed cache" in panic, where
            continue
        assert panic.startswith("page fault"), where
        if name == "zero-bytes":
            assert error == [] and "0x00000000" in panic, where
        else:
            assert error[-1] in ("unmapped", "uninit", "stale"), where
        if written(result, name):
            assert f"0x{written(result, name)[0]:08x}" in panic, where


def test_those_that_stop_the_machine(visits):
    check_stops(visits)


@long
def test_those_that_stop_the_machine_as_in_other_modes(repeated):
    check_sanitizers(repeated)
    check_stops(repeated)


def test_faults_are_named(visits):
    """A fault's report describes the address."""
    for mode, name, kind in (("P", "uninitialised", "uninit"),
                             ("P", "free-loop", "stale"),
                             ("S", "read-after-free", "unmapped"),
                             ("G", "off-by-one", "unmapped")):
        errors = visits[mode, name].named["kmem_error"]
        assert [e["kind"] for e in errors] == [kind]
        assert errors[0]["cache"] == ("bugs_snode" if kind == "unmapped"
                                      else "")


# ---- what a report says ----------------------------------------------------

def as_reported(kind, event):
    """(expected, found) of a report of the damage that was done."""
    if kind != "modified":
        return 0xbb, event["value"] & 0xff
    if event["size"] == 4:
        return 0xdeadbeef, event["value"]
    word = bytearray(0xdeadbeef.to_bytes(4, "little"))
    word[event["offset"] % 4] = event["value"]
    return 0xdeadbeef, int.from_bytes(word, "little")


@pytest.mark.parametrize("mode", ["P", "Z", "FPZU"])
def test_damage_is_reported_as_it_was_done(visits, mode):
    result = visits[mode, "all"]
    seen = 0
    for bug in result.named["bug"]:
        done = written(result, bug["name"])
        if done is None or bug["error"] not in ("modified", "end", "start"):
            continue
        at, event = done
        # Fields of the first report of this bug.
        error = next(e for e in result.named["kmem_error"]
                     if e["kind"] == bug["error"] and e["at"] == bug["at"]
                     and e["buf"] == bug["buf"])
        assert error["at"] == at, bug
        assert (error["expected"], error["found"]) == \
            as_reported(bug["error"], event), bug
        offset = at - error["buf"]
        assert error["offset"] == (
            offset & ~3 if bug["error"] == "modified" else offset), bug
        seen += 1
    assert seen >= {"P": 9, "Z": 6, "FPZU": 13}[mode]


def report_of(result, name):
    """The lines of the first report of a bug."""
    text = result.text.replace("\r", "")
    part = text.split(f"\n{name}: ", 1)[1].split("\nREPORTED", 1)[0]
    return part.split("kernel memory allocator: ")[1].rstrip("\n")


HEX = r"[0-9a-f]{8}"
FRAMES = r"(?:\w+\+0x[0-9a-f]+\n)+"
PLACE = rf"buffer={HEX}  bufctl={HEX}  cache: \w+\n"
CHANGED = (r"modification occurred at offset -?0x[0-9a-f]+ "
           r"\(0x[0-9a-f]+ replaced by 0x[0-9a-f]+\)\n")
CONTENTS = rf"contents around it:\n(?:{HEX}:(?:[ >][0-9a-f]{{2}}){{16}}\n)+"
FINDER = rf"found by thread=\d+ \([\w-]+\):\n{FRAMES}"


def transaction(what):
    return (rf"thread=\d+ \([\w-]+\)  time=T-\d+\.\d{{6}}  slab={HEX}  "
            rf"cache: \w+  {what}\n{FRAMES}")


HISTORY = rf"previous transactions on buffer {HEX}:\n"
AGAIN = rf"(?:\(transaction log continues at {HEX}: `log {HEX}`\)\n)?"
FREED = HISTORY + transaction("free") + transaction("alloc") + AGAIN
OUT = HISTORY + transaction("alloc") + rf"(?:{transaction('free')})?" + AGAIN

REPORTS = {
    "write-after-free": "buffer modified after being freed\n" + CHANGED +
                        PLACE + CONTENTS + FINDER + FREED,
    "off-by-one": "buffer written past its end\n" + CHANGED + PLACE +
                  CONTENTS + FINDER + OUT,
    "underrun": "buffer written before its start\n" + CHANGED + PLACE +
                CONTENTS + FINDER + OUT,
    "double-free": "buffer freed twice\n" + PLACE + FINDER + FREED,
    "free-never": "freed address is not an allocated buffer\n"
                  "it is a free buffer of cache bugs_snode\n" + PLACE +
                  FINDER + "no previous transactions: it was never "
                  "allocated\n",
    "free-interior": "freed address is not a buffer's start\n"
                     "it is 8 bytes into a buffer of cache bugs_snode\n" +
                     PLACE + FINDER + OUT,
    "free-foreign": "buffer freed to the wrong cache\n"
                    "it belongs to cache bugs_snode, not bugs_conn\n" +
                    PLACE + FINDER + OUT,
    "free-stack": "freed address is on a stack\n"
                  r"it is on the stack of task \d+ \(bugs\)\n"
                  rf"buffer={HEX}  cache: bugs_frame\n" + FINDER,
    "free-static": "freed address is not an allocated buffer\n"
                   r"it is data of the kernel's image.*\n"
                   rf"buffer={HEX}  cache: bugs_frame\n" + FINDER,
    "free-size": "buffer freed with the wrong size\n"
                 "allocated with 330 bytes, freed with 320\n" + PLACE +
                 FINDER + OUT,
    "wild-bufctl": "bufctl is damaged\n"
                   rf"it does not point to a slab\nbuffer={HEX}  "
                   "cache: bugs_snode\n" + CONTENTS + FINDER,
    "wild-freelist": r"freelist is damaged\nit points .+\n"
                     r"link=10  cache: bugs_snode\n" + CONTENTS + FINDER,
    "wild-slab": rf"slab data is damaged\nits .+\nslab={HEX}  "
                 "cache: bugs_snode\n" + CONTENTS + FINDER,
}


@pytest.mark.parametrize("name", REPORTS)
def test_reports_have_every_field(visits, name):
    """Statements S-56 and S-57."""
    text = report_of(visits["FPZU", "all"], name) + "\n"
    assert re.match(REPORTS[name], text), text


def test_each_bug_is_in_its_own_report(visits):
    """The first frame above the allocator is the bug's function."""
    for name in ("write-after-free", "double-free", "free-interior", "leak"):
        assert TABLE[name]["FPZU"] in ("alloc", "once", "leaks")
    text = report_of(visits["FPZU", "all"], "double-free")
    frames = re.findall(r"^(\w+)\+", text, re.M)
    assert frames.count("bug_double_free") == 3, text


# ---- no false alarm --------------------------------------------------------

SHORT = ["run hackbench -g 1 -f 2 -l 4", "run spike -n 8 -t 20",
         "run walk /bin", "stress 500", "run forktest -n 4"]
WHOLE = ["run -p init usertests", "run kenbus", "run hackbench -g 1 -f 4 -l 20",
         "run spike -n 32 -t 20", "run walk", "stress 5000",
         "run forktest -n 20",
         "test file; test handle; test inode; test hash; test pipe; test tty",
         "test ipc; test ipc_data; test proc; test ramfs_model; test directory",
         "test sync; test kmem_irq; test kmem_sleep; test ustar; test line"]


def quiet(kernel, modes, commands):
    result = qemu.run(kernel, "; ".join([*commands, "verify", "poweroff"]),
                      append=f"kmem.debug={modes}", memory="128",
                      budget=100_000)
    assert result.problem is None, result.explain()
    assert "every invariant holds" in result.text, result.explain()
    assert "kmem_error" not in result.named, result.explain()


def test_no_false_alarm(kernel):
    quiet(kernel, "FPZUS", SHORT)


@long
@pytest.mark.parametrize("modes", ["FPZU", "FPZUS", "G", "FPZUSG"])
@pytest.mark.parametrize("command", WHOLE)
def test_no_false_alarm_in_whole_workloads(kernel, modes, command):
    quiet(kernel, modes, [command])


# ---- the book's transcripts ------------------------------------------------

def transcripts():
    """(kernel options, command, lines) of each block that begins with the
    kernel's prompt."""
    blocks = re.findall(r"^<!-- (kmem\S*) -->\n```\nslate> (.*)\n((?:.*\n)*?)"
                        r"```$", PAGE, re.M)
    return [pytest.param(*block, id=block[1].replace(" ", "_"))
            for block in blocks]


def normal(text):
    """The text without the parts that differ by build or date."""
    text = qemu.plain(text)
    text = re.sub(r"\b(?:0x)?[0-9a-f]{7,8}\b", "ADDR", text)
    text = re.sub(r"\+0x[0-9a-f]+$", "+OFF", text, flags=re.M)
    text = re.sub(r"\d+ of \d+ are reached from \d+", "REACHED", text)
    text = re.sub(r"time=T-[\d.]+", "time=T", text)
    text = re.sub(r"\b\d+(\.\d)?(us|ms|s)\b", "AGE", text)
    return [re.sub(r" +", " ", line).strip() for line in text.splitlines()]


def test_there_are_five_transcripts():
    assert len(transcripts()) >= 5


@pytest.mark.parametrize("append, command, shown", transcripts())
def test_transcripts_are_true(kernel, append, command, shown):
    append = append.replace("+", " ")
    if sanitized():
        append += " kmem.panic=0"  # a sanitizer's report is not the end
    result = qemu.run(kernel, f"{command}; poweroff", memory="64",
                      append=append, budget=BUDGET)
    said = normal(result.text.split("poweroff", 1)[1])
    at = 0
    for part in "\n".join(normal(shown)).split("\n…\n"):
        lines = part.split("\n")
        places = [i for i in range(at, len(said))
                  if said[i:i + len(lines)] == lines]
        assert places, f"not said:\n{part}\n\nsaid:\n" + "\n".join(said)
        at = places[0] + len(lines)
