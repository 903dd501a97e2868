"""The commands of `slab` in GDB after damage and errors: on a heap that is
broken, one invariant at a time; at errors that GDB stops at; and on the core
of a machine that has ended.
"""

import json
import re

import pytest

from tools.run import gdb
from test_gdb_slab import BOX, END, result_of, side_by_side

WORKLOAD = BOX + "run ls;"


@pytest.fixture(scope="module")
def work(request, kernel, shared_path):
    yield from side_by_side(request, {
        "broken": (run_broken, kernel), "stopped": (run_stopped, kernel),
        "dead": (run_dead, kernel, shared_path / "core")})


broken, stopped, dead = map(result_of, ("broken", "stopped", "dead"))


# ---- a broken heap ---------------------------------------------------------

# A word of memory, the value written to it, and the message of `slab verify`.
BROKEN = [
    ("$box->cache_slabs", "9", "slab list is shorter than its count"),
    ("$box->cache_slabs", "1", "slab list is longer than its count"),
    ("$box->cache_full_slabs", "9", "count of full slabs is wrong"),
    ("$box->cache_free_slabs", "9", "count of free slabs (T) is wrong"),
    ("$box->cache_ws_min", "99", "working set: m exceeds T"),
    ("$box->cache_max_slabs", "1",
     "most slabs ever is less than those there are"),
    ("$box->cache_allocs", "99",
     "objects in use are not allocations less frees"),
    ("$box->cache_align", "24", "alignment is not a power of two"),
    ("$box->cache_chunk", "100", "chunk is smaller than the object"),
    ("$box->cache_slab_chunks", "99", "chunks and colour do not fit the slab"),
    ("$box->cache_colour", "4", "next colour is out of range"),
    ("$box->cache_freelist", "&$box->cache_null",
     "freelist pointer is not the first free slab"),
    ("$slab->slab_link.next", "&$slab->slab_link",
     "slab list links disagree"),
    ("$slab->slab_link.next", "(void *)0x12345678",
     "slab list has an invalid link"),
    ("$slab->slab_link.prev", "0", "slab list links disagree"),
    ("$slab->slab_cache", "0", "slab belongs to another cache"),
    ("$slab->slab_base", "$slab->slab_base + 8",
     "slab base is not page aligned"),
    ("$slab->slab_chunks", "5", "slab has another number of chunks"),
    ("$slab->slab_colour", "4", "slab colour is out of range"),
    ("$slab->slab_refcnt", "99", "reference count exceeds the chunks"),
    ("$slab->slab_refcnt", "14",
     "freelist does not match the reference count"),
    ("$slab->slab_head", "(void *)0x12345678",
     "freelist does not match the reference count"),
    ("$slab->slab_head->bufctl_next", "$slab->slab_head",
     "freelist does not match the reference count"),
    ("page_array[((unsigned)$slab->slab_base - 0xc0000000) >> 12].page_owner",
     "0", "slab pages are not marked as the cache's"),
    ("$entry->bufctl_addr", "$entry->bufctl_addr + 8",
     "bufctl's address is no chunk of its slab"),
    ("$entry->bufctl_slab", "$slab",
     "bufctl points to a slab of another cache"),
    ("$entry->bufctl_next", "$entry",
     "hash holds more than the objects in use"),
    ("$entry->bufctl_next", "(void *)0x1234", "hash chain has an invalid link"),
    ("*(char *)$file", "0x12", "free buffer is not deadbeef throughout"),
    ("*((char *)$file + $files->cache_size)", "0x12",
     "redzone after a buffer is damaged"),
    ("*((char *)$file - 1)", "0x12", "redzone before a buffer is damaged"),
    ("buddy_zone.zone_list[0].next", "(void *)0xc0000000",
     "free list leads outside the page array"),
    ("buddy_zone.zone_total_pages", "1",
     "blocks do not add up to all managed pages"),
    ("page_array[300].page_state", "77", "page state is not a state"),
    ("segkmem.stat.stat_use[5]", "1",
     "slab pages of all caches are not segkmem's"),
    # Numbers that would keep a walk busy for ever.
    ("$box->cache_slab_pages", "0x7fffffff",
     "slab pages are not marked as the cache's"),
    ("$box->cache_align", "0", "alignment is not a power of two"),
    ("$box->cache_chunk", "0", "chunk is smaller than the object"),
    ("$slab->slab_chunks", "0x7fff", "slab has another number of chunks"),
    ("$cache(\"kstack\")->cache_hash_mask", "0xffffffff",
     "bufctl is in the wrong hash bucket"),
    ("$box->cache_slab_chunks", "0x7fffffff",
     "chunks and colour do not fit the slab"),
]
SETTINGS = [
    'set var $box = $cache("box")', 'set var $slab = $box->cache_freelist',
    'set var $files = $cache("file")',
    'set var $file = $files->cache_freelist->slab_head->bufctl_addr',
    "slab walk hash kstack -n 1",
    "set var $entry = (struct kmem_bufctl *)$obj"]
