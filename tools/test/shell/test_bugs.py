"""The planted bugs (tools/workshop/bugs). Every bug in every debugging mode is
found as and when the table in docs/heap-bugs.md says; the report agrees with
the damage; workloads without a bug report nothing. The table is the only list
of expectations: the kernel's own, after EXPECTED, is compared with it.

A report of the allocator stops the machine, as a fault does: such a bug has a
machine of its own. A kernel under the sanitizers must pass all this as well:
with `bug -s` they report, and the bug continues. There the column SANITIZE is
checked, too."""
# Tests: kernel/mm_debug.c

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import long, sanitized, tiers
from tools.run import qemu
from tools.test import planted
from tools.test.planted import MODES, TABLE, WHAT

pytestmark = pytest.mark.workshop

# The names of a table's cells in events; a fault comes at once.
CELL = {"at once": "once", "at free": "free",
        "at the next allocation": "alloc", "when its slab is destroyed": "reap",
        "by a scan": "scan", "by a scan for leaks": "leaks", "never": "·"}
# Modes in which all bugs are tried in `make test`.
SOON = ("-", "FPZU")

BUDGET = 8000


def visit(kernel, mode, name):
    letters, append = ("-", "kmem.verify=1") if mode == "V" else (mode, "")
    return qemu.run(kernel, f"bug -s -m {letters} {name}; verify; poweroff",
                    append=append, memory="64", budget=BUDGET)


def quiet_ones(result):
    """{bug: cell}: those that did not stop the machine."""
    return {e["name"]: CELL[e["when"]] for e in result.named.get("bug", ())}


def visit_mode(kernel, mode):
    """{bug or "all": result} in a mode, two machines at a time: "all" has those
    that do not stop the machine."""
    done = {"all": visit(kernel, mode, "all")}
    alone = sorted(TABLE.keys() - quiet_ones(done["all"]).keys())
    with ThreadPoolExecutor(2) as pool:
        done.update(zip(alone, pool.map(
            lambda name: visit(kernel, mode, name), alone)))
    return done


@pytest.fixture(scope="module")
def visits(kernel):
    """A function: all bugs in a mode."""
    done = {}

    def in_mode(mode):
        if mode not in done:
            done[mode] = visit_mode(kernel, mode)
        return done[mode]
    return in_mode


in_modes = pytest.mark.parametrize(
    "mode", tiers(SOON, [m for m in MODES if m not in SOON]))


def test_the_table_names_every_bug(kernel):
    result = qemu.run(kernel, "bug list -j; bug list; poweroff", memory="64",
                      budget=BUDGET)
    lines = qemu.plain(result.text).splitlines()
    bugs = qemu.json_lines(result.text)
    assert len(bugs) >= 16
    assert {b["name"]: b["what"] for b in bugs} == WHAT
    assert not [line for line in lines if len(line) > 80 and
                not line.startswith("{")]
    for name in WHAT:
        assert any(line.startswith(name + " ") for line in lines), name


def test_every_bug_has_a_culprit():
    for name in TABLE:
        planted.marked(name)


def cell(result, name):
    """When a bug was found in a machine of its own, as in the table."""
    if name in quiet_ones(result):
        return quiet_ones(result)[name]
    if result.named["panic"][0]["text"].startswith("page fault"):
        return "fault"
    return CELL[result.named["bug-step"][-1]["when"]]


@in_modes
def test_found_when_the_table_says(visits, mode):
    done = visits(mode)
    found = quiet_ones(done["all"].good())
    for name, result in done.items():
        if name != "all":
            assert result.named["bug-step"][-1]["name"] == name, \
                result.explain()
            found[name] = cell(result, name)
    assert found == {name: cells[mode] for name, cells in TABLE.items()}


@in_modes
def test_expected_is_what_is_reported(visits, mode):
    """The reports agree with the kernel's own list, without kmem.verify."""
    seen = 0
    for name, result in visits(mode).items():
        text = result.text.replace("\r", "")
        for expected, when in re.findall(
                r"^EXPECTED  (.*)$(?:.|\n)*?^REPORTED  (.*)$", text, re.M):
            assert mode == "V" or \
                expected.split(":")[0] == when.split(":")[0], result.explain()
            seen += 1
        if name == "all" or mode == "V" or name in quiet_ones(result):
            continue
        expected = re.search(r"^EXPECTED  ([^:]*): (.*(?:\n {10}.*)?)$", text,
                             re.M)
        title = re.search(r"^kernel memory allocator: (.*)$", text, re.M)
        assert not title or expected[2].split(":\n          ")[-1] == \
            title[1], result.explain()
        assert CELL[expected[1]] == CELL[result.named["bug-step"][-1]["when"]]
        seen += 1
    assert seen >= len(TABLE) if mode != "V" else seen > 10


