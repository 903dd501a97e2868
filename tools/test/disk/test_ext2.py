"""The core of the ext2 server on this machine, under the sanitizers: e2fsck
checks and debugfs reads the disks it writes, it reads the disks that mke2fs and
debugfs write, and a damaged image cannot harm it. docs/ext2.md."""
# Tests: user/servers/ext2/*.c

import os
import random
import re
import subprocess
import uuid

import pytest

from conftest import BUILD, tiers
from tools.run import watchdog

pytestmark = [pytest.mark.plain, pytest.mark.spread]
TOOL = BUILD / "host" / "ext2tool"
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/sbin", "/usr/sbin"])

# Options of mke2fs: sizes of blocks and inodes, the oldest revision, and a
# journal, which takes 1024 blocks of 2048 at least.
FORMATS = {
    "1k-128": ["-b", "1024", "-I", "128"],
    "2k-256": ["-b", "2048", "-I", "256"],
    "4k-256": ["-b", "4096", "-I", "256"],
    "revision0": ["-b", "1024", "-r", "0", "-O", "none"],
    "journal": ["-b", "1024", "-I", "256", "-O", "has_journal"],
}
each_format = pytest.mark.parametrize("form", FORMATS)


def run(name, *arguments, text=None, good=(0,)):
    """Output of a program, which must end with one of these statuses."""
    done = watchdog.run(
        [str(name), *map(str, arguments)], input=text, encoding="utf-8",
        errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        # leak checking needs ptrace, which a container may not allow
        env={"PATH": PATH, "ASAN_OPTIONS": "detect_leaks=0", "LC_ALL": "C"})
    assert done.returncode in good, \
        f"{name} {arguments}: {done.returncode}\n{done.stdout[-3000:]}"
    return done.stdout


def core(image, *commands, good=(0,)):
    assert TOOL.exists(), f"{TOOL} does not exist: make test-ext2"
    return run(TOOL, image, text="\n".join(commands) + "\n", good=good)


def make(image, form="1k-128", size="2M", *options):
    run("mke2fs", "-q", "-F", "-t", "ext2", *FORMATS[form], *options, image,
        size)
    return image


def clean(image):
    run("e2fsck", "-fn", image)


def dump(image, name, folder):
    """A file of an image, by debugfs."""
    out = folder / "dumped"
    out.unlink(missing_ok=True)
    said = run("debugfs", "-R", f"dump {name} {out}", image)
    assert out.exists(), said
    return out.read_bytes()


def contents(n, seed):
    return random.Random(seed).randbytes(n)


# ---- one program writes, the other reads -----------------------------------

# Direct blocks, one floor of numbers, two; a hole before each floor.
SIZES = [0, 1, 1024, 12 * 1024, 12 * 1024 + 1, 200_000, 700_000]


@each_format
def test_debugfs_reads_files_written_here(form, tmp_path):
    image = make(tmp_path / "image", form, "8M")
    commands = ["mkdir /d", "mkdir /d/e"]
    for i, size in enumerate(SIZES):
        (tmp_path / f"f{i}").write_bytes(contents(size, i))
        commands.append(f"put {tmp_path}/f{i} /d/e/f{i}")
    core(image, *commands, "ln /d/e/f5 /link", "mv /d/e/f6 /moved")
    clean(image)
    for i, size in enumerate(SIZES):
        name = "/moved" if i == 6 else f"/d/e/f{i}"
        assert dump(image, name, tmp_path) == contents(size, i), name
    assert dump(image, "/link", tmp_path) == contents(SIZES[5], 5)


