"""The commands of `slate` in GDB on programs that wait for one another in every
way: stacks and address spaces, and the reports of the kernel that the book
shows. At the last stop the memory is written to a core, and a GDB on the core
must give the same answers.
"""
# Tests: tools/gdb/command.py, tools/gdb/heap.py, tools/gdb/values.py

import os
import re
import sys

import pytest

from conftest import BUILD, ROOT, execute
from tools.run import gdb
from tools.test import transcript

PAGE = ROOT / "docs/gdb-objects.md"

# Commands of the page that are not compared: sessions here move otherwise.
ELSEWHERE = ("continue", "tbreak ", "monitor ")

# The part of the page where the machine is in cat, at an earlier stop.
EARLY = "## Symbols of programs", "## Cores"

# cat(9) waits for a pipe, pong(12) copies for ping(17). kill leaves the
# processor to them for 10 ms, then the timer gives it back to the shell.
PROGRAMS = ("run -b sh -c 'sleep 99|cat';run -b sleep 99;run -b -p init;"
            "run sleep 1;run -b pong;run -b sh -c 'ls|sleep 99';run sleep 1;"
            "run -b ping -n9999 -s{size};kill 5;")

EXAMPLES = {"slate bt": "slate bt 2", "slate enter": "slate enter 2",
            "slate space": "slate space 4"}

FOLDER = os.path.relpath(BUILD, ROOT)
IN_CAT = ["bt 1", "slate bt", "output $pid()", "slate bt 4", "bt 1 # again",
          "remove-symbol-file -a copy_file"]


def is_early(entry):
    """Whether a transcript is of the earlier stop."""
    before = "\n".join(PAGE.read_text("utf-8").split("\n")[:entry.first])
    return EARLY[0] in before and EARLY[1] not in before


def of_the_page():
    """The commands in the book, in order, for the stop at `dmesg`."""
    return [e.command for e in transcript.entries(PAGE.read_text("utf-8"))
            if not is_early(e) and not e.command.startswith(ELSEWHERE)]


# Structures and functions of the heap, and what GDB prints for them.
INODE = "$task(9)->task_cwd"
HEAP = {
    'print $cache("inode")->cache_name': '= "inode"',
    'print *$cache("inode")':
        r"= cache inode: \d+ bytes, \d+ of \d+ in use, \d+ slabs? of \d+ = {",
    'print *$cache("inode")->cache_freelist':
        r"= slab of inode: partial, \d+ of \d+ used, colour \d+, page 0x",
    'print $cache("inode")->cache_null':
        r"= head of the slabs of inode = {\n  slab_link = \d+ others?: next 0x",
    "print kmem_caches": r"= \d+ others: next 0x\w{8}, prev 0x\w{8}$",
    "print/r kmem_caches": "= {\n  next = 0x",
    f"print $slab_state({INODE})": '= "used"',
    f"print $slab_cache({INODE})->cache_name": '= "inode"',
    f"print $slab_base((char *){INODE} + 9) == {INODE}": "= 1$",
    'print $slab_state($cache("inode")->cache_freelist->slab_head)': '= "free"',
    'print $slab_state($cache("inode")->cache_freelist)': '= "none"',
    'print $slab_base($cache("inode")->cache_freelist)': r"= \(void \*\) 0x0$",
    "print $slab_state($task(9)->task_kstack)": '= "used"',
    "print $slab_cache($task(9)->task_kstack)->cache_name": '= "kstack"',
    "print $slab_cache(&kmem_caches)": r"= \(struct kmem_cache \*\) 0x0$",
    f"print $slab_owner({INODE})": "= -1$",
    "print $slab_owner(0)": "= -1$"}

# The same when the heap is broken.
BROKEN = {
    'set var $cache("inode")->cache_frees = $cache("inode")->cache_allocs + 5':
        "^$",
    'print *$cache("inode")': r"in use, .* ! counts contradict each other = {",
    'set var $cache("inode")->cache_link.next = (struct list *)0x10': "^$",
    "print kmem_caches": r"= ! broken after \d+ others: next 0x"}

# What a core answers, too.
VIEWS = ["slate bt 17", "slate bt", "slate bt 0", "slate dmesg",
         "print *$task(9)", "print *$task(9)->task_cwd",
         "print *(struct file *)$task(9)->task_handles->table_slot[0]"
         ".handle_object", "print $task(99)", "print $cache(\"none\")",
         *HEAP, *EXAMPLES.values(), "slate",
         "slate bt 2 + 2", "slate bt 4", "slate bt $task(4)->task_pid",
         "slate space $task(4)", "slate enter 9", "frame level 5",
         "print c->cond_waiters.wait_reason", "slate enter", "bt 1"]
