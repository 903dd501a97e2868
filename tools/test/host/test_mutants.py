"""The tests notice when mm/ is changed (tools/test/mutants.py)."""

import subprocess

import pytest

from conftest import BUILD_NAME, long
from tools.run import watchdog
from tools.test import mutants, mutate

pytestmark = [pytest.mark.plain, pytest.mark.spread]

SEED, EACH = 1, 50    # mutants of each part of the sample
# Of these files all mutants of locks are killed or explained.
LOCKED = ["mm/kmem_cache.c"]

SOURCE = """\
#define PAIR(a) ((a) + 1)
static const int table[] = {7};
static int f(int *a, int b)
{
    int left[4 * 2] = {0};
    int one = a[6];

    MM_ASSERT(b != 9);
    mm_lock(&lock);
    if (b < 3 && !*a)
        a[b]++;
    for (int i = 0; i != b; i++)
        g(a, b / 2,
          left);
    mm_unlock(&lock);
    return b > 0 ? b : -b;
}
"""
CHANGES = {
    "table": ["7 -> (7 + 1)", "7 -> (7 - 1)"],
    "arithmetic": ["/ -> *"],
    "unary": ["- -> "],
    "step": ["++ -> --", "++ -> ", "++ -> --", "++ -> "],
    "relation": ["< -> <=", "< -> >=", "!= -> ==", "> -> >=", "> -> <="],
    "logic": ["&& -> ||", "&& -> && 0 ||", "&& -> || 0 &&", "! -> "],
    "condition": ["b < 3 && !*a -> !(b < 3 && !*a)", "b < 3 && !*a -> 0",
                  "b < 3 && !*a -> 1", "i != b -> !(i != b)", "i != b -> 0",
                  "i != b -> "],
    "choice": ["b : -b -> (-b) : (b)"],
    "result": ["b > 0 ? b : -b -> 0"],
    "argument": ["a, b / 2 -> b / 2, a",
                 "b / 2,\n          left -> left, b / 2"],
    "statement": ["mm_lock(&lock); -> ;", "a[b]++; -> ;", "i++ -> ",
                  "g(a, b / 2,\n          left); -> ;",
                  "mm_unlock(&lock); -> ;"],
    "lock": ["mm_lock(&lock); -> ; mm_unlock(&lock); -> ;"],
}


LOCKS = """\
static void f(int *a)
{
    mm_lock(&lock);
    a[0] = 1;
    if (a[1])
        a[2] = 3;
    else
        a[2] = 4;
    mm_unlock(&lock);
    g();
    mm_lock(&lock);
    if (a[1] == 0)
        a[1] = 2;
    mm_unlock(&lock);
}
"""
LOCK_CHANGES = {
    "lock": ["mm_lock(&lock); -> ; mm_unlock(&lock); -> ; "
             "mm_unlock(&lock); -> ;",
             "mm_unlock(&lock); -> ; mm_lock(&lock); -> ; "
             "mm_unlock(&lock); -> ;"],
    "late": ["mm_lock(&lock); a[0] = 1; -> a[0] = 1; mm_lock(&lock);"],
    "early": ["if (a[1]) a[2] = 3; else a[2] = 4; mm_unlock(&lock); -> "
              "mm_unlock(&lock); if (a[1]) a[2] = 3; else a[2] = 4;"],
    "look": ["a[1] == 0 -> 1"],
}


def changes(operator, function="f", source=SOURCE, of=mutate.mutants_of):
    return [" ".join(f"{source[start:end]} -> {new}"
                     for start, end, new in m.edits)
            for m in of("x.c", source)
            if m.function == function and m.operator == operator]


@pytest.mark.parametrize("operator", sorted(CHANGES))
def test_mutants_of_an_operator(operator):
    found = changes("constant", "table") if operator == "table" \
        else changes(operator)
    assert sorted(found) == sorted(CHANGES[operator])


@pytest.mark.parametrize("operator", sorted(LOCK_CHANGES))
def test_mutants_of_locks(operator):
    found = changes(operator, "f", LOCKS, mutate.lock_mutants_of)
    assert [" ".join(c.split()) for c in found] == LOCK_CHANGES[operator]
    assert {m.operator for m in mutate.lock_mutants_of("x.c", LOCKS)} == \
        set(LOCK_CHANGES)


def test_constants():
    numbers = [c.split()[0] for c in changes("constant")]
    assert numbers == [n for n in "063020" for _ in range(2)]


def test_each_operator_has_a_test():
    found = {m.operator for m in mutate.mutants_of("x.c", SOURCE)}
    assert found == set(CHANGES) - {"table"} | {"constant"}


