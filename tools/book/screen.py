"""A screen of text as a drawing: the characters of the VGA in their colours."""

from xml.sax.saxutils import escape

from tools.measure.svg import MONO

COLUMNS, ROWS = 80, 25
ACROSS, DOWN = 8, 16    # pixels of a character
PALETTE = ("#000000 #3465d0 #2fa84f #29a6a6 #c03a3a #a347ba #b98a2c #c4c9cf "
           "#777d85 #7aa2f7 #6cdb83 #63dede #ff7b72 #d98cf0 #ffe066 "
           "#ffffff").split()


def runs(line):
    """[(column, colours, text)] of one line of (character, colours)."""
    found = []
    for column, (character, colours) in enumerate(line):
        if found and found[-1][1] == colours:
            found[-1][2] += character
        else:
            found.append([column, colours, character])
    return found


def draw(cells, title):
    """SVG of the bytes of the screen, two for each character."""
    text = cells[::2].decode("cp437")
    places = list(zip(text, cells[1::2]))
    width, height = COLUMNS * ACROSS, ROWS * DOWN
    parts = []
    for row in range(ROWS):
        y = row * DOWN
        for column, colours, run in runs(
                places[row * COLUMNS:(row + 1) * COLUMNS]):
            x, wide = column * ACROSS, len(run) * ACROSS
            if colours >> 4:
                parts.append(f'<rect x="{x}" y="{y}" width="{wide}" height='
                             f'"{DOWN}" fill="{PALETTE[colours >> 4]}"/>')
            if run.strip():
                shown = run.replace("\0", " ")
                parts.append(f'<text x="{x}" y="{y + 12}" textLength="{wide}" '
                             f'fill="{PALETTE[colours & 15]}">{escape(shown)}'
                             "</text>")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" role="img" '
            'xml:space="preserve">\n'
            f"<title>{escape(title)}</title>\n"
            f"<style>text{{font:13px {MONO}}}</style>\n"
            f'<rect width="{width}" height="{height}"/>\n'
            + "\n".join(parts) + "\n</svg>\n")
