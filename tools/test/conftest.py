"""Shared by all system tests: the paths of the products, and machines."""

import fcntl
import gc
import io
import math
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from tools.grading import workshop as copies
from tools.run import qemu, watchdog

pytest_plugins = ["times"]

ROOT = Path(__file__).resolve().parents[2]
# The folder of the products: its name for make, and its path.
BUILD_NAME = os.environ.get("SLATE_BUILD", "build")
BUILD = ROOT / BUILD_NAME
# Files of mm/others/: what allocators share, and the allocators, without the
# skeleton of one's own.
OTHERS_SHARED = {"serve", "supply", "whole", "slabs", "inspect/verify"}
OTHERS = sorted({p.stem for p in (ROOT / "mm/others").glob("*.c")}
                - OTHERS_SHARED - {"yours"})

# The tests themselves are compiled once, to build/, and not again by each
# process of each run, whatever the environment says of other programs.
sys.dont_write_bytecode = False
sys.pycache_prefix = str(BUILD / "python")

# A make that a test runs is not below the one that runs the tests, whose
# processors it could not ask for; and a machine has the settings of its test
# alone.
for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "V", "CMD", "APPEND", "MEM",
             "DISK", "ICOUNT", "BUDGET"):
    os.environ.pop(name, None)

# When a test runs (docs/testing.md): without a mark in `make test`, with
# `sample` in `make test-samples`, with `long` in `make test-all`, as those,
# with `soak` in a target of its own, for hours.
sample, long, soak = pytest.mark.sample, pytest.mark.long, pytest.mark.soak

# The longest files begin first, so that others run beside them to the end.
LONGEST = ("test_labs", "test_kernels", "test_grade", "test_bugs",
           "test_replay", "test_failures", "test_transcripts", "test_host")


def copy_tree(folder):
    """Copies the sources, and the products if they are those of the plain
    build, so that `make` there builds only what a test changes."""
    for name in ("boot", "kernel", "mm", "drivers", "user", "tools", "docs"):
        shutil.copytree(ROOT / name, folder / name,
                        ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Makefile", folder)
    if BUILD == ROOT / "build" and BUILD.exists():
        copies.copy_products(BUILD, folder / "build")


def tiers(test, test_all=(), soaks=(), samples=()):
    """Parameters for `make test`, more for `make test-all` and, of these, for
    `make test-samples`, and the rest."""
    def marked(values, mark):
        return (pytest.param(*(v if isinstance(v, tuple) else (v,)), marks=mark)
                for v in values)
    return [*test, *marked(samples, sample), *marked(test_all, long),
            *marked(soaks, soak)]


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """The tests of a file share machines, so one worker runs them all; those
    of a file marked `spread` share nothing and run on any worker."""
    for item in items:
        if not item.get_closest_marker("spread") and \
                not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=lambda item: LONGEST.index(item.path.stem)
               if item.path.stem in LONGEST else len(LONGEST))


# What is made while the tests are read stays to the end. To look for garbage in
# it again and again would take half as long as the reading itself.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def execute(*argv, cwd=ROOT, **env):
    """Runs a program of this machine, with these variables in addition to
    those of the tests; returns its status and its output."""
    return watchdog.run([str(word) for word in argv], cwd=cwd, encoding="utf-8",
                        errors="replace", capture_output=True,
                        env={**os.environ, **env})


def output_of(*argv, cwd=ROOT):
    """What a program of this machine prints, which must succeed."""
    return subprocess.run(argv, cwd=cwd, check=True, encoding="utf-8",
                          stdout=subprocess.PIPE).stdout


def product(name, target):
    """A built file; without it the test fails and names the make target."""
    path = BUILD / name
    if not path.exists():
        pytest.fail(f"{path} does not exist: make {target}", pytrace=False)
    return path


@pytest.fixture(scope="module")
def passing(request):
    """A list of folders that are removed after the tests of a file, and kept if
    one has failed."""
    folders, failed = [], request.session.testsfailed
    yield folders
    if request.session.testsfailed == failed:
        for folder in folders:
            shutil.rmtree(folder)


@pytest.fixture(scope="module")
def shared_path(request, tmp_path_factory, passing):
    """A folder for all tests of a file."""
    passing.append(tmp_path_factory.mktemp(request.path.stem))
    return passing[-1]


def sessions(text):
    """{number: what it has of each resource} of a `sessions -j`; number 0: what
    one may have."""
    return {row.pop("session"): row for row in qemu.json_lines(text)
            if "session" in row}


def named_cases(pattern, *folders):
    """SUITE.CASE of every case in the sources below these folders."""
    return {f"{suite}.{case}" for folder in folders
            for path in (ROOT / folder).rglob("*.c")
            for suite, case in re.findall(pattern, path.read_text("utf-8"))}


@pytest.fixture(scope="session")
def cases():
    """The names of every KTEST in the tree."""
    return named_cases(r"\bKTEST\(\s*(\w+),\s*(\w+)\s*\)", "mm", "kernel",
                       "drivers", "tools", "docs")


