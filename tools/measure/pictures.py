"""The three pictures of a Statistics: slabs, buddy map, memory over time.

Each function returns a svg.Drawing. A length that means bytes is to scale;
units are on the axes or in the heading.
"""

from tools.measure.statistics import PAGE, STATES
from tools.measure.svg import Drawing, swatches

WIDTH = 960
EACH_STATE = 8       # slabs of each state that are drawn, as `slabs` does
SMALL_IN_ROW = 28    # slabs of one object in a row


def size(count):
    """Bytes with a unit: 512 B, 12 KiB, 1.4 MiB."""
    if count < 1024:
        return f"{count} B"
    if count < 1 << 20:
        kib = count / 1024
        return f"{kib:.0f} KiB" if kib >= 10 or kib == int(kib) \
            else f"{kib:.1f} KiB"
    return f"{count / (1 << 20):.1f} MiB"


def plural(count, word):
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def palette(statistics):
    """The class of each cache's colour, the same in all pictures. The nine
    caches with the largest maximum have their own."""
    most = {c.name: c.mem for c in statistics.caches.values()}
    for sample in statistics.samples:
        for name, mem in sample.mem.items():
            most[name] = max(most.get(name, 0), mem)
    ranked = sorted((n for n in most if most[n]), key=lambda n: -most[n])
    return {name: f"k{i}" if i < 9 else "kx" for i, name in enumerate(ranked)}


# ---- slabs -----------------------------------------------------------------

LEFT, TRACK = 132, 724       # where a slab is drawn, in pixels
ROW = 12


def _heading(d, y, cache, kind):
    d.line(0, y - 20, WIDTH, y - 20)
    d.rect(0, y - 10, 12, 11, kind)
    d.text(18, y, cache.name, "name ink" if not cache.bad else "name inkbad")
    states = [sum(s.state == state for s in cache.slabs) for state in STATES]
    parts = [f"objects of {cache.size:,} B"
             + (f" in {cache.chunk:,}" if cache.chunk != cache.size else ""),
             f"{cache.slab_objects} in a slab of {size(cache.slab_bytes)}",
             ", ".join(f"{n} {state}" for n, state in zip(states, STATES)
                       if n) or "no slab"]
    if cache.colour_max:
        parts.insert(2, f"colours 0 to {cache.colour_max} by {cache.align}")
    d.text(max(LEFT, 32 + 8.6 * len(cache.name)), y, " \u00b7 ".join(parts),
           "dim")
    d.text(WIDTH, y, f"{cache.inuse:,} of {cache.total:,} allocated, "
           f"{size(cache.mem)}", "dim end")


def _chosen(cache, each):
    """The slabs to draw, in list order, and the number of others by state."""
    seen = dict.fromkeys(STATES, 0)
    drawn = []
    for slab in cache.slabs:
        seen[slab.state] += 1
        if not each or seen[slab.state] <= each:
            drawn.append(slab)
    left = {state: n - each for state, n in seen.items()
            if each and n > each}
    return drawn, left


def _ruler(d, y, cache):
    step = 1024
    while cache.slab_bytes / step > 8:
        step *= 2
    for at in range(0, cache.slab_bytes + 1, step):
        x = LEFT + TRACK * at / cache.slab_bytes
        d.line(x, y - 3, x, y, "axis")
        d.text(x, y - 5, f"{at // 1024} KiB" if at else "0", "small dim mid")


def _cell(d, cache, slab, index, x, y, scale, kind, tips):
    used = index < len(slab.cells) and slab.cells[index] == "#"
    at = slab.base + slab.colour + index * cache.chunk
    tip = f"object {index}, {'allocated' if used else 'free'}: 0x{at:08x}"
    d.rect(x + (slab.colour + index * cache.chunk) * scale, y,
           max(cache.size * scale - 0.4, 0.5), ROW,
           f"used {kind}" if used else "free cell", tip if tips else "")


def _inside(d, cache, slab, x, y, width, kind, tips):
    """One slab, `width` pixels wide: colour, objects, tail, header."""
    scale = width / slab.bytes
    end = slab.colour + slab.objects * cache.chunk
    tail = slab.bytes - end - cache.header
    d.rect(x, y, width, ROW, "tail", f"unused tail: {tail} B" if tips else "")
    if slab.colour:
        d.rect(x, y, slab.colour * scale, ROW, "colour",
               f"colour: {slab.colour} B before the first object",
               data_colour=slab.colour)
    d.rect(x + slab.colour * scale, y, (end - slab.colour) * scale, ROW,
           "round")
    for index in range(slab.objects):
        _cell(d, cache, slab, index, x, y, scale, kind, tips)
    if cache.header:
        d.rect(x + (slab.bytes - cache.header) * scale, y,
               cache.header * scale, ROW, "header",
               f"kmem_slab: {cache.header} B")


