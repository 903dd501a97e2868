"""Processors: too old ones are refused, what new ones protect is used, and only
the first of several runs."""
# Tests: boot/processor.c, boot/wire.c, drivers/pit.c
# Tests: kernel/x86/acpi.c, kernel/x86/protect.c

import re

import pytest

from conftest import tiers
from tools.run import elf, gdb, qemu

NO_PSE = "4 MiB pages (PSE)"
NO_TSC = "time-stamp counter (TSC)"
NO_CMOV = "conditional moves (CMOV)"


def refused(machine):
    """The features that a machine misses, as its two consoles name them; it
    must have halted."""
    text = machine.expect(r"Halted\.\r\n", unless="slate> ").split("\r\n")
    screen = [line.rstrip() for line in machine.wait_screen(r"Halted\.")]
    assert [line for line in screen if line] == text[:-1]
    machine.wait_halt()
    return [re.fullmatch(r"Slate cannot start: the processor has no (.*)\.",
                         line)[1] for line in text[:-2]]


@pytest.mark.parametrize("arguments, missing", [
    ("-cpu 486", [NO_TSC, NO_CMOV]),
    ("-machine isapc", [NO_TSC, NO_CMOV]),
    ("-cpu pentium", [NO_CMOV]),
    ("-cpu qemu32,cmov=off", [NO_CMOV]),
    ("-cpu qemu32,tsc=off", [NO_TSC]),
    ("-cpu qemu32,pse=off", [NO_PSE]),
])
def test_a_processor_that_is_too_old_is_refused(boot, arguments, missing):
    assert refused(boot(wait=False, extra=arguments.split(),
                        screen=True)) == missing


def test_a_processor_without_cpuid_is_refused(boot, kernel, tmp_path):
    """QEMU has none. On such a processor POPF does not change EFLAGS.ID: here
    a POP of the register that was pushed replaces that POPF."""
    data = bytearray(kernel.read_bytes())
    file = elf.Elf(kernel)
    code = file.bytes(file.symbols["processor_check"])[:64]
    assert data.count(code) == 1
    popf = data.index(b"\x9d\x9c", data.index(code))  # before a PUSHF
    data[popf] = data[popf - 1] + 8
    image = tmp_path / "slate-workshop.elf"
    image.write_bytes(data)
    assert refused(boot(wait=False, image=image, screen=True)) == \
        [NO_PSE, NO_TSC, NO_CMOV]


@pytest.mark.parametrize("arguments", [
    "-cpu pentium2", "-cpu athlon", "-machine isapc -cpu pentium3",
    "-machine q35"])
def test_a_later_processor_boots(kernel, arguments):
    run = qemu.run(kernel, "run usertests pipe; poweroff",
                   extra=arguments.split()).good()
    assert "processors" not in run.text


@pytest.mark.parametrize("arguments", [
    "-machine microvm", "-machine microvm -cpu qemu32,-apic",
    "-machine pc -cpu qemu32,-apic"])
def test_interrupts_come_whatever_the_firmware_has_set(boot, arguments):
    machine = boot(wait=False, extra=arguments.split())
    assert "does not tick" not in machine.prompt()
    machine.until("run cat /proc/uptime", r"^[\d.]*[1-9]")
    machine.wait_halt()
    assert "sbin" in machine.command("run ls /")


@pytest.mark.parametrize("machine", ["microvm,pit=off", "microvm,pic=off"])
def test_a_clock_that_does_not_tick_is_reported(boot, machine):
    """And its shell works."""
    machine = boot(wait=False, extra=["-machine", machine])
    assert "The clock does not tick: no interrupt comes from the timer" in \
        machine.prompt()
    assert "sbin" in machine.command("run ls /; echo $((done))")
    machine.stopped("panic")
    assert "\n$((typed))\n" in machine.stopped("echo $((typed))")


# QEMU's processor with everything that QEMU knows: SMEP, SMAP and UMIP too.
NEWEST = ["-cpu", "max"]


def protections(run):
    """The names in the banner."""
    said = re.search(r"(?m)^Protections of the processor: (.*)$",
                     qemu.plain(run.text))
    return said[1].split() if said else []


@pytest.mark.parametrize("arguments, names", tiers([
    ("-cpu qemu32", []),
    ("-cpu max", ["SMEP", "SMAP", "UMIP"]),
], [
    ("-cpu qemu32,+smep", ["SMEP"]),
    ("-cpu qemu32,+smap", ["SMAP"]),
    ("-cpu qemu32,+umip", ["UMIP"]),
]))
def test_protections_that_the_processor_has_are_on(workshop, arguments, names):
    run = qemu.run(workshop, "verify; test trap; test paging; run -p init "
                   "usertests trap pointer; verify; poweroff", memory=64,
                   extra=arguments.split()).good()
    assert protections(run) == names
    for event in ("test", "user-test"):
        assert [e for e in run.named[event] if not e["ok"]] == []


