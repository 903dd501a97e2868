"""A simulated processor cache (paper, section 4).

`Cache` is set-associative and replaces the least recently used line. `watch()`
touches the first bytes of each object, in rounds, and counts the misses.
`addresses()` has the allocated objects of a kernel cache, from the kernel's
list of slabs.
"""

from dataclasses import dataclass


class CacheError(Exception):
    """The cache cannot be built; the text says why."""


@dataclass(frozen=True)
class Geometry:
    """Bytes in total, lines in a set, bytes in a line."""
    name: str
    bytes: int
    ways: int
    line: int

    @property
    def sets(self):
        return self.bytes // (self.ways * self.line)

    def __str__(self):
        size = f"{self.bytes // 1024} KiB" if self.bytes % 1024 == 0 \
            else f"{self.bytes} bytes"
        ways = f"{self.ways} ways" if self.ways > 1 else "direct-mapped"
        return (f"{self.name}: {size}, {ways}, lines of {self.line} bytes: "
                f"{self.sets} sets")


# The data caches of processors that Slate runs on. (The 486's cache also holds
# instructions.)
MODELS = {g.name: g for g in (Geometry("486", 8 << 10, 4, 16),
                              Geometry("pentium", 8 << 10, 2, 32),
                              Geometry("mmx", 16 << 10, 4, 32))}


def geometry(text):
    """The Geometry of a name or BYTES:WAYS:LINE."""
    if text in MODELS:
        return MODELS[text]
    parts = text.split(":")
    if len(parts) != 3 or not all(p.isdecimal() and int(p) for p in parts):
        raise CacheError(f"there is no cache '{text}': {', '.join(MODELS)}, "
                         "or BYTES:WAYS:LINE, as in 8192:4:16")
    size, ways, line = map(int, parts)
    sets = size // (ways * line)
    if sets * ways * line != size or sets & (sets - 1) or line & (line - 1):
        raise CacheError(f"'{text}' is no cache: the bytes of a line and the "
                         "number of sets are powers of two, and their product "
                         "with the ways is the cache's size")
    return Geometry(text, size, ways, line)


class Cache:
    """The lines in the cache. Each set is a list, the most recently used line
    last."""

    def __init__(self, shape):
        self.shape = shape
        self.held = [[] for _ in range(shape.sets)]

    def touch(self, line):
        """Uses the line of that number. True if it was in the cache."""
        held = self.held[line % self.shape.sets]
        hit = line in held
        if hit:
            held.remove(line)
        elif len(held) == self.shape.ways:
            held.pop(0)
        held.append(line)
        return hit


def lines_of(shape, address, hot):
    """The numbers of the lines that hold the first `hot` bytes."""
    return range(address // shape.line, (address + hot - 1) // shape.line + 1)


@dataclass
class Watched:
    """The result of `watch`."""
    shape: Geometry
    addresses: list
    load: list        # by set: the different lines that the objects use
    touches: int      # of lines, in a round
    cold: int         # misses in the first round
    warm: int         # misses in the last round
    missed: list      # by object: True if it missed in the last round

    @property
    def used(self):
        """Sets that the objects use."""
        return sum(n > 0 for n in self.load)


def watch(shape, addresses, hot, rounds=2):
    """Touches the first `hot` bytes of each object, in this order, `rounds`
    times, starting with an empty cache."""
    cache = Cache(shape)
    wanted = {line for a in addresses for line in lines_of(shape, a, hot)}
    load = [0] * shape.sets
    for line in wanted:
        load[line % shape.sets] += 1
    misses = []
    for _ in range(rounds):
        missed = [sum(not cache.touch(line)
                      for line in lines_of(shape, a, hot)) for a in addresses]
        misses.append(sum(missed))
    touches = sum(len(lines_of(shape, a, hot)) for a in addresses)
    return Watched(shape, addresses, load, touches, misses[0], misses[-1],
                   [n > 0 for n in missed])


def addresses(cache):
    """The addresses of the allocated objects of a statistics.Cache, in the
    order in which its slabs were created."""
    return [slab.base + slab.colour + i * cache.chunk
            for slab in cache.slabs
            for i, cell in enumerate(slab.cells) if cell == "#"]


def power_of_two(size):
    """The bytes that a power-of-two allocator uses for `size`."""
    return 1 << (size - 1).bit_length()
