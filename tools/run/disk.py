"""Disk images with an ext2 file system, made, checked and read by e2fsprogs on
this machine: another implementation reads what Slate wrote, and the reverse.

    disk.make(path, megabytes=8, folder="user/disk")
    ...a run with qemu.run(..., disks=[path])...
    disk.check(path)                    # e2fsck -fn finds nothing
    disk.read(path, "/notes/a.txt")     # by debugfs

A failure raises DiskError with one line, or with the program's output. Images
are sparse files. `make disk` runs

    python3 -m tools.run.disk build/disk.img MEGABYTES [FOLDER]
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.run import watchdog

# Folders that may have e2fsprogs but are not in PATH.
PLACES = ["/usr/sbin", "/sbin", "/usr/local/sbin",
          "/opt/homebrew/opt/e2fsprogs/sbin", "/usr/local/opt/e2fsprogs/sbin"]

# The features of Slate's ext2 server. mke2fs makes no journal if there are
# fewer than 2048 blocks.
FEATURES = "none,filetype,sparse_super,large_file,has_journal"

# Fixed, so that equal input gives an equal file system.
UUID = "51a7e000-0000-4000-8000-000000000001"
MOMENT = "1577836800"


class DiskError(Exception):
    """An image could not be made, is damaged, or a tool is missing."""


def tool(name):
    """The path of a program of e2fsprogs."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *PLACES])
    found = shutil.which(name, path=path)
    if not found:
        raise DiskError(f"{name} not found: run tools/setup")
    return found


def _run(name, *arguments, moment=None):
    """Runs a tool; returns the finished process, output as text."""
    environment = dict(os.environ, LC_ALL="C", MKE2FS_CONFIG="/dev/null")
    if moment:
        environment["E2FSPROGS_FAKE_TIME"] = moment
    argv = [tool(name), *map(str, arguments)]
    return watchdog.run(argv, encoding="utf-8", errors="replace",
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                        env=environment)


def _exists(path):
    if not Path(path).is_file():
        raise DiskError(f"{path} is not a file")


# ---- making ----------------------------------------------------------------

def blank(path, megabytes):
    """An image of zeros."""
    try:
        with open(path, "wb") as f:
            f.truncate(int(megabytes * 1024 * 1024))
    except OSError as e:
        raise DiskError(f"{path}: {e.strerror}") from e


def make(path, megabytes=32, folder=None, block=None, inode_size=None,
         inodes=None, features=FEATURES, revision=1, options=()):
    """Makes a file system in `path` with the files of `folder`. `block` and
    `inode_size` are in bytes, `inodes` is a number, `options` are passed to
    mke2fs. An older image is replaced at once."""
    if folder is not None and not Path(folder).is_dir():
        raise DiskError(f"{folder} is not a folder")
    fresh = f"{path}.new"
    blank(fresh, megabytes)
    words = ["-q", "-F", "-t", "ext2", "-m", "0", "-U", UUID, "-E",
             "root_owner=0:0,nodiscard"]
    words += ["-r", "0"] if revision == 0 else ["-O", features]
    words += ["-b", block] if block else []
    words += ["-I", inode_size] if inode_size else []
    words += ["-N", inodes] if inodes else []
    words += ["-d", folder] if folder is not None else []
    try:
        done = _run("mke2fs", *words, *options, fresh, moment=MOMENT)
        if done.returncode != 0:
            raise DiskError(f"mke2fs: {done.stdout.strip()}")
        os.replace(fresh, path)
    finally:
        Path(fresh).unlink(missing_ok=True)


def has_journal(path):
    """Whether the file system has a journal."""
    with open(path, "rb") as f:
        f.seek(1024 + 92)  # s_feature_compat
        return bool(f.read(1)[0] & 4)


# ---- checking --------------------------------------------------------------

def check(path):
    """e2fsck -fn: raises DiskError with its report if it finds anything."""
    _exists(path)
    done = _run("e2fsck", "-fn", path)
    if done.returncode != 0:
        raise DiskError(f"e2fsck -fn {path}: status {done.returncode}\n"
                        f"{done.stdout}")


def repair(path):
    """e2fsck -p, as at a boot after a power cut. Returns what it printed;
    raises DiskError if e2fsck cannot repair it alone (status not 0 or 1)."""
    _exists(path)
    done = _run("e2fsck", "-fp", path)
    if done.returncode not in (0, 1):
        raise DiskError(f"e2fsck -fp {path}: status {done.returncode}\n"
                        f"{done.stdout}")
    return done.stdout


# ---- reading and writing ---------------------------------------------------

def debugfs(path, *commands, write=False):
    """Runs commands of debugfs; returns their output. debugfs exits with
    status 0 even after an error; only its messages report one."""
    _exists(path)
    with tempfile.NamedTemporaryFile("w", suffix=".debugfs",
                                     encoding="utf-8") as script:
        script.write("\n".join(commands) + "\n")
        script.flush()
        words = (["-w"] if write else []) + ["-f", script.name, path]
        done = _run("debugfs", *words)
    if done.returncode != 0:
        raise DiskError(f"debugfs {path}: {done.stdout.strip()}")
    lines = done.stdout.splitlines()
    if lines and lines[0].startswith("debugfs "):  # its version
        lines = lines[1:]
    return "\n".join(line for line in lines
                     if not line.startswith("debugfs: "))


def read(path, name):
    """The contents of a file of the image, as bytes."""
    with tempfile.TemporaryDirectory(prefix="slate-") as folder:
        out = Path(folder) / "contents"
        said = debugfs(path, f'dump "{name}" {out}')
        if said.strip() or not out.exists():
            raise DiskError(f"{path}: {name}: {said.strip()}")
        return out.read_bytes()


def write(path, name, data):
    """A new file in the image, with these bytes."""
    with tempfile.TemporaryDirectory(prefix="slate-") as folder:
        source = Path(folder) / "contents"
        source.write_bytes(data)
        said = debugfs(path, f'write {source} "{name}"', write=True)
        if "Allocated inode" not in said:
            raise DiskError(f"{path}: {name}: {said.strip()}")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: disk.py IMAGE MEGABYTES [FOLDER]")
    if not sys.argv[2].isdigit() or int(sys.argv[2]) < 1:
        sys.exit(f"make disk: DISK_MB={sys.argv[2]} is not a number of MiB, "
                 "as in DISK_MB=32")
    try:
        make(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
    except DiskError as e:
        sys.exit(f"make disk: {e}")
    journal = " with a journal" if has_journal(sys.argv[1]) else \
        ", too small for a journal: folders cannot be moved"
    print(f"{sys.argv[1]}: {sys.argv[2]} MiB, ext2{journal}. "
          f"make run DISK={sys.argv[1]}")


if __name__ == "__main__":
    main()
