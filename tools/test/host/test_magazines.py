"""Magazines on this machine: unit cases, all schedules of two operations,
schedules from seeds with a switch at any access, real threads, and mistakes
that are planted in the code, each of which must be found."""

import json
import re
import tempfile

import pytest

from conftest import BUILD, ROOT, execute, output_of, tiers
from tools.run import qemu
from tools.test import mutants, tap

pytestmark = pytest.mark.plain

MMTEST = BUILD / "magazines" / "mmtest"
MMRACES = BUILD / "races-mag" / "mmraces"
MMTHREADS = BUILD / "threads-mag" / "mmthreads"
# Rounds of a magazine, first seed, how many.
SEEDS = tiers([(2, 1, 4)], [(1, 1, 40), (2, 5, 40), (3, 1, 40), (7, 1, 40)],
              samples=[(3, 500, 10)])
PLANTED_SEEDS = 40
ASAN = {"ASAN_OPTIONS": "detect_leaks=0"}


def mmtest(*arguments, program=MMTEST):
    return execute(program, *arguments, **ASAN)


# ---- without a mistake ------------------------------------------------------


def pytest_generate_tests(metafunc):
    tap.parametrize(metafunc, "mag_case", MMTEST, lambda _: sorted(
        name for name in mmtest("-l").stdout.split()
        if name.startswith("magazines.")))


@pytest.fixture(scope="module")
def results():
    return tap.program(MMTEST, "magazines", notes_first=False, env=ASAN)


def test_case(mag_case, results):
    tap.passed(mag_case, results)


@pytest.mark.long
def test_every_schedule_of_two_operations():
    done = mmtest("-x")
    assert done.returncode == 0, done.stdout[-6000:]
    assert int(re.search(r"(\d+) schedules", done.stdout)[1]) > 100_000


@pytest.mark.parametrize(("rounds", "first", "count"), SEEDS)
def test_schedules_of_seeds(rounds, first, count):
    done = execute(MMRACES, f"-m{rounds}", first, count)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_threads(seed):
    done = mutants.with_threads(MMTHREADS, seed, 20_000)
    assert done.returncode == 0, done.stdout[:6000]


# ---- in the kernel ----------------------------------------------------------


def common_path(kernel, function):
    """The instructions of a call up to the first return, as objdump prints
    them: the jumps before it are not taken."""
    text = output_of("objdump", "-d", "--no-addresses", "--no-show-raw-insn",
                     f"--disassemble={function}", kernel)
    body = re.search(rf"<{function}>:\n(.*?\tret)\b", text, re.S)[1]
    return [line.strip() for line in body.splitlines()]


@pytest.mark.sample
def test_the_common_path_takes_no_lock(smp):
    """Nor does it call anything: the lock could be there."""
    for function, most in (("kmem_cache_alloc", 18), ("kmem_cache_free", 17)):
        path = common_path(smp, function)
        assert len(path) <= most, (function, path)
        assert not [i for i in path
                    if re.match(r"lock|xchg|call|bts|cmpxchg", i)], path
        assert sum(i.startswith("j") for i in path) == 1, path


def ask(kernel, *commands, cpus=4, **options):
    """What the kernel prints in a counted run, without what was typed."""
    done = qemu.run(kernel, "; ".join([*commands, "poweroff"]), memory="64",
                    budget=100_000, initrd=BUILD / "initrd-workshop.tar",
                    extra=["-smp", str(cpus)], **options).good()
    return qemu.plain(done.text).replace("\r", "").split("slate> ", 1)[1]


def rows(text):
    """{cache: its cells} of each table of `magazines`."""
    return [{line.split()[0]: line.split()[1:]
             for line in table.split("magazines are")[0].splitlines()[1:]}
            for table in text.split("CACHE             ROUNDS")[1:]]


def trapped(text):
    """{cache: TRAPPED} of each `kmastat -j`."""
    found, now = [], {}
    for line in text.splitlines():
        if line.startswith('{"cache":'):
            cache = json.loads(line)
            now[cache["cache"]] = cache["trapped"]
        elif line.startswith('{"named":'):
            found.append(now)
            now = {}
    return found


