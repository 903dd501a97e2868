"""Loads all commands: importing a file defines its commands."""

import sys

from command import Group
from target import ROOT

sys.path.append(str(ROOT / "tools/replay"))  # commands for recorded runs

Group("slab", "Views of the heap, which only read memory")
Group("slate", "The kernel's own reports, and views of its tasks")

for _name in ("slab_caches", "slab_slabs", "slab_address", "slab_log",
              "slab_break", "slate_tasks", "slate_stack", "slate_locks",
              "slate_symbols", "slate_ask", "values", "culprit"):
    __import__(_name)
