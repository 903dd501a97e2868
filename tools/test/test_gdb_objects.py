"""The commands of `slate` in GDB, against the kernel shell's own.

One run: programs that wait for one another in every way, then the shell's
commands one by one. GDB stops where each begins and says the same by its own
means; the two texts must be equal. At the last stop everything is asked once
more, the memory is written to a core, and a GDB on the core must give the same
answers. Then structures are broken on purpose.
"""

import json
import os
import re
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT
from tools.run import gdb, watchdog
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
SHELL = ("verify -j;pages -j;ps;pipes;inodes -a;ports;ipc;servers;bt 9;"
         "files 9;files 12;dmesg")

# Commands of which the kernel's text has to be the same, letter by letter.
SAME = [("tasks_row", "slate tasks"), ("cmd_pipes", "slate pipes"),
        ("cmd_inodes", "slate inodes -a"), ("cmd_ports", "slate ports"),
        ("cmd_ipc", "slate ipc"), ("cmd_servers", "slate servers"),
        ("cmd_bt", "slate bt -k 9"),
        ("cmd_files", "slate files 9"), ("cmd_files", "slate files 12")]

EXAMPLES = {"slate bt": "slate bt 2", "slate dmesg": "slate dmesg -n 5",
            "slate cpus": "slate cpus", "slate enter": "slate enter 2",
            "slate files": "slate files 4", "slate inodes": "slate inodes -a",
            "slate ipc": "slate ipc", "slate irqs": "slate irqs",
            "slate locks": "slate locks", "slate mounts": "slate mounts",
            "slate pages": "slate pages page_table",
            "slate pipes": "slate pipes", "slate ports": "slate ports",
            "slate servers": "slate servers",
            "slate space": "slate space 4",
            "slate symbols": "slate symbols ping",
            "slate syms": "slate syms kmain 0xc0101a02",
            "slate tasks": "slate tasks", "slate verify": "slate verify"}

IN_CAT = ["slate symbols", "bt 1", "slate bt", "slate cpus", "output $pid()",
          "slate symbols off"]


def is_early(entry):
    """Whether a transcript is of the earlier stop."""
    before = "\n".join(PAGE.read_text("utf-8").split("\n")[:entry.first])
    return EARLY[0] in before and EARLY[1] not in before


def of_the_page():
    """The commands in the book, in order, for the stop at `dmesg`."""
    return [e.command for e in transcript.entries(PAGE.read_text("utf-8"))
            if not is_early(e) and not e.command.startswith(ELSEWHERE)]


ASKED = [*of_the_page(),
         "slate bt 17", "slate bt", "slate bt 0", "slate files", "slate pages",
         "slate ipc -s", "slate dmesg", "slate syms", "slate tasks -j",
         "slate verify -j", "print *$task(9)", "print *$task(9)->task_cwd",
         "print *(struct file *)$task(9)->task_handles->table_slot[0]"
         ".handle_object",
         "print *(struct port *)$task(17)->task_ipc.ipc_port",
         "print $task(99)", *(command for _, command in SAME),
         *EXAMPLES.values(), "slate",
         "slate enter 9", "frame level 5",
         "print c->cond_waiters.wait_reason", "slate enter", "bt 1"]

WRONG = {"slate tasks 5": "slate tasks: usage: slate tasks [-j]",
         "slate bt 99": "slate bt: there is no task 99; `slate tasks` lists "
                        "them",
         "slate bt x": "slate bt: 'x' is no pid; `slate tasks` lists them",
         "slate enter 1": "slate enter: task 1 has no stack to enter: it runs, "
                          "or has ended",
         "slate files 2": "slate files: task 2 has no handles; programs have",
         "slate space 2": "slate space: task 2 has no address space; programs "
                          "have",
         "slate verify x": "slate verify: there is no kind 'x'; tasks ports "
                           "programs pipes inodes servers are",
         "slate syms 0x10": "slate syms: no symbol is at 0x00000010; `slab "
                            "whatis` says what is",
         "slate symbols x": "slate symbols: there is no program x in",
         "slate x": "slate: there is no 'x'; `slate` lists the commands"}

# The change that breaks an invariant, and the message of `slate verify`.
CAT = "$task(9)"
PING = "$task(17)"
PIPE = (f"((struct pipe *)((struct file *){CAT}->task_handles->table_slot[0]"
        ".handle_object)->file_data)")
