"""The kernel shell's whatis, for addresses outside the playground's objects and
in freed ones."""

import re

from conftest import output_of
from tools.test.heap import records, rows


def test_whatis_knows_the_allocators_own(shell):
    shell.command("kmem create big 900; kmem alloc big 3")
    objects = [row["addr"] for row in records(shell, "cache -o alloc -j big")]
    bufctl = next(row for row in
                  records(shell, "cache -o alloc -j kmem_bufctl")
                  if row["words"][1] in objects)
    slab = records(shell, "slabs -j big")[0]
    obj = f"0x{bufctl['words'][1]:08x}"
    assert f"bufctl of object {obj} of cache big" in \
        shell.command(f"whatis {bufctl['addr']:x}")
    assert "slab data of cache big, slab base " in \
        shell.command(f"whatis {slab['slab']:x}")
    tables = "".join(shell.command(f"whatis {row['addr']:x}")
                     for row in records(shell, "cache -o alloc -j kmem_hash"))
    assert "hash table of cache big\n" in tables
    itself = "".join(shell.command(f"whatis {row['addr']:x}")
                     for row in records(shell, "cache -o alloc -j kmem_cache"))
    assert "the cache big itself" in itself
    shell.command("kmem free big all; kmem destroy big")


def test_whatis_knows_symbols(shell, kernel):
    objects = dict(line.split()[::2][::-1] for line in
                   output_of("nm", kernel).splitlines() if line[9] in "dbDB")
    for name in ("play_caches", "kmem_reaping", "page_array"):
        said = shell.command(f"whatis {name}")
        assert said.startswith(f"0x{objects[name]}: frame ")
        assert f"\ndata: {name}+0x0\n" in said
    for name, kind in (("kmem_cache_alloc", "code"), ("kmem_caches", "data"),
                       ("play_caches", "data"), ("task_start", "code"),
                       ("inode_end", "code")):
        addr = int(shell.command(f"whatis {name}").split(":")[0], 16)
        assert f"{kind}: {name}+0x3\n" in shell.command(f"whatis {addr + 3:x}")
        assert shell.command(f"whatis {name}+0x3") == \
            shell.command(f"whatis {addr + 3:x}")


def test_whatis_knows_pages_of_programs(shell):
    pid = int(re.search(r"pid (\d+)", shell.command("run -b sleep 600"))[1])
    text = shell.command("whatis 0x500000")
    m = re.search(rf"page 0x00500000 of task {pid} \(sleep\), image or heap: "
                  r"frame (\d+)", text)
    assert m, text
    text = shell.command(f"whatis {0xc0000000 + 4096 * int(m[1]):x}")
    assert f"page 0x00500000 of task {pid} (sleep)" in text
    shell.kill(f"-KILL {pid}")
    assert "no task has a page there" in shell.command("whatis 0x500000")


def test_whatis_knows_stacks(shell):
    stack = records(shell, "cache -o alloc -j kstack")[1]["addr"]
    assert re.search(r"on the stack of task \d+ \(\w+\)",
                     shell.command(f"whatis {stack + 8000:x}"))
    assert "on the stack of task 1 (kernel)" in \
        shell.command("whatis boot_stack_bottom")


def test_whatis_remembers_unmapped_memory(shell):
    shell.command("kmem create late 100; debug =SU late; kmem alloc late 3")
    obj = records(shell, "cache -o alloc -j late")[1]["addr"]
    shell.command("kmem free late all")
    text = shell.command(f"whatis {obj + 6:x}")
    assert re.search(r"unmapped: a slab of cache late was here, and object 1: "
                     r"0x\w+ \+ 6\nfreed by task 1 ", text), text
    shell.command("kmem destroy late")


def test_whatis_remembers_what_a_free_page_was(shell):
    shell.command("kmem create late 100; debug =U late; kmem alloc late 3")
    slab, = records(shell, "slabs -j late")
    obj = records(shell, "cache -o alloc -j late")[1]["addr"]
    shell.command("kmem free late all; reap -a late")
    text = shell.command(f"whatis {obj + 6:x}")
    assert ": frame " in text and ", free (order " in text
    assert re.search(rf"last object here was 0x{obj:x} of cache late\n"
                     r"freed by task 1 \(kernel\), ", text)
    history = shell.command(f"log {obj + 6:x}")
    assert [row["op"] for row in rows(history, r"^ *\d+ +[\d.]+ (?P<op>\w+)")
            ][:2] == ["free", "alloc"]
    assert slab["base"] <= obj
    shell.command("kmem destroy late")
