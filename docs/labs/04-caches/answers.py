"""Checks answers.toml of lab 4, from the rules of the paper alone."""

from size import OBJECTS, size_of
from tools.measure import cache_model
from tools.measure import cachesim as command

ALIGN, PAGE, HEADER = 8, 4096, 32    # HEADER: a struct kmem_slab


def watched(model, size):
    """OBJECTS objects in the cache `model`, slab after slab."""
    each, left = divmod(PAGE - HEADER, size)
    colours = left // ALIGN + 1
    places = [i // each * PAGE + i // each % colours * ALIGN + i % each * size
              for i in range(OBJECTS)]
    return cache_model.watch(cache_model.geometry(model), places, 4)


def rules(size):
    """The right answers."""
    each, left = divmod(PAGE - HEADER, size)
    return {"per_slab": each,
            "colours": left // ALIGN + 1,
            "sets_used": watched("486", size).used,
            "missed_486": watched("486", size).warm,
            "missed_pentium": watched("pentium", size).warm}


def check(answers, machine):
    size = size_of(machine.seed)
    right = rules(size)
    return {name: None if answer == right[name] else
            f"{answer} is not right for objects of {size} bytes"
            for name, answer in answers.items()}


def solve(machine):
    """Boots the kernel, makes the caches, and looks."""
    wish = command.wishes({"SIZE": str(size_of(machine.seed)),
                           "OBJECTS": str(OBJECTS)})
    cache, _, _ = command.gather(machine.kernel, wish, "64")

    def seen(model):
        return cache_model.watch(cache_model.geometry(model),
                                 cache_model.addresses(cache), wish["HOT"])

    return {"per_slab": cache.slab_objects,
            "colours": cache.colour_max // cache.align + 1,
            "sets_used": seen("486").used,
            "missed_486": seen("486").warm,
            "missed_pentium": seen("pentium").warm}
