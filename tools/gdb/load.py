"""Loads all commands: importing a file defines its commands."""

import sys

from command import Group
from target import ROOT

sys.path.append(str(ROOT / "tools/replay"))  # commands for recorded runs

Group("slab", "The slab allocator, in the words of the kernel shell")
Group("slate", "The kernel's tasks, files, messages and memory")

for _name in ("slab_caches", "slab_slabs", "slab_address", "slab_log",
              "slab_pages", "slab_marks", "slab_verify",
              "slab_control", "slab_explain", "slate_tasks", "slate_stack",
              "slate_messages", "slate_verify",
              "slate_symbols", "values", "culprit"):
    __import__(_name)
