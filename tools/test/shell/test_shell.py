"""The kernel shell over the serial line: prompt, keys, completion, and its
messages for wrong input."""
# Tests: kernel/shell/shell.c, kernel/shell/cmd_general.c, drivers/serial.c

import re

import pytest

from tools.run import qemu
from tools.test.heap import is_error, records

UP, DOWN, RIGHT, LEFT = ("\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D")
HOME, END, DELETE = ("\x1b[H", "\x1b[F", "\x1b[3~")


def typed(shell, keys):
    """Types keys that end up as `echo SOMETHING`; returns what echo said."""
    shell.send(keys + "\r")
    text = qemu.plain(shell.prompt())
    return text.rsplit("\n", 2)[-2]


def test_keys_that_a_terminal_sends_as_sequences(shell):
    assert typed(shell, "xcho ac" + HOME + DELETE + "e" + END + LEFT +
                 "b") == "abc"
    assert typed(shell, "echo other") == "other"
    assert typed(shell, UP + UP + DOWN + UP + LEFT + RIGHT + "d") == "abcd"


def test_completion_of_commands_and_cache_names(shell):
    shell.send("kmas\t\r")
    assert "kmem_" in shell.prompt()
    shell.send("cache kmem_ca\t\r")
    text = shell.prompt()
    assert "kmem_cache" in text and "no cache" not in text
    shell.send("b\t\t\x15\r")  # several fit: they are listed
    text = shell.prompt()
    assert "buddyinfo" in text and "bt" in text


WRONG = ["frobnicate", "kmastat nothing_like_this", "cache no_such_cache",
         "cache -c no_such_cache", "cache -o alloc -n 0",
         "cache -o alloc no_such_cache", "cache -u no_such_cache",
         "cache -u -m soon", "slabs no_such_cache", "slabs banana",
         "slabs 0xffffffffff", "slabs 0x10", "reap no_such_cache",
         "reap -i soon", "reap -i 1000001", "kmem create", "kmem create x 0",
         "kmem create 7up 32", "kmem create x 1 3", "kmem create x 1 8 y",
         "kmem alloc no_such_cache 1", "kmem alloc kmem_slab 1",
         "kmem destroy no_such_cache", "kmem destroy kmem_slab",
         "kmem free no_such_cache all", "verify no_such_cache",
         "pages 0xfffff000", "whatis", "whatis banana", "whatis kmain+",
         "whatis kmain+z", "debug Q", "debug +", 'debug ""',
         "debug +F no_such_*", "debug +F " + 60 * "x", "debug +F no_such_cache",
         "log -n 0", "log zz", "log -t me", "log fail", "log -c no_such",
         "log -S zz", "run nothing", "run /etc/motd", "run /bin",
         "run /bin/ls/ls", "continue", "kill 0", "kill 1", "kill -99 5",
         "kill -FROB 5", "kill 99999", "kill -99999", "files 1", "files 99999",
         "files x", "bt 99999", "bt x", "help no_such_command", "echo \"open",
         "echo " + "a " * 20]


@pytest.mark.parametrize("line", WRONG)
def test_wrong_input_is_refused(shell, line):
    before = len(shell.events("status"))
    text = shell.command(line)
    assert is_error(text), text
    ended = [(e["command"], e["status"])
             for e in shell.events("status")[before:]]
    assert ended == ([] if text.startswith("slate: ")
                     else [(line.split()[0], 1)])


@pytest.mark.parametrize("line", ["kmastat | head -5", "echo a; log |head",
                                  "cache -o alloc > /x"])
def test_pipes_are_of_the_programs_shell(shell, line):
    assert shell.command(line) == ("slate: only programs have pipes and "
                                   "redirections, in `sh`; nothing was run\n")
    assert shell.command("echo '|' \"> b\"") == "| > b\n"


@pytest.mark.parametrize("line", [
    "stress banana", "stress 1 banana", "stress 1 0", "test no_such_suite",
    "bench no_such_group", "fail slab no_such", "fail page 99999999999999",
    "fail slab 0x", "fail slab 0", "fail slab -r 0", "fail page 1 -c inode",
    "fail slab 1 -f no_such_function", "fail slab 1 -c no_such_cache",
    "fail slab 1 -t me", "fail slab -r 3 4", "bug list -k"])
def test_wrong_input_of_the_workshop_is_refused(workshop_shell, line):
    test_wrong_input_is_refused(workshop_shell, line)


