"""Archives of hand-ins: `make handin` packs one, tools/grade opens it.

    pack(path, {"mm/buddy.c": b"..."})      the same bytes for the same files
    with opened(tree) as (folder, notes):   a folder; an archive is unpacked

An archive is written by a student, so nothing but the content of plain files is
taken from it, below a new folder, and not more than LARGEST bytes in MEMBERS
files. Links, devices, and names that lead elsewhere are left out; `notes` has a
line about each.
"""

import contextlib
import gzip
import io
import os
import re
import tarfile
import tempfile
import zlib
from pathlib import Path, PurePosixPath

from tools.grading.grading import clean

SUFFIX = ".tar.gz"

# A whole tree with its sources and pages has 10 MiB in 1,300 files.
LARGEST, MEMBERS = 32 << 20, 5000
DEEPEST = 20    # parts of a name


class ArchiveError(Exception):
    """An archive cannot be used; the text says why."""


def pack(path, files):
    """Writes {name: bytes} to an archive, without a time, an owner or anything
    else of this machine."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w",
                      format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    with open(path, "wb") as f, \
            gzip.GzipFile("", "wb", fileobj=f, mtime=0) as out:
        out.write(packed.getvalue())


def name_of(tree):
    """The name of a submission: that of its folder, or of its archive."""
    return re.sub(rf"({re.escape(SUFFIX)}|\.tgz)$", "",
                  os.path.basename(os.path.abspath(tree)))


# ---- unpacking -------------------------------------------------------------

def _problem(member):
    """Why a member is left out, or None."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts:
        return "leads out of the archive"
    if len(name.parts) > DEEPEST:
        return "is in too many folders"
    if not member.isreg():
        return "is no plain file"
    return None


def _members(archive):
    """The members that are not folders, within the limits."""
    size = 0
    for number, member in enumerate(archive):
        size += max(member.size, 0)
        if number == MEMBERS or size > LARGEST:
            raise ArchiveError(f"has more than {MEMBERS} files, or than "
                               f"{LARGEST >> 20} MiB")
        if not member.isdir():
            yield member


def _unpack(path, folder):
    """Unpacks an archive into a folder; returns the notes."""
    notes = []
    with gzip.GzipFile(path) as f:
        data = f.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ArchiveError(f"has more than {LARGEST >> 20} MiB")
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in _members(archive):
            problem = _problem(member)
            if not problem:
                target = folder / member.name
                try:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.extractfile(member).read())
                except (FileExistsError, IsADirectoryError,
                        NotADirectoryError):
                    problem = "is a file and a folder"
            if problem:
                notes.append(f"the archive's {clean(member.name)} {problem}")
    return notes


def _packed(tree):
    """The archive that a submission is, or that its folder has alone."""
    if not tree.is_dir():
        return tree
    inside = [p for p in tree.iterdir() if not p.name.startswith(".")]
    return inside[0] if len(inside) == 1 and \
        inside[0].name.endswith((SUFFIX, ".tgz")) and \
        inside[0].is_file() and not inside[0].is_symlink() else None


@contextlib.contextmanager
def opened(tree):
    """(folder, notes) of a submission: a folder, an archive, or a folder with
    an archive alone."""
    packed = _packed(Path(tree))
    if packed is None:
        yield Path(tree), []
        return
    if not packed.exists():
        raise ArchiveError("is not there")
    if not packed.is_file():
        raise ArchiveError("is not a folder, and no archive")
    with tempfile.TemporaryDirectory(prefix="slate-") as folder:
        try:
            notes = _unpack(packed, Path(folder))
        except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError,
                OverflowError, RecursionError) as e:
            raise ArchiveError(f"is no {SUFFIX} archive: {e}") from e
        yield Path(folder), notes
