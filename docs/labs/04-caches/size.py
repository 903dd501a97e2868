"""The size of the objects of task 4.8, which follows from the hand-out's seed:

    python3 docs/labs/04-caches/size.py
"""

import re
from pathlib import Path

SIZES = (232, 248, 264, 280, 296, 328, 344, 360)
OBJECTS = 300


def size_of(seed):
    return SIZES[seed % len(SIZES)]


def main():
    try:
        stamp = (Path(__file__).parents[3] / ".lab").read_text("utf-8")
    except FileNotFoundError:
        stamp = ""
    seed = re.search(r"^seed = (\d+)$", stamp, re.M)
    size = size_of(int(seed[1]) if seed else 0)
    print(f"Your objects have {size} bytes, no constructor, and the least "
          f"alignment:\n\n    make cachesim SIZE={size} OBJECTS={OBJECTS}")


if __name__ == "__main__":
    main()
