"""Stacks name every caller: no function leaves the stack by ending with a call,
but for the allocator's front end and buddy, which keep their common cases short
by jumping to the others (tools/make/kernel.mk)."""
# Tests: tools/make/kernel.mk, tools/make/user.mk

import re

import pytest

from conftest import BUILD, ROOT, output_of, sanitized
from tools.run import qemu

pytestmark = pytest.mark.skipif(
    sanitized(), reason="the sanitizers' run time jumps between its parts")


def functions(path):
    """[(address, name)] of the C functions that a file defines. A function of
    several parts (f.cold, f.part.0) has one name."""
    return [(int(at, 16), name.split(".")[0]) for at, name in re.findall(
        r"^ +\d+: (\w+) .* FUNC .* (?!UND)\S+ (\S+)$",
        output_of("readelf", "-sW", path), re.M)]


def jumpers(path):
    """The C functions of a program that jump to another function, or to an
    address in a register or a structure."""
    known, found, inside = dict(functions(path)), set(), None
    for line in output_of("objdump", "-d", "--no-show-raw-insn",
                          path).splitlines():
        if head := re.match(r"([0-9a-f]+) <.+>:$", line):
            inside = known.get(int(head[1], 16))
        elif jump := re.search(r"\tj\w+ +([0-9a-f]+) <", line):
            if inside and known.get(int(jump[1], 16), inside) != inside:
                found.add(inside)
        elif inside and re.search(r"\tjmp +\*(%|[^,]+$)", line):
            found.add(inside)
    return found


def jumping():
    """The functions of the files that tools/make/kernel.mk lets jump, and the
    one that ends a test case from any depth (__builtin_longjmp)."""
    files = re.search(r"^JUMPING := (.*)$",
                      (ROOT / "tools/make/kernel.mk").read_text("utf-8"),
                      re.M)[1]
    return {"ktest_end"} | {name for file in files.split()
                             for _, name in functions(BUILD / file)}


@pytest.mark.parametrize("program", ["slate-workshop.elf", "user/bin/sh",
                                     "user/sbin/ext2"])
def test_only_the_front_end_jumps(program):
    found = jumpers(BUILD / program)
    assert found <= jumping(), found - jumping()


def test_a_free_at_the_end_of_a_function_names_it(kernel):
    """pipe_release ends with discard, and that with the free."""
    text = qemu.run(kernel, "run sh -c 'ls | wc'; log -S -c pipe; poweroff",
                    append="kmem.debug=U,pipe").text
    assert re.search(r" free .*\n +(discard\+\w+ < )?pipe_release\+", text), \
        text
