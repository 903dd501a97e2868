"""Parts of Slate as programs of this machine: mm/ under the sanitizers, with
random traces against the shadow model; the core of the ATA driver against a
drive that is a program too; the firmware's tables of processors, right and
broken; every schedule of waits and wake-ups on processors that are fibers.
Every case becomes a pytest case."""
# Tests: kernel/x86/acpi.c

import functools
import re

import pytest

from conftest import BUILD, ROOT, execute, long, tiers
from tools.test import tap

pytestmark = pytest.mark.plain

MMTEST = BUILD / "host" / "mmtest"
# Leak checking needs ptrace, which a container may not allow; the cases count
# leaked pages and objects themselves.
ASAN = {"ASAN_OPTIONS": "detect_leaks=0"}
# An option of mmtest, a seed, and how many operations or seeds follow from it.
RANDOM = tiers([("-t", 1, 200_000), ("-m", 1, 20_000)],
               [("-t", 20060102, 500_000), ("-m", 20060102, 60_000),
                ("-r", 1_000, 200)])
# The operations with most schedules beside the others, three quarters of the
# time of them all: for `make test-all`.
MOST = {f"explore_pairs.{name}" for name in
        ("alloc_checked", "create_own", "modes_idle", "modes_queue", "reap",
         "reap_ws", "snapshot", "update", "verify", "verify_often")}


# The other programs: where their sources list the cases, and how.
PROGRAMS = {
    "host/atatest": ("drivers/servers/ata/tests/test_*.c",
                     r"^ {8}CASE\((\w+)\)"),
    "host/acpitest": ("kernel/x86/tests/acpi/test_acpi.c",
                      r"^(?:CASE|RIGHT|BROKEN)\((\w+)[,)]"),
    "wakes/waketest": ("kernel/task/tests/wakes/test_wakes.c",
                       r"\{CASE\((\w+)\)")}


def mmtest(*arguments):
    return execute(MMTEST, *arguments, **ASAN)


def cases():
    names = set(mmtest("-l").stdout.split())
    assert MOST <= names
    return sorted(names)


def pytest_generate_tests(metafunc):
    tap.parametrize(metafunc, "host_case", MMTEST, lambda _: [
        pytest.param(name, marks=[long] if name in MOST else [])
        for name in cases()])


@pytest.fixture(scope="module")
def results(request):
    """Of the cases that this run of pytest has chosen."""
    chosen = {item.callspec.params["host_case"]
              for item in request.session.items
              if "host_case" in getattr(item, "fixturenames", [])}
    return tap.program(MMTEST, *sorted(chosen - {"missing"}),
                       notes_first=False, env=ASAN)


def test_host(host_case, results):
    tap.passed(host_case, results)


def listed():
    """Parameters: each case of the other programs; those of a program run on
    one worker."""
    for program, (sources, pattern) in PROGRAMS.items():
        found = [case for path in sorted(ROOT.glob(sources)) for case in
                 re.findall(pattern, path.read_text("utf-8"), re.M)]
        assert len(found) > 5, f"{sources} lists {found}"
        for case in found:
            yield pytest.param(program, case, id=f"{program}-{case}",
                               marks=pytest.mark.xdist_group(program))


@functools.cache
def results_of(program):
    if program == "host/atatest":
        return tap.program(BUILD / program, notes_first=False,
                           env={**ASAN, "CMOCKA_MESSAGE_OUTPUT": "TAP"})
    return tap.program(BUILD / program)


@pytest.mark.parametrize("program, case", listed())
def test_program(program, case):
    notes = tap.passed(case, results_of(program)).notes
    if program == "wakes/waketest":  # every schedule of the case
        assert int(re.fullmatch(r"(\d+) schedules", notes[-1])[1]) > 100


def test_other_allocators_serve_the_interface():
    """mm/kmem.h on an allocator of mm/others/: a program of its own."""
    done = execute(BUILD / "host/servetest", **ASAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not ok" not in done.stdout and "\nok 12 - serve." in done.stdout


def test_a_case_ends_when_its_budget_is_used_up():
    """One that starts processes as well; with enough steps it passes."""
    names = ["kmem.S23_large_slabs_are_coloured_too",
             "explore_pairs.free_small"]
    done = mmtest(*(f"{name}:100" for name in names))
    assert done.returncode == 1
    assert done.stderr.count("used up its budget of 100 steps: it hangs") == 2
    steps = {name: int(number) for name, number in re.findall(
        r"^# (\S+): (\d+) steps$", mmtest("-s", *names).stdout, re.M)}
    assert set(steps) == set(names)
    enough = mmtest(*(f"{name}:{2 * steps[name]}" for name in names))
    assert enough.returncode == 0, enough.stderr


@pytest.mark.parametrize("option, seed, count", RANDOM)
def test_random_operations(option, seed, count):
    """Traces against the shadow model, also while modes come and go; and
    schedules."""
    done = mmtest(option, seed, count)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
