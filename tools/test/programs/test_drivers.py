"""The drivers rtc, uart and beat, which are programs. devtest checks in ring 3
the results that their clients get, and beattest the parts of beat, in counted
runs. Here: successors of drivers that were killed, the rights to start
one, and a line that leads to another machine."""
# Tests: drivers/servers/rtc.c, drivers/servers/uart.c, user/lib/rtc.c
# Tests: user/lib/uart.c

import re
import socket

import pytest

from conftest import ROOT, debug, product, sanitized
from tools.run import qemu, watchdog

pytestmark = pytest.mark.workshop


def run(kernel, *commands, **options):
    """The output of each command in a counted run with a name server."""
    line = "; echo @; ".join(("run -b -s names; run sleep 0",) + commands)
    result = qemu.run(kernel, line + "; poweroff", budget=200_000,
                      **options).good()
    said = re.split(r"(?m)^@$\n", qemu.plain(result.text))[1:]
    assert len(said) == len(commands), result.explain()
    return said


def all_good(text, name):
    """Whether every check of a file of devtest was made and passed."""
    source = (ROOT / f"user/tests/devtest/{name}.c").read_text(encoding="utf-8")
    count = len(re.findall(r"^ +check\(", source, re.M))
    wrong = [line for line in text.splitlines()
             if not line.startswith(("good: ", "devtest: "))]
    assert count > 10 and not wrong, text
    assert text.count("good: ") == count, text
    done = re.findall(r"devtest: (\d+) checks, 0 failures\n", text)
    assert sum(map(int, done)) == count, text


def test_rtc(kernel):
    """The driver is killed while it waits for the clock; its successor is
    notified of the next second, too."""
    times, good, last, dead, none, late, _ = run(
        kernel, "run -b -s rtc; run date; run date -w", "run -s devtest",
        "run -p devtest end rtc", "run sleep 0", "run date",
        "run -b -s rtc; run date -w", "verify")
    assert times.endswith("\n2020-01-01 00:00:00\n2020-01-01 00:00:01\n")
    all_good(good + last, "rtc")
    assert dead == "rtc: killed by signal 9 (KILL)\n"
    assert "no driver rtc is registered" in none and "exit code 1" in none
    assert re.fullmatch(r"rtc: pid \d+\n2020-01-01 00:00:\d\d\n", late), late


def test_uart(kernel):
    fresh, good, dead, works, _ = run(
        kernel, "run -b -s uart; run serial status", "run -p devtest uart",
        "run sleep 0", "run -b -s uart; run serial test 5000", "verify",
        extra=["-serial", "null"], memory="16")  # few numbers of tasks
    assert fresh.split("\n", 1)[1] == (
        "115200 baud\nsent 0, received 0, waiting 0\n"
        "interrupts 0, spurious 0, overruns 0, errors 0\n")
    all_good(good, "uart")
    assert dead == "uart: killed by signal 9 (KILL)\n"
    assert works.endswith("5000 bytes received as sent\n")


# ---- beat ------------------------------------------------------------------

PARTS = ("chip", "loop", "clients", "refuse", "keep", "order", "survive",
         "storm")


@pytest.mark.parametrize("part", PARTS)
def test_beat_part(kernel, part):
    said, _ = run(kernel, f"run -p beattest {part}", "verify")
    lines = [line for line in said.splitlines() if not line.isdigit()]
    assert all(line.startswith("good: ") for line in lines[:-1]), said
    assert re.fullmatch(rf"beattest: {len(lines) - 1} checks, 0 failures",
                        lines[-1]), said
    assert len(lines) > 2


def test_beat_dies(kernel):
    """Its successor continues the numbers; only one driver has the line."""
    first = "run -b -s beat; run tempo -p 32 -n 3"
    pid = re.search(r"beat: pid (\d+)", run(kernel, first)[0])[1]
    beats, busy, dead, none, then = run(
        kernel, first, "run -s rtc", f"kill {pid}; run sleep 0", "run tempo",
        "run -b -s beat; run tempo -p 32 -n 1")
    assert beats.endswith("\n32\n64\n96\n"), beats
    assert "in use" in busy and "rtc: exit code 1" in busy, busy
    assert dead.endswith("beat: killed by signal 15 (TERM)\n"), dead
    assert "no such file or directory" in none, none
    assert then.endswith("\n128\n"), then


def test_beat_for_all(kernel):
    """Clients of the same rhythm get the same beats; the beats end when no
    client has listened for a second."""
    both, still, _ = run(
        kernel, 'run -b -s beat; run sh -c "tempo -n 2 & tempo -n 2; wait"',
        "run sleep 5; run tempo -p 1 -n 1", "verify")
    beats = re.findall(r"^\d+$", both, re.M)
    assert beats == ["64", "64", "128", "128"], both
    assert 128 < int(still) <= 128 + 128 + 2


# ---- to another machine ----------------------------------------------------

class Outside:
    """A machine, uncounted, and the far end of its second line."""

    def __init__(self, kernel):
        self.end, inside = socket.socketpair()
        self.end.settimeout(watchdog.SECONDS)
        self.machine = qemu.Machine(
            kernel, extra=["-chardev", "socket,id=two,"
                           f"fd={inside.fileno()}", "-serial", "chardev:two"],
            handles=[inside.fileno()])
        inside.close()
        self.machine.prompt()

    def receive(self, n):
        data = b""
        while len(data) < n:
            more = self.end.recv(n - len(data))
            assert more, f"the line ended after {data!r}"
            data += more
        return data


