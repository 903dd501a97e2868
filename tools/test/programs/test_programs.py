"""Programs in ring 3, run by the kernel's shell: they start and end, share the
console, and leak nothing."""
# Tests: kernel/shell/cmd_run.c

import re
import tarfile

import pytest

from conftest import BUILD, archive, memory, tiers
from tools.run import qemu, watchdog
from tools.run.qemu import json_lines
from tools.test import fuzz

LOST = r"has lost the console[^\n]*\n"
BACKSLASH = "\x1c"


def tasks(machine):
    return {t["pid"]: t for t in json_lines(machine.command("ps -j"))}


def programs(machine):
    """{name: task} of the tasks in ring 3; of several the oldest, since one
    that has just forked has its parent's name."""
    found = {}
    for task in tasks(machine).values():
        if task["user"]:
            found.setdefault(task["name"], task)
    return found


def in_use(machine):
    """{cache: objects in use}, but for inodes, which stay in memory, and what
    the allocator has for its own slabs."""
    rows = json_lines(machine.command("kmastat -j"))[:-1]
    return {row["cache"]: row["inuse"] for row in rows
            if row["kind"] != "internal" and
            row["cache"] != "inode"}


def start(machine, line):
    """Types a command that runs a program which says "started" when it has
    the console."""
    machine.send(line + "\r")
    machine.expect(r"\nstarted\r?\n")


SLEEPER = 'run sh -c "echo started; sleep 1000"'


def slab_bytes(machine):
    return json_lines(machine.command("kmastat -j"))[-1]["total"]["mem"]


CLEAN = "every invariant holds"


# ---- starting and ending ---------------------------------------------------

def test_a_pipeline_of_three_programs(shell, kernel):
    """wc counts the files of the archive, which find lists."""
    with tarfile.open(qemu.initrd_of(kernel)) as there:
        names = ["/" + m.name.strip("./") for m in there.getmembers()]
    lines = {name + "\n" for name in names if "bin" in name}
    text = shell.command('run sh -c "find / | grep bin | wc"')
    assert [int(n) for n in text.split()] == \
        [len(lines), len(lines), sum(map(len, lines))], text


@pytest.mark.parametrize("line, said", [
    ("true", ""),
    ("false", "false: exit code 1\n"),
    ("sh -c 'exit 42'", "sh: exit code 42\n"),
    ("/bin/false", "false: exit code 1\n"),
    ("sh -c false", "sh: exit code 1\n"),
    ("-p init false", "init: exit code 1\n"),
])
def test_exit_codes(shell, line, said):
    assert shell.command("run " + line) == said


def test_run_says_what_a_name_is(shell):
    assert shell.command("run /proc/uptime") \
        == "run: /proc/uptime is not a program\n"
    name = 70 * "a"
    assert shell.command(f"run {name}").startswith(
        f"run: there is no /bin/{name}; ")


@pytest.mark.parametrize("kind, signal", [
    ("null", "11 (SEGV)"), ("kernel", "11 (SEGV)"), ("text", "11 (SEGV)"),
    ("divide", "8 (FPE)"), ("privileged", "11 (SEGV)"),
    ("opcode", "4 (ILL)"), ("stack", "11 (SEGV)")])
def test_a_fault_ends_the_program_alone(workshop_shell, kind, signal):
    before = tasks(workshop_shell).keys()
    why, how = workshop_shell.command("run crash " + kind).splitlines()
    assert re.match(r"crash \(pid \d+\) killed at 0x[0-9a-f]{8}: ", why), why
    assert how == f"crash: killed by signal {signal}"
    assert tasks(workshop_shell).keys() == before


def test_a_background_program_ends_at_a_prompt(shell):
    text = shell.command("run -b false")
    assert re.match(r"false: pid \d+\n", text), text
    text = text.split("\n", 1)[1] or shell.until("echo", "^false: ")
    assert text.strip() == "false: exit code 1"
    assert "false" not in programs(shell)


def test_kill_by_pid_and_by_group(shell):
    shell.command("run -b sleep 1000")
    text = shell.kill(programs(shell)["sleep"]["pid"])
    assert text == "sleep: killed by signal 15 (TERM)"
    shell.command("run -b sh -c \"sleep 1000 | cat\"")
    wait_for(shell, {"sh", "sleep", "cat"})
    shell.command(f"kill -KILL -{programs(shell)['sh']['group']}")
    wait_for(shell, set())


def wait_for(machine, names):
    """Until just these programs exist."""
    watchdog.poll(lambda: set(programs(machine)), lambda now: now == names)


