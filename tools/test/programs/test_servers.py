"""Servers and their grants: /etc/servers, the output of `servers`, `irqs` and
/proc/servers, and the operations that a grant allows and forbids, which
user/tests/drivertest tries."""
# Tests: kernel/shell/cmd_servers.c, kernel/syscall/servers.c

import re

import pytest

from conftest import archive
from tools.run import qemu
from tools.run.qemu import json_lines

pytestmark = pytest.mark.workshop

REFUSED = re.compile(r"drivertest \(pid \d+\) killed at 0x[0-9a-f]+: "
                     r"general protection \(#GP\): ports? (0x[0-9a-f]+)"
                     r"(?: is not granted|-0x[0-9a-f]+ are not all granted)")


def counted(kernel, commands, **options):
    result = qemu.run(kernel, commands + "; poweroff", memory="64",
                      budget=20_000, **options).good()
    return result.text.replace("\r", "")


def verdicts(text):
    """The checks of drivertest: {name: passed}."""
    return {m[2]: m[1] == "good" for m in
            re.finditer(r"^(good|BAD): ([^:\n]+)", text, re.M)}


@pytest.fixture(scope="module")
def granted(kernel):
    """drivertest with its grant, and the state afterwards."""
    return counted(kernel, "run -s drivertest; servers -j; irqs -j; verify; "
                   "run drivertest in 0x278; run cat /proc/servers; "
                   "run -s nobody; run -p -s names; run -s")


@pytest.fixture(scope="module")
def privileged(kernel):
    return counted(kernel, "run -p drivertest privileged; servers -j; verify")


def test_a_server_has_what_it_is_granted(granted):
    found = verdicts(granted)
    assert all(found.values()) and len(found) >= 30, granted
    assert " checks, 0 failures" in granted, granted


def test_the_way_to_a_grant(privileged):
    found = verdicts(privileged)
    assert all(found.values()) and len(found) >= 14, privileged
    assert " checks, 0 failures" in privileged, privileged


def test_no_port_beside_the_granted_ones(privileged):
    refused = REFUSED.findall(privileged)
    assert {"0x6f", "0x72", "0x277", "0x27b", "0x3f8"} <= set(refused)
    assert "0x70" not in refused and "0x27a" in refused  # 16 bits there


def test_servers_in_json(granted, privileged):
    for text in granted, privileged:
        rows = [r for r in json_lines(text) if "server" in r]
        # A server that has ended has no grant.
        rest = {"server": "drivertest", "pid": 0, "state": "free", "dma": 4,
                "dma_used": 0, "program": "/bin/drivertest"}
        assert [r for r in rows if r["server"] == "drivertest"] == [
            rest | {"ports": "70-71", "irq": 5, "memory": "b8000-b8fff"},
            rest | {"ports": "278-27a", "irq": 8, "memory": "ba000-bafff"}]
        assert all(r["pid"] == 0 for r in rows), rows


def test_irqs_count_and_go_back(granted):
    lines = {r["line"]: r for r in json_lines(granted) if "line" in r}
    assert len(lines) == 16
    assert lines[8]["count"] >= 5 and "owner" not in lines[8]
    assert all(lines[i]["masked"] and lines[i]["port"] == 0 for i in (5, 8))
    assert lines[0]["owner"] == "timer_irq" and lines[0]["count"] >= 5
    assert lines[2]["owner"] == "cascade" and not lines[2]["masked"]
    assert lines[14]["count"] == 0


def test_the_same_program_without_its_grant(granted):
    assert "port 0x278 is not granted\ndrivertest: killed by signal 11" in \
        granted, granted


def test_proc_servers(granted):
    rows = [line.split() for line in
            granted.split("NAME         PID", 1)[1].splitlines()[1:]]
    assert ["names", "-", "free", "-", "-", "-", "0/0", "/sbin/names"] in rows
    assert [row[3:6] for row in rows if row[:1] == ["drivertest"]] == [
        ["70-71", "5", "b8000-b8fff"], ["278-27a", "8", "ba000-bafff"]]


def test_run_s_says_what_is_wrong(granted):
    assert "run: there is no server 'nobody'; `servers` lists them" in granted
    assert "usage: run [-p] [-b] PROGRAM [ARG ...]" in granted
    assert "       run -s [-b] SERVER [ARG ...]" in granted