@pytest.mark.parametrize("typed, said", [
    ("ls", "it is a program: run ls, or sh"),
    ("/tmp", "; `help` lists them"), ("..", "; `help` lists them"),
    ("/dev/console", "; `help` lists them"), ('""', "; `help` lists them"),
    ("exit", "did you mean poweroff?"),
    ("quit", "did you mean poweroff?"), ("kmsatat", "did you mean kmastat?"),
    ("slba", "did you mean slabs?"), ("melp", "did you mean help?"),
    ("help kmasta", "did you mean kmastat?"),
    ("qq", "; `help` lists them"), ("mkfs.vfat", "; `help` lists them")])
def test_suggestions_fit(shell, typed, said):
    assert said in shell.command(typed)


def test_without_programs_the_shell_says_how_to_get_them(kernel):
    with qemu.Machine(kernel, initrd="") as machine:
        machine.prompt()
        for line in ("run ls", "sh", "run /bin/ls"):
            said = machine.command(line)
            assert "-initrd build/initrd.tar" in said, said
            assert "run ls /bin" not in said
        assert machine.command("ls") == \
            'slate: no command "ls"; `help` lists them\n'


def test_slabs_sums_up_what_the_caches_have(shell):
    rows = {row[0]: row[1:] for row in
            (line.split() for line in shell.command("slabs").splitlines()[1:])}
    caches = [r for r in records(shell, "kmastat -j") if r.get("slabs")]
    assert len(caches) > 10 and set(rows) == {r["cache"] for r in caches}
    for r in caches:
        slabs, full, partial, free, _, cells = rows[r["cache"]]
        assert [int(slabs), int(full), int(partial), int(free)] == \
            [r["slabs"], r["full"], r["partial"], r["free"]]
        if r["slabs"] <= 28:
            assert cells == "#" * r["full"] + "+" * r["partial"] + \
                "." * r["free"]
    assert len(rows["kmem_cache"][-1]) <= 28


def shape(text):
    """The lines without their numbers, and without the program that asks."""
    lines = [re.sub(r"[\d.]+", "N", " ".join(line.split()))
             for line in text.splitlines()]
    return lines[0], {line for line in lines[1:]
                      if not re.search(r" (ps|kmastat|kernel)$", line)}


def test_ps_says_the_same_in_both_rings(shell):
    kernels, programs = (shape(re.sub(r"ready|running|blocked", "", text))
                         for text in (shell.command("ps"),
                                      shell.command("run ps")))
    assert kernels == programs and len(kernels[1]) == 3


def test_kmastat_of_ring_3_has_every_cache(shell):
    kernels = records(shell, "kmastat -j")[:-1]
    programs = [line.split() for line
                in shell.command("run kmastat").splitlines()[1:]]
    assert sorted([r["cache"], r["size"], r["chunk"]] for r in kernels) \
        == sorted([row[0], *map(int, row[1:3])] for row in programs)


def test_a_line_that_is_too_long_gives_one_line(shell):
    text = shell.command("echo " + "a" * 400)
    assert "more than 256 characters" in text
    assert shell.command("echo fine") == "fine\n"


def test_verify_in_json(shell):
    assert records(shell, "verify -j")


def test_totals_agree_with_each_other_and_with_buddy(shell):
    shell.command("run spike -n 5")
    *rows, sums = records(shell, "kmastat -j")
    total, oversize = sums["total"], sums["oversize"]
    for key in ("inuse", "total", "slabs", "mem", "allocs", "frees", "fails"):
        assert sum(row[key] for row in rows) + oversize[key] == total[key], key
    assert len(rows) == total["caches"] > 38
    memory = {row["use"]: row["pages"]
              for row in records(shell, "meminfo -j") if "use" in row}
    held = sum(memory[use] for use in ("slab", "hash", "oversize"))
    assert total["mem"] == sums["supplier"] == 4096 * held
    assert memory["buddy"] - memory["free"] == held
    buddy = records(shell, "buddyinfo -j")
    assert sum(row["free"] << row["order"] for row in buddy[:-1]) \
        == buddy[-1]["free_pages"] == memory["free"]


def test_buddyinfo_shows_which_part_of_free_memory_is_in_smaller_blocks(shell):
    rows = re.findall(r"(?m)^ +\d+ +\d+ +\d+ +(\d+) +(\d+\.\d) +\d+ +\d+$",
                      shell.command("buddyinfo"))
    kib = [int(free) for free, _ in rows]
    assert len(rows) == 11
    for order, (_, unusable) in enumerate(rows):
        assert float(unusable) == pytest.approx(
            100 * sum(kib[:order]) / sum(kib), abs=0.051)
