"""The ext2 server under programs: user/tests/disktest runs on the disk of a
drive, which e2fsprogs checks afterwards; and damaged disks, in RAM and
counted."""
# Tests: user/servers/ext2/main.c, user/servers/ramdisk.c

import random

import pytest

from conftest import archive, tiers
from tools.run import disk, qemu

PIECE = 8192
DAMAGED = 24


def bytes_at(first, n):
    """The rule of disktest."""
    return bytes((place * 31 + (place >> 9)) & 0xff
                 for place in range(first, first + n))


@pytest.mark.parametrize("block", tiers([], [1024, 4096]))
def test_everything_that_a_disk_must_stand(workshop, tmp_path, block):
    image, folder = tmp_path / "disk.img", tmp_path / "files"
    folder.mkdir()
    given = random.Random(block).randbytes(700_001)
    (folder / "given").write_bytes(given)
    disk.make(image, 12, folder=folder, block=block, inodes=5000)
    result = qemu.run(
        workshop, "run -p init disktest /disk; run -p init sh -c 'cp -s "
        "/disk/given /disk/copied; mkdir /disk/deep; mv /disk/copied "
        "/disk/deep'; verify; poweroff", append="start=ext2",
        disks=[image]).good()
    assert result.text.count(": good") == 6, result.explain()
    disk.check(image)
    assert disk.read(image, "/deep/copied") == given
    assert disk.read(image, "/kept") == bytes_at(0, 64 * PIECE)
    assert disk.read(image, "/hole") == \
        bytes(400_000) + bytes_at(400_000, PIECE)


def test_numbers_of_files_that_were_lost_are_used_again(workshop, tmp_path):
    """The server dies before a directory is on the disk. Its successor gives
    the number to a file; the kernel must not use the old inode for it."""
    disk.make(tmp_path / "disk.img", 2, block=1024)
    result = qemu.run(
        workshop, "run -b -p init sh -c 'mkdir /disk/lost; ls /disk/lost; "
        "sleep 2; ls /disk; echo words > /disk/found; cat /disk/found'; "
        "run sleep 1; kill -9 8; run sleep 2; verify; poweroff",
        append="start=ramext2", initrd=archive(workshop, tmp_path, {
            "disk.img": tmp_path / "disk.img"})).good()
    killed = [e["name"] for e in result.named["server-ended"]]
    assert killed == ["ramext2"], result.explain()
    assert "\nwords" in result.text, result.explain()


FEATURES = disk.FEATURES.removesuffix(",has_journal")


@pytest.mark.parametrize("by", ["by hand", "by init"])
@pytest.mark.parametrize("features, first, names", [
    ("extent,64bit,metadata_csum", "", "extent 64bit metadata_csum"),
    ("metadata_csum,huge_file", "read-only: ", "huge_file metadata_csum"),
])
def test_unsupported_features_are_named(workshop, tmp_path, by, features,
                                        first, names):
    """On the console and in the kernel's log, as whole lines."""
    disk.make(tmp_path / "disk.img", 2, block=1024,
              features=f"{FEATURES},{features}")
    start, name = {
        "by hand": ("ramdisk -n mine /disk.img & ext2 mine 0 /disk &", "mine"),
        "by init": ("", "ramdisk")}[by]
    result = qemu.run(
        workshop, f"run -p init sh -c '{start} sleep 1; echo x > /disk/new'; "
        "dmesg; poweroff",
        append="start=ramext2" if by == "by init" else "",
        initrd=archive(workshop, tmp_path, {
            "disk.img": tmp_path / "disk.img"})).good()
    said = (f"ext2: {name}, disk 0: {first}unsupported features:\n  {names}\n"
            "  create a disk without them by make disk, or by mke2fs -t ext2\n")
    text = qemu.plain(result.text).replace("\r", "")
    assert text.count(said) == 2, result.explain()
    assert ("/disk/new: read-only" in text) == bool(first), result.explain()


def damaged(whole, seed):
    """The image with some bytes changed, mostly near the beginning: there are
    superblock, descriptors, bitmaps, inodes and the root directory."""
    chance = random.Random(seed)
    data = bytearray(whole)
    for _ in range(chance.choice([1, 4, 40])):
        place = chance.randrange(1024, chance.choice([2048, 65536, len(data)]))
        data[place] = chance.choice([0, 0xff, chance.randrange(256)])
    return bytes(data)


def test_damaged_disks_end_in_errors(kernel, tmp_path):
    """Each is mounted, walked, written to and unmounted, as far as it goes."""
    folder = tmp_path / "files"
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/big").write_bytes(bytes(400_000))
    for i in range(40):
        (folder / f"a/name{i}").write_bytes(b"x" * i * 50)
    disk.make(tmp_path / "disk.img", 1, folder=folder, block=1024)
    whole = (tmp_path / "disk.img").read_bytes()
    script = ["names &", "sleep 0"]
    files = {"script": tmp_path / "script"}
    for seed in range(DAMAGED):
        (tmp_path / f"{seed}.img").write_bytes(damaged(whole, seed))
        files[f"{seed}.img"] = tmp_path / f"{seed}.img"
        script += [f"ramdisk -n r{seed} /{seed}.img &",
                   f"ext2 r{seed} 0 /disk &", "sleep 1", "walk /disk",
                   "cat /disk/a/b/big | wc", "echo new > /disk/a/new",
                   "mkdir /disk/a/d", "mv /disk/a/name3 /disk/a/d",
                   "rm -r /disk/a/b", "sync", "umount /disk",
                   f"echo end of {seed}"]
    (tmp_path / "script").write_text("\n".join(script) + "\n", encoding="utf-8")
    result = qemu.run(
        kernel, "run -p init sh /script; verify; poweroff", budget=100_000,
        initrd=archive(kernel, tmp_path, files)).good()
    assert f"end of {DAMAGED - 1}" in result.text, result.explain()
    assert "killed" not in result.text, result.explain()