@each_format
def test_files_of_e2fsprogs_are_read_here(form, tmp_path):
    source = tmp_path / "source"
    (source / "d").mkdir(parents=True)
    for i, size in enumerate(SIZES):
        (source / "d" / f"f{i}").write_bytes(contents(size, i))
    image = make(tmp_path / "image", form, "8M", "-d", source)
    (tmp_path / "more").write_bytes(contents(50_000, 99))
    run("debugfs", "-w", "-R", f"write {tmp_path}/more more", image)
    core(image, "get /more " + str(tmp_path / "got"),
         *(f"get /d/f{i} {tmp_path}/got{i}" for i in range(len(SIZES))))
    assert (tmp_path / "got").read_bytes() == contents(50_000, 99)
    for i, size in enumerate(SIZES):
        assert (tmp_path / f"got{i}").read_bytes() == contents(size, i)


@pytest.mark.parametrize("read", tiers([False], soaks=[True]))
def test_holes_on_every_floor(read, tmp_path):
    """With blocks of 1 KiB triple indirection begins at 64 MiB. To read the
    file takes 2 GB."""
    image = make(tmp_path / "image")
    places = [0, 100_000, 1_000_000, 70_000_000, 2_000_000_000]
    core(image, *(f"write /sparse {at} 5000 {at % 97}" for at in places),
         f"get /sparse {tmp_path}/got" if read else "",
         "fails 27 write /sparse 2147483647 1 1")
    clean(image)
    stat = run("debugfs", "-R", "stat /sparse", image)
    assert "Size: 2000005000" in stat and "(TIND)" in stat
    core(image, "truncate /sparse 1000001", f"get /sparse {tmp_path}/got")
    clean(image)
    got = (tmp_path / "got").read_bytes()
    assert len(got) == 1_000_001 and got[5000:100_000].count(0) == 95_000
    assert dump(image, "/sparse", tmp_path) == got
    before = core(image, "df")
    core(image, "rm /sparse")
    assert core(image, "df") != before
    clean(image)


def test_a_file_too_large_to_be_written_stays(tmp_path):
    """A file by another system, of 2 GiB or more."""
    image = make(tmp_path / "image")
    core(image, "write /f 0 5000 1")
    run("debugfs", "-w", "-R", "sif /f size 3000000000", image)
    core(image, "fails 27 write /f 0 9 2", "truncate /f 5000",
         f"get /f {tmp_path}/got", "write /f 0 9 2")
    clean(image)
    assert dump(image, "/f", tmp_path)[9:] == \
        (tmp_path / "got").read_bytes()[9:]


def test_a_longer_file_has_zeroes_after_its_old_end(tmp_path):
    """A power cut or another system may have left other bytes after the end, in
    the last block."""
    image = make(tmp_path / "image")
    ways = {"/longer": "truncate {} 1000", "/hole": "write {} 500 500 2"}
    core(image, *(f"write {name} 0 400 1" for name in ways))
    for name in ways:
        run("debugfs", "-w", "-R", f"sif {name} size 100", image)
    for name, way in ways.items():
        core(image, way.format(name), f"get {name} {tmp_path}/got")
        assert not any((tmp_path / "got").read_bytes()[100:500])
    clean(image)


@each_format
def test_a_directory_of_thousands(form, tmp_path):
    image = make(tmp_path / "image", form, "4M", "-N", "4000")
    core(image, "mkdir /d", "many /d/a-file-with-a-name- 0 3000",
         "mkdir /d/inside")
    clean(image)
    listed = run("debugfs", "-R", "ls -p /d", image).splitlines()
    assert len([line for line in listed if "a-file-with" in line]) == 3000
    out = core(image, "ls /d", *(f"rm /d/a-file-with-a-name-{i}"
                                 for i in range(0, 3000, 2)),
               "fails 39 rmdir /d", "many /d/another- 0 1500")
    assert len(out.splitlines()) == 3001
    clean(image)
    listed = run("debugfs", "-R", "ls -p /d", image).splitlines()
    assert len([line for line in listed if "another-" in line]) == 1500


