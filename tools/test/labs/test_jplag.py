"""The layout of hand-ins for JPlag: submissions, the starter, the solution."""

import sys

import pytest

from conftest import ROOT, execute
from tools.grading import archive, labs

pytestmark = pytest.mark.plain


def jplag(*arguments):
    return execute(sys.executable, "-m", "tools.grading.jplag", *arguments)


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes()
            for p in folder.rglob("*") if p.is_file()}


def test_layout(tmp_path):
    """Only C files, whatever else a hand-in has; what is missing is said."""
    buddy, stat = "mm/buddy.c", "mm/inspect/buddy_stat.c"
    alice, out = tmp_path / "alice", tmp_path / "out"
    for name in buddy, stat, "Makefile", "docs/labs/02-buddies/answers.toml":
        (alice / name).parent.mkdir(parents=True, exist_ok=True)
        (alice / name).write_bytes(b"alice\n")
    archive.pack(tmp_path / "bob.tar.gz", {buddy: b"bob\n"})
    (tmp_path / "dave").mkdir()
    done = jplag("--lab", "2", "--out", out, alice, tmp_path / "bob.tar.gz",
                 tmp_path / "dave", tmp_path / "eve")
    assert done.returncode == 2
    assert f"{tmp_path}/eve: is not there" in done.stderr
    assert f"{tmp_path}/dave: has no source of lab 2\n" in done.stderr
    assert done.stdout.startswith("2 of 4 submissions")
    assert files(out / "submissions") == {
        f"alice/{buddy}": b"alice\n", f"alice/{stat}": b"alice\n",
        f"bob/{buddy}": b"bob\n"}
    cut = labs.handed_out(ROOT, labs.load(ROOT, 2))
    assert files(out / "base")[buddy] == cut[buddy].encode()
    assert files(out / "solutions")[f"solution/{buddy}"] == \
        (ROOT / buddy).read_bytes()
    assert done.stdout.endswith(
        f"java -jar jplag.jar {out}/submissions -l c -bc {out}/base "
        f"-old {out}/solutions\n")


def test_the_solution_of_a_skeleton_is_not_the_skeleton(tmp_path):
    jplag("--lab", "10", "--out", tmp_path, tmp_path / "eve")
    name = "mm/others/yours.c"
    assert (tmp_path / "solutions/solution" / name).read_bytes() == \
        (ROOT / labs.load(ROOT, 10).solution(ROOT, name)).read_bytes() != \
        (ROOT / name).read_bytes()


def test_refused(tmp_path):
    done = jplag("--lab", "99", "--out", tmp_path / "out", tmp_path)
    assert done.returncode == 2 and "there is no lab 99" in done.stderr
    (tmp_path / "file").write_text("x", "utf-8")
    done = jplag("--lab", "2", "--out", tmp_path, tmp_path)
    assert done.returncode == 2 and "is not empty" in done.stderr
