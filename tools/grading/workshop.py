"""The folder in which submissions are built.

A workshop is a folder with a copy of the grader's tree. The files of each
submission in turn are put in place there. Only files that differ are written,
and objects are kept, so the next submission compiles only its own files.
docs/labs.md says how hostile submissions are handled.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tools.grading import labs
from tools.grading.budget import SLOWEST, Budget, Spent
from tools.run import sandbox

SEED_FILE = "tools/workshop/labs/seed.h"

# The largest hand-in file in bytes, ten times the longest source.
LARGEST = 256 * 1024

# Limits of each process of a build: MiB of memory, KiB of a file.
MEMORY, FILE = 2048, 64 * 1024

# The products of `make kernel workshop`, in build/ or build/smp/.
PRODUCTS = ("boot", "docs", "drivers", "kernel", "mm", "symbols", "tools",
            "user", "helped.sources", "workshop_commands.c",
            "workshop_commands.o", "slate.elf", "initrd.tar",
            "slate-workshop.elf", "initrd-workshop.tar")
FLAGS = "flags"     # is copied last: then all are there

# Exists while a boxed make runs. If the grader is killed, make is killed too,
# and leaves files that are incomplete but newer than their sources.
UNFINISHED = "build/unfinished"


def planted_seed(name, text, seed):
    """The file's text, with the hand-out's seed if it is the seed file."""
    if name != SEED_FILE:
        return text
    return re.sub(r"(?m)^(#define LAB_SEED) \d+$", rf"\1 {seed}", text)


# ---- files of a submission -------------------------------------------------

@dataclass
class HandIn:
    """The files of a submission, {name: bytes}, and a line about each file
    that cannot be used."""
    files: dict = field(default_factory=dict)
    problems: list = field(default_factory=list)


class _Refused(Exception):
    """A file cannot be used; the text says why."""


def _take(tree, name):
    """The bytes of a file of the tree; no part of its path may be a link."""
    path = tree
    for part in Path(name).parts:
        path = path / part
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError) as e:
            raise _Refused("is missing") from e
        if stat.S_ISLNK(mode):
            raise _Refused("is a symbolic link, or in a linked folder")
    if not stat.S_ISREG(mode):
        raise _Refused("is not a regular file")
    with open(path, "rb") as f:
        data = f.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise _Refused(f"has more than {LARGEST // 1024} KiB")
    try:
        if "\0" in data.decode("utf-8"):
            raise _Refused("is not a text: it contains a NUL byte")
    except UnicodeDecodeError as e:
        raise _Refused("is not a text: it is not UTF-8") from e
    return data


def inner(tree):
    """The only folder of a tree that otherwise has only hidden files, as in an
    unpacked archive; or None."""
    inside = [p for p in Path(tree).iterdir()
              if not p.name.startswith((".", "__MACOSX"))]
    if len(inside) == 1 and inside[0].is_dir() and not inside[0].is_symlink():
        return inside[0]
    return None


def _places(tree, name, names):
    """The possible places of a file: its own, or the top of the tree."""
    flat = Path(name).name
    if [Path(n).name for n in names].count(flat) == 1:
        return [p for p in (name, flat) if os.path.lexists(Path(tree) / p)]
    return [name] if os.path.lexists(Path(tree) / name) else []


def collect(tree, names):
    """Reads the hand-in files `names` of a tree. They may also be side by side
    without folders, and the tree may be inside a single folder."""
    tree, found = Path(tree), HandIn()
    if not any(_places(tree, name, names) for name in names):
        tree = inner(tree) or tree
    for name in names:
        place = (_places(tree, name, names) or [name])[0]
        try:
            found.files[name] = _take(tree, place)
        except _Refused as e:
            found.problems.append(f"{name} {e}: it counts as not edited")
        except OSError as e:
            found.problems.append(f"{name} cannot be read ({e.strerror}): it "
                                  "counts as not edited")
    return found


def as_handed_out(root, lab, names):
    """{name: bytes} of files as the lab hands them out."""
    cut = labs.handed_out(root, lab)
    return {name: cut[name].encode() if name in cut else
            (Path(root) / name).read_bytes() for name in names}


# ---- building --------------------------------------------------------------

@dataclass
class Built:
    """A kernel, or the compiler's first errors."""
    kernel: Path = None
    errors: str = ""


