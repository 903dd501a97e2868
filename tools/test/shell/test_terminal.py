"""Terminals: pages, colours, and long lines and characters that are not ASCII
on the screen."""
# Tests: kernel/shell/pager.c, drivers/console.c, drivers/screen.c

import re
import struct
import sys
import zlib

import pytest

from conftest import ROOT, execute
from tools.run import qemu

QUESTION = r"-- Space: a page, Enter: a line, c: all the rest, q: no more --"
ASKS = re.escape(QUESTION.replace("\\", "")) + r"\x1b\[0m\Z"
RED = "\x1b[0;31m"


@pytest.fixture
def terminal(kernel):
    """A machine whose serial line is a terminal."""
    with qemu.Machine(kernel, "terminal=both") as machine:
        machine.prompt()
        yield machine


def pages(machine, line, keys):
    """Types a line, then a key at each question. Returns the output before each
    question, and at last before the prompt."""
    found = []
    machine.send(line + "\r")
    machine.expect(r"\n")
    for key in keys:
        found.append(machine.expect(ASKS, unless="slate> "))
        machine.send(key)
    found.append(machine.prompt())
    return [qemu.plain(text) for text in found]


def rows(text):
    """The lines of a page, without the question and the echo."""
    lines = text.replace(QUESTION, "").split("\n")
    return [line for line in lines if line and "slate>" not in line]


def test_a_screenful_at_a_time(terminal):
    first, second, line, rest = pages(terminal, "help; help", " \rc")
    assert [page.count("\n") for page in (first, second, line)] == [24, 24, 1]
    assert rows(rest)


def test_nothing_is_lost_between_pages(terminal, shell):
    """Kernels have different numbers of commands, and so of pages."""
    assert rows("".join(pages(terminal, "help; help", " c"))) == \
        rows(shell.command("help; help"))


def test_all_the_rest_and_no_more(terminal, shell):
    whole = rows(shell.command("help"))
    assert rows("".join(pages(terminal, "help", "c"))) == whole
    text = "".join(pages(terminal, "help; echo never", "q"))
    assert rows(text) == whole[:24]
    assert rows("".join(pages(terminal, "help", "\x03"))) == whole[:24]
    assert terminal.command("echo still here") == "still here\n"


def test_the_log_is_paged_but_not_recorded(terminal):
    pages(terminal, "help", "c")
    shown = []
    for _ in range(2):
        terminal.send("dmesg\r")
        shown.append(qemu.plain(terminal.expect(ASKS)).split("dmesg\n", 1)[1])
        terminal.send("q")
        terminal.prompt()
    assert shown[0].count("\n") == 24 and shown[0] == shown[1]
    terminal.send("dmesg\r")
    terminal.expect(ASKS)
    terminal.send("c")
    assert "Slate: " not in qemu.plain(terminal.expect("dmesg\r*\nslate> "))


def test_what_fits_does_not_wait(terminal):
    """Nor does a program's output wait: the shell does not page it."""
    assert terminal.command("echo here") == "here\n"
    assert len(terminal.command("run cat /proc/kmastat").splitlines()) > 25


HINT = "-- Page Up: the lines before --"


def test_a_report_with_its_sum_at_the_end_does_not_wait(terminal):
    """Else the sum would be behind a question. The next command waits."""
    text = "".join(pages(terminal, "kmastat -z; help", "q"))
    report, after = text.split(HINT)
    assert "TOTAL" in report and "supplier" in report
    assert QUESTION not in report and QUESTION in after
    assert HINT not in terminal.command("kmastat kstack")


@pytest.mark.parametrize("command, times", [
    ("kmastat", 2), ("verify", 2), ("leaks", 14), ("reap -n", 7),
    ("inodes", 2)])
def test_these_reports_do_not_wait(terminal, shell, command, times):
    """A q at a question among them would leave the others out."""
    head = shell.command(command).splitlines()[0]
    text = "".join(pages(terminal, f"{command}; " * times + "help", "q"))
    assert len(rows(text)) > 24 and text.count(f"{head}\n") == times, text


def test_page_up_shows_the_head_of_a_report(kernel):
    with qemu.Machine(kernel, screen=True) as machine:
        machine.prompt()
        machine.keys(*"kmastat", "spc", "minus", "z", "ret")
        screen = machine.wait_screen("^" + HINT)  # and not QUESTION
        machine.prompt()
        assert not any(line.startswith("CACHE ") for line in screen)
        machine.keys("pgup", "pgup", "pgup")
        machine.wait_screen("^CACHE ")


def test_nothing_waits_where_no_person_is(kernel, shell):
    assert len(shell.command("help").splitlines()) > 40
    assert "\x1b" not in shell.transcript.split("slate> ", 1)[0]
    run = qemu.run(kernel, "help; kmastat -z; poweroff", "terminal=both").good()
    assert QUESTION not in run.text