ASKED = [*of_the_page(), *VIEWS, "slate ports -w"]

SAME = {"slate bt 2 + 2": "slate bt 4", "slate space $task(4)": "slate space 4",
        "slate bt $task(4)->task_pid": "slate bt 4"}

WRONG = {"slate when 5": "slate when: usage: slate when",
         "slate space": "slate space: usage: slate space PID",
         "slate bt 99": "slate bt: there is no task 99; `slate ps` lists them",
         "slate bt x": "slate bt: 'x' is no pid; `slate ps` lists them",
         "slate enter 1": "slate enter: task 1 has no stack to enter: it runs, "
                          "or has ended",
         "slate space 2": "slate space: task 2 has no address space; programs "
                          "have"}


@pytest.fixture(scope="module")
def core_file(shared_path):
    return shared_path / "core"


@pytest.fixture(scope="module")
def run(kernel, core_file):
    cat = 'copy_file if $_streq(cpu_boot.cpu_task->task_name, "cat")'
    looks = [f"help {command}" for command in EXAMPLES]
    steps = [("shell_run", [f"add-symbol-file {FOLDER}/user/bin/cat"]),
             (cat, IN_CAT), ("cmd_dmesg", ASKED),
             ("taskcmd_reap", [*looks, *WRONG, *BROKEN])]
    # A run repeats itself exactly; another size is another run. pong copies
    # nine tenths of the time, so the first will do nearly always.
    for size in (65000, 64000, 63000):
        session = gdb.Session(
            kernel, f"kmastat -z;{PROGRAMS.format(size=size)}dmesg", steps,
            core_at=2, core_file=core_file)
        if "ipc_transfer" in session.said[2]["slate bt 12"]:
            break
    return session


@pytest.fixture(scope="module")
def live(run):
    """GDB's output at the stop where the core was made."""
    return run.said[2]


def lines_of(text):
    return text.rstrip("\n").split("\n")


# ---- reports and arguments -------------------------------------------------

def test_dmesg_is_what_was_printed(live, run):
    """It is the last 16 KiB of the serial line's output up to `dmesg`."""
    said = live["slate dmesg"]
    assert len(said) > 4000
    assert said.rstrip("\n") in run.serial


@pytest.mark.parametrize("expression", SAME)
def test_an_expression_is_what_it_stands_for(live, expression):
    assert live[expression] == live[SAME[expression]]
    assert not live[expression].startswith("error"), live


# ---- stacks ----------------------------------------------------------------

def names_in(text):
    """The functions of a backtrace, the innermost first."""
    return re.findall(r"^#\d+ +(?:0x\w+ in )?(\w+)", text, re.M)


def own_frames(live, task):
    """The functions on a task's stack, as the kernel finds them."""
    text = live["slate ports -w"].split(f"stack of {task}")[1]
    text = text.split("the stack")[0]
    found = re.findall(r"  (\w+)\+0x", text)
    assert len(found) > 4
    return found


def test_bt_of_a_task_that_waits(live):
    """With inlined functions, places and the functions of the program."""
    said = live["slate bt 9"]
    names = names_in(said)
    assert "cat(9), blocked, waits for: pipe-empty" in said
    assert re.search(r"pipe_read \(.*\) at kernel/fs/pipe.c:\d+", said), said
    assert names[names.index("trap_syscall") + 1:] == \
        ["read", "copy_file", "main", "start", "_start"], said
    assert re.search(r"main \(\) at user/bin/cat.c:\d+", said), said


@pytest.mark.parametrize("pid,task", [(17, "ping(17)"), (12, "pong(12)")])
def test_bt_and_the_kernel_find_the_same_callers(live, pid, task):
    text = live[f"slate bt {pid}"].split("-- ring 3")[0]
    names, own = names_in(text), own_frames(live, task)
    assert [n for n in names if n in own] == own, names


def test_bt_through_an_interrupt(live):
    """pong was interrupted while it copied a message in the kernel."""
    kernel, program = live["slate bt 12"].split("-- ring 3, pong: ")
    assert {"trap_common", "ipc_transfer"} <= set(names_in(kernel)), kernel
    assert names_in(program) == ["ipc_reply_receive", "main", "start",
                                 "_start"], program


def test_bt_finds_the_caller_of_a_stub_without_frame(live):
    """ipc_call of user/lib/syscall.asm keeps something else in EBP."""
    program = live["slate bt 17"].split("-- ring 3, ping: ")[1]
    assert names_in(program) == ["ipc_call", "call", "main", "start",
                                 "_start"], program


