"""The views of GDB, `slab` and some of `slate`, which read memory by the
kernel's debug information: they agree with the kernel's own reports, describe
a broken heap, and answer on a core as on the machine.
"""
# Tests: tools/gdb/heap.py, tools/gdb/command.py

import re

import pytest

from conftest import ROOT
from tools.run import gdb, watchdog

BOX = "kmem create box 200;kmem alloc box 50;kmem free box 17;"
TUB = "kmem create tub 100;kmem alloc tub 9;kmem free tub 3 fifo;"
END = "power_off"

COMMANDS = "kmastat log refs slabs walk whatis".split()

# The rows of a view that a command of the kernel has too (`same` says which).
SAME = {"kmastat": r"!?\w+ +\d+ +\d+ ", "kmastat kmem_*": r"\w+ +\d+ +\d+ ",
        "slabs box": "[ >!]*0x", "slabs kstack": "[ >!]*0x",
        "walk alloc box": " 0x", "walk free box": " 0x",
        "walk alloc inode": "[ !]0x", "log": r" +\d+ +T ",
        "log -c inode -n 3": r" +\d+ +T "}


def same(line):
    return "slate " + re.sub("^walk", "cache -o", line)


ERRORS = {
    "slab kmastat -q": "option -q not recognized",
    "slab kmastat nosuch*": "no cache matches",
    "slab slabs nosuch": "no cache is called 'nosuch'",
    "slab walk fish": "usage: slab walk",
    "slab walk alloc -n x": "wants a number from 1 on",
    "slab refs nosuch": "'nosuch' is no address",
    "slab whatis": "usage: slab whatis ADDR",
    "print $cache(\"nosuch\")": "no cache is called",
}
SENTENCES = {
    "print *$cache(\"box\")":
        "= cache box: 200 bytes, 33 of 60 in use, 3 slabs of 20 = {",
    "print kmem_caches": r"= \d+ others: next 0x",
    "print *$cache(\"box\")->cache_freelist":
        "= slab of box: partial, 13 of 20 used, colour 8, page 0x",
    "print $slab_state($cache(\"box\"))": '"used"',
    "print $slab_cache($cache(\"box\"))->cache_name": '"kmem_cache"',
    "print $slab_base((char *)$cache(\"box\") + 9) == $cache(\"box\")": "= 1",
    "slab whatis $inode": "object 0 of cache inode, in use: 0x",
    "slab whatis $esp": r"\non the stack of task 1 \(kernel\)\n",
    "slab log $inode": r"(?s)alloc .* inode .*\n {7}\w+\+0x.*1 shown; ",
    "slab refs $cache(\"box\")":
        r"object 0x\w{8} of kmem_play_cache \+ 8\n(.|\n)*\d references",
    "slab slabs $cache(\"box\")": "> +0x",
    "slab walk alloc $cache(\"box\") -n sizeof(short)": "\n2 rows\n",
    "slab walk free tub -n 4": r"(?s) 2 free .* 1 free .* 0 free .* 9 free ",
}
INTERRUPT = "python import heap; heap.Slab.wrong = property(" \
            "lambda _: (_ for _ in ()).throw(KeyboardInterrupt()))"


def batch(kernel, *lines):
    """GDB's output for some lines, without a target."""
    argv = ["gdb", "-nx", "-q", "--batch", "-x", "tools/gdb/slate.gdb",
            str(kernel)]
    for line in lines:
        argv += ["-ex", f"echo @\\n{line}\\n", "-ex", line]
    done = watchdog.run(argv, cwd=ROOT, encoding="utf-8", capture_output=True)
    parts = re.split(r"^@\n", done.stdout + done.stderr, flags=re.M)[1:]
    return {line: part.split("\n", 1)[1] for line, part in zip(lines, parts)}


@pytest.fixture(scope="module")
def helps(kernel):
    return batch(kernel, *(f"help slab {name}" for name in COMMANDS), "slab")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_usage_and_example(helps, name):
    text = helps[f"help slab {name}"]
    assert f"Usage: slab {name}" in text, text
    assert f"\nExample: slab {name}" in text, text
    assert all(len(line) <= 80 for line in text.splitlines()), text


