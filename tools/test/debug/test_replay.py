"""Recorded runs: they repeat, GDB goes through them in both directions, and
`slate culprit` finds the line of a planted bug (tools/workshop/bugs), which is
marked with the bug's name. A recording that cannot be played is refused with a
reason.

The chapter's bug is followed in each `make test`; `make test-all` does all of
them.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT, sanitized, tiers
from tools.run import records, terminal, watchdog
from tools.test import transcript
from tools.test.planted import marked, seen

pytestmark = pytest.mark.workshop

# Bugs, and the modes that find them: after it was freed, past the end, before
# the start, freed twice, a wrong free, never set, in the allocator's data, by
# an interrupt, by the processor.
BUGS = [("write-after-free", "FPZU"), ("off-by-one", "FPZU"),
        ("underrun", "FPZU"), ("double-free", "FPZU"),
        ("double-free-late", "FPZU"), ("free-interior", "FPZU"),
        ("free-size", "FPZU"), ("uninitialised", "FPZU"),
        ("free-loop", "FPZU"), ("stale-realloc", "FPZU"),
        ("dangling-list", "FPZU"), ("wild-freelist", "FPZU"),
        ("wild-slab", "FPZU"), ("wild-bufctl", "FPZU"),
        ("race", "FPZU"), ("late-interrupt", "FPZU"),
        ("read-after-free", "FS"), ("too-long", "FUG")]

PAGE = ROOT / "docs/replay.md"
CHAPTER = PAGE.read_text(encoding="utf-8")

# The command that the chapter on time travel records and follows.
RECORDED = re.search(r'^    make record CMD="(bug .*)"$', CHAPTER, re.M)[1]
BUG = RECORDED.split()[-1]
FUNCTION = "bug_" + BUG.replace("-", "_")

def tool(kernel, folder, what, *arguments, typed="", **settings):
    """Runs tools/run/replay.py."""
    return watchdog.run(
        [sys.executable, "-m", "tools.run.replay", "--folder", str(folder),
         what, str(kernel), *arguments], cwd=ROOT, encoding="utf-8",
        input=typed, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env={**os.environ, **settings})


def gdb(kernel, folder, *commands):
    """{command: GDB's output} in a replay. Text after " # " distinguishes equal
    commands."""
    asked = [word for command in commands for word in
             ("-ex", f"echo ---- {command}\\n", "-ex", command.split(" # ")[0])]
    done = tool(kernel, folder, "open", "--", "-batch", *asked)
    parts = re.split(r"^---- (.*)\n", done.stdout, flags=re.M)
    assert parts[1::2] == list(commands), done.stdout
    return dict(zip(parts[1::2], parts[2::2]))


def test_a_record_that_cannot_start_leaves_the_last_one(kernel, tmp_path):
    (tmp_path / "log").touch()
    done = tool(kernel, tmp_path, "record", CMD="ps", QEMU="noqemu")
    assert done.returncode == 1 and "noqemu not found" in done.stdout
    assert (tmp_path / "log").exists()


# ---- a run, again and again -------------------------------------------------

@pytest.fixture(scope="module")
def folder(kernel, shared_path):
    """A recording: programs, and then a bug that ends it with a panic."""
    done = tool(kernel, shared_path, "record",
                CMD="run sh -c 'echo hello > /tmp/x'; run cat /tmp/x; "
                    f"{RECORDED}; ps")
    assert done.returncode == 0, done.stdout
    assert "recorded: " in done.stdout, done.stdout
    return shared_path


@pytest.fixture(scope="module")
def walk(kernel, folder):
    """One session of GDB; each answer is looked at by a test of its own."""
    return gdb(
        kernel, folder, "slate when", "hbreak sys_write", "continue",
        "slate when # 1", "reverse-finish", "slate when # 2", "x/i $pc",
        "reverse-stepi", "slate when # 3", "stepi", "slate when # 4", "step",
        "slate when # 4a", "slate ps", "slate nothing", "slate when # 4b",
        "reverse-step", "slate when # 5", "next", "reverse-next",
        "slate when # 6", "delete", "break cat_never_called",
        "slate culprit $sp", "continue # end", "slate when # end",
        "continue # no", "slate when # still", "reverse-stepi # end",
        "slate when # before the end", "slate culprit", "slate when # culprit",
        "bt 1", "slate culprit # again", "hbreak kmain",
        "slate culprit &timer_now.now_low",
        "slate culprit 0x4", "slate culprit 1 2", "slate culprit symbol_table",
        "reverse-continue",
        "slate when # kmain", "delete # all", "reverse-continue # start",
        "slate when # start", "slate culprit # from the start")


def when(walk, label):
    """The instruction that `slate when` named."""
    said = walk[f"slate when # {label}"]
    return int(re.match(r"instruction (\d+) of \d+\n\Z", said).group(1))


def test_the_record_has_what_was_said(folder):
    text = (folder / "serial").read_text(encoding="utf-8")
    assert "hello" in text, text
    assert "buffer modified after being freed" in text, text


def test_forwards_and_backwards(walk):
    assert "sys_write" in walk["continue"]
    assert when(walk, 2) == when(walk, 1) - 1, "the call before"
    assert "call" in walk["x/i $pc"]
    assert when(walk, 3) == when(walk, 2) - 1
    assert when(walk, 4) == when(walk, 2)
    assert when(walk, 5) <= when(walk, 4) and when(walk, 6) <= when(walk, 4)


def test_a_report_leaves_the_recording_as_it_is(walk):
    assert re.search(r"(?m)^ +5 .* running .* echo$", walk["slate ps"]), walk
    assert walk["slate nothing"] == \
        'slate: no command "nothing"; `help` lists them\n'
    assert when(walk, "4a") == when(walk, "4b")


def test_the_end_is_a_wall(walk):
    assert "This is the end of the recording." in walk["continue # end"]
    assert "The recording ends here" in walk["continue # no"]
    assert when(walk, "still") == when(walk, "end")
    assert when(walk, "before the end") == when(walk, "end") - 1


def test_the_beginning_is_one_too(walk):
    assert "kmain" in walk["reverse-continue"]
    assert f"instruction {when(walk, 'kmain')} of" in walk["slate when"]
    assert "the beginning" in walk["reverse-continue # start"]
    assert when(walk, "start") == 0


def test_the_culprit_is_the_marked_line(walk):
    file, line = marked(BUG)
    said = walk["slate culprit"]
    assert f"Culprit: {FUNCTION} at {file}:{line}\n" in said
    assert re.search(rf"^ +{line}  .*culprit: {BUG} ", said, re.M)
    assert "Error: buffer modified after being freed" in said
    assert re.search(r"instruction \d+, \d+ before the report, "
                     r"task \d+ \(bugs\)", said)
    assert re.search(rf"^Freed by: {FUNCTION} at {file}:", said, re.M), said
    assert re.search(rf"^Allocated by: {FUNCTION} at {file}:", said, re.M), said


def test_gdb_stands_at_the_store(walk):
    assert FUNCTION in walk["bt 1"]
    assert f"\n  instruction {when(walk, 'culprit')}," in walk["slate culprit"]


def test_the_culprit_is_the_same_from_anywhere(walk):
    """Whichever report it begins from."""
    found = {re.search(r"^Culprit: (?s:.*?)^  instruction (\d+),",
                       walk[f"slate culprit{label}"], re.M)[0]
             for label in ("", " # again", " # from the start")}
    assert len(found) == 1, found


def test_last_writer(walk):
    said = walk["slate culprit &timer_now.now_low"]
    assert re.search(r"0x\w{8} became 0x\w{8} by timer_irq at drivers/pit.c:",
                     said), said
    assert "now_low = " in said


def test_wrong_words(walk):
    assert walk["slate culprit 0x4"].startswith("slate culprit: 0x00000")
    assert "nothing is mapped there" in walk["slate culprit 0x4"]
    assert walk["slate culprit 1 2"].startswith(
        "slate culprit: '1 2' is no address")


def test_no_writer(walk):
    """The loader wrote the word, before the machine was started."""
    assert re.match(r"slate culprit: 0x\w{8} was not written in this recording "
                    r"before this moment; `continue` to its end first\n",
                    walk["slate culprit symbol_table"])


def test_the_chapter_says_what_gdb_says(kernel, folder):
    """SLATE_BOOK=write brings the page up to date instead."""
    page = transcript.entries(CHAPTER)
    assert len(page) >= 4
    said = gdb(kernel, folder, *(entry.command for entry in page))
    if os.environ.get("SLATE_BOOK") == "write":
        PAGE.write_text(transcript.rewrite(
            CHAPTER, lambda entry: said[entry.command]), encoding="utf-8")
        return
    wrong = [transcript.difference(e, said[e.command]) for e in page]
    assert not any(wrong), "\n".join(filter(None, wrong))


def test_the_end_is_found_where_a_busy_host_went_past_it(copy):
    recording = records.Recording(copy).load()
    end = recording.about["end"]
    for past in (0, 60_000):
        found = records.last_stop(recording, copy, end + records.LAST_STEPS
                                 + past, records.BIOS_INSTRUCTIONS)
        assert abs(found - end) <= records.LAST_STEPS


def test_an_unexpected_reset(copy):
    """It is a triple fault; the last instruction is the one to look at."""
    recording = records.Recording(copy).load()
    assert recording.about["ended"] == "guest-shutdown"
    assert not records.faulted(recording)
    recording.about["ended"] = "guest-reset"
    assert records.faulted(recording)
    with open(copy / "events", "a", encoding="utf-8") as events:
        events.write('{"event":"reset"}\n')
    assert not records.faulted(recording)


# ---- what is typed ----------------------------------------------------------

def test_keys_are_recorded(kernel, tmp_path):
    done = tool(kernel, tmp_path, "record", typed="whatis kmain\rpoweroff\r")
    assert done.returncode == 0, done.stdout
    assert re.search(r"slate> whatis kmain\s+0x", done.stdout), done.stdout
    assert "whatis kmain" in (tmp_path / "serial").read_text(encoding="utf-8")


def test_ctrl_a():
    keys = terminal.Keys(False)
    assert keys.translate(b"ab\x01") == (b"ab", False)
    assert keys.translate(b"\x01c") == (b"\x01c", False)
    assert keys.translate(b"d\x01xe") == (b"d", True)


# ---- what cannot be played --------------------------------------------------

@pytest.fixture
def copy(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "record")
    return tmp_path / "record"


def changed(copy, **members):
    path = copy / "about.json"
    about = {**json.loads(path.read_text(encoding="utf-8")), **members}
    path.write_text(json.dumps({k: v for k, v in about.items()
                                if v is not None}), encoding="utf-8")


def refusal(folder, kernel=None):
    with pytest.raises(records.ReplayError) as caught:
        records.Recording(folder).load(kernel)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_no_recording(kernel, tmp_path):
    assert "there is no recording" in refusal(tmp_path)
    done = tool(kernel, tmp_path, "open")
    assert done.returncode != 0
    assert done.stdout == f"make replay: there is no recording in {tmp_path}: "\
        "make record\n"


def test_another_kernel(copy, tmp_path):
    other = tmp_path / "slate.elf"
    other.write_bytes(b"another")
    assert "has changed since the recording" in refusal(copy, other)
    changed(copy, initrd_digest="0")
    assert "initrd-workshop.tar has changed" in refusal(copy)
    changed(copy, initrd="/nowhere")
    assert "is missing" in refusal(copy)


def test_another_qemu(copy):
    changed(copy, qemu="QEMU emulator version 1.0")
    assert "version 1.0, and this is" in refusal(copy)


def test_a_damaged_recording(copy):
    changed(copy, end=None)
    assert "lacks end" in refusal(copy)
    (copy / "about.json").write_text("{", encoding="utf-8")
    assert "damaged" in refusal(copy)


def test_a_missing_log(copy):
    (copy / "log").unlink()
    assert "log is missing" in refusal(copy)


def test_a_log_that_was_cut(kernel, copy):
    with open(copy / "log", "r+b") as log:
        log.truncate(100)
    recording = records.Recording(copy).load()
    with pytest.raises(records.ReplayError, match="cannot be played"):
        records.finish(recording)


def test_wrong_settings(kernel, tmp_path):
    done = tool(kernel, tmp_path, "record", CMD="ps", MEM="much")
    assert done.stdout == "make record: MEM=much is not a number, as in " \
        "MEM=16\n"
    done = tool(kernel, tmp_path, "culprit")
    assert done.stdout.startswith('make culprit: wants CMD="')


def test_no_error_no_culprit(kernel, tmp_path):
    done = tool(kernel, tmp_path, "culprit", CMD="ps")
    assert done.returncode != 0
    assert "slate culprit: no heap error is reported in this recording" in \
        done.stdout
    assert "of a leaked object: slate culprit ADDR" in done.stdout


def test_a_qemu_that_hangs_is_ended(kernel, folder):
    said = gdb(kernel, folder, "python reverse._patience = 0", "slate culprit",
               "slate when")
    assert re.match(r"slate culprit: .*: watchdog: QEMU did not respond in 0 s "
                    r"and was ended; `make replay` opens the recording again\n",
                    said["slate culprit"]), said
    assert said["slate when"].startswith("slate when: no target")


# ---- a program ---------------------------------------------------------------

def test_both_frees_of_a_program(kernel, tmp_path):
    """Both are shown with their lines, as in the chapter on heap bugs."""
    command, page = re.search(
        r'^    make culprit CMD="(run .*)"\n\n((?:    .*\n)+)',
        (ROOT / "docs/heap-bugs.md").read_text(encoding="utf-8"), re.M).groups()
    said = tool(kernel, tmp_path, "culprit", CMD=command).stdout
    found = said[said.find("Error: "):].splitlines()
    assert transcript.matches([line[4:] for line in page.splitlines()],
                              found), said
    numbers = [int(n) for n in re.findall(
        r"^Freed (?:again )?by: free_twice at user/tests/crash/main.c:(\d+)$",
        said, re.M)]
    source = (ROOT / "user/tests/crash/main.c").read_text("utf-8").splitlines()
    assert numbers[1] == numbers[0] + 1 and \
        {source[n - 1].strip() for n in numbers} == {"free(p);"}, said


# ---- planted bugs -----------------------------------------------------------

@pytest.mark.parametrize("bug,modes", tiers([], BUGS))
def test_each_bug_is_followed_to_its_line(kernel, tmp_path, bug, modes):
    go_on = sanitized() and seen(bug, modes)  # to where the modes see it
    done = tool(kernel, tmp_path, "record",
                CMD=f"bug {'-s ' * bool(go_on)}-m {modes} {bug}")
    assert done.returncode == 0, done.stdout
    answer = gdb(kernel, tmp_path, "slate culprit")["slate culprit"]
    first, *others = re.findall(r"^([A-Z][\w ]+): \w+ at (\S+):(\d+)$", answer,
                                re.M)
    found = [(file, int(line)) for role, file, line in (first, *others)
             if role in (first[0], "Freed again by")]
    assert marked(bug) in found, answer
