"""`fail` of the workshop kernel's shell: which allocations it makes fail, what
it says, and that it refuses wrong input. What the kernel does then is the
subject of test_failures.py."""
# Tests: tools/workshop/stress/cmd_fail.c

import re

import pytest

pytestmark = pytest.mark.workshop


def test_fail_with_conditions(shell):
    shell.command("kmem create spy 100; kmem create other 100")
    shell.command("fail slab 2 -c spy")
    assert "+1 object:" in shell.command("kmem alloc other 1")
    assert "+1 object:" in shell.command("kmem alloc spy 5")  # one failed
    text = shell.command("fail")
    assert "request 2 for an object of spy: 2 so far, 1 failed" in text
    assert "has happened" in shell.command("fail off")
    shell.command("fail slab -r 4 -s 9 -c spy -f play_alloc -t 1")
    done = sum(int(re.search(r"\+(\d+) object",
                             shell.command("kmem alloc spy 1"))[1])
               for _ in range(60))
    text = shell.command("fail")
    assert re.search(r"one request in 4 for an object of spy by task 1 from "
                     rf"play_alloc: 60 so far, {60 - done} failed", text), text
    assert 5 <= 60 - done <= 30
    shell.command("fail slab 1 -t 2; kmem alloc spy 1")
    assert ": 0 so far, 0 failed" in shell.command("fail")
    shell.command("fail off; kmem free spy all; kmem free other all; "
                  "kmem destroy spy; kmem destroy other")


def test_an_interrupted_series_counts_each_run(boot):
    """^C comes in the first run, whose first request fails."""
    machine = boot()
    machine.send("fail slab kenbus\r\x03")
    assert "kenbus: 1 requests failed in turn; 0 leaked" in machine.prompt()


def test_a_stopped_machine_shows_the_setting(boot):
    machine = boot()
    machine.stopped("panic on purpose")
    for line, said in (
            ("fail", "no failure"),
            ("fail slab ls", "fail: cannot work on a stopped"),
            ("bug double-free", "bug: cannot work on a stopped")):
        assert re.search(said, machine.stopped(line)), line