@pytest.mark.parametrize("form", ["1k-128", "4k-256"])
@pytest.mark.parametrize("offset, filler", [(484, 32), (504, 0), (508, 56)])
def test_room_in_a_free_entry_of_two_sectors(offset, filler, form, tmp_path):
    """The entry, of 60 bytes, is split. What remains at its offset must be long
    enough for an entry, and for the name in it. Not all new names have room
    elsewhere in the first block. The filler is the length of the first
    name."""
    image = make(tmp_path / "image", form, "2M", "-N", "256")
    (tmp_path / "empty").touch()
    names = ["first".ljust(filler, "-")] if filler > 0 else []
    names += [f"{i}".ljust(52, "-") for i in range(120)]
    script = tmp_path / "script"
    script.write_text("mkdir d\n" + "".join(
        f"write {tmp_path}/empty d/{name}\n" for name in names), "utf-8")
    run("debugfs", "-w", "-f", script, image)
    entry = dump(image, "/d", tmp_path)[offset:offset + 60]
    gone = entry[8:].decode()
    assert int.from_bytes(entry[4:6], "little") == 60 and gone in names
    said = core(image, f"rm /d/{gone}", "sync",
                "many /d/new-name-of-23-letters 0 5", "sync", "ls /d")
    assert len(said.splitlines()) == len(names) - 1 + 5
    clean(image)


def test_a_listing_goes_on_inside_an_entry(tmp_path):
    """Between two calls of getdents, the entry at which the second call starts
    is joined with the free entry before it, and a new entry covers both."""
    image = make(tmp_path / "image")
    name = "x" * 55  # seven in the first sector
    said = core(image, "mkdir /d", f"many /d/{name} 0 9", "list /d 576",
                f"rm /d/{name}7", f"rm /d/{name}8", "sync",
                f"many /d/new{name} 0 1", "list /d 576", "list /d 512")
    assert said.split() == [f"{name}8", f"new{name}0"]


def test_a_renamed_directory_has_no_place_in_an_index(tmp_path):
    source = tmp_path / "source"
    for i in range(300):
        (source / "d" / f"b{i}").mkdir(parents=True)
    image = make(tmp_path / "image", "journal", "4M", "-N", "1000",
                 "-O", "has_journal,dir_index", "-d", source,
                 "-E", f"hash_seed={uuid.UUID(int=1)}")
    run("e2fsck", "-fyD", image)
    assert "Root node dump" in run("debugfs", "-R", "htree_dump /d", image)
    core(image, *(f"mv /d/b{i} /d/c{i}" for i in range(20)))
    clean(image)


# ---- workloads -------------------------------------------------------------

@each_format
@pytest.mark.parametrize("seed", tiers([1, 2], range(3, 7), range(7, 31)))
def test_random_workload_against_shadow(form, seed, tmp_path):
    small = seed % 2  # the disk gets full
    image = make(tmp_path / "image", form, "700k" if small else "4M",
                 "-N", "64" if small else "256")
    run(TOOL, "soak", image, seed, 1500, 60_000)
    clean(image)


def test_full_disk_and_no_inodes(tmp_path):
    image = make(tmp_path / "image", "1k-128", "1M", "-N", "32")
    core(image, "fails 28 write /big 0 2000000 1",
         "fails 28 write /other 0 1 1", "fails 28 mkdir /d", "df")
    clean(image)
    assert " 0 of 1024 blocks" in " " + core(image, "df").replace("\n", " ")
    core(image, "rm /big", "write /again 0 800000 2",  # at once
         "fails 28 many /n 0 100")
    clean(image)
    assert ", 0 of 32 files" in core(image, "df")
    core(image, "rm /again", "write /n1 0 100000 3")
    clean(image)


def count(said):
    """The numbers that the command counts has printed last."""
    return dict((name, int(n)) for name, n in
                re.findall(r"(\w+) (\d+)", said.splitlines()[-1]))


def test_writing_in_order_is_writing_in_runs(tmp_path):
    image = make(tmp_path / "image", "1k-128", "8M")
    said = core(image, "write /big 0 4194304 1", "sync", "counts")
    assert count(said)["flushes"] < 10
    assert count(said)["writes"] < 150
    said = core(image, f"get /big {tmp_path}/got", "counts")
    assert count(said)["reads"] < 150


