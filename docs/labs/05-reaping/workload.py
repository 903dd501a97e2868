"""The two workloads of task 5.7, whose numbers follow from the hand-out's seed:
`make mine`."""

import random

PER = 8             # objects of 500 bytes in a slab
SIZES = (264, 336, 400, 500)


def intervals(seed):
    """Three numbers of objects, each used in an interval and each in fewer
    slabs than the one before."""
    pick = random.Random(f"intervals {seed}")
    slabs = pick.randrange(14, 21)
    second, third = sorted(pick.sample(range(2, slabs - 3), 2), reverse=True)
    return slabs * PER, *(n * PER - pick.randrange(PER)
                          for n in (second, third))


def drops(seed):
    """The size of objects, how many there are, and how many are freed: some
    more than three quarters."""
    pick = random.Random(f"drops {seed}")
    objects = pick.randrange(1500, 2500)
    return pick.choice(SIZES), objects, objects * pick.randrange(76, 90) // 100


def released(seed):
    """The commands of the first workload."""
    used = [f"kmem alloc foo {n}; kmem free foo {n}" for n in intervals(seed)]
    return "kmem create foo 500; " + "; run sleep 15; ".join(used) + \
        "; reap foo"


def free_slabs(seed):
    """The commands of the second."""
    size, objects, freed = drops(seed)
    return (f"kmem create bar {size}; kmem alloc bar {objects}; "
            f"kmem free bar {freed} random")


def text(seed):
    return "\n\n".join(
        f'{question.__name__}:\n\n    make run CMD="{question(seed)}"'
        for question in (released, free_slabs))
