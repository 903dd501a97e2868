"""Kernels for several processors on machines that have them: which are started,
what happens with one that does not answer, and how a panic stops them."""
# Tests: kernel/cpus.c, kernel/x86/apic.c, kernel/x86/mp.c, kernel/x86/gdt.c

import re

import pytest

from conftest import BUILD, long, other_kernel
from tools.run import gdb, qemu

pytestmark = [long, pytest.mark.plain]

PROMPT_MOST = 250_000_000
INITRD = BUILD / "initrd-workshop.tar"
START_PAGE = 0xC0008000
ABSENT = "the processor with APIC 85 does not answer; it is not used"

# A row of `cpus`: number, APIC, state, task, after a panic the place.
ROW = re.compile(r"(?m)^ *(\d) +(\d+) (\w+) +\d+ +\d+ (\w+)(?: +(\S.*))?$")


def run(kernel, count, *commands, append="", extra=(), **options):
    done = qemu.run(kernel, "; ".join([*commands, "poweroff"]), append,
                    memory="64", initrd=INITRD,
                    extra=["-smp", str(count), *extra], **options).good()
    done.text = qemu.plain(done.text)
    return done


def rows(text):
    return ROW.findall(text.split("CPU APIC STATE", 1)[1])


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_processors_start(either, count):
    done = run(either, count, "cpus", "verify", "cpus")
    assert rows(done.text)[:count] == [("0", "0", "running", "kernel", "")] + [
        (str(i), str(i), "idle", "idle", "") for i in range(1, count)]
    assert len(rows(done.text)) == 2 * count, done.explain()
    assert re.findall(r"(?m)^(.* started)$", done.text) == \
        ([f"{count} processors; {count} started"] if count > 1 else [])
    assert done.named["prompt"][0]["instructions"] < PROMPT_MOST
    again = run(either, count, "cpus", "verify", "cpus")
    assert (again.text, again.events) == (done.text, done.events)


@pytest.mark.parametrize("limit, count", [(2, 2), (3, 3), (4, 4), (99, 4)])
def test_an_option_limits_them(smp, limit, count):
    done = run(smp, 4, "cpus", append=f"cpus={limit}")
    assert len(rows(done.text)) == count
    assert f"\n4 processors; {count} started\n" in done.text


@pytest.mark.parametrize("value", ["0", "two", ""])
def test_a_wrong_limit_is_refused(smp, value):
    done = run(smp, 2, "cpus", append=f"cpus={value}")
    assert f"option cpus=: {value or 'nothing'} is not a value" in done.text
    assert len(rows(done.text)) == 2


@pytest.mark.parametrize("count, append, extra", [
    (1, "", ""),
    (4, "cpus=1", ""),
    (2, "", "-no-acpi"),                # nothing lists them
    (2, "", "-cpu qemu32,-apic"),       # none can be reached
    (1, "", "-machine isapc -cpu qemu32"),
])
def test_a_machine_without_others_is_as_before(smp, count, append, extra):
    """The log is that of the kernel for one processor."""
    commands = ("run ls /", "servers", "whatis 0")
    before = run(BUILD / "slate-workshop.elf", count, *commands,
                 extra=extra.split())
    done = run(smp, count, *commands, append=append, extra=extra.split())
    assert done.text == before.text
    done = run(smp, count, "cpus", append=append, extra=extra.split())
    assert rows(done.text) == [("0", "0", "running", "kernel", "")]


@pytest.mark.parametrize("extra", ["-machine q35", "-cpu max",
                                   "-smp 3,maxcpus=8", "-m 2048"])
def test_other_machines(smp, extra):
    done = run(smp, 3, "cpus", "verify", extra=extra.split())
    assert len(rows(done.text)) == 3


def test_processors_start_at_the_same_time_as_each_other(smp):
    """As real ones do, each by a thread of the host."""
    done = run(smp, 4, "cpus", "verify", counted=False,
               extra=["-accel", "tcg,thread=multi"])
    assert len(rows(done.text)) == 4


def test_the_page_of_the_start_is_as_before(smp):
    """Whether the processors answer or not."""
    fill = "".join(f"{i:02x}" for i in range(256))
    code = "import gdb; memory = gdb.selected_inferior(); " \
        f"memory.write_memory({START_PAGE}, bytes.fromhex('{fill}') * 16)"
    show = f"python print(bytes(gdb.selected_inferior().read_memory(" \
        f"{START_PAGE}, 4096)).hex())"
    session = gdb.Session(
        smp, "cpus; cpufault absent; echo; poweroff",
        [("acpi_processors", [f"python {code}"]), ("mp_send_startup", [show]),
         ("cmd_cpus", [show]), ("cmd_echo", [show]), ("power_off", [])],
        extra=["-smp", "4"])
    assert len(rows(session.serial)) == 4 and ABSENT in session.serial
    page = [said[show].strip() for said in session.said[1:4]]
    assert page[0] != fill * 16
    assert page[1:] == [fill * 16] * 2


def test_one_that_does_not_answer_is_not_used(smp):
    done = run(smp, 3, "kmastat -j cpu", "kmastat -j kstack",
               "cpufault absent", "cpufault absent", "cpus", "verify",
               "kmastat -j cpu", "kmastat -j kstack", "run echo word")
    assert done.text.count(ABSENT) == 2
    assert len(rows(done.text)) == 3
    assert "\nword\n" in done.text
    used = [(row["cache"], row["inuse"])
            for row in qemu.json_lines(done.text) if "cache" in row]
    assert used[:2] == used[2:] and dict(used)["cpu"] == 2