TWICE = ["set var $box->cache_slabs = 9", "set var $slab->slab_cache = 0",
         "set var $files->cache_colour = 4",
         "set var buddy_zone.zone_total_pages = 1", "slab verify -j # twice",
         "print $_exitcode # twice"]
LOOKS = ("slab slabs box", "slab slabs -j box", "slab kmastat", "slab hash",
         "slab map $slab", "slab why box", "slab freelist $slab",
         "slab walk free box",
         "slab walk hash kstack", "slab whatis $slab", "slab frag",
         "slab colours box", "slab cache box", "slab leaks", "slate pages")


def cache_of(place):
    """The broken cache; "" if it is not just one."""
    names = {"$box": "box", "$slab": "box", "page_array[((": "box",
             "$entry": "kstack", "*": "file"}
    return next((cache for start, cache in names.items()
                 if place.startswith(start)), "")


def run_broken(kernel):
    """{number: what `slab verify` and the other commands said}."""
    asked = list(SETTINGS)
    for n, (place, value, _) in enumerate(BROKEN):
        asked += [f"set var $was = {place} # {n}",
                  f"set var {place} = {value} # {n}",
                  f"slab verify {cache_of(place)} # {n}",
                  f"print $_exitcode # {n}",
                  *(f"{look} # {n}" for look in LOOKS if n % 5 == 0),
                  f"set var {place} = $was # {n}"]
    asked += ["slab verify # end", "print $_exitcode # end", *TWICE]
    said = gdb.Session(kernel, WORKLOAD + "poweroff", [(END, asked)],
                       append="kmem.debug=PZ,file").said[0]
    assert said["slab verify # end"].endswith("every invariant holds\n"), said
    return said


@pytest.mark.parametrize("n", range(len(BROKEN)),
                         ids=lambda n: f"{n}: {BROKEN[n][2]}")
def test_verify_finds(broken, n):
    place, value, kind = BROKEN[n]
    for line in (f"set var $was = {place} # {n}",
                 f"set var {place} = {value} # {n}"):
        assert broken[line] == "", broken[line]
    text = broken[f"slab verify {cache_of(place)} # {n}"]
    rows = [row for row in text.splitlines() if row.startswith("!")]
    assert broken[f"print $_exitcode # {n}"].split()[-1] == str(len(rows))
    assert any(row.endswith(kind) for row in rows), text
    if place.startswith("$box") or place.startswith("$slab"):
        assert rows[0].startswith("!box "), text


def test_verify_counts(broken):
    assert broken["print $_exitcode # end"].endswith(" = 0\n")
    assert broken["print $_exitcode # twice"].endswith(" = 4\n")
    rows = [json.loads(row) for row in
            broken["slab verify -j # twice"].splitlines()]
    assert sum(bool(row["bad"]) for row in rows) == 4


