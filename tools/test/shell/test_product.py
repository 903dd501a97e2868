"""The product, as a user boots it: the first minute of the README, and its
messages about the commands that only the workshop kernel has."""
# Tests: kernel/main.c, kernel/shell/shell.c, tools/make/commands.py

import re

import pytest

from conftest import ROOT, sanitized
from tools.run import qemu
from tools.test.shells import only_workshop

ONLY = ": only the workshop kernel has this command; boot it with: " \
       "make run WORKSHOP=1"
# What the README types at the kernel shell, without its remarks. Answers that
# it shows are compared by test_transcripts.py.
README = re.findall(r"(?m)^ *slate> (.+?)(?: {3,}.*)?$",
                    (ROOT / "README.md").read_text(encoding="utf-8"))
FIRST_MINUTE = [line for line in README
                if line != "sh" and line.split()[0] not in only_workshop()]
OTHERS = ["reap -a", "run kmastat", "run find /"]


@pytest.fixture(scope="module")
def machine(kernel):
    if sanitized():
        pytest.skip("under the sanitizers there is no product")
    with qemu.Machine(kernel) as machine:
        machine.prompt()
        yield machine


def test_the_first_minute(machine):
    assert len(FIRST_MINUTE) > 5
    for command in FIRST_MINUTE + OTHERS:
        said = machine.command(command)
        assert "only the workshop" not in said and said, (command, said)
        assert not said.startswith(command.split()[0] + ": "), said


def test_commands_of_the_workshop(machine):
    """Each is known by name, in `help` and when it is typed."""
    names = machine.command("help").split("WORKSHOP=1):")[1].split()
    assert len(names) > 10 and set(names) <= only_workshop()
    for name in names:
        assert machine.command(name).strip() == name + ONLY
        assert machine.command(f"help {name}").strip() == name + ONLY


def test_the_workshop_has_them(machine, workshop_shell):
    names = machine.command("help").split("WORKSHOP=1):")[1].split()
    own = machine.command("help").split("WORKSHOP=1):")[0]
    said = workshop_shell.command("help")
    assert "WORKSHOP=1" not in said
    assert set(names) == commands(said) - commands(own)


def test_the_readme_breaks_the_workshop_kernel(boot, workshop):
    """Its planted bugs, each in a machine of its own, end in a panic."""
    lines = [line for line in README if line.split()[0] in only_workshop()]
    assert lines
    for line in lines:
        machine = boot(image=workshop)
        machine.stopped(line)
        assert machine.events("panic"), line


def commands(help_text):
    return set(re.findall(r"^ *(\w+)  ", help_text, re.M))