BREAK = [
    (f"{CAT}->task_state", 0, "a task in a wait queue is not blocked"),
    (f"{CAT}->task_pid", 2, "a task is not found by its pid"),
    ("$task(8)->task_timeout.timeout_ms", 0,
     "a time-out in a list is not pending"),
    ("$task(8)->task_state", 0, "a sleeper is not waiting"),
    ("ready_mask", 8, "ready_mask does not match the run queues"),
    (f"{CAT}->task_handles->table_used", 9,
     "a handle table's count is wrong"),
    (f"{CAT}->task_handles->table_size", 7,
     "the size of a handle table is out of bounds"),
    (f"{CAT}->task_space->space_pages", 1,
     "a space's count of pages or tables is wrong"),
    (f"{CAT}->task_space->space_break", 0,
     "the heap does not end at the break"),
    (f"{PIPE}->pipe_readers", 2, "a pipe has several readers or writers"),
    ("pipe_count", 0, "the number of pipes is wrong"),
    (f"{CAT}->task_cwd->inode_refs", 0,
     "inode: the LRU list does not match the references"),
    (f"{CAT}->task_cwd->inode_number", 2,
     "inode: hash does not match the number"),
    ("inode_table.hash_count", 1, " entries, but 1 counted"),
    (f"{PING}->task_ipc.ipc_port->port_holders", 99,
     "a port has fewer references than receivers"),
    (f"{PING}->task_ipc.ipc_state", 1,
     "a task is in a list, but not in the state for it"),
    (f"{PING}->task_ipc.ipc_port->port_alarm_bits", 4,
     "a port's alarm and its time-out do not match"),
    ("((struct grant *)grants.next->next)->grant_in_force", 1,
     "a grant is in force without a task"),
    (f"{CAT}->task_ports", "(struct grant *)grants.next",
     "a task may use ports that it has no grant for"),
    ("gdt_tss.tss_ports[5]", 0, "the map allows other ports than the grant"),
    ("gdt_tss.tss.iomap", 104,
     "the map of ports is not that of the task that runs"),
]

# Broken lists and circles, and locks: the text of the row then.
LISTS = [
    (f"{CAT}->task_all_link.next", "(struct list *)0x10", "slate tasks",
     "! the list leads to 0x00000010, which cannot be read"),
    (f"{CAT}->task_all_link.next", f"&{CAT}->task_all_link", "slate tasks",
     "and not to its head"),
    (f"{CAT}->task_all_link.next", "(struct list *)0x10",
     "slab whatis $cache(\"inode\")", " of cache kmem_cache, in use: "),
    (f"{CAT}->task_all_link.next", "(struct list *)0x10", "slab leaks",
     "suspect: "),
    ("port_all.next->next", "port_all.next", "slate ports",
     "and not to its head"),
    (f"{PIPE}->pipe_link.next", "(struct list *)0", "slate pipes",
     "cannot be read"),
    (f"{CAT}->task_waiting", "(struct wait_queue *)0x1000", "slate tasks",
     "! its wait queue: 0x00001000 cannot be read"),
    (f"{CAT}->task_cwd", "(struct inode *)0x1000", "slate files 9",
     "! 0x00001000 cannot be read"),
    (f"{CAT}->task_cwd->inode_mutex.mutex_owner", "$task(4)", "slate locks",
     " sh(4)              -"),
    (f"{PIPE}->pipe_mutex.mutex_owner", "(struct task *)0x1000",
     "slate locks", "! 0x00001000"),
]


def breaking():
    """The commands that break each thing, look, and mend it."""
    looks = [(what, value, "slate verify") for what, value, _ in BREAK]
    looks += [(what, value, look) for what, value, look, _ in LISTS]
    for what, value, look in looks:
        # The place is kept: it may not be found by its name afterwards.
        yield f"set $place = &({what}) # {what} {value}"
        yield f"set $old = *$place # {what} {value}"
        yield f"set var *$place = {value}"
        yield f"{look} # {what} {value}"
        yield f"print $_exitcode # {what} {value}"
        yield f"set var *$place = $old # {what} {value}"
    yield "slate verify"


@pytest.fixture(scope="module")
def core_file(shared_path):
    return shared_path / "core"


@pytest.fixture(scope="module")
def run(kernel, core_file):
    cat = 'copy_file if $_streq($task_name(cpu_boot.cpu_task), "cat")'
    steps = [("shell_run", ["slate symbols on"]),
             ("mutex_unlock", ["slate locks"]),
             (cat, IN_CAT),
             ("cmd_verify", ["slate verify -j"]),
             ("cmd_pages", ["slate pages -j"]),
             *((at, [command]) for at, command in SAME),
             ("cmd_dmesg", ASKED)]
    looks = [f"help {command}" for command in EXAMPLES]
    steps.append(("taskcmd_reap", [*looks, *WRONG, *breaking()]))
    # A run repeats itself exactly; another size is another run. pong copies
    # nine tenths of the time, so the first will do nearly always.
    for size in (65000, 64000, 63000):
        session = gdb.Session(kernel, PROGRAMS.format(size=size) + SHELL,
                              steps, core_at=len(steps) - 2,
                              core_file=core_file)
        if "ipc_transfer" in session.said[-2]["slate bt 12"]:
            break
    return session