@pytest.mark.sample
def test_the_commands_agree_and_a_reap_gives_everything_back(smp):
    text = ask(smp, "run hackbench", "magazines", "kmastat -j", "reap -a",
               "kmastat -j", "magazines", "verify")
    shown = rows(text)
    before, after = trapped(text)
    assert {cache: int(cells[8]) for cache, cells in shown[0].items()} == \
        {cache: before[cache] for cache in shown[0]}
    assert sum(before.values()) == sum(before[c] for c in shown[0]) > 500
    assert int(shown[0]["task"][0]) == 15 and int(shown[0]["kstack"][0]) == 1
    assert float(shown[0]["region"][9]) > 90
    assert sum(after.values()) == 0
    assert all(cells[8] == "0" for cells in shown[1].values())


@pytest.mark.sample
def test_the_session_of_the_book(smp):
    page = (ROOT / "docs/magazines.md").read_text(encoding="utf-8")
    listing = re.search(r"(?m)^<!-- not run: .*\n\n((?:    .*\n)+)", page)[1]
    listing = re.sub(r"(?m)^    ", "", listing)
    typed = re.findall(r"(?m)^slate> (.*)$", listing)
    text = ask(smp, *typed, cpus=1).split("\n", 1)[1]
    shown = re.sub(r"(?m)^slate> .*\n", "", listing)
    assert re.sub(r"(?m)^slab memory .*\n", "", text).strip() == shown.strip()


@pytest.mark.sample
def test_off_and_on(smp):
    text = ask(smp, "run hackbench", "magazines off", "run hackbench",
               "magazines", "magazines on", "run hackbench", "magazines",
               "verify")
    shown = rows(text)
    assert text.count("magazines are off; 0 KiB of free objects in them") == 2
    assert float(shown[0]["task"][9]) > float(shown[1]["task"][9])
    assert {cells[0] for cells in shown[1].values()} == {"0"}
    assert shown[-1]["region"][0] == "15"


@pytest.mark.sample
def test_wrong_uses_of_the_command(smp):
    text = ask(smp, "magazines nothing", "magazines on box",
               "kmem create box 100", "debug +F box",
               "magazines box", "debug =none box", "magazines box", cpus=1)
    assert "no cache is called 'nothing'" in text
    assert "usage: magazines" in text
    assert [table["box"][0] for table in
            rows(text)] == ["0", "15"]


@pytest.mark.sample
def test_a_round_is_free(smp):
    commands = ["kmem create box 100", "kmem alloc box 100",
                "kmem free box 99", "magazines box"]
    text = ask(smp, *commands, "cache -o free box", cpus=1)
    n = int(rows(text)[0]["box"][8])
    free = re.findall(r"(?m)^ *(0xc\w{7}) .* (round|free) ", text)
    rounds = [address for address, state in free if state == "round"]
    assert n == len(rounds) > 90 and len(free) == 39 * 3 - 1, text
    some = [rounds[0], rounds[-1]]
    text = ask(smp, *commands, *(f"whatis {a}; slabs {a}" for a in some),
               "slabs box", f"whatis {rounds[0]}", "cache -o alloc box",
               "reap -a box", f"whatis {rounds[0]}", cpus=1)
    assert text.count(", free, in a magazine: ") == 5
    assert "o free, in a magazine" in text
    assert len(re.findall(r"(?m)^ 0xc.* used ", text)) == 1
    assert re.search(r"(?m)^.* full .* o{38}$|o{38}#|#o{38}", text), text


@pytest.mark.sample
def test_a_kernel_can_boot_without(smp):
    text = ask(smp, "run hackbench", "magazines", "kmastat -j",
               append="magazines=off")
    assert "(no cache has used magazines yet)\nmagazines are off" in text
    assert sum(trapped(text)[0].values()) == 0
    text = ask(smp, "dmesg", append="magazines=perhaps", cpus=1)
    assert "perhaps is not a value for it, ignored; it is " \
        "magazines=on|off" in text


def test_a_kernel_for_one_processor_has_nothing_of_it(kernel):
    symbols = output_of("nm", kernel)
    assert " kmem_cache_alloc\n" in symbols
    assert not re.search(r"kmem_mag|kmem_slab_alloc|cpu_cache", symbols)


# ---- planted mistakes -------------------------------------------------------

