"""System calls from ring 3: one boot runs the program usertests, and every case
that is in its file becomes a pytest case. Results come from the events that it
writes to /dev/debug, the notes of a failed case from the console."""
# Tests: kernel/syscall/*.c, kernel/vm/*.c

import pytest

from conftest import BUILD, sessions
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
    assert len(run.good().named.get("user-tests", [])) == 1, run.explain()


def test_no_case_is_skipped(run):
    assert [e["name"] for e in run.named["user-test"] if e["skipped"]] == []


def test_a_list_names_the_cases_to_skip(kernel):
    run = qemu.run(kernel, "run -p init sh -c 'echo > /tmp/a; "
                   "echo \"# a comment\" >> /tmp/a; "
                   "echo \"pipe.many   here it cannot\" >> /tmp/a; "
                   "usertests -x /tmp/a pipe.many pipe.order'; poweroff").good()
    assert [(e["name"], e["ok"], e["skipped"])
            for e in run.named["user-test"]] == [
        ("pipe.order", True, False), ("pipe.many", True, True)]
    assert "\nok 2 - pipe.many # SKIP here it cannot\n" in \
        run.text.replace("\r", "")
    assert {**run.named["user-tests"][0]} == {
        "event": "user-tests", "passed": 1, "failed": 0, "skipped": 1}


@pytest.mark.parametrize("arguments, said", [
    ("pipe.order pipe.odrer", "pipe.odrer: no such case; -l lists them"),
    ("-l pipes", "pipes: no such case; -l lists them"),
    ("-x /tmp/a", "/tmp/a: pipe.mny: no such case; -l lists them"),
    ("-x /tmp/b", "/tmp/b: pipe.many: the reason is missing"),
    ("-x /tmp/c", "/tmp/c: no such file or directory"),
    ("-x /tmp", "/tmp: is a directory"),
    ("-x", "option -x needs an argument"),
    ("-y", "unknown option -y")])
def test_bad_arguments_run_nothing(shell, arguments, said):
    shell.command("run sh -c 'echo pipe.mny reason > /tmp/a; "
                  "echo pipe.many > /tmp/b'")
    text = shell.command(f"run usertests {arguments}")
    assert text.startswith(f"usertests: {said}\n")
    assert "KTAP" not in text
    assert shell.events("run")[-1]["exit"] == 2


def test_everything_is_refunded(run):
    """To the session of usertests, which has ended."""
    rows = sessions(run.text)
    assert list(rows) == [0, 1], run.explain()
    assert all(n > 0 for n in rows[0].values())
    assert all(n == 0 for n in rows[1].values()), run.explain()


def test_system_calls(user_case, run, results):
    tap.expect_passed(user_case, run, *results)
