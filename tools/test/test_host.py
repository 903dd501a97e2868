"""mm/ as a program of this machine, under the sanitizers: every cmocka case
becomes a pytest case, and random traces run against the shadow model."""

import re

import pytest

from conftest import BUILD, ROOT, long, tiers
from tools.run import watchdog
from tools.test import tap

pytestmark = pytest.mark.plain

MMTEST = BUILD / "host" / "mmtest"
# A seed, and how many operations follow from it.
TRACES = tiers([(1, 200_000)], [(20060102, 500_000)])
MODES = tiers([(1, 20_000)], [(20060102, 60_000)])
# The operations with most schedules beside the others, three quarters of the
# time of them all: for `make test-all`.
MOST = {f"explore_pairs.{name}" for name in
        ("alloc_checked", "create_own", "modes_idle", "modes_queue", "reap",
         "reap_ws", "snapshot", "update", "verify", "verify_often")}


def mmtest(*arguments):
    # Leak checking needs ptrace, which a container may not allow; the cases
    # count leaked pages and objects themselves.
    return watchdog.run(
        [str(MMTEST), *map(str, arguments)], cwd=ROOT, encoding="utf-8",
        capture_output=True, errors="replace",
        env={"ASAN_OPTIONS": "detect_leaks=0"})


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
    assert MMTEST.exists(), f"{MMTEST} does not exist: make test-host"
    done = mmtest(*sorted({item.callspec.params["host_case"]
                           for item in request.session.items
                           if "host_case" in getattr(item, "fixturenames", [])}
                          - {"missing"}))
    found = tap.parse(done.stdout, notes_first=False)
    add_reports(found, done.stderr)
    return done, found


def add_reports(cases, errors):
    """cmocka writes the reports of cases to standard error: one report for each
    case that failed, in their order."""
    reports = errors.split("ERROR: ")[1:]
    failed = [case for case in cases.values() if not case.passed]
    for i, case in enumerate(failed):
        case.notes.append(reports[i] if len(reports) == len(failed)
                          else errors[-3000:])


def test_host(host_case, results):
    done, found = results
    if host_case not in found:
        pytest.fail(f"no result (exit status {done.returncode}):\n"
                    f"{done.stdout[-3000:]}{done.stderr[-3000:]}",
                    pytrace=False)
    if not found[host_case].passed:
        pytest.fail("\n".join(found[host_case].notes), pytrace=False)


def test_other_allocators_serve_the_interface():
    """mm/kmem.h on an allocator of mm/others/: a program of its own."""
    done = watchdog.run([str(BUILD / "host/servetest")], cwd=ROOT,
                        encoding="utf-8", capture_output=True,
                        env={"ASAN_OPTIONS": "detect_leaks=0"})
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


@pytest.mark.parametrize("seed, operations", TRACES)
def test_trace_against_shadow_model(seed, operations):
    done = mmtest("-t", seed, operations)
    assert done.returncode == 0, \
        f"seed {seed}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


@pytest.mark.parametrize("seed, operations", MODES)
def test_trace_while_modes_come_and_go(seed, operations):
    done = mmtest("-m", seed, operations)
    assert done.returncode == 0, \
        f"seed {seed}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


@pytest.mark.long
def test_schedules_of_seeds():
    done = mmtest("-r", 1_000, 200)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
