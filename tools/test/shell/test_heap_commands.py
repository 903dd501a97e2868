"""The kernel shell's commands that look at the heap: the rows of each agree
with the playground's actions and with the rows of other commands."""
# Tests: kernel/shell/cmd_kmem*.c, kernel/shell/cmd_log.c
# Tests: kernel/shell/cmd_pages.c
# Tests: kernel/shell/cmd_kmem_users.c, kernel/shell/cmd_debug.c

import re

from tools.test.heap import (audited, box, records,  # noqa: F401, fixtures
                             rows)

WORDS = 3  # of an object that are shown


# ---- objects ---------------------------------------------------------------

def test_objects_are_those_of_slabs(shell, box):
    slabs = records(shell, f"slabs -j {box}")
    assert [slab["used"] for slab in slabs] == [20, 10]
    used = records(shell, f"cache -o alloc -j {box}")
    free = records(shell, f"cache -o free -j {box}")
    assert len(used) == 30 and len(free) == 10
    first = {slab["slab"]: slab["base"] + slab["colour"] for slab in slabs}
    for row in used + free:
        assert row["addr"] == first[row["slab"]] + 200 * row["index"]
        assert len(row["words"]) == WORDS and not row["bad"]
    for slab in slabs:
        cells = ["."] * 20
        for row in used:
            if row["slab"] == slab["slab"]:
                cells[row["index"]] = "#"
        assert "".join(cells) == slab["cells"]


def test_bufctls_of_large_objects_are_objects(shell):
    """Of the cache kmem_bufctl; each leads to its object and its slab."""
    shell.command("kmem create big 900; kmem alloc big 25")
    used = {row["addr"]: row for row in
            records(shell, "cache -o alloc -j big")}
    assert len(used) == 25
    own = [row["words"] for row in
           records(shell, "cache -o alloc -j kmem_bufctl")
           if row["words"][1] in used]
    assert len(own) == len(used)
    for _, obj, slab in own:
        assert used[obj]["slab"] == slab
    shell.command("kmem free big all; kmem destroy big")


def test_objects_of_all_caches(shell, box):
    stats = records(shell, "kmastat -j")
    text = shell.command("cache -o alloc")
    counts = {}
    for row in rows(text, r"^ 0x[0-9a-f]{8} (?P<cache>\w+)"):
        counts[row["cache"]] = counts.get(row["cache"], 0) + 1
    for stat in stats[:-1]:
        assert counts.get(stat["cache"], 0) == stat["inuse"], stat["cache"]
    assert text.splitlines()[-1] == f"{sum(counts.values())} rows"


def test_rows_of_objects_are_limited(shell, box):
    text = shell.command("cache -o alloc -n 3")
    assert len(rows(text, r"^ (?P<addr>0x\w+)")) == 3
    assert "3 rows, as many as asked for" in text
    assert len(records(shell, "cache -o free -jn2")) == 2


# ---- merging ---------------------------------------------------------------