def test_grants_in_use(boot):
    """A session's name server, and a driver that waits for its line."""
    machine = boot()
    machine.command("run -b -s drivertest wait")
    running = (r"^drivertest +(\d+) running +70-71   5 +b8000-b8fff "
               r"+2/4 /bin/drivertest$")
    text = machine.until("servers", running)
    pid = int(re.search(running, text, re.M)[1])
    machine.until("irqs -j", r'"line":5,.*"owner":"drivertest')
    assert all(len(line) <= 80 for line in text.splitlines()), text
    lines = {r["line"]: r for r in json_lines(machine.command("irqs -j"))}
    assert lines[5]["owner"] == f"drivertest({pid})" and lines[5]["port"] > 0
    assert not lines[5]["masked"] and "owner" not in lines[8]
    refused = machine.command("run -s drivertest")
    assert "runs as that server" in refused, refused
    assert "every invariant holds" in machine.command("verify")
    # whatis recognizes pages of a device and pages for DMA.
    text = machine.command("whatis 0x40000000")
    assert re.search(rf"task {pid} \(drivertest\), mmap: frame 184", text), text
    text = machine.command("whatis 0x40001000")
    frame = re.search(rf"task {pid} \(drivertest\), mmap: frame (\d+)", text)
    text = machine.command(f"whatis {0xc0000000 + 4096 * int(frame[1]):#x}")
    assert "user" in text and f"task {pid} (drivertest)" in text, text
    machine.command(f"kill {pid}")
    machine.until("servers -j", r'"server":"drivertest".*"state":"free"')
    lines = {r["line"]: r for r in json_lines(machine.command("irqs -j"))}
    assert "owner" not in lines[5] and lines[5]["masked"]
    assert " checks, 0 failures" in machine.command("run -s drivertest")
    assert "every invariant holds" in machine.command("verify")


@pytest.mark.parametrize("how", ["orphan", "bound /bin/sleep 1000",
                                 "exec /bin/drivertest bound /bin/sleep 1000"])
def test_a_line_goes_with_its_grant(kernel, how):
    """It does although another task, a child or a program, has the port."""
    text = counted(kernel, f"run -b -s drivertest {how}; run sleep 1; irqs -j; "
                   "servers -j; ports; ps -j; verify")
    rows = json_lines(text)
    line = next(r for r in rows if r.get("line") == 5)
    own = next(r for r in rows if r.get("server") == "drivertest")
    assert any(r.get("name") in ("drivertest", "sleep") for r in rows), text
    assert "owner" not in line and line["masked"], text
    assert own["pid"] == 0 and own["state"] == "free", text
    assert "NUMBER" in text and " dead" not in text, text


def test_a_session_has_its_name_server(boot):
    machine = boot()
    machine.program("sh")
    text = machine.program("cat /proc/servers")
    assert re.search(r"\nnames +[1-9]\d* running [^\n]*\n", text), text
    # Programs of the shell have no privilege: exec ended it.
    assert "plain-0" in machine.program("drivertest plain; echo plain-$?")
    machine.command("exit")
    rows = {r["server"]: r for r in json_lines(machine.command("servers -j"))}
    assert rows["names"]["pid"] == 0, rows


# ---- other archives --------------------------------------------------------

def test_errors_in_the_manifest(kernel, tmp_path):
    """Each error is reported with its line; correct stanzas are used."""
    manifest = b"""irq 3
server good
    program /bin/true
server bad
    program /bin/drivertest
    ports 0x1f0-0x1fg
    irq 5
server ram
    program /bin/drivertest
    memory 0x100000-0x1fffff
server good
    program /bin/drivertest
    irq 5
server last
    program /none x y
"""
    text = counted(kernel, "servers; run -s bad; run -s last; run drivertest "
                   "plain; verify",
                   initrd=archive(kernel, tmp_path, {"etc/servers": manifest}))
    for line in ("/etc/servers:1: 'irq' precedes the first server",
                 "/etc/servers:6: '0x1f0-0x1fg' is not a range of ports; they "
                 "are 0x0-0xffff",
                 "/etc/servers:8: server ram: its memory range contains RAM",
                 "/etc/servers:11: server good: a server of that name "
                 "precedes it",
                 "run: there is no server 'bad'"):
        assert line in text, text
    assert text.count("/etc/servers:") == 4
    assert re.search(r"^good +- free[ -]+0/0 /bin/true$", text, re.M), text
    assert re.search(r"^last +- -[ -]+0/0 -$", text, re.M), text
    assert "run: the program of 'last' is not in the archive" in text, text
    assert not re.search(r"^(bad|ram) ", text, re.M), text


def test_without_a_manifest(kernel, tmp_path):
    text = counted(kernel, "servers; run drivertest plain; run init true",
                   initrd=archive(kernel, tmp_path, {"etc/servers": None}))
    assert "(/etc/servers grants nothing)" in text, text
    assert "exit code" not in text and "killed" not in text, text


def test_a_name_is_not_the_program(kernel):
    """The program keeps its name and gets no other; a copy of it has no
    rights."""
    text = counted(kernel, 'run sh -c "ln /bin/drivertest /tmp/d; cp /bin/echo '
                   '/tmp/e; mv /tmp/e /bin/drivertest"; '
                   "run -s drivertest in 0x278; run cp /bin/drivertest /tmp/d; "
                   "run -s drivertest exec /tmp/d in 0x278")
    assert text.count("operation not permitted\n") == 2, text
    assert re.search(r"^0xff\n.* killed .* port 0x278 is not granted$", text,
                     re.M), text
