# Settings and commands for GDB on Slate; tools/run/debug.py loads them. By
# hand, from the root of the tree: gdb -nx -x tools/gdb/slate.gdb build/slate.elf
set confirm off
set pagination off
set print pretty on
set disassembly-flavor intel
set history save off

# The folder of this file, wherever GDB was started: beside the kernel's
# folder, or below the current one.
python
import os
import sys

for folder in (os.path.join(os.getcwd(), "tools", "gdb"),
               os.path.join(os.path.dirname(
                   gdb.current_progspace().filename or ""), "..", "tools",
                            "gdb")):
    if os.path.exists(os.path.join(folder, "load.py")):
        if folder not in sys.path:
            sys.path.insert(0, os.path.abspath(folder))
        break
else:
    print("slate.gdb: tools/gdb/load.py not found: start GDB in the root "
          "of the tree")
end

python import load
