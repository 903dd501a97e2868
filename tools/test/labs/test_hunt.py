"""Lab 7: the numbers of requests, which are asked for, follow from the seed
and from nothing else. A student who uses other modes or another machine than
the grader's witness sees the same."""

from types import SimpleNamespace

import pytest

from conftest import ROOT, long
from tools.grading import questions
from tools.run import gdb

pytestmark = [pytest.mark.workshop, pytest.mark.plain]

LAB = ROOT / "docs/labs/07-bug-hunt"

# Other modes in which the witness sees each bug, or its damage.
OTHERS = {"meter": "Z", "bell": "P", "parcel": "FG", "words": "GU",
          "channel": "Z", "seats": "GU"}


@pytest.fixture
def hunt():
    """The names of the lab's answers.py."""
    return questions.load_checker(LAB / "answers.py")


def requests(kernel, services, append, memory, end="power_off"):
    """The numbers of requests of these days, one after the other; of the last
    one's up to the function `end`."""
    ask = "print workday_request"
    session = gdb.Session(
        kernel, ";".join(f"services {s}" for s in services) + "; poweroff",
        [(stop, [ask]) for stop in ["workday"] * len(services) + [end]],
        append=append, memory=memory)
    return [int(said[ask].split("=")[1]) for said in session.said[1:]]


def test_a_day_is_the_same_in_each_mode_and_memory(kernel, hunt):
    plain = requests(kernel, hunt["SERVICES"], "", "32")
    assert len(set(plain)) > 1 and min(plain) > 10
    twice = [s for s in hunt["SERVICES"] for _ in range(2)]
    for modes, memory in ("FPZU", "16"), ("G", "64"):
        again = requests(kernel, twice, f"kmem.debug={modes}", memory)
        assert again[::2] == again[1::2] == plain, modes


def in_larger_machine(*words, **options):
    return gdb.Session(*words, **{**options, "memory": "64"})


@long
def test_the_witness_sees_the_same_in_other_modes(hunt):
    with hunt["hunted"](SimpleNamespace(seed=5)) as kernel:
        known = {s: hunt["truth"](kernel, s) for s in OTHERS}
        hunt["gdb"] = SimpleNamespace(Session=in_larger_machine)
        for service, letters in OTHERS.items():
            hunt["MODES"] = f"kmem.debug={letters}"
            assert hunt["truth"](kernel, service) == known[service]
        for service in "meter", "bell":  # where G stops the store itself
            assert requests(kernel, [service], "kmem.debug=G", "32",
                            "panic_trap") == \
                [known[service][f"{service}_request"]]


@long
def test_requests_follow_from_the_seed_and_nothing_else_does(hunt):
    found = [hunt["solve"](questions.Machine(ROOT, None, seed))
             for seed in (2, 5, 2 ** 32 - 1)]
    for name in found[0]:
        answers = {said[name] for said in found}
        assert len(answers) == (3 if name.endswith("_request") else 1), name
