"""Processors: too old ones are refused, and only the first of several runs."""
# Tests: boot/processor.c, kernel/x86/acpi.c

import re
import time

import pytest

from tools.run import elf, qemu

NO_PSE = "4 MiB pages (PSE)"
NO_TSC = "time-stamp counter (TSC)"
NO_CMOV = "conditional moves (CMOV)"


def refused(machine):
    """The features that a machine misses, as its two consoles name them; it
    must have halted."""
    text = machine.expect(r"Halted\.\r\n", unless="slate> ").split("\r\n")
    screen = [line.rstrip() for line in machine.wait_screen(r"Halted\.")]
    assert [line for line in screen if line] == text[:-1]
    end = time.monotonic() + qemu.SILENCE
    while "HLT=1" not in (registers := machine.qmp.execute(
            "human-monitor-command", **{"command-line": "info registers"})):
        assert time.monotonic() < end, registers
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
    assert refused(boot(extra=arguments.split(), screen=True)) == missing


def test_a_processor_without_cpuid_is_refused(boot, kernel, tmp_path):
    """QEMU has none. But on one, the POPF that sets another EFLAGS.ID changes
    nothing: here a POP of the register that was pushed takes its place."""
    data = bytearray(kernel.read_bytes())
    file = elf.Elf(kernel)
    code = file.bytes(file.symbols["processor_check"])[:64]
    assert data.count(code) == 1
    popf = data.index(b"\x9d\x9c", data.index(code))  # before a PUSHF
    data[popf] = data[popf - 1] + 8
    image = tmp_path / "slate-workshop.elf"
    image.write_bytes(data)
    assert refused(boot(image=image, screen=True)) == [NO_PSE, NO_TSC, NO_CMOV]


@pytest.mark.parametrize("arguments", [
    "-cpu pentium2", "-cpu athlon", "-machine isapc -cpu pentium3",
    "-machine q35"])
def test_a_later_processor_boots(kernel, arguments):
    run = qemu.run(kernel, "run usertests pipe; poweroff",
                   extra=arguments.split())
    assert run.problem is None, run.explain()
    assert "processors" not in run.text


@pytest.mark.parametrize("arguments, memory, count", [
    ("-smp 2", 32, 2),
    ("-smp 4", 128, 4),
    ("-smp 4", 2048, 4),  # the tables are above the direct map
    ("-smp 3,maxcpus=8", 128, 3),
    ("-smp 4 -machine q35", 128, 4),
    ("-smp 4 -no-acpi", 128, None),  # nothing lists them
])
def test_processors_that_are_not_used_are_mentioned(kernel, arguments, memory,
                                                    count):
    run = qemu.run(kernel, "verify; poweroff", memory=memory,
                   extra=arguments.split())
    assert run.problem is None, run.explain()
    said = re.findall(r"(?m)^(\d+) processors; Slate uses one\r?$", run.text)
    assert said == ([str(count)] if count else [])