def test_slab_lists_what_there_is(helps):
    listed = re.findall(r"^slab (\w+)", helps["slab"], re.M)
    assert sorted(set(listed) - {"culprit"}) == COMMANDS


@pytest.mark.parametrize("line", ["slab kmastat", "slate kmastat",
                                  "slate tasks"])
def test_without_a_target(kernel, line):
    """On standard error, which comes last."""
    said = batch(kernel, line)[line]
    assert said.split(": ", 1)[1] == "no target; `target remote STUB`, " \
        "`core FILE` or `make gdb`\n", said


def test_an_unknown_view(kernel):
    said = batch(kernel, "slab nonsense")["slab nonsense"]
    assert said == "slab: there is no 'nonsense'; `slab` lists the commands\n"


# ---- a machine, and its core -----------------------------------------------

@pytest.fixture(scope="module")
def examples(helps):
    """{command: its example}"""
    return {name: re.search(r"^Example: (.*)$", helps[f"help slab {name}"],
                            re.M)[1] for name in COMMANDS}


@pytest.fixture(scope="module")
def views(examples):
    return ["slab walk alloc inode -n 1", "set var $inode = $obj",
            *(f"slab {line}" for line in SAME), *SENTENCES,
            *examples.values()]


@pytest.fixture(scope="module")
def machine(kernel, views, examples, shared_path):
    return gdb.Session(
        kernel, f"{BOX}{TUB}run ls;poweroff",
        [(END, [*views, *map(same, SAME), *ERRORS,
                INTERRUPT, "slab slabs box # ^C"])],
        append="kmem.debug=U,inode", core_at=0,
        core_file=shared_path / "core").said[0]


def rows(text, begin):
    """The cells of a table's rows. Not compared: ages, callers, and the 0x of
    GDB's addresses."""
    text = re.sub(r"^(\w+)\n +", r"\1 ", text, flags=re.M)
    text = re.sub(r"\b[\d.]+m?s\b|\b\d+\.\d{6}\b", "T", text)
    return [re.sub(r"\b0x", "", line).split()[:8]
            for line in text.splitlines()
            if re.match(begin, line + " ") and not line.startswith("TOTAL")]


@pytest.mark.parametrize("line", SAME)
def test_a_view_and_the_kernel_say_the_same(machine, line):
    own, kernel = (rows(machine[command], SAME[line])
                   for command in (f"slab {line}", same(line)))
    if line.startswith("walk free"):  # by links, and by address
        own, kernel = sorted(own), sorted(kernel)
    assert own and own == kernel[:len(own)], (own, kernel)
    assert len(own) >= len(kernel) - 4, (own, kernel)  # sums of the kernel


@pytest.mark.parametrize("line", SENTENCES)
def test_what_a_view_says(machine, line):
    assert re.search(SENTENCES[line], machine[line]), machine[line]


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_work(machine, examples, name):
    text = machine[examples[name]]
    assert text.strip() and "rror" not in text, text


@pytest.mark.parametrize("line", ERRORS)
def test_mistakes_get_one_line(machine, line):
    text = machine[line]
    assert text.startswith("error: ") and ERRORS[line] in text, text
    assert text.count("\n") == 1 and len(text) < 160, text


def test_control_c_ends_a_command(machine):
    text = machine["slab slabs box # ^C"]
    assert text.endswith("(interrupted)\n"), text


def test_a_core_answers_as_the_machine_did(kernel, machine, views,
                                           shared_path):
    core = gdb.examine(kernel, shared_path / "core", views)

    def text(answer):  # numbers in the value history differ
        return re.sub(r"^\$\d+", "$", answer, flags=re.M)
    for line in views:
        assert text(core[line]) == text(machine[line]), line


# ---- a broken heap ---------------------------------------------------------