def _first_errors(text):
    """The first errors of a failed build, with the lines around them."""
    lines = text.splitlines()
    word = re.compile(r"error:|undefined reference|multiple definition|"
                      r"not found|Killed|out of memory|fatal signal|"
                      r"File too large|CPU time limit")
    hits = [i for i, line in enumerate(lines) if word.search(line)]
    if not hits:
        return "\n".join(lines[-10:])
    keep = sorted({j for i in hits[:4] for j in range(max(0, i - 1), i + 4)})
    return "\n".join(lines[j] for j in keep if j < len(lines))


def _full(text):
    """Whether the output of a failed build says that the disk is full. Lines
    about a source do not count: #error could print the same."""
    return re.search(r"(?m)^(?!\s|\S+:\d+:).*No space left on device", text)


def compiler(tree):
    """The compiler that has built a tree, or nothing."""
    for build in Path(tree) / "build", Path(tree) / "build/smp":
        with contextlib.suppress(OSError, IndexError):
            return [(build / FLAGS).read_text("utf-8").split()[0]]
    return []


def gcc(tree):
    """The version of the compiler that has built a tree, "12.2.0", or ""."""
    command = [*compiler(tree), "-dumpfullversion"]
    if len(command) == 1:
        return ""
    return subprocess.run(command, capture_output=True, encoding="utf-8",
                          check=False).stdout.strip()


def packages():
    """The folder with this Python's packages: .venv, or where the links in it
    lead (tools/setup)."""
    return Path(sys.prefix, "lib").resolve().parent


def make(tree, budget, targets=("workshop",), options=(), boxed=False):
    """Runs make within limits; returns its errors, or None if all went well.
    A `boxed` one runs in a sandbox that has the compiler and `tree` alone."""
    try:
        seconds = budget.next()
    except Spent as e:
        return f"error: {e}"
    env = {k: v for k, v in os.environ.items()
           if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES",
                        "BUILD", "CPUS", "DEBUG", "GIVEN", "SANITIZE", "SMP",
                        "V")}
    env.update(LC_ALL="C", GCC_COLORS="")
    log = Path(tree) / "build/make.log"
    log.parent.mkdir(exist_ok=True)
    if boxed:
        (Path(tree) / UNFINISHED).touch()
    argv = sandbox.wrap(["make", "--no-print-directory", "-k",
                         f"-j{os.cpu_count()}",
                         f"PYTHON={packages()}/bin/python",
                         *targets, *options],
                        seconds, MEMORY, FILE, write=[tree] if boxed else [],
                        read=[packages(), sys.base_prefix,
                              *map(sandbox.home, compiler(tree))])
    with open(log, "wb") as out:
        process = subprocess.Popen(argv, cwd=tree, env=env, stdout=out,
                                   stderr=out, stdin=subprocess.DEVNULL)
        try:
            status = process.wait(timeout=SLOWEST * seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            status = "time"
    if status in (0, 2):  # make has ended by itself
        (Path(tree) / UNFINISHED).unlink(missing_ok=True)
    if status == 0:
        return None
    text = log.read_bytes()[:1 << 20].decode(errors="replace")
    if status == "time":
        shutil.rmtree(log.parent)  # a file in it may be incomplete
        text += "\nerror: compiling takes too long"
    elif _full(text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tree))
    return _first_errors(text)


def kind(tree, lab):
    """(folder of products, options of make) for the kind of kernel that a lab
    needs: for one processor, or for several."""
    build = Path(tree) / "build"
    return (build, []) if lab.cpus == 1 else (build / "smp", ["SMP=1"])


def objects_of(build, name):
    """The objects of a source: of the kernel, of programs, or of both."""
    there = (Path(build) / folder / name for folder in ("", "user"))
    return [p for p in (at.with_suffix(".o") for at in there) if p.exists()]


def as_before(build):
    """Options with which make finds what is in the folder `build` up to
    date."""
    flags = Path(build) / FLAGS
    strict = flags.exists() and "-Werror" in flags.read_text("utf-8").split()
    return ["WERROR=1"] if strict else []