@pytest.fixture(scope="module")
def live(run):
    """GDB's output at the stop where the core was made."""
    return run.said[-2]


def lines_of(text):
    return text.rstrip("\n").split("\n")


# ---- the same as the shell -------------------------------------------------

def forms(row):
    """The words of a row of GDB's as the shell may print them: a tick may come
    while ps prints the row before that of its own task, which runs."""
    words = row.split()
    yield words
    if words[4:5] == ["running"]:
        yield [*words[:6], str(int(words[6]) + 10), *words[7:]]


@pytest.mark.parametrize("command", [command for _, command in SAME])
def test_equals_the_shell(run, command):
    said = next(step[command] for step in run.said if command in step)
    shell = [line.split() for line in run.serial.splitlines()]
    rows = [line for line in lines_of(said) if re.search(r"\d", line)
            and not re.match(r"\d+ inodes|looked", line)]
    assert len(rows) > 1
    for row in rows:
        assert any(words in shell for words in forms(row)), row


def test_interrupt_lines(live):
    rows = [line.split() for line in lines_of(live["slate irqs"])[1:]]
    assert [int(row[0]) for row in rows] == list(range(16))
    assert rows[0][2:] == ["timer_irq", "-", "-"] and int(rows[0][1]) > 100
    assert rows[2][2:] == ["cascade", "-", "-"]
    assert rows[5][1:] == ["0", "-", "-", "masked"]


def test_verify_equals_the_shell(run):
    rows = [json.loads(row) for row in
            lines_of(run.said[3]["slate verify -j"])]
    shell = json.loads(re.findall(r'^\{"bad".*', run.serial, re.M)[0])
    assert len(rows) == 6 and all(row["checked"] for row in rows)
    for row in rows:
        assert (row["bad"] == 0) == (shell[row["kind"]] == ""), row


def test_pages_equal_the_shell(run):
    said = json.loads(run.said[4]["slate pages -j"])
    shell = json.loads(re.findall(r'^\{"frames".*', run.serial, re.M)[0])
    assert said == {kind: n for kind, n in shell.items()
                    if n and kind not in ("buddy_free", "unused_bytes")}


def test_dmesg_is_what_was_printed(live, run):
    """It is the last 16 KiB of the serial line's output up to `dmesg`."""
    said = live["slate dmesg"]
    assert len(said) > 4000
    assert said.rstrip("\n") in run.serial
    assert live["slate dmesg -n 5"] == "".join(said.splitlines(True)[-5:])


def test_tasks_as_json(live):
    rows = [json.loads(line) for line in lines_of(live["slate tasks -j"])]
    cat = next(row for row in rows if row["pid"] == 9)
    assert cat.pop("cpu(ms)") % 10 == 0
    assert cat == {"pid": 9, "ppid": 4, "grp": 4, "ses": 1, "state": "blocked",
                   "pri": 1, "switches": 1,
                   "waits-for": "pipe-empty", "name": "cat"}


# ---- stacks ----------------------------------------------------------------

def names_in(text):
    """The functions of a backtrace, the innermost first."""
    return re.findall(r"^#\d+ +(?:0x\w+ in )?(\w+)", text, re.M)


def test_bt_of_a_task_that_waits(live):
    """The functions of the kernel's own backtrace, the inlined ones as well,
    and then those of the program."""
    said = live["slate bt 9"]
    names = names_in(said)
    own = re.findall(r"  (\w+)\+0x", live["slate bt -k 9"])
    assert len(own) > 4
    assert [n for n in names if n in own] == own, said
    assert "cat(9), blocked, waits for: pipe-empty" in said
    assert re.search(r"pipe_read \(.*\) at kernel/fs/pipe.c:\d+", said), said
    assert names[names.index("trap_syscall") + 1:] == \
        ["read", "copy_file", "main", "start", "_start"], said
    assert re.search(r"main \(\) at user/bin/cat.c:\d+", said), said


def test_bt_through_an_interrupt(live):
    """pong was interrupted while it copied a message in the kernel."""
    kernel, program = live["slate bt 12"].split("-- ring 3, pong: ")
    own = re.findall(r"  (\w+)\+0x",
                     live["slate ipc"].split("stack of pong(12)")[1])
    assert "trap_common" in own and "ipc_transfer" in own
    assert [n for n in names_in(kernel) if n in own] == own, kernel
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