def test_the_screen_is_a_terminal_and_the_line_is_none(kernel):
    with qemu.Machine(kernel, screen=True) as machine:
        machine.prompt()
        machine.keys("h", "e", "l", "p", "ret")
        screen = machine.wait_screen("^" + QUESTION)
        assert screen[24].strip() == QUESTION
        assert screen[23].strip() and screen[0].strip()
        machine.keys("q")
        assert "\x1b[Kslate> " in machine.prompt()
        assert len(machine.command("help").splitlines()) > 40


def picture(path):
    """The width and the colours of the pixels of a PNG, row by row."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        part, (crc,) = data[at + 8:at + 8 + size], \
            struct.unpack(">I", data[at + 8 + size:][:4])
        assert crc == zlib.crc32(kind + part)
        if kind == b"IHDR":
            width, height = struct.unpack(">II", part[:8])
        packed += part if kind == b"IDAT" else b""
        at += size + 12
    rows, step = zlib.decompress(packed), 3 * width + 1
    assert len(rows) == step * height
    return width, [{rows[at:at + 3]
                    for at in range(y * step + 1, (y + 1) * step, 3)}
                   for y in range(height)]


@pytest.mark.parametrize("command, end, colours", [
    ("echo a", "the kernel is at its prompt", {b"\0\0\0", b"\xa8\xa8\xa8"}),
    ("panic a", "the kernel has panicked",
     {b"\0\0\0", b"\xa8\xa8\xa8", b"\xa8\0\0"}),
    ("poweroff", "the machine has ended", {b"\0\0\0", b"\xa8\xa8\xa8"})])
def test_screenshots(kernel, tmp_path, command, end, colours):
    out = tmp_path / "slate.png"
    done = execute(sys.executable, "-m", "tools.run.core", "--screen", kernel,
                   out, CMD=command)
    said = done.stdout + done.stderr
    assert end in said and f"its screen is in {out}" in said, said
    width, rows = picture(out)
    assert (width, len(rows)) == (720, 400)
    assert set().union(*rows) == colours
    assert set().union(*rows[:16]) > {b"\0\0\0"}  # the first line has text


def test_colours_only_on_terminals(kernel, terminal):
    terminal.send("panic a reason\r")
    text = terminal.expect("slate!> ")
    assert f"{RED}\r\npanic: a reason\r\n\x1b[0;0m" in text
    with qemu.Machine(kernel, screen=True) as machine:
        machine.prompt()
        machine.send("panic a reason\r")
        assert "\x1b" not in machine.expect("slate!> ").split("reason", 1)[1]
        machine.wait_screen("^panic: a reason")
        assert attributes(machine, "panic: a reason") == {4}
    with qemu.Machine(kernel, "terminal=plain", screen=True) as machine:
        machine.prompt()
        machine.send("panic another\r")
        machine.wait_screen("^panic: another")
        assert attributes(machine, "panic: another") == {7}


def test_colours_of_slabs_and_owners(terminal):
    terminal.send("slabs kmem_cache; slabs grant; pages; reap -a; slabs\rc")
    text = terminal.prompt()
    assert "\x1b[0;36mfull   \x1b[0;0m" in text
    assert re.search(r" \x1b\[0;36m#+\x1b\[0;0m\r?\n", text)
    assert re.search(r" \x1b\[0;36m#+\x1b\[0;32m\.+\x1b\[0;0m\r?\n", text)
    assert re.search(r"\x1b\[0;35mK\x1b\[0;0m", text)
    assert re.search(r"\x1b\[0;32m[Ss]\x1b\[0;0m", text)
    assert re.search(r"(\x1b\[0;36m#)+(\x1b\[0;33m\+)+\x1b\[0;0m", text)


def attributes(machine, text):
    """The attributes of a text on the screen."""
    at = "".join(machine.screen()).index(text)
    return set(machine.memory(0xB8000, 4000)[1::2][at:at + len(text)])


def test_the_screen_shows_ascii(kernel):
    with qemu.Machine(kernel, screen=True) as machine:
        machine.prompt()
        machine.send("run cat /bin/echo; echo; echo over\r")
        machine.wait_screen(r"^over *$")
        assert all(ord(c) < 127 for line in machine.screen() for c in line)


def test_strings_of_the_kernel_are_ascii():
    """So are those of programs; comments may have any character."""
    from tools.test.lint import TOKENS, sources
    for path in sources(".c", ".h"):
        if "host" in path.parts or path.parts[0] not in \
                ("boot", "kernel", "mm", "drivers", "tools", "user"):
            continue
        for token in re.findall(TOKENS, (ROOT / path).read_text("utf-8"), re.S):
            assert token.startswith("/") or token.isascii(), (path, token)


def test_a_panic_after_no_more(terminal):
    """`q` drops the rest of a report, but no output of the panic's shell."""
    pages(terminal, "help", "q")
    terminal.qmp.execute("inject-nmi")
    terminal.expect(r"slate!> ")
    terminal.send("echo still here\r")
    assert "\nstill here\n" in qemu.plain(terminal.expect(r"slate!> "))
