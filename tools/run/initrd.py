"""Makes the archive with the root file system.

    python3 -m tools.run.initrd --out FILE --root FOLDER --programs FILE …
        [--strip COMMAND] [--files N] [--file NAME=FILE …]
        [--append NAME=FILE …]

A ustar archive of the files below the root folder and of the programs, without
their symbols: in /sbin if they come from a folder of that name, else in /bin.
--files adds N small files below /many, 50 in a folder, for benchmarks; --file
adds FILE as /NAME; --append adds the bytes of FILE to the end of /NAME. Equal
input gives an equal archive: names are sorted, times and owners left out.
"""

import argparse
import io
import random
import shlex
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PER_FOLDER = 50
WORDS = ("slate slab cache buffer page object colour bin free full magazine "
         "reap grow hash chain pipe inode task port message").split()


def stripped(program, strip):
    """A program's bytes without symbols."""
    if not strip:
        return program.read_bytes()
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run([*shlex.split(strip), "-o", out.name, str(program)],
                       check=True)
        return Path(out.name).read_bytes()


def many(count):
    """Names and contents of `count` small files. Three in four are empty, to
    keep the archive small."""
    for i in range(count):
        text = random.Random(i)
        lines = [" ".join(text.choices(WORDS, k=8)) + "\n"
                 for _ in range(text.randrange(1, 12) if i % 4 == 0 else 0)]
        yield (f"many/{i // PER_FOLDER:03}/file{i % PER_FOLDER:02}",
               "".join(lines).encode())


def named_file(option, pair):
    """The name and the bytes of NAME=FILE."""
    name, found, path = pair.partition("=")
    if not found or not name.strip("/"):
        raise OSError(f"{option} {pair}: want NAME=FILE")
    return name.strip("/"), Path(path).read_bytes()


def contents(args):
    """The archive's files: path -> bytes."""
    files = {str(p.relative_to(args.root)): p.read_bytes()
             for p in args.root.rglob("*") if p.is_file()}
    for program in args.programs:
        folder = "sbin" if program.parent.name == "sbin" else "bin"
        files[f"{folder}/{program.name}"] = stripped(program, args.strip)
    files.update(many(args.files))
    for pair in args.file:
        name, data = named_file("--file", pair)
        files[name] = data
    for pair in args.append:
        name, data = named_file("--append", pair)
        files[name] = files.get(name, b"") + data
    return files


def entry(name, data=None):
    """A header for a file, or for a folder."""
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
    info.mode = 0o755 if data is None or \
        name.startswith(("bin/", "sbin/")) else 0o644
    info.size = len(data or b"")
    return info


def archive(files, empty):
    """The archive's bytes. A folder comes before its files."""
    folders = set(empty)
    for name in files:
        folders.update(str(p) for p in Path(name).parents if str(p) != ".")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT,
                      encoding="utf-8") as tar:
        for name in sorted(folders | set(files)):
            data = files.get(name)
            tar.addfile(entry(name, data),
                        None if data is None else io.BytesIO(data))
    return out.getvalue()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--programs", type=Path, nargs="*", default=[])
    parser.add_argument("--strip", default="")
    parser.add_argument("--files", type=int, default=0)
    parser.add_argument("--file", action="append", default=[])
    parser.add_argument("--append", action="append", default=[])
    args = parser.parse_args()
    try:
        data = archive(contents(args), ["bin", "disk", "sbin", "tmp"])
    except (OSError, subprocess.CalledProcessError) as e:
        sys.exit(f"initrd.py: {e}")
    args.out.write_bytes(data)


if __name__ == "__main__":
    main()