def wait_in_use(machine, objects):
    """Until just these objects are in use: the last ones of a task are freed
    after it has left the list of tasks."""
    watchdog.poll(lambda: in_use(machine), lambda now: now == objects)


# ---- the console -----------------------------------------------------------

@pytest.mark.parametrize("program", ["sleep 1000", "crash spin", "cat"])
def test_control_c_ends_a_program(workshop_shell, program):
    start(workshop_shell, f'run sh -c "echo started; {program}"')
    workshop_shell.send("\x03")
    assert "sh: killed by signal 2 (INT)" in workshop_shell.prompt()
    wait_for(workshop_shell, set())


def test_console_goes_back_and_forth(shell):
    shell.program("sh")
    shell.program("echo in-ring-$((0))3")
    shell.send(BACKSLASH)
    shell.expect(LOST)
    shell.prompt()
    assert {"init", "sh"} <= set(programs(shell))
    refused = shell.command("run ls")
    assert re.fullmatch(r"run: init \(pid \d+\) [^\n]+\n", refused), refused
    assert re.fullmatch(r"sh: init [^\n]+\n", shell.command("sh"))
    shell.send("continue\r")
    shell.expect(r"continue\r\n")
    shell.send("echo still-here; exit 3\r")
    text = shell.prompt()
    assert "\nstill-here" in text and "init: exit code 3" in text, text
    assert shell.command("continue").startswith("continue: no program")
    assert not programs(shell)


def test_a_waiting_program_that_ends_is_forgotten(shell):
    start(shell, SLEEPER)
    shell.send(BACKSLASH)
    shell.expect(LOST)
    shell.prompt()
    text = shell.kill(f"-KILL -{programs(shell)['sh']['pid']}")
    assert text == "sh: killed by signal 9 (KILL)"
    assert shell.command("run false") == "false: exit code 1\n"


def test_console_by_keyboard(boot):
    """The same on the other console: keys in, and the screen."""
    machine = boot(screen=True)
    machine.keys("r", "u", "n", "spc", "c", "a", "t", "ret")
    machine.wait_screen(r"^slate> run cat *$")
    machine.keys("a", "b", "ret")
    machine.expect(r"\nab\r?\n[^$]*ab\r?\n")  # its echo, and what cat makes
    machine.keys("ctrl-backslash")
    machine.expect(LOST)
    machine.prompt()
    machine.wait_screen(r"^cat \(pid \d+\) has lost the console")
    machine.keys("c", "o", "n", "t", "i", "n", "u", "e", "ret")
    machine.wait_screen(r"^slate> continue *$")
    machine.keys("c", "d", "ret")
    machine.wait_screen(r"^cd *$")
    machine.keys("ctrl-c")
    machine.expect(r"cat: killed by signal 2 \(INT\)")
    machine.prompt()


# ---- their objects in the kernel -------------------------------------------

def test_objects_come_and_go(boot):
    """kmastat before, during and after a pipeline, and the memory reaped."""
    machine = boot()
    machine.command('run sh -c "sleep 0 | cat"')
    machine.command("reap -a")
    before, held = in_use(machine), slab_bytes(machine)
    machine.command('run -b sh -c "sleep 1000 | cat"')
    wait_for(machine, {"sh", "sleep", "cat"})
    during = in_use(machine)
    for cache, least in (("task", 3), ("kstack", 3), ("space", 3), ("pipe", 1),
                         ("handle_table", 3), ("file", 1), ("region", 6),
                         ("page_directory", 3), ("page_table", 3)):
        assert during[cache] >= before[cache] + least, cache
    pipes = machine.command("pipes").splitlines()
    assert len(pipes) == 2 and re.search(r"\s1\s+1\s+0\s+0$", pipes[1]), pipes
    now = programs(machine)
    address = pipes[1].split()[0]
    for name, number in (("sleep", 1), ("cat", 0)):
        files = machine.command(f"files {now[name]['pid']}")
        assert re.search(rf"(?m)^ +cwd +dir .*", files), files
        assert re.search(rf"(?m)^ +{number} +pipe .*{address}", files), files
    machine.command(f"kill -KILL -{now['sh']['group']}")
    wait_for(machine, set())
    wait_in_use(machine, before)
    assert slab_bytes(machine) > held
    machine.command("reap -a")
    assert slab_bytes(machine) == held
    assert CLEAN in machine.command("verify")