def test_nothing_is_lost_that_was_not_asked_for(tmp_path):
    """After a second or two everything is on the disk, which is clean."""
    image = make(tmp_path / "image")
    core(image, "write /f 0 5000 1", "sync", "crash")
    clean(image)
    assert "Filesystem state:         clean" in \
        run("dumpe2fs", "-h", image)
    assert len(dump(image, "/f", tmp_path)) == 5000


def test_a_commit_leaves_nothing_to_write(tmp_path):
    """Entries that were changed or removed are written to disk once."""
    image = make(tmp_path / "image")
    said = core(image, "write /a 0 9 1", "write /b 0 9 1", "write /c 0 9 1",
                "sync", "mv /a /b", "rm /c", "sync", "counts", "sync", "counts")
    first, second = (count(line) for line in said.splitlines())
    assert (first["commits"], first["writes"]) == \
        (second["commits"], second["writes"])


# ---- fsync -----------------------------------------------------------------

# Commands before a sync, then those of the file /d/a before its fsync, and what
# of the metadata the fsync writes: "maps", and the directory with its name.
FSYNC = {
    "overwritten": ("write /d/a 0 40000 1", "write /d/a 3000 9000 2", ""),
    "longer": ("write /d/a 0 4000 1", "write /d/a 4000 90000 2", "maps"),
    "with more numbers": ("write /d/a 0 20000 1", "write /d/a 20000 50000 2",
                          "maps"),
    "shorter": ("write /d/a 0 90000 1", "truncate /d/a 5001", ""),
    "with fewer numbers": ("write /d/a 0 90000 1", "truncate /d/a 50000", ""),
    "with a hole": ("write /d/a 0 9000 1", "truncate /d/a 5001;"
                    "write /d/a 7000 9 2", "maps"),
    "new": ("", "write /d/a 0 90000 2", "maps /d"),
    "new name": ("write /d/a 0 30000 1", "ln /d/a /d/also", "/d"),
    "in a new directory": ("rmdir /d", "mkdir /d;write /d/a 0 9 2",
                           "maps /d /"),
    "moved when new": ("", "write /d/t 0 90000 2;mv /d/t /d/a", "maps /d"),
}


def blocks_of(image, path):
    """Numbers of the blocks of a file and of its inode, which has a block of
    its own."""
    data = run("debugfs", "-R", f"blocks {path}", image).splitlines()[-1]
    inode = run("debugfs", "-R", f"imap {path}", image)
    return {int(re.search(r"at block (\d+)", inode).group(1)),
            *map(int, data.split())}


def differences(one, other, size=1024):
    a, b = one.read_bytes(), other.read_bytes()
    return {i // size for i in range(0, len(a), size)
            if a[i:i + size] != b[i:i + size]}


@pytest.mark.parametrize("what", FSYNC)
def test_fsync_writes_one_file(what, tmp_path):
    """Others have been overwritten, extended and created: none of their blocks
    and inodes is on the disk. After a crash the file is complete, and the
    others are as they were before."""
    before, changes, metadata = FSYNC[what]
    image, old = make(tmp_path / "image", "1k-128", "8M", "-I", "1024",
                      "-N", "64"), tmp_path / "old"
    core(image, "mkdir /d", *filter(None, before.split(";")), "mkdir /e",
         "write /e/b 0 20000 5", "write /e/c 0 20000 6")
    old.write_bytes(image.read_bytes())
    core(image, "write /e/b 0 20000 7", "write /e/c 20000 50000 8",
         "write /e/new 0 20000 9", *changes.split(";"),
         f"get /d/a {tmp_path}/want", "fsync /d/a", "crash")
    maps = re.findall(r"(?:descriptors|bitmap) at (\d+)",
                      run("dumpe2fs", image))
    allowed = {1} | blocks_of(image, "/d/a")
    for name in metadata.split():
        allowed |= set(map(int, maps)) if name == "maps" else \
            blocks_of(image, name)
    assert differences(old, image) <= allowed
    repaired = tmp_path / "repaired"
    repaired.write_bytes(image.read_bytes())
    run("e2fsck", "-fp", repaired, good=(0, 1))
    core(image, f"get /d/a {tmp_path}/got", f"get /e/b {tmp_path}/b",
         f"get /e/c {tmp_path}/c", "fails 2 get /e/new /dev/null")
    clean(image)
    want = (tmp_path / "want").read_bytes()
    assert (tmp_path / "got").read_bytes() == want
    assert dump(repaired, "/d/a", tmp_path) == want
    for name in "bc":
        assert (tmp_path / name).read_bytes() == \
            dump(old, f"/e/{name}", tmp_path)


