"""Hand-outs that are git repositories: a newer one is merged into a student's
work, and nothing of that is lost."""

import os
import shutil
import sys

import pytest

from conftest import ROOT, execute, sample
from tools.grading import upstream
from tools.grading.labs import LabError

pytestmark = pytest.mark.plain

FIRST = {".lab": "lab = 2\nseed = 7\n", ".gitignore": "build/\n.venv\n",
         "mm/buddy.c": "top\n1\n2\n3\n4\n5\nbottom\n", "docs/page.md": "old\n"}
NEWER = {**FIRST, "docs/page.md": "corrected\n", "docs/more.md": "more\n",
         "mm/buddy.c": FIRST["mm/buddy.c"].replace("top", "better top")}


@pytest.fixture(autouse=True)
def nobody(tmp_path, monkeypatch):
    """No settings of this machine's user, who may have no name."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "home/.gitconfig"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text(
        "[user]\nuseConfigOnly = true\n", "utf-8")


def fill(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.fixture
def newer(tmp_path):
    return fill(tmp_path / "newer", NEWER)


class Student:
    """A hand-out in which a student works."""

    def __init__(self, folder):
        self.folder = fill(folder, FIRST)
        upstream.begin(folder, "Lab 2: Buddies")
        self.git = upstream.Repository(folder)

    def write(self, name, text):
        fill(self.folder, {name: text})

    def commit(self):
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit",
                 "--quiet", "-a", "-m", "mine")

    def read(self, name):
        return (self.folder / name).read_text("utf-8")

    def update(self, source):
        return upstream.update(self.git, str(source))

    def refused(self, source, said):
        """Nothing changes, but for the branch upstream."""
        before = self.git("rev-parse", "HEAD"), self.state()
        with pytest.raises(LabError, match=said):
            self.update(source)
        assert before == (self.git("rev-parse", "HEAD"), self.state())

    def state(self):
        return {p: p.read_bytes() for p in self.folder.rglob("*")
                if p.is_file() and ".git" not in p.parts}


@pytest.fixture
def student(tmp_path):
    return Student(tmp_path / "student")


MINE = FIRST["mm/buddy.c"].replace("bottom", "my bottom")


def test_a_newer_hand_out_is_merged(student, newer):
    student.write("mm/buddy.c", MINE)
    student.commit()
    student.write("notes.txt", "mine")  # not committed, and of no hand-out
    assert student.update(newer) == []
    assert student.read("mm/buddy.c") == \
        "better top\n1\n2\n3\n4\n5\nmy bottom\n"
    assert student.read("docs/page.md") == "corrected\n"
    assert student.read("docs/more.md") == "more\n"
    assert student.read("notes.txt") == "mine"
    assert student.git("rev-list", "--count", "upstream") == "2"
    assert len(student.git("log", "-1", "--format=%P").split()) == 2
    assert student.update(newer) == []  # again
    assert student.git("rev-list", "--count", "upstream") == "2"


def test_without_work_it_is_the_newer_hand_out(student, newer):
    student.update(newer)
    assert {name: student.read(name) for name in NEWER} == NEWER
    fill(newer, {"docs/page.md": "again\n"})
    (newer / "docs/more.md").unlink()
    student.update(newer)
    assert student.read("docs/page.md") == "again\n"
    assert not (student.folder / "docs/more.md").exists()


def test_a_conflict_keeps_both(student, newer):
    mine = FIRST["mm/buddy.c"].replace("top", "my top")
    student.write("mm/buddy.c", mine)
    student.commit()
    assert student.update(newer) == ["mm/buddy.c"]
    assert "my top\n" in student.read("mm/buddy.c")
    assert "better top\n" in student.read("mm/buddy.c")
    student.refused(newer, "a merge is not finished: .* git merge --abort")
    student.git("merge", "--abort")
    assert student.read("mm/buddy.c") == mine
    assert student.update(newer) == ["mm/buddy.c"]
    student.write("mm/buddy.c", mine.replace("my top", "both tops"))
    student.commit()
    assert student.update(newer) == []
    assert student.read("docs/page.md") == "corrected\n"


def test_what_is_not_committed_stops_it(student, newer):
    student.write("mm/buddy.c", MINE)
    student.refused(newer, "not committed in mm/buddy.c: git commit -a")
    student.git("add", "mm/buddy.c")
    student.refused(newer, "not committed in mm/buddy.c")
    student.commit()
    student.write("docs/more.md", "mine")  # a file that the newer one has
    student.refused(newer, "docs/more.md")
    (student.folder / "docs/more.md").unlink()
    assert student.update(newer) == []
    assert student.read("docs/more.md") == "more\n"


@pytest.mark.parametrize("form", ["folder", "repository", "url", "clone"])
def test_forms_of_a_newer_hand_out(student, newer, tmp_path, form):
    (newer / "build").mkdir()
    (newer / "build/slate.elf").write_text("ignored", "utf-8")
    source = newer
    if form != "folder":
        upstream.begin(newer, "Lab 2: Buddies")
    if form == "url":
        source = newer.as_uri()
    if form == "clone":  # without the branch upstream
        source = tmp_path / "clone"
        student.git("clone", "--quiet", "--branch", "main", newer, source)
    student.update(source)
    assert {name: student.read(name) for name in NEWER} == NEWER
    assert not (student.folder / "build").exists()


def test_what_is_no_newer_hand_out(student, newer, tmp_path):
    fill(newer, {".lab": "lab = 2\nseed = 8\n"})
    student.refused(newer, "is lab 2 with seed 8, but this is lab 2 with "
                    "seed 7")
    (newer / ".lab").unlink()
    student.refused(newer, "is no hand-out, but this is lab 2")
    student.refused(tmp_path / "nowhere", "FROM: .*nowhere")
    student.git("checkout", "--quiet", "upstream")
    student.refused(newer, "your work is on the branch main")
    student.git("checkout", "--quiet", "--detach")
    student.refused(newer, "your work is on the branch main")
    shutil.rmtree(student.folder / ".git")
    with pytest.raises(LabError, match="made without GIT=1"):
        student.update(newer)


def test_the_same_files_are_the_same_commit(tmp_path):
    heads = set()
    for name in "ab":
        folder = fill(tmp_path / name, FIRST)
        upstream.begin(folder, "Lab 2", "2026-10-01T12:00:00+02:00")
        heads.add(upstream.Repository(folder)("rev-parse", "main"))
    assert len(heads) == 1


@sample
def test_make_lab_and_make_update(tmp_path):
    """The command, in a real hand-out."""
    for name in "out", "new":
        done = execute(sys.executable, "-m", "tools.grading.lab", "--lab", "2",
                       "--out", tmp_path / name, "--git")
        assert done.returncode == 0, done.stderr
    out, new = tmp_path / "out", tmp_path / "new"
    git, start = upstream.Repository(out), (out / "START-HERE.md")
    assert "make update FROM=" in start.read_text("utf-8")
    assert git("status", "--porcelain") == ""
    assert git("symbolic-ref", "--short", "HEAD") == "main"
    (out / ".venv").symlink_to(ROOT / ".venv")

    def update(*arguments):
        return execute("make", "--no-print-directory", "update", *arguments,
                       cwd=out)
    assert "update: FROM is missing" in update().stderr
    page = "docs/labs/02-buddies/README.md"
    with open(new / page, "a", encoding="utf-8") as f:
        f.write("A correction.\n")
    upstream.Repository(new)("-c", "user.name=i", "-c", "user.email=i@j",
                             "commit", "-qam", "x")
    upstream.Repository(new)("branch", "-f", "upstream", "main")
    done = update(f"FROM={new}")
    assert done.returncode == 0, done.stderr
    assert (out / page).read_text("utf-8").endswith("A correction.\n")
    for folder, text in (out, "mine\n"), (new, "theirs\n"):
        (folder / page).write_text(text, "utf-8")
        upstream.Repository(folder)("-c", "user.name=i", "-c", "user.email=i@j",
                                    "commit", "-qam", "x")
    upstream.Repository(new)("branch", "-f", "upstream", "main")
    done = update(f"FROM={new}")
    assert done.returncode == 2 and os.path.exists(out / ".git/MERGE_HEAD")
    assert f"same lines of\n    {page}\n" in done.stderr
    assert "git merge --abort" in done.stderr
