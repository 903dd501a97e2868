"""The size of the objects of task 4.8, which follows from the hand-out's seed:
`make mine`."""

SIZES = (232, 248, 264, 280, 296, 328, 344, 360)
OBJECTS = 300


def size_of(seed):
    return SIZES[seed % len(SIZES)]


def text(seed):
    return (f"Your objects have {size_of(seed)} bytes, no constructor, and the "
            "least alignment:\n\n"
            f"    make cachesim SIZE={size_of(seed)} OBJECTS={OBJECTS}")