@pytest.fixture(scope="module")
def outside():
    outside = Outside(product("slate-workshop.elf", "workshop"))
    yield outside
    outside.machine.close()
    outside.end.close()


def start(machine, *servers):
    """Until each waits for a message, so that its name is, or is about to be,
    registered before others look it up."""
    for server in servers:
        machine.command(f"run -b -s {server}")
        machine.until("ps", rf"message +{server}\r?$")


def pattern(n):
    return "".join(chr((i * 7 + i // 256) % 25 + 97) for i in range(n))


def test_refused(outside):
    """Each error is one line: no grant, name server, driver or device."""
    machine = outside.machine
    for name, irq in (("rtc", 8), ("uart", 3), ("beat", 8)):
        assert machine.command(f"run /sbin/{name}") == (
            f"{name}: interrupt {irq} (`run -s {name}` grants it): operation "
            f"not permitted\n{name}: exit code 1\n")
        assert machine.command(f"run -s {name}") == (
            f"{name}: the name {name}: no such file or directory\n"
            f"{name}: exit code 1\n")
    assert machine.command("run date") == (
        "date: no driver rtc is registered; at slate>: `servers`; `kill` rtc "
        "if it runs; `run -b -s names` if names does not; `run -b -s rtc`\n"
        "date: exit code 1\n")
    assert machine.command("run tempo") == (
        "tempo: beat (`run -b -s beat` starts it): no such file or "
        "directory\ntempo: exit code 1\n")
    assert machine.command("run serial status") == (
        "serial: uart (`run -b -s uart` starts it): no such file or "
        "directory\nserial: exit code 1\n")


def test_no_second_line(shell):
    assert shell.command("run -s uart") == (
        "uart: there is no second serial line\nuart: exit code 69\n")


def test_wrong_input_gives_one_line(outside):
    start(outside.machine, "names", "uart")
    for line in ("serial", "serial frob", "serial echo", "serial cat -n",
                 "serial cat -n 0", "serial set", "serial set 9600 x",
                 "serial set 7", "serial status now", "serial test 0",
                 "serial test 1 2", "date now", "date -x"):
        text = outside.machine.command("run " + line)
        assert re.fullmatch(r"(date: unknown [^\n]+\n)?(usage: )?"
                            r"(serial|date)[: ][^\n]+\n"
                            r"( {14}status \| test \[BYTES\]\n)?"  # usage
                            r"(serial|date): exit code [12]\n", text), text


def test_bytes_to_the_outside_and_back(outside):
    machine = outside.machine
    assert machine.command("run serial echo one two") == ""
    assert outside.receive(8) == b"one two\n"
    machine.send("run serial cat -n 6\r")
    outside.end.sendall(b"three\n")
    assert "\nthree\n" in qemu.plain(machine.prompt())
    poem = (ROOT / "user/root/home/poem").read_bytes()
    machine.send("run sh -c \"cat /home/poem /home/poem | serial put\"\r")
    assert outside.receive(2 * len(poem)) == 2 * poem
    machine.prompt()


def test_more_than_all_buffers_hold(outside):
    """The line is stopped while no client reads, and no byte is lost."""
    machine, text = outside.machine, pattern(20_000)
    machine.command("run sleep 0")
    outside.end.sendall(text.encode())
    assert machine.command("run sh -c \"serial cat -n 20000 | wc -c\"") \
        .split() == ["20000"]
    status = machine.command("run serial status")
    assert "overruns 0, errors 0" in status and "waiting 0" in status


def test_a_driver_dies_and_another_goes_on(outside):
    machine = outside.machine
    machine.command("run -b serial cat")
    machine.command("run sleep 0")
    pid = re.search(r"(?m)^ +(\d+) .* uart$", machine.command("ps")).group(1)
    machine.command(f"kill -KILL {pid}")
    for said in ("uart: killed by signal 9 (KILL)\r\n",
                 "serial: read: the other end is closed\r\n"):
        # before a prompt, or after it
        watchdog.poll(lambda: machine.command("run sleep 0.01"),
                      lambda _: said in machine.transcript)
    start(machine, "uart")
    machine.command("run serial echo again")
    assert outside.receive(6) == b"again\n"
    assert "every invariant holds" in machine.command("verify")


# ---- what it costs ---------------------------------------------------------

def test_interrupts_reach_drivers_at_once(kernel):
    """Also while another program computes: it is preempted. Under the
    sanitizers everything in the kernel takes several times as long, and
    assertions about locks take time as well."""
    times = 8 if sanitized() else 2 if debug() else 1
    result = qemu.run(kernel, "run -s bench; poweroff").good()
    cost = {e["key"]: e["value"] for e in result.named["bench"]}
    assert 100 < cost["irq.latency"] < cost["irq.latency.busy"] \
        < 500 * times, cost
    assert cost["irq.latency"] + 43 < cost["irq.roundtrip"] < 600 * times, \
        cost


# ---- the chapter -----------------------------------------------------------

def code(text):
    """The lines of code, without blank lines and headings of parts."""
    return [line for line in text.splitlines()
            if line.strip() and not line.startswith("/* ---- ")]


def test_the_chapter_shows_the_whole_driver():
    """Its listings, joined in the order of the page, are the file."""
    shown = "".join(re.findall(r"(?m)^```c\n((?:(?!```).*\n)*)```$",
                               (ROOT / "docs/driver.md").read_text("utf-8")))
    source = (ROOT / "drivers/servers/rtc.c").read_text(encoding="utf-8")
    assert code(shown) == code(source[source.index("#include"):])