@in_modes
def test_found_by_a_sanitizer_as_the_table_says(visits, mode):
    """In a kernel without sanitizers, none reports."""
    for name, result in visits(mode).items():
        bugs = {e["name"] for e in result.named["bug-step"]}
        assert name == "all" or bugs == {name}
        wrong = planted.differences(result, bugs, mode) if sanitized() else \
            planted.reports(result)
        assert not wrong, f"{name} in {mode}: {wrong}\n{result.explain()}"


def written(result, name):
    """The address and the record of what the bug wrote, or None."""
    for event in result.named.get("bug-write", ()):
        if event["name"] == name:
            return event["buf"] + event["offset"], event
    return None


@in_modes
def test_those_that_stop_the_machine(visits, mode):
    """The report is followed by a panic that names the same; a fault's panic
    names the address."""
    for name, result in visits(mode).items():
        if name == "all" or name in quiet_ones(result):
            continue
        where = f"{name} in {mode}\n{result.explain()}"
        error = [e["kind"] for e in result.named.get("kmem_error", ())]
        panic = result.named["panic"][0]["text"]
        if name in ("zero-bytes", "destroyed-cache"):
            assert error == [] and \
                ("0x00000000" if name == "zero-bytes" else
                 "cache destroyed: bugs_short") in panic, where
            continue
        if mode == "V" and panic.startswith("kmem_verify: "):
            assert error == [] and cell(result, name) != TABLE[name]["-"]
            continue
        assert len(error) == 1, where
        if TABLE[name][mode] != "fault":
            title = re.search(r"^kernel memory allocator: (.*?)\r?$",
                              result.text, re.M)[1]
            assert panic.startswith(f"{title}: "), where
            continue
        assert panic.startswith("page fault"), where
        assert error == ["fault"], where
        if written(result, name):
            assert f"0x{written(result, name)[0]:08x}" in panic, where


@pytest.mark.parametrize("mode, name, says", [
    ("FPZU", "uninitialised", "the address is 0xbaddcafe or near it"),
    ("FPZU", "free-loop", "the address is 0xdeadbeef or near it"),
    pytest.param("S", "read-after-free", "after it was freed: its page is "
                 "unmapped", marks=long),
    pytest.param("G", "off-by-one", "past its end: its page is unmapped",
                 marks=long)])
def test_faults_are_named(visits, mode, name, says):
    """A fault's report describes the address."""
    result = visits(mode)[name]
    assert "access through a bad pointer" in result.text
    assert says in result.text, result.explain()
    errors = result.named["kmem_error"]
    assert errors[0]["cache"] == ("bugs_snode" if "page" in says else "")


def test_one_that_cannot_begin_leaves_all_modes(kernel):
    run = qemu.run(kernel, "fail slab -r 1 -c kmem_cache; bug leak; fail off; "
                   "kmastat -j; poweroff", append="kmem.debug=FPZU",
                   memory="64", budget=BUDGET)
    rows = [row for row in qemu.json_lines(run.text) if "cache" in row]
    assert "cannot be put into these modes" in run.text
    assert {row["modes"] for row in rows if row["kind"] == "class"} == {"FPZU"}


@pytest.mark.parametrize("mode", ["-", "FPZU"])
def test_what_is_kept_leaked_is_freed_by_the_next_run(kernel, mode):
    done = qemu.run(kernel, f"bug -m {mode} -k leak-cycle; bug leak; verify; "
                    "poweroff", memory="64", budget=BUDGET).good()
    assert re.findall("by a scan for leaks: (. lost)", done.text) == \
        ["2 lost", "3 lost"], done.explain()
    assert "status" not in done.named, done.explain()


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


@pytest.mark.parametrize("mode", tiers(["FPZU"], ["P", "Z"]))
def test_damage_is_reported_as_it_was_done(visits, mode):
    seen = 0
    for name, result in visits(mode).items():
        done = written(result, name)
        errors = result.named.get("kmem_error", ())
        if done is None or not errors or \
                errors[0]["kind"] not in ("modified", "redzone"):
            continue
        at, event = done
        error = errors[0]
        assert error["at"] == at, name
        assert (error["expected"], error["found"]) == \
            as_reported(error["kind"], event), name
        offset = at - error["buf"]
        assert error["offset"] == (
            offset & ~3 if error["kind"] == "modified" else offset), name
        seen += 1
    assert seen >= {"P": 9, "Z": 6, "FPZU": 13}[mode]