def test_bt_of_the_task_that_runs(live):
    names = names_in(live["slate bt"])
    assert names[0] == "cmd_dmesg" and "kmain" in names, live["slate bt"]


def test_frames_of_another_task(live):
    assert '"pipe-empty"' in live["print c->cond_waiters.wait_reason"], live
    assert live["slate enter"] == \
        "the frames are those of the task that runs\n"
    assert live["bt 1"].startswith("#0  cmd_dmesg (")


# ---- what only GDB has -----------------------------------------------------

def test_space_adds_up(live):
    regions, tables = live["slate space 9"].split("\n\n")
    there = sum(int(row.split()[3]) for row in lines_of(regions)[1:])
    *runs, last = lines_of(tables)[1:]
    assert sum(int(row.split()[2]) for row in runs) == there > 4
    assert last.startswith(f"pages {there}, page tables 1, directory 0x")
    kinds = [row.split()[5] for row in lines_of(regions)[1:]]
    assert kinds[0] == "stack" and set(kinds) == {"stack", "image", "heap"}


@pytest.mark.parametrize("line", HEAP)
def test_the_heap_in_expressions(live, line):
    assert re.search(HEAP[line], live[line]), live[line]


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_heap_in_expressions(run, line):
    assert re.search(BROKEN[line], run.said[-1][line]), run.said[-1][line]


def test_printers_and_functions(live):
    assert live["print *$task(9)"].split("= ", 1)[1].startswith(
        "cat(9), blocked, waits for: pipe-empty = {\n  task_pending")
    assert live["print $pid()"].endswith("= 1\n")
    assert re.search(r"= ram inode \d+, \d+ bytes, \d+ references? = {\n",
                     live["print *$task(9)->task_cwd"])
    assert re.search(r"space_regions = 5 others: next 0x",
                     live["print *$task(9)->task_space"])
    file = live["print *(struct file *)$task(9)->task_handles"
                "->table_slot[0].handle_object"]
    assert re.search(r"= pipe 0x\w+ = {", file), file
    assert "there is no task 99" in live["print $task(99)"]
    assert "no cache is called 'none'" in live["print $cache(\"none\")"]


def test_conditions_look_anew_each_time(kernel):
    """The first to write is ls: the condition does not hold, and GDB goes on
    without having stopped."""
    session = gdb.Session(
        kernel, "run ls /; run wc /etc/servers; poweroff",
        [(None, ["break sys_write if $pid() == 5", "continue",
                 "output $pid()", "slate bt"])])
    assert session.said[0]["output $pid()"] == "5"
    assert session.said[0]["slate bt"].startswith("wc(5), running\n")


def test_a_breakpoint_in_a_program(run):
    """It was set before there was a cat."""
    said = run.said[1]
    assert re.match(r"#0  (0x\w+ in )?copy_file \(.*\) at user/lib/copy.c",
                    said["bt 1"]), said
    assert names_in(said["slate bt"]) == \
        ["copy_file", "main", "start", "_start"]
    assert said["output $pid()"] == "9"
    assert names_in(said["slate bt 4"].split("-- ring 3, sh")[1])[-2:] == \
        ["start", "_start"]
    assert said["bt 1 # again"] == said["bt 1"]


# ---- the core --------------------------------------------------------------

def test_the_core_says_the_same(kernel, core_file, live):
    said = gdb.examine(kernel, core_file, VIEWS)

    def text(answer):  # numbers in the value history differ
        return re.sub(r"^\$\d+", "$", answer, flags=re.M)
    for command in VIEWS:
        assert text(said[command]) == text(live[command]), command


# ---- the book --------------------------------------------------------------

@pytest.mark.skipif(BUILD != ROOT / "build",
                    reason="the page shows the plain build")
def test_the_book_is_true(run, live):
    """SLATE_BOOK=write brings the page up to date instead."""
    early = {**run.said[0], **run.said[1]}

    def answer(entry):
        return (early if is_early(entry) else live).get(entry.command)
    text = PAGE.read_text(encoding="utf-8")
    if os.environ.get("SLATE_BOOK") == "write":
        PAGE.write_text(transcript.rewrite(text, answer), encoding="utf-8")
        return
    entries = [e for e in transcript.entries(text)
               if not e.command.startswith(ELSEWHERE)]
    assert len(entries) > 20
    for entry in entries:
        wrong = transcript.difference(entry, answer(entry))
        assert wrong is None, f"{PAGE.name}, {wrong}"


