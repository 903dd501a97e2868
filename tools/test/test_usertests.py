"""System calls from ring 3: one boot runs the program usertests, and every case
that is in its file becomes a pytest case. Results come from the events that it
writes to /dev/debug, the notes of a failed case from the console."""
# Tests: kernel/syscall/*.c, kernel/vm/*.c

import pytest

from conftest import BUILD
from test_sessions import sessions
from tools.run import elf, qemu
from tools.test import tap

pytestmark = pytest.mark.workshop

USERTESTS = BUILD / "user/bin/usertests"


def pytest_generate_tests(metafunc):
    tap.parametrize(metafunc, "user_case", USERTESTS, elf.user_cases)


@pytest.fixture(scope="module")
def run(kernel):
    return qemu.run(kernel, "run -p init usertests; sessions -j; verify; "
                    "poweroff", memory=64, budget=40_000)


@pytest.fixture(scope="module")
def results(run):
    verdicts = {e["name"]: e["ok"] for e in run.named.get("user-test", [])}
    return verdicts, tap.parse(run.text, notes_first=True)


def test_run_ends_well(run):
    assert run.problem is None, run.explain()
    assert len(run.named.get("user-tests", [])) == 1, run.explain()
    assert "every invariant holds" in run.text, run.explain()


def test_everything_is_refunded(run):
    """To the session of usertests, which has ended."""
    rows = sessions(run.text)
    assert list(rows) == [0, 1], run.explain()
    assert all(n > 0 for n in rows[0].values())
    assert all(n == 0 for n in rows[1].values()), run.explain()


def test_system_calls(user_case, run, results):
    tap.expect_passed(user_case, run, *results)
