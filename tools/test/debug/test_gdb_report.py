"""`slate COMMAND` in GDB: the kernel's shell answers in a machine that is
stopped anywhere, and the machine continues as if there had been no report.
Where nothing can be called, a copy of the machine answers the same."""
# Tests: tools/gdb/slate_report.py, tools/gdb/slate_copy.py
# Tests: kernel/shell/report.c

import json
import re

import pytest

from conftest import BUILD, execute, long, tiers
from tools.run import gdb

# Programs allocate, switch, use a pipe and wait for the clock; at the end the
# heap is counted.
WORK = "kmem create box 200; kmem alloc box 50; kmem free box 20; " \
    "run sh -c 'ls / | wc'; run sleep 0.1; kmem alloc box 30; verify; " \
    "kmastat -j; poweroff"

REPORTS = ["kmastat", "cache box", "slabs box", "verify", "ps", "ports",
           "whatis kmem_caches", "log", "bt", "meminfo", "buddyinfo"]

# Interrupts are enabled in the first two. kmem_slab_take is called with the
# lock of the cache, the timer's interrupt at any time, sys_pipe by a program;
# when that returns the machine is in ring 3.
IN_RING_3 = ["tbreak *((struct trapframe *)$task($pid())->task_stack_top)[-1]"
             ".eip", "continue"]
STOPS = [("play_alloc", []), ("kmem_slab_create", []), ("kmem_slab_take", []),
         ("timer_irq", []), ("sys_pipe", []), (None, IN_RING_3),
         ("timer_irq", [])]
ENABLED = [True, True, False, False, True, True, False]


def run(kernel, reports, share=1):
    """A run with such a share of the reports at each stop, up to its end."""
    steps = [(at, [*there, "info registers eflags cs",
                   *(f"slate {line}" for line in reports[i % share::share])])
             for i, (at, there) in enumerate(STOPS)]
    return gdb.Session(kernel, WORK, [*steps, ("power_off", [])],
                       append="kmem.debug=U,box panic=exit",
                       initrd=BUILD / "initrd-workshop.tar",
                       extra=["-smp", "2"] if "smp" in str(kernel) else [])


@pytest.fixture(scope="module", params=[
    ("kernel", 3), pytest.param(("kernel", 1), marks=long),
    pytest.param(("smp_debug", 1), marks=long)],
    ids=["kernel", "kernel-all", "smp_debug-all"])
def both(request):
    """Two runs: one with reports, and one without. Each takes a tenth of a
    second, so `make test` has a third of them at each stop."""
    name, share = request.param
    kernel = request.getfixturevalue(name)
    return run(kernel, REPORTS, share), run(kernel, [])


def test_a_machine_continues_as_if_there_had_been_no_report(both):
    reported, alone = both
    assert reported.serial == alone.serial
    assert "every invariant holds" in reported.serial


@pytest.mark.parametrize("line", REPORTS)
def test_every_report_is_complete_at_every_stop(both, line):
    texts = [said[f"slate {line}"] for said in both[0].said
             if f"slate {line}" in said]
    assert len(texts) > 1
    for text in texts:
        assert text.endswith("\n") and len(text) > 60, (line, text)
        assert not text.startswith(("error", "slate:")), text


def test_the_stops_are_what_they_should_be(both):
    flags = [said["info registers eflags cs"] for said in both[0].said[:-1]]
    assert [" IF " in text for text in flags] == ENABLED, flags
    assert "0x2b" in flags[5], flags


def test_reports_as_soon_as_there_are_frames(kernel):
    """`verify` checks what there is: frames, then the heap, then all."""
    look = ["slate verify", "slate kmastat", "slate buddyinfo"]
    frames, heap, tasks = gdb.Session(
        kernel, "poweroff",
        [("kmem_init", look), ("task_init", look), ("pic_init", look)]).said
    for said in frames, heap:
        assert "page tables: every invariant holds" in said["slate verify"]
    assert frames["slate kmastat"] == "kmastat: there is no cache yet\n"
    assert "kmem_cache " in heap["slate kmastat"]
    assert "mounts and files: every invariant holds" in tasks["slate verify"]
    assert "pages free" in frames["slate buddyinfo"]


# ---- the machine is as before ----------------------------------------------

# Every report, some with text that does not fit into the kernel's buffer.
ALL = [*REPORTS, "cache -c box", "cpus", "debug", "dmesg", "echo a b",
       "files 4", "help", "log -S $obj", "inodes -a",
       "ports -w", "irqs", "kmastat -j", "kmem list", "leaks", "log -S",
       "slabs $obj", "mounts", "pages -r", "help paper", "pipes", "reap -n",
       "servers", "sessions", "slabs -v", "cache -u",
       "cache -o alloc", "whatis -r $obj", "nothing",
       "reap", "kmastat | more"]

MEBIBYTES = 16


