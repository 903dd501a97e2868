"""The workload of task 9.7, which follows from the hand-out's seed: `make
mine`."""

import random

SIZES = (40, 200, 300, 600, 1200)


def commands(seed):
    numbers = random.Random(seed)
    size, most = numbers.choice(SIZES), numbers.randrange(90, 180)
    return (f"kmem create box {size}; kmem alloc box {most}; "
            f"kmem free box {most}; magazines box")


def text(seed):
    return ("trapped:\n\n"
            f'    make run CPUS=1 ICOUNT=1 CMD="{commands(seed)}"')