def report_of(result):
    """The lines of the report, up to the panic's."""
    text = result.text.replace("\r", "").split("\npanic: ", 1)[0]
    return text.split("kernel memory allocator: ")[1].rstrip("\n")


HEX = r"[0-9a-f]{8}"
FRAMES = r"(?:\w+\+0x[0-9a-f]+\n)+"
PLACE = rf"buffer={HEX}  bufctl={HEX}  cache: \w+\n"
CHANGED = (r"modification occurred at offset -?0x[0-9a-f]+ "
           r"\(0x[0-9a-f]+ replaced by 0x[0-9a-f]+\)\n")
CONTENTS = rf"contents around it:\n(?:{HEX}:(?:[ >][0-9a-f]{{2}}){{16}}\n)+"


def transaction(what):
    return (rf"thread=\d+ \([\w-]+\)  time=T-\d+\.\d{{6}}  slab={HEX}  "
            rf"cache: \w+  {what}\n{FRAMES}")


HISTORY = rf"previous transactions on buffer {HEX}:\n"
AGAIN = rf"(?:\(transaction log continues at {HEX}: `log {HEX}`\)\n)?"
FREED = HISTORY + transaction("free") + transaction("alloc") + AGAIN
OUT = HISTORY + transaction("alloc") + rf"(?:{transaction('free')})?" + AGAIN

REPORTS = {
    "write-after-free": "buffer modified after being freed\n" + CHANGED +
                        PLACE + CONTENTS + FREED,
    "off-by-one": "buffer written outside its bounds\n" + CHANGED + PLACE +
                  CONTENTS + OUT,
    "underrun": "buffer written outside its bounds\n" + CHANGED + PLACE +
                CONTENTS + OUT,
    "double-free": "buffer freed twice\n" + PLACE + FREED,
    "free-never": "freed address is not an allocated buffer\n"
                  "it is a free buffer of cache bugs_snode\n" + PLACE +
                  "no previous transactions: it was never "
                  "allocated\n",
    "free-interior": "freed address is not a buffer's start\n"
                     "it is 8 bytes into a buffer of cache bugs_snode\n" +
                     PLACE + OUT,
    "free-foreign": "buffer freed to the wrong cache\n"
                    "it belongs to cache bugs_snode, not bugs_conn\n" +
                    PLACE + OUT,
    "free-stack": "freed address is not an allocated buffer\n"
                  r"it is on the stack of task \d+ \(bugs\)\n"
                  rf"buffer={HEX}  cache: bugs_frame\n",
    "free-static": "freed address is not an allocated buffer\n"
                   r"it is data of the kernel's image.*\n"
                   rf"buffer={HEX}  cache: bugs_frame\n",
    "free-size": "buffer freed with the wrong size\n"
                 "allocated with 330 bytes, freed with 320\n" + PLACE + OUT,
    "wild-bufctl": "bufctl is damaged\n"
                   rf"it does not point to a slab\nbuffer={HEX}  "
                   "cache: bugs_snode\n" + CONTENTS,
    "wild-freelist": r"slab data is damaged\nits freelist points .+\n"
                     rf"slab={HEX}  cache: bugs_snode\n" + CONTENTS,
    "wild-slab": rf"slab data is damaged\n.+\nslab={HEX}  "
                 "cache: bugs_snode\n" + CONTENTS,
}


@pytest.mark.parametrize("name", REPORTS)
def test_reports_have_every_field(visits, name):
    """Statements S-56 and S-57."""
    text = report_of(visits("FPZU")[name]) + "\n"
    assert re.fullmatch(REPORTS[name], text), text


def test_each_bug_is_in_its_own_report(visits):
    """The first frame above the allocator is the bug's function; the panic's
    frames have it too."""
    result = visits("FPZU")["double-free"]
    text = report_of(result)
    frames = re.findall(r"^(\w+)\+", text, re.M)
    assert frames.count("bug_double_free") == 2, text
    assert "  bug_double_free+" in result.text.split("panic: ")[1], text


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
                      budget=100_000).good()
    assert "kmem_error" not in result.named, result.explain()


def test_no_false_alarm(kernel):
    quiet(kernel, "FPZUS", SHORT)


@long
@pytest.mark.parametrize("modes", ["FPZU", "FPZUS", "G", "FPZUSG"])
@pytest.mark.parametrize("command", WHOLE)
def test_no_false_alarm_in_whole_workloads(kernel, modes, command):
    quiet(kernel, modes, [command])
