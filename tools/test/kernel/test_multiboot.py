"""A boot loader that violates Multiboot. No available loader does, so GDB
changes the loader's data before the kernel reads them."""

import pytest

from tools.run import gdb

MAP = ["hbreak *memmap_init", "continue"]


@pytest.mark.parametrize("spoil, said", [
    (["set $eip = kmain", "set $eax = 0x1234"],
     "not Multiboot (EAX is 0x00001234)"),
    ([*MAP, "set {int}$eax = 0"], "gave no memory map"),
    ([*MAP, "set {int}($eax + 44) = 3"], "memory map is empty or broken")])
def test_what_violates_multiboot_is_refused(kernel, spoil, said):
    """The last function of a kernel that halts is console_drain."""
    text = gdb.Session(kernel, "",
                       [(None, spoil), ("console_drain", [])]).serial
    assert said in text and "Halted" in text
