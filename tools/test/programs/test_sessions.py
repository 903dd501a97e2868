"""A program takes all that its session may have of a resource. The kernel shell
and programs outside every session go on, other sessions too unless all memory
is taken; the end of the session gives all back."""
# Tests: kernel/object/session.c, user/tests/bomb.c

import re

import pytest

from conftest import sessions
from tools.run import qemu

pytestmark = pytest.mark.workshop


@pytest.mark.parametrize("kind, resource, error, share, least", [
    ("tasks", "tasks", "out of memory", 0.5, 51),
    ("pages", "pages", "out of memory", 0.9, 51),
    ("files", "files", "no space left", 1, 51),
    ("names", "files", "no space left", 1, 51),
    ("ports", "ports", "too many open handles", 1, 51),
    ("mounts", "mounts", "no space left", 1, 16),
])
def test_a_bomb_harms_only_its_session(kernel, kind, resource, error, share,
                                       least):
    run = qemu.run(
        kernel, f"run -b -p init bomb {kind}; run sleep 30; sessions -j; "
        "echo -; run -p ls /etc; run sh -c 'echo x > /tmp/x; cat /tmp/x'; "
        "echo -; sessions end 2; run sleep 1; run rm -r /tmp/bomb; "
        "run rm -f /tmp/x; sessions -j; verify; poweroff",
        memory=16, budget=60_000).good()
    text = qemu.plain(run.text)
    full, others, after = text.split("\n-\n")
    got = re.search(rf"^(\d+) {kind}, then: {error}", text, re.M)
    assert got and int(got[1]) >= least, run.explain()
    rows = sessions(full)
    assert rows[2][resource] >= share * rows[0][resource], rows
    assert "motd " in others, run.explain()
    assert others.endswith("\nx") or share < 1, run.explain()
    assert set(sessions(after)) == {0, 1}, run.explain()
    assert not any(sessions(after)[1].values()), run.explain()


def test_a_full_session_is_named(kernel):
    run = qemu.run(
        kernel, "run -b bomb tasks; run -p sleep 30; "
        + "run -b sleep 99; " * 6 + "sessions end 1; poweroff",
        memory=16, budget=60_000).good()
    said = re.findall("^run: .*", qemu.plain(run.text), re.M)
    assert said and set(said) == {
        "run: no room for /bin/sleep; `sessions` shows what has it, and ends "
        "one"}, run.explain()