def test_inodes_are_kept_and_found_again(shell):
    def found():
        text = shell.command("inodes -a")
        return text, int(re.search(r"found (\d+) times", text).group(1))
    shell.command("run cat /etc/motd")
    _, before = found()
    shell.command("run cat /etc/motd")
    text, after = found()
    assert after > before
    assert re.search(r"(?m)^ram .* file .* 0$", text), text
    rows = [line.split() for line in text.splitlines()
            if line.startswith("ram")]
    assert rows == sorted(rows, key=lambda row: int(row[1]))
    assert not re.search(r"(?m)^\w.* 0$", shell.command("inodes"))


def test_ports_of_a_session(shell):
    shell.program("sh")
    shell.send(BACKSLASH)
    shell.expect(LOST)
    shell.prompt()
    text = shell.command("ports")
    assert re.search(r"(?m)^ +\d+ .*the name server's$", text), text
    names = programs(shell)["names"]
    assert names["waits_for"] == "message" and names["state"] == "blocked"
    assert re.search(r"(?m)^ +\d+ +port +receive", shell.command(
        f"files {names['pid']}"))
    assert CLEAN in shell.command("verify")
    shell.send("continue\rexit\r")
    shell.prompt()
    assert "(there are no ports)" in shell.command("ports")


def test_wait_knows_a_job_that_a_prompt_has_reported(shell):
    shell.program("sh")
    said = [shell.program("sh -c 'exit 7' &")]

    def reported():
        said.append(shell.program("sleep .1"))
        return "has ended, status 7" in "".join(said)

    assert watchdog.poll(reported)
    assert "\nstatus=7\r" in shell.program("wait $!; echo status=$?")
    assert "\nstatus=127\r" in shell.program("wait 99999; echo status=$?")
    shell.command("exit")


@pytest.mark.parametrize("line", ["sh > /tmp/out", "sh | cat > /tmp/out"])
def test_a_shell_that_prints_elsewhere_has_no_prompt(shell, line):
    shell.send("sh\r")
    for text in (line, "echo hi", "exit", "cat /tmp/out; rm /tmp/out"):
        shell.settle("program")
        shell.send(text + "\r")
    assert shell.settle("program").split("\n", 1)[1] == "hi\r\n$ "
    shell.command("exit")


def test_tab_in_a_session(shell):
    """Commands come first, from all of PATH, then files; after cd directories,
    and a file after a redirection."""
    shell.program("sh")
    for keys, line in (("ini\t", "init "), ("ls; up\t", "ls; uptime "),
                       ("cat /etc/mo\t", "cat /etc/motd "),
                       ("cat </etc/mo\t", "cat </etc/motd "),
                       ("cd /et\tm\tz", "cd /etc/m\az")):
        shell.send(keys)
        shell.expect(re.escape(line))
        shell.send("\x15\r")
        shell.settle("program")
    shell.command("exit")


def test_completion_of_programs_and_pids(shell):
    shell.send("run upt\t\r")
    assert "run uptime" in shell.prompt()
    shell.send("bt reap\t\x15bt \t\t\x15\r")
    assert re.search(r"\n0 +1 +2 +3", qemu.plain(shell.prompt()))


@pytest.mark.parametrize("name", ["xx\rps;ps\r", "xx\x1b[2Jxx", "xx;ps",
                                  "xx ps"])
def test_a_name_of_a_file_runs_and_draws_nothing(boot, kernel, tmp_path, name):
    """TAB leaves out names that a shell would read otherwise; ps, programs that
    print names, and their messages show what does not print as '?'."""
    program = BUILD / "user/bin/sleep"
    shell = boot(initrd=archive(kernel, tmp_path, {f"tmp/{name}": program}))
    shell.send("run /tmp/x\t\r")
    said = shell.prompt()
    assert "no /tmp/x;" in said and "PID" not in said, said
    shell.program("sh")
    assert re.search(r"\nx\r*\n", shell.program("cd /tmp; echo x\t\t"))
    said = shell.program("ls; /tmp/x* 1 & ps")
    shown = re.sub(r"[^ -~]", "?", name)
    assert said.count(shown) >= 2, said
    assert name == shown or name not in said, said
    for line in ("find . -type f", "ls -l", "ls -l x*", "wc x*", "stat x*",
                 "file x*", "df x*", "head -n 0 x* x*", "grep -c ELF x* x*",
                 "umount x*", "cd x*", "./x*",
                 "sh -c 'export X=\"$1\"; export' x*",
                 "sh -c 'help > /dev/null; mkdir y; cd y; mkdir \"$1\"; "
                 "cd \"$1\"; pwd' x*"):
        said = shell.program(line).partition("\n")[2]
        assert shown in said, (line, said)
        assert name == shown or name not in said, (line, said)