@pytest.fixture(scope="module")
def traces(kernel, shared_path):
    """What was said in a program's system call, with the machine's memory
    before and after each report."""
    def save(name):
        return f'monitor pmemsave 0 {MEBIBYTES << 20:#x} "{shared_path}/{name}"'

    lines = ['set var $obj = $cache("box")->cache_freelist->slab_base + 8',
             "info registers", save("0")]
    for i, line in enumerate(ALL, 1):
        lines += [f"slate {line}", save(str(i))]
    said = gdb.Session(
        kernel, WORK, [("sys_pipe", [*lines, "info registers # after"])],
        memory=str(MEBIBYTES), append="kmem.debug=U,box").said[0]
    return said, shared_path


ACCESSED_DIRTY = 0x60  # the processor sets them in the entries of page tables


def frames_in_use(said):
    """The numbers of the page frames that are not free."""
    runs = re.findall(r"^ *(\d+) +(\d+) +\d+ +0x\w+ +(\w+)",
                      said["slate pages -r"], re.M)
    return [i for first, n, state in runs if state != "free"
            for i in range(int(first), int(first) + int(n))]


def changes(before, after, frames):
    """The physical addresses of words in these frames that differ."""
    pages = [i << 12 for i in frames
             if before[i << 12:i + 1 << 12] != after[i << 12:i + 1 << 12]]
    return [hex(at) for page in pages for at in range(page, page + 4096, 4)
            if (int.from_bytes(before[at:at + 4], "little") ^
                int.from_bytes(after[at:at + 4], "little")) & ~ACCESSED_DIRTY]


@long
def test_a_report_leaves_no_trace(traces):
    said, folder = traces
    before = (folder / "0").read_bytes()
    frames = frames_in_use(said)
    assert len(before) == MEBIBYTES << 20 and len(frames) > 700
    for i, line in enumerate(ALL, 1):
        assert said[f"slate {line}"].strip(), line
        after = (folder / str(i)).read_bytes()
        assert not changes(before, after, frames), line
    assert said["info registers"] == said["info registers # after"]


@long
def test_a_long_report_is_whole(traces):
    text = traces[0]["slate kmastat -j"]
    rows = [json.loads(line) for line in text.splitlines()]
    assert len(text) > 3 * 4096 and len(rows) > 60
    assert rows[-1]["total"]["caches"] == len(rows) - 1, rows[-1]


@long
@pytest.mark.parametrize("line,answer", [
    ("nothing", 'slate: no command "nothing"; `help` lists them'),
    ("reap", "reap: a stopped machine only prints reports; type this at the "
             "kernel's prompt"),
    ("kmastat | more", "slate: only programs have pipes and redirections, "
                       "in `sh`; nothing was run")])
def test_a_wrong_line_gets_one_line(traces, line, answer):
    assert traces[0][f"slate {line}"] == f"{answer}\n"


# ---- what is refused, and what is given up ---------------------------------

# Commands that change the machine, wait for a key or run programs.
CHANGES = ["bench", "continue", "debug +P box", "kill 1",
           "kmem alloc box 1", "kmem create a 8", "kmem destroy box",
           "kmem free box 1", "panic", "poweroff", "reap",
           "reap -a", "reboot", "run ls", "sessions end 1", "sh",
           "test", "umount -f /", "reap -i 0"]

LINK = "kmem_caches.next->next->next->next"
PRINTED = "python exec(\"try: gdb.execute('slate echo a; kmastat')\\n" \
    "except gdb.error: pass\")"
FAULTS = [f"set var $link = {LINK}", "bt", "info registers",
          f"set var {LINK} = (struct list *)0x10", "slate kmastat", PRINTED,
          f"set var {LINK} = $link", "bt # after", "info registers # after",
          "slate whatis $nothing", "up", "slate echo a", "frame", "slate ps"]


@pytest.fixture(scope="module")
def refused(workshop):
    return gdb.Session(
        workshop, "kmem create box 200; kmem alloc box 9; verify; poweroff",
        [("play_alloc", [f"slate {line}" for line in CHANGES]),
         ("cmd_verify", FAULTS), ("power_off", [])])


@pytest.mark.parametrize("line", CHANGES)
def test_what_changes_the_machine_is_refused(refused, line):
    said = refused.said[0][f"slate {line}"]
    assert said == f"{line.split()[0]}: a stopped machine only prints " \
        "reports; type this at the kernel's prompt\n"


def test_a_call_that_would_fault_is_given_up(refused):
    said = refused.said[1]
    assert said["slate kmastat"] == \
        "error: slate: given up where it would fault, or be interrupted; " \
        "the machine is as before\n"
    assert said["bt"] == said["bt # after"]
    assert said["info registers"] == said["info registers # after"]
    assert said["slate ps"].splitlines()[2].endswith("kernel"), said
    assert "every invariant holds" in refused.serial


def test_a_report_that_is_given_up_shows_what_it_has_printed(refused):
    assert refused.said[1][PRINTED] == "a\n"


def test_the_selected_frame_stays(refused):
    said = refused.said[1]
    assert said["slate echo a"] == "a\n"
    assert said["frame"].startswith("#1 "), said


def test_an_expression_without_a_value(refused):
    assert refused.said[1]["slate whatis $nothing"] == \
        "error: slate: '$nothing' has no value\n"