def test_the_clock_goes_on(smp):
    """The 8259 still interrupts the first processor."""
    done = run(smp, 4, "run sleep 1", "run cat /proc/uptime")
    assert re.search(r"(?m)^1\.\d\d\r?$", done.text), done.explain()


# ---- panics ----------------------------------------------------------------

def crash(kernel, *commands, count=3):
    """The report after the first command, and the answer of each other one."""
    with qemu.Machine(kernel, memory="64", counted=True, initrd=INITRD,
                      extra=["-smp", str(count)]) as machine:
        machine.prompt()
        said = []
        for command in commands:
            said.append(machine.stopped(command))
            machine.wait_halt()
        return said


def test_a_panic_stops_and_shows_all(either):
    report, kmastat, verify, cpus, ps = crash(
        either, "cpufault null", "kmastat", "verify", "cpus", "ps")
    assert report.count("panic: ") == 1 and "a null pointer?" in report
    assert re.search(r"\n +0  0x\w+  read_null\+0x", report), report
    zero, one, two = rows(report)
    for row in zero, one:  # the shell's task sleeps until the other has begun
        assert row[2:4] == ("stopped", "idle"), report
        assert re.match(r"(idle_main|ap_begin)\+0x", row[4]), report
    assert two[2:] == ("panicked", "job", "")
    assert re.search(r"(?m)^kstack +\d+", kmastat), kmastat
    assert "every invariant holds" in verify, verify
    assert rows(cpus) == rows(report)
    assert re.search(r"(?m)^ *1 .* kernel$", ps), ps


@pytest.mark.parametrize("kernel, broken", [
    ("smp", r"the lock at 0x\w{8} was broken"),
    ("smp_debug", r"lock kmem cache of CPU 2 was broken")])
def test_the_shell_breaks_locks_of_stopped_processors(request, kernel, broken):
    report, kmastat, cpus = crash(request.getfixturevalue(kernel),
                                  "cpufault locked", "kmastat", "cpus")
    assert "panic: the first of two processors" in report
    held = ", holds kmem cache" if kernel == "smp_debug" else ""
    assert re.fullmatch(r"stop_locked\+0x\w+" + held, rows(report)[2][4])
    assert "broken" not in report
    assert re.search(r"(?m)^task +\d+", kmastat), kmastat
    assert re.findall(r"(?m)^.* broken$", cpus) == \
        re.findall(rf"(?m)^{broken}$", cpus) != []


def test_of_two_panics_one_is_reported(either):
    report, verify = crash(either, "cpufault both", "verify")
    assert report.count("panic: ") == 1, report
    assert "panic: the first of two panics" in report
    assert [row[2] for row in rows(report)] == ["panicked", "stopped",
                                                "stopped"]
    assert re.match(r"panic_(claim|begin)\+0x", rows(report)[2][4]), report
    assert "every invariant holds" in verify


def test_after_a_panic_nobody_waits_for_the_stopped(either):
    """leaks pauses the other processors; here one was stopped in its own call,
    or was paused already."""
    for fault, states in (("called", ["stopped", "panicked"]),
                          ("paused", ["panicked", "stopped"])):
        report, leaks, verify = crash(either, f"cpufault {fault}", "leaks",
                                      "verify", count=2)
        assert [row[2] for row in rows(report)] == states, report
        assert "are reached from" in leaks, leaks
        assert "every invariant holds" in verify, verify


def test_a_double_fault_of_another_processor(either):
    """It has its own task state, and a stack for it, with a guard page."""
    report, verify = crash(either, "cpufault stack", "verify")
    assert "panic: kernel stack overflow: the guard page at 0x" in report
    assert "overflow_stack+0x" in report
    assert rows(report)[2][2] == "panicked"
    assert "every invariant holds" in verify


def test_an_nmi_of_the_hardware_is_a_panic(smp):
    with qemu.Machine(smp, memory="64", initrd=INITRD,
                      extra=["-smp", "2"]) as machine:
        machine.prompt()
        machine.qmp.execute("inject-nmi")
        report = qemu.plain(machine.expect("slate!> "))
        machine.wait_halt()
        machine.qmp.execute("inject-nmi")  # to the processor with the shell
        machine.send("echo it goes on\r")
        again = qemu.plain(machine.expect("\nit goes on"))
    assert "panic: non-maskable interrupt" in report
    assert [row[2] for row in rows(report)].count("panicked") == 1
    assert "panic: non-maskable interrupt" in again


def test_reports_where_a_processor_is_halted(smp):
    """A halted processor cannot run a report: a copy of the machine does, with
    the archive beside the kernel."""
    other_kernel("smp", "initrd-workshop.tar")
    said = gdb.Session(
        smp, "echo", [("cmd_echo", ["thread 2", "info threads",
                                    "slate kmastat kstack"])],
        memory="64", extra=["-smp", "2"], initrd=INITRD).said[0]
    assert re.search(r"\* 2 .*halted", said["info threads"]), said
    assert re.search(r"(?m)^kstack ", said["slate kmastat kstack"]), said
