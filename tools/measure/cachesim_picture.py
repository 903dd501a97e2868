"""The pictures of cachesim: the places of a cache's objects, and the load of
each set of the processor's cache.
"""

from tools.measure.pictures import WIDTH, plural
from tools.measure.svg import Drawing, swatches

LEFT, TRACK = 96, 848        # the sets, from left to right, in pixels
FIELD = 180                  # the largest height of the field of objects
BARS = 84                    # the height of the bars


def _axis(d, y, shape):
    """The numbers of the sets below a row."""
    step = max(1 << max((shape.sets - 1).bit_length() - 4, 0), 1)
    d.line(LEFT, y, LEFT + TRACK, y, "axis")
    for number in range(0, shape.sets, step):
        x = LEFT + TRACK * number / shape.sets
        d.line(x, y, x, y + 4, "axis")
        d.text(x, y + 15, f"{number}", "small dim mid")
    d.text(LEFT - 8, y + 15, "set", "small dim end")
    return y + 18


def _objects(d, y, cache, watched, hot):
    """A row for each slab, a mark for each object's first bytes."""
    shape = watched.shape
    rows = {slab.base: i for i, slab in enumerate(cache.slabs)}
    bases = sorted(rows)
    pitch = max(min(7.0, FIELD / max(len(rows), 1)), 1.0)
    scale = TRACK / (shape.sets * shape.line)
    at = 0
    for number, (address, missed) in enumerate(zip(watched.addresses,
                                                   watched.missed)):
        while not 0 <= address - bases[at] < cache.slab_bytes:
            at = (at + 1) % len(bases)
        offset = address % (shape.sets * shape.line)
        d.rect(LEFT + offset * scale, y + rows[bases[at]] * pitch,
               max(min(hot, shape.sets * shape.line - offset) * scale, 2.0),
               max(pitch - 1, 0.8), "bad" if missed else "used",
               data_object=number)
    d.text(LEFT - 8, y + 9, "slab 1", "small dim end")
    bottom = y + len(rows) * pitch
    if len(rows) > 3:
        d.text(LEFT - 8, bottom, f"slab {len(rows)}", "small dim end")
    return bottom


def _bars(d, y, watched, most):
    """A bar for each set: the lines that the objects use in it."""
    shape = watched.shape
    height, width = BARS / most, TRACK / shape.sets
    for number, wanted in enumerate(watched.load):
        x, tip = LEFT + number * width, f"set {number}: {wanted} lines wanted"
        fits = min(wanted, shape.ways)
        thick = max(width - 1, 0.6)
        if wanted > fits:
            d.rect(x, y + BARS - wanted * height, thick,
                   (wanted - fits) * height, "bad", tip, data_set=number)
        if fits:
            d.rect(x, y + BARS - fits * height, thick, fits * height, "used",
                   tip, data_set=number)
    edge = y + BARS - shape.ways * height
    d.line(LEFT, edge, LEFT + TRACK, edge, "axis")
    d.text(LEFT - 8, edge + 4, plural(shape.ways, "way"), "small dim end")
    if most > 2 * shape.ways:
        d.text(LEFT - 8, y + 8, f"{most} lines", "small dim end")
    return y + BARS


def draw(rows, hot):
    """`rows` are (statistics.Cache, Watched, description)."""
    d = Drawing(WIDTH, "Objects in a processor\u2019s cache", "The sets into "
                "which the first bytes of objects fall, and how many lines "
                "are wanted in each")
    y = swatches(d, 0, 18, [
        ("used", "in the cache when it is touched again"),
        ("bad", "misses each time: its set is too small")], WIDTH) + 16
    most = max(max(w.load) for _, w, _ in rows)
    most = max(most, max(w.shape.ways for _, w, _ in rows))
    for cache, watched, words in rows:
        d.line(0, y - 20, WIDTH, y - 20)
        d.text(0, y, cache.name, "name ink")
        d.text(LEFT, y, words, "dim")
        d.text(WIDTH, y, f"{watched.warm:,} of {watched.touches:,} touches "
               "miss", "ink end")
        y = _objects(d, y + 14, cache, watched, hot) + 14
        y = _axis(d, _bars(d, y, watched, most), watched.shape) + 46
    return d