def test_pages_by_owner(live):
    rows = lines_of(live["slate pages ping(17)"])[1:-2]
    assert rows and all(" user " in row and "ping(17)" in row for row in rows)
    everything = lines_of(live["slate pages"])[1:-2]
    at = 0
    for row in everything:  # no frame is left out
        first, frames = map(int, row.split()[:2])
        assert first == at, row
        at += frames
    sums = json.loads(live["slate pages -j"])
    assert at == sums["frames"]
    assert sum(int(row.split()[1]) for row in rows) <= sums["user"]


def test_space_adds_up(live):
    regions, tables = live["slate space 9"].split("\n\n")
    there = sum(int(row.split()[3]) for row in lines_of(regions)[1:])
    *runs, last = lines_of(tables)[1:]
    assert sum(int(row.split()[2]) for row in runs) == there > 4
    assert last.startswith(f"{there} pages, 1 page table, directory at 0x")
    kinds = [row.split()[5] for row in lines_of(regions)[1:]]
    assert kinds[0] == "stack" and set(kinds) == {"stack", "image", "heap"}


def test_syms(live):
    line = lines_of(live["slate syms kmain 0xc0101a02"])[0]
    assert re.fullmatch(r"0xc01\w{5} kmain\+0x0  kernel/main.c:\d+", line)


def test_printers_and_functions(live):
    assert live["print *$task(9)"].split("= ", 1)[1].startswith(
        "cat(9), blocked, waits for: pipe-empty = {\n  task_pending")
    assert '"kernel"' in live["print $task_name(cpu_boot.cpu_task)"]
    assert live["print $pid()"].endswith("= 1\n")
    assert "= ram dir " in live["print *$task(9)->task_cwd"]
    assert re.search(r"= \d+ pages, 1 page table, break 0x",
                     live["print *$task(9)->task_space"])
    file = live["print *(struct file *)$task(9)->task_handles"
                "->table_slot[0].handle_object"]
    assert re.search(r"= r, of the pipe 0x\w+ = {", file), file
    port = live["print *(struct port *)$task(17)->task_ipc.ipc_port"]
    assert re.search(r"= port 2, \d+ calls = {", port), port
    assert "there is no task 99" in live["print $task(99)"]


def test_conditions_look_anew_each_time(kernel):
    """The first to write is ls: the condition does not hold, and GDB goes on
    without having stopped."""
    session = gdb.Session(
        kernel, "run ls /; run wc /etc/servers; poweroff",
        [(None, ['break sys_write if '
                 '$_streq($task_name(cpu_boot.cpu_task), "wc")',
                 "continue", "output $task_name(cpu_boot.cpu_task)"])])
    assert session.said[0]["output $task_name(cpu_boot.cpu_task)"] == '"wc"'


def test_symbols_follow_exec(run):
    """A breakpoint in cat, set before there was a cat, was reached in it."""
    said = run.said[2]
    assert said["slate symbols"].endswith(
        "/user/bin/cat, replaced at every exec\n"), said
    assert re.match(r"#0  (0x\w+ in )?copy_file \(.*\) at user/lib/copy.c",
                    said["bt 1"]), said
    assert names_in(said["slate bt"]) == \
        ["copy_file", "main", "start", "_start"]
    assert said["output $pid()"] == "9"
    assert re.search(r"(?m)^ +0 cat\(9\)", said["slate cpus"]), said
    assert said["slate symbols off"] == "symbols of no program\n"


def test_locks(run, live):
    """The first mutex that is unlocked is that of a directory on the path of
    the first program."""
    held = run.said[1]["slate locks"]
    assert re.search(r"^0x\w+ inode ram \d+ +kernel\(1\) +-$", held, re.M), held
    assert "(no mutex is held)" in live["slate locks"]


# ---- the core --------------------------------------------------------------

def test_the_core_says_the_same(kernel, core_file, live):
    assert len(live) > 30
    said = gdb.examine(kernel, core_file, ASKED)

    def text(answer):  # numbers in the value history differ
        return re.sub(r"^\$\d+", "$", answer, flags=re.M)
    for command in live:
        assert text(said[command]) == text(live[command]), command


def test_a_core_is_not_executed(kernel, core_file):
    said = gdb.examine(kernel, core_file, ["slate symbols on"])
    assert said["slate symbols on"] == \
        "error: slate symbols: nothing is executed in a core; load by hand: " \
        "slate symbols PID\n"


# ---- the book --------------------------------------------------------------

@pytest.mark.skipif(BUILD != ROOT / "build",
                    reason="the page shows the plain build")
