"""slabtop on both consoles: its screens, its keys, and the state after it
ends. Its arithmetic is tested in the kernel
(tools/workshop/observe/tests/test_slabtop.c)."""

import json
import re

import pytest

from conftest import sanitized
from tools.run import qemu

pytestmark = pytest.mark.workshop

HEAD = r"CACHE +ALLOC/s +FREE/s +GROW/s +MEM/K +HIT%( +SHARE)?"
CLEAR = "\x1b[2J"


def screens(text):
    """The screens that were drawn: a list of lines each."""
    for part in text.split("\x1b[H")[1:]:
        lines = qemu.plain(part).split("\n")
        assert max(map(len, lines)) <= 80, lines
        yield [line.rstrip() for line in lines]


def names(screen):
    """The caches of a screen from the top; the sum comes before them."""
    rows = [line.split() for line in screen
            if re.search(r" (-|\d+\.\d)$", line)]
    assert rows and rows[0][0] == "TOTAL", screen
    return [row[0] for row in rows[1:]]


def next_screen(machine):
    """The next whole screen on the serial line, and the bytes sent for it."""
    machine.expect(r"\x1b\[H")
    text = machine.expect(r"\x1b\[J")
    return next(screens("\x1b[H" + text)), text


def test_on_the_serial_line(boot):
    machine = boot()
    machine.prompt()
    machine.command("echo what was there")
    machine.send("run -b kenbus -i 100000; slabtop -d 0.1\r")
    machine.expect(r"\x1b\[\?1049h.*\x1b\[\?25l")
    screen, text = next_screen(machine)
    assert re.match(r"up 0:\d\d:\d\d +\d+ tasks +\d+ caches", screen[0])
    assert re.fullmatch(HEAD, screen[4])
    assert "\x1b[7mm memory\x1b[0m" in text
    assert len(screen) <= 25  # the last is the place past the end
    for _ in range(200):  # programs run while it waits
        screen, text = next_screen(machine)
        if float(screen[5].split()[1]) > 0:
            break
    else:
        pytest.fail("kenbus does nothing:\n" + "\n".join(screen))
    for key, word in (("a", "a allocs"), ("h", "h hits"), ("n", "n name")):
        machine.send(key)
        while f"\x1b[7m{word}\x1b[0m" not in text:
            screen, text = next_screen(machine)
    assert names(screen) == sorted(names(screen))
    first = names(screen)[0]
    machine.send("\x1b[B")
    while names(screen)[0] == first:
        screen, text = next_screen(machine)
    machine.send("q")
    assert machine.prompt().endswith("\x1b[?1049lslate> ")
    assert machine.transcript.count(CLEAR) == 1  # or it would flicker


def test_on_the_display(boot):
    machine = boot(screen=True)
    machine.prompt()
    machine.command("echo what was there")
    before = machine.screen()
    machine.send("slabtop -d 0.1\r")
    machine.expect(r"\x1b\[J")  # the first screen is whole
    screen = machine.wait_screen(HEAD)
    at = next(i for i, line in enumerate(screen) if re.match(HEAD, line))
    path = f"{machine.folder}/attributes"
    machine.qmp.execute("pmemsave", val=0xB8000, size=4000, filename=path)
    with open(path, "rb") as f:
        attributes = f.read()[1::2]
    assert at == 4 and screen[0].startswith("up ")
    assert set(attributes[80 * at:80 * at + 80]) == {0x70}  # in reverse
    assert 0x70 not in attributes[80 * at + 80:80 * at + 80 + 66]
    machine.keys("n")
    machine.wait_screen(r"^file ")
    machine.keys("q")
    assert machine.prompt().endswith("\x1b[?1049lslate> ")
    lines = machine.screen()
    last = max(i for i, line in enumerate(before) if line.strip())
    assert lines[:last] == before[:last]
    assert not any(re.match(HEAD, line) for line in machine.screen())

    machine.send("slabtop; echo never\x20said\r")
    machine.expect(r"\x1b\[J")
    machine.send("\x03")
    machine.expect(r"\^C\r?\n")
    assert "said" not in machine.prompt()
    for line in ("slabtop -x", "slabtop -d", "slabtop -d 0", "slabtop -d 1e9",
                 "slabtop -d 1.5s", "slabtop -d 99999", "slabtop -n 0",
                 "slabtop -n -1", "slabtop -s best", "slabtop all"):
        said = machine.command(line)
        assert re.fullmatch(r"(usage: )?slabtop:? \S.*\n", said), said


def test_a_panic_ends_it(boot):
    machine = boot(screen=True)
    machine.prompt()
    machine.command("echo what was there")
    machine.send("slabtop -d 60\r")
    machine.expect(r"\x1b\[J")
    machine.qmp.execute("inject-nmi")
    machine.expect(r"\x1b\[\?1049l")
    machine.expect(r"slate!> \Z")
    screen = "\n".join(machine.screen())
    assert "what was there" in screen and "panic: " in screen
    assert not re.search(HEAD, screen)
    machine.send("slabtop\r")
    said = machine.expect(r"slate!> \Z")
    assert re.search(r"slabtop: cannot work on a stopped machine", said)


def test_text_and_json_add_up(kernel):
    delay = "0.10" if sanitized() else "0.01"  # seconds in which kenbus works
    run = qemu.run(kernel, f"run -b kenbus -i 1000; slabtop -b -n 2 -d {delay};"
                   f" slabtop -j -n 3 -d {delay}; kmastat -j; poweroff")
    assert run.problem is None, run.explain()
    text = qemu.plain(run.text)
    assert "\x1b" not in run.text
    tables = text.split("\nup ")[1:]
    assert len(tables) == 2 and "rates since boot" in tables[0]
    assert f"rates since {delay} s ago" in tables[1]
    for table in tables:
        rows = [line.split() for line in table.splitlines()
                if re.fullmatch(r"\w+( +(\S+)){5}", line)][1:]
        memory = [int(row[4]) for row in rows]
        assert memory[0] == sum(memory[1:]) > 0
        assert memory[1:] == sorted(memory[1:], reverse=True)

    records = [json.loads(line) for line in text.splitlines()
               if line.startswith("{")]
    starts = [i for i, r in enumerate(records) if "at_ms" in r]
    assert len(starts) == 3
    kmastat = records[starts[2] + 1:]
    while "size" not in kmastat[0]:
        kmastat.pop(0)
    allocs = dict.fromkeys((r["cache"] for r in kmastat if "cache" in r), 0)
    for i, start in enumerate(starts):
        head = records[start]
        end = starts[i + 1] if i < 2 else len(records) - len(kmastat)
        rows = records[start + 1:end]
        assert [r["cache"] for r in rows if "at_ms" in r] == []
        for key in ("allocs", "frees", "grows", "mem", "inuse", "slabs"):
            assert head[key] == sum(row[key] for row in rows), key
        assert head["mem"] == 4096 * head["supplier_pages"]
        for row in rows:
            if row["cache"] in allocs:
                allocs[row["cache"]] += row["allocs"]
    # No other task has run since the last interval: they add up to the sum.
    assert allocs == {r["cache"]: r["allocs"] for r in kmastat if "cache" in r}
    assert sum(records[s]["allocs"] for s in starts[1:]) > 0
