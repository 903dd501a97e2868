"""Kernels with another allocator in the place of Slate's: each boots, passes
tests of programs and workloads, counts every byte, and says what it has not."""
# Tests: mm/others/serve.c, kernel/shell/cmd_others.c

import re
from collections import Counter

import pytest

from conftest import (BUILD, BUILD_NAME, OTHERS, OTHERS_SHARED, ROOT, execute,
                      linked, long, other_kernel, product, tiers)
from tools.run import qemu
from tools.test import mutants

pytestmark = pytest.mark.plain

HAS_ALSO = {"slmb": "slob"}  # whose pages it has
KEEP = ("bsd",)  # most pages that they ever had
# When asked: they return pages at once, or never.
NOTHING_TO_RETURN = ("bsd", "slmb", "slob", "sunos")
PROGRAMS = ("run -p init usertests pipe exec handle file.exhaustion memory",
            "run kenbus -u 2 -i 1")


# With 32 MiB slob takes three times as long: its blocks are on pages of which
# QEMU has translated code, so that it looks at each write there.
MEMORY = "24"


def boot(name, *commands, **options):
    return qemu.run(product(f"slate-{name}.elf", "tested"),
                    "; ".join([*commands, "poweroff"]), memory=MEMORY,
                    budget=40_000, **options).good()


@pytest.fixture(scope="module", params=OTHERS)
def worked(request):
    """(name, run) of an allocator that has done some work: programs that use
    files, also of a file server, pipes, tasks and all of memory. Then what is
    kept is returned."""
    run = boot(request.param, *PROGRAMS, "run -b memfs /tmp outer",
               "run sleep .1", "run -p init usertests tree",
               "run umount /tmp", "kmastat", "kmastat -j", "verify",
               "run spike", "run walk", "reap -a", "kmastat -j", "verify")
    return request.param, run


def test_programs_run(worked):
    _, run = worked
    done = run.named["user-tests"]
    assert [e["failed"] for e in done] == [0, 0], run.explain()
    assert done[0]["passed"] > 40 and done[1]["passed"] > 10, run.explain()
    assert {(e["exit"], e["signal"]) for e in run.named["run"]
            if e["name"] != "memfs"} == {(0, 0)}, run.explain()


def test_the_log_names_it(worked):
    name, run = worked
    assert f"Allocator: {name}, in the place of" in run.text


def objects(run, end=r"\Z"):
    return qemu.json_lines(re.split(end, run.text)[0])


def work(run):
    """The statistics before the reap."""
    return objects(run, "every invariant holds")


def test_every_byte_is_counted(worked):
    name, run = worked
    *caches, total = work(run)
    assert total["allocator"] == name
    assert total["held"] == sum(total[part] for part in (
        "requested", "internal", "external", "metadata"))
    assert total["held"] % 4096 == 0
    assert (total["peak"] > 2 * total["held"]) == (name not in KEEP)
    for key in ("allocs", "frees"):
        assert 0 < sum(c[key] for c in caches) < total[key]
    assert all(c["allocs"] - c["frees"] == c["inuse"] for c in caches)
    assert sum(c["size"] * c["inuse"] for c in caches) < total["requested"]


def test_the_table_shows_the_same(worked):
    name, run = worked
    *caches, total = work(run)
    for cache in caches:
        assert re.search(rf"(?m)^{cache['cache']} +{cache['size']} +\d+ +\d+ ",
                         run.text), cache
    assert re.search(rf"(?m)^HELD, in pages +{total['held']} +waste [\d.]+ %",
                     run.text), run.explain()
    assert f"allocator: {name}; there are no working sets" in run.text


def test_reap_returns_what_is_kept(worked):
    name, run = worked
    inodes, before, after = map(int, re.search(
        r"unused inodes freed first: (\d+)\n(?:.*\n)?heap (\d+) -> (\d+) KiB",
        run.text.replace("\r", "")).groups())
    assert inodes > 0 and before >= after == objects(run)[-1]["held"] // 1024
    assert (before > after) == (name not in NOTHING_TO_RETURN)


# ---- what is not there ------------------------------------------------------

