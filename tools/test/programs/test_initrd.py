"""The archive of the root file system, and the programs in it."""

import io
import os
import re
import subprocess
import sys
import tarfile

import pytest
from elftools.elf.constants import P_FLAGS
from elftools.elf.elffile import ELFFile

from conftest import ROOT, product

pytestmark = pytest.mark.plain

PROGRAMS = ("ls cat echo grep wc head sort mkdir rm mv ln ps kill sleep find "
            "file stat kmastat free uptime true false").split()

USER_BASE, HEAP_END = 0x500000, 0x40000000


@pytest.fixture(scope="module")
def archive():
    with tarfile.open(product("initrd.tar", "kernel")) as tar:
        yield tar


@pytest.fixture(scope="module")
def workshop_archive():
    with tarfile.open(product("initrd-workshop.tar", "workshop")) as tar:
        yield tar


def test_the_product_has_no_test_programs(archive, workshop_archive):
    more = set(workshop_archive.getnames()) - set(archive.getnames())
    tests = {p.stem for p in (ROOT / "user/tests").iterdir()
             if p.is_dir() or p.suffix == ".c"}
    assert len(tests) > 10 and {f"bin/{name}" for name in tests} <= more
    assert not set(archive.getnames()) - set(workshop_archive.getnames())
    servers = archive.extractfile("etc/servers").read().decode()
    both = workshop_archive.extractfile("etc/servers").read().decode()
    assert both.startswith(servers) and both != servers
    named = re.findall(r"^ +program +/(\S+)", servers, re.M)
    assert named and set(named) <= set(archive.getnames())


def make(folder, *options):
    """The bytes of an archive of `folder`."""
    out = folder.parent / "out.tar"
    subprocess.run([sys.executable, "-m", "tools.run.initrd", "--out", out,
                    "--root", folder, *options], cwd=ROOT, check=True)
    return out.read_bytes()


def tree(folder, names):
    """A folder with these files, made in this order."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return folder


def test_equal_input_gives_an_equal_archive(tmp_path):
    names = ["b", "a/z", "a/y", "c/d/e"]
    first = make(tree(tmp_path / "one/root", names), "--files", "7")
    again = tree(tmp_path / "two/root", reversed(names))
    for path in again.rglob("*"):
        os.utime(path, (1, 1))
    assert make(again, "--files", "7") == first


def test_entries_are_plain_and_in_order(archive):
    members = archive.getmembers()
    names = [m.name for m in members]
    assert names == sorted(names)
    for m in members:
        assert m.isreg() or m.isdir(), m.name
        assert (m.uid, m.gid, m.uname, m.gname, m.mtime) == (0, 0, "", "", 0)
        parent = os.path.dirname(m.name)
        assert parent in names[:names.index(m.name)] + [""], m.name
        assert len(os.path.basename(m.name)) <= 59, m.name


def test_many_files(tmp_path):
    data = make(tree(tmp_path / "root", ["x"]), "--files", "120")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        files = [m for m in tar if m.name.startswith("many/") and m.isreg()]
    folders = [os.path.dirname(m.name) for m in files]
    assert len(files) == 120
    assert {f: folders.count(f) for f in folders} == {
        "many/000": 50, "many/001": 50, "many/002": 20}
    assert 0 < sum(m.size for m in files) < 120 * 1024


def headers(data):
    """The entry point, and the program headers."""
    elf = ELFFile(io.BytesIO(data))
    assert (elf["e_type"], elf["e_machine"]) == ("ET_EXEC", "EM_386")
    return elf["e_entry"], [s.header for s in elf.iter_segments()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_a_static_elf(archive, name):
    data = archive.extractfile(f"bin/{name}").read()
    entry, loads = headers(data)
    assert [h["p_type"] for h in loads] == ["PT_LOAD"] * 3
    assert [h["p_flags"] for h in loads] == [
        P_FLAGS.PF_R | P_FLAGS.PF_X, P_FLAGS.PF_R, P_FLAGS.PF_R | P_FLAGS.PF_W]
    end, stored = USER_BASE, 0
    for h in loads:
        assert h["p_vaddr"] % 4096 == h["p_offset"] % h["p_align"] == 0, h
        assert h["p_vaddr"] >= end and h["p_memsz"] >= h["p_filesz"], h
        assert stored <= h["p_offset"] < stored + 64, h
        end, stored = h["p_vaddr"] + h["p_memsz"], h["p_offset"] + h["p_filesz"]
    assert stored <= len(data)
    assert end < HEAP_END
    assert 0 < entry - loads[0]["p_vaddr"] < loads[0]["p_filesz"]
    assert b".debug" not in data


@pytest.mark.parametrize("name, pages", [
    ("true", 3), ("echo", 4), ("cat", 6), ("ls", 9), ("grep", 9)])
def test_small_programs_are_small(archive, name, pages):
    _, loads = headers(archive.extractfile(f"bin/{name}").read())
    assert sum((h["p_memsz"] + 4095) // 4096 for h in loads) <= pages


def test_every_system_call_has_a_stub():
    listed = re.findall(r"^ +X\((\w+)\)",
                        (ROOT / "kernel/abi/syscall.h").read_text("utf-8"),
                        re.M)
    stubs = (ROOT / "user/lib/syscall.asm").read_text(encoding="utf-8")
    called = re.findall(r"^ +(?:RAW|STUB|MESSAGE) +\w+, SYS_(\w+)", stubs,
                        re.M)
    assert len(listed) > 40
    assert sorted(called) == sorted(listed)