@pytest.fixture
def in_memory():
    """A folder for images that are written thousands of times: in memory, if
    this machine has such a place."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="slate-", dir=place) as folder:
        yield Path(folder)


def _configured(name):
    flags = product("flags", "workshop").read_text(encoding="utf-8").split()
    return f"-DCONFIG_{name}=1" in flags


def sanitized():
    """Whether the kernel under test is one of `make SANITIZE=1`."""
    return _configured("SANITIZE")


def debug():
    """Whether the kernel under test is one of `make DEBUG=1`."""
    return _configured("DEBUG")


# The memory that an ordinary kernel uses of 16 MiB before anything runs, and
# a task's stack, in KiB.
OWN, STACK = 3584, 12


def memory(mebibytes, tasks=0):
    """The size of the machine in which the kernel under test leaves as much to
    programs as an ordinary one does in one of `mebibytes`, while it has so
    many tasks. One under the sanitizers takes more, for itself, for the shadow
    of memory, and for each stack; how much it says."""
    if not sanitized():
        return mebibytes
    said = qemu.run(product("slate-workshop.elf", "workshop"),
                    "meminfo -j; kmastat -j kstack; poweroff",
                    memory=max(mebibytes, 16)).text
    rows = qemu.json_lines(said)
    pages = {row["use"]: row["pages"] for row in rows if "use" in row}
    stack = next(row["size"] for row in rows if row.get("cache") == "kstack")
    lacks = (pages["frames"] - pages["free"]) * 4 - OWN \
        + tasks * (stack // 1024 - STACK)
    shadow = 8 / 7  # of what is added, too
    return mebibytes + math.ceil(max(lacks, 0) / 1024 * shadow)


@pytest.fixture(scope="session")
def workshop():
    """The workshop kernel, which has all commands and test programs."""
    return product("slate-workshop.elf", "workshop")


def archive(kernel, folder, changes):
    """The root file system of a kernel with changes: {name: its bytes, the path
    of a file or of an empty folder, or None: without it}."""
    out = folder / "initrd.tar"
    with tarfile.open(qemu.initrd_of(kernel)) as old, \
            tarfile.open(out, "w", format=tarfile.USTAR_FORMAT,
                         encoding="latin-1") as new:
        for member in old:
            if member.name not in changes:
                new.addfile(member, old.extractfile(member))
        for name, contents in changes.items():
            if isinstance(contents, bytes):
                member = tarfile.TarInfo(name)
                member.size = len(contents)
                new.addfile(member, io.BytesIO(contents))
            elif contents is not None:
                new.add(contents, name)
    return out


@pytest.fixture(scope="module")
def kernel(request):
    """The product, as a user boots it. Files marked `workshop` get the workshop
    kernel, and under the sanitizers, where there is no product, all do."""
    if sanitized() or request.node.get_closest_marker("workshop"):
        return request.getfixturevalue("workshop")
    return product("slate.elf", "kernel")


# Kernels of other builds, by the folder of each: its settings of make.
KERNELS = {"sanitize": ["SANITIZE=1"], "debug": ["DEBUG=1"], "smp": ["SMP=1"],
           "smp-debug": ["SMP=1", "DEBUG=1"],
           "sanitize-debug": ["SANITIZE=1", "DEBUG=1", "DWARF=0"]}


def other_kernel(folder, name="slate-workshop.elf"):
    """A kernel of one of these builds, in the folder where `make` has it. Files
    of tests that run beside each other build it one after the other."""
    there = f"{BUILD_NAME}/{folder}"
    kernel = f"{there}/{name}"
    with open(BUILD / f"{folder}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "--no-print-directory", "-j2", *KERNELS[folder],
             f"BUILD={there}", kernel], cwd=ROOT, encoding="utf-8",
            check=False, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / kernel


@pytest.fixture(scope="session")
def smp():
    """The workshop kernel for several processors."""
    return other_kernel("smp")


@pytest.fixture(scope="session")
def smp_debug():
    return other_kernel("smp-debug")


@pytest.fixture(params=["smp", "smp_debug"])
def either(request):
    """The one, then the other."""
    return request.getfixturevalue(request.param)


# Four processors, each a thread of the host, for the kernels `smp` and
# `smp_debug`.
FOUR = {"initrd": BUILD / "initrd-workshop.tar",
        "extra": ["-smp", "4", "-accel", "tcg,thread=multi"]}


def linked(name):
    """The objects of a kernel, without their folder and .o."""
    text = product(f"{name}.map", "tested").read_text(encoding="utf-8")
    return set(re.findall(r"^LOAD \S*?build/(\S+)\.o$", text, re.M))


@pytest.fixture(scope="session")
def iso():
    return product("slate.iso", "iso")


@pytest.fixture
def boot(kernel):
    """boot(...) starts a machine on the kernel and, unless told not to, waits
    for its prompt; it ends with the test."""
    machines = []

    def start(*args, wait=True, **options):
        machine = qemu.Machine(options.pop("image", kernel), *args, **options)
        machines.append(machine)
        if wait:
            machine.prompt()
        return machine

    yield start
    for machine in machines:
        machine.close()


@pytest.fixture(scope="module")
def shell(kernel):
    """One booted machine for all tests of a module that leave it as it was,
    at its prompt."""
    with qemu.Machine(kernel) as machine:
        machine.prompt()
        yield machine


@pytest.fixture(scope="module")
def workshop_shell(workshop):
    """The same on the workshop kernel."""
    with qemu.Machine(workshop) as machine:
        machine.prompt()
        yield machine
