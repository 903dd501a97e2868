"""Archives of hand-ins: the same bytes for the same files, and nothing but
plain files out of one that a student has written."""

import gzip
import io
import os
import tarfile

import pytest

from tools.grading import archive

pytestmark = pytest.mark.plain

FILES = {"mm/buddy.c": b"int x;\n", ".lab": b"lab = 2\n"}


def unpacked(path):
    """({name: bytes}, notes) of a submission."""
    with archive.opened(path) as (folder, notes):
        return {str(p.relative_to(folder)): p.read_bytes()
                for p in folder.rglob("*") if p.is_file()}, notes


def member(name, data=b"x", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def write(path, *members):
    """An archive of these, with what pack() would not write."""
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as out:
        for info, data in members:
            out.addfile(info, io.BytesIO(data))
    return path


def test_the_same_files_are_the_same_bytes(tmp_path):
    one, two = tmp_path / "one.tar.gz", tmp_path / "two.tar.gz"
    archive.pack(one, FILES)
    archive.pack(two, dict(reversed(FILES.items())))
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes()[4:8] == bytes(4)  # gzip's time
    with tarfile.open(one) as there:
        assert {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode)
                for m in there} == {(0, 0, 0, "", "", 0o644)}


def test_what_is_packed_is_unpacked(tmp_path):
    alone = tmp_path / "alice/handin-lab2.tar.gz"
    alone.parent.mkdir()
    archive.pack(alone, FILES)
    assert unpacked(alone) == unpacked(alone.parent) == (FILES, [])
    (alone.parent / "more").write_text("x", "utf-8")
    with archive.opened(alone.parent) as (folder, _):
        assert folder == alone.parent  # a folder, with an archive in it


def test_names():
    assert archive.name_of("x/alice.tar.gz") == "alice"
    assert archive.name_of("x/alice.tgz") == "alice"
    assert archive.name_of("x/alice.b/") == "alice.b"
    assert archive.name_of(".") == os.path.basename(os.getcwd())


@pytest.mark.parametrize("odd, said", [
    (member("/tmp/slate-outside"), "leads out"),
    (member("../outside"), "leads out"),
    (member("a/../../outside"), "leads out"),
    (member("mm/link", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
     "is no plain file"),
    (member("mm/hard", b"", type=tarfile.LNKTYPE, linkname="mm/buddy.c"),
     "is no plain file"),
    (member("mm/pipe", b"", type=tarfile.FIFOTYPE), "is no plain file"),
    (member("mm/disk", b"", type=tarfile.BLKTYPE), "is no plain file"),
    (member("mm/\udcfc.c", b"", type=tarfile.FIFOTYPE), "mm/?.c is no plain"),
    (member("mm/buddy.c/x"), "is a file and a folder"),
    (member("mm"), "is a file and a folder"),
    (member("a/" * archive.DEEPEST + "x"), "is in too many folders"),
], ids=lambda value: value if isinstance(value, str) else value[0].name)
def test_all_but_plain_files_is_left_out(tmp_path, odd, said):
    """The others are there. A link to a folder is no way out either."""
    path = write(tmp_path / "a.tar.gz", member("mm/buddy.c"), odd,
                 member("mm/later.c"))
    files, notes = unpacked(path)
    assert files == {"mm/buddy.c": b"x", "mm/later.c": b"x"}
    assert len(notes) == 1 and said in notes[0]
    assert os.listdir(tmp_path) == ["a.tar.gz"]


def test_nothing_is_written_through_a_link(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    path = write(tmp_path / "a.tar.gz",
                 member("mm", b"", type=tarfile.SYMTYPE,
                        linkname=str(outside)), member("mm/buddy.c"))
    assert unpacked(path)[0] == {"mm/buddy.c": b"x"}
    assert not os.listdir(outside)


def bomb(path):
    with gzip.GzipFile(path, "wb") as f:
        f.write(bytes(archive.LARGEST + 1))


def sparse(path):
    """A member that says that it is large, and has nothing."""
    write(path, member("big", b"", pax_headers={
        "GNU.sparse.major": "0", "GNU.sparse.size": str(1 << 40),
        "GNU.sparse.map": f"0,0,{1 << 40},0"}))


def many(path):
    write(path, *(member(f"{n}", b"") for n in range(archive.MEMBERS + 1)))


def cut_short(path):
    archive.pack(path, {"a": os.urandom(1000)})
    path.write_bytes(path.read_bytes()[:500])


def deep(path):
    """A chain of long names of long names."""
    info = tarfile.TarInfo("x")
    info.type = tarfile.GNUTYPE_LONGNAME
    path.write_bytes(gzip.compress(info.tobuf() * 5000))


@pytest.mark.parametrize("make, said", [
    (bomb, "has more than"), (sparse, "has more than"),
    (many, "has more than"), (cut_short, "is no .tar.gz archive"),
    (deep, "is no .tar.gz archive"),
    (lambda path: path.write_bytes(b"text"), "is no .tar.gz archive"),
    (lambda path: path.write_bytes(b""), "is no .tar.gz archive"),
    (lambda path: None, "is not there"),
    (lambda path: os.mkfifo(path), "is not a folder, and no archive"),
])
def test_an_archive_that_is_refused(tmp_path, make, said):
    path = tmp_path / "a.tar.gz"
    make(path)
    with pytest.raises(archive.ArchiveError) as refused, archive.opened(path):
        pass
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_member_that_is_followed_by_itself(tmp_path):
    """Python before 3.13.6 would read it for ever; later ones end there."""
    first, data = (bytearray(member(name, b"")[0].tobuf(tarfile.GNU_FORMAT))
                   for name in "ab")
    data[124:136] = b"\xff" * 10 + b"\xfe\0"  # -512: back to this block
    data[148:156] = b"        "
    data[148:156] = b"%06o\0 " % sum(data)
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(bytes(first + data)))
    try:
        assert unpacked(path)[0] == {"a": b""}
    except archive.ArchiveError as e:
        assert "has more than" in str(e)
