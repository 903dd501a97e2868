"""Checks the answers of lab 3: asks the kernel for the geometry of the caches
that the questions are about."""

import json

CACHES = {"unused": ("kmem create paper 400", "slab_left"),
          "constructed": ("kmem create paper 400 8 ctor", "slab_objects")}


def geometry(machine, name):
    """What `cache -j` says of the cache of a question."""
    create, key = CACHES[name]
    result = machine.run(f"{create}; cache -j paper; poweroff")
    (row,) = [line for line in result.text.splitlines()
              if line.startswith('{"cache":"paper"')]
    return json.loads(row)[key]


def check(answers, machine):
    return {name: None if answer == geometry(machine, name) else
            f"{answer} is not what the kernel reckons"
            for name, answer in answers.items()}


def solve(machine):
    return {name: geometry(machine, name) for name in CACHES}
