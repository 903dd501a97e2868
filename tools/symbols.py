#!/usr/bin/env python3
"""Writes the kernel's table of its own symbols as C (kernel/lib/symbol.h).

    tools/symbols.py --empty OUT.c       a table without entries, to link first
    tools/symbols.py NM-OUTPUT OUT.c     from `nm -n` of what that linked

Table and names lie in one section, .symtab_slate, which the linker script
puts behind everything else: linking the full table in moves nothing.
"""

import re
import sys
from pathlib import Path

HEAD = """\
/* Made by tools/symbols.py. */
#include "kernel/lib/symbol.h"

#define IN_SYMTAB __attribute__((section(".symtab_slate")))

"""

# Where the table itself begins: what nm says of addresses from there on is
# true of the first link only.
TABLE = "symtab_start"

# A symbol's variants, as GCC names them. Any other dot is that of a label
# inside a function, in NASM's manner.
VARIANT = re.compile(r"(\.(part|isra|constprop|cold|lto_priv|localalias|\d+))+$")


def read_nm(text):
    """The symbols in `nm -n` output as (address, kind, name), but for those
    that the table's size moves."""
    symbols = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 3:  # undefined ones have no address
            symbols.append((int(fields[0], 16), fields[1], fields[2]))
    limit = min((s[0] for s in symbols if s[2] == TABLE), default=1 << 32)
    return [s for s in symbols if s[0] < limit]


def functions(symbols):
    """(address, name) of all functions, sorted, one for each address. The name
    is None where something else begins behind a function."""
    best = {}
    ends = set()
    for addr, kind, name in symbols:
        if kind in "tTwW":
            if "." not in VARIANT.sub("", name):
                rank = ("TtWw".index(kind), name)
                best[addr] = min(best.get(addr, rank), rank)
        elif kind not in "aA":
            ends.add(addr)
    table = []
    for addr in sorted(ends | best.keys()):
        if addr in best:
            table.append((addr, best[addr][1]))
        elif table and table[-1][1] is not None:
            table.append((addr, None))
    return table


def objects(symbols):
    """(address, name) of all data, sorted."""
    return sorted((addr, name) for addr, kind, name in symbols
                  if kind in "dDbBrR" and "." not in name)


def write_table(called, named):
    """The C text. Names follow each other in one array of characters, so that
    no string lands in a section of the compiler's choice."""
    names = []
    entries = []
    at = 0
    for addr, name in called + named:
        if name is None:
            entries.append(f"    {{0x{addr:08x}, 0}},")
        else:
            names.append(f'    "{name}\\0"')
            entries.append(f"    {{0x{addr:08x}, names + {at}}},")
            at += len(name) + 1
    return "\n".join(
        ["static const char names[] IN_SYMTAB ="] + names + ["    ;", "",
         "const struct symbol symbol_table[] IN_SYMTAB = {"] + entries +
        ["};", "",
         f"const uint32_t symbol_functions IN_SYMTAB = {len(called)};",
         f"const uint32_t symbol_count IN_SYMTAB = {len(entries)};", ""])


EMPTY = """\
const struct symbol symbol_table[1] IN_SYMTAB = {{0, 0}};

const uint32_t symbol_functions IN_SYMTAB = 0;
const uint32_t symbol_count IN_SYMTAB = 0;
"""


def main(argv):
    if len(argv) != 3:
        sys.exit(__doc__.strip())
    text = EMPTY
    if argv[1] != "--empty":
        symbols = read_nm(Path(argv[1]).read_text())
        called = functions(symbols)
        if not called:
            sys.exit(f"symbols.py: {argv[1]} names no function")
        text = write_table(called, objects(symbols))
    Path(argv[2]).write_text(HEAD + text)


if __name__ == "__main__":
    main(sys.argv)
