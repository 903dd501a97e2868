"""Loads all commands: importing a file defines its commands."""

import sys

from target import ROOT

# What is shared with other tools; and commands for recorded runs.
sys.path += [str(ROOT), str(ROOT / "tools/replay")]

from command import Group  # noqa: E402

Group("slab", "Views of the heap, which only read memory")
Group("slate", "The kernel's own reports, and views of its tasks")

for _name in ("slab_caches", "slab_slabs", "slab_address", "slab_log",
              "slate_tasks", "slate_stack", "slate_locks", "slate_report",
              "values", "culprit"):
    __import__(_name)