# What the mistake is; where, and the text that becomes another one; the case
# that finds it, or None: the first PLANTED_SEEDS seeds of mmraces do.
MAG = "mm/kmem_mag.c"
MISTAKES = [
    ("the processor is that of before the interrupts", MAG, [
        ("    bool room = replace_magazine(cp, here(cp), false);",
         "    struct kmem_cpu_cache *cc = here(cp);\n"
         "    bool room = replace_magazine(cp, cc, false);"),
        ("        push(here(cp), buf);", "        push(cc, buf);")], None),
    ("a round is taken with interrupts enabled", MAG, [
        ("    buf = pop(cc);\n    mm_cpu_leave();",
         "    mm_cpu_leave();\n    buf = pop(cc);")], None),
    ("a round is added with interrupts enabled", MAG, [
        ("    push(cc, buf);\n    mm_cpu_leave();",
         "    mm_cpu_leave();\n    push(cc, buf);")], None),
    ("the loaded magazine is looked at with interrupts enabled", MAG, [
        ("    bool bare = cc->cc_loaded == NULL;\n    void *line;\n\n"
         "    mm_cpu_leave();",
         "    bool bare;\n    void *line;\n\n    mm_cpu_leave();\n"
         "    bare = cc->cc_loaded == NULL;")], None),
    ("the depot is visited without the lock", MAG, [
        ("    mm_lock(&cp->cache_lock);\n    m = cp->cache_rounds == 0",
         "    m = cp->cache_rounds == 0"),
        ("        cc->cc_rounds = refill(cp, cc->cc_loaded);\n"
         "    mm_unlock(&cp->cache_lock);",
         "        cc->cc_rounds = refill(cp, cc->cc_loaded);")], None),
    ("magazines are loaded while there are to be none", MAG, [
        ("    m = cp->cache_rounds == 0 ? NULL : depot_take(cp, full);",
         "    m = depot_take(cp, full);")], None),
    ("a new magazine is loaded while there are to be none", MAG, [
        ("    if (cp->cache_rounds != 0 && cc->cc_rounds == cc->cc_room)",
         "    if (cc->cc_rounds == cc->cc_room)")], None),
    ("a new magazine is loaded where there is room", MAG, [
        ("    if (cp->cache_rounds != 0 && cc->cc_rounds == cc->cc_room)",
         "    if (cp->cache_rounds != 0)")], None),
    ("the processors are not called", MAG, [
        ("        mm_call_all(give_back, cp);", "        ;")], None),
    ("the previous magazine is not given back", MAG, [
        ("    unload(cp, cc->cc_previous, cc->cc_previous_rounds);\n", "")],
     None),
    ("what is given back is still used", MAG, [
        ("    cp->cache_cpu[mm_cpu_number()] = &kmem_cpu_none;\n", "")], None),
    ("what was counted is forgotten", MAG, [
        ("    cp->cache_mag_frees += cc->cc_frees;\n", "")], None),
    ("the previous magazine is lost", MAG, [
        ("    if (cc->cc_previous != NULL)\n        depot_put",
         "    if (cc->cc_previous == NULL)\n        return;\n"
         "    if (0)\n        depot_put")], None),
    ("a full magazine goes to the empty ones", MAG, [
        ("depot_put(cp, cc->cc_previous_rounds != 0, cc->cc_previous)",
         "depot_put(cp, false, cc->cc_previous)")], None),
    ("an empty magazine goes to the full ones", MAG, [
        ("depot_put(cp, cc->cc_previous_rounds != 0, cc->cc_previous)",
         "depot_put(cp, true, cc->cc_previous)")], None),
    ("a full magazine is loaded as an empty one", MAG, [
        ("load_magazine(cp, cc, m, full ? cp->cache_rounds : 0)",
         "load_magazine(cp, cc, m, 0)")], None),
    ("magazines are exchanged without their rounds", MAG, [
        ("    cc->cc_rounds = cc->cc_previous_rounds;\n", "")], None),
    ("the previous magazine is loaded whatever it has", MAG, [
        ("    if (cc->cc_previous != NULL && (cc->cc_previous_rounds != 0) == "
         "full)", "    if (cc->cc_previous != NULL)")],
     "magazines.few_locks_for_many_objects"),
    ("the previous magazine is never loaded", MAG, [
        ("    if (cc->cc_previous != NULL && (cc->cc_previous_rounds != 0) == "
         "full)", "    if (0)")],
     "magazines.the_previous_magazine_prevents_thrashing"),
    ("a refill takes more than the slab has", "mm/kmem_cache.c", [
        ("    n = MIN(n, (uint32_t)sp->slab_chunks - sp->slab_refcnt);",
         "    n = sp->slab_chunks == 0 ? 0 : n;")], None),
    ("a refill is not counted", MAG, [
        ("    cp->cache_refilled += n;", "")], None),
    ("a refill reverses the order", "mm/kmem_cache.c", [
        ("    for (uint32_t i = n; i-- > 0;)\n        to[i]",
         "    for (uint32_t i = 0; i < n; i++)\n        to[i]")],
     "magazines.a_refill_keeps_the_order_of_the_slab"),
    ("one round is not drained", MAG, [
        ("    for (uint32_t i = 0; i < rounds; i++)\n        if (!kmem_give",
         "    for (uint32_t i = 1; i < rounds; i++)\n        if (!kmem_give")],
     None),
    ("a round that is drained is not counted", MAG, [
        ("    cp->cache_drained += rounds;",
         "    cp->cache_drained += rounds - 1;")],
     None),
    ("the depot does not count what it gives", MAG, [
        ("    d->depot_total--;\n", "")], None),
    ("the depot does not note its least", MAG, [
        ("    d->depot_min = MIN(d->depot_min, d->depot_total);\n", "")], None),
    ("a processor's first line becomes a magazine", MAG, [
        ("    if (cc == &kmem_cpu_none) {\n        cc = memset",
         "    if (0) {\n        cc = memset")], None),
    ("a second line replaces what the processor has", MAG, [
        ("    if (cc == &kmem_cpu_none) {\n        cc = memset",
         "    if (1) {\n        cc = memset")], None),
    ("a free makes a magazine while memory is low", MAG, [
        (" || mm_memory_low() ||", " ||")],
     "magazines.a_free_never_reclaims"),
    ("slabs that become free by a reap must rest again", MAG, [
        ("    cp->cache_ws_limit += cp->cache_free_slabs - slabs;\n", "")],
     "magazines.idle_magazines_and_their_slabs_go_in_one_reap"),
    ("the depot's limit is never set", MAG, [
        ("        cp->cache_depot[i].depot_limit = "
         "cp->cache_depot[i].depot_min;\n", "")],
     "magazines.idle_magazines_and_their_slabs_go_in_one_reap"),
    ("a reap takes magazines that are in use", MAG, [
        ("         MIN(d->depot_limit, d->depot_min) == 0))",
         "         d->depot_total == 0))")],
     "magazines.idle_magazines_and_their_slabs_go_in_one_reap"),
    ("every magazine has 15 rounds", MAG, [
        ("    return MIN(n, kmem_mag_most);", "    return kmem_mag_most;")],
     "magazines.larger_objects_have_fewer_rounds"),
    ("the allocator's own caches have magazines", MAG, [
        (" && cp->cache_kind != KMEM_KIND_INTERNAL &&", " &&")],
     "magazines.the_allocators_own_caches_have_none"),
    ("a cache in a debugging mode has magazines", MAG, [
        ("         (cp->cache_flags & KMF_DEBUG) == 0;", "         true;")],
     "magazines.a_debugging_mode_sees_every_operation"),
    ("the layout changes while there are magazines", "mm/debug/modes.c", [
        ("        kmem_mag_disable();", "        ;"),
        ("        kmem_mag_enable();", "        ;")], None),
    ("the leak scan takes rounds for objects", "mm/debug/leak.c", [
        ("        kmem_mag_disable();", "        ;"),
        ("        kmem_mag_enable();", "        ;")],
     "magazines.a_round_is_no_leak"),
    ("a cache is destroyed with its rounds", "mm/kmem_cache.c", [
        ("            kmem_mag_empty(cp);", "            ;")],
     "magazines.destroy_takes_back_every_round"),
    ("a request fails though others have rounds", "mm/kmem_cache.c", [
        ("        kmem_mag_reap(cp, KMEM_REAP_ALL);\n    if (flags",
         "        ;\n    if (flags")],
     "magazines.no_request_fails_while_a_processor_has_rounds"),
]


@pytest.mark.spread
@pytest.mark.parametrize(
    ("file", "changes", "case"),
    [pytest.param(*mistake[1:], id=mistake[0].replace(" ", "-"),
                  marks=() if i == 0 else pytest.mark.long)
     for i, mistake in enumerate(MISTAKES)])
def test_a_planted_mistake_is_found(file, changes, case):
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        if case is None:
            program = mutants.Program("races-mag/mmraces",
                                      ["-no-pie", "-Wl,--gc-sections"])
            done = execute(program.with_mistake(file, changes, folder), "-m2",
                           1, PLANTED_SEEDS)
        else:
            program = mutants.Program("magazines/mmtest", [
                "-fsanitize=address,undefined", "-lcmocka", "-lpthread",
                "-lm"])
            done = mmtest(case,
                          program=program.with_mistake(file, changes, folder))
        assert done.returncode != 0, done.stdout
