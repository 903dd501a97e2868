"""slate syms, dmesg: addresses by name, and what the kernel has printed."""

import target
from command import Command, parse_address
from target import Fail


class Syms(Command):
    """slate syms ADDR|SYMBOL ...
    From addresses to functions and source lines, and back.
    For an address: the function or object that contains it, how far in, and the
    line. For a symbol: its address. Addresses in a program are known when its
    symbols are (`slate symbols`).
    Example: slate syms kmain 0xc0101a02"""

    def run(self, args):
        for word in args.words:
            address = parse_address(word)
            if target.symbol_at(address) is None:
                raise Fail(f"no symbol is at 0x{address:08x}; `slab whatis` "
                           "says what is")
            line = target.source_line(address) if target.is_code(address) \
                else ""
            print(f"0x{address:08x} {target.symbol_text(address)}  {line}"
                  .rstrip())


class Dmesg(Command):
    """slate dmesg [-n LINES]
    What the kernel has printed, out of its memory.
    The last 16 KiB of output, oldest first; also of a kernel whose serial line
    is silent.
      -n  only the last lines
    Example: slate dmesg -n 5"""

    def run(self, args):
        console = target.record_of("console", "console.c")
        offset, kind = console.layout.members["history"]
        ring = console.data[offset:offset + kind.sizeof]
        at = console.history_end % kind.sizeof
        if console.history_end <= kind.sizeof:
            ring, at = ring[:console.history_end], 0
        lines = (ring[at:] + ring[:at]).decode("latin-1").splitlines()
        n = args.number("n", len(lines))
        print("\n".join(lines[len(lines) - min(n, len(lines)):]))
