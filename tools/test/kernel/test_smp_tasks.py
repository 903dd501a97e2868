"""Tasks on several processors: where they run, that a counted run is the same
each time, and that programs pass their tests there."""
# Tests: kernel/task/sched.c

import re

import pytest

from conftest import ROOT, long
from test_smp_start import INITRD, run
from tools.run import gdb, qemu
from tools.test import fuzz

pytestmark = [long, pytest.mark.plain]

WORK = ("run -p init usertests", "run kenbus", "run hackbench -g 4",
        "run -p init syscallfuzz -s 7 -n 1000")

# A row of `cpus`: switches, idle share.
SHARES = re.compile(r"(?m)^ *\d +\d+ \w+ +(\d+) +(\d+) \w+$")

# Each processor is a thread of the host.
AT_ONCE = {"counted": False, "extra": ["-accel", "tcg,thread=multi"]}


def shares(text):
    return [(int(switches), int(idle))
            for switches, idle in SHARES.findall(text)]


@pytest.mark.parametrize("kernel, count", [("smp", 2), ("smp", 4), ("smp", 8),
                                           ("smp_debug", 4)])
def test_a_counted_run_is_the_same_each_time(request, kernel, count):
    kernel = request.getfixturevalue(kernel)
    done = run(kernel, count, *WORK, "cpus", "leaks", "verify", budget=200_000)
    verdict = done.named["user-tests"][0]
    assert verdict["failed"] == 0 and verdict["passed"] > 250, done.explain()
    assert [e["exit"] or e["signal"] for e in done.named["run"]] == \
        [0] * len(WORK), done.explain()
    assert len(shares(done.text)) == count
    assert min(switches for switches, _ in shares(done.text)) > 0
    again = run(kernel, count, *WORK, "cpus", "leaks", "verify", budget=200_000)
    assert (again.text, again.events) == (done.text, done.events)


def test_ps_says_where_each_task_ran(smp):
    done = run(smp, 4, "run -b hackbench -l 10000", "run sleep 0.05", "ps",
               "ps -j")
    assert " PRI CPU CPU(ms) " in done.text
    tasks = qemu.json_lines(done.text)
    rows = re.findall(r"(?m)^ *(\d+) .{26} +\d ([ \d-]{3}) +\d+ +\d+ \S+ +\w+$",
                      done.text)
    assert len(rows) == len(tasks) > 5, done.text
    assert len({task["cpu"] for task in tasks}) > 1
    assert {int(cpu) for _, cpu in rows} <= {0, 1, 2, 3}


def test_idle_processors_halt(smp):
    done = run(smp, 4, "run sleep 2", "cpus")
    assert all(idle > 95 for _, idle in shares(done.text)), done.text


def test_with_one_processor_all_tasks_ran_there(smp):
    done = run(smp, 1, "ps -j")
    assert set(re.findall(r'"cpu":(\d+)', done.text)) == {"0"}


@pytest.mark.parametrize("turn", range(5))
def test_programs_on_processors_that_run_at_once(smp, turn):
    """Not the same each time."""
    done = run(smp, 4, *WORK, "cpus", "verify", **AT_ONCE)
    verdict = done.named["user-tests"][0]
    assert verdict["failed"] == 0 and verdict["passed"] > 250, done.explain()


@pytest.mark.parametrize("suite, number", [("ipi", 4), ("parallel", 9)])
@pytest.mark.parametrize("count", [1, 2, 4, 8])
@pytest.mark.parametrize("options", [{}, AT_ONCE], ids=["counted", "at_once"])
def test_suites_about_processors(smp, count, options, suite, number):
    done = run(smp, count, *[f"test {suite}"] * 3, "verify", **options)
    assert done.text.count(f"# {number} passed, 0 failed") == 3, done.explain()


def test_gdb_shows_each_processor(smp):
    """Repeats the session of the book's chapter. A task that is about to leave
    its processor is no longer marked running, so rows are found by the
    processor. One processor may be idle at the stop: which task runs where
    depends on the number of instructions before."""
    page = (ROOT / "docs/processors.md").read_text(encoding="utf-8")
    commands = re.search(r'make gdb CPUS=4 CMD="(.*)"', page)[1]
    typed = re.findall(r"(?m)^    \(gdb\) (.*)$", page)
    assert typed[:2] == ["break cmd_cpus", "continue"]
    said = gdb.Session(
        smp, f"{commands}; poweroff",
        [("cmd_cpus", [*typed[2:], "slate ps", "thread"])], memory="64",
        extra=["-smp", "4"], initrd=INITRD).said[0]
    threads, cpus, _, pid, tasks, thread = said.values()
    assert len(re.findall(r"(?m)^[* ] \d +Thread 1\.\d", threads)) == 4, said
    shown = re.findall(r"(?m)^ +(\d) +\d running +\d+ +\d+ (\w+)$", cpus)
    rows = {row[0]: row[1:] for row in re.findall(
        r"(?m)^ +(\d+) +\d+ +\d+ +\S+ +\w+ +\d+ +(\d) .* (\w+)$", tasks)}
    assert len(shown) >= 3 and len(dict(shown)) == len(shown), said
    assert set(shown) <= set(rows.values()), said
    assert "kernel" in [name for _, name in shown], said
    assert thread == "[Current thread is 3 (Thread 1.3)]\n", said
    there = int(re.fullmatch(r"\$1 = (\d+)\n", pid)[1])
    if "2" in dict(shown):
        assert rows[str(there)] == ("2", dict(shown)["2"]), said
    else:
        assert there == 0, said


def test_gdb_does_not_show_the_old_stack_of_a_task_that_runs_elsewhere(smp):
    """The task is the shell; GDB shows each processor in turn."""
    looks = [f"slate {command} 1 # {i}" for i in (1, 2)
             for command in ("bt", "enter")]
    said = gdb.Session(smp, "cpus; poweroff", [
        ("cmd_cpus", ["thread 1", *looks[:2], "thread 2", *looks[2:]])],
        extra=["-smp", "2"]).said[0]
    there = [look for look in looks if re.search(
        r": task 1 runs on processor (0: `thread 1|1: `thread 2)`\n$",
        said[look])]
    assert there in (looks[:2], looks[2:]), said


@pytest.mark.parametrize("program, steps", [("syscallfuzz", 5000),
                                            ("stormfuzz", 20)])
def test_random_calls(smp, program, steps):
    wrong, _, done = fuzz.fuzz(smp, 3, steps, program, initrd=INITRD,
                               extra=["-smp", "4"])
    assert not wrong, f"{wrong}\n{done.explain()}"