def test_a_mutant_is_known_when_other_lines_change():
    """Its place in the sample stays the same, too."""
    before = mutate.mutants_of("x.c", SOURCE)
    after = mutate.mutants_of("x.c", "int other;\n\n" + SOURCE)
    assert len({m.identity for m in before}) == len(before)

    def sample(of, seed):
        return [[m.identity for m in mutants.part_of(of, seed, part)]
                for part in range(mutants.PARTS)]
    assert sample(before, 1) == sample(after, 1) != sample(after, 2)
    assert sum(map(len, sample(after, 1))) == len(before)


def test_a_mutant_is_its_source_with_the_change():
    for mutant in mutate.mutants_of("x.c", SOURCE):
        changed = mutant.apply(SOURCE)
        assert changed != SOURCE
        assert mutate.tokens_of(changed)    # its brackets are still pairs


@pytest.mark.parametrize("survivors, of", [
    (mutants.SURVIVORS, mutants.mutants_of),
    (mutants.LOCK_SURVIVORS, mutants.lock_mutants_of)])
def test_each_explained_survivor_is_a_mutant(survivors, of):
    reasons = mutants.explained(survivors.read_text("utf-8"))
    known = {m.identity for m in of(mutants.sources())}
    assert not set(reasons) - known, f"{survivors.name}: no such mutant"
    assert all(reason.endswith(".") for reason in reasons.values())


def test_a_lab_without_survivors_explains_none(tmp_path):
    assert mutants.explained(mutants.text_of(tmp_path / "survivors.txt")) == {}


def test_one_reason_can_explain_several_mutants():
    text = """\
# a comment

mm/x.c f
    - a
    + b
    + c
    - d
    + e
mm/x.c g #2
    - a
    + b
    Because of this
    - and of that.

mm/x.c h
    - a
    + b
    Why.
"""
    f, g, h = (f"mm/x.c {x}\n    - " for x in ("f", "g #2", "h"))
    why = "Because of this - and of that."
    assert mutants.explained(text) == {
        f"{f}a\n    + b\n": why, f"{f}a\n    + c\n": why,
        f"{f}d\n    + e\n": why, f"{g}a\n    + b\n": why,
        f"{h}a\n    + b\n": "Why."}
    with pytest.raises(ValueError, match="twice"):
        mutants.explained(text + "\n" + text)


def test_faults_are_shown_when_they_are_found(monkeypatch):
    """A survivor without a reason, and a mutant that has one but is killed."""
    every = mutate.mutants_of("x.c", SOURCE)
    killed, survivor, known = every[:3]
    monkeypatch.setattr(mutants, "explained", lambda: {
        killed.identity: "Why.", known.identity: "Why."})

    class Notice:
        def notice(self, mutant):
            return None if mutant in every[3:] else mutant == killed

    shown = []
    result = mutants.try_part(Notice(), every, len(every), shown.append)
    assert shown == result.faults == [
        f"EXPLAINED, BUT KILLED {killed.identity}",
        f"SURVIVED {survivor.identity}"]
    assert (result.tried, result.survived, result.unexplained) == (3, 2, 1)


def require_built(*names):
    """The objects of programs that are older than mm/ are those of another
    mm/: all mutants would be killed."""
    for name in names:
        path = f"{BUILD_NAME}/{name}"
        assert subprocess.run(["make", "--question", path], cwd=mutants.ROOT,
                              stdout=subprocess.DEVNULL).returncode == 0, \
            f"{path} is missing or old: make {path}"


@pytest.fixture(scope="session")
def tests_of_mm():
    require_built("mutants/mmtest", "threads/mmthreads")
    return mutants.Tests()


@long
@pytest.mark.parametrize("part", range(mutants.PARTS))
def test_mutants_are_killed_or_explained(part, tests_of_mm):
    every = mutants.mutants_of(mutants.sources())
    result = mutants.try_part(tests_of_mm,
                              mutants.part_of(every, SEED, part), EACH)
    assert result.tried == EACH
    assert not result.faults, "".join(result.faults)


def test_what_the_watchdog_ends_is_not_killed(monkeypatch, tmp_path):
    """A mutant whose tests take long on this machine may be right."""
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nsleep 1000000\n", encoding="utf-8")
    slow.chmod(0o755)
    monkeypatch.setattr(watchdog, "SECONDS", 0.1)
    for run in (lambda: mutants.run_cases(slow, []),
                lambda: mutants.races(slow, 1, 1),
                lambda: mutants.Seeds.first_failure(slow)):
        with pytest.raises(watchdog.Watchdog):
            run()


@pytest.fixture(scope="session")
def seeds_of_mm():
    require_built("races/mmraces")
    return mutants.Seeds()


@long
@pytest.mark.parametrize("file", LOCKED)
def test_mutants_of_locks_are_killed_or_explained(file, seeds_of_mm):
    every = mutants.lock_mutants_of([file])
    result = mutants.try_part(
        seeds_of_mm, every, len(every),
        reasons=mutants.explained(mutants.LOCK_SURVIVORS.read_text("utf-8")))
    assert result.tried and not result.faults, "".join(result.faults)
