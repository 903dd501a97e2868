"""The product, as a user boots it: the first minute of the README, and what it
says of the commands that only the workshop kernel has."""
# Tests: kernel/main.c, kernel/shell/shell.c, tools/make/commands.py

import re

import pytest

from conftest import sanitized
from tools.run import qemu
from tools.test.shells import only_workshop

ONLY = ": only the workshop kernel has this command; boot it with: " \
       "make run WORKSHOP=1"
FIRST_MINUTE = ["kmem create foo 200 8 ctor", "kmem alloc foo 50",
                "slabs foo", "run spike", "verify", "kmastat", "reap -a",
                "run kmastat", "run find /"]


@pytest.fixture(scope="module")
def machine(kernel):
    if sanitized():
        pytest.skip("under the sanitizers there is no product")
    with qemu.Machine(kernel) as machine:
        machine.prompt()
        yield machine


def test_the_first_minute(machine):
    for command in FIRST_MINUTE:
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


def commands(help_text):
    return set(re.findall(r"^ *(\w+)  ", help_text, re.M))
