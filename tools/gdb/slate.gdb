# Settings for GDB on Slate; tools/gdb/debug.py loads them.
set confirm off
set pagination off
set print pretty on
set disassembly-flavor intel
set history save off
