"""slab selftest: the debugger's answers against the kernel shell's, field by
field. Two programs read the same memory in two ways; where they disagree, one
of them is wrong, or the kernel has run on since.
"""

import json
from pathlib import Path

import gdb

import common
from common import Command, Fail

# What a row of JSON is: the command, keys that only its rows have, and the
# keys that say which row it is.
ROWS = (("kmastat", {"chunk", "slab_objects"}, ("cache",)),
        ("kmastat", {"named", "oversize"}, ()),
        ("hash", {"entries", "grow_at"}, ("cache",)),
        ("ws", {"T", "reapable"}, ("cache",)),
        ("frag", {"lost", "percent"}, ("cache", "key")),
        ("colours", {"sets_uncoloured"}, ("cache",)),
        ("slabs", {"cells"}, ("slab",)),
        ("verify", {"checked", "first_bad"}, ("cache",)),
        ("buddyinfo", {"order", "allocs"}, ("order",)),
        ("buddyinfo", {"free_pages"}, ()),
        ("pages", {"frames", "buddy_free"}, ()),
        ("walk", {"addr", "words"}, ("addr", "state")))
COMMANDS = tuple(dict.fromkeys(name for name, *_ in ROWS))
TIMES = {"idle_ms"}  # these pass
ARGUMENTS = {"walk": ("alloc", "free", "slab", "bufctl", "hash")}


def classify(row):
    """(command, which row), or None of anything else."""
    for name, keys, which in ROWS:
        if keys <= row.keys():
            return name, tuple(row.get(k) for k in which)
    return None


def json_rows(text):
    """{(command, which): row} of the JSON lines in a text; the last counts."""
    rows = {}
    for line in text.splitlines():
        start = line.find("{")
        if start < 0 or not line.rstrip().endswith("}"):
            continue
        try:
            row = json.loads(line[start:].strip())
        except ValueError:
            continue
        key = classify(row) if isinstance(row, dict) else None
        if key:
            rows[key] = flat(row)
    return rows


def flat(row):
    """Members of members by a name with a dot."""
    out = {}
    for key, value in row.items():
        if isinstance(value, dict):
            out.update((f"{key}.{k}", v) for k, v in value.items())
        else:
            out[key] = value
    return out


def own_rows(commands):
    """The same from the debugger's own commands."""
    rows = {}
    for name in commands:
        for argument in ARGUMENTS.get(name, ("",)):
            text = gdb.execute(f"slab {name} -j {argument}", to_string=True)
            rows.update(json_rows(text))
    return rows


class Selftest(Command):
    name = "slab selftest"
    usage = "[FILE]"
    summary = "Compare the debugger's answers with the kernel shell's"
    details = """\
FILE is what the kernel shell printed, with `kmastat -j` in it, and whatever
else with -j (hash, ws, frag, colours, slabs, verify, buddyinfo, pages, walk);
else the copy of the serial line that `make gdb` keeps. The last answer counts.
Each field that differs is a line marked `!`: so it must be if the kernel has
run on since. $_exitcode is their number."""
    example = "slab selftest"
    most = 1
    wants = "wants one file at most"

    def transcript(self, name):
        path = Path(name) if name else \
            Path(common.kernel().filename).parent / "gdb-serial.log"
        try:
            return path.read_text(encoding="latin-1"), path
        except OSError as e:
            raise Fail(f"{path}: {e.strerror}; give the file that the shell's "
                       "`kmastat -j` went to") from e

    def run(self, args):
        text, path = self.transcript(args.word())
        theirs = json_rows(text)
        if not theirs:
            raise Fail(f"{path} has no answer to compare with: type "
                       "`kmastat -j` in the kernel shell first")
        names = [n for n in COMMANDS if any(k[0] == n for k in theirs)]
        own = own_rows(names)
        table = common.Table(("COMMAND", -10), ("ROWS", 6), ("FIELDS", 7),
                             ("DIFFER", 6))
        table.head()
        total, lines = 0, []
        for name in names:
            rows = {k: r for k, r in theirs.items() if k[0] == name}
            found = [d for k, r in rows.items()
                     for d in self.compare(k, r, own.get(k))]
            table.row(name, len(rows), sum(len(r) for r in rows.values()),
                      len(found))
            total += len(found)
            lines += found
        print("\n".join(lines + [
            "every field is the same" if total == 0 else
            f"{common.plural(total, 'difference')}"]))
        gdb.set_convenience_variable("_exitcode", total)

    def compare(self, key, theirs, own):
        name, which = key
        label = " ".join([name, *(str(w) for w in which if w is not None)])
        if own is None:
            yield f"! {label}: the shell has it, gdb has not"
            return
        for field in {**theirs, **own}:
            a, b = theirs.get(field), own.get(field)
            # A check that the debugger does not make is no difference.
            if a != b and field not in TIMES and field in own:
                yield f"! {label}: {field}: shell {a}, gdb {b}"


Selftest()