def test_what_an_fsync_left_is_written_by_sync(tmp_path):
    image = make(tmp_path / "image", "1k-128", "8M")
    core(image, "write /a 0 30000 1", "write /b 0 30000 2", "write /old 0 9 3",
         "sync", "mv /old /b", "write /a 0 30000 4", "fsync /a",
         "write /b 9 30000 5", "write /c 0 30000 6", "rm /a",
         f"get /b {tmp_path}/b", "sync", "crash")
    assert dump(image, "/b", tmp_path) == (tmp_path / "b").read_bytes()
    assert len(dump(image, "/c", tmp_path)) == 30000
    assert set(core(image, "ls /").split()[3::4]) == {"/lost+found", "/b", "/c"}
    clean(image)


def test_the_second_fsync_leaves_the_directory_alone(tmp_path):
    image = make(tmp_path / "image")
    core(image, "mkdir /d", "write /d/a 0 9000 1", "fsync /d/a",
         "write /d/later 0 9 2", "write /d/a 0 9000 3",
         f"get /d/a {tmp_path}/want", "fsync /d/a", "crash")
    assert dump(image, "/d/a", tmp_path) == (tmp_path / "want").read_bytes()
    assert "later" not in run("debugfs", "-R", "ls -p /d", image)


def test_contents_that_were_written_early_come_before_their_numbers(tmp_path):
    """There are 256 buffers: when /h has used all of them, the new contents of
    /f are written. The drive must store them before the fsync of /f writes the
    numbers of their blocks, although it has no contents or bitmap to write."""
    image = make(tmp_path / "image")
    core(image, "write /f 0 20000 1", "write /g 0 1000 1",
         "write /h 0 600000 1")
    said = core(image, "write /f 20000 100000 2", "write /g 1000 1000 2",
                "fsync /g", "counts", "write /h 0 200000 3", "counts",
                "fsync /f", "counts")
    synced, early, last = (count(line) for line in said.splitlines())
    assert early["writes"] > synced["writes"]
    # numbers, and the inode
    assert last["writes"] - early["writes"] == 2
    assert last["flushes"] - early["flushes"] == 3


def test_fsync_of_a_file_with_new_names_in_two_directories(tmp_path):
    image = make(tmp_path / "image")
    core(image, "mkdir /d", "mkdir /e", "sync", "write /d/a 0 9000 1",
         "ln /d/a /e/b", "fsync /d/a", "crash")
    assert dump(image, "/d/a", tmp_path) == dump(image, "/e/b", tmp_path)
    clean(image)


def test_fsync_of_a_file_that_replaced_another(tmp_path):
    """It has its new name, with one file or the other at every moment, which
    takes all steps."""
    image = make(tmp_path / "image")
    core(image, "write /a 0 9000 1", "write /new 0 30000 2", "sync",
         "mv /new /a", "fsync /a", "crash")
    assert len(dump(image, "/a", tmp_path)) == 30000
    core(image, "fails 2 get /new /dev/null")
    clean(image)


# ---- failures --------------------------------------------------------------