def _label(d, y, cache, slab, tips):
    """The address of a slab; in a drawing without tips its number."""
    name = f"0x{slab.base:08x}" if tips else \
        f"slab {cache.slabs.index(slab) + 1}"
    d.text(13, y + 10, name, "mono inkbad" if slab.bad else "mono dim")


def _row(d, y, cache, slab, kind, tips):
    if slab.freelist:
        d.text(0, y + 10, "\u25b6", "small ink",
               "the freelist pointer: the next object comes from here")
    _label(d, y, cache, slab, tips)
    d.text(LEFT - 8, y + 10, f"+{slab.colour}", "mono end "
           + ("ink" if slab.colour else "dim"), f"colour {slab.colour}")
    _inside(d, cache, slab, LEFT, y, TRACK, kind, tips)
    d.text(LEFT + TRACK + 10, y + 10,
           f"{slab.used}/{slab.objects} {slab.state}", "mono dim")
    return y + ROW + 5


def _small_row(d, y, cache, slabs, kind, tips):
    """Slabs of one object, side by side."""
    pitch = TRACK / SMALL_IN_ROW
    _label(d, y, cache, slabs[0], tips)
    for i, slab in enumerate(slabs):
        if slab.freelist:
            d.text(LEFT + i * pitch + pitch / 2 - 1, y + ROW + 8, "\u25b2",
                   "small ink mid", "the freelist pointer")
        _inside(d, cache, slab, LEFT + i * pitch, y, pitch - 2.5, kind, tips)
    return y + ROW + (13 if any(s.freelist for s in slabs) else 5)


def _cache(d, y, cache, kind, each, tips):
    small = cache.slab_objects == 1
    drawn, left = _chosen(cache, each * SMALL_IN_ROW if small else each)
    _heading(d, y, cache, kind)
    y += 10
    if small:
        for at in range(0, len(drawn), SMALL_IN_ROW):
            y = _small_row(d, y, cache, drawn[at:at + SMALL_IN_ROW], kind,
                           tips)
    elif drawn:
        y += 14
        _ruler(d, y - 2, cache)
        for slab in drawn:
            y = _row(d, y, cache, slab, kind, tips)
    if left:
        d.text(LEFT, y + 10, "\u2026 and " + ", ".join(
            f"{n} more {state}" for state, n in left.items())
            + " (not drawn)", "dim")
        y += 18
    return y + 26


def slabs(statistics, colours=None, only=None, each=EACH_STATE, tips=True):
    """Every cache's slabs as rows of cells. `only` names the caches; `each`
    limits the slabs of a state (0: all). Objects have class used or free."""
    colours = colours or palette(statistics)
    d = Drawing(WIDTH, "Slabs", "Each slab of each cache to scale, a cell per "
                "object, with its colour, unused tail and header")
    y = swatches(d, 0, 18, [
        ("used", "allocated object, in the colour of its cache"),
        ("free cell", "free object"),
        ("colour", "colour: bytes before the first object"),
        ("round", "rounding, extra word, guard"), ("tail", "unused tail"),
        ("header", "kmem_slab"),
        ("pointer", "freelist pointer: the next object comes from here"),
    ], WIDTH)
    d.text(0, y, "A slab is full when all its objects are allocated (the "
           "paper\u2019s \u201cempty\u201d) and free when none is (the "
           "paper\u2019s \u201ccomplete\u201d); others are partial.", "dim")
    y += 44
    caches = statistics.by_memory()
    if only:
        caches = [statistics.caches[name] for name in only]
    for cache in caches:
        if cache.slabs:
            y = _cache(d, y, cache, colours[cache.name], each, tips)
    return d


# ---- buddy -----------------------------------------------------------------

ACROSS = 256                 # frames in a row: 1 MiB
ROW_LEAST = 18               # pixels: its label and its blocks can be read
MAP_LEFT, MAP_TOP, MAP_WIDTH = 56, 26, 640
OWNERS = {"free": ("empty", "free, in buddy\u2019s lists"),
          "reserved": ("reserved", "holes, BIOS, devices"),
          "kernel": ("kernel", "kernel image, page array"),
          "user": ("user", "programs"),
          "oversize": ("oversize", "kmem_alloc above the classes"),
          "allocated": ("kx", "allocated by buddy"),
          "tail": ("bad", "blocks without a first frame")}