# ---- copies of the machine -------------------------------------------------

# The last one's text is longer than the kernel's buffer, $obj is GDB's.
COPIED = ["inodes -a", "verify", "leaks", "log -S", "whatis -r $obj",
          "slabs $obj", "reap", "kmastat -j", "dmesg"]
STATUS = ["slate nothing", "output $_exitcode", "slate whatis $nothing",
          "output $slab_owner($obj)", "output $slab_owner($free)"]
NO_ROWS = "slate pipes -j"
LOOKS = ["set var $slab = $cache(\"box\")->cache_freelist",
         "set var $obj = $slab->slab_base + $slab->slab_colour + 8",
         "set var $free = "
         "((struct kmem_bufctl *)$slab->slab_head)->bufctl_addr",
         *(f"slate {line}" for line in COPIED), *STATUS, NO_ROWS]


@pytest.fixture(scope="module", params=tiers(["kernel"], ["smp_debug"]))
def copied(request, shared_path):
    """What was said by a machine, again after its end, and by its core."""
    kernel = request.getfixturevalue(request.param)
    core = shared_path / f"core-{request.param}"
    live = gdb.Session(
        kernel, f"{WORK.removesuffix('poweroff')}kmem free box 5; "
        "run -b sleep 9; poweroff",
        [("power_off", LOOKS), (None, ["continue", "slate inodes -a"])],
        append="kmem.debug=U,box", core_at=0, core_file=core,
        extra=["-no-shutdown", *(["-smp", "2"] * ("smp" in request.param))])
    return *live.said, gdb.examine(kernel, core, LOOKS)


def timeless(text):
    return re.sub(r"\b\d+\.\d{6}\b|\b[\d.]+m?s\b", "AGE", text)


@pytest.mark.parametrize("line", [f"slate {line}" for line in COPIED] + STATUS)
def test_a_copy_says_what_the_machine_said(copied, line):
    live, ended, core = copied
    assert live[line] and timeless(live[line]) == timeless(core[line])
    assert ended["slate inodes -a"] == live["slate inodes -a"]


def test_a_table_without_rows_is_none_of_another_kernel(copied):
    live, _, core = copied
    assert live[NO_ROWS] == core[NO_ROWS] == ""


def test_the_owner_of_an_object_that_is_used_or_free(copied):
    """Allocated by the kernel's shell."""
    assert copied[0]["output $slab_owner($obj)"].strip() == "1"
    assert copied[0]["output $slab_owner($free)"].strip() == "1"


@pytest.mark.plain    # else there is only one
def test_a_core_of_another_kernel(copied, workshop, shared_path):
    said = gdb.examine(workshop, next(shared_path.glob("core-*")),
                       ["slate ps"])["slate ps"]
    assert said.startswith("error: slate: ") and said.count("\n") == 1, said


def test_without_a_machine(kernel):
    """On standard error, which comes last."""
    for line in "slate ps", "slate bt", "print $pid()":
        done = execute("gdb", "-nx", "-q", "--batch", "-x",
                       "tools/gdb/slate.gdb", kernel, "-ex", line)
        assert done.stderr.split(": ", 1)[1] == "no target; `target remote " \
            "STUB`, `core FILE` or `make gdb`\n", done.stderr


def test_another_kernel_has_its_own_layouts(kernel, workshop):
    done = execute("gdb", "-nx", "-q", "--batch", "-x", "tools/gdb/slate.gdb",
                   kernel, "-ex", "python import target",
                   "-ex", "python target.layout('task')",
                   "-ex", f"file {workshop}",
                   "-ex", "python print(target._layouts)")
    assert done.stdout.endswith("{}\n"), done


# ---- after a panic ---------------------------------------------------------

@pytest.mark.parametrize("name", tiers(["kernel"], ["smp_debug"]))
def test_after_a_panic(request, name):
    """The panic's own shell reads a line, and reports work there."""
    binary = request.getfixturevalue(name)
    said = gdb.Session(
        binary, "kmem create box 200; kmem alloc box 9; panic enough",
        [("console_getkey", [f"slate {line}" for line in REPORTS])],
        append="kmem.debug=U,box").said[0]
    for line in REPORTS:
        assert len(said[f"slate {line}"]) > 60, said
    assert "every invariant holds" in said["slate verify"], said


# ---- while a program runs --------------------------------------------------

def test_a_program_is_the_current_task(kernel):
    """The processor uses the program's page directory, and in ring 3 also the
    program's stack, which is no root of the search for leaks."""
    look = ["slate verify", "slate leaks"]
    call, ring_3, _ = gdb.Session(
        kernel, WORK, [("sys_pipe", look), (None, [*IN_RING_3, *look]),
                       ("power_off", [])]).said
    roots = [int(re.search(r"from (\d+) KiB of roots", said["slate leaks"])[1])
             for said in (call, ring_3)]
    assert roots[1] <= roots[0], roots
    for said in call, ring_3:
        assert "every invariant holds" in said["slate verify"], said