def test_orphans(tmp_path):
    """A file that was open without a name when the power was cut."""
    image = make(tmp_path / "image")
    free = core(image, "write /g 0 3000 1", "df").splitlines()[-1]
    for repair in ("e2fsck", "mount"):
        core(image, "write /f 0 500000 1", "orphan /f", "sync", "crash")
        if repair == "e2fsck":
            run("e2fsck", "-p", image, good=(1,))
        said = core(image, "df")
        assert free in said
        assert ("repaired" in said) == (repair == "mount")
        clean(image)


def test_a_repair_counts_what_was_free_by_mistake(tmp_path):
    image = make(tmp_path / "image")
    core(image, "write /f 0 5000 1")
    block = run("debugfs", "-R", "blocks /f", image).split()[-1]
    for command in (f"freeb {block}", "freei /f", "ssv state 0"):
        run("debugfs", "-w", "-R", command, image)
    assert "1 inodes, 1 blocks repaired" in core(image)
    clean(image)


def test_a_repair_counts_the_files_that_share_attributes(tmp_path):
    """The count on the disk does not include a file whose removal a power cut
    has prevented."""
    image = make(tmp_path / "image")
    core(image, "write /a 0 9 1", "write /b 0 9 2")
    run("debugfs", "-w", "-R", "ea_set /a user.colour blue", image)
    block = re.search(r"File ACL: (\d+)",
                      run("debugfs", "-R", "stat /a", image)).group(1)
    for command in (f"sif /b file_acl {block}", "ssv state 0"):
        run("debugfs", "-w", "-R", command, image)
    core(image)
    clean(image)
    core(image, "rm /a", "sync", "write /c 0 200000 3", "sync", "rm /b")
    clean(image)


def test_a_commit_of_more_inodes_than_buffers(tmp_path):
    """100 inodes in as many blocks; there are 64 buffers."""
    image = make(tmp_path / "image", "4k-256", "8M", "-N", "2048")
    core(image, "many /f 0 1600", "sync",
         *(f"write /f{i} 0 1 {i}" for i in range(0, 1600, 16)))
    clean(image)


def test_disk_that_fails(tmp_path):
    image = make(tmp_path / "image")
    core(image, "write /f 0 5000 1")
    said = core(image, "write /f 0 100000 2", "breaks", "fails 5 sync",
                "fails 30 write /f 0 1 1", "fails 30 mkdir /d",
                "fails 5 sync", "crash")
    assert "the disk cannot be written" in said
    run("e2fsck", "-fp", image, good=(0, 1))


def wrong_super(offset, value, size=4):
    """Writes a number into the superblock of an image."""
    def change(image):
        with open(image, "r+b") as f:
            f.seek(1024 + offset)
            f.write(value.to_bytes(size, "little"))
    return change


@pytest.mark.parametrize("change, why", [
    (wrong_super(56, 0, 2), "not an ext2 file system"),
    (wrong_super(76, 7), "unknown revision"),
    (wrong_super(24, 6), "larger than 4 KiB"),
    (wrong_super(4, 5_000_000), "wrong number of inodes"),
    (wrong_super(32, 0), "fragments are not supported"),
    (wrong_super(40, 3), "wrong number of inodes"),
    (wrong_super(88, 100, 2), "wrong size of inodes"),
    (lambda image: image.write_bytes(image.read_bytes()[:1_000_000]),
     "larger than its disk"),
    (lambda image: image.write_bytes(b""), "cannot read the superblock"),
])
def test_invalid_file_systems_are_refused(change, why, tmp_path):
    image = make(tmp_path / "image")
    change(image)
    assert why in core(image, good=(1,))


INCOMPATIBLE, READ_ONLY = 96, 100  # places in the superblock


def supported(image):
    """Replaces the features by those of a disk that is served."""
    wrong_super(INCOMPATIBLE, 2)(image)
    wrong_super(READ_ONLY, 3)(image)


