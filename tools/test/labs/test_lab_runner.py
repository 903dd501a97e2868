"""The runner of labs' tests in the kernel (tools/workshop/labs/runner.c): its
result in memory, and the output, for each way in which a test can end.
The tests are those of lab 0."""

import functools
import re
import tempfile

import pytest

from conftest import tiers
from tools.grading import stopped
from tools.run import elf, qemu

pytestmark = pytest.mark.workshop

WATCHDOG = ("-device", "ib700", "-action", "watchdog=inject-nmi")


class Run:
    """A test as the grader runs it: `result` is the output, `memory` what the
    machine's was at its end, `found` the test's result in it."""

    def __init__(self, kernel, test, option="panic=exit"):
        with tempfile.NamedTemporaryFile() as ram:
            self.result = qemu.run(
                kernel.path, append=f"{option} grade={test}", budget=None,
                extra=WATCHDOG, shift=2, ram=ram.name)
            self.memory = ram.read(16 << 20)  # with all of the image
        self.found = kernel.result(self.memory, test)
        self.named, self.text = self.result.named, self.result.text
        self.explain = self.result.explain


image_of = functools.lru_cache(stopped.Kernel)


@pytest.fixture
def image(kernel):
    return image_of(kernel)


@pytest.fixture
def grade(image):
    return lambda test, **more: Run(image, test, **more)


@pytest.mark.parametrize("test", tiers(["passes", "bare", "early", "pages"],
                                       ["takes_long"]))
def test_pass(grade, test):
    run = grade(f"0.{test}")
    assert run.found == (0, 0), run.explain()
    assert "leaked by" in run.text
    assert run.result.status == 1


def test_fail(grade):
    run = grade("0.fails")
    assert run.found == (2, 0)
    texts = [e["text"] for e in run.named["expectation"]]
    assert texts[0] == 'this is "said" to who wrote it'
    assert "got 2" in texts[1]
    assert run.result.status == 3


@pytest.mark.parametrize("test, text", (
    ("leaks", "kmem_alloc_112 objects in use: 1, had 0"),
    ("leaks_bare", "kmem_alloc_112 objects in use: 1, had 0"),
    ("leaks_pages", r"free pages: \d+, had \d+")))
def test_leak(grade, test, text):
    run = grade(f"0.{test}")
    failures, leaks = run.found
    assert failures == 0 and leaks >= 1
    assert any(re.fullmatch(text, e["text"]) for e in run.named["leak"]), \
        run.explain()


@pytest.mark.parametrize("test, where", tiers(
    [("hangs", "cpu_halt")], [("hangs_deaf", "lab_0_hangs_deaf")]))
def test_hang(grade, test, where):
    """The watchdog ends it, even with interrupts off, and prints the place."""
    run = grade(f"0.{test}")
    assert run.found is None
    assert "lab_0_hangs" in run.named["lab-hang"][0]["at"], run.explain()
    assert f"panic: the test 0.{test} hangs, in " in run.text
    assert ("WAITS-FOR" in run.text) == (test == "hangs")
    assert "no command" not in run.text


def test_panic(grade):
    run = grade("0.panics")
    assert run.found is None
    assert run.named["panic"][0]["text"] == "this test panics"
    assert run.result.ended


def test_halt(grade):
    """A kernel that cannot start prints that at once: it does not hang."""
    run = grade("0.passes", option="panic=exit mem=2")
    assert run.found is None
    assert "halt" in run.named and "lab-hang" not in run.named
    assert "Slate cannot start: too little memory" in run.text
    assert run.result.ended


def test_a_panic_that_is_required(grade):
    run = grade("0.panics_as_required")
    assert run.found == (0, 0)
    assert "panic, as required: what this test requires" in run.text
    run = grade("0.panics_too_late")
    assert run.found == (1, 0)
    run = grade("0.does_not_panic")
    assert run.found == (1, 0)
    assert [e["text"] for e in run.named["expectation"]] == \
        ['there was no panic with "requires"']


