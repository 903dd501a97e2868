"""Tables of the commands that watch the heap."""


def lines(columns, rows):
    """The lines of a table. `columns` is "NAME:WIDTH ...", a negative width for
    a column that is aligned to the left. A row is a list of cells; a row may
    have one cell more, a remark."""
    columns = [(name, int(width)) for name, width in
               (column.rsplit(":", 1) for column in columns.split())]
    yield _line([name for name, _ in columns], columns)
    for row in rows:
        yield _line(row, columns)


def _line(cells, columns):
    """One line; a first cell that is too long gets a line to itself."""
    name, width = cells[0], columns[0][1]
    over = f"{name}\n" if len(name) > abs(width) else ""
    cells = ["" if over else name, *cells[1:]]
    padded = [f"{cell:<{-w}}" if w < 0 else f"{cell:>{w}}"
              for cell, (_, w) in zip(cells, columns)]
    return over + " ".join([*padded, *cells[len(columns):]]).rstrip()


def age(ms):
    """A span of milliseconds in at most 6 characters: 850ms 12.3s 5m 17h."""
    for unit, length, most in (("ms", 1, 1000), ("s", 1000, 60_000),
                               ("m", 60_000, 3_600_000),
                               ("h", 3_600_000, 172_800_000)):
        if ms < most:
            return f"{ms / 1000:.1f}s" if unit == "s" else \
                f"{ms // length}{unit}"
    return f"{ms // 86_400_000}d"


def percent(part, whole):
    """Of bytes, rounded to two digits."""
    hundredths = (part * 10000 + whole // 2) // whole if whole else 0
    return f"{hundredths // 100}.{hundredths % 100:02}"
