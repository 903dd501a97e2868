"""Makes the folder of the page that runs Slate: the book, and live/ in it.

    python3 -m tools.web.page OUT BOOK FILE...

Each FILE is one that the page loads. The firmware is QEMU's, and SeaBIOS's
licence that of the system's package. build.mjs bundles the scripts, and puts
buttons into the book.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from tools.run import qemu, v86

HERE = Path(__file__).parent
FIRMWARE = {"bios.bin": "bios-256k.bin", "vgabios.bin": "vgabios-stdvga.bin"}
# Where packages have the licence of SeaBIOS.
TERMS = ("/usr/share/doc/seabios/copyright",
         "/usr/share/licenses/seabios-bin/COPYING",
         "/usr/share/licenses/seabios/COPYING")


def terms():
    for path in TERMS:
        if Path(path).exists():
            return path
    raise SystemExit("make: the licence of SeaBIOS, which the page ships, is "
                     f"in none of {', '.join(TERMS)}")


def commands(layouts):
    """Those of the kernel's shell: each has a structure (SHELL_COMMAND)."""
    names = json.loads(layouts.read_text("utf-8"))["variables"]
    prefix = "shell_command_"
    return sorted(name.removeprefix(prefix) for name in names
                  if name.startswith(prefix))


def programs(archive):
    """Those that `run` finds by their names."""
    with tarfile.open(archive) as tar:
        return sorted(Path(name).name for name in tar.getnames()
                      if re.search(r"(^|/)s?bin/[^/]+$", name))


def main():
    parser = argparse.ArgumentParser(description="Makes the page.")
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("book", type=Path, help="the book's folder")
    parser.add_argument("files", nargs="+", type=Path,
                        help="files that the page loads")
    args = parser.parse_args()
    files = {path.name: path for path in args.files}
    try:
        files.update({name: v86.firmware(of) for name, of in FIRMWARE.items()})
    except qemu.QemuError as e:
        raise SystemExit(f"make: {e}") from e
    shutil.rmtree(args.out, ignore_errors=True)
    shutil.copytree(args.book, args.out)
    sys.exit(subprocess.run(
        [v86.NODE, HERE / "build.mjs", v86.ENV, args.out, terms(),
         json.dumps(commands(files["layouts.json"])),
         json.dumps(programs(files["initrd.tar"])),
         *(f"{name}={path}" for name, path in files.items())]).returncode)


if __name__ == "__main__":
    main()
