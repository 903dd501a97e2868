"""The runner of labs' tests in the kernel (tools/workshop/labs/runner.c): the
output for each way in which a test can end.
The tests are those of lab 0."""

import re

import pytest

from conftest import tiers
from tools.run import qemu

pytestmark = pytest.mark.workshop

KEY = "000102030405060708090a0b0c0d0e0f"
WATCHDOG = ("-device", "ib700", "-action", "watchdog=inject-nmi")


def grade(kernel, test, key=KEY, shift=2, option=""):
    line = f"{option} grade={test}" + (f" gradekey={key}" if key else "")
    return qemu.run(kernel, append=line, budget=None, extra=WATCHDOG,
                    shift=shift)


def verdict(result):
    found = result.named.get("verdict", [])
    return [(v["test"], v["result"], v["leaks"]) for v in found]


@pytest.mark.parametrize("test", tiers(["passes", "bare", "early", "pages"],
                                       ["takes_long"]))
def test_pass(kernel, test):
    result = grade(kernel, f"0.{test}")
    assert verdict(result) == [(f"0.{test}", "pass", 0)], result.explain()
    assert "leaked by" in result.text
    assert result.status == 1


def test_signature(kernel):
    """Equal keys give equal signatures; the key itself is never printed."""
    macs = {key: grade(kernel, "0.passes", key).named["verdict"][0]["mac"]
            for key in (KEY, KEY.replace("0f", "0e"))}
    again = grade(kernel, "0.passes")
    assert again.named["verdict"][0]["mac"] == macs[KEY]
    assert len(set(macs.values())) == 2
    assert KEY not in again.text


def test_fail(kernel):
    result = grade(kernel, "0.fails")
    assert verdict(result) == [("0.fails", "fail", 0)]
    texts = [e["text"] for e in result.named["expectation"]]
    assert texts[0] == 'this is "said" to who wrote it'
    assert "got 2" in texts[1]
    assert result.status == 3


@pytest.mark.parametrize("test, text", (
    ("leaks", "kmem_alloc_112 objects in use: 1, had 0"),
    ("leaks_bare", "kmem_alloc_112 objects in use: 1, had 0"),
    ("leaks_pages", r"free pages: \d+, had \d+")))
def test_leak(kernel, test, text):
    result = grade(kernel, f"0.{test}")
    assert verdict(result)[0][1] == "pass"
    assert verdict(result)[0][2] >= 1
    assert any(re.fullmatch(text, e["text"]) for e in result.named["leak"]), \
        result.explain()


@pytest.mark.parametrize("test, where", tiers(
    [("hangs", "cpu_halt")], [("hangs_deaf", "lab_0_hangs_deaf")]))
def test_hang(kernel, test, where):
    """The watchdog ends it, even with interrupts off, and prints the place."""
    result = grade(kernel, f"0.{test}")
    assert not verdict(result)
    assert "lab_0_hangs" in result.named["lab-hang"][0]["at"], result.explain()
    assert f"panic: the test 0.{test} hangs, in " in result.text
    assert ("WAITS-FOR" in result.text) == (test == "hangs")


def test_panic(kernel):
    result = grade(kernel, "0.panics")
    assert not verdict(result)
    assert result.named["panic"][0]["text"] == "this test panics"
    assert result.ended


def test_halt(kernel):
    """A kernel that cannot start prints that at once: it does not hang."""
    result = grade(kernel, "0.passes", option="mem=2")
    assert not verdict(result)
    assert "halt" in result.named and "lab-hang" not in result.named
    assert "Slate cannot start: too little memory" in result.text
    assert result.ended


def test_a_panic_that_is_required(kernel):
    result = grade(kernel, "0.panics_as_required")
    assert verdict(result) == [("0.panics_as_required", "pass", 0)]
    assert "panic, as required: what this test requires" in result.text
    result = grade(kernel, "0.panics_too_late")
    assert verdict(result) == [("0.panics_too_late", "fail", 0)]
    result = grade(kernel, "0.does_not_panic")
    assert verdict(result) == [("0.does_not_panic", "fail", 0)]
    assert [e["text"] for e in result.named["expectation"]] == \
        ['there was no panic with "requires"']


@pytest.mark.parametrize("test, text", (
    ("panics_otherwise", "something else"),
    ("panics_too_early", "what this test requires"),
    ("panics_of_itself",
     "lab_must_panic is for a test that says which panic ends it")))
def test_no_other_panic_passes(kernel, test, text):
    result = grade(kernel, f"0.{test}")
    assert not verdict(result)
    assert result.named["panic"][0]["text"] == text
    assert "panic, as required" not in result.text


@pytest.mark.parametrize("test, why", (
    ("skips", "another machine"),
    ("excuses_itself", "no memory: this is excused"),
    ("skips_and_panics", "it is too hard")))
def test_a_skipped_test_has_not_passed(kernel, test, why):
    result = grade(kernel, f"0.{test}")
    assert verdict(result) == [(f"0.{test}", "fail", 0)]
    assert [e["text"] for e in result.named["expectation"]] == \
        [f"the test was skipped: {why}"]


def test_missing(kernel):
    result = grade(kernel, "0.is_missing")
    assert not verdict(result)
    assert result.named["lab-missing"][0]["task"] == "0.1"
    assert "lab task 0.1 is yours to write: see docs/labs.md" in result.text


def test_triple_fault(kernel):
    result = grade(kernel, "0.faults_thrice")
    assert not verdict(result)
    assert result.status == 0 and not result.ended


def test_leaves(kernel):
    result = grade(kernel, "0.leaves")
    assert not verdict(result)


def test_forged(kernel):
    """The record looks right, and its signature does not."""
    forged = grade(kernel, "0.forges").named["verdict"]
    assert [v["mac"] for v in forged] == ["0123456789abcdef"]


def test_unknown(kernel):
    result = grade(kernel, "0.nosuch")
    assert "lab-unknown" in result.named
    assert result.ended


@pytest.mark.parametrize("key", ("abc", KEY + "0", KEY[:-1] + "x"))
def test_bad_key(kernel, key):
    """No verdict, and the key is not printed back."""
    result = grade(kernel, "0.passes", key)
    assert not verdict(result)
    assert "gradekey=" in result.text and key not in result.text


def test_command(kernel):
    result = qemu.run(kernel, "lab; lab 0.passes; lab 0.leaks; lab 0.fails; "
                      "lab 0.early; lab nosuch; lab a b; poweroff")
    text = qemu.plain(result.text)
    assert re.search(r"^0\.passes +here$", text, re.M)
    listed = re.findall(r"^(\d\.\w+) +(?:here|while)", text, re.M)
    assert listed == sorted(set(listed)) and len(listed) > 90
    assert "0.passes passes\n" in text
    assert "0.leaks passes, and leaks\n" in text
    assert "0.fails fails\n" in text
    assert "0.early runs while the kernel starts: make run " \
           "APPEND=grade=0.early" in text
    assert 'no test "nosuch"; `lab` lists them' in text
    assert "usage: lab [TEST]" in text
