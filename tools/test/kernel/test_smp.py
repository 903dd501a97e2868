"""What is special about the locks of the kernels for several processors, `make
SMP=1`."""
# Tests: kernel/x86/spinlock.c, kernel/x86/spin_debug.c

import re

import pytest

from conftest import BUILD, long, output_of
from tools.run import qemu

pytestmark = [long, pytest.mark.plain]


def crash(kernel, *commands):
    """What the kernel prints until it has answered these; the first makes it
    panic, and the others are for the shell after the panic."""
    with qemu.Machine(kernel, initrd=BUILD / "initrd-workshop.tar") as machine:
        machine.prompt()
        return "".join(map(machine.stopped, commands))


def test_the_shell_takes_locks_that_the_panic_left(either):
    said = crash(either, "fault locked", "ps", "kmastat", "verify")
    assert "fault_locked+0x" in said and "a null pointer?" in said, said
    assert re.search(r"(?m)^ *1 .* kernel\r?$", said), said
    assert re.search(r"(?m)^kstack +\d+", said), said
    assert "every invariant holds" in said, said


@pytest.mark.parametrize("kind, report", [
    ("lock-twice", r"panic: lock fault: taken twice by CPU 0, first in "
                   r"take_twice\+0x\w+\n"),
    ("lock-lost", r"panic: lock fault: CPU 0 waits, but no CPU took it\n"),
])
def test_a_wait_without_end_is_reported(smp_debug, kind, report):
    said = crash(smp_debug, f"fault {kind}", "kmastat")
    assert re.search(report, said), said
    assert re.search(r"(?m)^kstack +\d+", said), said


def test_a_double_fault_finds_its_processor(either):
    """Its task has the processor's data in GS: the guard page is the one below
    the stack of the processor's task."""
    said = crash(either, "fault stack", "ps", "verify")
    assert "panic: kernel stack overflow: the guard page at 0x" in said, said
    assert re.search(r"(?m)^ *1 .* kernel\r?$", said), said
    assert "every invariant holds" in said, said


def disassembly(kernel):
    return output_of("objdump", "-d", "--no-show-raw-insn", kernel)


def test_no_lock_is_reached_through_the_stack_pointer(smp):
    """The flags that spin_lock pushes move it."""
    locks = re.findall(r"\tlock btsl \$0x0,(\S+)\n", disassembly(smp))
    assert len(locks) > 200
    assert [lock for lock in locks if "%esp" in lock] == []


def test_one_processor_takes_no_lock():
    """The plain kernel has none of this."""
    code = disassembly(BUILD / "slate-workshop.elf")
    assert "spin_wait" not in code and "lock bts" not in code
