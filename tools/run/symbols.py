"""Writes the kernel's symbol table as C (kernel/lib/symbol.h).

    python3 -m tools.run.symbols --empty OUT.c     no entries, to link first
    python3 -m tools.run.symbols NM-OUTPUT OUT.c   from its `nm -n`

The table and the names are in .rodata.symbols, after the code. Linking the full
table moves no function, so the table has the addresses of functions as numbers.
Objects move: the linker fills in the addresses of global objects, and a static
object keeps its offset in its section.
"""

import re
import sys
from pathlib import Path

HEAD = """\
/* Made by tools/run/symbols.py. */
#include "kernel/lib/symbol.h"

#define IN_SYMBOLS __attribute__((section(".rodata.symbols")))

"""

# Names that GCC gives to variants of a function. A name with another dot is a
# NASM label inside a function.
VARIANT = re.compile(r"(\.(part|isra|constprop|cold|lto_priv|\d+))+$")

# Names that the linker script gives to the edges of sections.
SCRIPT = Path(__file__).resolve().parents[2] / "boot/linker.ld"
EDGES = set(re.findall(r"^ *(\w+) = \.", SCRIPT.read_text("utf-8"), re.M))

# No function is this long: an address this far after one is in a gap.
GAP = 1 << 20
PAGE = 4096


def read_nm(text):
    """The symbols in `nm -n` output as (address, kind, name)."""
    lines = (line.split() for line in text.splitlines())
    return [(int(fields[0], 16), fields[1], fields[2])
            for fields in lines if len(fields) == 3]  # 2 if undefined


def functions(symbols):
    """(address, name) of all functions, sorted, one for each address. The name
    is None where something else begins after a function."""
    best = {}
    ends = {symbols[-1][0] + PAGE} if symbols else set()
    for addr, kind, name in symbols:
        if kind in "aA":
            continue
        if kind not in "tTwW" or name in EDGES:
            ends.add(addr)
        elif "." not in VARIANT.sub("", name):
            rank = ("TtWw".index(kind), name)
            best[addr] = min(best.get(addr, rank), rank)
    table = []
    for addr in sorted(ends | best.keys()):
        inside = table and table[-1][1] is not None
        if inside and addr - table[-1][0] > GAP:
            table.append((table[-1][0] // PAGE * PAGE + PAGE, None))
            inside = False
        if addr in best:
            table.append((addr, best[addr][1]))
        elif inside:
            table.append((addr, None))
    return table


def objects(symbols):
    """The names of all global objects, and of the edges of sections."""
    return sorted({name for _, kind, name in symbols
                   if (kind in "DBR" or (kind == "T" and name in EDGES))
                   and "." not in name and not name.startswith("symbol_")})


def statics(symbols):
    """(section's start, offset, name) of static objects, without the number
    that GCC appends to the name of a function's static variable."""
    starts = {name: addr for addr, _, name in symbols
              if name in ("data_start", "bss_start")}
    found = []
    for addr, kind, name in symbols:
        start = {"d": "data_start", "b": "bss_start"}.get(kind)
        plain = re.sub(r"\.\d+$", "", name)
        if start in starts and re.fullmatch(r"\w+", plain) \
                and addr >= starts[start]:
            found.append((start, addr - starts[start], plain))
    return found


def write_table(called, named, local):
    """The C text. All names are in one array of characters: the compiler would
    put string literals into another section."""
    values = [(f"0x{addr:08x}", name) for addr, name in called]
    values += [(f"(uintptr_t){name}", name) for name in named]
    values += [(f"(uintptr_t){start} + {offset}", name)
               for start, offset, name in local]
    names = []
    entries = []
    at = 0
    for value, name in values:
        if name is None:
            entries.append(f"    {{{value}, 0}},")
        else:
            names.append(f'    "{name}\\0"')
            entries.append(f"    {{{value}, names + {at}}},")
            at += len(name) + 1
    return "\n".join(
        [f"extern const char {name}[];" for name in named] +
        ["", "static const char names[] IN_SYMBOLS ="] + names + ["    ;", "",
         "const struct symbol symbol_table[] IN_SYMBOLS = {"] + entries +
        ["};", "",
         f"const uint32_t symbol_functions IN_SYMBOLS = {len(called)};",
         f"const uint32_t symbol_count IN_SYMBOLS = {len(entries)};", ""])


EMPTY = """\
const struct symbol symbol_table[1] IN_SYMBOLS = {{0, 0}};

const uint32_t symbol_functions IN_SYMBOLS = 0;
const uint32_t symbol_count IN_SYMBOLS = 0;
"""


def main(argv):
    if len(argv) != 3:
        sys.exit(__doc__.strip())
    text = EMPTY
    if argv[1] != "--empty":
        symbols = read_nm(Path(argv[1]).read_text(encoding="utf-8"))
        called = functions(symbols)
        if not called:
            sys.exit(f"symbols.py: {argv[1]} names no function")
        text = write_table(called, objects(symbols), statics(symbols))
    Path(argv[2]).write_text(HEAD + text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv)