@pytest.mark.parametrize("test, text", (
    ("panics_otherwise", "what requires something else"),
    ("panics_too_early", "what this test requires"),
    ("panics_of_itself",
     "lab_must_panic is for a test that says which panic ends it")))
def test_no_other_panic_passes(grade, test, text):
    run = grade(f"0.{test}")
    assert run.found is None
    assert run.named["panic"][0]["text"] == text
    assert "panic, as required" not in run.text


@pytest.mark.parametrize("test, why", (
    ("skips", "another machine"),
    ("excuses_itself", "no memory: this is excused"),
    ("skips_and_panics", "it is too hard")))
def test_a_skipped_test_has_not_passed(grade, test, why):
    run = grade(f"0.{test}")
    assert run.found == (1, 0)
    assert [e["text"] for e in run.named["expectation"]] == \
        [f"the test was skipped: {why}"]


def test_guards(grade):
    run = grade("0.writes_locked")
    assert run.found == (0, 0), run.explain()
    run = grade("0.writes_unlocked")
    assert run.found == (4, 0), run.explain()
    texts = [e["text"] for e in run.named["expectation"]]
    assert [re.sub(r"[+]0x\w+$", "", text) for text in texts] == [
        f"word {i} was written without its lock, in write_all"
        for i in (0, 1, 2, 4)]
    assert {e["file"] for e in run.named["expectation"]} == {
        "tools/workshop/labs/lab0_runner.c"}


def test_a_lock_that_is_not_released(grade):
    run = grade("0.stays_locked")
    assert run.found == (1, 0), run.explain()
    assert "interrupts were disabled" in \
        run.named["expectation"][0]["text"]


def test_missing(grade):
    run = grade("0.is_missing")
    assert run.found is None
    assert run.named["lab-missing"][0]["task"] == "0.1"
    assert "lab task 0.1 is yours to write: see docs/labs.md" in run.text


def test_triple_fault(grade):
    run = grade("0.faults_thrice")
    assert run.found is None
    assert run.result.status == 0 and not run.result.ended


def test_leaves(grade):
    run = grade("0.leaves")
    assert run.found is None


def test_what_is_printed_is_no_result(grade):
    run = grade("0.says_so")
    assert run.named["verdict"][0]["result"] == "pass"
    assert run.found is None


@pytest.mark.parametrize("name", ["nosuch", "passe"])  # passe begins a name
def test_unknown(grade, name):
    run = grade(f"0.{name}")
    assert "lab-unknown" in run.named
    assert run.result.ended


def test_by_hand(grade):
    """Without panic=exit, as under GDB, it ends and says the same."""
    run = grade("0.fails", option="")
    assert "0.fails fails" in run.text and run.found == (2, 0)


# ---- what the grader reads -------------------------------------------------

def test_a_result_is_of_one_test(image, grade):
    memory = grade("0.passes").memory
    assert image.result(memory, "0.passes") == (0, 0)
    assert image.result(memory, "0.bare") is None
    assert image.result(memory, "0.none") is None
    assert image.result(bytes(len(memory)), "0.passes") is None
    assert image.result(bytes(len(memory)), "0.none") is None


def test_changed_code_and_constants_are_seen(image, grade):
    """In an honest machine nothing is changed but for stac and clac; each
    other byte of the kernel's read-only segments counts."""
    memory = bytearray(grade("0.passes").memory)
    assert image.changed(memory) is None
    at = elf.Elf(image.path).symbols
    for name in ("ktest_fail", "__start_lab_tests", "kmem_alloc", "_start"):
        where = at[name] % stopped.KERNEL_BASE
        memory[where] ^= 1
        assert image.changed(memory) == at[name]
        memory[where] ^= 1
    site = elf.Elf(image.path).words(at["__start_smap_sites"], 1)[0]
    memory[site % stopped.KERNEL_BASE] = 0x0f
    assert image.changed(memory) == site


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
