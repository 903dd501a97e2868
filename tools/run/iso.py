"""Writes an ISO image that boots Slate by BIOS and GRUB: `make iso`.

    python3 -m tools.run.iso build/slate.elf build/initrd.tar build/slate.iso

GRUB_MKRESCUE in the environment names another grub-mkrescue.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MENU = Path(__file__).resolve().parents[2] / "boot/grub.cfg"
TOOLS = ("grub-mkrescue", "grub2-mkrescue", "i686-elf-grub-mkrescue")


class IsoError(Exception):
    """A tool is missing or has failed."""


def grub():
    """The path of grub-mkrescue."""
    names = [os.environ["GRUB_MKRESCUE"]] if "GRUB_MKRESCUE" in os.environ \
        else TOOLS
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None or not shutil.which("xorriso"):
        raise IsoError("grub-mkrescue or xorriso not found: run tools/setup")
    return path


def bios_modules(tool):
    """Arguments that select GRUB's modules for the BIOS, if they are where
    they usually are."""
    places = [Path("/usr/lib/grub/i386-pc"),
              *Path(tool).parent.parent.glob("lib/*grub/i386-pc")]
    return next((["-d", str(p)] for p in places if p.is_dir()), [])


def menu(line):
    """boot/grub.cfg with a command line for the kernel."""
    text = MENU.read_text(encoding="utf-8")
    kernel = "multiboot /boot/slate.elf\n"
    assert text.count(kernel) == 1
    if not line:
        return text
    return text.replace(kernel, f'{kernel.strip()} "{line}"\n')


def write(kernel, initrd, out, line=""):
    """Writes the image `out`; `line` is the kernel's command line, without a
    double quote in it."""
    tool = grub()
    with tempfile.TemporaryDirectory(prefix="slate-") as folder:
        boot = Path(folder, "boot")
        (boot / "grub").mkdir(parents=True)
        shutil.copy(kernel, boot / "slate.elf")
        shutil.copy(initrd, boot / "initrd.tar")
        (boot / "grub/grub.cfg").write_text(menu(line), encoding="utf-8")
        done = subprocess.run(
            [tool, *bios_modules(tool),
             "--install-modules=multiboot normal iso9660 biosdisk boot",
             "--fonts=", "--locales=", "--themes=", "-o", str(out), folder],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
            check=False)
    if done.returncode:
        raise IsoError(f"{tool} failed:\n{done.stdout}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("kernel", "initrd", "out"):
        parser.add_argument(name)
    args = parser.parse_args()
    try:
        write(args.kernel, args.initrd, args.out)
    except IsoError as e:
        sys.exit(f"make iso: {e}")


if __name__ == "__main__":
    main()
