"""The ISO image boots by BIOS and GRUB: as a CD, and as a disk, which is what
a USB stick is to a BIOS."""

import re

import pytest

from conftest import ROOT, output_of, sample, tiers
from tools.run import watchdog

pytestmark = pytest.mark.spread


@pytest.mark.parametrize("how", tiers(["cd"], ["disk", "usb"]))
def test_iso_boots(boot, iso, how):
    arguments = {
        "cd": ["-cdrom", str(iso), "-boot", "d"],
        "disk": ["-drive", f"file={iso},format=raw,if=ide,readonly=off,"
                 "snapshot=on"],
        "usb": ["-drive", f"file={iso},format=raw,if=none,id=stick,"
                "snapshot=on", "-device", "qemu-xhci", "-device",
                "usb-storage,drive=stick,bootindex=1"],
    }[how]
    machine = boot(boot=arguments, screen=True)
    assert "kmem_cache" in machine.command("kmastat")
    machine.send("poweroff\r")
    machine.wait()
    assert machine.events("poweroff")


def test_only_a_bios_finds_it(iso):
    """As the book says of UEFI: its entry would be another one here."""
    said = output_of("xorriso", "-indev", iso, "-report_el_torito", "plain")
    assert re.findall(r"boot img : +\d+ +(\w+)", said) == ["BIOS"], said
    for page in "README.md", "docs/boot.md", "tools/make/images.mk":
        assert "UEFI alone" in (ROOT / page).read_text("utf-8"), page


@sample
def test_a_reboot_boots_again(boot, iso):
    machine = boot(boot=["-cdrom", str(iso), "-boot", "d"],
                   extra=["-action", "reboot=reset"])
    machine.send("reboot\r")

    def prompts():
        machine.receive(0)
        return machine.events("prompt")
    watchdog.poll(prompts, lambda found: len(found) == 2)
