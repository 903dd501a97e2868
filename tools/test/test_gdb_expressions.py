"""Every command of GDB takes an expression where it takes an address, a task, a
cache or a number; and what they say in the middle of things: counts that
contradict each other, `slate verify` while the kernel starts."""
# Tests: tools/gdb/command.py

import json
import re

import pytest

from tools.run import gdb

WORK = "kmem create box 200; kmem alloc box 50; run -b sleep 9; run sleep 1; "

# An expression, and the plain argument with the same meaning.
TASK, CACHE = "$task(4)", "$cache(\"box\")"
SAME = [
    (f"slate bt {TASK}", "slate bt 4"), ("slate bt 2 + 2", "slate bt 4"),
    (f"slate bt -k {TASK}->task_pid", "slate bt -k 4"),
    ("slate bt -k (struct task *)$task(4)", "slate bt -k 4"),
    (f"slate files {TASK}", "slate files 4"),
    (f"slate space {TASK}->task_pid", "slate space 4"),
    (f"slate symbols {TASK}", "slate symbols 4"),
    (f"slab cache {CACHE}", "slab cache box"),
    (f"slab slabs {CACHE}", "slab slabs box"),
    (f"slab verify {CACHE}", "slab verify box"),
    (f"slab explain {CACHE}", "slab explain box"),
    ("slab cache kmem_slab_cache", "slab cache kmem_slab"),
    (f"slab walk alloc {CACHE} -n sizeof(short)", "slab walk alloc box -n 2"),
    ("slate dmesg -n 1+1", "slate dmesg -n 2"),
    ("slab old 4 / 2", "slab old 2"),
    ("slab log -n 2*2 -c $cache(\"inode\")", "slab log -n 4 -c inode"),
    ("slab layout sizeof(struct region) (2 << 2)", "slab layout 20 8"),
    ("slate enter 1 + 1", "slate enter 2"),
    *((f"slab {command} $cache(\"{name}\")", f"slab {command} {name}")
      for command, name in (
          ("hash", "kstack"), ("ws", "box"), ("colours", "box"),
          ("users", "inode"), ("timeline", "box"), ("why", "box"),
          ("walk slab", "box"), ("log -c", "inode"))),
    *((f"slab {command} {CACHE} + 3 - 3", f"slab {command} {CACHE}")
      for command in ("whatis", "refs", "map", "freelist")),
    ("slab history (char *)$inode + 1", "slab history $inode"),
    ("slate syms (long)kmain+1 kmain", "slate syms kmain+1 kmain"),
    ("slab trace $cache(\"box\") off", "slab trace box off"),
]

# A count of the cache is set so that another, computed from it, is below 0.
WRAPPED = ["set var $box = $cache(\"box\")",
           "set var $box->cache_frees = $box->cache_allocs + 5",
           "set var $box->cache_full_slabs = $box->cache_slabs + 7",
           *(f"{command} # wrapped" for command in (
               "slab kmastat box", "slab kmastat -j box", "slab cache box",
               "slab frag", "slab verify"))]

# The functions that kmain calls, in order.
STARTING = ("gdt_init", "cmdline_parse", "memmap_init", "kmem_init",
            "kmem_reap_init", "task_init", "handle_init", "space_init",
            "grant_init", "port_init", "process_init", "reapd_init", "fs_init",
            "pic_init", "irq_enable", "timer_init", "shell_run")


@pytest.fixture(scope="module")
def said(kernel):
    asked = ["slab walk alloc inode -n 1", "set var $inode = $obj",
             *(line for pair in SAME for line in pair), *WRAPPED]
    return gdb.Session(kernel, WORK + "dmesg; poweroff",
                       [("cmd_dmesg", asked)],
                       append="kmem.debug=U,inode").said[0]


@pytest.mark.parametrize("expression,plain", SAME)
def test_an_expression_is_what_it_stands_for(said, expression, plain):
    assert said[expression] == said[plain]
    assert not said[plain].startswith("error"), said[plain]


@pytest.mark.parametrize("command", WRAPPED[3:])
def test_no_count_is_wrapped(said, command):
    """No count is wrapped in the row that is marked, either."""
    numbers = [int(n) for n in re.findall(r"(?<![x\w.])\d+", said[command])]
    assert numbers and max(numbers) < 1 << 30, said[command]


def test_the_row_is_marked(said):
    row = json.loads(said["slab kmastat -j box # wrapped"].splitlines()[0])
    assert (row["cache"], row["inuse"]) == ("!box", -5), row
    assert re.search(r"^!box +200 +200 +-5 +\d+ +\d+/-\d+/",
                     said["slab kmastat box # wrapped"], re.M), said


def test_nothing_is_broken_while_the_kernel_starts(kernel):
    session = gdb.Session(kernel, "poweroff",
                          [(at, ["slate verify"]) for at in STARTING])
    answers = [step["slate verify"] for step in session.said]
    assert "no heap yet" in answers[0]
    assert all(text.endswith(("no heap yet; let it run past kmem_init\n",
                              "every invariant holds\n"))
               for text in answers), answers
