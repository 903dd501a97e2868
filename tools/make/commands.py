"""Writes the C file with the names of the commands that only the workshop
kernel has, for the product's messages.

    commands.py OUT.c SOURCE.c …
"""

import re
import sys
from pathlib import Path


def names(sources):
    """The names of the commands that these files register, sorted."""
    return sorted({name for path in sources for name in
                   re.findall(r"SHELL_COMMAND\(\s*(\w+),",
                              path.read_text(encoding="utf-8"))})


def main():
    out, *sources = map(Path, sys.argv[1:])
    rows = "".join(f'    "{name}",\n' for name in names(sources))
    out.write_text('#include "kernel/shell/shell.h"\n\n'
                   "const char *const shell_workshop_commands[] = {\n"
                   f"{rows}    0,\n}};\n", encoding="utf-8")


if __name__ == "__main__":
    main()