def refusal(said, says):
    """The features that a message names, and that it names nothing else."""
    match = re.search(re.escape(says) + r"unsupported features:\n(.*)\n"
                      r"  create a disk without them by make disk, or by "
                      r"mke2fs -t ext2\b", said, re.S)
    assert match, said
    lines = match.group(1).split("\n")
    assert all(len(line) < 80 and line.startswith("  ") for line in lines)
    return sum((line.split() for line in lines), [])


def features(image):
    """The names of all features by dumpe2fs, which refuses some, too."""
    said = run("dumpe2fs", "-h", image, good=range(256))
    return set(re.search("features:(.*)", said).group(1).split())


@pytest.mark.parametrize("options, refused", [
    ("extent,64bit", "extent 64bit"),
    ("inline_data", "inline_data"),
    ("meta_bg,^resize_inode,metadata_csum", "meta_bg metadata_csum"),
    ("journal_dev", "journal_dev"),
    ("mmp,flex_bg,ea_inode,large_dir", "mmp flex_bg ea_inode large_dir"),
    # as mke2fs -t ext4 creates it
    ("has_journal,extent,huge_file,flex_bg,metadata_csum,64bit,dir_nlink,"
     "extra_isize", "extent 64bit flex_bg huge_file dir_nlink extra_isize "
     "metadata_csum"),
])
def test_a_refused_disk_names_its_features(options, refused, tmp_path):
    image = tmp_path / "image"
    run("mke2fs", "-q", "-F", "-t", "ext2", "-I", "256", "-O", options, image,
        "8M")
    named = refusal(core(image, good=(1,)), "")
    assert named == refused.split()
    assert set(named) <= features(image)


@pytest.mark.parametrize("options, refused", [
    ("metadata_csum", "metadata_csum"),
    ("huge_file,dir_nlink,extra_isize,quota",
     "huge_file dir_nlink extra_isize quota"),
    ("uninit_bg,project", "uninit_bg project"),
])
def test_a_disk_that_can_only_be_read_names_its_features(options, refused,
                                                         tmp_path):
    image = tmp_path / "image"
    run("mke2fs", "-q", "-F", "-t", "ext2", "-I", "256", "-O", options, image,
        "8M")
    said = core(image, "fails 30 mkdir /d", "ls /")
    assert refusal(said, "read-only: ") == refused.split()


def test_features_without_a_name_are_numbers(tmp_path):
    """Names are those of dumpe2fs, of which an older one knows fewer."""
    image = make(tmp_path / "image")
    names = set()
    for bit in set(range(32)) - {0, 1}:
        supported(image)
        wrong_super(READ_ONLY, 1 << bit)(image)
        named = refusal(core(image, "ls /"), "read-only: ")
        assert len(named) == 1, bit
        assert {named[0], f"FEATURE_R{bit}"} & features(image), bit
        names.add(named[0])
    supported(image)
    wrong_super(READ_ONLY, 0xffff_ffff)(image)
    wrong_super(INCOMPATIBLE, 0xffff_ffff)(image)
    named = refusal(core(image, good=(1,)), "")
    assert names < set(named) and len(set(named)) == len(named) == 60
    assert {"FEATURE_I20", "FEATURE_R20", "64bit"} < set(named)


def test_the_disk_that_a_refusal_recommends_is_served(tmp_path):
    """Made by mke2fs with its own configuration."""
    image = tmp_path / "image"
    run("mke2fs", "-q", "-F", "-t", "ext2", image, "8M")
    assert "read-only" not in core(image, "mkdir /d", "ls /")
    clean(image)


@pytest.mark.parametrize("features", ["orphan_file", "sparse_super2"])
def test_places_that_a_compatible_feature_reserves(features, tmp_path):
    """An inode without a name, and copies of the superblock in other groups:
    a mount after a crash finds nothing wrong."""
    image = tmp_path / "image"
    run("mke2fs", "-q", "-F", "-t", "ext2", "-b", "1024", "-O",
        f"has_journal,{features}", image, "40M")
    core(image, "write /f 0 400 1", "fsync /f", "crash")
    assert "0 inodes, 0 blocks repaired" in core(image, "write /f 0 9 2")
    clean(image)