@pytest.mark.parametrize("kind, did", [
    ("read-program", "read"), ("write-program", "wrote to"),
    ("run-program", "ran")])
def test_the_kernel_may_not_use_a_page_of_a_program(workshop, kind, did):
    """The panic names the page and the function."""
    run = qemu.run(workshop, f"fault {kind}; poweroff", extra=NEWEST)
    [event] = run.named["panic"]
    assert event["text"] == f"the kernel {did} 0x00500000, a program's page, " \
        "outside copy.asm"
    where = "0x00500000" if kind == "run-program" else \
        kind.replace("-", "_") + "+0x"
    assert event["at"].startswith(where), event
    assert "with_program+0x" in run.text
    old = qemu.run(workshop, f"fault {kind}; verify; poweroff").good()
    assert "the processor raised no exception" in old.text


@pytest.mark.long
@pytest.mark.parametrize("commands", [
    "test", "run -p init usertests", "run -p init libtest",
    "run -p init syscallfuzz -s 1 -n 20000"])
def test_everything_works_under_every_protection(workshop, commands):
    run = qemu.run(workshop, f"{commands}; verify; poweroff", extra=NEWEST,
                   budget=40_000).good()
    assert protections(run) == ["SMEP", "SMAP", "UMIP"]
    for event in ("test", "user-test"):
        assert [e for e in run.named.get(event, []) if not e["ok"]] == []


# By the kernel for one processor, and by that for several, which starts them.
MENTIONED = r"(?m)^(\d+) processors; (?:Slate uses one|\1 started)\r?$"


@pytest.mark.parametrize("arguments, memory, count", tiers([
    ("-smp 2", 32, 2),
    ("-smp 4", 2048, 4),  # the tables are above the direct map
    ("-smp 4 -no-acpi", 128, None),  # nothing lists them
], [
    ("-smp 4", 128, 4),
    ("-smp 3,maxcpus=8", 128, 3),
    ("-smp 4 -machine q35", 128, 4),
]))
def test_further_processors_are_mentioned(kernel, arguments, memory,
                                          count):
    run = qemu.run(kernel, "verify; poweroff", memory=memory,
                   extra=arguments.split()).good()
    said = re.findall(MENTIONED, run.text)
    assert said == ([str(count)] if count else [])


# Runs in GDB, before the kernel looks for the tables: finds them, and writes
# into one. A length comes with a checksum that fits, so that nothing else is
# wrong.
DAMAGE = """
import gdb, struct
memory = gdb.selected_inferior()
BASE, RAM = 0xC0000000, 32 << 20
def word(at):
    return struct.unpack("<I", memory.read_memory(at, 4))[0]
def tables():
    for at in range(BASE + 0xE0000, BASE + 0x100000, 16):
        if memory.read_memory(at, 8).tobytes() == b"RSD PTR ":
            yield "RSDP", at
            break
    root = BASE + word(at + 16)
    for entry in range(root + 36, root + word(root + 4), 4):
        at = BASE + word(entry)
        yield memory.read_memory(at, 4).tobytes().decode(), at
    yield "RSDT", root
def damage(table, checksum, length):
    at = dict(tables())[table]
    if length is not None:
        memory.write_memory(at + 4, struct.pack("<I", length))
        there = min(length, BASE + RAM - at)
        checksum = -sum(memory.read_memory(at, there).tobytes())
    place = at + (8 if table == "RSDP" else 9)
    value = memory.read_memory(place, 1).tobytes()[0] + checksum
    memory.write_memory(place, bytes([value % 256]))
"""


@pytest.mark.parametrize("table, checksum, length, believed", tiers([
    ("APIC", 0, None, True),
    ("APIC", 1, None, False),
    ("RSDT", 0, 0, False),
], [
    ("RSDT", 1, None, False),
    ("RSDP", 1, None, False),
    ("RSDT", 0, 35, False),  # shorter than its header
    ("APIC", 0, 43, False),
    ("RSDT", 0, (1 << 20) + 4, False),  # longer than any real one
    ("RSDT", 0, 0xFFFFFFFF, False),
]))
def test_a_broken_table_of_processors_is_not_believed(kernel, table, checksum,
                                                      length, believed):
    code = f"{DAMAGE}damage({table!r}, {checksum}, {length})"
    session = gdb.Session(
        kernel, "verify; poweroff",
        [("acpi_processors", [f"python exec({code!r})"]), ("power_off", [])],
        extra=["-smp", "4"])
    assert session.said[0] == {f"python exec({code!r})": ""}
    assert "every invariant holds" in session.serial
    assert re.findall(MENTIONED, session.serial) == (["4"] if believed else [])