@pytest.mark.parametrize("line, status", [("sort", 1), ("grep x", 2)])
def test_a_line_that_memory_cannot_hold_is_no_end(boot, line, status):
    machine = boot(memory=memory(16), counted=True)
    program = line.split()[0]
    assert machine.command(f"run {line} /dev/zero") == \
        f"{program}: /dev/zero: out of memory\n" \
        f"{program}: exit code {status}\n"


def test_a_stopped_machine_starts_nothing(boot):
    machine = boot()
    pid = machine.command("run -b sleep 1000").split()[-1]
    machine.until(f"bt {pid}", r"sched_sleep_ms\+0x")
    machine.stopped("panic")
    for line in ("run ls", "sh", "kill 4", "run -b ls"):
        text = machine.stopped(line)
        assert "cannot work on a stopped machine" in text, text
    text = machine.stopped("ps")
    assert re.search(r"\d+ +1 .* sleep", text), text
    pid = re.search(r"(\d+) +1 .* sleep", text).group(1)
    for line, said in ((f"bt {pid}", r"block\+0x(.*\n)+.*sched_sleep_ms\+0x"),
                       (f"files {pid}", "console"), ("ports", "no ports"),
                       ("ports -w", "no task waits"), ("pipes", "no pipe"),
                       ("inodes", "inodes in memory"), ("verify", CLEAN)):
        assert re.search(said, machine.stopped(line)), line


# ---- the workloads ---------------------------------------------------------

def test_spike_in_16_mebibytes_leaves_nothing(boot):
    machine = boot(memory=memory(16, tasks=256))
    machine.command("run spike -n 1")
    machine.command("reap -a")
    before, held = in_use(machine), slab_bytes(machine)
    assert "spike: 256 processes" in machine.command("run spike")
    assert in_use(machine) == before
    assert not programs(machine)
    machine.command("reap -a")
    assert slab_bytes(machine) == held
    assert CLEAN in machine.command("verify")


@pytest.mark.parametrize("seed, calls", tiers(
    [(1, 10_000)], [(seed, 20_000) for seed in range(2, 6)]))
def test_random_system_calls_leave_nothing(workshop, seed, calls):
    """A small measure of what `make fuzz` does."""
    wrong, _, run = fuzz.fuzz(workshop, seed, calls)
    assert not wrong, f"{wrong}\n{run.explain()}"


@pytest.mark.parametrize("seed, rounds", tiers(
    [(3, 8)], [(seed, 200) for seed in range(4, 8)]))
def test_hostile_file_servers_keep_no_task_and_no_mount(workshop, seed, rounds):
    """Tasks that use them end when they are killed; then everything can be
    unmounted."""
    wrong, said, run = fuzz.fuzz(workshop, seed, rounds, "stormfuzz")
    assert not wrong, f"{wrong}\n{run.explain()}"
    exits, mounts = map(int, re.search(r"(\d+) servers exited, (\d+) mounts",
                                       said).groups())
    assert exits > rounds / 10 and mounts > rounds, said


@pytest.mark.parametrize("seed, streams, processor", tiers(
    [(2, 300, "max")],
    [(3, 10_000, "qemu32"), (4, 10_000, "max")]))
def test_random_code_ends_by_a_signal(workshop, seed, streams, processor):
    """Any instruction, registers, segments and flags, in ring 3: the kernel
    goes on. All but a few streams end, in many ways."""
    wrong, said, run = fuzz.fuzz(workshop, seed, streams, "codefuzz",
                                 extra=["-cpu", processor])
    assert not wrong, f"{wrong}\n{run.explain()}"
    killed, stuck = map(int, re.search(r"(\d+) killed, (\d+) stuck",
                                       said).groups())
    assert killed > streams * 0.9 and stuck < streams * 0.05, said
    ways = set(re.findall(r"\(pid \d+\) killed at 0x\w+: ([^:\r\n]*)",
                          run.text))
    assert len(ways) >= 6, ways


def test_the_event_of_a_program_with_a_quote_in_its_name(shell):
    shell.command("run sh -c 'cp /bin/echo \"/tmp/a\\\"b\"'")
    assert shell.command("run '/tmp/a\"b' here") == "here\n"
    assert shell.events("run")[-1]["name"] == 'a"b'