def prebuilt(root, lab):
    """{name: bytes} of the objects that a lab's hand-out has in the place of
    sources, and of parts of its own, built in the tree `root`."""
    build, options = kind(root, lab)
    options += as_before(build)
    build.mkdir(parents=True, exist_ok=True)
    with open(build / "prebuilt.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _objects(root, build, labs.withheld(root, lab), options)
        for name, parts, more in (
                ("later", labs.later_parts(root, lab), []),
                ("given", labs.given_parts(root, lab), ["DWARF=0"])):
            folder = build / f"prebuilt/lab{lab.number}-{name}"
            for source, text in parts.items():
                write(folder / source, text.encode())
            found.update((path.replace(".o", f"_{name}.o"), data)
                         for path, data in _objects(
                             root, folder, parts, options + more).items())
    return found


def _objects(root, build, sources, options):
    """{name in prebuilt/: bytes} of the objects of some sources, built in the
    folder `build`, where generated ones are."""
    if not sources:
        return {}
    errors = make(root, Budget(), ["objects"], [
        *options, f"BUILD={build.relative_to(root)}",
        f"SOURCES={' '.join(sorted(sources))}"])
    if errors:
        raise labs.LabError(f"{root} does not build:\n{errors}")
    return {str("prebuilt" / path.relative_to(build)): path.read_bytes()
            for name in sorted(sources) for path in objects_of(build, name)}


def write(path, data):
    """Writes a file, unless it holds that already; True if it did."""
    if path.exists() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return True


def copy_products(build, to):
    """Copies the products in one folder to another, with their times, so that
    make sees the same files as up to date as in the tree itself."""
    to.mkdir(parents=True, exist_ok=True)
    for name in (*PRODUCTS, FLAGS):
        source = Path(build) / name
        if source.is_dir():
            shutil.copytree(source, to / name, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy2(source, to / name)


class Workshop:
    """A folder in which versions of the tree `root` are built."""

    def __init__(self, root, folder, budget, options=(), boxed=False):
        self.root, self.folder = Path(root), Path(folder)
        self.budget, self.options, self.boxed = budget, options, boxed
        self.names = [n for n in labs.tracked(root) if self.is_needed(n)]
        self.prebuilt = {}  # those of each lab
        self.kind = None    # of the lab that was put there last

    @staticmethod
    def is_needed(name):
        """Whether a build needs the file: not pages, pictures and tests of the
        whole tree."""
        return not name.startswith((".", "docs/", "tools/test/")) or \
            re.match(rf"{labs.FOLDER}/.*\.(toml|c|h)$", name)

    @contextlib.contextmanager
    def alone(self):
        """Locks the folder against other graders."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder.parent / (self.folder.name + ".lock"),
                  "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self

    def put(self, files, lab, seed=0):
        """Makes the folder hold what a lab's hand-out has with all tasks done,
        with `files` ({name: bytes}) in the place of its own. So the kernel is
        the student's, byte for byte, where the files are."""
        self.kind = kind(self.folder, lab)
        if (self.folder / UNFINISHED).exists():
            shutil.rmtree(self.folder / "build")
        if not (self.kind[0] / FLAGS).exists():
            self.begin(lab)
        if lab.number not in self.prebuilt:
            with self.budget.paused():
                self.prebuilt[lab.number] = prebuilt(self.root, lab)
        solved = {name: text.encode() for name, text in
                  labs.solved(self.root, lab).items()}
        files = {**self.prebuilt[lab.number], **solved, **files,
                 labs.STAMP: lab.stamp.encode()}
        wanted = {*labs.in_hand_out(self.root, lab, self.names), *files}
        for name in self.there():
            if name not in wanted:
                (self.folder / name).unlink()
                with contextlib.suppress(OSError):  # not empty
                    os.removedirs((self.folder / name).parent)
        for name in wanted:
            data = files.get(name)
            if data is None:
                data = (self.root / name).read_bytes()
            if name == SEED_FILE:
                data = planted_seed(name, data.decode(), seed).encode()
            self.write(name, data)

    def begin(self, lab):
        """Copies the tree and the products of the lab's kind, for the first
        use."""
        for name in self.names:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.root / name, self.folder / name)
        copy_products(kind(self.root, lab)[0], self.kind[0])

    def there(self):
        """The source files in the folder."""
        for at, below, files in os.walk(self.folder):
            below[:] = [n for n in below if n not in labs.PRODUCTS]
            for name in files:
                yield os.path.relpath(os.path.join(at, name), self.folder)

    def write(self, name, data):
        if write(self.folder / name, data) and (self.root / name).exists():
            shutil.copymode(self.root / name, self.folder / name)

    def build(self):
        """Builds the files in the folder."""
        build, options = self.kind
        kernel = build / "slate-workshop.elf"
        kernel.unlink(missing_ok=True)  # never one of another submission
        errors = make(self.folder, self.budget,
                      options=[*options, *self.options], boxed=self.boxed)
        if errors is None and kernel.exists():
            return Built(kernel)
        return Built(errors=errors or "the build made no kernel")