def test_transcripts_are_compared():
    """Numbers and widths do not count, words and rows do."""
    page = ("text\n\n    (gdb) one\n    ROW 1\n    ROW   22 0xc0\n"
            "    (gdb) two\n\nmore\n    (gdb) three\n    a 1\n    ...\n    z\n")
    one, two, three = transcript.entries(page)
    assert (one.command, one.output) == ("one", ["ROW 1", "ROW   22 0xc0"])
    assert transcript.difference(one, "ROW 23\nROW 4 0x17\n") is None
    assert transcript.difference(one, "ROW 23\n") is not None
    assert transcript.difference(one, "ROW 23\nRAW 4 0x17\n") is not None
    assert transcript.difference(two, "") is None
    assert transcript.difference(two, "a\n") is not None
    assert transcript.difference(three, "a 2\nb\nc\nz\n") is None
    assert transcript.difference(three, "a 2\nb\nc\n") is not None
    new = {"one": "X\n", "two": "Y\nZ\n"}
    for answer, kept in ("a 2\nb\nc\nz\n", "a 2"), ("no\n", "a 1"):
        new["three"] = answer
        assert transcript.rewrite(page, lambda e: new[e.command]) == (
            "text\n\n    (gdb) one\n    X\n    (gdb) two\n    Y\n    Z\n\n"
            f"more\n    (gdb) three\n    {kept}\n    ...\n    z\n")


# ---- help and errors -------------------------------------------------------

def test_every_command_is_listed(live):
    listed = re.findall(r"^(slate \w+)", live["slate"], re.M)
    assert set(listed) >= set(EXAMPLES) and listed == sorted(listed)
    sources = "".join(p.read_text(encoding="utf-8")
                      for p in (ROOT / "tools/gdb").glob("sl*.py"))
    assert set(re.findall(r'^    """(slate \w+)', sources, re.M)) == \
        set(EXAMPLES)


@pytest.mark.parametrize("command", EXAMPLES)
def test_help_has_an_example_that_works(run, live, command):
    text = run.said[-1][f"help {command}"]
    assert f"\nUsage: {command}" in text
    assert text.endswith(f"\nExample: {EXAMPLES[command]}\n"), text
    assert all(len(line) <= 80 for line in text.splitlines()), text
    said = live[EXAMPLES[command]]
    assert said and not said.startswith("error"), said


@pytest.mark.parametrize("command", WRONG)
def test_wrong_input_is_one_line(run, command):
    said = run.said[-1][command]
    assert said.startswith("error: " + WRONG[command]), said
    assert said.count("\n") == 1


# ---- make core -------------------------------------------------------------

def test_make_core_and_open_it(kernel, tmp_path):
    """The programs of `make core` and `make gdb CORE=`, on a panic."""
    file = tmp_path / "slate.core"
    made = execute(sys.executable, "-m", "tools.run.core", kernel, file,
                   MEM="16", ICOUNT="1", CPUS="2",
                   CMD="run -b sleep 9; panic \"for a test\"")
    assert made.returncode == 0, made.stderr
    assert "the kernel has panicked; its memory is in" in made.stdout
    opened = execute(sys.executable, "-m", "tools.run.debug", "--core", file,
                     kernel, "--", "--batch", "-ex", "slate ps",
                     "-ex", "slate bt", "-ex", "slate dmesg",
                     "-ex", "info threads")
    assert re.search(r"^  2 +LWP 2 ", opened.stdout, re.M), opened.stdout
    assert "may not match" not in opened.stdout + opened.stderr
    assert re.search(r"^ +4 .* sleep$", opened.stdout, re.M), opened.stdout
    assert "cmd_panic (" in opened.stdout, opened.stdout
    assert "Only this shell still runs" in opened.stdout


def test_core_needs_a_file_it_can_read(kernel):
    done = execute(sys.executable, "-m", "tools.run.debug", "--core", "nosuch",
                   kernel)
    assert done.returncode == 1
    assert done.stderr.startswith("make gdb: cannot read nosuch;")


def test_a_program_without_a_file_has_no_names(kernel):
    """Even if GDB has the symbols of another program."""
    said = gdb.Session(kernel, "run sh -c 'ls | wc'; poweroff", [
        ("sys_pipe", [f"add-symbol-file {BUILD}/user/bin/sh",
                      "set var $task($pid())->task_name[0] = 'x'",
                      "slate bt"])]).said[0]["slate bt"]
    frames = said.split("-- ring 3, xh: no symbols are known\n")[1]
    assert set(re.findall(r" in (.*)", frames)) == {"?? ()"}, said