def test_commands_about_slabs_say_so():
    commands = ("cache inode", "kmem list", "reap -n", "reap inode", "slabs",
                "cache -o free", "whatis 0", "debug", "cache -u", "leaks",
                "log", "kmastat -s rate")
    none = "kmastat: no cache matches 'no_such_*'; `kmastat` lists them all"
    run = boot("slob", *commands, "kmastat no_such_*", "pages", "buddyinfo",
               "meminfo", append="kmem.debug=FP ws=3")
    for command in commands:
        assert re.search(rf"(?m)^{command.split()[0]}: .*\bslob\b", run.text), \
            (command, run.text)
    assert "kmem.debug=: the allocator is slob, which has no debugging modes" \
        in run.text
    assert none in run.text
    assert [e["status"] for e in run.named["status"]] == \
        [1] * (len(commands) + 1)


@pytest.mark.parametrize("name", OTHERS)
def test_memory_runs_out_and_comes_back(name):
    """A machine with little memory: programs get ENOMEM, and nothing is
    lost."""
    run = qemu.run(product(f"slate-{name}.elf", "tested"),
                   "run spike; run walk /; verify; poweroff", memory="8",
                   budget=40_000).good()
    assert re.search(r"spike: \d+ processes in .*, [1-9]\d* without all forks",
                     run.text), run.explain()


# ---- several processors -----------------------------------------------------

@pytest.mark.parametrize("name", tiers(
    [], samples=["linux_slub"],
    test_all=[name for name in OTHERS if name != "linux_slub"]))
def test_several_processors(name):
    """It is checked also while programs run on four of them."""
    run = qemu.run(
        other_kernel("smp", f"slate-{name}.elf"),
        "; ".join([*PROGRAMS, "run -p init hackbench", "run -b hackbench",
                   "verify", "run -b spike", "verify", "run walk",
                   "run sleep 5", "reap -a", "cpus", "verify", "kmastat -j",
                   "poweroff"]),
        memory="32", budget=100_000, extra=["-smp", "4"],
        initrd=BUILD / "initrd-workshop.tar").good()
    assert [e["failed"] for e in run.named["user-tests"]] == [0], run.explain()
    assert {(e["exit"], e["signal"]) for e in run.named["run"]} == {(0, 0)}
    *caches, total = objects(run)
    assert total["allocator"] == name
    assert total["held"] == sum(total[part] for part in (
        "requested", "internal", "external", "metadata"))
    assert all(c["allocs"] - c["frees"] == c["inuse"] for c in caches)


# ---- the link-time choice ---------------------------------------------------

def test_a_kernel_has_one_allocator():
    own = linked("slate")
    assert "mm/kmem_cache" in own and "mm/kmem_slab" in own
    assert not [o for o in own if "others" in o]
    for name in OTHERS:
        other = linked(f"slate-{name}")
        its = {name, HAS_ALSO.get(name, name)}
        assert {o for o in other if o.startswith("mm/others/")} == {
            f"mm/others/{o}" for o in OTHERS_SHARED | its} | {
            f"mm/others/inspect/{o}" for o in its
            if (ROOT / f"mm/others/inspect/{o}.c").exists()}
        assert not [o for o in other if o.startswith(("mm/kmem_", "mm/debug/",
                                                      "mm/inspect/kmem_"))]
        assert {o for o in other - own if not o.startswith("symbols/")} <= {
            "kernel/shell/cmd_others", *(o for o in other
                                         if o.startswith("mm/others/"))}


def make(*arguments):
    return execute("make", "-n", f"BUILD={BUILD_NAME}", *arguments)


