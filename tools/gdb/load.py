"""Loads all commands: importing a file defines its commands."""

import sys

from target import ROOT

# What is shared with other tools; and commands for recorded runs.
sys.path += [str(ROOT), str(ROOT / "tools/replay")]

for _name in "slate_stack", "slate_space", "slate_report", "values", "culprit":
    __import__(_name)