@pytest.mark.parametrize("change", [wrong_super(100, 0x40 | 3),
                                    wrong_super(58, 3, 2)])
def test_images_that_must_not_be_written_are_read_only(change, tmp_path):
    image = make(tmp_path / "image")
    core(image, "write /f 0 5000 1")
    change(image)
    before = image.read_bytes()
    core(image, f"get /f {tmp_path}/got", "fails 30 mkdir /d",
         "fails 30 rm /f", "sync")
    assert len((tmp_path / "got").read_bytes()) == 5000
    assert image.read_bytes() == before


def test_an_indirect_block_among_those_read_ahead(tmp_path):
    """The indirect block is read while the run of blocks around it is measured,
    and again as a part of this run."""
    image = make(tmp_path / "image")
    core(image, "write /f 0 14336 1")
    blocks = run("debugfs", "-R", "blocks /f", image).split()
    run("debugfs", "-w", "-R", f"sif /f block[IND] {blocks[-8]}", image)
    core(image, f"fails 5 get /f {tmp_path}/got")


@each_format
@pytest.mark.parametrize("images", tiers([300], [3000], [20_000]))
def test_damaged_images(form, images, tmp_path):
    """Mutations of superblock, descriptors, bitmaps, inodes, numbers of
    blocks, entries, and the journal; and reads that fail."""
    source = tmp_path / "source"
    (source / "a" / "b").mkdir(parents=True)
    (source / "c").mkdir()
    (source / "big").write_bytes(contents(400_000, 1))
    (source / "c" / "link").symlink_to("/somewhere")
    for i in range(60):
        (source / "c" / f"some-file-name-{i}").write_bytes(contents(i, i))
    with open(source / "sparse", "wb") as f:
        f.seek(3_000_000)
        f.write(b"x")
    image = make(tmp_path / "image", form, "3M", "-N", "256", "-d", source)
    if form == "journal":  # it holds a move
        core(image, "mkdir /e", "mv /a/b /e")
    said = run(TOOL, "fuzz", image, 1, images)
    assert int(re.search(r"(\d+) became read-only", said).group(1)) > 20


def test_a_name_without_a_file_is_damage(tmp_path):
    """On a clean disk. After a crash the mount removes such a name."""
    image = make(tmp_path / "image")
    core(image, "write /f 0 9 1")
    run("debugfs", "-w", "-R", "sif /f links_count 0", image)
    assert "no file for a name in directory 2: read-only" in \
        core(image, "fails 5 get /f /dev/null", "fails 30 mkdir /d")


# The table in docs/ext2.md, on which the order of writes rests: what debugfs
# does to an image, and with which status `e2fsck -p` ends.
DAMAGE = {
    "sif /g links_count 3": (1,),
    "sif /d links_count 7": (1,),
    "sif /g links_count 0": (1,),   # the entry of a free inode
    "sif /g size 5": (1,),
    "sif /g blocks 77": (1,),
    "freei /g": (0, 1),
    "freeb 1000 2": (0, 1),
    "setb 1000 2": (0, 1),
    "unlink /g": (4,),              # no name
    "unlink /e": (4,),
    "link /d/s /e/x": (4,),         # two names of a directory
    "sif /lost+found block[3] 0": (4,),
}


@pytest.mark.parametrize("command", DAMAGE)
def test_damage_that_e2fsck_repairs_alone(command, tmp_path):
    image = make(tmp_path / "image")
    core(image, "mkdir /d", "mkdir /e", "mkdir /d/s", "write /g 0 2000 1")
    run("debugfs", "-w", "-R", command, image)
    run("e2fsck", "-fp", image, good=DAMAGE[command])