@pytest.mark.parametrize("arguments, error", [
    (["run", "ALLOCATOR=slop"], "'slop' is none of the other allocators, which "
                                "are bsd linux_slab linux_slub slmb slob "
                                "sunos svr4"),
    (["run", "ALLOCATOR=slob sunos"], "is none of the other allocators"),
    (["run", "ALLOCATOR=slob", "WORKSHOP=1"], "is for the product"),
    (["kernel", "ALLOCATOR=slob", "SANITIZE=1"], "is for the product"),
    (["watch", "ALLOCATOR=slob"], "is for kernel, run, iso"),
])
def test_make_refuses(arguments, error):
    done = make(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert error in " ".join(done.stderr.split()), done.stderr


# ---- planted mistakes -------------------------------------------------------

# What the mistake is; the file; the text that becomes another one; the case of
# mmtest that finds it.
MISTAKES = [
    ("a gap is lost", "slob",
     "        block_set(page, at, skip, rest);\n    else",
     "        block_lead(p, page, prev, rest);\n    else",
     "slob.E3_the_free_list_of_a_page"),
    ("free neighbours are not joined", "slob",
     "if (at + units == after && after != SLOB_UNITS) {", "if (0) {",
     "slob.E3_the_free_list_of_a_page"),
    ("the list does not rotate", "slob",
     "            list_remove(list);\n            list_insert_before(l, list);",
     "            ;", "slob.E4_the_list_rotates_to_the_page_that_was_used"),
    ("the header does not count for the list", "slob",
     "struct list *list = &slob_list[class_of(bytes)];",
     "struct list *list = &slob_list[class_of(size)];",
     "slob.E5_the_header_decides_the_list"),
    ("a full page stays on its list", "slob",
     "        if (p->slob_units == 0) {\n            list_remove(l);",
     "        if (p->slob_units == 0) {\n            ;",
     "slob.a_full_page_is_on_no_list"),
    ("an empty page is kept", "slob",
     "    empty = p->slob_units + units == SLOB_UNITS;", "    empty = false;",
     "slob.E6_large_requests_get_whole_pages"),
    ("best fit", "sunos",
     "(!fits || weight(*left) <= weight(*right))",
     "(!fits || weight(*left) >= weight(*right))",
     "sunos.better_fit_prefers_the_smaller_child"),
    ("a smaller node does not sink", "sunos",
     "    while (MAX(weight(left), weight(right)) > n->node_size) {",
     "    while (n->node_size == 0 && (left != NULL || right != NULL)) {",
     "sunos.a_node_sinks_below_larger_children"),
    ("a tree is not split by address", "sunos",
     "        if (t->node_addr < n->node_addr) {", "        if (false) {",
     "sunos.E3_one_tree_for_any_order"),
    ("a left neighbour is not joined", "sunos",
     "        } else if (n->node_addr + n->node_size == *addr) {",
     "        } else if (false) {", "sunos.E2_neighbours_are_joined"),
    ("a page of which part is used is returned", "sunos",
     "    first = ROUND_UP(addr, (uintptr_t)PAGE_SIZE);",
     "    first = addr & ~(uintptr_t)PAGE_MASK;",
     "sunos.parts_of_pages_stay"),
    ("a block without a node is forgotten", "sunos",
     "        note_later(addr, end - addr);", "        ;",
     "sunos.frees_that_wait"),
    ("a block that waits may be free already", "inspect/sunos",
     "if (!other_found(v, l, l->later_size * (size_t)8))", "if (false)",
     "sunos.check_finds_damage_in_frees_that_wait"),
    ("freed blocks come first", "bsd",
     "    b->bucket_last->block_next = block;\n    b->bucket_last = block;",
     "    bucket_push(b, block);", "bsd.E4_freed_blocks_wait_at_the_tail"),
    ("the lowest block comes first", "bsd",
     "(at + n * bytes)", "(at + (b->bucket_blocks - 1 - n) * bytes)",
     "bsd.E4_freed_blocks_wait_at_the_tail"),
    ("an empty list keeps its last block", "bsd",
     "        b->bucket_last = NULL;\n    page = ",
     "        ;\n    page = ",
     "bsd.E4_freed_blocks_wait_at_the_tail"),
    ("8 KiB go back at once", "bsd",
     "    if (likely(size <= BSD_MAX_SAVE))\n        small_free(p",
     "    if (likely(size < BSD_MAX_SAVE))\n        small_free(p",
     "bsd.E6_large_requests_return_their_pages"),
    ("every free page could go back", "bsd",
     " &&\n        b->bucket_free > 5 * b->bucket_blocks)", ")",
     "bsd.E5_memory_never_leaves_its_bucket"),
    ("blocks freed meanwhile are lost", "bsd",
     "    for (size_t n = 0; n < b->bucket_blocks; n++)",
     "    b->bucket_next = NULL;\n"
     "    for (size_t n = 0; n < b->bucket_blocks; n++)",
     "bsd.what_an_interrupt_does_meanwhile"),
    ("alignment does not choose the bucket", "bsd",
     "    return MAX(c->other_size, c->other_align);",
     "    return c->other_size;", "bsd.a_block_is_aligned_to_its_size"),
    ("every free joins", "svr4",
     "    } else if (slack >= 2) {", "    } else if (slack >= 2000) {",
     "svr4.E2_three_ways_to_free"),
    ("an accelerated free leaves the local block", "svr4",
     "        make_global(i, other);", "        put_local(i, other);",
     "svr4.E2_three_ways_to_free"),
    ("local blocks wait at the tail", "svr4",
     "    class_insert(c, b, 0, c->class_first);",
     "    class_insert(c, b, c->class_last, 0);",
     "svr4.locally_free_blocks_come_first"),
    ("the upper half is used", "svr4",
     "        put_local(j, b + bytes_of(j));",
     "        put_local(j, b);\n        b += bytes_of(j);",
     "svr4.E1_a_block_is_split"),
    ("a split block is not in use", "svr4",
     "        svr4_class[j--].class_splits++;",
     "        svr4_class[j].class_used--;\n"
     "        svr4_class[j--].class_splits++;", "svr4.E1_a_block_is_split"),
    ("buddies are not joined", "svr4",
     "i != SVR4_SMALL_CLASS && svr4_is_global(i, buddy)", "false",
     "svr4.E4_a_large_pool"),
    ("a large pool stays", "svr4",
     "    if (i == SVR4_LARGE_CLASS) {\n        pool_put(b);",
     "    if (i == SVR4_LARGE_CLASS) {\n        put_global(i, b);",
     "svr4.E4_a_large_pool"),
    ("a small pool with a local block is returned", "svr4",
     "        if (!svr4_is_global(top, pool + i))\n            return false;",
     "        if (i == pool_first(top) && !svr4_is_global(top, pool + i))\n"
     "            return false;", "svr4.pressure_returns_idle_pools"),
    ("pages are never returned", "supply",
     "    h->heap_back = run;", "", "svr4.large_requests_return_their_pages"),
    ("a page may have lost free blocks", "inspect/bsd",
     "return other_found_in(v, page) ==\n"
     "                   page->page_count * MIN(bytes, (size_t)PAGE_SIZE)",
     "return true", "bsd.check_finds_damage"),
    ("free blocks of a page may be neighbours", "inspect/slob",
     "if (at <= end ||", "if (at < end ||", "slob.check_finds_damage"),
    ("a page may be on any processor's list", "inspect/slob",
     "p->slob_cpu * sums->sum_classes + p->slob_class != i",
     "p->slob_class != i % sums->sum_classes", "slmb.check_finds_damage"),
    ("a free block may be part of another", "inspect/verify",
     "            return false;", "            continue;",
     "svr4.check_finds_blocks_that_overlap"),
    ("the first part of memory is all that is checked", "inspect/verify",
     "bit < end;", "bit < end && first == 0;",
     "svr4.check_finds_blocks_that_overlap"),
    ("the header does not count for a list", "slmb",
     "class = slmb_class_of(bytes);", "class = slmb_class_of(size);",
     "slmb.E1_lists_by_size"),
    ("a bound is not in its list", "slmb",
     "slmb_bound[i] < bytes", "slmb_bound[i] <= bytes",
     "slmb.E1_lists_by_size"),
    ("all processors use the first one's lists", "slmb",
     "    slmb_own(p, cpu);\n    list_insert_after(&slmb_list[cpu][",
     "    list_insert_after(&slmb_list[0][", "slmb.E2_a_page_for_each_list"),
    ("a full page stays with its processor", "slmb",
     "        if (full)\n            slmb_enlist(p, cpu);",
     "        if (full)\n            list_insert_after(\n"
     "                &slmb_list[p->slob_cpu][p->slob_class], &p->slob_link);",
     "slmb.E3_pages_go_to_the_processor_that_frees"),
    ("a page without blocks is kept", "slmb",
     "    empty = p->slob_units + units == SLOB_UNITS;", "    empty = false;",
     "slmb.gaps_and_single_units"),
    ("a queue gives its newest objects", "linux_slab",
     "    memmove(q->queue_entry, q->queue_entry + n,\n"
     "            q->queue_avail * sizeof(*q->queue_entry));", "",
     "linux_slab.E3_queues_of_one_processor"),
    ("free slabs have no limit", "linux_slab",
     "    while (k->cache_free_objects > k->cache_free_limit &&",
     "    while (k->cache_free_objects > 2 * k->cache_free_limit &&",
     "linux_slab.E3_queues_of_one_processor"),
    ("a queue that is used is reaped", "linux_slab",
     "    if (q->queue_touched) {", "    if (false) {",
     "linux_slab.a_touched_queue_stays"),
    ("an empty queue is not touched", "linux_slab",
     "    if (q->queue_avail == 0) /* it stays touched */\n        return;\n",
     "", "linux_slab.an_empty_queue_stays_touched"),
    ("free slabs come first", "linux_slab",
     "        bool partial = !list_empty(&k->cache.partial);",
     "        bool partial = list_empty(&k->cache_free);",
     "linux_slab.partial_slabs_come_first"),
    ("the first colour is none", "linux_slab",
     "__atomic_add_fetch(&k->cache_colour_next",
     "__atomic_fetch_add(&k->cache_colour_next",
     "linux_slab.E2_colours"),
    ("an index stays in an allocated object", "linux_slab",
     "        s->index = NULL; /* it was in this object */", "        ;",
     "linux_slab.an_index_in_an_object"),
    ("the shared queue is passed over", "linux_slab",
     "    if (n != 0) {", "    if (false) {",
     "linux_slab.E5_the_shared_queue"),
    ("the reaper takes free slabs that were needed", "linux_slab",
     "    if (!k->cache_free_touched)", "    if (true)",
     "linux_slab.E4_only_time_passes"),
    ("a shrink does not sort", "linux_slub",
     "&sorted[MIN(free, SHRINK_SORTED + 1u)]", "&sorted[free == 0]",
     "linux_slub.a_shrink_sorts_the_list"),
    ("a free slab always goes back", "linux_slub",
     "(empty && k->cache_partials >= k->cache_min) {\n            node_remove",
     "(empty) {\n            node_remove",
     "linux_slub.the_node_keeps_some_slabs"),
    ("a slab that was full is the node's", "linux_slub",
     "    }\n    cpu_add(cpu, s);\n}",
     "    }\n    node_add(k, s, true);\n}",
     "linux_slub.E3_a_slab_and_one_object"),
    ("objects that others freed are left", "linux_slub",
     "bool some = cpu_take(cpu);", "bool some = false;",
     "linux_slub.E6_another_processor_frees"),
    ("objects that others freed are lost", "linux_slub",
     "    *last = s->free;", "    *last = 0;",
     "linux_slub.both_lists_of_a_deactivated_slab"),
    ("larger objects are merged", "linux_slub",
     "k->cache.size == size)", "k->cache.size >= size)",
     "linux_slub.E7_like_caches_are_merged"),
    ("constructed objects are merged", "linux_slub",
     "constructed ? NULL : slub_alias", "slub_alias",
     "linux_slub.E7_like_caches_are_merged"),
    ("a link is in a constructed object", "linux_slub",
     "cache_offset = constructed ? end", "cache_offset = false ? end",
     "linux_slub.free_objects_stay_constructed"),
    ("a processor keeps all slabs", "linux_slub",
     "if (cpu_holds(cpu) >= k->cache_cpu_most + slub_2014) {", "if (false) {",
     "linux_slub.E4_what_stays_after_a_burst"),
    ("as of 2014 a processor keeps fewer objects", "linux_slub",
     "k->cache_cpu_most + slub_2014)", "k->cache_cpu_most)",
     "linux_slub.as_of_2014"),
    ("a slab that goes back is counted", "slabs",
     "    k->slabs += (size_t)sign;\n", "    k->slabs += sign > 0;\n",
     "linux_slab.E3_queues_of_one_processor"),
    ("a merged cache ends with the first", "slabs",
     "    last = --k->users == 0;", "    last = --k->users != 0;",
     "linux_slub.merged_caches_end_with_the_last"),
    ("a slab may be on no list", "slabs", "listed == sum->listed", "true",
     "linux_slub.check_finds_damage_in_slabs"),
]


def mistakes():
    """One of each allocator for `make test`, the others for `make test-all`."""
    seen = Counter()
    for what, name, *more in MISTAKES:
        seen[name] += 1
        yield pytest.param(name, *more, id=what.replace(" ", "-"),
                           marks=[long] if seen[name] > 1 else [])


@pytest.mark.spread
@pytest.mark.parametrize("name, old, new, case", mistakes())
def test_a_planted_mistake_is_found(tmp_path, name, old, new, case):
    program = mutants.Program("host/mmtest", [
        "-fsanitize=address,undefined", "-lcmocka", "-lpthread", "-lm"])
    mistaken = program.with_mistake(f"mm/others/{name}.c", [(old, new)],
                                    tmp_path)
    done = execute(mistaken, case, ASAN_OPTIONS="detect_leaks=0")
    assert done.returncode != 0, done.stdout
    assert f"not ok 1 - {case}" in done.stdout