# A place, the value written to it, a view, and what it says then.
BROKEN = [
    ("$slab->slab_refcnt", "5", "slab slabs box",
     r"^>!0x(.|\n)*! slab 0x\w+: 7 links on the freelist, but 15 free"),
    ("$slab->slab_head", "(void *)0x12345678", "slab slabs box",
     "! slab 0x\\w+: link 0x12345678 of the freelist is invalid"),
    ("$slab->slab_head->bufctl_next", "$slab->slab_head", "slab slabs box",
     "! slab 0x.* is on the freelist already: a circle"),
    ("$slab->slab_head->bufctl_next", "$slab->slab_head", "slab walk free box",
     "(?s)^!0x.*21 rows"),
    ("$slab->slab_link.next", "&$slab->slab_link", "slab slabs box", "^>.0x"),
    ("$slab->slab_link.next", "(void *)0x12345678", "slab slabs box",
     "^>.0x"),
    ("$box->cache_link.next", "(struct list *)0x10", "slab kmastat",
     "! the list leads to 0x00000010, which cannot be read"),
    ("$box->cache_frees", "$box->cache_allocs + 5", "slab kmastat box",
     "^!box +200 +200 +-5 "),
    ("$box->cache_chunk", "0", "slab walk alloc box", r"\d+ rows"),
    ("$slab->slab_chunks", "0x7fff", "slab slabs box", "^>"),
    ("$cache(\"kstack\")->cache_hash_mask", "0xffffffff",
     "slab walk alloc kstack", r"\d+ rows"),
    ("$entry->bufctl_next", "$entry", "slab walk alloc kstack", r"\d+ rows"),
    ("$entry->bufctl_addr", "(void *)0", "slab slabs kstack", r" #*!"),
    ("$box->cache_slab_chunks", "0x7fffffff", "slab whatis $slab",
     "the kmem_slab at the end"),
    ("$task(1)->task_all_link.next", "(struct list *)0x10", "slate tasks",
     "! the list leads to 0x00000010, which cannot be read"),
    ("$task(1)->task_all_link.next", "&$task(1)->task_all_link", "slate tasks",
     "and not to its head"),
    ("$task(2)->task_waiting", "(struct wait_queue *)0x1000", "slate tasks",
     "! its wait queue: 0x00001000 cannot be read"),
    ("$inode->inode_mutex.mutex_owner", "$task(1)", "slate locks",
     r" kernel\(1\)          -"),
    ("$inode->inode_mutex.mutex_owner", "(struct task *)0x1000", "slate locks",
     "! 0x00001000"),
]
SETTINGS = [
    'set var $box = $cache("box")', 'set var $slab = $box->cache_freelist',
    "slab walk alloc kstack -n 1", "python import heap, target; "
    "b = heap.Heap().buffer_at(int(gdb.parse_and_eval('(unsigned)$obj'))); "
    "gdb.set_convenience_variable('entry', target.pointer("
    "b.bufctl, 'kmem_bufctl'))", "slab walk alloc inode -n 1",
    "set var $inode = (struct inode *)$obj"]


@pytest.fixture(scope="module")
def broken(kernel):
    asked = list(SETTINGS)
    for n, (place, value, view, _) in enumerate(BROKEN):
        # The place is kept: it may not be found by its name afterwards.
        asked += [f"set $place = &({place}) # {n}", f"set $was = *$place # {n}",
                  f"set var *$place = {value} # {n}", f"{view} # {n}",
                  f"set var *$place = $was # {n}"]
    return gdb.Session(kernel, f"{BOX}run ls;poweroff",
                       [(END, [*asked, "slate verify"])]).said[0]


@pytest.mark.parametrize("n", range(len(BROKEN)))
def test_a_broken_structure_is_described(broken, n):
    *_, view, wanted = BROKEN[n]
    text = broken[f"{view} # {n}"]
    assert re.search(wanted, text, re.M) and "rror" not in text, text


def test_what_was_broken_is_mended(broken):
    assert "every invariant holds" in broken["slate verify"]
