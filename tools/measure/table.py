"""Tables and figures of reports. GDB's views use it, too: no import of gdb."""


def columns_of(spec):
    """[(name, width)] of "NAME:WIDTH …"; a negative width is of a column that
    is aligned to the left."""
    return [(name, int(width)) for name, width in
            (column.rsplit(":", 1) for column in spec.split())]


def line(cells, columns, indent=0):
    """One line. A first cell that is too long gets a line to itself; the cells
    are `indent` characters from the left. A cell without a column is a
    remark."""
    name, width = cells[0], columns[0][1]
    over = ""
    if len(name) > -width > 0 and len(cells) > 1:
        over, cells = f"{name}\n{'':{indent}}", ["", *cells[1:]]
    padded = [f"{cell:<{-w}}" if w < 0 else f"{cell:>{w}}"
              for cell, (_, w) in zip(cells, columns)]
    return over + " ".join([*padded, *cells[len(columns):]]).rstrip()


def lines(spec, rows):
    """The lines of a table; a row is a list of cells."""
    columns = columns_of(spec)
    yield line([name for name, _ in columns], columns)
    for row in rows:
        yield line([str(cell) for cell in row], columns)


def age(ms):
    """A span of milliseconds in at most 6 characters: 850ms 12.3s 5m 17h."""
    for unit, length, most in (("ms", 1, 1000), ("s", 1000, 60_000),
                               ("m", 60_000, 3_600_000),
                               ("h", 3_600_000, 172_800_000)):
        if ms < most:
            return f"{ms / 1000:.1f}s" if unit == "s" else \
                f"{ms // length}{unit}"
    return f"{ms // 86_400_000}d"


def percent(part, whole, digits=1):
    """`part` of `whole` in per cent."""
    unit = 10 ** digits
    n = (part * 100 * unit + whole // 2) // whole if whole else 0
    return f"{n // unit}.{n % unit:0{digits}}"


def put_in(path, mark, text):
    """Replaces what a page of the book has between `<!-- mark -->` and the next
    `<!-- end -->`."""
    before, rest = path.read_text("utf-8").split(f"<!-- {mark} -->\n", 1)
    after = rest.split("<!-- end -->", 1)[1]
    path.write_text(f"{before}<!-- {mark} -->\n{text}<!-- end -->{after}",
                    encoding="utf-8")
