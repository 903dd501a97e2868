"""The tools of this machine. They are run from the root of the tree:
`python3 -m tools.run.run build/slate.elf`.

They read and write UTF-8. In a locale of another encoding, so do the programs
that they run, and what they print is in that encoding, with escapes for what it
lacks."""

import codecs
import locale
import os
import sys

if codecs.lookup(locale.getpreferredencoding(False)).name != "utf-8":
    os.environ["LC_ALL"] = "C.UTF-8"
    sys.stdout.reconfigure(errors="backslashreplace")
