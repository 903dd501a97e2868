"""The build: a second make does nothing, a change rebuilds what it touches, a
missing tool is one line. Works on a copy of the tree, so that the products of
the tree itself stay as they are."""

import os
import shutil
import subprocess

import pytest

from conftest import ROOT

FOLDERS = ["boot", "kernel", "mm", "drivers", "tools"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A built copy of the tree."""
    copy = tmp_path_factory.mktemp("tree")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy / name,
                        ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Makefile", copy)
    done = make(copy, "-j2", "kernel")
    assert done.returncode == 0, done.stdout + done.stderr
    return copy


def make(tree, *arguments):
    clean = {k: v for k, v in os.environ.items()
             if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "BUILD", "V",
                          "DEBUG", "CMD", "APPEND", "MEM")}
    return subprocess.run(["make", "--no-print-directory", *arguments],
                          cwd=tree, text=True, check=False,
                          capture_output=True, env=clean)


def compiled(done):
    """The sources that a run of make compiled or assembled."""
    assert done.returncode == 0, done.stdout + done.stderr
    return {line.split()[1] for line in done.stdout.splitlines()
            if line.split()[:1] in (["CC"], ["NASM"])}


def test_second_make_does_nothing(tree):
    done = make(tree, "kernel")
    assert done.stdout == "make: Nothing to be done for 'kernel'.\n"


def test_touched_source_alone_is_rebuilt(tree):
    os.utime(tree / "mm/page.c")
    assert compiled(make(tree, "kernel")) == {"mm/page.c"}


def test_touched_header_rebuilds_its_includers(tree):
    os.utime(tree / "mm/buddy.h")
    names = compiled(make(tree, "kernel"))
    assert "mm/buddy.c" in names and "kernel/lib/string.c" not in names


def test_changed_flags_rebuild_all_and_debug_is_apart(tree):
    assert "mm/page.c" in compiled(make(tree, "-j2", "kernel", "WERROR=1"))
    assert compiled(make(tree, "kernel", "WERROR=1")) == set()
    assert "mm/page.c" in compiled(make(tree, "-j2", "kernel", "DEBUG=1"))
    assert (tree / "build/debug/slate.elf").exists()
    assert compiled(make(tree, "kernel", "WERROR=1")) == set()


def test_removed_source_leaves_the_kernel(tree):
    extra = tree / "kernel/extra.c"
    extra.write_text("int extra_function(void);\n"
                     "int extra_function(void)\n{\n    return 1;\n}\n")
    make(tree, "kernel", "WERROR=1")
    assert b"extra_function" in (tree / "build/slate.elf").read_bytes()
    extra.unlink()
    assert compiled(make(tree, "kernel", "WERROR=1")) == set()
    assert b"extra_function" not in (tree / "build/slate.elf").read_bytes()


def test_build_folder_can_be_chosen(tree):
    done = make(tree, "-j2", "kernel", "BUILD=elsewhere")
    assert done.returncode == 0, done.stderr
    assert (tree / "elsewhere/slate.elf").exists()


def test_verbose_shows_commands(tree):
    os.utime(tree / "mm/page.c")
    out = make(tree, "kernel", "V=1", "WERROR=1").stdout
    assert "-mregparm=3" in out and "-c mm/page.c" in out


def test_help_is_the_default_and_names_every_target(tree):
    out = make(tree).stdout
    for target in ("run doctor iso run-iso gdb debug-server test test-host "
                   "test-kernel test-system bench coverage mutants lint format "
                   "clean").split():
        assert f"  {target} " in out


@pytest.mark.parametrize("goal, setting, missing", [
    ("kernel", "CROSS_COMPILE=nowhere-", "nowhere-gcc"),
    ("kernel", "NASM=nonasm", "nonasm"),
    ("run", "QEMU=noqemu", "noqemu"),
    ("iso", "GRUB_MKRESCUE=", "grub-mkrescue"),
])
def test_missing_tool_is_one_line(tree, goal, setting, missing):
    done = make(tree, goal, setting, "BUILD=none" if goal == "kernel"
                else "WERROR=1")
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines()
             if not line.startswith("make: *** ")]
    assert len(lines) == 1 and missing in lines[0], done.stderr
    assert "tools/setup" in lines[0]


def test_wrong_memory_is_one_line(tree):
    done = make(tree, "run", "MEM=much", "WERROR=1")
    assert done.returncode != 0
    assert "MEM=much is not a number of MiB" in done.stderr