def _block(d, run, first, frames, kind, row):
    """A block is a rectangle, because its size and address are powers of two.
    Frames outside of blocks are cut into rows."""
    cell = MAP_WIDTH / ACROSS
    tip = (run.cache or OWNERS.get(run.state, ("", run.state))[1]) + \
        (f", order {run.order}" if run.order is not None else "") + \
        f": frame {first:,}, {size(frames * PAGE)}"
    more = {"data_frames": frames} if run.order is not None else {}
    if first % ACROSS == 0 and frames % ACROSS == 0:
        pieces = [(first, ACROSS, frames // ACROSS)]
    else:
        pieces = []
        while frames:
            width = min(frames, ACROSS - first % ACROSS)
            pieces.append((first, width, 1))
            first, frames = first + width, frames - width
    for at, width, rows in pieces:
        gap = 0.6 if run.order is not None else 0
        d.rect(MAP_LEFT + at % ACROSS * cell, MAP_TOP + at // ACROSS * row,
               width * cell - gap, rows * row - gap,
               kind + (" block" if run.state == "free" else ""), tip, **more)
        if run.state == "free" and width * cell > 30:
            d.text(MAP_LEFT + at % ACROSS * cell + width * cell / 2,
                   MAP_TOP + at // ACROSS * row + rows * row / 2 + 3.5,
                   f"order {run.order}" if width * cell > 60
                   else str(run.order), "small dim mid")


def _orders(d, x, y, statistics):
    """Free blocks by order, as a table with bars of memory."""
    d.text(x, y, "Free blocks", "name ink")
    d.text(x, y + 20, "order", "dim")
    d.text(x + 78, y + 20, "block", "dim end")
    d.text(x + 118, y + 20, "free", "dim end")
    d.text(x + 232, y + 20, "memory", "dim end")
    y += 38
    most = max([n << o for o, n in statistics.orders.items()] + [1])
    for order, count in sorted(statistics.orders.items()):
        pages = count << order
        d.text(x + 14, y, str(order), "ink mid")
        d.text(x + 78, y, size(PAGE << order), "dim end")
        d.text(x + 118, y, f"{count:,}", "ink end")
        if pages:
            d.rect(x + 128, y - 8, max(44 * pages / most, 1), 9, "user")
        d.text(x + 232, y, size(pages * PAGE) if pages else "\u2013",
               "dim end")
        y += 17
    return y


def _owner_legend(d, x, y, statistics, colours):
    pages = {}
    for run in statistics.runs:
        kind = colours.get(run.cache, "kx") if run.cache \
            else OWNERS.get(run.state, ("bad",))[0]
        name = run.cache if run.cache and kind != "kx" else \
            "other caches" if run.cache else \
            OWNERS.get(run.state, ("", run.state))[1]
        pages[kind, name] = pages.get((kind, name), 0) + run.frames
    d.text(x, y, "Owners", "name ink")
    y += 20
    for (kind, name), n in sorted(pages.items(), key=lambda item: -item[1]):
        d.rect(x, y - 9.5, 12, 11, kind + (" block" if kind == "empty"
                                           else ""))
        d.text(x + 18, y, name, "ink")
        d.text(x + 232, y, size(n * PAGE), "dim end")
        y += 17
    return y


def buddy(statistics, colours=None):
    """Physical memory, block by block. A block has the attribute data-frames;
    frames outside of blocks (holes, the kernel) do not."""
    colours = colours or palette(statistics)
    d = Drawing(WIDTH, "Buddy map", "Each block of physical memory by order "
                "and owner")
    frames = max((r.frame + r.frames for r in statistics.runs), default=0)
    rows = -(-frames // ACROSS)
    row = max(ROW_LEAST, min(36, 720 / max(rows, 1)))
    d.text(MAP_LEFT, 14, "A row is 1 MiB, 256 frames of 4 KiB; a rectangle is "
           "a block.", "dim")
    for at in range(rows):
        d.text(MAP_LEFT - 8, MAP_TOP + at * row + row / 2 + 4, f"{at} MiB",
               "small dim end")
    for run in statistics.runs:
        kind = colours.get(run.cache, "kx") if run.cache \
            else OWNERS.get(run.state, ("bad",))[0]
        for first, count in run.blocks():
            _block(d, run, first, count, kind, row)
    x = MAP_LEFT + MAP_WIDTH + 32
    y = _owner_legend(d, x, 34, statistics, colours)
    if statistics.orders:
        _orders(d, x, y + 24, statistics)
    return d


# ---- memory over time ------------------------------------------------------

PLOT_LEFT, PLOT_TOP, PLOT_WIDTH, PLOT_HEIGHT = 64, 16, 620, 340


def step_of(span, parts):
    """A round step that divides `span` into at most `parts`."""
    unit = 1
    while True:
        for factor in (1, 2, 5):
            if span <= factor * unit * parts:
                return factor * unit
        unit *= 10


def _layers(statistics, colours):
    """(name, class, bytes at each sample) from the bottom of the stack up."""
    samples = statistics.samples
    layers = [(name, kind, [s.mem.get(name, 0) for s in samples])
              for name, kind in colours.items() if kind != "kx"]
    named = {name for name, _, _ in layers}
    rest = [sum(m for n, m in s.mem.items() if n not in named)
            for s in samples]
    layers = [layer for layer in layers if any(layer[2])]
    if any(rest):
        layers.append(("other caches", "kx", rest))
    users = [s.user * PAGE for s in samples]
    if any(users):
        layers.append(("programs", "user", users))
    return layers


def _axes(d, x_of, y_of, begin, end, most):
    unit, word = (1 << 20, "MiB") if most >= 4 << 20 else (1024, "KiB")
    step = step_of(most / unit, 6)
    value = 0
    while value * unit <= most * 1.0001:
        y = y_of(value * unit)
        d.line(PLOT_LEFT, y, PLOT_LEFT + PLOT_WIDTH, y)
        d.text(PLOT_LEFT - 8, y + 4, f"{value:,} {word}" if value else "0",
               "small dim end")
        value += step
    step = step_of(end - begin, 8)
    bottom = PLOT_TOP + PLOT_HEIGHT
    for ms in range(-(-begin // step) * step, end + 1, step):
        d.line(x_of(ms), bottom, x_of(ms), bottom + 4, "axis")
        d.text(x_of(ms), bottom + 17,
               f"{ms / 1000:g} s" if step % 100 == 0 else f"{ms:,} ms",
               "small dim mid")
    d.line(PLOT_LEFT, bottom, PLOT_LEFT + PLOT_WIDTH, bottom, "axis")
    d.text(PLOT_LEFT + PLOT_WIDTH / 2, bottom + 36, "guest time since boot",
           "dim mid")


def _marks(d, x_of, marks, end):
    """A line where each command began, and a list of them below the axis."""
    y = PLOT_TOP + PLOT_HEIGHT + 62
    taken = -20
    for number, mark in enumerate(marks, 1):
        if mark.ms <= end:
            x = x_of(mark.ms)
            d.line(x, PLOT_TOP, x, PLOT_TOP + PLOT_HEIGHT, "mark")
            at = max(x, taken + 9)    # commands of one moment: side by side
            d.text(at, PLOT_TOP - 4, str(number), "small ink mid")
            taken = at + 5.5 * (len(str(number)) - 1)
        d.text(PLOT_LEFT, y, str(number), "ink end")
        d.text(PLOT_LEFT + 70, y, f"{mark.ms:,} ms", "dim end")
        d.text(PLOT_LEFT + 82, y, mark.command, "mono ink")
        y += 17


def _layer_legend(d, layers):
    x, y = PLOT_LEFT + PLOT_WIDTH + 28, PLOT_TOP + 12
    d.text(x, y, "From the top", "name ink")
    d.text(WIDTH - 66, y, "most", "dim end")
    d.text(WIDTH, y, "last", "dim end")
    y += 20
    for name, kind, values in reversed(layers):
        d.rect(x, y - 9.5, 12, 11, kind)
        d.text(x + 18, y, name, "ink")
        d.text(WIDTH - 66, y, size(max(values)), "dim end")
        d.text(WIDTH, y, size(values[-1]), "dim end")
        y += 17


def memory(statistics, colours=None):
    """Memory of each cache at each sample, stacked, with the programs' memory
    on top. A value is drawn up to the next sample."""
    colours = colours or palette(statistics)
    samples = statistics.samples
    d = Drawing(WIDTH, "Memory over time", "Memory by cache while the workload "
                "ran, stacked")
    d.height = PLOT_TOP + PLOT_HEIGHT + 40
    if len(samples) < 2:
        d.text(PLOT_LEFT, PLOT_TOP + 20, "Fewer than two samples.", "dim")
        return d
    layers = _layers(statistics, colours)
    begin, end = samples[0].ms, samples[-1].ms
    most = max(map(sum, zip(*(values for _, _, values in layers))))

    def x_of(ms):
        return PLOT_LEFT + PLOT_WIDTH * (ms - begin) / max(end - begin, 1)

    def y_of(count):
        return PLOT_TOP + PLOT_HEIGHT * (1 - count / most)

    _axes(d, x_of, y_of, begin, end, most)
    xs = [x_of(s.ms) for s in samples]
    base = [0] * len(samples)
    for name, kind, values in layers:
        top = [low + value for low, value in zip(base, values)]
        upper, lower = [], []
        for i, x in enumerate(xs):
            until = xs[min(i + 1, len(xs) - 1)]
            upper += [(x, y_of(top[i])), (until, y_of(top[i]))]
            lower += [(x, y_of(base[i])), (until, y_of(base[i]))]
        d.area(upper + lower[::-1], kind, f"{name}: at most "
               f"{size(max(values))}", data_last=values[-1])
        base = top
    _marks(d, x_of, statistics.marks, end)
    _layer_legend(d, layers)
    return d
