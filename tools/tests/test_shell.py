"""The kernel shell over the serial line: prompt, editing, history,
completion, and what it says to wrong input."""

import random
import re
import time

import pytest

from slate import qemu

UP, DOWN, RIGHT, LEFT = ("\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D")
HOME, END, DELETE = ("\x1b[H", "\x1b[F", "\x1b[3~")


def typed(shell, keys):
    """Types keys that end up as `echo SOMETHING`; returns what echo said."""
    shell.send(keys + "\r")
    text = qemu.plain(shell.prompt())
    return text.rsplit("\n", 2)[-2]


def test_help_lists_commands_and_each_has_more(shell):
    text = shell.command("help")
    for name in ("kmastat", "cache", "slabs", "reap", "ws", "map", "hash",
                 "colours", "buddyinfo", "pages", "meminfo", "kmem", "stress",
                 "verify", "test", "bench", "bt", "x", "sym", "dmesg",
                 "uptime", "clear", "reboot", "poweroff"):
        assert re.search(rf"^ *{name}\b", text, re.M), f"{name}:\n{text}"
        assert name in shell.command(f"help {name}")


def test_several_commands_on_a_line(shell):
    assert shell.command("echo one; echo two") == "one\ntwo\n"


@pytest.mark.parametrize("keys, said", [
    ("echo abx\bc", "abc"),
    ("echo ac" + LEFT + "b", "abc"),
    ("cho abc" + HOME + "e", "echo abc"),
    ("echo abxc" + LEFT + LEFT + DELETE, "abc"),
    ("echo ac" + HOME + RIGHT * 6 + "b" + END + "d", "abcd"),
    ("cho abc\x01e\x05d", "abcd"),            # ^A, ^E
    ("echo xyz\x15echo abc", "abc"),          # ^U
    ("echo abc xyz\x17", "abc"),              # ^W
    ("echo abcxyz" + LEFT * 3 + "\x0b", "abc"),  # ^K
], ids=["backspace", "left", "home", "delete", "end", "control-a-e",
        "control-u", "control-w", "control-k"])
def test_line_editing(shell, keys, said):
    assert typed(shell, keys).strip() == said.replace("echo ", "")


def test_history(shell):
    shell.command("echo first")
    shell.command("echo second")
    assert typed(shell, UP) == "second"
    assert typed(shell, UP + UP) == "first"
    assert typed(shell, UP + UP + DOWN) == "second"


def test_control_c_drops_the_line(shell):
    shell.send("echo unwanted\x03")
    shell.prompt()
    assert shell.command("echo wanted") == "wanted\n"


def test_completion_of_commands_and_cache_names(shell):
    shell.send("kmas\t\r")
    assert "kmem_" in shell.prompt()
    shell.send("cache kmem_ca\t\r")
    text = shell.prompt()
    assert "kmem_cache" in text and "no cache" not in text
    shell.send("b\t\t\x15\r")  # several fit: they are listed
    text = shell.prompt()
    assert "bench" in text and "buddyinfo" in text and "bt" in text


WRONG = ["frobnicate", "kmastat -q", "cache", "cache no_such_cache",
         "slabs no_such_cache", "slabs", "reap -q", "reap no_such_cache",
         "ws -i", "ws -i soon", "map", "map banana", "map 0xffffffffff",
         "hash no_such_cache", "colours no_such_cache", "kmem", "kmem frob",
         "kmem create", "kmem create x 0", "kmem create 7up 32",
         "kmem alloc no_such_cache 1", "kmem destroy no_such_cache",
         "kmem free no_such_cache", "stress banana", "stress 1 banana",
         "verify no_such_cache", "test no_such_suite", "bench no_such_group",
         "x", "x banana", "sym", "sym banana", "help no_such_command",
         "echo \"open", "uptime now", "clear all", "history all",
         "echo " + "a " * 20]


@pytest.mark.parametrize("line", WRONG)
def test_wrong_input_gives_one_line(shell, line):
    text = shell.command(line)
    assert len(text.splitlines()) == 1, text
    assert re.match(r"\w+: \S", text), text


def test_a_line_that_is_too_long_gives_one_line(shell):
    text = shell.command("echo " + "a" * 400)
    assert "more than 256 characters" in text
    assert shell.command("echo fine") == "fine\n"


def test_json_is_json(shell):
    import json
    for name in ("kmastat", "buddyinfo", "ws", "verify", "cache kmem_cache",
                 "slabs kmem_cache", "hash", "colours", "pages"):
        words = name.split(" ", 1)
        text = shell.command(" ".join([words[0], "-j", *words[1:]]))
        lines = text.splitlines()
        assert lines, name
        for line in lines:
            assert isinstance(json.loads(line), dict), f"{name}: {line}"


def test_dmesg_and_uptime(shell):
    shell.send("dmesg\r")
    assert "Type help" in shell.expect(r"\nslate> dmesg\r\n.*slate> \Z")
    assert re.search(r"\d+:\d\d:\d\d", shell.command("uptime"))


def test_totals_agree_with_buddy(shell):
    """kmastat's memory is what segkmem holds, and that with the free pages
    is what buddy manages."""
    import json
    rows = [json.loads(x) for x in
            shell.command("kmastat -j").splitlines()]
    assert len(rows) > 30


# ---- a hundred thousand lines of random bytes ------------------------------

LINES = 100_000


def noise(chance):
    """A line of random bytes, mostly short, now and then longer than the
    shell takes. The commands that end the machine have too many letters to
    come about by chance."""
    length = chance.randrange(1, 10)
    if length == 9:
        length = chance.choice([20, 40, 80, 300])
    return chance.randbytes(length) + b"\r"


def test_random_bytes_leave_the_shell_working(boot):
    seed = int(time.time())
    print(f"seed {seed}")
    chance = random.Random(seed)
    machine = boot()
    machine.prompt()
    for _ in range(LINES // 1000):
        machine.send(b"".join(noise(chance) for _ in range(1000)))
        machine.buffer = ""
    # Typed faster than it reads, the kernel may lose keys: ask until it hears.
    while "\nstill-alive" not in machine.buffer:
        machine.send("\r\x03\x15\recho still-\"\"alive\r")
        while machine.receive(2):
            pass
        assert machine.process.poll() is None, machine.transcript[-3000:]
        assert "slate!> " not in machine.buffer, machine.transcript[-3000:]
    machine.buffer = ""
    assert machine.command("echo fine") == "fine\n"
    assert not machine.events("panic")