def test_the_book_is_true(run, live):
    """SLATE_BOOK=write brings the page up to date instead."""
    early = {**run.said[0], **run.said[2]}

    def answer(entry):
        return (early if is_early(entry) else live).get(entry.command)
    text = PAGE.read_text(encoding="utf-8")
    if os.environ.get("SLATE_BOOK") == "write":
        PAGE.write_text(transcript.rewrite(text, answer), encoding="utf-8")
        return
    entries = [e for e in transcript.entries(text)
               if not e.command.startswith(ELSEWHERE)]
    assert len(entries) > 25
    for entry in entries:
        wrong = transcript.difference(entry, answer(entry))
        assert wrong is None, f"{PAGE.name}, {wrong}"


def test_transcripts_are_compared():
    """Numbers and widths do not count, words and rows do."""
    page = ("text\n\n    (gdb) one\n    ROW 1\n    ROW   22 0xc0\n"
            "    (gdb) two\n\nmore\n    (gdb) three\n    a\n    ...\n    z\n")
    one, two, three = transcript.entries(page)
    assert (one.command, one.output) == ("one", ["ROW 1", "ROW   22 0xc0"])
    assert transcript.difference(one, "ROW 23\nROW 4 0x17\n") is None
    assert transcript.difference(one, "ROW 23\n") is not None
    assert transcript.difference(one, "ROW 23\nRAW 4 0x17\n") is not None
    assert transcript.difference(two, "") is None
    assert transcript.difference(two, "a\n") is not None
    assert transcript.difference(three, "a\nb\nc\nz\n") is None
    assert transcript.difference(three, "a\nb\nc\n") is not None
    new = {"one": "X\n", "two": "Y\nZ\n", "three": "no\n"}
    assert transcript.rewrite(page, lambda e: new[e.command]) == (
        "text\n\n    (gdb) one\n    X\n    (gdb) two\n    Y\n    Z\n\nmore\n"
        "    (gdb) three\n    a\n    ...\n    z\n")


# ---- help, errors, broken things -------------------------------------------

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


@pytest.mark.parametrize("what,value,wanted", BREAK,
                         ids=[what for what, _, _ in BREAK])
def test_verify_finds(run, what, value, wanted):
    said = run.said[-1][f"slate verify # {what} {value}"]
    assert wanted in said, said
    assert "every invariant holds" not in said
    broken = [row for row in lines_of(said) if row.startswith("!")]
    assert run.said[-1][f"print $_exitcode # {what} {value}"].split()[-1] == \
        str(len(broken))


@pytest.mark.parametrize("what,value,look,wanted", LISTS,
                         ids=[f"{look}-{i}" for i, (_, _, look, _)
                              in enumerate(LISTS)])
def test_a_broken_list_is_a_row(run, what, value, look, wanted):
    said = run.said[-1][f"{look} # {what} {value}"]
    assert wanted in said and not said.startswith("error"), said


def test_mended_it_holds(run):
    assert run.said[-1]["slate verify"].endswith("every invariant holds\n")


# ---- make core -------------------------------------------------------------

def test_make_core_and_open_it(kernel, tmp_path):
    """The programs of `make core` and `make gdb CORE=`, on a panic."""
    file = tmp_path / "slate.core"
    made = watchdog.run(
        [sys.executable, "-m", "tools.run.core", str(kernel), str(file)],
        cwd=ROOT, encoding="utf-8", capture_output=True,
        env={**os.environ, "MEM": "16", "ICOUNT": "1",
             "CMD": "run -b sleep 9; panic \"for a test\""})
    assert made.returncode == 0, made.stderr
    assert "the kernel has panicked; its memory is in" in made.stdout
    opened = watchdog.run(
        [sys.executable, "-m", "tools.run.debug", "--core", str(file),
         str(kernel), "--", "--batch", "-ex", "slate tasks", "-ex", "slate bt",
         "-ex", "slate dmesg -n 3"], cwd=ROOT, encoding="utf-8",
        capture_output=True)
    assert "may not match" not in opened.stdout + opened.stderr
    assert re.search(r"^ +4 .* sleep$", opened.stdout, re.M), opened.stdout
    assert "cmd_panic (" in opened.stdout, opened.stdout
    assert "Only this shell still runs" in opened.stdout


def test_core_needs_a_file_it_can_read(kernel):
    done = subprocess.run(
        [sys.executable, "-m", "tools.run.debug", "--core", "nosuch",
         str(kernel)], cwd=ROOT, check=False,
         encoding="utf-8", capture_output=True)
    assert done.returncode == 1
    assert done.stderr.startswith("make gdb: cannot read nosuch;")