@pytest.mark.parametrize("look", LOOKS)
def test_commands_get_over_it(broken, look):
    """Every command ends, with a table or with one line of error."""
    for n in range(0, len(BROKEN), 5):
        text = broken[f"{look} # {n}"]
        assert "Traceback" not in text and text, (BROKEN[n], text)
        assert "Error" not in text, (BROKEN[n], text)
        if text.startswith("error: "):
            assert text.count("\n") == 1, (BROKEN[n], text)


# ---- stopping at events ----------------------------------------------------

# Each at the place where the one before has stopped.
STOPS = ["slab break alloc -c box -n 3", "continue # alloc",
         "slab explain # alloc", "delete # alloc",
         "slab break free -c box", "continue # free",
         "print $slab_state($edx)", "delete # free",
         "slab break grow -c box", "continue # grow", "slab explain # grow",
         "delete # grow",
         "set var $c = $cache(\"pipe\")",
         "slab break alloc -c pipe", "continue # pipe", "delete # pipe",
         "slab break grow -c pipe", "continue # pipe grow", "finish",
         "set var $f = (char *)$c->cache_freelist->slab_head->bufctl_addr",
         "set var $f[25] = 0x34", "delete # pipe grow",
         "slab break error -c pipe", "continue # error",
         "print (char *)((struct kmem_error_record *)$eax)->error_at - $f",
         "tbreak mm_panic", "continue # panic", "slab explain # panic",
         "slab debug # panic"]


def run_stopped(kernel):
    return gdb.Session(
        kernel, "kmem create box 200;kmem alloc box 20;kmem free box 1;"
        "kmem alloc box 2;run sh -c 'ls|wc';poweroff", [("play_alloc", STOPS)],
        append="kmem.debug=PU,pipe").said[0]


def test_break_at_the_third_allocation(stopped):
    text = stopped["continue # alloc"]
    assert re.search(r"^slab break alloc: cache box, object 0x\w+190, "
                     r"number 3$", text, re.M), text
    assert "works on box" in stopped["slab explain # alloc"]


def test_break_at_a_free(stopped):
    text = stopped["continue # free"]
    assert re.search(r"^slab break free: cache box, object 0x\w+$", text,
                     re.M), text
    assert stopped["print $slab_state($edx)"].endswith('"used"\n')


def test_break_at_growing(stopped):
    assert "slab break grow: cache box\n" in stopped["continue # grow"]
    assert "kmem_cache_grow works on box" in stopped["slab explain # grow"]
    assert "1 full" in stopped["slab explain # grow"]


def test_break_at_an_error(stopped):
    text = stopped["continue # error"]
    assert re.search(r"^slab break error: modified, cache pipe, object 0x",
                     text, re.M), (text, stopped)
    said = stopped["slab explain # panic"]
    assert "works on pipe.\n" in said and "(section 6)" in said, said
    assert "last: buffer modified after being freed" in \
        stopped["slab debug # panic"], stopped
    answer = [v for k, v in stopped.items() if "error_at" in k][0]
    assert answer.endswith(" = 25\n"), answer


# ---- a core ----------------------------------------------------------------

OF_CORE = ["slab kmastat", "slab verify", "slab slabs -j", "slab leaks",
           "slab log -n 5", "slab users inode", "slab hash",
           "slab explain box", "slab pages", "slab refs $cache(\"box\")"]


def run_dead(kernel, file):
    """GDB's output for a machine, and then for its core."""
    live = gdb.Session(kernel, WORKLOAD + "poweroff", [(END, OF_CORE)],
                       append="kmem.debug=U,inode", core_at=0,
                       core_file=file).said[0]
    return live, gdb.examine(kernel, file,
                             [*OF_CORE, "slab trace box on"])


@pytest.mark.parametrize("line", OF_CORE)
def test_a_core_answers_as_the_machine_did(dead, line):
    live, core = dead
    assert live[line] and not live[line].startswith("error")
    assert core[line] == live[line]


def test_a_core_cannot_be_changed(dead):
    assert dead[1]["slab trace box on"] == \
        "error: slab trace: this target cannot be written to: a memory " \
        "dump?\n"