def test_merged_caches_are_plain_and_of_one_size(shell):
    """Two partial slabs of one size become one; a constructor keeps a cache
    apart."""
    shell.command("kmem create one 300; kmem create two 304; "
                  "kmem create built 300 ctor")
    shell.command("kmem alloc one 1; kmem alloc two 12; kmem alloc built 1")
    caches = {s["cache"]: s for s in records(shell, "kmastat -j")[:-1]}
    head, *found, last = shell.command("kmastat --merged").splitlines()
    assert head.split() == "BUFFER CACHE INUSE SLABS SAVED/K".split()
    groups, group, total = [], [], 0
    for chunk, name, inuse, slabs, saved in map(str.split, found):
        if saved == "-":
            group.append(caches[name])
            objects = caches[name]["slab_objects"]
            assert int(inuse) == caches[name]["inuse"]
            assert int(slabs) == -(-int(inuse) // objects)
            continue
        assert name == "merged" and len(group) > 1
        assert {c["chunk"] for c in group} == {int(chunk)}
        assert not any(set("CDS") & set(c["flags"]) or c["modes"]
                       or c["kind"] == "internal" for c in group)
        assert int(inuse) == sum(c["inuse"] for c in group)
        assert int(slabs) == -(-int(inuse) // objects)
        apart = sum(-(-c["inuse"] // objects) for c in group)
        assert int(saved) == (apart - int(slabs)) * group[0]["slab_pages"] * 4
        groups.append({c["cache"] for c in group})
        group, total = [], total + int(saved)
    assert {"one", "two"} in groups and "built" not in set().union(*groups)
    hidden, held = sum(map(len, groups)), re.escape(f"saved: {total} of ")
    assert re.search(rf"^{len(caches)} caches would be "
                     rf"{len(caches) - hidden + len(groups)}; {held}.*"
                     rf"; hidden: the counts of {hidden}$", last), last
    shell.command("; ".join(f"kmem free {name} all; kmem destroy {name}"
                            for name in ("one", "two", "built")))


# ---- slabs, pages ----------------------------------------------------------

def test_slabs_of_all_caches(shell, box):
    stats = {stat["cache"]: stat for stat in records(shell, "kmastat -j")[:-1]}
    count = {}
    for slab in records(shell, "slabs -j"):
        count[slab["cache"]] = count.get(slab["cache"], 0) + 1
    assert count == {name: stat["slabs"] for name, stat in stats.items()
                     if stat["slabs"]}
    assert re.search(rf"^{box}:\n +SLAB", shell.command("slabs -v"), re.M)


def test_slabs_counts_slabs_by_objects_in_use(shell, box):
    """The bins go from 0 to 20 without a gap, the first and the last alone."""
    shell.command(f"kmem free {box} 3 fifo; kmem alloc {box} 20")
    used = [slab["used"] for slab in records(shell, f"slabs -j {box}")]
    bins = rows(shell.command(f"slabs {box}"),
                r"^ +(?P<low>\d+)(-(?P<high>\d+))? +(?P<slabs>\d+)(  =+)?$")
    at = 0
    for row in bins:
        low, high = int(row["low"]), int(row["high"] or row["low"])
        assert low == at
        assert int(row["slabs"]) == sum(low <= n <= high for n in used), row
        at = high + 1
    assert at == 21 and bins[0]["high"] is bins[-1]["high"] is None
    assert len(bins) == 12 and len(used) == 3


def test_the_slab_of_an_address_follows_the_freelist(shell, box):
    shell.command(f"kmem free {box} 15 random")
    slab = records(shell, f"slabs -j {box}")[0]
    text = shell.command(f"slabs {slab['base']:x}")
    cells = {}
    for m in re.finditer(r"(\d+) 0x([0-9a-f]{4}) (used|free) +(-|end|\d+)",
                         text):
        cells[int(m[1])] = (int(m[2], 16), m[3], m[4])
    assert len(cells) == 20
    for i, (offset, state, link) in cells.items():
        assert offset == slab["colour"] + 200 * i
        assert (state == "used") == (slab["cells"][i] == "#")
        assert (link == "-") == (state == "used")
    free = {i for i, cell in cells.items() if cell[1] == "free"}
    links = {i: cells[i][2] for i in free}
    at = (free - {int(n) for n in links.values() if n != "end"}).pop()
    walked = []
    while at != "end":
        walked.append(int(at))
        at = links[int(at)]
    assert sorted(walked) == sorted(free)


def test_page_runs_add_up(shell, box):
    runs = rows(shell.command("pages -r"),
                r"^ *(?P<first>\d+) +(?P<frames>\d+) +\d+ 0x\w+ "
                r"(?P<state>\w+) *(?P<owner>\S*)$")
    at = 0
    for run in runs:
        assert int(run["first"]) == at
        at += int(run["frames"])
    counts = records(shell, "pages -j")[-1]
    assert at == counts["frames"]
    for state in ("slab", "free", "kernel"):
        assert counts[state] == sum(int(run["frames"]) for run in runs
                                    if run["state"] == state)
    stat = records(shell, f"cache -j {box}")[0]
    assert stat["slabs"] == sum(int(run["frames"]) for run in runs
                                if run["owner"] == box)


# ---- whatis ----------------------------------------------------------------

def test_whatis_knows_the_parts_of_a_slab(shell, box):
    slab = records(shell, f"slabs -j {box}")[1]
    base, colour = slab["base"], slab["colour"]
    assert colour == 8
    free = records(shell, f"cache -o free -j {box}")[0]["addr"]
    for addr, said in (
            (base, "colour gap"),
            (base + colour + 3, "object 0 of cache box, in use"),
            (free + 5, r"cache box, free: 0x\w+ \+ 5, in the object"),
            (free + 197, "free: .* the link to the next free"),
            (base + colour + 4000, "unused tail"),
            (slab["slab"] + 4, "kmem_slab at the end")):
        assert re.search(said, shell.command(f"whatis {addr:x}")), said


# ---- debugging modes -------------------------------------------------------

def test_debug_switches_modes(shell):
    shell.command("kmem create spy 100; kmem alloc spy 3; kmem free spy 3")
    assert shell.command("debug +pf spy") == "spy: FP, was -\n"
    assert shell.command("debug +U spy") == "spy: FPU, was FP\n"
    assert shell.command("debug -F spy") == "spy: PU, was FPU\n"
    assert shell.command("debug =Z spy") == "spy: Z, was PU\n"
    table = rows(shell.command("debug"),
                 r"^(?P<cache>spy\S*) +(?P<modes>\S+) +(?P<inuse>\d+)")
    assert {row["cache"]: (row["modes"], row["inuse"]) for row in table} == \
        {"spy": ("Z", "0")}
    spy, = records(shell, "cache -j spy")
    assert (spy["flags"], spy["modes"]) == ("L", "Z")
    assert shell.command("debug =none spy") == "spy: -, was Z\n"
    assert "destroyed" in shell.command("kmem destroy spy")


def test_debug_refuses_a_cache_with_allocated_objects(shell):
    shell.command("kmem create spy 100; kmem alloc spy 3")
    assert "spy: 3 objects are allocated; free them first, or boot with " \
        "kmem.debug=FPZU,spy" in shell.command("debug +FPZU spy")
    text = shell.command("debug =FZ spy*")
    assert text.startswith("0 caches changed\n1 more with allocated objects")
    shell.command("kmem free spy all")
    assert shell.command("debug =FZ spy") == "spy: FZ, was -\n"
    assert "destroyed" in shell.command("kmem destroy spy")


def test_debug_takes_patterns_and_spares_the_allocators_own(shell):
    shell.command("kmem create spy_a 8; kmem create spy_b 8")
    assert shell.command("debug +U spy_*") == "2 caches changed\n"
    assert shell.command("debug -U spy_*") == "2 caches changed\n"
    assert shell.command("debug -U spy_*") == "0 caches changed\n"
    assert shell.command("debug -U spy_a") == "spy_a: -, as before\n"
    assert "it has no modes" in shell.command("debug +P kmem_slab")
    shell.command("kmem destroy spy_a; kmem destroy spy_b")


def test_debug_says_what_is_wrong_with_its_arguments(shell):
    for arguments, letter, word in (("foo FPZU", "o", "foo"),
                                    ("+FQ inode", "Q", "FQ")):
        said = shell.command(f"debug {arguments}")
        assert f"'{letter}' in '{word}' is no mode" in said
        assert "modes are FPZUTSG" in said
    assert "no cache is called 'nope'" in shell.command("debug FPZU nope")
    assert "wants modes" in shell.command("debug +")
    assert "usage: debug [+MODES|" in shell.command("debug +F inode file")


def test_mode_T_prints_a_line_per_operation(shell):
    shell.command("kmem create told 100")
    assert shell.command("debug +T told") == "told: T, was -\n"
    text = shell.command("kmem alloc told 2; kmem free told 1")
    assert re.findall(r"^trace: (\w+) told .* by play_\w+", text, re.M) == \
        ["alloc", "alloc", "free"], text
    shell.command("kmem free told all; kmem destroy told")


def test_log_lists_operations(shell, audited):
    entries = records(shell, "log -j -c spy -n 100")
    assert [e["op"] for e in entries] == ["free"] * 4 + ["alloc"] * 10
    assert [e["seq"] for e in entries] == \
        sorted((e["seq"] for e in entries), reverse=True)
    assert all(e["task"] == 1 and e["cpu"] == 0 and e["size"] in (0, 100)
               for e in entries)
    assert all(any("play_" in call for call in e["stack"]) for e in entries)
    buf = entries[0]["buf"]  # the last one freed
    same = records(shell, f"log -j {buf + 7:x}")
    assert [(e["op"], e["buf"]) for e in same[:2]] == [("free", buf),
                                                       ("alloc", buf)]
    assert same[0]["prev"] == same[1]["seq"] and same[1]["prev"] == 0
    text = shell.command("log -c spy -n 3")
    assert text.split()[:5] == ["SEQ", "T-AGE", "OP", "CPU", "TASK"]
    assert max(map(len, text.splitlines())) <= 80
    table = rows(text, r"^ *(?P<seq>\d+) +(?P<age>\d+\.\d{6}) (?P<op>\w+) +"
                       r"0 +(?P<task>\d+) (?P<cache>\w+) +"
                       r"(?P<slab>[0-9a-f]{8}) "
                       r"(?P<buf>[0-9a-f]{8}) (?P<caller>\S+)$")
    assert [int(row["seq"]) for row in table] == \
        [e["seq"] for e in entries[:3]]
    assert all("free" in row["caller"] for row in table)
    assert "< shell_execute+0x" in shell.command("log -S -n 1 -c spy")
    assert records(shell, "log -j -t 77") == []


def test_history_goes_back_to_the_start_of_life(shell, audited):
    shell.command("kmem free spy all")
    buf = records(shell, "log -j -c spy -n 1")[0]["buf"]
    text = shell.command(f"log -S {buf + 3:x}")
    ops = rows(text, r"^ *\d+ +[\d.]+ (?P<op>\w+) ")
    assert [row["op"] for row in ops] == ["free", "alloc"]
    assert "the buffer's first transaction" in text
    shell.command("kmem alloc spy 1")
    text = shell.command(f"log -S {buf:x}")
    assert len(rows(text, r"^ *\d+ +[\d.]+ (?P<op>\w+) ")) == 3
    assert "has no transaction" in shell.command("log kmem_caches")


def test_users_sums_by_caller(shell, audited):
    groups = records(shell, "cache -u -j spy")
    assert sum(g["count"] for g in groups) == 6
    assert all(g["bytes"] == 100 * g["count"] and g["size"] == 100
               for g in groups)
    chunk = records(shell, "cache -j spy")[0]["chunk"]
    assert groups[0]["waste"] == (chunk - 100) * groups[0]["count"]
    used = {row["addr"] for row in records(shell, "cache -o alloc -j spy")}
    since = {e["buf"]: e["us"] for e in records(shell, "log -j -c spy")
             if e["op"] == "alloc" and e["buf"] in used}
    assert since[groups[0]["sample"]] == min(since.values())
    assert groups[0]["task"] == 1
    text = shell.command("cache -u spy")
    assert re.search(r"^spy +6 +100 +600 +\d+ 0x\w+ +\S+ +1$", text, re.M)
    assert re.search(r"^ +play_alloc\+0x\w+ < (cmd_kmem\S* < )?"
                     r"shell_execute\+0x", text, re.M)
    everything = shell.command("cache -u")
    assert "not in mode U" in everything and "\nspy " in everything


def test_users_of_nothing(shell):
    shell.command("kmem create idle 100")
    assert shell.command("cache -u idle") == "no object of idle is in use\n"
    assert shell.command("cache -u -j idle") == ""
    shell.command("kmem destroy idle")


def test_users_of_an_age(shell, audited):
    shell.command("run sleep 1")
    groups = records(shell, "cache -u -j -m 1 spy")
    assert sum(g["count"] for g in groups) == 6
    text = shell.command("cache -u -m 1")
    assert re.search(r"^spy +6 +100 +600 ", text, re.M)
    assert shell.command("cache -u -m 100000 spy") == \
        "no object of spy is in use and known to be that old\n"


def test_leaks_names_suspects(shell, audited):
    text = shell.command("leaks")  # the playground knows all its objects
    assert "spy" not in text
    assert re.search(r"suspect: \d+ objects, .* are reached from", text)


def test_no_object_of_a_waiting_program_is_suspect(shell):
    pid = int(re.search(r"pid (\d+)", shell.command("run -b sleep 600"))[1])
    shell.command("echo")  # it runs when the shell waits
    tables = records(shell, "cache -o alloc -j page_table")
    text = shell.command("leaks")
    refs = shell.command(f"whatis -r {tables[0]['addr']:x}")
    shell.kill(f"-KILL {pid}")
    assert tables and re.search(r"^suspect: 0 objects", text, re.M), text
    # by its physical address, from the directory
    assert re.search(r"of cache page_directory, \+ ", refs), refs


def test_whatis_and_map_know_owners(shell, audited):
    freed, = records(shell, "log -j -c spy -n 1")
    used = records(shell, "cache -o alloc -j spy")[0]["addr"]
    text = shell.command(f"whatis {used + 5:x}")
    assert re.search(r"cache spy, in use: 0x\w+ \+ 5, in the object\n"
                     r"allocated by task 1 \(kernel\), [\d.]+ s ago\n", text)
    assert "play_alloc+0x" in text
    assert "in the redzone after" in shell.command(f"whatis {used + 101:x}")
    assert "redzone before the first" in shell.command(f"whatis {used - 3:x}")
    chunk = records(shell, "cache -j spy")[0]["chunk"]
    text = shell.command(f"whatis {used + chunk - 3:x}")
    assert "object 0 of" in text and "redzone before the next" in text
    text = shell.command(f"whatis {freed['buf']:x}")
    assert re.search(r"cache spy, free: .*\nfreed by task 1 .*"
                     r"\nallocated by task 1 ", text, re.S)
    text = shell.command(f"slabs {used:x}")
    table = rows(text, r"^[> ] *(?P<idx>\d+) 0x\w+ (?P<state>\w+) +\S+ +"
                       r"(?P<owner>\d+|-) +(?P<age>\S+)  (?P<caller>\S+)$")
    slab = records(shell, f"slabs -j {audited}")[0]
    assert len(table) == slab["objects"]
    assert sum(row["owner"] == "1" for row in table) == 10
    assert [row["state"] for row in table].count("used") == 6


def test_whatis_finds_references(shell, audited):
    objects = [row["addr"] for row in records(shell, "cache -o alloc -j spy")]
    notes = {row["words"][2]: row["addr"]  # struct play_object: links, address
             for row in records(shell, "cache -o alloc -j kmem_play")}
    text = shell.command(f"whatis -r {objects[2]:x}")
    assert f"0x{notes[objects[2]] + 8:08x} object 0x{notes[objects[2]]:08x} " \
        "of cache kmem_play, + 8" in text
    assert re.search(r"^(1 word points|\d+ words point) to it:$", text, re.M)
    cache = records(shell, "cache -o alloc -j kmem_play_cache")[0]["addr"]
    assert re.search(r": play_caches\+0x0$",
                     shell.command(f"whatis -r {cache:x}"), re.M)


def test_an_address_needs_no_prefix(shell):
    assert shell.command("whatis 100000").startswith("0x00100000: ")


def test_references_to_what_is_no_object(shell):
    assert shell.command("whatis -r 0").endswith(
        "\npointers are looked for only to objects\n")


# ---- on a stopped machine --------------------------------------------------

def test_all_of_it_works_after_a_panic(boot):
    machine = boot("kmem.debug=U,inode")
    machine.command("kmem create spy 100; debug +FPZU spy; kmem alloc spy 3; "
                    "run ls")
    machine.stopped("panic on purpose")
    obj = int(machine.stopped("cache -o alloc -j spy -n 1")
              .split('"addr":')[1].split(",")[0])
    for line, said in (
            ("debug", r"spy +FPZU"), ("log -n 3", "transactions kept"),
            (f"log {obj:x}", "first transact"),
            ("cache -u spy", r"spy +3 +100 +300 "),
            ("cache -u -m 1", "CACHE|that old"),
            ("leaks", "suspect: "),
            (f"whatis {obj:x}", "allocated by task 1"),
            (f"slabs {obj:x}", "play_alloc"),
            ("slabs spy", "###"), ("verify spy", r"spy +\d+ +0 "),
            ("pages -r", "slab +spy"), ("debug +S spy", r"3 objects are")):
        assert re.search(said, machine.stopped(line)), line
    assert len(machine.events("panic")) == 1
