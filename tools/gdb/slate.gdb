# Settings and commands for GDB on Slate; tools/run/debug.py loads them. By
# hand, from the root of the tree: gdb -nx -x tools/gdb/slate.gdb build/slate.elf
set confirm off
set pagination off
set print pretty on
set disassembly-flavor intel
set history save off

# This folder, from the root of the tree or from the kernel's folder.
python
import os
import sys

folders = [os.path.abspath(os.path.join(root, "tools", "gdb")) for root in
           (".", os.path.join(os.path.dirname(
               gdb.current_progspace().filename or ""), ".."))]
folders = [f for f in folders if os.path.exists(os.path.join(f, "load.py"))]
if not folders:
    print("slate.gdb: tools/gdb/load.py not found: start GDB in the root of "
          "the tree")
sys.path[:0] = folders[:1]
end

python import load
