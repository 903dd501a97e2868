"""The tools of this machine. They are run from the root of the tree:
`python3 -m tools.run.run build/slate.elf`."""
